#!/bin/bash
# split_speed.sh [options] -- half round trips and bandwidth of a plain TCP program, directly and through gateways.
#
#   --sizes B,B,..      bytes of the ping-pong (default 1,1024,16384; 0: none), --count N of each in a turn (default 400)
#   --connections N,..  of the stream (default 1,4; 0: none), --mbytes M in a turn (default 50)
#   --turns N           direct and through the gateways take turns (default 5)
#   --wan "DELAY_us RATE_mbit LOSS_pct"    the link (default "0 10000 0": as fast as the emulation is), or "none": a plain veth
#   --sessions LINES    of the sites file's [sessions], separated by commas (default "streams = 8")
#   --congestion NAME   of the hosts' TCP (default: the system's)
#   --gateway "OPTION.." of mcastcoll-gateway, such as --spin
#   --out DIR           folder for speed.json (default build/speed)
#
# One host in each of two sites; the programs sleep while they wait, as the gateways do.  A pair of gateways adds two
# daemons to the path.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "$0")/common.sh"
sizes=1,1024,16384 count=400 connections=1,4 mbytes=50 turns=5 wan="0 10000 0" sessions="streams = 8" congestion='' gateway='' out=''
while [ $# -gt 0 ]; do
    case $1 in
        --help | -h) usage; exit 0 ;;
        --version) version; exit 0 ;;
        --sizes | --count | --connections | --mbytes | --turns | --wan | --sessions | --congestion | --gateway | --out)
            [ $# -ge 2 ] && [ -n "$2" ] || bad_usage "'$1' needs a value"
            declare "${1#--}=$2"
            shift 2 ;;
        *) bad_usage "'$1' is no option" ;;
    esac
done
for name in count mbytes turns; do [[ ${!name} =~ ^[1-9][0-9]{0,5}$ ]] || bad_usage "--$name '${!name}': give a number"; done
for name in sizes connections; do [[ ${!name} =~ ^[0-9]{1,5}(,[0-9]{1,5})*$ ]] || bad_usage "--$name '${!name}': give numbers"; done
can_cluster || finish
use_build
flows=$BUILD/util/cluster/flows library=$BUILD/lib/split/libmcastcoll-split.so
for file in "$flows" "$library"; do [ -e "$file" ] || { echo "$ME: no $file: run util/build" >&2; exit 2; }; done
out=${out:-$BUILD/speed}
mkdir -p "$out"
WAN=$wan GATEWAYS=1 GSO=on start_cluster 2 2
MCASTCOLL_SITES=$("$LAB/gateways" sites)
export MCASTCOLL_SITES SESSIONS=$sessions
if [ -n "$congestion" ]; then
    for host in h0 h1; do
        ip netns exec "$VC-$host" sysctl -qw "net.ipv4.tcp_congestion_control=$congestion" || { fail "no congestion control '$congestion' here"; finish; }
    done
fi
# shellcheck disable=SC2086 # words
"$LAB/gateways" start $gateway || { fail "the gateways do not start"; finish; }
there=$(awk '$2 == "h1" { print $1 }' "/run/mcastcoll/$VC/hosts")
serve() { # serve PORT-OFFSET COMMAND...: echo and sink of one way
    ip netns exec "$VC-h1" "${@:2}" "$flows" echo $((6000 + $1)) </dev/null >"$work/echo.$1" 2>&1 &
    ip netns exec "$VC-h1" "${@:2}" "$flows" sink $((6010 + $1)) </dev/null >"$work/sink.$1" 2>&1 &
}
split=(env "LD_PRELOAD=$library")
serve 0
serve 1 "${split[@]}"
measure() { # measure WAY TURN FLOWS-ARGUMENT...: a line of JSON
    local with=() offset=0 what=$3 line port
    [ "$1" = direct ] || { with=("${split[@]}"); offset=1; }
    port=$((6000 + offset))
    [ "$what" = pingpong ] || port=$((6010 + offset))
    line=$(bounded 200 ip netns exec "$VC-h0" ${with[@]+"${with[@]}"} "$flows" "$what" "$there" $port "${@:4}" 2>"$work/errors") ||
        { cat "$work/errors"; fail "$*"; return; }
    echo "{\"way\": \"$1\", \"turn\": $2, \"what\": \"$what\", ${line#\{}" >>"$work/lines"
}
for ((t = 1; t <= turns; t++)); do
    ways=(direct gateway)
    ((t % 2)) || ways=(gateway direct)
    for size in ${sizes//,/ }; do
        ((size == 0)) || for way in "${ways[@]}"; do measure "$way" $t pingpong "$size" "$count"; done
    done
    for n in ${connections//,/ }; do
        ((n == 0)) || for way in "${ways[@]}"; do measure "$way" $t stream "$n" "$mbytes"; done
    done
    printf '[%4d s] turn %d of %d\n' "$SECONDS" $t "$turns"
done
about="link: $wan, hosts: ${congestion:-the congestion control of the system}, sessions: $sessions"
python3 - "$work/lines" "$out/speed.json" "$about" <<'END' || fail "there are no results"
import json
import statistics
import sys

rows = [json.loads(line) for line in open(sys.argv[1])]
print(sys.argv[3])
cells = []
for what, name, value in (("pingpong", "bytes", "median_us"), ("stream", "connections", "mbit_s")):
    for key in sorted({row[name] for row in rows if row["what"] == what}):
        turns = {}
        for row in rows:
            if row["what"] == what and row[name] == key:
                turns.setdefault(row["turn"], {})[row["way"]] = row[value]
        both = [turn for turn in turns.values() if len(turn) == 2]
        middle = {way: statistics.median(turn[way] for turn in both) for way in ("direct", "gateway")}
        cell = {"what": what, name: key, "turns": len(both), **middle}
        if what == "pingpong":
            cell["added_us"] = statistics.median(turn["gateway"] - turn["direct"] for turn in both)
            cell["least_added_us"] = min(turn["gateway"] for turn in both) - min(turn["direct"] for turn in both)
            print(f"half a round trip, {key:6} bytes: direct {middle['direct']:9.1f} us, through gateways {middle['gateway']:9.1f} us, "
                  f"added {cell['added_us']:7.1f} (between the best turns {cell['least_added_us']:.1f})")
        else:
            cell["ratio"] = statistics.median(turn["gateway"] / turn["direct"] for turn in both)
            print(f"bandwidth, {key:3} connections: direct {middle['direct']:9.1f} Mbit/s, through gateways {middle['gateway']:9.1f}, ratio {cell['ratio']:.3f}")
        cells.append(cell)
json.dump({"about": sys.argv[3], "cells": cells, "runs": rows}, open(sys.argv[2], "w"), indent=1)
END
pass "the figures are in $out/speed.json"
finish
