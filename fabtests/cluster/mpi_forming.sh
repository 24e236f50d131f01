#!/bin/bash
# mpi_forming.sh -- which communicators get a group, and how the groups form.
#
# The component's own calls while a group forms must not call the component again, and calls that Open MPI starts by
# itself must not interfere. A communicator used once gets no group. A stopped rank delays the group, a dead rank costs
# the others a limited time. Runs on this host alone.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "$0")/common.sh"
# shellcheck source-path=SCRIPTDIR source=kill.sh
. "$(dirname "$0")/kill.sh"
while [ $# -gt 0 ]; do
    case $1 in
        --help | -h) usage; exit 0 ;;
        --version) version; exit 0 ;;
        *) bad_usage "'$1' is no option" ;;
    esac
done
command -v mpirun.openmpi >/dev/null || { skip "needs Open MPI: run util/install-deps"; finish; }
use_build
programs=$BUILD/fabtests/mpi
for program in mpi_bcast_check mpi_coll_check mpi_forming_fault mpi_idup mpi_many_nonblocking mpi_short_lived; do
    [ -x "$programs/$program" ] || { echo "$ME: no $programs/$program: run util/build" >&2; exit 2; }
done
work=$(mktemp -d)
on_exit 'rm -rf "$work"'

on_host() { # on_host RANKS SECONDS LOG OPTIONS AND PROGRAM...; sets code
    local ranks=$1 seconds=$2 log=$3
    shift 3
    code=0
    bounded "$seconds" mpirun.openmpi --allow-run-as-root --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 -np "$ranks" \
        "$@" >"$work/$log" 2>&1 || code=$?
}
judge() { # judge WHAT LOG: no errors, and served
    if [ "$code" = 0 ] && grep -q ' 0 bad$' "$work/$2" && grep -q 'coll/mcastcoll serves MPI' "$work/$2"; then
        pass "$1: $(grep -o '[0-9]* checked, 0 bad' "$work/$2")"
    else
        tail -n 20 "$work/$2" | sed 's/^/     /'
        fail "$1: code $code$([ "$code" != 124 ] || echo ' (hung)')"
    fi
}

loaded_in() { grep -o 'libfabric loaded in [0-9]*$' "$work/$1" || echo "$1 does not say"; } # loaded_in LOG

# Algorithm 2 composes an allreduce of the communicator's own reduce and broadcast; by default only jobs with many ranks
# use it.
on_host 4 120 nested --mca coll_mcastcoll_verbose 1 --mca coll_tuned_use_dynamic_rules 1 --mca coll_tuned_allreduce_algorithm 2 \
    "$programs/mpi_coll_check" --count 20 --max 4K --seed 1
judge "4 ranks, whose previous allreduce is made of collectives" nested

on_host 6 120 idup --mca coll_mcastcoll_verbose 1 "$programs/mpi_idup"
judge "6 ranks, several MPI_Comm_idup under way" idup

on_host 3 120 tags --mca coll_mcastcoll_verbose 1 "$programs/mpi_many_nonblocking"
judge "3 ranks, after 30,000 non-blocking collectives" tags

# A communicator used once gets no group, and costs nothing extra. Open MPI 5 loads libfabric by itself.
on_host 4 120 without_us --mca coll ^mcastcoll "$programs/mpi_short_lived"
on_host 4 120 once --mca coll_mcastcoll_verbose 1 --mca coll_mcastcoll_form_after 100 "$programs/mpi_short_lived"
if [ "$code" = 0 ] && [ "$(loaded_in once)" = "$(loaded_in without_us)" ] && ! grep -q 'coll/mcastcoll serves' "$work/once"; then
    pass "communicators that are used once: $(grep -o '[0-9.]* us each' "$work/once")"
else
    tail -n 3 "$work/once" | sed 's/^/     /'
    fail "communicators that are used once: code $code, $(grep -c 'coll/mcastcoll serves' "$work/once") groups"
fi

# Open MPI's messages carry the group's secret, which rank 0 draws, to the other ranks.
on_host 4 120 secret --mca pml ob1 --mca btl tcp,self --mca btl_tcp_if_include lo --mca coll_mcastcoll_experiment single_host=1 \
    --mca coll_mcastcoll_verbose 1 -x "LD_PRELOAD=$LISTENER" "$programs/mpi_coll_check" --count 10 --max 4K --seed 1
judge "4 ranks, listened to" secret
judge_listener "4 ranks" "$work/secret"
# If the secret is changed on its way, the group does not form, and the job continues.
on_host 4 120 changed --mca pml ob1 --mca btl tcp,self --mca btl_tcp_if_include lo --mca coll_mcastcoll_experiment single_host=1 \
    --mca coll_mcastcoll_verbose 1 -x "LD_PRELOAD=$LISTENER" -x LISTENER_CHANGES=1 "$programs/mpi_coll_check" --count 10 --max 4K --seed 1
if [ "$code" = 0 ] && grep -q ' 0 bad$' "$work/changed" && grep -q 'leaves communicator MPI_COMM_WORLD.*Key was rejected' "$work/changed" &&
    ! grep -q 'coll/mcastcoll serves MPI' "$work/changed"; then
    pass "a changed secret is refused: $(grep -o '[0-9]* checked, 0 bad' "$work/changed")"
else
    tail -n 5 "$work/changed" | sed 's/^/     /'
    fail "a changed secret: code $code"
fi

# Long collectives count as several: 128 KiB counts as nine.
on_host 4 120 counted --mca coll_mcastcoll_verbose 1 --mca coll_mcastcoll_form_after 20 "$programs/mpi_bcast_check" --count 3 --min 128K --max 128K
if [ "$code" = 0 ] && grep -q 'coll/mcastcoll serves MPI_COMM_WORLD' "$work/counted"; then
    pass "long collectives count as several"
