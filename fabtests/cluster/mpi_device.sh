#!/bin/bash
# mpi_device.sh [options] -- all collectives that the component serves, with the buffers of every second rank on a
# device.
#
#   --hosts N        hosts of the cluster (default 3)
#   --ranks N        ranks per host of the cluster (default 2); the job on this host alone has twice as many
#   --loss PERCENT   percentage of the multicast datagrams lost (default 5)
#   --count N        rounds of 1 to 8 random operations (default 150)
#   --max BYTES      largest part of one member (default 256K)
#
# The device is simulated (fabtests/mpi/mpi_device.h), for Open MPI 5: the program holds addresses at which every access
# faults, and only the test's accelerator component (mca_accelerator_mccfake.c) knows the alias with the bytes. A copy
# that bypasses the accelerator ends the job with a stack trace. Runs on this host alone, through shared memory, then
# with messages cut into segments, then over the cluster. Each operation must have had such buffers, blocking and
# nonblocking.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "$0")/common.sh"
hosts=3 ranks=2 loss=5 count=150 max=256K
while [ $# -gt 0 ]; do
    case $1 in
        --help | -h) usage; exit 0 ;;
        --version) version; exit 0 ;;
        --hosts | --ranks | --loss | --count | --max) [ $# -ge 2 ] || bad_usage "'$1' needs a value" ;;&
        --hosts) hosts=$2; shift 2 ;;
        --ranks) ranks=$2; shift 2 ;;
        --loss) loss=$2; shift 2 ;;
        --count) count=$2; shift 2 ;;
        --max) max=$2; shift 2 ;;
        *) bad_usage "'$1' is no option" ;;
    esac
done
[[ $hosts =~ ^[1-9][0-9]{0,2}$ ]] && ((hosts >= 2)) || bad_usage "--hosts '$hosts': give 2 or more"
[[ $ranks =~ ^[1-9][0-9]?$ ]] || bad_usage "--ranks '$ranks': give 1 to 99"
[[ $loss =~ ^[0-9]{1,2}$ ]] || bad_usage "--loss '$loss': give 0 to 99"
[[ $count =~ ^[1-9][0-9]{0,5}$ ]] || bad_usage "--count '$count': give a number"
can_cluster || finish
use_build
program=$BUILD/fabtests/mpi/mpi_coll_check fake=$BUILD/lib/fake
[ -x "$program" ] || { echo "$ME: no $program: run util/build" >&2; exit 2; }
if [ ! -e "$fake/mca_accelerator_mccfake.so" ]; then
    skip "this build's Open MPI has no accelerators"
    finish
fi
start_cluster "$hosts"
# Open MPI's own reductions would read such buffers, so all operations are served here.
echo 'all * * * here' >"$work/selection"
export OMPI_MCA_opal_mca_base_component_path=$fake:$OMPI_MCA_opal_mca_base_component_path
export OMPI_MCA_coll_mcastcoll_selection=$work/selection OMPI_MCA_coll_mcastcoll_experiment=reduce_scatter_small=1G \
    OMPI_MCA_coll_mcastcoll_min_comm_size=2 OMPI_MCA_coll_mcastcoll_verbose=1

judge() { # judge WHAT LOG CODE OPERATIONS: OPERATIONS had such buffers, blocking and nonblocking
    local met
    met=$(awk '$1 == "device" && $3 > 0 && $4 > 0' "$2" | wc -l)
    if [ "$3" = 0 ] && grep -q ' 0 bad$' "$2" && [ "$met" = "$4" ]; then
        pass "$1: $(grep -o '[0-9]* checked, 0 bad' "$2")"
        [ "$4" = 1 ] || grep -E '^(on the )?device ' "$2" | sed 's/^/     /'
    else
        tail -n 40 "$2" | sed 's/^/     /'
        fail "$1: code $3$([ "$3" != 124 ] || echo ' (hung)'); $met of $4 operations had such buffers"
    fi
}
alone() { # alone LOG PROGRAM'S OPTIONS...
    local log=$1
    shift
    code=0
    bounded 120 mpirun.openmpi --allow-run-as-root --map-by slot:OVERSUBSCRIBE --bind-to none --mca mpi_yield_when_idle 1 -np $((2 * ranks)) \
        "$program" --device --count "$count" --max "$max" --seed 1 "$@" >"$work/$log" 2>&1 || code=$?
}
alone all
judge "$((2 * ranks)) ranks of this host, odd ones with buffers on a device" "$work/all" $code 10
# Split into many operations, one after the other or at once.
for operation in bcast allreduce; do
    OMPI_MCA_coll_mcastcoll_experiment=reduce_scatter_small=1G,segment=4096 alone $operation --only $operation
    judge "the same, $operation in segments of 4 KiB" "$work/$operation" $code 1
done
"$LAB/loss" "$loss" >/dev/null
code=0
STACK=mcastcoll bounded 240 "$LAB/run" -n $((hosts * ranks)) "$program" --device --count "$count" --max "$max" --seed 2 >"$work/cluster" 2>&1 || code=$?
judge "$hosts hosts of $ranks ranks, $loss % lost, odd ones with buffers on a device" "$work/cluster" $code 10
finish
