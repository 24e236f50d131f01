#!/bin/bash
# reliable.sh [--hosts N] [--rounds N] [--rate RATE] [--loss PCT,..] [--sizes BYTES,..] [--kinds KIND,..] [--faults
# COUNT] [--json FILE]
#
# Reliable multicast messages from h0 to the N - 1 other hosts (default 9) of a cluster, in turns with a TCP connection
# to each: `tcp` writes every message to every connection, `tcp-batch` 64 KiB of messages at a time.  Every subscriber
# checks every byte. Prints messages per second, MB per second to each subscriber, and processor time of all together;
# medians over the rounds.
#   --rate RATE      limit of each host's sending rate, like 1gbit
#   --loss 0,5       percentages of multicast datagrams lost at each receiver (TCP is not affected)
#   --sizes 64,65536    bytes of a message; 0 is mixed, mostly small
#   --faults COUNT   instead: COUNT mixed messages at the first loss, a subscriber that stalls, one that is killed, one that joins late;
#                    the others may lose or duplicate nothing, and memory may not grow.  --faults 1000000 is the acceptance run
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "$0")/common.sh"
n=9 rounds=3 rate='' loss=0,5 sizes=64,1024,65536 kinds=multicast,tcp,tcp-batch faults='' json=''
while [ $# -gt 0 ]; do
    case $1 in
        --help | -h) usage; exit 0 ;;
        --version) version; exit 0 ;;
        --hosts | --rounds | --rate | --loss | --sizes | --kinds | --faults | --json) [ $# -ge 2 ] || bad_usage "'$1' needs a value" ;;&
        --hosts) n=$2; shift 2 ;;
        --rounds) rounds=$2; shift 2 ;;
        --rate) rate=$2; shift 2 ;;
        --loss) loss=$2; shift 2 ;;
        --sizes) sizes=$2; shift 2 ;;
        --kinds) kinds=$2; shift 2 ;;
        --faults) faults=$2; shift 2 ;;
        --json) json=$2; shift 2 ;;
        *) bad_usage "'$1' is no option" ;;
    esac
done
[[ $n =~ ^[1-9][0-9]?$ ]] || bad_usage "--hosts '$n': give a number"
((n >= 5)) || bad_usage "--hosts '$n': give 5 or more"
[[ $rounds =~ ^[1-9][0-9]?$ ]] || bad_usage "--rounds '$rounds': give a number"
[[ $faults =~ ^[0-9]*$ ]] || bad_usage "--faults '$faults': give a number of messages"
can_cluster || finish
use_build
program=$BUILD/fabtests/cluster/fanout
[ -x "$program" ] || { echo "$ME: no $program: run util/build" >&2; exit 2; }
[ -z "$rate" ] || export RATE=$rate
start_cluster "$n"
export FI_PROVIDER=mcastcoll FI_MCASTCOLL_IFACE=eth0
address=$(awk '$2 == "h0" {print $1}' "/run/mcastcoll/$VC/hosts")

one() { # one NAME OPTION...: the program's line in $work/results
    local name=$1 code=0
    shift
    bounded 540 "$program" --cluster "$VC" --address "$address" --subscribers $((n - 1)) --timeout 500 "$@" \
        >"$work/out" 2>"$work/errors" || code=$?
    if [ $code = 0 ]; then
        python3 -c 'import json, sys; print(json.dumps({"loss": float(sys.argv[1])} | json.load(sys.stdin)))' "$percent" <"$work/out" >>"$work/results"
    else
        tail -n 20 "$work/errors" | sed 's/^/     /'
        fail "$name: code $code$([ $code != 124 ] || echo ' (hung)')"
    fi
}

if [ -n "$faults" ]; then
    percent=${loss%%,*}
    "$LAB/loss" "$percent"
    # The stalled and the killed subscriber are waited for as long as this, and no other may be so late on a busy
    # machine.
    FI_MCASTCOLL_EXPERIMENT=peer_timeout=8000 one "faulty subscribers" --faults --count "$faults" --size 0
    [ "$failed" = 0 ] || finish
    say "dropped $(counted dropped) of $(counted matched) datagrams"
    code=0
    python3 - "$work/results" <<'END' || code=$?
import json, sys
run = json.loads(open(sys.argv[1]).readline())
print(f"{run['count']} messages in {run['seconds']:.1f} s with {run['loss']:g} % lost: {run['per_second']:.0f} a second")
print("resident memory in KiB after each tenth of the messages:")
worst = 0
for rank, row in enumerate(run["resident_kib"]):
    seen = [kib for kib in row if kib]
    print(f"{'publisher' if rank == 0 else 'subscriber ' + str(rank):<14}" + "".join(f"{kib:>8}" for kib in row))
    if len(seen) >= 4: worst = max(worst, seen[-1] - seen[1])
print(f"largest growth of a member after the first tenths: {worst} KiB")
# A window of packets is 3 MB; a member that begins to lose packets later touches its own window only then.
sys.exit(worst > 6144)
END
    if [ $code = 0 ]; then pass "nothing lost or doubled; memory stays"; else fail "memory grows"; fi
    finish
fi

for percent in ${loss//,/ }; do
    "$LAB/loss" "$percent"
    for ((round = 0; round < rounds; round++)); do
        for size in ${sizes//,/ }; do
            for kind in ${kinds//,/ }; do
                count=$((size > 8192 ? 3000 : 50000))
                [ "$kind" != tcp ] || count=$((count > 20000 ? 20000 : count))
                one "$kind, $size bytes, $percent % lost" --kind "$kind" --size "$size" --count "$count"
            done
        done
    done
done
[ "$failed" = 0 ] || finish
python3 - "$work/results" "${json:-/dev/null}" "$n" "$(nproc)" "${rate:-no limit}" <<'END'
import json, statistics, sys
path, out, hosts, cores, rate = sys.argv[1:]
rows = {}
for line in open(path):
    run = json.loads(line)
    rows.setdefault((run["loss"], run["size"], run["kind"]), []).append(run)
print(f"{int(hosts) - 1} subscribers on {cores} cores, links: {rate}; medians of {max(map(len, rows.values()))} turns")
print(f"{'loss':>6} {'bytes':>7} {'kind':<10} {'messages/s':>12} {'MB/s':>8} {'CPU us/message':>15}")
table = []
for (loss, size, kind), runs in rows.items():
    median = lambda name: statistics.median(run[name] for run in runs)
    cpu = statistics.median(run["cpu_seconds"] / run["count"] * 1e6 for run in runs)
    table.append({"loss": loss, "size": size, "kind": kind, "per_second": median("per_second"), "mb_per_second": median("mb_per_second"), "cpu_us": cpu})
    print(f"{loss:>5g}% {size:>7} {kind:<10} {median('per_second'):>12.0f} {median('mb_per_second'):>8.1f} {cpu:>15.2f}")
json.dump({"hosts": int(hosts), "cores": int(cores), "rate": rate, "rows": table}, open(out, "w"), indent=1)
END
pass "every byte right"
finish
