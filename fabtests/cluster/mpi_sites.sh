#!/bin/bash
# mpi_sites.sh [options] -- broadcast, barrier and allreduce between sites with long links: three ways compared.
#
#   --hosts N           hosts (default 6)
#   --sites S,S,..      numbers of sites, one after the other (default 2,3); A+B+..: sites of A, B, .. hosts
#   --ranks N           on each host (default 2)
#   --stacks S,S,..     tuned: Open MPI's binomial tree, which ignores places; han: Open MPI's two levels, by host;
#                       mcastcoll: ours (default all three).  All send between hosts by TCP and inside a host by memory (pml ob1)
#   --operations O,O,.. bcast, barrier, allreduce (default all)
#   --sizes S,S,..      bytes, with K or M (default 8,64K,1M)
#   --iterations N      of each that are timed (default 60), fewer of the long ones
#   --counted N         operations per root whose crossings are counted (default 20), fewer of the long ones
#   --rounds R          jobs of each kind (default 3)
#   --wan "DELAY_us RATE_mbit LOSS_pct"   each link between sites (default "5000 1000 0")
#   --mesh              a link between each two sites; otherwise all are linked to site 0
#   --strict            fail if ours crosses more often than once from site to site, or leaves the job to Open MPI
#   --out DIR           folder for sites.csv, .json and .svg (default build/sites)
#
# Times are medians over the rounds of the medians of a job, from the root's entry until the last rank's end, every rank
# being the root in turn.  The links themselves count crossings (util/cluster/crossings): the payload of a job that
# repeats an operation, every rank being the root equally often, minus that of a job with one operation, which excludes
# launching.  Crossings are given per operation, both directions of the busiest link together: in message sizes, or,
# below 4 KiB, in packets with payload.  Allowed is one message from the root's site to each other one (allreduce and
# barrier: and back), over the links on the way.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "$0")/common.sh"
hosts=6 sites=2,3 ranks=2 stacks=tuned,han,mcastcoll operations=bcast,barrier,allreduce sizes=8,64K,1M iterations=60 counted=20 rounds=3
wan="5000 1000 0" mesh=0 strict='' out='' given_back=''
while [ $# -gt 0 ]; do
    case $1 in
        --help | -h) usage; exit 0 ;;
        --version) version; exit 0 ;;
        --mesh) mesh=1; shift ;;
        --strict) strict=--strict; shift ;;
        --hosts | --sites | --ranks | --stacks | --operations | --sizes | --iterations | --counted | --rounds | --wan | --out)
            [ $# -ge 2 ] && [ -n "$2" ] || bad_usage "'$1' needs a value" ;;&
        --hosts) hosts=$2; shift 2 ;;
        --sites) sites=$2; shift 2 ;;
        --ranks) ranks=$2; shift 2 ;;
        --stacks) stacks=$2; shift 2 ;;
        --operations) operations=$2; shift 2 ;;
        --sizes) sizes=$2; shift 2 ;;
        --iterations) iterations=$2; shift 2 ;;
        --counted) counted=$2; shift 2 ;;
        --rounds) rounds=$2; shift 2 ;;
        --wan) wan=$2; shift 2 ;;
        --out) out=$2; shift 2 ;;
        *) bad_usage "'$1' is no option" ;;
    esac
