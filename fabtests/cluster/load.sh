#!/bin/bash
# load.sh [options] -- MPI jobs drawn from a seed, on a machine and a network that are in trouble.
#
#   --jobs N         so many, each with the next seed (default 20)
#   --seed N         of the first (default 1)
#   --seconds S      begin no further job after so many (default: all jobs)
#   --hosts N        of the cluster (default 4)
#   --stop S         a rank stands still for at most so many seconds (default 20)
#   --silence S      a host's network is silent for at most so many seconds (default 30)
#   --stock          run each job without mcastcoll, too; else only those that fail with it
#   --keep FOLDER    what the jobs print goes there
#
# A seed draws the shape (hosts and ranks, or one host), the pml, datagrams that are lost, processes that spin and fork beside the job,
# ranks that are stopped, and hosts whose packets are dropped for a while. Each job checks all of its bytes (mpi_coll_check). A job that
# fails where Open MPI alone ends is a failure, and its line has the command that runs it again.
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
# Its closing line and its exit code are this one's, too.
python3 "$TOP/fabtests/cluster/load_jobs.py" --lab "$LAB" --build "$BUILD" --work "$work" ${options[@]+"${options[@]}"} &
wait $!
