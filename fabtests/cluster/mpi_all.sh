#!/bin/bash
# mpi_all.sh [options] -- every MPI collective over several hosts, compared with Open MPI's own over the same network,
# in one run.
#
#   --hosts H,H,..      numbers of hosts, one rank on each (default 8,16)
#   --sizes S,S,..      bytes, with K or M (default 8,1K,8K,64K,512K)
#   --operations O,O,.. as mcastcoll-perf's (default: those that the component serves)
#   --stacks S,S,..     of util/perf/stacks.conf, ours first (default mcastcoll,ompi-tuned,ompi-han)
#   --rounds R, --seconds S, --limit S    as mcastcoll-perf's (default 5, 0.2, 1500)
#   --loss P            percent of the multicast datagrams lost (default 0)
#   --slack F           how many times slower than the fastest other stack ours may be anywhere (default 1.1)
#   --out DIR           folder for all.txt, .csv, .json and .svg (default build/all)
#
# Fails if ours is not faster than every other stack in barrier, allreduce of 8 bytes and allgather of 64 KiB; if a
# member sends more than twice its block for that allgather (a ring sends N-1 blocks); if ours is slower than the
# fastest other stack by more than the slack anywhere; or if a job hangs, dies or has wrong data.  On a machine with
# other load only ratios are meaningful, and with few rounds even these are estimates: see mcastcoll-perf(1).
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "$0")/common.sh"
hosts=8,16 sizes=8,1K,8K,64K,512K stacks=mcastcoll,ompi-tuned,ompi-han rounds=5 seconds=0.2 limit=1500 loss=0 slack=1.1 out=''
operations=bcast,barrier,reduce,allreduce,allgather,allgatherv,gather,scatter,alltoall,reduce_scatter,reduce_scatter_block
while [ $# -gt 0 ]; do
    case $1 in
        --help | -h) usage; exit 0 ;;
        --version) version; exit 0 ;;
        --hosts | --sizes | --operations | --stacks | --rounds | --seconds | --limit | --loss | --slack | --out)
            [ $# -ge 2 ] && [ -n "$2" ] || bad_usage "'$1' needs a value" ;;&
        --hosts) hosts=$2; shift 2 ;;
        --sizes) sizes=$2; shift 2 ;;
        --operations) operations=$2; shift 2 ;;
        --stacks) stacks=$2; shift 2 ;;
        --rounds) rounds=$2; shift 2 ;;
        --seconds) seconds=$2; shift 2 ;;
        --limit) limit=$2; shift 2 ;;
        --loss) loss=$2; shift 2 ;;
        --slack) slack=$2; shift 2 ;;
        --out) out=$2; shift 2 ;;
        *) bad_usage "'$1' is no option" ;;
    esac
done
can_cluster || finish
use_build
out=${out:-$BUILD/all}
mkdir -p "$out"
out=$(realpath "$out")
rm -f "$out"/all.*
svg=()
command -v gnuplot >/dev/null && svg=(--svg "$out/all.svg")

# mcastcoll-perf checks the arguments and creates its own cluster.  The jobs are in one session with this script,
# because sched_yield() does not yield to other sessions.
trap 'kill $!; wait $!; exit 130' INT TERM HUP
MCASTCOLL_BUILD=$BUILD timeout -k 60 $((${limit%.*} + 300)) "$TOP/util/perf/mcastcoll-perf.py" --hosts "$hosts" --sizes "$sizes" --operations "$operations" \
    --stacks "$stacks" --rounds "$rounds" --seconds "$seconds" --limit "$limit" --loss "$loss" --fail-above "$slack" \
    --json "$out/all.json" --csv "$out/all.csv" ${svg[@]+"${svg[@]}"} >"$out/all.txt" &
code=0
wait $! || code=$?
cat "$out/all.txt"
[ $code != 2 ] || exit 2
[ -s "$out/all.json" ] || { fail "nothing was measured: code $code"; finish; }
while read -r outcome text; do
    case $outcome in ok) pass "$text" ;; FAIL) fail "$text" ;; *) skip "$text" ;; esac
done < <(python3 "$(dirname "$0")/all_check.py" "$out/all.json" "$slack")
say "tables and figure: $out/all.{txt,csv,json,svg}"
finish
