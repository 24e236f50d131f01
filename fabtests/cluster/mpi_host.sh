#!/bin/bash
# mpi_host.sh [options] -- collectives inside one host: ours compared with every stack that a user might have instead,
# in one run.
#
#   --ranks N,N,..     processes (default 2,4,8,16)
#   --cells C,C,..     OPERATION or OPERATION:BYTES, with K or M (default bcast:8,bcast:1K,bcast:64K,bcast:1M,barrier,allreduce:8,
#                      allreduce:64K); operations are bcast, barrier, allreduce, allgather, reduce
#   --stacks S,S,..    vader, han, sm, mpich, ours (default: the installed ones)
#   --ours WORDS       how to enable ours: NAME=VALUE for the environment, else options of mpirun (default $MCASTCOLL_OURS)
#   --rounds R         repetitions of each stack at each cell (default 5)
#   --seconds S        of each repetition (default 0.3)
#   --limit S          seconds in all; a busy machine gets fewer repetitions, at least two (default 560)
#   --quick            as --ranks 2,4 --rounds 2 --seconds 0.15 --limit 100
#   --out DIR          folder for host.csv, .json, .md and .svg (default build/host)
#
# All stacks' jobs of one number of ranks are alive at once and take turns cell by cell; jobs without a turn sleep in
# read(), where no MPI can spin.  With 2 ranks each stack runs bound and unbound, yielding and spinning, and its best
# result counts; with more ranks than cores idle ranks yield, because other measurements would be meaningless.  MPICH
# cannot yield.  Every result is verified outside the timed part. The exit code is 1 if a job failed or data were wrong,
# never because of a time.  docs/HOST.md explains the table.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "$0")/common.sh"
ranks=2,4,8,16 cells=bcast:8,bcast:1K,bcast:64K,bcast:1M,barrier,allreduce:8,allreduce:64K stacks='' ours=${MCASTCOLL_OURS:-} rounds=5
seconds=0.3 limit=560 out=''
while [ $# -gt 0 ]; do
    case $1 in
        --help | -h) usage; exit 0 ;;
        --version) version; exit 0 ;;
        --ranks | --cells | --stacks | --ours | --rounds | --seconds | --limit | --out) [ $# -ge 2 ] || bad_usage "'$1' needs a value" ;;&
        --ranks) ranks=$2; shift 2 ;;
        --cells) cells=$2; shift 2 ;;
        --stacks) stacks=$2; shift 2 ;;
        --ours) ours=$2; shift 2 ;;
        --rounds) rounds=$2; shift 2 ;;
        --seconds) seconds=$2; shift 2 ;;
        --limit) limit=$2; shift 2 ;;
        --quick) ranks=2,4 rounds=2 seconds=0.15 limit=100; shift ;;
        --out) out=$2; shift 2 ;;
        *) bad_usage "'$1' is no option" ;;
    esac
done
each_is() { # each_is OPTION WORDS PATTERN WANTED
    local word
    for word in ${2//,/ }; do [[ $word =~ ^($3)$ ]] || bad_usage "--$1 '$word': give $4"; done
}
each_is ranks "$ranks" '[2-9]|[1-9][0-9]{1,2}' "numbers of processes from 2"
each_is cells "$cells" 'barrier|(bcast|allreduce|allgather|reduce):[0-9]{1,8}[KM]?' \
    "barrier, or bcast, allreduce, allgather, reduce with :BYTES"
each_is stacks "$stacks" 'vader|han|sm|mpich|ours' "vader, han, sm, mpich or ours"
each_is rounds "$rounds" '[1-9][0-9]{0,2}' "a number"
each_is seconds "$seconds" '[0-9]{1,2}(\.[0-9]+)?' "seconds"
each_is limit "$limit" '[1-9][0-9]{0,4}' "seconds"
command -v mpirun.openmpi >/dev/null || { skip "needs Open MPI: run util/install-deps"; finish; }
use_build # also clears the caller's settings for libfabric and Open MPI
[ -x "$BUILD/util/perf/mcastcoll-perf-mpi" ] || { echo "$ME: no mcastcoll-perf-mpi in $BUILD: run util/build" >&2; exit 2; }
out=${out:-$BUILD/host}
mkdir -p "$out"
out=$(realpath "$out")
if [ -z "$stacks" ]; then
    stacks=vader,han,sm
    if command -v mpicc.mpich mpirun.mpich >/dev/null; then stacks+=,mpich; else skip "no MPICH here: run util/install-deps"; fi
    stacks+=,ours
fi

# The jobs are in one session with this script, because sched_yield() does not yield to other sessions.
code=0
trap 'kill $!; wait $!; exit 130' INT TERM HUP
python3 "$(dirname "$0")/host_bench.py" --ranks "$ranks" --cells "$cells" --stacks "$stacks" --ours "$ours" --rounds "$rounds" \
    --seconds "$seconds" --limit "$limit" --out "$out/host.json" &
wait $! || code=$?
if [ $code != 0 ]; then fail "a job failed, or its data were wrong"; else pass "all data right"; fi
[ -s "$out/host.json" ] || finish
python3 "$(dirname "$0")/host_table.py" "$out/host.json" --csv "$out/host.csv" --markdown "$out/host.md"
if command -v gnuplot >/dev/null; then "$TOP/util/plot" "$out/host.json" "$out/host.svg" && say "figure: $out/host.svg"; fi
say "tables: $out/host.{md,csv,json}"
finish