else
    tail -n 3 "$work/counted" | sed 's/^/     /'
    fail "long collectives count as several: code $code"
fi

# An unknown operation is named, and Open MPI serves the whole job; an excluded operation is not served.
on_host 3 120 unknown --mca coll_mcastcoll_enable bcast,broom "$programs/mpi_coll_check" --count 2 --max 1K --seed 1
if [ "$code" = 0 ] && grep -q "'broom' is none of all, none, bcast, barrier" "$work/unknown" && grep -q ' 0 bad$' "$work/unknown"; then
    pass "an unknown operation is named"
else
    tail -n 3 "$work/unknown" | sed 's/^/     /'
    fail "an unknown operation: code $code"
fi
on_host 3 120 without --mca coll_mcastcoll_enable ^bcast --mca coll_mcastcoll_verbose 1 "$programs/mpi_coll_check" --count 2 --max 1K --seed 1
judge "all operations but one" without

# A job with a value of each parameter and of each key, and jobs with wrong values and former names.
on_host 3 120 every --mca coll_mcastcoll_priority 91 --mca coll_mcastcoll_form_after 1 --mca coll_mcastcoll_min_comm_size 2 --mca coll_mcastcoll_enable all \
    --mca coll_mcastcoll_join_timeout 60000 --mca coll_mcastcoll_progress_thread 0 --mca coll_mcastcoll_verbose 1 --mca coll_mcastcoll_experiment \
    provider=mcastcoll,single_host=1,bcast_min_message=16,max_message=1M,segment=4K,nonblocking=0,reduce_scatter_small=8K,disable_on_error=1,linger=100,eager_progress=1 \
    "$programs/mpi_coll_check" --count 5 --max 16K --seed 1
judge "a value of each parameter and of each key" every
wrong() { # wrong TEXT PARAMETER VALUE: Open MPI serves the job, and the reason has TEXT
    on_host 2 60 wrong --mca "coll_mcastcoll_$2" "$3" "$programs/mpi_coll_check" --count 1 --max 1K --seed 1
    if [ "$code" = 0 ] && grep -q "is off, .*$1" "$work/wrong" && grep -q ' 0 bad$' "$work/wrong"; then
        pass "$2 $3 is refused"
    else
        tail -n 3 "$work/wrong" | sed 's/^/     /'
        fail "$2 $3: code $code"
    fi
}
wrong 'coll_mcastcoll_experiment: segment=63: give a number from 64' experiment segment=63
wrong "'segments=64' is not KEY=VALUE with a key of provider, single_host" experiment linger=0,segments=64
wrong 'set coll_mcastcoll_experiment to linger=100' linger 100
wrong 'coll_mcastcoll_form_after is -1, but must not be negative' form_after -1

# If few descriptors are left, Open MPI gets all of them, and a line reports this.
for few in 34 42 60; do
    on_host 3 60 few sh -c "ulimit -n $few; exec $programs/mpi_coll_check --count 2 --max 1K --seed 1"
    said=$(grep -c "is off, .* only [0-9]* file descriptors are left (ulimit -n is $few)" "$work/few") || :
    if [ "$code" = 0 ] && [ "$said" = 1 ] && grep -q ' 0 bad$' "$work/few"; then
        pass "ulimit -n $few: left to Open MPI"
    else
        tail -n 5 "$work/few" | sed 's/^/     /'
        fail "ulimit -n $few: code $code$([ "$code" != 124 ] || echo ' (hung)'), $said lines say why"
    fi
done

with_fault() { # with_fault LOG OPTIONS...: options of mpirun, after -- those of the program
    local log=$1 options=()
    shift
    while [ "$1" != -- ]; do options+=("$1"); shift; done
    shift
    on_host 4 90 "$log" --mca coll_mcastcoll_verbose 2 --mca coll_mcastcoll_join_timeout "${join_ms:-1000}" "${options[@]}" "$programs/mpi_forming_fault" "$@"
}
# Longer than a join may take: the agreement after the join has no limit.
with_fault stops -- --stop 7500
if [ "$code" = 0 ] && grep -q 'failed on rank .*timed out; to be tried again' "$work/stops" && grep -q 'coll/mcastcoll serves late' "$work/stops"; then
    pass "a rank stops while a group forms: it forms later"
else
    tail -n 20 "$work/stops" | sed 's/^/     /'
    fail "a rank stops while a group forms: code $code$([ "$code" != 124 ] || echo ' (hung)')"
fi
# All ranks are stopped while the group forms, like a suspended job: the time does not count.
join_ms=4000 with_fault suspended -- --stop 1000 --suspend 5000
if [ "$code" = 0 ] && grep -q ' 0 bad$' "$work/suspended" && grep -q 'coll/mcastcoll serves late' "$work/suspended" && ! grep -q 'timed out' "$work/suspended"; then
    pass "all ranks stop while a group forms: it forms"
else
    tail -n 20 "$work/suspended" | sed 's/^/     /'
    fail "all ranks stop while a group forms: code $code"
fi
with_fault dies "${outlive[@]}" --
ended=$(grep -c 'mpi_forming_fault: rank [0-2] of 4: code [1-9]' "$work/dies" || true)
if [ "$code" != 124 ] && [ "$ended" = 3 ]; then
    pass "a rank dies while a group forms: the others get an error"
else
    tail -n 20 "$work/dies" | sed 's/^/     /'
    fail "a rank dies while a group forms: $ended of 3 go on$([ "$code" != 124 ] || echo ' (hung)')"
fi
finish
