#!/bin/bash
# mpi_loss_price.sh [options] -- cost of losses at the last rank: broadcasts and sums of 8 B and 64 KiB, and barriers,
# all losses in turns.
#
#   --hosts N          one rank on each (default 8)
#   --losses P,P,..    percentages of the multicast datagrams that each host loses (default 0,1,5)
#   --sizes S,S,..     bytes of broadcasts and allreduces, with K or M (default 8,64K)
#   --iterations N     of each operation in one job (default 2000)
#   --rounds R         jobs of each kind (default 3)
#   --pml cm|ob1       default ob1
#   --builds DIR,DIR   builds to compare, in turns (default this tree's)
#
# For each operation, size and loss: median and 99th percentile over a job's operations of the time from the root's
# entry (barrier and allreduce: the last rank's) to the last rank's end, the median job of R; and the NAKs sent and
# the fragments received by message (repaired) per 1000 operations of a whole job, of all ranks together.  Four minutes
# with the defaults on two cores.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "$0")/common.sh"
n=8 losses=0,1,5 sizes=8,64K iterations=2000 rounds=3 pml=ob1 builds=''
while [ $# -gt 0 ]; do
    case $1 in
        --help | -h) usage; exit 0 ;;
        --version) version; exit 0 ;;
        --hosts | --losses | --sizes | --iterations | --rounds | --pml | --builds)
            [ $# -ge 2 ] && [ -n "$2" ] || bad_usage "'$1' needs a value" ;;&
        --hosts) n=$2; shift 2 ;;
        --losses) losses=$2; shift 2 ;;
        --sizes) sizes=$2; shift 2 ;;
        --iterations) iterations=$2; shift 2 ;;
        --rounds) rounds=$2; shift 2 ;;
        --pml) pml=$2; shift 2 ;;
        --builds) builds=$2; shift 2 ;;
        *) bad_usage "'$1' is no option" ;;
    esac
done
for count in "$n" "$iterations" "$rounds"; do [[ $count =~ ^[1-9][0-9]{0,5}$ ]] || bad_usage "'$count' is no number"; done
can_cluster || finish
time=$BUILD/fabtests/mpi/mpi_bcast_time
[ -x "$time" ] || { echo "$ME: no $time: run util/build" >&2; exit 2; }
builds=${builds:-$BUILD}
start_cluster "$n"

job() { # job NAME OPTION...: one job, its times and its counters
    local name=$1 code=0
    shift
    FI_MCASTCOLL_STATS=$work/$name.stats STACK=mcastcoll bounded 120 "$LAB/run" --mca pml "$pml" "$time" \
        --root 0 --iterations "$iterations" --json "$work/$name.json" "$@" >"$work/log" 2>&1 || code=$?
    [ $code = 0 ] || { tail -n 20 "$work/log" | sed 's/^/     /'; fail "$name: code $code"; finish; }
}
which=0
for ((r = 1; r <= rounds; r++)); do
    for p in ${losses//,/ }; do
        which=0
        for BUILD in ${builds//,/ }; do
            use_build
            "$LAB/loss" "$p"
            for size in ${sizes//,/ }; do
                for kind in bcast allreduce; do job "$which.$p.$kind $size.$r" --operations "$kind" --sizes "$size"; done
            done
            job "$which.$p.barrier.$r" --operations barrier --sizes 8
            which=$((which + 1))
        done
    done
done
python3 - "$work" "$losses" "$sizes" "$rounds" "$builds" <<'END'
import glob, json, statistics, sys
work, losses, sizes, rounds, builds = sys.argv[1:]
builds = builds.split(",")
print("| operation | loss | build | median | p99 | NAKs | repaired |\n|---|---:|---|---:|---:|---:|---:|")
subjects = [f"{kind} {size}" for kind in ("bcast", "allreduce") for size in sizes.split(",")]
for subject in [*subjects, "barrier"]:
    for loss in losses.split(","):
        for which, build in enumerate(builds):
            names = [f"{work}/{which}.{loss}.{subject}.{r + 1}" for r in range(int(rounds))]
            rows = [json.load(open(name + ".json"))["rows"][0] for name in names]
            stats = [[json.load(open(file)) for file in glob.glob(name + ".stats.*")] for name in names]
            assert all(stats), "the counters are missing"
            def per_thousand(counter):
                return statistics.median(1000 * sum(s[counter] for s in job) / job[0]["operations_completed"] for job in stats)
            print(f"| {subject} | {loss} % | {build if len(builds) > 1 else '-'} | {statistics.median(r['median_us'] for r in rows):.0f}"
                  f" | {statistics.median(r['p99_us'] for r in rows):.0f} | {per_thousand('naks_sent'):.0f}"
                  f" | {per_thousand('fragments_repaired'):.0f} |")
END
pass "all jobs ended"
finish
