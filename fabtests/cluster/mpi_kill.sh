#!/bin/bash
# mpi_kill.sh [--hosts N] [--timeout MS] -- kill a rank in the middle of broadcasts; everybody else gets an error in time.
#
# Over N hosts (default 6), FI_MCASTCOLL_PEER_TIMEOUT=MS (default 3000): a leaf, the first rank and one in the middle die, with
# small and with large messages.  The bound for the others is MS + 5 s.
set -u
. "$(dirname "$0")/common.sh"
n=6 timeout_ms=3000
while [ $# -gt 0 ]; do
    case $1 in
        --help | -h) usage; exit 0 ;;
        --version) version; exit 0 ;;
        --hosts | --timeout) [ $# -ge 2 ] || bad_usage "'$1' needs a value" ;;&
        --hosts) n=$2; shift 2 ;;
        --timeout) timeout_ms=$2; shift 2 ;;
        *) bad_usage "'$1' is no option" ;;
    esac
done
can_cluster || finish
use_build
kill=$BUILD/fabtests/cluster/mpi_kill
[ -x "$kill" ] || { echo "$ME: no $kill: run util/build" >&2; exit 2; }
start_cluster "$n"
export FI_MCASTCOLL_PEER_TIMEOUT=$timeout_ms

one() { # one VICTIM BYTES LOSS [OPTION]
    local what="rank $1 of $n dies, $2 B, $3 % loss${4:+, $4}" job errors
    "$LAB/loss" "$3"
    rm -f "$work/mark"
    : >"$work/log"
    STACK=mcastcoll timeout -k 10 90 "$LAB/run" --mca orte_abort_on_non_zero_status 0 \
        "$kill" --mark "$work/mark" --victim "$1" --bytes "$2" --within $((timeout_ms + 5000)) ${4:+"$4"} >"$work/log" 2>&1 &
    job=$!
    # Open MPI 4.1's mpirun does not always end when ranks end without MPI_Finalize, so wait for what the ranks say.
    while kill -0 $job 2>/dev/null && (($(grep -c '^rank [0-9]*: error\|^mpi_kill: ' "$work/log") < n - 1)); do sleep .2; done
    kill $job 2>/dev/null
    wait $job 2>/dev/null
    errors=$(grep '^rank [0-9]*: error [0-9.]* ms after the death' "$work/log" | grep -vc 'too late')
    if [ "$errors" = $((n - 1)) ]; then
        pass "$what: all others had an error within $(awk '/^rank/ && $4 > m { m = $4 } END { print m }' "$work/log") ms"
    else
        sed 's/^/     /' "$work/log" | tail -n 30
        fail "$what: $errors of $((n - 1)) others had an error in time"
    fi
}
one $((n - 1)) 65536 0
one 0 65536 5
one $((n / 2)) 8 0 --barrier
one $((n / 2)) 4194304 5
finish
