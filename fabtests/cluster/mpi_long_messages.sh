#!/bin/bash
# mpi_long_messages.sh [--hosts N] [--bound BYTES] [--large] -- very long messages are served, and are correct around
# every limit.
#
#   --hosts N        hosts, one rank on each (default 3)
#   --bound BYTES    tests one element less, exactly BYTES, and one more (default 1M, in many segments of 64 KiB, as for a large one)
#   --large          the same with 1 GiB and the component's own segments, where messages were left to Open MPI; then broadcasts of
#                    2.2 GB to two ranks of one host, a number of bytes that no int holds. Needs 8 GB of memory and some minutes
#
# Every word of every rank is compared. The multicast datagrams received by the hosts show which component served.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "$0")/common.sh"
hosts=3 bound=1M large=0
while [ $# -gt 0 ]; do
    case $1 in
        --help | -h) usage; exit 0 ;;
        --version) version; exit 0 ;;
        --hosts | --bound) [ $# -ge 2 ] || bad_usage "'$1' needs a value" ;;&
        --hosts) hosts=$2; shift 2 ;;
        --bound) bound=$2; shift 2 ;;
        --large) large=1; shift ;;
        *) bad_usage "'$1' is no option" ;;
    esac
done
[[ $hosts =~ ^[1-9][0-9]{0,2}$ ]] && ((hosts >= 3)) || bad_usage "--hosts '$hosts': give 3 or more"
[[ $bound =~ ^[1-9][0-9]{0,9}[KMG]?$ ]] || bad_usage "--bound '$bound': give bytes, with K, M or G"
can_cluster || finish
use_build
program=$BUILD/fabtests/mpi/mpi_long_messages
[ -x "$program" ] || { echo "$ME: no $program: run util/build" >&2; exit 2; }
GSO=on start_cluster "$hosts"
"$LAB/loss" 0 >/dev/null

judge() { # judge WHAT LOG CODE
    if [ "$3" = 0 ] && grep -q ' 0 bad$' "$2"; then
        pass "$1: $(grep -o '[0-9]* checked, 0 bad' "$2")"
    else
        tail -n 20 "$2" | sed 's/^/     /'
        fail "$1: code $3$([ "$3" != 124 ] || echo ' (hung)')"
    fi
}
over_cluster() { # over_cluster SECONDS WHAT DATAGRAMS OPTIONS AND PROGRAM...: at least DATAGRAMS arrived by multicast
    local seconds=$1 what=$2 wanted=$3 code=0 got
    shift 3
    "$LAB/loss" 0 >/dev/null
    STACK=mcastcoll bounded "$seconds" "$LAB/run" --mca pml ob1 --mca btl tcp,self "$@" >"$work/log" 2>&1 || code=$?
    judge "$what" "$work/log" $code
    got=$(counted matched)
    if ((got >= wanted)); then pass "$what: $got datagrams by multicast"; else fail "$what: $got datagrams by multicast, not $wanted"; fi
}
bytes=$(numfmt --from=iec "$bound")
# Broadcasts of the limit from two roots, contiguous, with holes and nonblocking, each in three sizes; a datagram has at
# most 64 KiB.
over_cluster 240 "around $bound in segments of 64 KiB" $((18 * bytes / 65536)) --mca coll_mcastcoll_experiment segment=64K "$program" --bound "$bound"
[ "$large" = 1 ] || finish
over_cluster 1200 "around 1 GiB" $((6 * 16384)) "$program" --bound 1G --operations b
code=0
bounded 1200 mpirun.openmpi --allow-run-as-root --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 -np 2 "$program" --bound 2200M --operations bi >"$work/log" 2>&1 || code=$?
judge "around 2200 MiB on one host" "$work/log" $code
finish
