#!/bin/bash
# mpi_host_kill.sh [options] -- one of a host's ranks is killed in mid-operation: the others get an error in time, and
# nothing is left.
#
#   --ranks N          processes (default 4)
#   --within MS        time limit for the others (default 8000)
#   --ours WORDS       how to enable ours: NAME=VALUE for the environment, else options of mpirun (default $MCASTCOLL_OURS, or
#                      --mca pml cm --mca mtl ofi, with which the component serves single hosts, too)
#   --cases C,C,..     OPERATIONS:BYTES:VICTIM, operations joined by + (default bcast:65536:last, bcast:8:first, bcast:4194304:middle,
#                      bcast+barrier:8:middle, barrier:4:last, allreduce:8:first, allreduce:65536:middle)
#
# Needs no cluster.  As root each job has its own /dev/shm, so all files left there are the job's; otherwise only new
# files count. Open MPI's own files (vader_segment*) are ignored.
set -u
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "$0")/common.sh"
# shellcheck source-path=SCRIPTDIR source=kill.sh
. "$(dirname "$0")/kill.sh"
n=4 within_ms=8000 ours=${MCASTCOLL_OURS:---mca pml cm --mca mtl ofi}
cases=bcast:65536:last,bcast:8:first,bcast:4194304:middle,bcast+barrier:8:middle,barrier:4:last,allreduce:8:first,allreduce:65536:middle
while [ $# -gt 0 ]; do
    case $1 in
        --help | -h) usage; exit 0 ;;
        --version) version; exit 0 ;;
        --ranks | --within | --ours | --cases) [ $# -ge 2 ] || bad_usage "'$1' needs a value" ;;&
        --ranks) n=$2; shift 2 ;;
        --within) within_ms=$2; shift 2 ;;
        --ours) ours=$2; shift 2 ;;
        --cases) cases=$2; shift 2 ;;
        *) bad_usage "'$1' is no option" ;;
    esac
done
[[ $n =~ ^[1-9][0-9]{0,2}$ ]] && ((n >= 3)) || bad_usage "--ranks '$n': give 3 or more"
[[ $within_ms =~ ^[1-9][0-9]{0,5}$ ]] || bad_usage "--within '$within_ms': give milliseconds"
for c in ${cases//,/ }; do
    [[ $c =~ ^(bcast|barrier|allreduce)(\+(bcast|barrier|allreduce))*:[1-9][0-9]{0,8}:(first|middle|last)$ ]] ||
        bad_usage "--cases '$c': give OPERATIONS:BYTES:first, middle or last, operations being bcast, barrier, allreduce, joined by +"
done
command -v mpirun.openmpi >/dev/null || { skip "needs Open MPI: run util/install-deps"; finish; }
use_build
kill=$BUILD/fabtests/cluster/mpi_kill
[ -x "$kill" ] || { echo "$ME: no $kill: run util/build" >&2; exit 2; }
work=$(mktemp -d) shm=/dev/shm alone=()
on_exit 'rm -rf "$work" ${alone:+"$shm"}'
if unshare --mount true 2>/dev/null; then
    shm=$(mktemp -d -p /dev/shm mcc-kill-XXXXXX)
    alone=(unshare --mount sh -c 'mount --bind "$1" /dev/shm && shift && exec "$@"' sh "$shm")
fi
export FI_PROVIDER=mcastcoll
options=()
for word in $ours; do
    if [[ $word =~ ^[A-Za-z_][A-Za-z0-9_]*= ]]; then export "${word?}"; else options+=("$word"); fi
done
for name in $(compgen -e | grep '^FI_'); do options+=(-x "$name"); done

one() { # one OPERATIONS BYTES VICTIM
    local victim what left
    case $3 in first) victim=0 ;; middle) victim=$((n / 2)) ;; last) victim=$((n - 1)) ;; esac
    what="$1 of $2 B, rank $victim of $n dies"
    rm -f "$work/mark"
    : >"$work/log"
    find "$shm" -mindepth 1 -printf '%f\n' >"$work/before"
    timeout -k 10 90 ${alone[@]+"${alone[@]}"} mpirun.openmpi --allow-run-as-root --leave-session-attached --oversubscribe --bind-to none \
        --mca mpi_yield_when_idle 1 "${outlive[@]}" -np "$n" "${options[@]}" \
        "$kill" --mark "$work/mark" --victim $victim --bytes "$2" --within $within_ms --operations "${1//+/,}" >"$work/log" 2>&1 &
    # A job that never ran leaves no files, so the check applies only after errors on the other ranks.
    judge_survivors "$what" "$n" $! "$work/log" || return
    # The next job with reports removes those of killed processes (below).
    left=$(find "$shm" -mindepth 1 ! -name 'vader_segment*' ! -path "$shm/mcastcoll-$(id -u)*" -printf '%f\n' | grep -vxFf "$work/before" | paste -sd' ')
    if [ -z "$left" ]; then pass "$what: nothing is left in /dev/shm"; else fail "$what: left in /dev/shm: $left"; fi
}
for c in ${cases//,/ }; do
    IFS=: read -r operations bytes victim <<<"$c"
    one "${operations//+/,}" "$bytes" "$victim"
done
# A job of some hundred milliseconds writes no report.
if [ ${#alone[@]} -gt 0 ]; then
    reports() { find "$shm/mcastcoll-$(id -u)" -name '*.json' | wc -l; }
    before=$(reports) code=0
    timeout -k 10 90 "${alone[@]}" mpirun.openmpi --allow-run-as-root --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 -np 2 \
        "${options[@]}" "$BUILD/fabtests/mpi/mpi_coll_check" --count 2000 --max 1K >"$work/log" 2>&1 || code=$?
    if [ $code = 0 ] && ((before > 0)) && [ "$(reports)" = 0 ]; then
        pass "the next job removes the $before reports of killed processes"
    else
        tail -n 5 "$work/log" | sed 's/^/     /'
        fail "of $before reports of killed processes the next job leaves $(reports), code $code"
    fi
fi
finish
