#!/bin/bash
# mpi_policies.sh [options] -- every repair policy at every loss, on real hosts: the best policy of each case, and
# auto's choice.
#
#   --hosts N,N,..     hosts, one rank on each (default 8,16)
#   --losses P,P,..    percentages of the multicast datagrams that each host loses (default 0,1,5,20)
#   --kinds K,K,..     random, burst: single losses, or bursts of 5 on average (default random,burst); burst:N: bursts of N
#   --policies P,P,..  push, pull, sync, auto (default: those that this build has)
#   --sizes S,S,..     bytes of the broadcasts, with K or M (default 8,64K)
#   --count N          measured broadcasts in one job (default 300), a third of that above 8 KiB
#   --rounds R         jobs of each kind (default 3)
#   --root N|rotate    the broadcasting rank (default rotate)
#   --env NAME=VALUE   further environment of every rank; may be repeated
#   --out DIR          folder for policies.csv, .json, .md and .svg (default build/policies)
#
# In each round every policy runs one job, one after the other, so that other load on this machine affects all alike.
# Every byte of the timed broadcasts is checked on every rank.  The kernel of the receiving host loses the datagrams,
# single ones, since the links have no offloads here.  Messages and datagrams per broadcast are those of a whole job
# minus those of a job with a single broadcast, which excludes joining and leaving but not checkpoints.  The whole
# matrix takes a quarter of an hour on two cores.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "$0")/common.sh"
hosts=8,16 losses=0,1,5,20 kinds=random,burst policies='' sizes=8,64K count=300 rounds=3 root=rotate out='' extra=()
while [ $# -gt 0 ]; do
    case $1 in
        --help | -h) usage; exit 0 ;;
        --version) version; exit 0 ;;
        --hosts | --losses | --kinds | --policies | --sizes | --count | --rounds | --root | --env | --out)
            [ $# -ge 2 ] && [ -n "$2" ] || bad_usage "'$1' needs a value" ;;&
        --hosts) hosts=$2; shift 2 ;;
        --losses) losses=$2; shift 2 ;;
        --kinds) kinds=$2; shift 2 ;;
        --policies) policies=$2; shift 2 ;;
        --sizes) sizes=$2; shift 2 ;;
        --count) count=$2; shift 2 ;;
        --rounds) rounds=$2; shift 2 ;;
        --root) root=$2; shift 2 ;;
        --env) extra+=("$2"); shift 2 ;;
        --out) out=$2; shift 2 ;;
        *) bad_usage "'$1' is no option" ;;
    esac
