#!/bin/bash
# mpi_large.sh [options] -- large jobs: groups of many members must form and serve, on one host and on many.
#
#   --one-host N,N,..  ranks on one host (default 34,64,257)
#   --hosts N          hosts of the cluster (default 16; 0: no cluster)
#   --ranks N,N,..     ranks per host of the cluster (default 4,8)
#   --pml P,P,..       ob1, cm (default both)
#
# Every job broadcasts, reduces, gathers ..., blocking and nonblocking, on the world and on parts of it, and checks
# every byte. A job counts as served only if the component reports that it serves the world.
#
# The pml cm takes some 110 MB per rank, with or without mcastcoll: libfabric clears 17 MB for each 1,024 of its
# buffers, and has 128 of them for each connection. 256 ranks on one host would take 28 GB. These tests use fewer and
# smaller buffers, as users can: with -x FI_OFI_RXM_MSG_RX_SIZE=8 -x FI_OFI_RXM_BUFFER_SIZE=4096 they take 4.5 GB.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "$0")/common.sh"
one_host=34,64,257 hosts=16 ranks=4,8 pmls=ob1,cm seconds=400
while [ $# -gt 0 ]; do
    case $1 in
        --help | -h) usage; exit 0 ;;
        --version) version; exit 0 ;;
        --one-host | --hosts | --ranks | --pml) [ $# -ge 2 ] || bad_usage "'$1' needs a value" ;;&
        --one-host) one_host=$2; shift 2 ;;
        --hosts) hosts=$2; shift 2 ;;
        --ranks) ranks=$2; shift 2 ;;
        --pml) pmls=$2; shift 2 ;;
        *) bad_usage "'$1' is no option" ;;
    esac
done
for list in "$one_host" "$ranks"; do
    [[ $list =~ ^([1-9][0-9]{0,3}(,[1-9][0-9]{0,3})*)?$ ]] || bad_usage "'$list': give numbers of ranks"
done
[[ $hosts =~ ^[0-9]{1,2}$ ]] || bad_usage "--hosts '$hosts': give a number"
[[ $pmls =~ ^(ob1|cm)(,(ob1|cm))?$ ]] || bad_usage "--pml '$pmls': give ob1, cm, or both"
can_cluster || finish
use_build
program=$BUILD/fabtests/mpi/mpi_coll_check
[ -x "$program" ] || { echo "$ME: no $program: run util/build" >&2; exit 2; }

launch_here=(env FI_PROVIDER=mcastcoll mpirun.openmpi --allow-run-as-root --oversubscribe --bind-to none --mca mpi_yield_when_idle 1)
launch_there=("$LAB/run")
everything=("$program" --count 2 --max 1K)
broadcasts=("$BUILD/fabtests/mpi/mpi_bcast_check" --count 3 --max 1K --cycles 0)
spares() { # spares RANKS PML: whether to use small buffers
    [ "$2" = cm ] && (($1 >= 256))
}
job() { # job LOG RANKS PML PROGRAM LAUNCHER...: PROGRAM is the name of one of these lists
    local log=$1 ranks=$2 pml=$3 options=()
    declare -n program_of=$4
    shift 4
    [ "$pml" = ob1 ] || options=(--mca mtl ofi)
    ! spares "$ranks" "$pml" || options+=(-x FI_OFI_RXM_MSG_RX_SIZE=8 -x FI_OFI_RXM_BUFFER_SIZE=4096)
    STACK=mcastcoll bounded "$seconds" "$@" -n "$ranks" --mca pml "$pml" ${options[@]+"${options[@]}"} --mca coll_mcastcoll_experiment single_host=1 \
        --mca coll_mcastcoll_verbose 1 "${program_of[@]}" --seed "$ranks" >"$log" 2>&1
}
right() { # right LOG: all results checked are correct
    grep -Eq '[1-9][0-9]* checked, 0 bad$|: 0 bad broadcasts, 0 bad barriers: ok$' "$1"
}
broken() { # broken WHAT LOG CODE
    tail -n 20 "$2" | sed 's/^/     /'
    fail "$1: code $3$([ "$3" != 124 ] || echo ' (hung)')"
}
serve() { # serve WHAT RANKS HOSTS PML LAUNCHER...
    local what="$1, pml $4" log=$work/log ranks=$2 hosts=$3 start=$SECONDS code=0
    job "$log" "$ranks" "$4" everything "${@:5}" || code=$?
    if [ $code != 0 ] || ! right "$log"; then
        broken "$what" "$log" $code
    elif ! grep -q "coll/mcastcoll serves MPI_COMM_WORLD, $ranks members on $hosts hosts\?" "$log"; then
        broken "$what: not served" "$log" 0
    else
        pass "$what: served, $(grep -o '[0-9]* checked, 0 bad$' "$log") ($((SECONDS - start)) s)"
    fi
}

# Memory of Open MPI's processes, with or without mcastcoll, plus a reserve for other programs.
enough_memory() { # enough_memory RANKS PML
    local kilobytes each=15000
    kilobytes=$(awk '/^MemAvailable/ {print $2}' /proc/meminfo)
    [ "$2" = ob1 ] || each=115000
    ! spares "$1" "$2" || each=25000
    ((kilobytes >= $1 * each + 2000000)) || { skip "$1 ranks, pml $2: $((kilobytes >> 10)) MiB of memory are too few"; return 1; }
}

start_cluster $((hosts > 0 ? hosts : 1))
for n in ${one_host//,/ }; do
    for pml in ${pmls//,/ }; do
        enough_memory "$n" "$pml" || continue
        serve "$n ranks on one host" "$n" 1 "$pml" "${launch_here[@]}"
    done
done
for n in ${ranks//,/ }; do
    for pml in ${pmls//,/ }; do
        ((hosts > 0)) && enough_memory $((hosts * n)) "$pml" || continue
        serve "$hosts hosts of $n ranks" $((hosts * n)) "$hosts" "$pml" "${launch_there[@]}"
    done
done
finish
