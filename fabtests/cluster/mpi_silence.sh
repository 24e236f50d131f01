#!/bin/bash
# mpi_silence.sh [options] -- the network is silent for some seconds: every job continues, with no more delay than Open
# MPI alone.
#
#   --seconds S,S,..   duration of the silence (default 6)
#   --where W,W,..     one: all packets from and to one host; in, out: to or from it; all: of all hosts (default one)
#   --phases P,P,..    operation, join, between (operations), close, first (operation of a job; default operation)
#   --pml P,P          ob1, cm (default ob1)
#   --ranks N,N        ranks per host (default 1)
#   --hosts N          default 4
#   --stock            also run Open MPI alone; ours may be delayed by 1.2 times as much, plus 0.5 s
#   --power            one host falls silent for good, with a host timeout of 6 s: the job ends, and the error names the host
#   --large            the matrix: 1 to 100 s, all options above, compared with Open MPI alone (hours)
set -u
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "$0")/common.sh"
# shellcheck source-path=SCRIPTDIR source=kill.sh
. "$(dirname "$0")/kill.sh"
seconds=6 where=one phases=operation pmls=ob1 ranks=1 n=4 stock='' power=''
while [ $# -gt 0 ]; do
    case $1 in
        --help | -h) usage; exit 0 ;;
        --version) version; exit 0 ;;
        --stock) stock=1; shift ;;
        --power) power=1; shift ;;
        --large) seconds=1,3,5,10,30,100 where=one,in,out,all phases=first,operation,join,between,close pmls=ob1,cm ranks=1,2 stock=1; shift ;;
        --seconds | --where | --phases | --pml | --ranks | --hosts) [ $# -ge 2 ] || bad_usage "'$1' needs a value" ;;&
        --seconds) seconds=$2; shift 2 ;;
        --where) where=$2; shift 2 ;;
        --phases) phases=$2; shift 2 ;;
        --pml) pmls=$2; shift 2 ;;
        --ranks) ranks=$2; shift 2 ;;
        --hosts) n=$2; shift 2 ;;
        *) bad_usage "'$1' is no option" ;;
    esac
done
can_cluster || finish
use_build
unset OMPI_MCA_coll_mcastcoll_selection  # as users run it
program=$BUILD/fabtests/cluster/mpi_silence
[ -x "$program" ] || { echo "$ME: no $program: run util/build" >&2; exit 2; }
start_cluster "$n"
# In the real-time class, a busy machine delays the begin and the end of a silence less.
chrt --fifo --pid 1 $$

# A filter at the host's port of the switch passes or drops every packet of a direction, including ARP. A filter is replaced in
# milliseconds even on a busy machine, where deleting a rule of nft waits for seconds.
pass_all=4294967295 drop_all=2 # verdicts: TC_ACT_UNSPEC, TC_ACT_SHOT
filter() { # filter HOST VERDICT ingress|egress...: directions as the port sees them: packets from the host are ingress
    local direction
    for direction in "${@:3}"; do
        tc -n "$VC-sw0" filter replace dev "$1" "$direction" protocol all pref 1 handle 1 bpf da bytecode "1,6 0 0 $2,"
    done
}
for ((i = 0; i < n; ++i)); do
    tc -n "$VC-sw0" qdisc add dev "h$i" clsact && filter "h$i" "$pass_all" ingress && filter "h$i" "$pass_all" egress ||
        { skip "this kernel has no filters for the switch's ports (clsact, cls_bpf)"; finish; }
