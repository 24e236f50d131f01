#!/bin/bash
# mpi_kill.sh [--hosts N] [--within MS] -- kills a rank in the middle of broadcasts; all other ranks must get an error
# in time.
#
# N hosts (default 6): a leaf, the first rank and one in the middle die, with small and with large messages.  The others
# must have their errors within MS (default 8000).
set -u
. "$(dirname "$0")/common.sh"
. "$(dirname "$0")/kill.sh"
n=6 within_ms=8000
while [ $# -gt 0 ]; do
    case $1 in
        --help | -h) usage; exit 0 ;;
        --version) version; exit 0 ;;
        --hosts | --within) [ $# -ge 2 ] || bad_usage "'$1' needs a value" ;;&
        --hosts) n=$2; shift 2 ;;
        --within) within_ms=$2; shift 2 ;;
        *) bad_usage "'$1' is no option" ;;
    esac
done
can_cluster || finish
use_build
unset OMPI_MCA_coll_mcastcoll_selection  # as users run it
kill=$BUILD/fabtests/cluster/mpi_kill
[ -x "$kill" ] || { echo "$ME: no $kill: run util/build" >&2; exit 2; }
start_cluster "$n"

per=1 # ranks on each host
one() { # one VICTIM BYTES LOSS [OPERATIONS [SECONDS that a child of the victim lives on]]
    local all=$((n * per)) what="rank $1 of $((n * per)) dies, $2 B, $3 % loss${4:+, $4}${5:+, a child of it lives on}"
    "$LAB/loss" "$3"
    rm -f "$work/mark"
    : >"$work/log"
    STACK=mcastcoll timeout -k 10 90 "$LAB/run" -n $all "${outlive[@]}" \
        "$kill" --mark "$work/mark" --victim "$1" --bytes "$2" --within $within_ms ${4:+--operations "$4"} ${5:+--orphan "$5"} >"$work/log" 2>&1 &
    judge_survivors "$what" $all $! "$work/log" || return
    (($2 <= 32)) || return 0 # only such operations are served entirely by mcastcoll
    if [ "$(grep -c "failed on communicator.*lost rank $1 at .*its process .*has ended" "$work/log")" = $((all - 1)) ]; then
        pass "$what: all others name it"
    else
        grep 'failed on communicator' "$work/log" | sed 's/^/     /'
        fail "$what: all others should name it"
    fi
}
one $((n - 1)) 65536 0
one 0 65536 5
one $((n / 2)) 32 0 allreduce,barrier
# The error names the failed operation, with its size.
if grep 'coll/mcastcoll: .* failed on communicator' "$work/log" | grep -v ': barrier failed\|: allreduce of 32 bytes failed'; then
    fail "an error names the wrong operation or size"
fi
one $((n / 2)) 4194304 5
one 1 8 0 allreduce 40
per=2 # only its own host knows the second rank of a host
one 3 8 0 bcast,barrier
finish