done
each_is() { # each_is OPTION WORDS PATTERN WANTED
    local word
    for word in ${2//,/ }; do [[ $word =~ ^($3)$ ]] || bad_usage "--$1 '$word': give $4"; done
}
each_is hosts "$hosts" '[1-9][0-9]{0,2}' "numbers of hosts"
each_is losses "$losses" '[0-9]+(\.[0-9]+)?' "percentages"
each_is kinds "$kinds" 'random|burst(:[0-9]+(\.[0-9]+)?)?' "random, burst or burst:LENGTH"
each_is policies "$policies" 'push|pull|sync|auto' "push, pull, sync or auto"
each_is sizes "$sizes" '[0-9]{1,9}[KM]?' "bytes, with K or M"
each_is count "$count" '[1-9][0-9]{0,5}' "a number"
each_is rounds "$rounds" '[1-9][0-9]{0,2}' "a number"
each_is root "$root" '[0-9]+|rotate' "a rank or rotate"
for e in ${extra[@]+"${extra[@]}"}; do [[ $e =~ ^[A-Za-z_][A-Za-z0-9_]*=.*$ ]] || bad_usage "--env '$e': give NAME=VALUE"; done
can_cluster || finish
use_build
for e in ${extra[@]+"${extra[@]}"}; do export "${e?}"; done
ranks=$BUILD/fabtests/mpi/mpi_bcast_ranks
[ -x "$ranks" ] || { echo "$ME: no $ranks: run util/build" >&2; exit 2; }
out=${out:-$BUILD/policies}
rm -rf "$out/jobs"
mkdir -p "$out/jobs"
out=$(realpath "$out")

# A provider that does not have a policy refuses to start.
knows() { FI_PROVIDER=mcastcoll FI_MCASTCOLL_EXPERIMENT=repair=$1 fi_info -p mcastcoll >/dev/null 2>&1; }
if [ -z "$policies" ]; then
    for p in push pull sync auto; do if knows $p; then policies+=,$p; else skip "this build knows no $p"; fi; done
    policies=${policies#,}
fi
# Without loss there is only one kind.
cells=()
for p in ${losses//,/ }; do
    for k in ${kinds//,/ }; do
        [[ $p =~ ^0+(\.0+)?$ ]] && k=none
        [[ " ${cells[*]-} " == *" $p@$k "* ]] || cells+=("$p@$k")
    done
done

count_of() { # count_of SIZE
    local bytes
    bytes=$(numfmt --from=iec "$1")
    echo $((bytes > 8192 && count > 3 ? count / 3 : count))
}
job() { # job PREFIX POLICY SIZE COUNT WARMUP
    local code=0
    rm -f "$1".*
    # Between the broadcasts Open MPI's barrier is used: ours would be counted, and a lost datagram of it charged to the
    # next broadcast.
    STACK=mcastcoll FI_MCASTCOLL_EXPERIMENT=${FI_MCASTCOLL_EXPERIMENT:+$FI_MCASTCOLL_EXPERIMENT,}repair=$2 FI_MCASTCOLL_STATS=$1.stats bounded 120 "$LAB/run" --mca coll_mcastcoll_enable bcast \
        "$ranks" --size "$3" --count "$4" --warmup "$5" --root "$root" --json "$1.json" >"$1.log" 2>&1 || code=$?
    [ $code = 0 ] && return
    tail -n 20 "$1.log" | sed 's/^/     /'
    fail "$(basename "$1"): code $code$([ $code != 124 ] || echo ' (hung)')"
}
jobs_of_hosts() { # jobs_of_hosts HOSTS: all jobs on a cluster of HOSTS hosts
    local r cell kind size p done=0 all
    for p in ${policies//,/ }; do
        for size in ${sizes//,/ }; do job "$work/base.$1.$size.$p" "$p" "$size" 1 0; done
    done
    all=$((rounds * ${#cells[@]} * $(wc -w <<<"${sizes//,/ }")))
    for ((r = 1; r <= rounds; r++)); do
        for cell in "${cells[@]}"; do
            for size in ${sizes//,/ }; do
                for p in ${policies//,/ }; do
                    # The same seed for all policies, so that each host has the same bursts; the counters start again.
                    kind=${cell#*@}
                    SEED=$r "$LAB/loss" "${cell%@*}" "${kind/none/random}"
                    job "$work/run.$1.$size.$cell.$p.$r" "$p" "$size" "$(count_of "$size")" 10
                    "$LAB/loss" show --json >"$work/run.$1.$size.$cell.$p.$r.loss"
                done
                done=$((done + 1))
                printf '[%4d s] %d hosts, round %d of %d, %s %% %s, %s B: %d of %d\n' "$SECONDS" "$1" "$r" "$rounds" "${cell%@*}" "${cell#*@}" \
                    "$size" "$done" "$all"
            done
        done
    done
}
for n in ${hosts//,/ }; do
    GSO=off start_cluster "$n" # the work folder is new, and its results are collected before the next cluster
    jobs_of_hosts "$n"
    cp "$work"/run.* "$work"/base.* "$out/jobs/"
    "$LAB/down"
    rm -rf "$work"
done
[ "$failed" = 0 ] || finish
python3 "$(dirname "$0")/policies_table.py" --jobs "$out/jobs" --hosts "$hosts" --sizes "$sizes" --cells "${cells[*]}" --policies "$policies" \
    --rounds "$rounds" --cores "$(nproc)" --root "$root" --out "$out/policies"
if command -v gnuplot >/dev/null; then "$TOP/util/plot" "$out/policies.json" "$out/policies.svg" && say "figure: $out/policies.svg"; fi
pass "all policies byte-exact at all losses; the tables are $out/policies.{md,csv,json}"
finish
