#!/bin/bash
# faults.sh [--seed N] [--rounds N] [--seconds S] [--hosts N] [--fault NAME] [--inner PROVIDER] -- faults drawn from a seed
#
#   --seed N       of the first round (default 1); each further round has the next number
#   --rounds N     so many (default 1000)
#   --seconds S    begin no further round after so many (default: all rounds)
#   --hosts N      of the cluster (default 4)
#   --fault NAME   only rounds of faults whose names contain this: kill, stop, cable, hears not, says not, lossy, mtu, datagrams,
#                  memory, descriptors, clocks
#
# Each round is a line with its seed, and "--seed N --rounds 1" does the same again. Processes join groups and work in them, every byte is
# checked; one dies or stands still, also in the steps of a join; a cable is pulled, a host hears or says nothing for a while, loses
# packets of all kinds, or has another MTU; multicast datagrams are doubled, spoilt and reordered; /dev/shm is full, descriptors are few,
# clocks differ. No wait may be without an end, and afterwards the living join and work as before.
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
# Its closing line and its exit code are this one's, too.
"$program" --cluster "$VC" --rounds "$rounds" "${options[@]}" &
wait $!
