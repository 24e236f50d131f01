#!/bin/bash
# split_programs.sh [options] -- unmodified programs over two sites, directly and through gateways, must have the same
# results.
#
#   --hosts N         hosts in two sites (default 4)
#   --wan "DELAY_us RATE_mbit LOSS_pct"   the link between the sites (default "1000 500 0")
#   --only P,P,..     some of: python (a server and a client of sockets), openmpi (btl/tcp), ofi (Open MPI over libfabric's tcp),
#                     mcastcoll (our provider over tcp), mpich, hpcc, broadcast (the job of quickstart), crossing (how often
#                     a broadcast of our provider crosses the session); default all
#   --gateway PROGRAM instead of mcastcoll-gateway; called as util/cluster/gateways does
#   --plain           gateways that only split connections, those of the tests
#   --count N         broadcasts and collectives of each program (default 100)
#
# The sites' routers count the bytes that bypass the gateways, which must be few: launchers do not load the library.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "$0")/common.sh"
hosts=4 wan="1000 500 0" only=python,openmpi,ofi,mcastcoll,mpich,broadcast,hpcc,crossing gateway='' count=100
while [ $# -gt 0 ]; do
    case $1 in
        --help | -h) usage; exit 0 ;;
        --version) version; exit 0 ;;
        --plain) gateway="$BUILD/fabtests/split/split_check gateway"; shift ;;
        --hosts | --wan | --only | --gateway | --count) [ $# -ge 2 ] || bad_usage "'$1' needs a value" ;;&
        --hosts) hosts=$2; shift 2 ;;
        --wan) wan=$2; shift 2 ;;
        --only) only=$2; shift 2 ;;
        --gateway) gateway=$2; shift 2 ;;
        --count) count=$2; shift 2 ;;
        *) bad_usage "'$1' is no option" ;;
    esac
done
[[ $hosts =~ ^[1-9][0-9]?$ ]] && ((hosts >= 2)) || bad_usage "--hosts '$hosts': give 2 or more"
[[ $count =~ ^[1-9][0-9]{0,5}$ ]] || bad_usage "--count '$count': give a number"
for word in ${only//,/ }; do
    case $word in python | openmpi | ofi | mcastcoll | mpich | hpcc | broadcast | crossing) ;; *) bad_usage "--only '$word' is no program" ;; esac
done
can_cluster || finish
use_build
library=$BUILD/lib/split/libmcastcoll-split.so
[ -e "$library" ] || { echo "$ME: no $library: run util/build" >&2; exit 2; }
# A sanitizer's runtime must be the first preloaded library.
sanitizer=$(ldd "$library" | awk '/lib[at]san/ { print $3; exit }')
preload=${sanitizer:+$sanitizer }$library
export NET=${NET:-10.77}
WAN=$wan GATEWAYS=1 GSO=on start_cluster "$hosts" 2
MCASTCOLL_SITES=$("$LAB/gateways" sites)
export MCASTCOLL_SITES MCASTCOLL_SPLIT_VERBOSE=1 GATEWAY=$gateway
last=h$((hosts - 1))
"$LAB/gateways" start || { fail "the gateways do not start"; finish; }
ip netns exec "$VC-sw0" nft -f - <<END || { fail "the router does not count"; finish; }
table inet direct {
    counter straight { }
    chain forward {
        type filter hook forward priority 0;
        ip saddr $NET.0.253 accept
        ip daddr $NET.0.253 accept
        oifname "wan*" meta l4proto tcp counter name straight
        iifname "wan*" meta l4proto tcp counter name straight
    }
}
END
straight() { ip netns exec "$VC-sw0" nft list counter inet direct straight | awk '$1 == "packets" { print $4 }'; }

