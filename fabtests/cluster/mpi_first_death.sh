#!/bin/bash
# mpi_first_death.sh [--hosts N] [--ranks N] -- a rank dies in the first collective, while its group forms; all other
# ranks get an error.
#
# N hosts (default 2) with N ranks each (default 2), a launcher that lets the job continue, and no group yet: the last
# rank and the first die 0 to 40 ms after their first collective would begin.  The limit for the others is 30 s; ranks
# inside Open MPI's own collectives would wait for ever.  A rank that is only late costs only its delay.
set -u
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "$0")/common.sh"
. "$(dirname "$0")/kill.sh"
hosts=2 ranks=2 bound=30
while [ $# -gt 0 ]; do
    case $1 in
        --help | -h) usage; exit 0 ;;
        --version) version; exit 0 ;;
        --hosts | --ranks) [ $# -ge 2 ] && [[ $2 =~ ^[2-9]$ ]] || bad_usage "'$1' needs a number from 2 to 9" ;;&
        --hosts) hosts=$2; shift 2 ;;
        --ranks) ranks=$2; shift 2 ;;
        *) bad_usage "'$1' is no option" ;;
    esac
done
can_cluster || finish
if command -v prterun >/dev/null; then # its message is "An error occurred in Socket closed", and MPI_ERRORS_ARE_FATAL
    skip "Open MPI 5's pml ob1 ends each process that has lost a connection to another"
    finish
fi
use_build
program=$BUILD/fabtests/mpi/mpi_first_death
[ -x "$program" ] || { echo "$ME: no $program: run util/build" >&2; exit 2; }
start_cluster "$hosts"
all=$((hosts * ranks))
# A join that began before the death ends in this time.
export OMPI_MCA_coll_mcastcoll_join_timeout=1000

# Open MPI's launcher does not always detect that such a job is over.
one() { # one WHAT OPTION...
    local what=$1 ended=0 t
    shift
    : >"$work/log" # the log still contains the last job's ends
    STACK=mcastcoll timeout -k 5 $((bound + 30)) "$LAB/run" -n $all --mca pml ob1 "${outlive[@]}" "$program" "$@" >"$work/log" 2>&1 &
    local job=$!
    for ((t = 0; t < 5 * bound; t++)); do
        ended=$(grep -c '^mpi_first_death: rank .* code [1-9]' "$work/log")
        [ "$ended" -lt $((all - 1)) ] && kill -0 $job 2>/dev/null || break
        sleep .2
    done
    kill $job 2>/dev/null
    wait $job 2>/dev/null
    if [ "$ended" = $((all - 1)) ] && ! grep -q 'and the next call none' "$work/log"; then
        pass "$what: $(grep -o 'after [0-9.]* s' "$work/log" | sort -k2n | tail -n 1) at the latest"
    else
        tail -n 20 "$work/log" | sed 's/^/     /'
        fail "$what: $ended of $((all - 1)) others have ended"
    fi
}
for victim in $((all - 1)) 0; do
    for after in 0 5 10 20 40; do
        one "rank $victim of $all dies after $after ms" --victim $victim --after $after
    done
done
one "rank $((all - 1)) of $all dies, and rank 1 comes 3 s late" --victim $((all - 1)) --late 3000
finish
