#!/bin/bash
# compare.sh [--hosts N] [--sizes S,S] [--operations O,O] [--rounds R] [--seconds S] [--loss P] [--out DIR] [--timeout S] -- MPI
# collectives in the machine of util/rxe-lab, a rank on each Soft-RoCE host: multicast over RDMA, multicast over UDP, and no multicast
# (Open MPI's own algorithms), all with verbs;ofi_rxm for point-to-point messages, in turns of one run (mcastcoll-perf).
#
# DIR gets compare.json, compare.csv and our counters, ud.* and udp.*.
set -u
. "$(dirname "$0")/../cluster/common.sh"
hosts=4 sizes=8,64K operations=bcast rounds=5 seconds=1 loss=0 out='' limit=900 inside=''
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
# The queues and the patience are those of in_lab.sh.
words="openmpi FI_UNIVERSE_SIZE=16 --mca pml cm --mca mtl ofi --mca btl ^ofi,openib --mca coll_mcastcoll_join_timeout 60000"
ours="$words FI_PROVIDER=mcastcoll FI_MCASTCOLL_INNER='verbs;ofi_rxm' FI_MCASTCOLL_PEER_TIMEOUT=30000 FI_MCASTCOLL_JOIN_TIMEOUT=60000"
rank=$TOP/util/rxe/rank
code=0
"$TOP/util/perf/mcastcoll-perf.py" --ranks "$RXE_HOSTS" --operations "$operations" --sizes "$sizes" --rounds "$rounds" --seconds "$seconds" \
    --limit $((limit - 60)) --timeout 120 --yield yes --stacks ud,udp,p2p \
    --stack "ud=$ours FI_MCASTCOLL_STATS=$out/ud FI_MCASTCOLL_TRANSPORT=verbs --mca coll_mcastcoll_priority 90 $rank" \
    --stack "udp=$ours FI_MCASTCOLL_STATS=$out/udp FI_MCASTCOLL_TRANSPORT=udp --mca coll_mcastcoll_priority 90 $rank" \
    --stack "p2p=$words --mca mtl_ofi_provider_include 'verbs;ofi_rxm' --mca coll ^mcastcoll,han,sm $rank" \
    --csv "$out/compare.csv" --json "$out/compare.json" || code=$?
for stack in ud udp; do
    cat "$out/$stack".*.json | awk -F': ' -v stack=$stack '/"verbs_datagrams_sent"/ { verbs += $2 } /"datagrams_sent"/ { all += $2 }
        END { printf "%s: %d datagrams, %d of them over verbs\n", stack, all, verbs }'
done
exit $code
