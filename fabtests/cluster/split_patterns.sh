#!/bin/bash
# split_patterns.sh [options] -- the effect of gateways on programs that communicate like the NAS kernels, after
# MPI5000's experiments.
#
#   --kernels K,K,..    of 'patterns list' (default all), or pingpong
#   --ways W,W,..       direct, kept (direct, but hosts keep a window through a pause: net.ipv4.tcp_slow_start_after_idle is 0), gateway
#                       (mcastcoll-gateway), plain (connections are only split; default direct,gateway)
#   --traffic T,T,..    none, cross: other hosts of both sites send in bursts over the same link (default both)
#   --streams N         of this traffic, in each direction (default 2), each --on MS and --off MS (default 300, 300)
#   --rounds R          of each (default 3); the ways take turns
#   --ranks N           on each of two hosts in each of two sites (default 1; with 4 the long distance carries what the paper's table 2 counts)
#   --wan "DELAY_us RATE_mbit LOSS_pct [QUEUE_bytes]"    the link (default "5000 200 0"; its queue 1 MiB)
#   --sessions LINES    of the sites file's [sessions], separated by commas (default "streams = 8")
#   --congestion NAME   of the hosts' TCP (default reno; the system's own is often bbr, which forgets no window; for sessions use
#                       --sessions "streams = 8, congestion = NAME")
#   --speed X           computing is X times faster than in the paper's days (default 1);  --iterations N  instead of a kernel's own
#   --out DIR           folder for patterns.csv, .json and .svg (default build/patterns)
#
# Open MPI over btl/tcp, with nothing tuned.  Idle restarts are those of the job's long connections and of the sessions'
# streams; retransmissions, timeouts and segments out of order (each answered with a duplicate ACK) are counted by the
# kernels of all hosts and gateways of the job: distant ones are those of hosts if direct, else of gateways, and local
# ones those of hosts behind gateways.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "$0")/common.sh"
kernels=BT,SP,LU,CG,MG,FT,IS,EP ways=direct,gateway traffic=none,cross rounds=3 ranks=1 wan="5000 200 0" sessions="streams = 8" speed=1 iterations='' out='' congestion=reno
streams=2 on=300 off=300
while [ $# -gt 0 ]; do
    case $1 in
        --help | -h) usage; exit 0 ;;
        --version) version; exit 0 ;;
        --kernels | --ways | --traffic | --streams | --on | --off | --rounds | --ranks | --wan | --sessions | --speed | --iterations | --congestion | --out)
            [ $# -ge 2 ] && [ -n "$2" ] || bad_usage "'$1' needs a value"
            declare "${1#--}=$2"
            shift 2 ;;
        *) bad_usage "'$1' is no option" ;;
    esac
