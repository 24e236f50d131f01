#!/bin/bash
# test_completion.sh -- bash completes options of each command, and the values of an option. Runs in the top folder of a build.
set -u
case ${1:-} in --help | -h) awk 'NR > 1 { if (!/^#/) exit; sub(/^# ?/, ""); print }' "$0"; exit 0 ;; esac
PATH=$PWD/util:$PATH
# shellcheck source-path=SCRIPTDIR source=mcastcoll.bash
. "$(dirname "$0")/mcastcoll.bash"
MANUALS=$(dirname "$0")/../../man
failures=0
fail() {
    echo "FAIL $*"
    failures=$((failures + 1))
}
completes() { # completes EXPECTED WORD...: the last word is being typed; EXPECTED are its completions, in this order
    local expected=$1
    shift
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
    _mcastcoll "$1"
    [ "${COMPREPLY[*]-}" = "$expected" ] && return
    fail "'$*' becomes '${COMPREPLY[*]-}', not '$expected'"
}
completes '--job --join --json' mcastcoll-topo --j
completes 'block' mcastcoll-topo --order b
completes 'block cyclic' mcastcoll-topo --order ''
completes '' mcastcoll-topo --members ''
completes '' mcastcoll-topo --no-such
completes '--session-timeout --silence --site --sites --spin --status' mcastcoll-gateway --s
completes 'fabric' mcastcoll-perf --level f
completes 'provider component' mcastcoll-tune --table ''
completes '--campaign' mcastcoll-sim --ca
completes '' no-such-command --x
# Only programs in PATH are run, and their output is not expanded.
trap_folder=$(mktemp -d)
trap 'rm -rf "$trap_folder"' EXIT
mkdir "$trap_folder/here" "$trap_folder/bin"
printf '#!/bin/sh\n: >"%s/ran"\n' "$trap_folder" >"$trap_folder/here/mcastcoll-cp"
printf '%s\n' '#!/bin/sh' 'echo "  --kind {good,\$(:>'"$trap_folder"'/expanded),\`:>'"$trap_folder"'/expanded\`}"' >"$trap_folder/bin/mcastcoll-fake"
chmod +x "$trap_folder"/*/mcastcoll-*
completes '--hosts' ./mcastcoll-cp --hos
build=$PWD
cd "$trap_folder/here" || exit 1
completes '--hosts' ./mcastcoll-cp --hos
completes '--hosts' "$trap_folder/here/mcastcoll-cp" --hos
PATH=.:$PATH completes '' mcastcoll-cp --hos
PATH=$trap_folder/bin:$PATH completes 'good' mcastcoll-fake --kind ''
cd "$build" || exit 1
[ ! -e "$trap_folder/ran" ] || fail "a program of the current folder was run"
[ ! -e "$trap_folder/expanded" ] || fail "what a command says was expanded"
for command in "$PWD"/util/mcastcoll-*; do
    name=${command##*/}
    [ -x "$command" ] || continue
    complete -p "$name" >/dev/null 2>&1 || fail "nothing completes $name"
    # The examples come first, and the help fits a screen; the manual has every option.
    "$name" --help | head -n 4 | grep -q "^  *$name" || fail "$name --help does not begin with examples"
    read -r lines columns < <(COLUMNS=100 "$name" --help | wc -lL)
    [ "$lines" -le 30 ] && [ "$columns" -le 120 ] || fail "$name --help has $lines lines and $columns columns: no screen has so much"
    all=$("$name" --help-all)
    [ "$(wc -l <<<"$all")" -ge "$lines" ] || fail "$name --help-all has less than --help"
    options=$(grep -oE '^ +(-[a-z],)?--[a-z-]+' <<<"$all" | grep -oE -- '--[a-z-]+')
    [ "$(wc -l <<<"$options")" -ge 8 ] || fail "$name --help-all has hardly any option"
    page=$(sed 's/\\f[BIR]//g; s/\\-/-/g' "$MANUALS/$name.1")
    while read -r option; do
        case $option in --help | --help-all | --version) continue ;; esac
        grep -qE -- "$option([^a-z-]|\$)" <<<"$page" || fail "$name(1) lacks $option"
    done <<<"$options"
    "$name" --no-such-option 2>&1 | grep -q 'see --help$' || fail "$name says nothing of --help when an option is wrong"
done
[ "$failures" -eq 0 ] && echo "ok   completion"
