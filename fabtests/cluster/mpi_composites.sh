#!/bin/bash
# mpi_composites.sh -- a rank dies during operations that Open MPI composes of others: they never return success with
# wrong bytes.
#
# Three hosts, one rank each. Open MPI's own allgatherv, allgather, allreduce and reduce_scatter are selected so that
# each calls the communicator's gather, bcast, reduce and scatter, which mcastcoll serves. The launcher lets the job
# continue, and a rank dies before a barrier, through which the others detect the death, or before one of those
# operations. Also runs coll/han, which falls back to other components, below mcastcoll; fences of one-sided windows,
# which need Open MPI's own barrier; and communicators after a failed join.
set -u
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "$0")/common.sh"
# shellcheck source-path=SCRIPTDIR source=kill.sh
. "$(dirname "$0")/kill.sh"
case ${1:-} in
    '') ;;
    --help | -h) usage; exit 0 ;;
    --version) version; exit 0 ;;
    *) bad_usage "'$1' is no option" ;;
esac
can_cluster || finish
if command -v prterun >/dev/null; then
    skip "Open MPI 5's pml ob1 ends each process that has lost a connection to another"
    finish
fi
use_build
program=$BUILD/fabtests/mpi/mpi_composites
[ -x "$program" ] || { echo "$ME: no $program: run util/build" >&2; exit 2; }
start_cluster 3
all=3
basic=(--mca coll_tuned_use_dynamic_rules 1)
for one in allgatherv allgather allreduce reduce_scatter reduce_scatter_block; do basic+=(--mca "coll_tuned_${one}_algorithm" 1); done

# The script does not wait for the job's end: if errors are returned, Open MPI's launcher does not always detect it.
one() { # one WHAT WANTED OPTION...: WANTED other ranks must end with an error; where errors are fatal, one ends the job
    local what=$1 wanted=$2 t ended waiting least=$((all - 1))
    case " $* " in *' --fatal '*) least=0 ;; esac
    shift 2
    : >"$work/log"
    STACK=mcastcoll timeout -k 5 60 "$LAB/run" -n $all --mca pml ob1 "${outlive[@]}" "${basic[@]}" \
        --mca coll_mcastcoll_enable bcast,barrier,reduce,gather,scatter "$program" "$@" >"$work/log" 2>&1 &
    local job=$!
    for ((t = 0; t < 250; t++)); do
        ended=$(grep -c '^mpi_composites: rank [0-9]* ends' "$work/log")
        waiting=$(grep -c '^mpi_composites: rank [0-9]* waits' "$work/log")
        ((ended + waiting < all - 1)) && kill -0 $job 2>/dev/null || break
        sleep .2
    done
    kill $job 2>/dev/null
    wait $job 2>/dev/null
    if grep -q 'success,' "$work/log" || ((ended < wanted || ended + waiting < least)) || ! grep -qE "rank [0-9]+ (ends|waits)|MPI_ERR|signal 9" "$work/log"; then
        tail -n 20 "$work/log" | sed 's/^/     /'
        fail "$what: $ended ended by an error, $waiting wait"
    else
        pass "$what: $ended ended by an error, $waiting wait as without mcastcoll"
    fi
}
one "rank 0 dies before a barrier" 2 --victim 0
one "rank 0 dies before an uneven allgatherv" 0 --victim 0 --before 1
one "rank 2 dies before a barrier" 2 --victim 2
one "rank 2 dies before a reduce_scatter_block, errors are fatal" 0 --victim 2 --before 5 --fatal

# coll/han falls back to the communicator's other components if the hosts have different numbers of ranks.
STACK=mcastcoll bounded 60 "$LAB/run" -n 5 --mca pml ob1 --mca coll_han_priority 80 --mca coll_mcastcoll_verbose 1 "$BUILD/fabtests/mpi/mpi_coll_check" \
    --count 3 --max 4K --seed 1 >"$work/log" 2>&1
code=$?
if [ $code = 0 ] && grep -q ' 0 bad$' "$work/log" && grep -q 'coll/mcastcoll serves MPI_COMM_WORLD' "$work/log"; then
    pass "coll/han below: $(grep -o '[0-9]* checked, 0 bad' "$work/log")"
else
    tail -n 20 "$work/log" | sed 's/^/     /'
    fail "coll/han below: code $code"
fi

# A window's fence is a barrier that must complete after the puts, on osc/rdma over btl/ofi at least. Open MPI's own
# barrier is too early in one of some thousands of fences.
STACK=none bounded 60 "$LAB/run" -n $all --mca pml ob1 --mca btl ^openib --mca osc rdma,sm --mca coll_mcastcoll_verbose 1 \
    "$BUILD/fabtests/mpi/mpi_windows" >"$work/log" 2>&1
code=$?
early=$(sed -n 's/^mpi_windows: .* fences, \([0-9]*\) early$/\1/p' "$work/log")
if [ $code = 0 ] && [ "${early:-1000}" -lt 45 ] && grep -q "leaves .* to Open MPI's own collectives: it belongs to a window" "$work/log" &&
    grep -q 'coll/mcastcoll serves MPI_COMM_WORLD' "$work/log"; then
    pass "one-sided: $(grep '^mpi_windows' "$work/log")"
else
    tail -n 20 "$work/log" | sed 's/^/     /'
    fail "one-sided: code $code, ${early:-no} early"
fi

# A firewall that drops the datagrams of joins: the first communicator detects this, and the others begin no join.
for host in 0 1 2; do
    ip netns exec "$VC-h$host" nft -f - <<END
table inet t { chain c { type filter hook input priority 0; iif lo accept; meta l4proto udp drop; }; }
END
done
STACK=none bounded 60 "$LAB/run" -n $all --mca pml ob1 --mca coll_mcastcoll_verbose 1 --mca coll_mcastcoll_join_timeout 1000 \
    "$BUILD/fabtests/mpi/mpi_short_lived" --count 5 >"$work/log" 2>&1
code=$?
failures=$(grep -c 'leaves communicator .* failed on rank' "$work/log") rests=$(grep -c 'postpones further joins' "$work/log")
if [ $code = 0 ] && [ "$failures $rests" = '1 5' ]; then
    pass "a join that fails: $(grep -o '[0-9.]* us each' "$work/log") for the 5 communicators after it"
else
    tail -n 20 "$work/log" | sed 's/^/     /'
    fail "a join that fails: code $code, $failures of 1 fail, $rests of 5 begin none"
fi
finish