done
each_is() { # each_is OPTION WORDS PATTERN WANTED
    local word
    for word in ${2//,/ }; do [[ $word =~ ^($3)$ ]] || bad_usage "--$1 '$word': give $4"; done
}
each_is hosts "$hosts" '[1-9][0-9]{0,2}' "a number of hosts"
each_is sites "$sites" '[1-9][0-9]?(\+[1-9][0-9]?)*' "numbers of sites, or hosts of each site like 4+2"
each_is ranks "$ranks" '[1-9][0-9]?' "a number of ranks"
each_is stacks "$stacks" 'tuned|han|mcastcoll' "tuned, han or mcastcoll"
each_is operations "$operations" 'bcast|barrier|allreduce' "bcast, barrier or allreduce"
each_is sizes "$sizes" '[0-9]{1,9}[KM]?' "bytes, with K or M"
each_is iterations "$iterations" '[1-9][0-9]{0,5}' "a number"
each_is counted "$counted" '[1-9][0-9]{0,2}' "a number"
each_is rounds "$rounds" '[1-9][0-9]{0,2}' "a number"
can_cluster || finish
use_build
program=$BUILD/fabtests/mpi/mpi_bcast_time
[ -x "$program" ] || { echo "$ME: no $program: run util/build" >&2; exit 2; }
out=${out:-$BUILD/sites}
rm -rf "$out/jobs"
mkdir -p "$out/jobs"
out=$(realpath "$out")
all=$((hosts * ranks))

# Only the provider's log has the reason why a group failed.
export FI_LOG_LEVEL=${FI_LOG_LEVEL:-warn} FI_LOG_PROV=${FI_LOG_PROV:-mcastcoll}

show_ends() { # show_ends LOG: prints the beginning, with the first failure, and the end, with its consequences
    local lines; lines=$(wc -l <"$1")
    if [ "$lines" -le 80 ]; then cat "$1"; else head -n 50 "$1"; echo "... $((lines - 80)) lines more: $1"; tail -n 30 "$1"; fi | sed 's/^/     /'
}
job() { # job STACK LOG OPTION...: mpi_bcast_time over all ranks
    local stack=$1 log=$2 code=0 mca=()
    shift 2
    case $stack in
        tuned) mca=(--mca coll '^mcastcoll,han' --mca coll_tuned_use_dynamic_rules 1 --mca coll_tuned_bcast_algorithm 6) ;;
        han) mca=(--mca coll '^mcastcoll' --mca coll_han_priority 90) ;;
    esac
    STACK=$([ "$stack" = mcastcoll ] && echo mcastcoll || echo tcp) bounded 240 "$LAB/run" -n $all --mca pml ob1 ${mca[@]+"${mca[@]}"} \
        "$program" "$@" >"$log" 2>&1 || code=$?
    # A communicator given back by our component is served by Open MPI: its figures would be compared with themselves.
    [ "$stack" != mcastcoll ] || [ -n "$given_back" ] || given_back=$(grep -m1 'leaves communicator' "$log" || :)
    [ $code = 0 ] && return
    show_ends "$log"
    fail "$stack $*: code $code$([ $code != 124 ] || echo ' (hung)')"
}
count_crossings() { # count_crossings PREFIX STACK OPERATION SIZE TIMES
    "$LAB/crossings" reset
    job "$2" "$1.$5.log" --bare --operations "$3" --sizes "$4" --root rotate --byte-budget 1G --iterations "$5"
    "$LAB/crossings" --json >"$1.$5.json"
}
sites_of() { # sites_of SITES: all jobs on a cluster of SITES sites
    local r stack operation size at times
    for ((r = 1; r <= rounds; r++)); do
        for stack in ${stacks//,/ }; do
            job "$stack" "$out/jobs/time.$1.$stack.$r.log" --operations "$operations" --sizes "$sizes" --root rotate --byte-budget 16M \
                --iterations "$iterations" --json "$out/jobs/time.$1.$stack.$r.json"
            printf '[%4d s] sites %s, round %d of %d, %s: timed\n' "$SECONDS" "$1" "$r" "$rounds" "$stack"
        done
    done
    for stack in ${stacks//,/ }; do
        for operation in ${operations//,/ }; do
            for size in ${sizes//,/ }; do
                [ "$operation" != barrier ] || size=0
                at=$out/jobs/cross.$1.$stack.$operation.$size
                [ ! -e "$at.1.json" ] || continue
                times=$(((64 << 20) / (all * ($(numfmt --from=iec "$size") + 1))))
                times=$((times < 1 ? 1 : times > counted ? counted : times))
                count_crossings "$at" "$stack" "$operation" "$size" 1
                count_crossings "$at" "$stack" "$operation" "$size" $((times * all + 1))
            done
        done
        printf '[%4d s] sites %s, %s: crossings counted\n' "$SECONDS" "$1" "$stack"
    done
}
for s in ${sites//,/ }; do
    WAN=$wan MESH=$mesh GSO=on start_cluster "$hosts" "${s//+/,}"
    sites_of "$s"
    "$LAB/down"
    rm -rf "$work"
done
[ "$failed" = 0 ] || finish
python3 "$(dirname "$0")/sites_table.py" --jobs "$out/jobs" --hosts "$hosts" --ranks "$ranks" --sites "$sites" --stacks "$stacks" --wan "$wan" \
    --mesh $mesh --rounds "$rounds" --cores "$(nproc)" --out "$out/sites" $strict || fail "ours crosses a link more often than once"
if [ -n "$given_back" ]; then
    say "mcastcoll did not do it itself: $given_back"
    if [ -n "$strict" ]; then fail "ours is not ours"; else skip "ours is not ours"; fi
fi
if command -v gnuplot >/dev/null; then "$TOP/util/plot" "$out/sites.json" "$out/sites.svg" && say "figure: $out/sites.svg"; fi
pass "the tables are $out/sites.{csv,json}"
finish
