#!/bin/bash
# load.sh [options] -- MPI jobs drawn from a seed, on a machine and a network under stress.
#
#   --jobs N         number of jobs, each with the next seed (default 20)
#   --seed N         seed of the first job (default 1)
#   --seconds S      begin no further job after S seconds (default: all jobs)
#   --hosts N        hosts of the cluster (default 4)
#   --stop S         a rank is stopped for at most S seconds (default 20)
#   --silence S      a host's network is silent for at most S seconds (default 30)
#   --stock          run each job without mcastcoll, too; otherwise only jobs that fail with mcastcoll
#   --keep FOLDER    folder for the jobs' output
#
# A seed determines the shape (hosts and ranks, or one host), the pml, the loss of datagrams, processes that spin and
# fork beside the job, ranks that are stopped, and hosts whose packets are dropped for a while; the operation at which a
# fault begins depends on the machine. Each job checks all of its bytes (mpi_coll_check). A job that fails runs again
# without mcastcoll: if it succeeds then, mcastcoll has failed, and the line has the command that repeats the job;
# otherwise the job counts as skipped.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "$0")/common.sh"
hosts=4 options=()
while [ $# -gt 0 ]; do
    case $1 in
        --help | -h) usage; exit 0 ;;
        --version) version; exit 0 ;;
        --stock) options+=("$1"); shift ;;
        --jobs | --seed | --seconds | --hosts | --stop | --silence | --keep) [ $# -ge 2 ] || bad_usage "'$1' needs a value" ;;&
        --jobs | --seed | --seconds | --stop | --silence | --hosts)
            [[ $2 =~ ^[0-9]{1,6}$ ]] || bad_usage "$1 '$2': give a number"
            [ "$1" != --hosts ] || hosts=$2
            options+=("$1" "$2")
            shift 2 ;;
        --keep) options+=("$1" "$2"); shift 2 ;;
        *) bad_usage "'$1' is no option" ;;
    esac
done
((hosts >= 3 && hosts <= 32)) || bad_usage "--hosts '$hosts': give 3 to 32"
can_cluster || finish
use_build
[ -x "$BUILD/fabtests/mpi/mpi_coll_check" ] || { echo "$ME: no $BUILD/fabtests/mpi/mpi_coll_check: run util/build" >&2; exit 2; }
start_cluster "$hosts"
# The program's summary line and exit code are those of this script.
python3 "$TOP/fabtests/cluster/load_jobs.py" --lab "$LAB" --build "$BUILD" --work "$work" ${options[@]+"${options[@]}"} &
wait $!