done
each_is() { # each_is OPTION WORDS PATTERN WANTED
    local word
    for word in ${2//,/ }; do [[ $word =~ ^($3)$ ]] || bad_usage "--$1 '$word': give $4"; done
}
each_is kernels "$kernels" 'BT|SP|LU|CG|MG|FT|IS|EP|pingpong' "names of kernels"
each_is ways "$ways" 'direct|kept|gateway|plain' "direct, kept, gateway or plain"
each_is traffic "$traffic" 'none|cross' "none or cross"
for name in rounds ranks streams on; do each_is $name "${!name}" '[1-9][0-9]{0,4}' "a number"; done
each_is off "$off" '[0-9]{1,5}' "a number"
can_cluster || finish
use_build
program=$BUILD/util/patterns/patterns library=$BUILD/lib/split/libmcastcoll-split.so
for file in "$program" "$library"; do [ -e "$file" ] || { echo "$ME: no $file: run util/build" >&2; exit 2; }; done
out=${out:-$BUILD/patterns}
rm -rf "$out/jobs"
mkdir -p "$out/jobs"
out=$(realpath "$out")
WAN=$wan GATEWAYS=1 GSO=on start_cluster 6 2
MCASTCOLL_SITES=$("$LAB/gateways" sites)
export MCASTCOLL_SITES SESSIONS=$sessions

for host in h{0..5}; do
    ip netns exec "$VC-$host" sysctl -qw "net.ipv4.tcp_congestion_control=$congestion" || { fail "no congestion control '$congestion' here"; finish; }
done

kernels_count() { # kernels_count HOST...: TCP counters of these hosts' kernels, as a JSON object
    local host
    for host in "$@"; do ip netns exec "$VC-$host" cat /proc/net/snmp /proc/net/netstat; done | awk '
        $1 != last { split($0, names); last = $1; next }
        { for (i = 2; i <= NF; i++) sum[names[i]] += $i; last = "" }
        END { printf "{\"retransmissions\": %d, \"timeouts\": %d, \"out_of_order\": %d, \"segments\": %d}", sum["RetransSegs"], sum["TCPTimeouts"],
            sum["TCPOFOQueue"], sum["OutSegs"] }'
}
gateways_say() { # the daemons' state of their sessions, as a JSON list
    if [ "$1" = gateway ]; then "$LAB/gateways" status --json | python3 -c 'import json, sys
text, at, found = sys.stdin.read(), 0, []
while text[at:].strip():
    one, end = json.JSONDecoder().raw_decode(text[at:].lstrip())
    at = len(text) - len(text[at:].lstrip()) + end
    found.append(one)
print(json.dumps(found))'; else echo '[]'; fi
}
snapshot() { # snapshot WAY FILE
    printf '{"hosts": %s, "gateways": %s, "sessions": %s}\n' "$(kernels_count h0 h1 h3 h4)" "$(kernels_count gw0 gw1)" "$(gateways_say "$1")" >"$2"
}
start_way() {
    local host forget=1
    [ "$1" != kept ] || forget=0
    for host in h{0..5}; do ip netns exec "$VC-$host" sysctl -qw net.ipv4.tcp_slow_start_after_idle=$forget; done
    case $1 in
        gateway) GATEWAY='' "$LAB/gateways" start ;;
        plain) GATEWAY="$BUILD/fabtests/split/split_check gateway" "$LAB/gateways" start ;;
    esac
}
job() { # job KERNEL WAY TRAFFIC ROUND
    local at=$out/jobs/$1.$2.$3.$4 code=0 with=() try
    [[ $2 =~ ^(direct|kept)$ ]] || with=(-x "LD_PRELOAD=$library" -x MCASTCOLL_SITES)
    start_way "$2" || { fail "the gateways do not start"; return; }
    [ "$3" = none ] || "$LAB/traffic" start h2 h5 --streams "$streams" --on "$on" --off "$off" --both ||
        { fail "no traffic"; return; }
    # Waiting ranks spin, and must not take the gateways' processor: the gateways have a machine of their own.
    for try in 1 2; do # launching may fail on a machine that stalls for a while
        code=0
        snapshot "$2" "$at.before"
        STACK=tcp bounded 280 "$LAB/run" -n $((4 * ranks)) -H h0,h1,h3,h4 --mca btl tcp,self ${with[@]+"${with[@]}"} nice -n 10 "$program" "$1" \
            --speed "$speed" ${iterations:+--iterations "$iterations"} --json "$at.job" >"$at.log" 2>&1 || code=$?
        snapshot "$2" "$at.after"
        [ $code != 0 ] && grep -qE 'ORTE does not know|no-path|firewall' "$at.log" && [ "$try" = 1 ] || break
    done
    "$LAB/traffic" stop
    [ ${#with[@]} = 0 ] || "$LAB/gateways" stop
    [ $code = 0 ] || { tail -n 12 "$at.log" | sed 's/^/     /'; fail "$1, $2, traffic $3: code $code"; }
}
for ((r = 1; r <= rounds; r++)); do
    for kernel in ${kernels//,/ }; do
        for t in ${traffic//,/ }; do
            for way in ${ways//,/ }; do job "$kernel" "$way" "$t" $r; done
            printf '[%4d s] round %d of %d, %s, traffic %s\n' "$SECONDS" $r "$rounds" "$kernel" "$t"
        done
    done
done
python3 "$(dirname "$0")/split_table.py" --jobs "$out/jobs" --out "$out/patterns" --about "two sites, $wan, 2 hosts of $ranks in each; hosts have $congestion; sessions: $sessions" ||
    fail "results differ, or there are none"
pass "the tables are $out/patterns.{csv,json}"
finish
