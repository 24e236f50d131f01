#!/bin/bash
# mpi_slow.sh [--hosts N] [--size BYTES] [--slow stop,link] [--share PERCENT] [--policy P] [--json FILE] -- one member
# is slow.
#
# On N hosts (default 5) rank 0 broadcasts BYTES (default 64M; up to 1G) to all, while all but the last host exchange
# small broadcasts in a second thread and another communicator.  First all hosts run at full speed, then the last host
# is slow:
#   stop   it is stopped for all but PERCENT (default 1) of the time, so its receive buffer fills
#   link   its cable carries a tenth of the first run's rate, so the switch's queue fills
# Every byte is checked on every rank.  Prints the times of the small broadcasts alone and beside the large one, and the
# share of the large one's fragments that had to be repaired.  64 MiB, 5 hosts, two busy cores:
#   last host                MB/s   repaired   small ones beside it, median / p99 us
#   at full speed            59.9      0.6 %   76 / 52069
#   stop 99 % of the time     5.8      0.0 %   22 / 6189
#   link (another run: 58.4 MB/s at full speed, link 5.8)   4.9   0.1 %   29 / 11649
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "$0")/common.sh"
n=5 size=64M slow=stop,link share=1 policy='' json=''
while [ $# -gt 0 ]; do
    case $1 in
        --help | -h) usage; exit 0 ;;
        --version) version; exit 0 ;;
        --hosts | --size | --slow | --share | --policy | --json) [ $# -ge 2 ] || bad_usage "'$1' needs a value" ;;&
        --hosts) n=$2; shift 2 ;;
        --size) size=$2; shift 2 ;;
        --slow) slow=$2; shift 2 ;;
        --share) share=$2; shift 2 ;;
        --policy) policy=$2; shift 2 ;;
        --json) json=$2; shift 2 ;;
        *) bad_usage "'$1' is no option" ;;
    esac
done
[[ $n =~ ^[0-9]{1,3}$ ]] && ((10#$n >= 4)) || bad_usage "--hosts '$n': give 4 or more"
[[ $size =~ ^[0-9]{1,9}[KMG]?$ ]] || bad_usage "--size '$size': give bytes, with K, M or G"
[[ $share =~ ^[0-9]{1,2}$ ]] && ((10#$share >= 1)) || bad_usage "--share '$share': give a percentage from 1 to 99"
for kind in ${slow//,/ }; do [[ $kind =~ ^(stop|link)$ ]] || bad_usage "--slow '$kind': give stop or link"; done
can_cluster || finish
use_build
program=$BUILD/fabtests/cluster/mpi_slow
[ -x "$program" ] || { echo "$ME: no $program: run util/build" >&2; exit 2; }
# Datagrams are lost only if a receiver has no room, and then in runs, as on a real network card.
GSO=on start_cluster "$n"
[ -z "$policy" ] || export FI_MCASTCOLL_EXPERIMENT=repair=$policy

one() { # one NAME [OPTION...]
    local name=$1 code=0
    shift
    STACK=mcastcoll FI_MCASTCOLL_STATS=$work/$name.stats bounded 420 "$LAB/run" --mca coll_mcastcoll_enable bcast \
        "$program" --size "$size" --json "$work/$name.json" "$@" >"$work/$name.log" 2>&1 || code=$?
    [ $code != 77 ] || { skip "no threads in this Open MPI"; finish; }
    if [ $code = 0 ]; then
        pass "$name: every byte right"
    else
        tail -n 20 "$work/$name.log" | sed 's/^/     /'
        fail "$name: code $code$([ $code != 124 ] || echo ' (hung)')"
    fi
}
one quick
for kind in ${slow//,/ }; do
    case $kind in
        stop) one stop --slow $((n - 1)) --share "$share" ;;
        link)
            rate=$(python3 -c 'import json, sys; r = json.load(open(sys.argv[1])); print(int(r["bytes"] * 8 / r["seconds"] / 10))' "$work/quick.json")
            tc -n "$VC-sw0" qdisc add dev "h$((n - 1))" root tbf rate "${rate}bit" burst 64kb limit 1mb
            one link
            tc -n "$VC-sw0" qdisc del dev "h$((n - 1))" root
            ;;
    esac
done
[ "$failed" = 0 ] || finish
code=0
python3 - "$work" "$n" "$(nproc)" "$slow" "${json:-/dev/null}" <<'END' || code=$?
import glob, json, sys
work, hosts, cores, slow, out = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], sys.argv[5]
print(f"{hosts} hosts of one rank each on {cores} cores; small broadcasts: median / p99 in us; repaired: of the last host's fragments")
print(f"{'':<6} {'seconds':>8} {'MB/s':>7} {'small alone':>16} {'small beside':>16} {'count':>6} {'repaired':>9}"
      f" {'sent':>9} {'socket drops':>13}")
rows = []
for name in ["quick"] + slow.split(","):
    run = json.load(open(f"{work}/{name}.json"))
    stats = {p.split(".")[-3]: json.load(open(p)) for p in glob.glob(f"{work}/{name}.stats.*.json")}
    # Only the last host receives nothing but the large broadcast.
    last = stats[f"h{hosts - 1}"]
    repaired = 100 * last["fragments_repaired"] / (last["fragments_repaired"] + last["fragments_by_multicast"])
    total = {k: sum(s[k] for s in stats.values()) for k in ("datagrams_sent", "socket_drops", "messages_sent", "duplicates")}
    row = {"name": name, **run, "repaired_percent": repaired, **total}
    rows.append(row)
    both = [f"{run[k]['median_us']:.0f} / {run[k]['p99_us']:.0f}" for k in ("alone", "beside")]
    print(f"{name:<6} {run['seconds']:>8.2f} {run['bytes'] / 1e6 / run['seconds']:>7.1f} {both[0]:>16} {both[1]:>16} {run['beside']['count']:>6}"
          f" {row['repaired_percent']:>8.1f}% {total['datagrams_sent']:>9} {total['socket_drops']:>13}")
json.dump({"hosts": hosts, "cores": cores, "rows": rows}, open(out, "w"), indent=1)
# If the large broadcast delayed the small ones, these would run between its segments at most.
sys.exit(0 if all(row["beside"]["count"] >= 20 for row in rows) else 3)
END
case $code in
    0) pass "small broadcasts went on beside it" ;;
    3) fail "hardly any small broadcast got through beside it" ;;
    *) fail "the results could not be read" ;;
esac
finish
