#!/bin/bash
# compare.sh [--hosts N] [--sizes S,S] [--operations O,O] [--rounds R] [--seconds S] [--loss P] [--out DIR] [--timeout
# S] -- compares MPI collectives in the virtual machine of util/rxe-lab, a rank on each Soft-RoCE host: multicast over
# RDMA, multicast over UDP, and no multicast (Open MPI's own algorithms), all with verbs;ofi_rxm for point-to-point
# messages, in turns of one run (mcastcoll-perf).
#
# The machine's clock counts its instructions, and all ranks and the network share one processor: the times are the sum
# of all ranks' work in an operation, one instruction taken as a nanosecond.  They do not depend on other load on this
# host. DIR gets compare.json, compare.csv, compare.svg and our counters, ud.* and udp.*.  The turns' quartiles are
# printed as well.  Fails if a stack did not use its transport: if a group was left to Open MPI, or its multicasts used
# the other transport.
set -u
. "$(dirname "$0")/../cluster/common.sh"
hosts=4 sizes=8,64K operations=bcast rounds=8 seconds=0.2 loss=0 out='' limit=1500 inside=''
while [ $# -gt 0 ]; do
    case $1 in
        --help | -h) usage; exit 0 ;;
        --version) version; exit 0 ;;
        --inside) inside=1; shift; continue ;;
        --hosts | --sizes | --operations | --rounds | --seconds | --loss | --out | --timeout) [ $# -ge 2 ] || bad_usage "'$1' needs a value" ;;
        *) bad_usage "'$1' is no option" ;;
    esac
    case $1 in
        --hosts) hosts=$2 ;;
        --sizes) sizes=$2 ;;
        --operations) operations=$2 ;;
        --rounds) rounds=$2 ;;
        --seconds) seconds=$2 ;;
        --loss) loss=$2 ;;
        --out) out=$2 ;;
        --timeout) limit=$2 ;;
    esac
    shift 2
done
if [ -z "$inside" ]; then
    out=${out:-$BUILD/verbs-compare}
    exec "$TOP/util/rxe-lab" --steady --hosts "$hosts" --loss "$loss" --timeout "$limit" --out "$out" -- env MCASTCOLL_BUILD="$BUILD" "$0" --inside \
        --sizes "$sizes" --operations "$operations" --rounds "$rounds" --seconds "$seconds" --loss "$loss" --out "$out" --timeout "$limit"
fi
use_build
rm -f "$out"/ud.*.json "$out"/udp.*.json
# The same queues and timeouts as in in_lab.sh.
words="openmpi FI_UNIVERSE_SIZE=16 --mca pml cm --mca mtl ofi --mca btl ^ofi,openib --mca coll_mcastcoll_join_timeout 60000"
ours="$words FI_PROVIDER=mcastcoll FI_MCASTCOLL_INNER='verbs;ofi_rxm' FI_MCASTCOLL_JOIN_TIMEOUT=60000"
rank=$TOP/util/rxe/rank
code=0 picture=()
! command -v gnuplot >/dev/null || picture=(--svg "$out/compare.svg")
"$TOP/util/perf/mcastcoll-perf.py" --ranks "$RXE_HOSTS" --operations "$operations" --sizes "$sizes" --rounds "$rounds" --seconds "$seconds" \
    --limit $((limit - 60)) --timeout 120 --yield yes --stacks ud,udp,p2p \
    --stack "ud=$ours FI_MCASTCOLL_STATS=$out/ud FI_MCASTCOLL_MULTICAST=verbs --mca coll_mcastcoll_priority 90 $rank" \
    --stack "udp=$ours FI_MCASTCOLL_STATS=$out/udp FI_MCASTCOLL_MULTICAST=udp --mca coll_mcastcoll_priority 90 $rank" \
    --stack "p2p=$words --mca mtl_ofi_provider_include 'verbs;ofi_rxm' --mca coll ^mcastcoll,han,sm $rank" \
    ${picture[@]+"${picture[@]}"} --csv "$out/compare.csv" --json "$out/compare.json" || code=$?
python3 - "$out/compare.json" <<'P' || code=1
import json, statistics, sys
data = json.load(open(sys.argv[1]))
def spread(values):
    quartiles = statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else values * 3
    return "{1:.2f} [{0:.2f}, {2:.2f}]".format(*quartiles)
first = {}
print("medians and quartiles of the turns: us, and the first stack's time to this one's")
for row in data["rows"]:
    turns = row.get("rounds_us", [])
    if row["stack"] == data["first"]:
        first[row["operation"], row["bytes"]] = turns
    ratios = [a / b for a, b in zip(first.get((row["operation"], row["bytes"]), []), turns)]
    print(f"{row['operation']:<10} {row['bytes']:>8} {row['stack']:<5} {spread(turns) if turns else '-':<30} {spread(ratios) if ratios else '-'}")
left = [note for note in data["notes"] if "to Open MPI's own" in note]
print(*left, sep="\n", end="\n" if left else "")
sys.exit(1 if left else 0)
P
for stack in ud udp; do
    cat "$out/$stack".*.json | awk -F': ' -v stack=$stack '/"verbs_datagrams_sent"/ { verbs += $2 } /"datagrams_sent"/ { all += $2 } /"datagrams_received"/ { got += $2 }
        /"fragments_repaired"/ { repaired += $2 } /"duplicates"/ { twice += $2 } /"naks_sent"/ { naks += $2 }
        END { printf "%s: %d datagrams, %d of them over verbs; lost %d; NAKs %d, repaired %d, twice %d\n", stack, all, verbs, (hosts - 1) * all - got, naks, repaired, twice
              exit all == 0 || verbs != (stack == "ud" ? all : 0) }' hosts="$RXE_HOSTS" || { echo "$stack: not over what it is called after"; code=1; }
done
exit $code
