#!/bin/bash
# mpi_levels.sh [options] -- hosts with several ranks each: a broadcast crosses the network once, and enters each host
# once.
#
#   --hosts N          hosts of the cluster (default 4)
#   --ranks N          ranks per host (default 2)
#   --sizes S,S,..     bytes of the broadcasts, with K or M (default 8,64K)
#   --roots R,R,..     broadcasting ranks (default 0,1: a leader, and its neighbour on the host)
#   --count N          broadcasts that are counted (default 100)
#   --copies host|rank expected copies of each datagram: one per host (default), or one per rank, as without levels
#   --env NAME=VALUE   further environment of every rank; may be repeated
#
# Two independent sources count: the provider (FI_MCASTCOLL_STATS) and the kernels of the hosts (IpExt.InMcastPkts:
# packets that arrived at a host; Udp.InDatagrams: datagrams that sockets received).  The cost of a broadcast is the
# difference between a job with COUNT + 1 and one with a single broadcast, which excludes the cost of joining and
# leaving.  Every byte is checked on every rank.  With FI_LOG_LEVEL=info the provider logs the length of its fragments.
# FI_MCASTCOLL_TOPOLOGY=flat with "--copies rank" proves that the check distinguishes the two cases.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "$0")/common.sh"
hosts=4 ranks=2 sizes=8,64K roots=0,1 count=100 copies=host extra=()
while [ $# -gt 0 ]; do
    case $1 in
        --help | -h) usage; exit 0 ;;
        --version) version; exit 0 ;;
        --hosts | --ranks | --sizes | --roots | --count | --copies | --env) [ $# -ge 2 ] || bad_usage "'$1' needs a value" ;;&
        --hosts) hosts=$2; shift 2 ;;
        --ranks) ranks=$2; shift 2 ;;
        --sizes) sizes=$2; shift 2 ;;
        --roots) roots=$2; shift 2 ;;
        --count) count=$2; shift 2 ;;
        --copies) copies=$2; shift 2 ;;
        --env) extra+=("$2"); shift 2 ;;
        *) bad_usage "'$1' is no option" ;;
    esac
done
[[ $hosts =~ ^[1-9][0-9]{0,2}$ ]] && ((hosts >= 2)) || bad_usage "--hosts '$hosts': give 2 or more"
[[ $ranks =~ ^[1-9][0-9]?$ ]] || bad_usage "--ranks '$ranks': give 1 to 99"
[[ $sizes =~ ^[1-9][0-9]{0,8}[KM]?(,[1-9][0-9]{0,8}[KM]?)*$ ]] || bad_usage "--sizes '$sizes': give bytes, with K or M"
[[ $count =~ ^[1-9][0-9]{0,5}$ ]] || bad_usage "--count '$count': give a number"
case $copies in host | rank) ;; *) bad_usage "--copies '$copies': give host or rank" ;; esac
for r in ${roots//,/ }; do
    [[ $r =~ ^[0-9]{1,4}$ ]] && ((r < hosts * ranks)) || bad_usage "--roots '$r': give ranks below $((hosts * ranks))"
done
for e in ${extra[@]+"${extra[@]}"}; do [[ $e =~ ^[A-Za-z_][A-Za-z0-9_]*=.*$ ]] || bad_usage "--env '$e': give NAME=VALUE"; done
can_cluster || finish
use_build
for e in ${extra[@]+"${extra[@]}"}; do export "${e?}"; done
program=$BUILD/fabtests/mpi/mpi_bcast_ranks
[ -x "$program" ] || { echo "$ME: no $program: run util/build" >&2; exit 2; }
start_cluster "$hosts"
# The counters are those of IPv4.  Between the broadcasts Open MPI's barrier is used, because ours would be counted.
export FI_MCASTCOLL_EXPERIMENT=${FI_MCASTCOLL_EXPERIMENT:+$FI_MCASTCOLL_EXPERIMENT,}ip=4 FI_LOG_LEVEL=info FI_LOG_PROV=mcastcoll

kernels() { # kernels FOLDER: stores the counters of all hosts
    local h
    for ((h = 0; h < hosts; h++)); do ip netns exec "$VC-h$h" cat /proc/net/netstat /proc/net/snmp >"$1.h$h"; done
}
job() { # job FOLDER COUNT SIZE ROOT
    local code=0
    mkdir -p "$1"
    kernels "$1/before"
    STACK=mcastcoll FI_MCASTCOLL_STATS=$1/stats bounded 120 "$LAB/run" -n $((hosts * ranks)) --mca coll_mcastcoll_enable bcast \
        "$program" --size "$3" --count "$2" --warmup 0 --root "$4" --json "$1/result.json" >"$1/log" 2>&1 || code=$?
    kernels "$1/after"
    [ $code != 0 ] || return 0
    tail -n 20 "$1/log" | sed 's/^/     /'
    fail "a job of $2 broadcasts of $3 B from rank $4: code $code$([ $code != 124 ] || echo ' (hung)')"
    return 1
}
for size in ${sizes//,/ }; do
    for root in ${roots//,/ }; do
        folder=$work/$size.$root
        job "$folder/short" 1 "$size" "$root" && job "$folder/long" $((count + 1)) "$size" "$root" || continue
        say "     $size B from rank $root, $hosts hosts of $ranks ranks"
        code=0
        python3 "$(dirname "$0")/levels_check.py" "$folder" --ranks "$ranks" --root-host $((root / ranks)) --copies "$copies" \
            >"$folder/result" || code=$?
        cat "$folder/result"
        # Counts the lines of the result; an error of the evaluation itself is a failure.
        passed=$((passed + $(grep -c '^ok ' "$folder/result" || :))) failed=$((failed + $(grep -c '^FAIL ' "$folder/result" || :)))
        [ $code = 0 ] || fail "$size B from rank $root: the counters could not be judged"
    done
done
finish
