#!/bin/bash
# faults.sh [--seed N] [--rounds N] [--seconds S] [--hosts N] [--fault NAME] [--inner PROVIDER] -- faults drawn from a
# seed
#
#   --seed N       seed of the first round (default 1); each further round has the next number
#   --rounds N     number of rounds (default 1000)
#   --seconds S    begin no further round after S seconds (default: all rounds)
#   --hosts N      hosts of the cluster (default 4)
#   --fault NAME   only rounds of faults whose names contain NAME: kill, stop, cable, receives not, sends not, lossy, mtu, datagrams,
#                  memory, descriptors, clocks
#
# Each round prints a line with its seed; "--seed N --rounds 1" repeats that round. Processes join groups, work in them
# and check every byte. One dies or is stopped, also during a join; a cable is unplugged, a host receives or sends
# nothing for a while, loses packets of all kinds, or has another MTU; multicast datagrams are duplicated, corrupted and
# reordered; /dev/shm is full, descriptors are few, clocks differ. After a death, or with few descriptors, operations
# may fail, but in time; each other fault must cause no error, only delay. No wait is unbounded, and afterwards the
# survivors join and work as before.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "$0")/common.sh"
hosts=4 rounds=1000 options=()
while [ $# -gt 0 ]; do
    case $1 in
        --help | -h) usage; exit 0 ;;
        --version) version; exit 0 ;;
        --seed | --rounds | --seconds | --fault | --inner | --hosts) [ $# -ge 2 ] || bad_usage "'$1' needs a value" ;;&
        --seed | --seconds | --fault | --inner) options+=("$1" "$2"); shift 2 ;;
        --rounds) rounds=$2; shift 2 ;;
        --hosts) hosts=$2; shift 2 ;;
        *) bad_usage "'$1' is no option" ;;
    esac
done
[[ $hosts =~ ^[1-9][0-9]?$ ]] || bad_usage "--hosts '$hosts': give a number from 1 to 99"
can_cluster || finish
use_build
program=$BUILD/fi_mcc_campaign
[ -x "$program" ] || { echo "$ME: no $program: run util/build" >&2; exit 2; }
start_cluster "$hosts"
# The program's summary line and exit code are those of this script.
"$program" --cluster "$VC" --rounds "$rounds" "${options[@]}" &
wait $!
