#!/bin/bash
# Every figure can be computed, with equal results twice, and has the shapes reported in the papers. Then the acceptance
# criteria, in virtual time, for small groups. MCC_QUICK: each figure once.
set -u
sim=util/sim/mcastcoll-sim
failures=0
fail() { echo "FAIL $*"; failures=$((failures + 1)); }
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT

names=$("$sim" --figure list | sed -n '/^$/q; s/ .*//p')
for name in $names; do
    "$sim" --figure "$name" --quick --seed 3 --out "$folder/$name.csv" || fail "$name: code $?"
    [ -n "${MCC_QUICK:-}" ] || "$sim" --figure "$name" --quick --seed 3 | cmp -s - "$folder/$name.csv" || fail "$name: the same seed gave another table"
done
python3 - "$folder" <<'END' || failures=$((failures + 1))
import csv, sys
def table(name):
    with open(f"{sys.argv[1]}/{name}.csv") as lines:
        return [{k: float(v) for k, v in row.items()} for row in csv.DictReader(l for l in lines if l[0] != "#")]
size = table("size")
assert size[-1]["binomial_last_us"] > 4 * size[0]["binomial_last_us"], "the tree grows with the number of ranks"
assert size[-1]["pull_last_us"] < 1.1 * size[0]["pull_last_us"], "the multicast does not"
penalty = {row["loss_percent"]: row for row in table("penalty")}
assert penalty[0]["measured_rounds"] == 0 and 0.7 < penalty[50]["measured_rounds"] < 1.3, penalty
for row in table("crc"):
    injected, refused = (row[k] / 100 * row["copies"] for k in ("injected_percent", "refused_percent"))
    assert abs(refused - injected) < 5 * injected ** 0.5 + 1, row
thousand = table("collisions")[-1]
assert 0.01 < thousand["drawn_ipv4_fixed_port"] < 0.06, thousand
count = table("channels-count")
assert all(a["sync_16_us"] > b["sync_16_us"] for a, b in zip(count, count[1:])), "more channels wait less"
for name, binomial in (("wan", 2), ("both", 2), ("clusters", 2)):
    for row in table("karonis-" + name):
        assert row["ours_wan"] == row["multilevel_wan"] == 1, f"{name}: crossings between sites, {row}"
        assert row["binomial_wan"] > binomial and row["binomial_us"] > 1.5 * row["ours_us"], (name, row)
for row in table("karonis-lan"):
    assert row["ours_port"] == row["multilevel_port"] == 1 and row["binomial_port"] > 1, row
growth = table("growth")
assert [row["ranks"] for row in growth] == [16, 64, 256] and all(row["join_us"] > row["allreduce_us"] for row in growth), growth
assert growth[-1]["broadcast_us"] < 1.1 * growth[0]["broadcast_us"], "the multicast does not grow with the group"
redundancy = {row["loss_percent"]: row for row in table("redundancy")}
for what in ("bcast8_16", "bcast64k_16", "barrier_16", "allreduce8_16"):
    lossless = redundancy[0][what + "_auto_median_us"]
    assert redundancy[0][what + "_auto_datagrams"] == redundancy[0][what + "_off_datagrams"], what
    # Too few operations for the slowest hundredth: fabtests/unit/test_simulator_redundancy.cc tests that.
    assert redundancy[5][what + "_auto_median_us"] < 1.2 * lossless, (what, redundancy[5])
    assert redundancy[5][what + "_auto_median_us"] < 0.9 * redundancy[5][what + "_off_median_us"], (what, redundancy[5])
cost = table("channels-cost")
assert cost[0]["unreliable_us"] <= cost[0]["sync_us"] and cost[0]["pull_us"] <= cost[0]["push_us"], cost[0]
END
if command -v gnuplot >/dev/null; then
    "$sim" --figure collisions --quick --out "$folder/a.svg" || fail "a picture: code $?"
    grep -q '</svg>' "$folder/a.svg" || fail "no picture came out"
fi
PATH=$folder "$PWD/$sim" --figure collisions --quick --out "$folder/b.svg" 2>"$folder/said" && fail "drew without gnuplot"
grep -q gnuplot "$folder/said" || fail "missing gnuplot is not named"

refused() { # refused TEXT OPTION...: exit code 2 and a message with this text
    local text=$1 said code=0
    shift
    said=$("$sim" "$@" 2>&1 >/dev/null) || code=$?
    { [ $code = 2 ] && printf '%s' "$said" | grep -qF -- "$text"; } || fail "$*: code $code, $said"
}
refused "first-last" --figure nonsense
refused "ethernet" --figure size --network nonsense
refused ".csv" --figure size --out nonsense.png
"$sim" --figure collisions --quick --out /nonexistent/a.csv 2>/dev/null && fail "wrote where nothing can be written"

"$sim" --acceptance --quick || fail "not accepted"
[ $failures = 0 ]
