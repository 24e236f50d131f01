#!/bin/bash
# A short run of fi_mcc_host_stress in all its shapes; HACKING.md has the long ones.
set -u
program=./fi_mcc_host_stress
[ -x "$program" ] || { echo "host_stress: no $program: build first" >&2; exit 1; }
failures=0
fewer=1
[ -z "${MCC_QUICK:-}" ] || fewer=5 # builds with sanitizers are slow
for arguments in "--members 1 --count 500" "--members 2 --count 10000" "--members 3 --count 4000" \
    "--members 8 --count 3000" "--members 17 --count 500 --max 60000" "--members 65 --count 200 --max 20000" \
    "--members 66 --count 50 --max 20000 --direct-from 1" "--members 3 --count 3000 --no-single-copy" \
    "--members 4 --count 2000 --slots 2 --slot-bytes 128 --no-single-copy --max 20000" \
    "--members 5 --count 2000 --direct-from 1" "--members 4 --count 1000 --threads --direct-from 1" \
    "--members 4 --count 3000 --threads" "--members 3 --count 3000 --threads --no-single-copy"; do
    [[ $arguments =~ (.*--count )([0-9]+)(.*) ]]
    arguments=${BASH_REMATCH[1]}$((BASH_REMATCH[2] / fewer))${BASH_REMATCH[3]}
    # shellcheck disable=SC2086  # several words
    "$program" --quiet --timeout 300 $arguments || { echo "host_stress: failed with $arguments" >&2; failures=$((failures + 1)); }
done
[ "$failures" -eq 0 ] && echo "host_stress: all is well"
exit "$failures"
