#!/bin/bash
# mpi_loss.sh [--hosts N] [--loss P,P,..] [--count N] [--max BYTES] [--seed N] [--pml cm|ob1] [--multicast 4|6]
#
# MPI broadcasts and barriers over a lossy cluster, every byte checked on every rank.  Per percentage P of lost
# multicast datagrams: COUNT broadcasts (default 1000) of mixed sizes up to BYTES (default 262144) from every root over
# N hosts (default 8). At 100 % the provider must fall back by itself.  Also checks that multicast carried the data
# where possible.
set -u
. "$(dirname "$0")/common.sh"
n=8 losses=0,5,20,100 count=1000 max=262144 seed=1 pml=cm ip=4
while [ $# -gt 0 ]; do
    case $1 in
        --help | -h) usage; exit 0 ;;
        --version) version; exit 0 ;;
        --hosts | --loss | --count | --max | --seed | --pml | --multicast) [ $# -ge 2 ] || bad_usage "'$1' needs a value" ;;&
        --hosts) n=$2; shift 2 ;;
        --loss) losses=$2; shift 2 ;;
        --count) count=$2; shift 2 ;;
        --max) max=$2; shift 2 ;;
        --seed) seed=$2; shift 2 ;;
        --pml) pml=$2; shift 2 ;;
        --multicast) ip=$2; shift 2 ;;
        *) bad_usage "'$1' is no option" ;;
    esac
done
can_cluster || finish
use_build
check=$BUILD/fabtests/mpi/mpi_bcast_check
[ -x "$check" ] || { echo "$ME: no $check: run util/build" >&2; exit 2; }
start_cluster "$n"
export FI_MCASTCOLL_EXPERIMENT=ip=$ip

for p in ${losses//,/ }; do
    what="$count broadcasts at $p % loss, $n hosts, pml $pml, IPv$ip"
    "$LAB/loss" "$p" || { fail "$what: the loss cannot be set"; continue; }
    start=$SECONDS
    STACK=mcastcoll bounded 110 "$LAB/run" --mca pml "$pml" "$check" --count "$count" --min 0 --max "$max" --seed "$seed" --roots all \
        >"$work/log" 2>&1
    code=$?
    matched=$(counted matched) dropped=$(counted dropped)
    tail -n 4 "$work/log" | sed 's/^/     /'
    if [ $code != 0 ]; then
        sed 's/^/     /' "$work/log" | tail -n 40
        fail "$what: code $code$([ $code != 124 ] || echo ' (hung)')"
        continue
    fi
    pass "$what: byte-exact in $((SECONDS - start)) s; hosts were sent $matched datagrams and lost $dropped"
    # Every broadcast has at least one datagram for each receiver, unless no receiver is reachable.
    if [ "$p" = 100 ]; then
        if [ "$matched" = "$dropped" ]; then pass "nothing came through at 100 %"; else fail "$((matched - dropped)) came through at 100 %"; fi
    elif ((matched >= count * (n - 1) / 2)); then
        pass "multicast carried them"
    else
        fail "only $matched datagrams for $count broadcasts to $((n - 1)) receivers: multicast was not used"
    fi
done
finish
