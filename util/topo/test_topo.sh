#!/bin/bash
# mcastcoll-topo: trees of described groups, messages about bad input, and the reports of running processes.
set -u
shopt -s lastpipe  # so that the end of a pipeline can count failures
topo=util/topo/mcastcoll-topo
reporter=util/topo/reporter
failures=0
fail() { echo "FAIL $*"; failures=$((failures + 1)); }
unset FI_MCASTCOLL_TOPOLOGY
scratch=$(mktemp -d)
pids=() p=
trap 'for p in "${pids[@]}"; do kill "$p" 2>/dev/null; done; rm -rf "$scratch"' EXIT

check() { # check WHAT PYTHON: evaluates assertions on the JSON object `o` read from standard input
    python3 -c "import json, sys
o = json.load(sys.stdin)
$2" || fail "$1"
}

# This host.
"$topo" | grep -q '^this process ' || fail "says nothing of this process"
"$topo" --json --address 127.0.0.1 | check "this host" 'assert o["place"]["site"]["name"] == "127.0.0.0/8", o
assert "host" in o["place"] and isinstance(o["notes"], list), o'

# The table of algorithms: the output can be read again.
printf 'allgather * * -4K messages # mine\nallreduce 2-8 * 1M- split:2\n' >"$scratch/selection"
FI_MCASTCOLL_SELECTION=$scratch/selection "$topo" --selection >"$scratch/printed" || fail "cannot print the table of algorithms"
grep -q "selection line 2\$" "$scratch/printed" || fail "a row of the file has no reason"
FI_MCASTCOLL_SELECTION=$scratch/printed "$topo" --selection --json | check "the table of algorithms" '
rows = o["rows"]
assert (rows[0]["operation"], rows[0]["bytes"], rows[0]["algorithm"]) == ("allgather", [0, 4096], "messages"), rows
assert rows[1]["members"] == [2, 8] and rows[1]["algorithm"] == "split:2", rows
assert all(r["why"] for r in rows) and rows[-1]["why"].startswith("built in: "), rows'
echo 'allgather * * * ring' >"$scratch/selection"
FI_MCASTCOLL_SELECTION=$scratch/selection "$topo" --selection 2>&1 | grep -q 'line 1: algorithm .ring. of allgather may be ' ||
    fail "a bad row is not refused"

# A described group.
cat >"$scratch/members" <<'END'
2* site=A host=a core=0   # two on one core
   site=A host=b
3* site=B host=c
END
"$topo" --members "$scratch/members" --root 4 --json --svg "$scratch/tree.svg" | check "members" '
assert o["members"] == 6 and o["root"] == 4
tree = o["tree"]
assert [n["rank"] for n in tree] == list(range(6))
assert tree[4]["parent"] is None and tree[0]["parent"] == 4 and tree[0]["level"] == "wan", tree
assert (tree[1]["parent"], tree[2]["parent"], tree[3]["parent"], tree[5]["parent"]) == (0, 0, 4, 4), tree
assert tree[4]["children"] == [0, 3, 5], tree
assert {l["level"]: l["connects"] for l in o["levels"]}["site"] is False
assert all(l["why"] for l in o["levels"])'
python3 - "$scratch/tree.svg" <<'END' || fail "the picture"
import sys, xml.etree.ElementTree as tree
names = [e.tag.split("}")[1] for e in tree.parse(sys.argv[1]).iter()]
assert names.count("circle") == 6 and names.count("line") >= 5, names
END
"$topo" --members "$scratch/members" --topology flat | grep -q '^  1-5 by segment' || fail "flat is not flat"
FI_MCASTCOLL_TOPOLOGY=-site,chain@segment "$topo" --members "$scratch/members" --json | check "the variable" '
assert o["tree"][3]["parent"] == 2 and o["tree"][2]["parent"] == 0, o["tree"]'
printf 'site A 10.0.0.0/8\nlevel host off\n' >"$scratch/words"
"$topo" --members "$scratch/members" --topology "file:$scratch/words" | grep -q 'left out by the policy' || fail "the file of words"

# In a segment the first rank of the root's host sends; between sites the other sites follow the root in their
# order.
"$topo" --members "$scratch/members" --root 1 --json | check "a root that leads no host" '
assert [n["parent"] for n in o["tree"]] == [1, None, 0, 1, 3, 3], o["tree"]'
"$topo" --hosts A:1,B:1,C:1 --root 1 --topology chain@wan --json | check "a chain of sites" '
assert [n["parent"] for n in o["tree"]] == [1, None, 0], o["tree"]'

# Synthetic machines.
if "$topo" --json | grep -q '"processors"'; then
    "$topo" --synthetic 'package:2 l3:2 core:4 pu:2' --hosts A:2,B:1 --json | check "made-up machines" '
assert o["members"] == 48
assert sum(n.get("level") == "wan" for n in o["tree"]) == 1
assert sum(n.get("level") == "segment" for n in o["tree"]) == 1
assert sum(n.get("level") == "host" for n in o["tree"]) == 45
assert [l["level"] for l in o["levels"] if "only barriers" in l["why"]] == ["package", "l3"], o["levels"]'
    "$topo" --synthetic 'core:4 pu:1' --hosts 3 --order cyclic --json | check "cyclic" '
assert [n["rank"] for n in o["tree"] if n.get("level") == "segment"] == [1, 2], o["tree"]'
fi
"$topo" --hosts 100 --json | check "one rank per host" 'assert len(o["tree"][0]["children"]) == 99'

