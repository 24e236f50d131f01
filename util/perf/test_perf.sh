#!/bin/bash
# test_perf.sh -- mcastcoll-perf and mcastcoll-tune: arguments, a small run at the fabric level, tables from measurements.
set -u
cd "$(dirname "$0")" || exit 1
perf=./mcastcoll-perf.py failed=0
export MCASTCOLL_BUILD=${MCASTCOLL_BUILD:-$OLDPWD}
work=$(mktemp -d)
export VC=tp$$
trap 'rm -rf "$work"' EXIT
check() { # check TEXT COMMAND...: prints the command's output on failure
    local text=$1
    shift
    if "$@" >"$work/said" 2>&1; then
        echo "ok   $text"
    else
        echo "FAIL $text: exit code $?" && failed=1
        tail -n 60 "$work/said" | sed 's/^/     /'
    fi
}
refuses() { # refuses WANTED ARGUMENT...: exit code 2 and a message with WANTED in it
    local wanted=$1 said
    shift
    said=$("$@" 2>&1)
    if [ $? = 2 ] && grep -qF -- "$wanted" <<<"$said"; then
        echo "ok   refuses ${*:2}"
    else
        echo "FAIL refuses ${*:2}, with '$wanted': $said" && failed=1
    fi
}
refuses "give 'all' or some of bcast" $perf --operation nonsense
refuses "bytes up to 1G" $perf --sizes 8,x
refuses "bytes up to 1G" $perf --sizes 2G
refuses "give multiples of 8" $perf --operation allreduce --sizes 12
refuses "give a number from 2 to 63" $perf --ranks 1
refuses "give some of mcastcoll" $perf --stacks unknown
refuses "is not a launcher: give openmpi" $perf --stack 'x=slurm a'
refuses "this host" $perf --level fabric --hosts 2
refuses "give some of allgather, allreduce" ./mcastcoll-tune.py --table provider --out "$work/x" --operation barrier
refuses "no folder for" ./mcastcoll-tune.py --table provider --out /nowhere/x

# A busy machine may suspend a rank for seconds: limits are only against hangs, and a stack that is a hundred times slower in its
# first repetition rightly gets no second repetition.
fabric() {
    timeout 900 "$perf" --level fabric --timeout 300 --members 3 --operation broadcast,barrier,allreduce --sizes 8,4K --rounds 2 --seconds 0.05 \
        --stacks fi-hosts,fi-blocking --csv "$work/a.csv" --json "$work/a.json" || return
    python3 - "$work" <<'END'
import csv, json, sys
table, rows = json.load(open(sys.argv[1] + "/a.json")), list(csv.DictReader(open(sys.argv[1] + "/a.csv")))
assert len(table["rows"]) == len(rows) == 2 * (2 + 1 + 2), len(rows)
for row in table["rows"]:
    assert row["error"] is None and row["bad"] == 0, row
    first = row["stack"] == "fi-hosts"
    other = next(r for r in table["rows"] if (r["operation"], r["bytes"], r["stack"]) == (row["operation"], row["bytes"], "fi-hosts"))
    lost = not first and row["rounds_us"][0] > 100 * other["rounds_us"][0]
    assert len(row["rounds_us"]) == 2 or (lost and len(row["rounds_us"]) == 1), row
    assert row["samples"] >= 3 * len(row["rounds_us"]), row
    assert row["last_min_us"] <= row["last_median_us"] <= row["last_p99_us"], row
    assert ("ratio" in row) != first, row
END
}
check "a run at the fabric level" fabric