# One program in either way: run_NAME direct|split LOG.  result_NAME extracts the result to compare from the log.
mpi() { # mpi direct|split STACK LOG PROGRAM...
    local how=$1 stack=$2 log=$3 # and $limit, in seconds
    shift 3
    local with=()
    [ "$how" = direct ] || with=(-x "LD_PRELOAD=$preload" -x MCASTCOLL_SITES -x MCASTCOLL_SPLIT_VERBOSE)
    STACK=$stack bounded "${limit:-280}" "$LAB/run" ${with[@]+"${with[@]}"} "$@" >"$log" 2>&1
}
run_openmpi() { mpi "$1" tcp "$2" "$BUILD/fabtests/mpi/mpi_coll_check" --count "$count" --max 64K --seed 7; }
run_ofi() { mpi "$1" ofi "$2" "$BUILD/fabtests/mpi/mpi_coll_check" --count "$count" --max 64K --seed 7; }
run_mcastcoll() { mpi "$1" mcastcoll "$2" "$BUILD/fabtests/mpi/mpi_coll_check" --count "$count" --max 64K --seed 7; }
run_broadcast() { mpi "$1" mcastcoll "$2" "$BUILD/fabtests/mpi/mpi_bcast_check" --count "$count" --max 1M --seed 7; }
result_openmpi() { grep -E ' (bad|ok)' "$1" | sed 's/[0-9.]* *us//g'; }
result_ofi() { result_openmpi "$1"; }
result_mcastcoll() { result_openmpi "$1"; }
result_broadcast() { grep -o '^[0-9]* ranks, .*' "$1"; }
run_hpcc() {
    command -v hpcc >/dev/null || return 77
    local limit=1200 # measures latencies between all processes again and again
    mkdir -p "$work/files.$1"
    hpcc_input >"$work/files.$1/hpccinf.txt"
    rm -f "$work/files.$1/hpccoutf.txt"
    (cd "$work/files.$1" && mpi "$1" tcp "$2" -n 4 hpcc) || return
    cat "$work/files.$1/hpccoutf.txt" >>"$2"
}
result_hpcc() { # results and residuals without times; empty unless every test passed
    awk '/^(Success|HPL_(Rnorm|Xnorm|Bnorm|Anorm)[^=]*|PTRANS_residual|(MPI|Star|Single)RandomAccess(_LCG)?_(Errors|ErrorsFraction)|MPIFFT_maxErr)=/
        /\|\|Ax-b\|\|.*=/ { print }
        /^(WALL|CPU) .* (PASSED|FAILED) / { print $1, $2, $3, $4, $5, $6, $7, $9, $NF }
        /PASSED/ { passed++ }
        /FAILED/ { failed++ }
        /^Success=1/ { success = 1 }
        END { print passed + 0, "PASSED,", failed + 0, "FAILED"; exit !(success && passed && !failed) }' "$1"
}
hpcc_input() { # small: the test compares results, not speed
    printf 'HPCC\ninput\nHPL.out output\n8 device\n1 sizes\n1000 N\n1 blocks\n40 NB\n0 mapping\n1 grids\n2 P\n2 Q\n16.0 threshold\n'
    printf '1 pfacts\n2 p\n1 nbmins\n4 n\n1 ndivs\n2 d\n1 rfacts\n1 r\n1 bcasts\n1 b\n1 depths\n1 d\n2 swap\n64 s\n0 L1\n0 U\n1 equil\n8 align\n'
    printf '# separator\n0 more sizes\n1200 N\n0 more blocks\n40 NB\n'
}
# MPICH over UCX's tcp often hangs in MPI_Finalize at the end, one rank in ucp_worker_progress() and the others in PMI's
# barrier, also without mcastcoll in the processes: a job that has printed its result by then is ended and counts.
run_mpich() {
    local with=() program=$BUILD/fabtests/mpi/mpi_pmpi_check list code=0
    command -v mpiexec.mpich >/dev/null && [ -x "$program" ] || return 77
    [ "$1" = direct ] || with=(-genv LD_PRELOAD "$preload" -genvlist MCASTCOLL_SITES,MCASTCOLL_SPLIT_VERBOSE,UCX_TLS)
    list=$(seq -s, -f h%g 0 $((hosts - 1)))
    UCX_TLS=tcp,self bounded 40 "$LAB/on" h0 mpiexec.mpich -launcher rsh -launcher-exec "$LAB/rsh" -hosts "$list" -iface eth0 \
        ${with[@]+"${with[@]}"} -n "$hosts" "$program" "$count" 64K 1 >"$2" 2>&1 || code=$?
    [ $code = 124 ] && result_mpich "$2" >/dev/null || return $code
    say "     mpich, $1: ended in MPI_Finalize"
}
result_mpich() { grep -o '[0-9]* checked, [0-9]* bad' "$1"; }
listens() { # listens HOST PORT
    ip netns exec "$VC-$1" cat /proc/net/tcp | awk -v port=":$(printf %04X "$2")" '$4 == "0A" && $2 ~ port "$" { found = 1 } END { exit !found }'
}
run_python() {
    local with=() server code=0
    [ "$1" = direct ] || with=(env "LD_PRELOAD=$preload")
    timeout -k 10 60 "$LAB/on" "$last" ${with[@]+"${with[@]}"} python3 "$(dirname "$0")/split_sockets.py" serve 5000 >"$2.server" 2>&1 &
    server=$!
    # A client behind gateways learns of a missing server from its first read, not from connect().
    for _ in {1..200}; do listens "$last" 5000 && break || sleep .05; done
    bounded 60 "$LAB/on" h0 ${with[@]+"${with[@]}"} python3 "$(dirname "$0")/split_sockets.py" "$last" 5000 >"$2" 2>&1 || code=$?
    wait $server || code=$?
    cat "$2.server" >>"$2"
    return $code
}
result_python() { grep -v '^libmcastcoll-split' "$1"; }

