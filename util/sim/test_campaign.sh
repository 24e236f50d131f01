#!/bin/bash
# A campaign over many scenarios finds no error in the engine and the join, and finds each deliberate fault within 1,000 seeds;
# the same seeds pass with the right program. MCC_SEEDS: number of seeds [600]. MCC_QUICK: skips the deliberate faults, which are
# not built with sanitizers.
set -u
sim=util/sim/mcastcoll-sim
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0
fail() { echo "FAIL $*"; failures=$((failures + 1)); }

seeds=${MCC_SEEDS:-600}
if "$sim" --campaign "$seeds" --jobs 2 >"$work/proper" 2>&1 && grep -qx "seeds $seeds failed 0" "$work/proper"; then
    echo "ok   $seeds seeds"
else
    tail -n 30 "$work/proper"
    fail "the campaign: MCC_SEEDS=$seeds"
fi

# Defects found by longer campaigns: the stall timeout of operations ended a join between distant sites (16376).
for seed in 16376; do
    if "$sim" --campaign 1 --first $seed >"$work/found"; then echo "ok   seed $seed"; else fail "seed $seed: $(head -n 1 "$work/found")"; fi
done

broken_builds=(duplicates ring welcome death)
[ -z "${MCC_QUICK:-}" ] || broken_builds=()
for broken in "${broken_builds[@]}"; do
    caught=''
    for ((first = 1; first <= 951 && ${#caught} == 0; first += 50)); do
        util/sim/broken-$broken --campaign 50 --first "$first" --jobs 2 >"$work/$broken" 2>&1
        # An oracle must find it: an assertion in the engine does not test the oracles.
        caught=$(sed -n '/ended by signal/d; s/^seed \([0-9]*\):.*/\1/p' "$work/$broken")
    done
    if [ -z "$caught" ]; then
        fail "what is broken, $broken, passed 1,000 seeds"
        continue
    fi
    echo "ok   broken $broken: $(grep '^seed ' "$work/$broken" | grep -v -m 1 'ended by signal')"
    for seed in $caught; do
        "$sim" --campaign 1 --first "$seed" >"$work/same" 2>&1 || fail "seed $seed, of broken $broken: $(head -n 1 "$work/same")"
    done
done
[ "$failures" -eq 0 ]
