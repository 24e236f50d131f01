#!/bin/bash
# The command line of mcastcoll-sim is a contract: what the JSON holds, that a seed gives the same run, what bad input is told.
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

# What travels farther takes longer; what is far too late is told.
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
refused --nothing --nothing
[ "$failures" -eq 0 ] && echo "ok   the command line"
