#!/bin/bash
# The command line of mcastcoll-sim is a contract: the contents of the JSON, equal runs for equal seeds, messages about bad
# input.
set -u
sim=util/sim/mcastcoll-sim
failures=0
fail() { echo "FAIL $*"; failures=$((failures + 1)); }

keys='ranks size loss policy median_ns p99_ns last_median_ns rtt_ns spread messages_per_op datagrams_per_op peak_bytes_per_member failures'
for policy in pull push binomial; do
    options=(--ranks 12 --size 5000 --loss 2 --policy $policy --ops 20 --seed 7 --json)
    json=$("$sim" "${options[@]}") || fail "$policy: code $?"
    [ "$("$sim" "${options[@]}")" = "$json" ] || fail "$policy: the same seed gave another run"
    printf '%s' "$json" | python3 -c 'import json, sys
o = json.load(sys.stdin)
for key in sys.argv[1].split():
    assert key in o, key
assert (o["ranks"], o["size"], o["loss"], o["failures"]) == (12, 5000, 2, 0), o
assert 0 < o["median_ns"] <= o["p99_ns"] and 0 < o["last_median_ns"] <= o["p99_ns"] and o["rtt_ns"] > 0, o
assert o["messages_per_op"] > 0 and (o["policy"] == "binomial" or o["datagrams_per_op"] >= 4), o' "$keys" || fail "$policy: $json"
done
[ "$("$sim" --ranks 12 --loss 5 --seed 1 --json)" != "$("$sim" --ranks 12 --loss 5 --seed 2 --json)" ] ||
    fail "the seed makes no difference"

# A whole group: the cost of its join, and of each collective; the same seed gives the same run.
options=(--hosts 4 --per-host 3 --collectives 'allreduce,broadcast' --ops 5 --size 3000 --loss 2 --seed 7 --json)
json=$("$sim" "${options[@]}") || fail "a group: code $?"
[ "$("$sim" "${options[@]}")" = "$json" ] || fail "a group: the same seed gave another run"
printf '%s' "$json" | python3 -c 'import json, sys
o = json.load(sys.stdin)
assert (o["hosts"], o["per_host"], o["size"], o["loss"], o["failures"]) == (4, 3, 3000, 2, 0), o
for what in "messages datagrams bytes_sent bytes_received".split():
    one, most, mean = (o["join_%s_%s" % (what, of)] for of in ("rank0", "most", "mean"))
    assert one > 0 and most > 0 and 0 < mean <= max(one, most), (what, o)
assert o["peak_bytes_rank0"] > 10000 and 1000 < o["peak_bytes_mean"], o
for kind in "allreduce broadcast".split():
    assert 0 < o[kind + "_median_ns"] <= o[kind + "_last_median_ns"] < o["join_ns"], o
assert o["leave_ns"] >= 0 and o["events"] > 0, o' || fail "a group: $json"

# A rank fails during the third operation: all survivors are notified, and earlier operations have times.
json=$("$sim" --hosts 4 --per-host 3 --collectives 'broadcast,allreduce' --ops 2 --kill 7:2 --json) || fail "a death: code $?"
printf '%s' "$json" | python3 -c 'import json, sys
o = json.load(sys.stdin)
assert (o["killed_rank"], o["killed_in_operation"], o["failures"]) == (7, 2, 0) and 0 < o["known_ns"] < 1e9, o
assert o["broadcast_median_ns"] > 0 and "allreduce_median_ns" not in o, o' || fail "a death: $json"
"$sim" --hosts 2 --per-host 2 --root 0 --ops 3 --kill 3 >/dev/null 2>&1 && fail "a death that no member needs to notice passes"

# A higher latency gives a longer time; a far too long latency is reported.
a=$("$sim" --ranks 4 --latency 10us --json | sed 's/.*"median_ns":\([0-9]*\).*/\1/')
b=$("$sim" --ranks 4 --latency 90us --json | sed 's/.*"median_ns":\([0-9]*\).*/\1/')
[ "$((b - a))" = 80000 ] || fail "80 us more of latency gave $((b - a)) ns"

refused() { # refused TEXT OPTION...: exit code 2 and a message with this text
    local text=$1 said code=0
    shift
    said=$("$sim" "$@" 2>&1) || code=$?
    [ $code = 2 ] || fail "$*: code $code"
    case $said in *"$text"*) ;; *) fail "$*: says '$said', not '$text'" ;; esac
}
refused --ranks --ranks 1
refused --loss --loss 101
refused --policy --policy best
refused binomial --policy best
refused --size --size 5000X
refused --root --ranks 4 --root 4
refused rotate --root last
refused one-late --arrival never
refused adaptive --root-sync maybe
refused backpressure --faults rain=1
refused HOST:FACTOR --faults slow=3
refused --latency --latency 5
refused --slots --slots 9
refused 1024 --hosts 2 --per-host 1025
refused '1 to 16' --hosts 65536 --per-host 17
refused reduce_scatter --hosts 2 --collectives broadcast,multicast
refused 'only with --hosts' --per-host 2
refused 'only with --hosts' --collectives barrier
refused 'only with --hosts' --kill 1
refused 'a rank below 4' --hosts 2 --per-host 2 --kill 4
refused 'before the last of 3' --hosts 2 --ops 3 --kill 0:2
refused '--largest' --figure growth --largest 70000
refused 'not allowed with --hosts' --hosts 2 --ranks 2
refused 'push, pull, sync, auto' --hosts 2 --policy binomial
refused 'allowed are 0 to 5' --hosts 2 --per-host 3 --root 6
refused --nothing --nothing
[ "$failures" -eq 0 ] && echo "ok   the command line"
