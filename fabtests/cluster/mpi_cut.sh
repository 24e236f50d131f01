#!/bin/bash
# mpi_cut.sh [--hosts N] [--cases C,C,..] [--phases A,B,C] [--policy P] -- multicast is cut during a job, then restored.
#
# One MPI job over N hosts (default 6) broadcasts without a pause and checks every byte on every rank: A broadcasts
# undisturbed, B while multicast is cut, C after it is restored (default 200,400,800; the last phase has at least three
# times as many as all before it). A phase is a number of broadcasts, so the result does not depend on the machine's
# speed. The cut affects only multicast, and begins and ends while broadcasts are under way.  Cases (default: all):
#   deaf      one host receives no multicast                 mute      no host receives from one host, which is the root
#   all       no host receives any                           large     as deaf, with broadcasts of 64 KiB
# No byte may be wrong. The counters of the affected receivers must show that the cut broadcasts came by repair and
# those before and after by multicast; if multicast stayed cut, this check would fail.  If the provider counts multicast
# demotions and promotions, both must have occurred.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "$0")/common.sh"
n=6 cases=deaf,mute,all,large phases=200,400,800 policy=''
while [ $# -gt 0 ]; do
    case $1 in
        --help | -h) usage; exit 0 ;;
        --version) version; exit 0 ;;
        --hosts | --cases | --phases | --policy) [ $# -ge 2 ] || bad_usage "'$1' needs a value" ;;&
        --hosts) n=$2; shift 2 ;;
        --cases) cases=$2; shift 2 ;;
        --phases) phases=$2; shift 2 ;;
        --policy) policy=$2; shift 2 ;;
        *) bad_usage "'$1' is no option" ;;
    esac
done
[[ $n =~ ^[0-9]{1,3}$ ]] && ((10#$n >= 3)) || bad_usage "--hosts '$n': give 3 or more"
[[ $phases =~ ^[1-9][0-9]*,[1-9][0-9]*,[1-9][0-9]*$ ]] || bad_usage "--phases '$phases': give three numbers of broadcasts"
for c in ${cases//,/ }; do
    case $c in deaf | mute | all | large) ;; *) bad_usage "'$c' is none of the cases deaf, mute, all, large" ;; esac
done
can_cluster || finish
use_build
program=$BUILD/fabtests/cluster/mpi_phases
[ -x "$program" ] || { echo "$ME: no $program: run util/build" >&2; exit 2; }
start_cluster "$n"
[ -z "$policy" ] || export FI_MCASTCOLL_EXPERIMENT=repair=$policy

reached() { # reached FILE JOB: waits for FILE as long as the job runs
    until [ -e "$1" ]; do
        kill -0 "$2" 2>/dev/null || return 1
        sleep .02
    done
}
one() { # one CASE WAY HOST SIZE ROOT; HOST '' is every host
    local folder=$work/$1 job code=0 what="case $1, $n hosts, ${4} B"
    mkdir -p "$folder/marks"
    STACK=mcastcoll FI_MCASTCOLL_STATS=$folder/stats timeout -k 10 240 "$LAB/run" --mca coll_mcastcoll_enable bcast \
        "$program" --dir "$folder/marks" --phases "$phases" --size "$4" --root "$5" --json "$folder/phases.json" >"$folder/log" 2>&1 &
    job=$!
    if reached "$folder/marks/done.1" $job; then
        "$LAB/cut" "$2" ${3:+"$3"}
        : >"$folder/marks/go.1"
        if reached "$folder/marks/done.2" $job; then
            "$LAB/cut" show >"$folder/stopped"
            "$LAB/cut" off
            : >"$folder/marks/go.2"
        fi
    fi
    wait $job || code=$?
    "$LAB/cut" off
    sed 's/^/     /' "$folder/log" | tail -n 15
    if [ $code != 0 ]; then
        fail "$what: code $code$([ $code != 124 ] || echo ' (hung)')"
        return
    fi
    pass "$what: the job did not notice, byte-exact"
    code=0
    python3 "$(dirname "$0")/cut_check.py" "$folder" --case "$1" --hosts "$n" --victim "${3#h}" --root "$5" >"$folder/result" || code=$?
    # Counts the lines of the result; an error of the evaluation itself is a failure.
    cat "$folder/result"
    passed=$((passed + $(grep -c '^ok ' "$folder/result" || :))) failed=$((failed + $(grep -c '^FAIL ' "$folder/result" || :)))
    [ $code = 0 ] || fail "$what: the counters could not be judged"
}
for c in ${cases//,/ }; do
    case $c in
        deaf) one deaf in h$((n - 1)) 8 rotate ;;
        large) one large in h$((n - 1)) 65536 rotate ;;
        mute) one mute out h1 8 1 ;;
        all) one all in '' 8 rotate ;;
    esac
done
finish
