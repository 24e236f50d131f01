#!/bin/bash
# mpi_measured.sh [--hosts N] [--count N] -- long broadcasts are tried both ways, and continue with the faster one.
#
# N hosts (default 4), jobs of N broadcasts (default 600) of three classes of sizes, from all roots, of all layouts,
# every byte compared: by default; with multicast that loses much; with Open MPI's in tiny segments, which are served
# here; with a separate rule for small ones; with threads on their own communicators; and where nothing is tried: by a
# rule, and because the program handles errors.  Which way is faster depends on the machine: the test checks that each
# decision follows from the times.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "$0")/common.sh"
hosts=4 count=600
while [ $# -gt 0 ]; do
    case $1 in
        --help | -h) usage; exit 0 ;;
        --version) version; exit 0 ;;
        --hosts | --count) [ $# -ge 2 ] || bad_usage "'$1' needs a value" ;;&
        --hosts) hosts=$2; shift 2 ;;
        --count) count=$2; shift 2 ;;
        *) bad_usage "'$1' is no option" ;;
    esac
done
[[ $hosts =~ ^[1-9][0-9]?$ ]] && ((hosts >= 3)) || bad_usage "--hosts '$hosts': give 3 or more"
[[ $count =~ ^[1-9][0-9]{0,4}$ ]] || bad_usage "--count '$count': give a number"
can_cluster || finish
use_build
unset OMPI_MCA_coll_mcastcoll_selection
programs=$BUILD/fabtests/mpi
for program in mpi_bcast_check mpi_coll_threads; do
    [ -x "$programs/$program" ] || { echo "$ME: no $programs/$program: run util/build" >&2; exit 2; }
done
start_cluster "$hosts"

job() { # job LOG OPTIONS AND PROGRAM...; sets code
    local log=$1
    shift
    code=0
    STACK=mcastcoll bounded 240 "$LAB/run" --mca coll_mcastcoll_verbose 1 "$@" >"$work/$log" 2>&1 || code=$?
}
broadcasts=("$programs/mpi_bcast_check" --count "$count" --cycles 0 --roots all --min 64K --max 300K --fatal)
# Prints the decisions that do not follow from the times of their trials: the way faster by 5 % serves, but changing
# this takes two trials in a row (coll_mcastcoll_select.c). Times are rounded, so a tie may go either way.
wrong_decisions() { # wrong_decisions LOG
    sed -n "s/.*coll\/mcastcoll: bcast of \([0-9]*\) to .*: \([0-9]*\) us here, \([0-9]*\) us by Open MPI's own: /\1 \2 \3 /p" "$1" | awk '
        { class = $1; limit = $3 * 1.05; said = $4
          faster = limit < $2 ? "left" : "served"
          if (!(class in serves)) serves[class] = "served"
          if (limit - $2 < 2 && $2 - limit < 2) faster = said != "a" ? said : serves[class] == "left" ? "served" : "left"
          suspects[class] = faster != serves[class] && !suspects[class]
          if (!suspects[class]) serves[class] = faster
          if (said != (suspects[class] ? "a" : faster)) print }'
}
judge() { # judge WHAT LOG TRIALS SERVED: at least TRIALS trials (0: none), of which at least SERVED chose mcastcoll
    local lines served left wrong
    wrong=$(wrong_decisions "$work/$2")
    lines=$(grep -c 'coll/mcastcoll: bcast of .* bytes on MPI_COMM_WORLD: ' "$work/$2" || true)
    served=$(grep -c ' by Open MPI.s own: served here' "$work/$2" || true)
    left=$(grep -c ' by Open MPI.s own: left to them' "$work/$2" || true)
    if [ "$code" = 0 ] && ((lines >= $3 && (lines > 0) == ($3 > 0))) && ((served >= $4)) && [ -z "$wrong" ] && grep -q ' 0 bad' "$work/$2"; then
        pass "$1: $served served here, $left left"
    else
        tail -n 20 "$work/$2" | sed 's/^/     /'
        fail "$1: code $code$([ "$code" != 124 ] || echo ' (hung)'), $lines trials, $served served here, $left left${wrong:+, wrong: $wrong}"
    fi
}

for pml in ob1 cm; do
    job "$pml" --mca pml $pml "${broadcasts[@]}"
    judge "pml $pml" "$pml" 3 0
done
# Contiguous: tuned cuts segments by the count of elements, and fails if layouts differ.
job segments --mca pml ob1 --mca coll_tuned_use_dynamic_rules 1 --mca coll_tuned_bcast_algorithm 3 \
    --mca coll_tuned_bcast_algorithm_segmentsize 64 "${broadcasts[@]}" --contiguous
judge "Open MPI's in tiny segments" segments 3 3
job handler --mca pml ob1 "${broadcasts[@]:0:${#broadcasts[@]}-1}"
judge "a program that handles errors" handler 0 0
job none --mca pml ob1 --mca coll_mcastcoll_selection "$TOP/fabtests/cluster/broadcasts_here.conf" "${broadcasts[@]}"
judge "a file that has none measured" none 0 0
echo 'all * * * measured' >"$work/rule"
job everything --mca pml ob1 --mca coll_mcastcoll_selection "$work/rule" "$programs/mpi_coll_threads" --threads 4 --count 60000 --max 32
if [ $code = 0 ] && grep -q ' 0 bad' "$work/everything" && grep -q ' by Open MPI.s own: ' "$work/everything"; then
    pass "everything measured, 4 threads: $(grep -c ' by Open MPI.s own: ' "$work/everything") trials"
else
    tail -n 20 "$work/everything" | sed 's/^/     /'
    fail "everything measured, 4 threads: code $code"
fi
"$LAB/loss" 90 >/dev/null
# Only one class, so that a second trial follows if the first trial finds Open MPI's own faster.
job loss --mca pml ob1 "${broadcasts[@]}" --count 140 --max 120K
judge "90 % of the multicast lost" loss 1 0
finish
