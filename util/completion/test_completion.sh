#!/bin/bash
# test_completion.sh -- bash completes options of each command, and the words that an option takes.  Runs in the top folder of a build.
set -u
case ${1:-} in --help | -h) awk 'NR > 1 { if (!/^#/) exit; sub(/^# ?/, ""); print }' "$0"; exit 0 ;; esac
PATH=$PWD/util:$PATH
# shellcheck source-path=SCRIPTDIR source=mcastcoll.bash
. "$(dirname "$0")/mcastcoll.bash"
failures=0
completes() { # completes EXPECTED WORD...: the last word is being typed; it may become these, in this order
    local expected=$1
    shift
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
    _mcastcoll "$1"
    [ "${COMPREPLY[*]-}" = "$expected" ] && return
    echo "FAIL '$*' becomes '${COMPREPLY[*]-}', not '$expected'"
    failures=$((failures + 1))
}
completes '--job --join --json' mcastcoll-topo --j
completes 'block' mcastcoll-topo --order b
completes 'block cyclic' mcastcoll-topo --order ''
completes '' mcastcoll-topo --members ''
completes '' mcastcoll-topo --no-such
completes '--silence --site --sites --spin --status' mcastcoll-gateway --s
completes 'fabric' mcastcoll-perf --level f
completes 'provider component' mcastcoll-tune --table ''
completes '--campaign' mcastcoll-sim --ca
completes '' no-such-command --x
for command in "$PWD"/util/mcastcoll-*; do
    name=${command##*/}
    [ -x "$command" ] || continue
    complete -p "$name" >/dev/null 2>&1 || { echo "FAIL nothing completes $name"; failures=$((failures + 1)); }
    # The examples come first.
    "$name" --help | head -n 4 | grep -q "^  *$name" || { echo "FAIL $name --help does not begin with examples"; failures=$((failures + 1)); }
done
[ "$failures" -eq 0 ] && echo "ok   completion"
