#!/bin/bash
# mpi_collectives.sh [options] -- all collectives that the component serves, at random, blocking and nonblocking, every
# result compared.
#
#   --hosts N        hosts of the cluster (default 4)
#   --ranks N        ranks per host of the cluster, and ranks of the job on this host alone (default 2, and 4)
#   --loss PERCENT   percentage of the multicast datagrams lost (default 5)
#   --count N        rounds of 1 to 8 random operations, sizes, datatypes, operators and subcommunicators (default 100)
#   --threads N      threads, with a communicator each (default 8)
#   --operations N   operations of all threads together (default 800)
#
# Runs on this host alone, through shared memory, and over the cluster: shared memory inside the hosts, multicast
# between them. Over the cluster it runs again with a selection that leaves nothing to Open MPI's own, then with
# threads, with Open MPI's own messages instead of the provider's, and with senders that block while other ranks need
# them. Before any loss, it checks the progress thread: the thread sleeps while the program polls, and while the program
# sleeps.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "$0")/common.sh"
hosts=4 ranks=2 loss=5 count=100 threads=8 operations=800
while [ $# -gt 0 ]; do
    case $1 in
        --help | -h) usage; exit 0 ;;
        --version) version; exit 0 ;;
        --hosts | --ranks | --loss | --count | --threads | --operations) [ $# -ge 2 ] || bad_usage "'$1' needs a value" ;;&
        --hosts) hosts=$2; shift 2 ;;
        --ranks) ranks=$2; shift 2 ;;
        --loss) loss=$2; shift 2 ;;
        --count) count=$2; shift 2 ;;
        --threads) threads=$2; shift 2 ;;
        --operations) operations=$2; shift 2 ;;
        *) bad_usage "'$1' is no option" ;;
    esac
done
[[ $hosts =~ ^[1-9][0-9]{0,2}$ ]] && ((hosts >= 2)) || bad_usage "--hosts '$hosts': give 2 or more"
[[ $ranks =~ ^[1-9][0-9]?$ ]] || bad_usage "--ranks '$ranks': give 1 to 99"
[[ $loss =~ ^[0-9]{1,2}$ ]] || bad_usage "--loss '$loss': give 0 to 99"
[[ $count =~ ^[1-9][0-9]{0,5}$ ]] || bad_usage "--count '$count': give a number"
[[ $threads =~ ^([1-9]|[1-5][0-9]|6[0-4])$ ]] || bad_usage "--threads '$threads': give 1 to 64"
[[ $operations =~ ^[1-9][0-9]{0,6}$ ]] || bad_usage "--operations '$operations': give a number"
can_cluster || finish
use_build
programs=$BUILD/fabtests/mpi
for program in mpi_blocked_send mpi_coll_check mpi_coll_threads mpi_progress_thread mpi_variables; do
    [ -x "$programs/$program" ] || { echo "$ME: no $programs/$program: run util/build" >&2; exit 2; }
done
start_cluster "$hosts"

judge() { # judge WHAT LOG CODE
    if [ "$3" = 0 ] && grep -q ' 0 bad\(;\|$\)' "$2" && grep -q 'coll/mcastcoll serves MPI' "$2"; then
        pass "$1: $(grep -o '[0-9]* checked, 0 bad' "$2")"
    else
        tail -n 20 "$2" | sed 's/^/     /'
        fail "$1: code $3$([ "$3" != 124 ] || echo ' (hung)')"
    fi
}
over_cluster() { # over_cluster SECONDS LOG OPTIONS AND PROGRAM...
    local seconds=$1 log=$2
    shift 2
    code=0
    STACK=mcastcoll bounded "$seconds" "$LAB/run" -n $((hosts * ranks)) --mca coll_mcastcoll_verbose 1 "$@" >"$work/$log" 2>&1 || code=$?
}
code=0
bounded 120 mpirun.openmpi --allow-run-as-root --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 -np $((2 * ranks)) \
    --mca coll_mcastcoll_verbose 1 "$programs/mpi_coll_check" --count "$count" --max 256K --seed 1 >"$work/alone" 2>&1 || code=$?
judge "$((2 * ranks)) ranks of this host" "$work/alone" $code
over_cluster 120 progress-thread "$programs/mpi_progress_thread"
judge "$hosts hosts of $ranks ranks, progress thread" "$work/progress-thread" $code
"$LAB/loss" "$loss" >/dev/null
where="$hosts hosts of $ranks ranks, $loss % lost"
over_cluster 240 cluster "$programs/mpi_coll_check" --count "$count" --max 64K --seed 2
judge "$where" "$work/cluster" $code
echo 'all * * * previous cm' >"$work/rule"
over_cluster 240 of-cm --mca coll_mcastcoll_selection "$work/rule" "$programs/mpi_coll_check" --count 5 --max 1K --seed 5
if [ $code = 0 ] && ! grep -q 'coll/mcastcoll serves' "$work/of-cm"; then pass "a rule for pml cm holds there"; else fail "a rule for pml cm does not hold there: code $code"; fi
over_cluster 240 of-ob1 --mca coll_mcastcoll_selection "$work/rule" --mca pml ob1 --mca btl tcp,self,vader "$programs/mpi_coll_check" --count 5 --max 1K --seed 5
judge "a rule for pml cm, with ob1" "$work/of-ob1" $code
echo 'all * * * here' >"$work/selection"
over_cluster 240 here --mca coll_mcastcoll_selection "$work/selection" "$programs/mpi_coll_check" --count "$count" --max 16K --seed 3
judge "$where, nothing left to others" "$work/here" $code
over_cluster $((240 + operations / 50)) threads "$programs/mpi_coll_threads" --threads "$threads" --count "$operations"
judge "$where, $threads threads" "$work/threads" $code
over_cluster 120 ob1 --mca pml ob1 --mca btl tcp,self,vader "$programs/mpi_coll_check" --count "$count" --max 64K --seed 4
judge "$where, Open MPI's own messages" "$work/ob1" $code
# Every variable of the component is a counter of the provider: its name must appear in the statistics.
FI_MCASTCOLL_STATS=$work/stats over_cluster 120 variables "$programs/mpi_variables"
unknown=$(comm -23 <(awk '$1 == "variable" { print $2 }' "$work/variables" | sort) <(cat "$work"/stats.*.json | sed -n 's/^ *"\([a-z_]*\)".*/\1/p' | sort -u))
[ -z "$unknown" ] || { echo "the provider has no $unknown" >>"$work/variables"; code=1; }
judge "$where, MPI's performance variables" "$work/variables" $code
"$LAB/loss" 50 >/dev/null
over_cluster 120 blocked "$programs/mpi_blocked_send"
judge "$hosts hosts of $ranks ranks, 50 % lost, senders that block" "$work/blocked" $code
for pml in cm ob1; do
    over_cluster 120 "outside-$pml" --mca pml $pml --mca btl tcp,self,vader "$programs/mpi_blocked_send" --board "$work/board-$pml"
    judge "the same, waiting outside MPI, pml $pml" "$work/outside-$pml" $code
done
finish
