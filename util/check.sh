#!/bin/bash
# check.sh [--quick | --all | --only STEP,STEP,..] [--no-install] [--list] -- builds the tree and tests it.
#
# Runs the steps of util/check-steps, a table with a line per step.  Without an option: the build, the tests, and jobs on the
# cluster, about 17 minutes on two cores.  A step writes build-check/STEP.log; a step that takes longer than its limit is ended.
# The last line is "N passed, N failed, N skipped"; the exit code is 1 if a test failed.  A step that this machine cannot run
# (the cluster needs root and network namespaces) counts as skipped, with the reason.
#   --quick        only the build, the tests without a cluster, and the style
#   --all          all steps, an hour: also sanitizers, fuzzers, Debian 13, RDMA, large jobs, another processor
#   --only STEPS   only these steps, which may use the results of an earlier run
#   --no-install   do not install missing packages
#   --list         print all steps, with their groups
#   --steps FILE   another table of steps
set -u
ME=${0##*/}
TOP=$(cd "$(dirname "$0")/.." && pwd)
LOGS=$TOP/build-check DEADLINE=4500 # seconds for all steps; two quiet cores take an hour
. "$TOP/util/check-report.sh"
table=$TOP/util/check-steps groups='quick default' only='' list=''
bad_usage() { echo "$ME: $*; see '$ME --help'" >&2; exit 2; }
while [ $# -gt 0 ]; do
    case $1 in
        --help | -h) awk 'NR > 1 { if (!/^#/) exit; sub(/^# ?/, ""); print }' "$0"; exit 0 ;;
        --version) sed -n 's/^AC_INIT(\[mcastcoll\], \[\([^]]*\)\].*/mcastcoll \1/p' "$TOP/configure.ac"; exit 0 ;;
        --list) list=1; shift ;;
        --quick) groups=quick; shift ;;
        --all) groups='quick default all'; shift ;;
        --no-install) export CHECK_NO_INSTALL=1; shift ;;
        --only | --steps) [ -n "${2:-}" ] || bad_usage "'$1' needs a value" ;;&
        --only) only=$2; shift 2 ;;
        --steps) table=$(realpath -e "$2") || exit 2; shift 2 ;;
        *) bad_usage "'$1' is no option" ;;
    esac
done
cd "$TOP" || exit 1

# Reads the table, and chooses the steps by group or by name.
names=' ' steps='' chosen=" ${only:-$groups} " chosen=${chosen//,/ }
declare -A limit needs runs title command pid begun
# shellcheck disable=SC2162 # without -r, read joins a line that ends with a backslash with the next line
while IFS='|' read columns text words; do
    read -r name seconds group need run rest <<<"$columns"
    case $name in '' | '#'*) continue ;; esac
    [[ $seconds =~ ^[1-9][0-9]*$ && $group =~ ^(quick|default|all)$ && $run =~ ^(first|turn|aside)$ && -z $rest && -n $words ]] ||
        bad_usage "$table: the line of '$name' is wrong"
    for n in ${need//,/ }; do [[ " - alone cluster$names" == *" $n "* ]] || bad_usage "$table: '$name' needs '$n', which is no earlier step"; done
    names+="$name " limit[$name]=$seconds needs[$name]=${need//,/ } runs[$name]=$run title[$name]=${text% } command[$name]=$words
    [ -z "$list" ] || printf '%-12s %-8s%s\n' "$name" "$group" "${title[$name]}"
    [[ $chosen != *" $name "* && $chosen != *" $group "* ]] || steps+="$name "
done <"$table" || exit
[ -z "$list" ] || exit 0
for name in ${only//,/ }; do [[ $names == *" $name "* ]] || bad_usage "'$name' is no step; there are:$names"; done
export CHECK_STEPS=$steps CHECK_GROUPS=$groups

# Settings of the caller's shell for libfabric, Open MPI or sanitizers must not change a result.
for name in $(compgen -e | grep -E '^(FI|OMPI|ASAN|UBSAN|LSAN|VC|NET|HOSTS|STACK|MCASTCOLL)(_|$)'); do unset "$name"; done
rm -rf "$LOGS" && mkdir -p "$LOGS" || exit

aside=''
remove_clusters() { [ "$(id -u)" != 0 ] || util/cluster/down --stale; } # clusters of tests that were killed
finish() { end_aside; remove_clusters; echo "$passed passed, $failed failed, $skipped skipped"; exit $((failed > 0)); }
# A step is a process group, led by `timeout`, which hands the signal to its group.  The group gets 10 s for its cleaning.
interrupted() {
    trap '' INT TERM HUP
    local running=$(jobs -pr)
    {
        kill $running
        wait
        running=${running:+-${running//$'\n'/ -}} # now the numbers of the groups
        for _ in {1..100}; do kill -0 -- $running && sleep 0.1 || break; done
        kill -KILL -- $running
    } 2>/dev/null
    remove_clusters
    echo "$ME: interrupted"; exit 130
}
trap interrupted INT TERM HUP

start() { # start NAME PREFIX...: starts the step's command, after PREFIX
    local words
    read -ra words <<<"${command[$1]}"
    [[ ${words[0]} == */* ]] || words=(util/check-functions.sh "${words[@]}")
    ((${limit[$1]} < DEADLINE - SECONDS)) || limit[$1]=$((DEADLINE - SECONDS))
    "${@:2}" timeout -k 15 "${limit[$1]}" "${words[@]}" </dev/null >"$LOGS/$1.log" 2>&1 &
    pid[$1]=$! begun[$1]=$EPOCHSECONDS
}
conclude() { # conclude NAME: waits for the end of the step, and reports the step
    local code=0 end=''
    kill -0 "${pid[$1]}" 2>/dev/null || end=$(stat -c %Y "$LOGS/$1.log") # has ended, at the time of the log's last line
    wait "${pid[$1]}" || code=$?
    report "$1" "$code" "${limit[$1]}" $((${end:-$EPOCHSECONDS} - begun[$1]))
}
end_aside() { [ -z "$aside" ] || conclude "$aside"; aside=''; }
can_cluster() { [ "$(id -u)" = 0 ] && ip netns add "mcc-try-$$" && ip netns del "mcc-try-$$"; } 2>/dev/null

for name in $steps; do
    obstacle='' beside=''
    [ "${runs[$name]}" != aside ] || { end_aside; beside=', beside the next steps'; }
    for need in ${needs[$name]}; do
        case $need in
            -) ;;
            alone) end_aside ;;
            cluster) can_cluster || obstacle='the cluster needs root and network namespaces' ;;
            *) [ "$need" != "$aside" ] || end_aside
                [ "${outcome[$need]:-ok}" = ok ] || obstacle="$need ${outcome[$need]}" ;;
        esac
    done
    printf '[%4d s] %-10s%s\n' "$SECONDS" "$name" "${title[$name]}$beside"
    if ((DEADLINE - SECONDS < 5)); then
        report_unrun "$name" failed 'no time is left'
    elif [ -n "$obstacle" ]; then
        report_unrun "$name" skipped "$obstacle"
    elif [ -n "$beside" ]; then
        start "$name" chrt --idle 0 && aside=$name # in the normal class it would slow down MPI jobs beside it, fourfold
    else
        start "$name" && conclude "$name"
    fi
    [ "${runs[$name]} ${outcome[$name]:-}" != 'first failed' ] || finish
done
finish