# Runs the program, and once more if its launch fails: on a machine that stalls for a while, this is not a result.
attempt() { # attempt PROGRAM direct|split
    local try code=0
    for try in 1 2; do
        code=0
        "run_$1" "$2" "$work/$1.$2" || code=$?
        [ $code != 0 ] && [ "$try" = 1 ] || return $code
        grep -qE 'ORTE does not know|no-path|firewall|client connect fail' "$work/$1.$2" || return $code
        say "     $1, $2: the launcher failed, once more"
    done
    return $code
}
judge() { # judge PROGRAM
    local program=$1 how code before relayed through
    for how in direct split; do
        before=$(straight) code=0
        attempt "$program" $how || code=$?
        through=$(($(straight) - before))
        [ $code != 77 ] || { skip "$program: is not installed"; return; }
        if [ $code != 0 ]; then
            tail -n 15 "$work/$program.$how" | sed 's/^/     /'
            fail "$program, $how: code $code$([ $code != 124 ] || echo ' (hung)')"
            return
        fi
        "result_$program" "$work/$program.$how" >"$work/$program.$how.result" || { fail "$program, $how: no result"; return; }
    done
    relayed=$(grep -c 'through the gateway to' "$work/$program.split" || :)
    diff "$work/$program.direct.result" "$work/$program.split.result" || { fail "$program: other results through the gateways"; return; }
    [ "$relayed" != 0 ] || { fail "$program: nothing went through the gateways"; return; }
    ((through < 500000)) || { fail "$program: $through bytes did not go through the gateways"; return; }
    pass "$program: the same results ($(tail -n 1 "$work/$program.split.result")); $relayed connections went through the gateways, $through bytes did not"
}
session_bytes() { # bytes that connections have sent over the session, in both directions
    "$LAB/gateways" status --json | python3 -c 'import json, sys
text, total = sys.stdin.read().lstrip(), 0
while text:
    gateway, end = json.JSONDecoder().raw_decode(text)
    text = text[end:].lstrip()
    total += sum(session["counters"]["sent_bytes"] for session in gateway["sessions"])
print(total)'
}
judge_crossing() { # bytes that 200 more broadcasts send over the session, every rank being the root in turn
    local n before sent=()
    [ -z "$gateway" ] || { skip "crossing: only mcastcoll-gateway counts"; return; }
    for n in 20 220; do
        before=$(session_bytes)
        mpi split mcastcoll "$work/crossing.$n" "$BUILD/fabtests/mpi/mpi_bcast_check" --count $n --min 64K --max 64K --cycles 0 --contiguous ||
            { tail -n 15 "$work/crossing.$n"; fail "crossing: the job failed"; return; }
        sent+=($(($(session_bytes) - before)))
    done
    n=$(((sent[1] - sent[0]) * 100 / (200 * 65536)))
    if ((n >= 95 && n <= 130)); then pass "crossing: a broadcast crosses the session $((n / 100)).$(printf %02d $((n % 100))) times"
    else fail "crossing: a broadcast crosses the session $n hundredths of a time"; fi
}
for program in ${only//,/ }; do
    if [ "$program" = crossing ]; then judge_crossing; else judge "$program"; fi
done
"$LAB/gateways" stop
finish