done
silence() { # silence WHERE
    local host
    case $1 in
        one) filter h1 "$drop_all" ingress egress ;;
        in) filter h1 "$drop_all" egress ;;
        out) filter h1 "$drop_all" ingress ;;
        all) for ((host = 0; host < n; ++host)); do filter "h$host" "$drop_all" ingress egress; done ;;
    esac
}
speak() {
    local host
    for ((host = 0; host < n; ++host)); do filter "h$host" "$pass_all" ingress egress; done
}
start_job() { # start_job STACK PML PHASE OPTION..: the job is $job
    local stack=$1 pml=$2 phase=$3
    shift 3
    [ "$stack:$pml" != tcp:cm ] || stack=ofi
    rm -f "$work"/mark*
    STACK=$stack chrt --other 0 timeout -k 10 $((longest * 4 + 120)) "$LAB/run" -n $((n * per)) --mca pml "$pml" "$@" \
        "$program" "$phase" "$work/mark" >"$work/log" 2>&1 &
    job=$!
    until [ -e "$work/mark.ready" ] || ! kill -0 $job 2>/dev/null; do sleep .02; done
}

# Prints how long the job was delayed, or why it failed.
one() { # one STACK PML PHASE WHERE SECONDS
    local job code=0 begun silent
    longest=$5
    start_job "$1" "$2" "$3"
    begun=$EPOCHREALTIME
    silence "$4"
    touch "$work/mark.on"
    sleep "$5"
    speak
    silent=$(awk "BEGIN { printf \"%.1f\", $EPOCHREALTIME - $begun }")
    touch "$work/mark.over"
    wait $job || code=$?
    # On a machine that takes seconds to start a command the network is silent for longer than intended.
    awk "BEGIN { exit !($silent <= 1.05 * $5 + 1) }" || { echo "skip silent for $silent s"; return 1; }
    sed -n 's/^mpi_silence: all right, held up for \([0-9.]*\) s$/\1/p' "$work/log" >"$work/held"
    [ $code = 0 ] && [ -s "$work/held" ] || { tail -n 30 "$work/log" >&2; echo "code $code"; return 1; }
    cat "$work/held"
}

compare() { # compare PML PHASE WHERE SECONDS
    local what="$4 s, $3, $2, pml $1, $per a host" ours theirs
    ours=$(one mcastcoll "$@") || { case $ours in skip*) skip "$what: ${ours#skip }" ;; *) fail "$what: $ours" ;; esac; return; }
    awk "BEGIN { exit !($ours >= 0.8 * $4) }" || { fail "$what: held up for $ours s: the network was not silent"; return; }
    [ -n "$stock" ] || { pass "$what: held up for $ours s"; return; }
    theirs=$(one tcp "$@") || { skip "$what: Open MPI alone: $theirs"; return; }
    # The start and end of the silence may differ by half a second.
    if awk "BEGIN { exit !($ours <= 1.2 * $theirs + 0.5) }"; then
        pass "$what: held up for $ours s, Open MPI alone $theirs s, ratio $(awk "BEGIN { printf \"%.2f\", $ours / ($theirs + 0.001) }")"
    else
        fail "$what: held up for $ours s, Open MPI alone $theirs s"
    fi
}

# The host's processes live on, so only the timeout can detect the failure.
without_power() {
    local job start=$SECONDS left per=1 longest=60
    export FI_MCASTCOLL_HOST_TIMEOUT=6000
    start_job mcastcoll ob1 operation "${outlive[@]}"
    silence one
    until grep -q 'lost rank 1 .*did not respond' "$work/log" || ! kill -0 $job 2>/dev/null || ((SECONDS - start > 60)); do sleep .1; done
    left=$(grep -m 1 -o 'lost rank 1 .*did not respond[^)]*' "$work/log")
    if [ -n "$left" ]; then pass "a host without power: $left"; else fail "a host without power: no rank names it"; tail -n 30 "$work/log"; fi
    speak
    kill $job
    wait $job
    unset FI_MCASTCOLL_HOST_TIMEOUT
} 2>/dev/null

for per in ${ranks//,/ }; do
    for pml in ${pmls//,/ }; do
        for phase in ${phases//,/ }; do
            for w in ${where//,/ }; do
                for s in ${seconds//,/ }; do compare "$pml" "$phase" "$w" "$s"; done
            done
        done
    done
done
[ -z "$power" ] || without_power
finish
