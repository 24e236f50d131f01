#!/bin/bash
# mpi_compare.sh [--hosts N] [--sizes S,S,..] [--operations bcast,barrier] [--rounds N] [--iterations N] [--loss P]
# [--json FILE]
#
# Compares our broadcast and barrier with Open MPI's own over the same inner provider (pml cm over mcastcoll, with and
# without the coll component), alternating, ROUNDS (default 5) jobs of each on N hosts (default 16), one rank on each.
# Prints, for each size (default 8), the median over the rounds of the medians of ITERATIONS (default 1000) operations.
set -u
. "$(dirname "$0")/common.sh"
n=16 sizes=8 operations=bcast,barrier rounds=5 iterations=1000 loss='' json=''
while [ $# -gt 0 ]; do
    case $1 in
        --help | -h) usage; exit 0 ;;
        --version) version; exit 0 ;;
        --hosts | --sizes | --operations | --rounds | --iterations | --loss | --json) [ $# -ge 2 ] || bad_usage "'$1' needs a value" ;;&
        --hosts) n=$2; shift 2 ;;
        --sizes) sizes=$2; shift 2 ;;
        --operations) operations=$2; shift 2 ;;
        --rounds) rounds=$2; shift 2 ;;
        --iterations) iterations=$2; shift 2 ;;
        --loss) loss=$2; shift 2 ;;
        --json) json=$2; shift 2 ;;
        *) bad_usage "'$1' is no option" ;;
    esac
done
can_cluster || finish
use_build
time=$BUILD/fabtests/mpi/mpi_bcast_time
[ -x "$time" ] || { echo "$ME: no $time: run util/build" >&2; exit 2; }
start_cluster "$n"
[ -z "$loss" ] || "$LAB/loss" "$loss" || finish
for ((r = 0; r < rounds; r++)); do
    for who in mcastcoll openmpi; do
        own=()
        [ $who = mcastcoll ] || own=(--mca coll '^mcastcoll')
        if ! STACK=mcastcoll bounded 300 "$LAB/run" "${own[@]}" "$time" --sizes "$sizes" --operations "$operations" --iterations "$iterations" \
            --json "$work/$who.$r.json" >"$work/log" 2>&1; then
            tail -n 20 "$work/log"
            fail "round $r, $who"
        fi
    done
done
[ $failed = 0 ] || finish
python3 - "$work" "$n" "$rounds" "${json:-/dev/null}" <<'END'
import json, statistics, sys
work, hosts, rounds, out = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
times = {}
for who in ("mcastcoll", "openmpi"):
    for r in range(rounds):
        for row in json.load(open(f"{work}/{who}.{r}.json"))["rows"]:
            times.setdefault((row["operation"], row["bytes"]), {}).setdefault(who, []).append(row["median_us"])
rows = []
print(f"{hosts} hosts, {rounds} rounds of each, alternating; medians in us")
print(f"{'operation':<10} {'bytes':>9} {'mcastcoll':>10} {'Open MPI':>10} {'ratio':>6}   rounds of mcastcoll / of Open MPI")
for (operation, size), t in times.items():
    ours, theirs = (statistics.median(t[w]) for w in ("mcastcoll", "openmpi"))
    print(f"{operation:<10} {size:>9} {ours:>10.1f} {theirs:>10.1f} {ours / theirs:>6.2f}  ",
          " ".join(f"{x:.0f}" for x in t["mcastcoll"]), "/", " ".join(f"{x:.0f}" for x in t["openmpi"]))
    rows.append({"operation": operation, "bytes": size, "mcastcoll_us": ours, "openmpi_us": theirs, "rounds": t})
with open(out, "w") as file:
    json.dump({"hosts": hosts, "rows": rows}, file, indent=1)
END
pass "compared"
finish