refused() { # refused TEXT OPTION...: exit code 2 and a message with this text
    local text=$1 said code=0
    shift
    said=$("$topo" "$@" 2>&1) || code=$?
    [ $code = 2 ] || fail "$*: code $code"
    case $said in *"$text"*) ;; *) fail "$*: says '$said', not '$text'" ;; esac
}
refused '"hots" is not known' --topology hots
refused 'allowed are chain, K-ary (K from 2 to 8), multicast' --topology binomial@segment
refused 'allowed are shm' --topology chain@package
refused 'words line 1, character 7' --topology "$(printf 'level x off\n' >"$scratch/words" && echo "$scratch/words")"
refused 'allowed are 0 to 5' --members "$scratch/members" --root 6
refused 'SITE:HOSTS' --hosts A:0
refused --bind --synthetic core:2 --bind thread
refused 'does not understand the machine' --synthetic nonsense:3
refused 'exclude each other' --job --members "$scratch/members"
refused 'belong to --job' --pid 3
refused 'belong to --job' --watch
refused 'belong to --job' --prometheus
refused 'belong to --watch' --job --every 2
refused 'belong to --watch' --job --html "$scratch/page"
refused 'without --watch' --job --watch --prometheus
refused --every --job --watch --every 0.1
refused 'is not an IPv4' --address nowhere
printf 'site=A\nrack=3\n' >"$scratch/bad"
refused 'bad line 2' --members "$scratch/bad"

# Running processes. A killed process leaves its report; the next reader removes the report.
jobs=$scratch/jobs
report() { # report RANK [fork]: starts a reporter that runs until its pipe is closed
    mkfifo "$scratch/in$1"
    "$reporter" "$jobs" "$@" <"$scratch/in$1" >"$scratch/out$1" &
    pids+=($!)
}
report 0 fork && exec 8>"$scratch/in0"
report 1 && exec 9>"$scratch/in1"
for rank in 0 1; do
    for _ in $(seq 1200); do [ -s "$scratch/out$rank" ] && break; sleep 0.05; done
    [ -f "$(cat "$scratch/out$rank")" ] || fail "rank $rank does not report"
done
[ "$(stat -c %a "$jobs")" = 700 ] || fail "the folder is open to others"
[ "$(stat -c %a "$(cat "$scratch/out0")")" = 600 ] || fail "the report is open to others"
"$topo" --job --folder "$jobs" --json | check "a job" '
assert len(o["groups"]) == 1 and len(o["processes"]) == 2, o
g = o["groups"][0]
assert g["key"] == "000000001234abcd" and g["reporting"] == [0, 1] and g["members"] == 4, g
assert [n.get("level") for n in g["tree"]] == [None, "host", "segment", "host"], g["tree"]
assert {l["level"]: l["why"] for l in g["levels"]}["segment"] == "no member receives the multicast"'
"$topo" --job --folder "$jobs" | grep -q 'operations=17' || fail "no counters"
"$topo" --job --folder "$jobs" --pid "${pids[1]}" --json | check "one process" 'assert o["groups"][0]["reporting"] == [1], o'
"$topo" --job --folder "$jobs" --prometheus >"$scratch/metrics"
grep -q '^# TYPE mcastcoll_group_operations_total counter$' "$scratch/metrics" || fail "metrics without their types"
grep -q '^mcastcoll_group_operations_total{host="[^"]*",pid="'"${pids[0]}"'",program="reporter",group="000000001234abcd",rank="0"} 17$' \
    "$scratch/metrics" || fail "metrics: $(cat "$scratch/metrics")"
# Between two samples rank 0 is active, and rank 1 is idle.
"$topo" --job --folder "$jobs" --watch --every 0.5 --times 2 --json --html "$scratch/page.html" >"$scratch/watched" &
watcher=$!
for _ in $(seq 1200); do [ -s "$scratch/watched" ] && break; sleep 0.05; done
echo >&8
wait $watcher || fail "--watch: code $?"
[ "$(stat -c %a "$jobs/watched")" = 600 ] || fail "the job is not informed of the watcher"
tail -n 1 "$scratch/watched" | check "what a job does" '
g, = o["groups"]
assert g["operations"] > 0 and g["reporting"] == [0, 1] and g["transport"] == "messages" and g["state"] == "ready", g'
head -n 1 "$scratch/watched" | check "what a job did not do" 'assert o["groups"][0]["operations"] == 0, o'
grep -q '<svg' "$scratch/page.html" && grep -q 'reporter: 4 members, ready' "$scratch/page.html" || fail "the page"
timeout 60 "$topo" --job --folder "$jobs" --watch --every 0.5 --times 1 | grep -q 'reporter .* 0-1 ' || fail "the table"
echo '{"version":1,"pid":[' >"$jobs/$$.0.$(stat -L -c %i /proc/self/ns/pid).7.json"
"$topo" --job --folder "$jobs" 2>&1 | grep -q '7.json: ' || fail "a spoilt report goes unnoticed"
exec 9>&-
wait "${pids[1]}"
[ -e "$(cat "$scratch/out1")" ] && fail "a report outlives its process"
kill -9 "${pids[0]}"
wait "${pids[0]}" 2>/dev/null
[ -e "$(cat "$scratch/out0")" ] || fail "a killed process took its report along: nothing is tested here"
"$topo" --job --folder "$jobs" 2>/dev/null | grep -q 'no process of this user' || fail "a dead process reports"
[ -e "$(cat "$scratch/out0")" ] && fail "a dead process's report stays"
chmod 755 "$jobs"
"$topo" --job --folder "$jobs" 2>&1 | grep -q 'open to other users' || fail "an open folder is trusted"
"$reporter" "$jobs" 0 </dev/null >/dev/null 2>&1 && fail "a report goes into an open folder"
[ "$failures" -eq 0 ] && echo "ok   mcastcoll-topo"
