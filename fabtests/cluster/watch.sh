#!/bin/bash
# watch.sh [--hosts N] -- mcastcoll-topo --job over N hosts (4): shows a job that loses datagrams, seen from one host,
# and a lost host.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "$0")/common.sh"
hosts=4
while [ $# -gt 0 ]; do
    case $1 in
        --help | -h) usage; exit 0 ;;
        --version) version; exit 0 ;;
        --hosts) [ $# -ge 2 ] || bad_usage "'$1' needs a value"; hosts=$2; shift 2 ;;
        *) bad_usage "'$1' is no option" ;;
    esac
done
[[ $hosts =~ ^[0-9]+$ ]] && ((hosts >= 3 && hosts <= 32)) || bad_usage "'--hosts $hosts': give 3 to 32"
can_cluster || finish
use_build
start_cluster "$hosts"
all=$(seq -f 'h%g' -s, 0 $((hosts - 1)))
topo=$BUILD/util/topo/mcastcoll-topo
over_ssh=(--hosts "$all" --rsh "$LAB/rsh")
"$LAB/loss" 5 >/dev/null

"$LAB/on" h0 "$topo" --job "${over_ssh[@]}" >"$work/idle" 2>&1 &&
    grep -q '^no process of this user reports a group' "$work/idle" && pass "no job: nothing is shown" || { cat "$work/idle"; fail "no job"; }

# The job ends by itself, long after the test.
STACK=mcastcoll timeout -k 10 300 "$LAB/run" --mca pml ob1 --mca coll_mcastcoll_form_after 0 "$BUILD/fabtests/mpi/mpi_bcast_check" \
    --count 1000000 --cycles 0 --max 64K >"$work/job" 2>&1 &
job=$!
for _ in $(seq 300); do
    "$LAB/on" h0 "$topo" --job --json >"$work/seen" 2>/dev/null && grep -q '"state": "ready"' "$work/seen" && break
    sleep 0.1
done

shows_all() { # shows_all FILE: its last line shows a group working on all hosts, and losses
    tail -n 1 "$1" | python3 -c '
import json, sys
groups = json.load(sys.stdin)["groups"]
wanted = sys.argv[1].split(",")
assert sorted(g["host"] for g in groups) == sorted(wanted), groups
assert len({g["key"] for g in groups}) == 1 and sorted(r for g in groups for r in g["reporting"]) == list(range(len(wanted))), groups
assert all(g["operations"] > 0 and g["bytes"] > 0 and g["transport"] == "multicast" for g in groups), groups
assert any(0 < g["loss"] < 0.5 for g in groups), groups' "$all"
}
judge() { # judge WHAT FILE CODE
    if [ "$3" = 0 ] && shows_all "$2"; then pass "$1"; else tail -n 3 "$2"; fail "$1: code $3"; fi
}
code=0
bounded 60 "$LAB/on" h0 "$topo" --job --watch --times 3 --json --html "$work/page.html" "${over_ssh[@]}" >"$work/ssh" 2>"$work/errors" || code=$?
judge "all hosts are watched from one" "$work/ssh" $code
if [ "$(grep -c '<path class="line"' "$work/page.html")" = $((3 * hosts)) ]; then
    pass "the page has a line for each host in each chart"
else
    fail "the page has $(grep -c '<path class="line"' "$work/page.html") lines"
fi
code=0
STACK=none bounded 60 "$LAB/run" "$topo" --job --watch --times 2 --json >"$work/mpirun" 2>"$work/errors" || code=$?
judge "the same under mpirun" "$work/mpirun" $code
"$LAB/on" h0 "$topo" --job --prometheus "${over_ssh[@]}" >"$work/metrics" 2>"$work/errors" || true
if [ "$(grep -c '^mcastcoll_group_operations_total' "$work/metrics")" = "$hosts" ]; then
    pass "counters of all hosts for Prometheus"
else
    head -n 3 "$work/metrics" "$work/errors" && fail "counters of all hosts for Prometheus"
fi
code=0
bounded 60 "$LAB/on" h0 "$topo" --job --watch --times 1 --json --hosts "$all,nowhere" --rsh "$LAB/rsh" >"$work/missing" 2>"$work/errors" || code=$?
if [ $code = 0 ] && grep -q nowhere "$work/errors" && shows_all "$work/missing"; then
    pass "a host that cannot be reached is named, the others are shown"
else
    tail -n 3 "$work/missing" "$work/errors" && fail "a host that cannot be reached: code $code"
fi
finish
