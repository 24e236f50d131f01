# shellcheck shell=bash
# Sourced by the tests that kill a rank: waits for the survivors' reports, and evaluates them.

# Options that let Open MPI's launcher continue the job when a rank dies. Since 5.0 the launcher is PRRTE, with other
# options.
outlive=(--enable-recovery --mca orte_abort_on_non_zero_status 0)
! command -v prterun >/dev/null || outlive=(--runtime-options recoverable,error-nonzero-status=0)

# Open MPI 4.1's mpirun does not always end when ranks end without MPI_Finalize, so the job is ended once all ranks but
# one have reported.
judge_survivors() { # judge_survivors WHAT RANKS JOB LOG
    local errors others=$(($2 - 1))
    while kill -0 "$3" 2>/dev/null && (($(grep -c '^rank [0-9]*: error\|^mpi_kill: ' "$4") < others)); do sleep .2; done
    kill "$3" 2>/dev/null
    wait "$3" 2>/dev/null
    errors=$(grep '^rank [0-9]*: error [0-9.]* ms after the death' "$4" | grep -vc 'too late')
    if [ "$errors" = $others ]; then
        pass "$1: all others had an error within $(awk '/^rank/ && $4 > m { m = $4 } END { print m }' "$4") ms"
    else
        sed 's/^/     /' "$4" | tail -n 30
        fail "$1: $errors of $others others had an error in time"
        return 1
    fi
}