# The floor beside a stack, over shared memory. Operations without a floor are reported, without a failure.
floor_here() {
    timeout 900 "$perf" --timeout 300 --ranks 3 --stacks ompi-tuned,floor --operation bcast,barrier,allreduce,gather --sizes 8,64K --rounds 2 \
        --seconds 0.05 --fail-above 1.1 --json "$work/f.json" --markdown "$work/f.md" || return
    python3 - "$work" <<'END'
import json, sys
rows = [row for row in json.load(open(sys.argv[1] + "/f.json"))["rows"] if row["stack"] == "floor"]
has = {("bcast", 8), ("bcast", 65536), ("barrier", 0), ("allreduce", 8)}
assert len(rows) == 7, rows
for row in rows:
    if (row["operation"], row["bytes"]) not in has:
        assert "does not have it" in row["error"] and "median_us" not in row, row
        continue
    assert row["error"] is None and row["bad"] == row["lost"] == row["lost_datagrams"] == 0 and row["samples"] > 0, row
    assert row["last_min_us"] <= row["last_median_us"] <= row["last_p99_us"] and row["max_median_us"] > 0, row
    assert "ratio" in row and "least_ratio" not in row, row  # the floor is excluded from --fail-above
lines = open(sys.argv[1] + "/f.md").read().splitlines()[2:]
assert len(lines) == 7 and all(line.endswith("|  |") for line in lines), lines
END
}
# Between hosts that lose datagrams: rounds with losses are excluded, and counted. Some short rounds lose a
# datagram, so a few rounds show both cases; every long round does, since runs of datagrams are lost as a whole.
floor_loses_once() {
    timeout 300 "$perf" --timeout 300 --hosts 3 --loss 20 --stacks floor --operation bcast,barrier --sizes 8,4M --rounds 3 --seconds 1 \
        --json "$work/l.json" || return
    python3 - "$work" <<'END'
import json, sys
short, long, barrier = json.load(open(sys.argv[1] + "/l.json"))["rows"]
assert short["bad"] == barrier["bad"] == 0 and short["samples"] > 0, (short, barrier)
assert short["lost"] > 0 and short["lost_datagrams"] >= short["lost"], short
assert "every round lost" in long["error"] and "median_us" not in long, long
END
}
# By chance all rounds of a short operation may lose datagrams.
floor_loses() {
    for _ in 1 2 3; do floor_loses_once && return; done
    return 1
}
# Spare datagrams are sent without other effects; the maximum is reported.
floor_spares() {
    local row='spare=floor --mca pml ob1 --mca coll ^mcastcoll,han,sm MCASTCOLL_PERF_SPARE='
    timeout 300 "$perf" --hosts 3 --stack "${row}100" --stacks floor,spare --operation bcast --sizes 8 --rounds 2 --seconds 0.1 --json "$work/s.json" || return
    python3 - "$work" <<'END' || return
import json, sys
bare, spare = json.load(open(sys.argv[1] + "/s.json"))["rows"]
assert bare["bad"] == spare["bad"] == 0 and bare["samples"] > 0 and spare["samples"] > 0, (bare, spare)
assert spare["sent_most_bytes"] - bare["sent_most_bytes"] > 100 * 50, (bare, spare)  # of the root: each has 62 bytes
END
    ! timeout 300 "$perf" --hosts 3 --stack "${row}101" --stacks spare --operation bcast --sizes 8 --rounds 2 --seconds 0.1 >"$work/s.log" 2>&1 || return
    grep -q "MCASTCOLL_PERF_SPARE must be 0 to 100" "$work/s.log"
}
if [ -x "$MCASTCOLL_BUILD/util/perf/mcastcoll-perf-mpi" ]; then
    check "the floor on one host" floor_here
    if ../cluster/up 1 >/dev/null 2>&1 && ../cluster/down; then
        check "the floor between hosts that lose" floor_loses
        check "the floor with spare datagrams" floor_spares
    fi
fi

rows() {
    python3 - <<'END'
from perf_selection import choices, table_text
times = {(4, 4, "allgather", 8): {"messages": 9.0, "reduction": 5.0}, (4, 4, "allgather", 64): {"messages": 9.0, "reduction": 6.0},
         (4, 4, "allgather", 4096): {"messages": 9.0, "reduction": 8.9}, (8, 8, "allgather", 8): {"messages": 4.0, "reduction": 5.0}}
rows = choices("provider", times, 0.05)
assert [row[:5] for row in rows] == [
    ["allgather", (None, None), (2, 7), (None, 16383), "reduction"],
    ["allgather", (None, None), (2, 7), (16384, None), "messages"],
    ["allgather", (None, None), (8, None), (None, None), "messages"]], rows
words = [line.split() for line in table_text(rows, ["x"]).splitlines() if not line.startswith("#")]
assert words[0] == ["allgather", "*", "2-7", "-16383", "reduction"], words
assert words[1] == ["allgather", "*", "2-7", "16384-", "messages"], words
here = choices("component", {(1, 4, "bcast", 8): {"here": 5.0, "previous": 4.9}}, 0.05)
assert here[0][:5] == ["bcast", (None, None), (1, 1), (None, None), "here"], here
assert words[2] == ["allgather", "*", "8-", "*", "messages"], words
END
}
check "rows of a table" rows
exit $failed
