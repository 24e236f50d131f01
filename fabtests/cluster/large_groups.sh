#!/bin/bash
# large_groups.sh [--hosts N] [--members N,N,..] [--loss PCT,..] [--case NAME] -- groups of up to 1,024 members on the
# hosts of a cluster
#
#   --hosts N        hosts of the cluster (default 32)
#   --members N,..   members of a group, equally many on each host (default 16,64,256,1024)
#   --loss PCT,..    percentages of multicast datagrams lost at each receiver (default 0,1)
#   --case NAME      only the cases of fi_mcc_large whose names contain NAME (default: all)
#
# Each group joins, broadcasts from a hundred roots, has a barrier, allreduces and allgathers, checks every byte, joins
# groups of its rows and columns, and closes; other groups lose a member, and rank 0 (fi_mcc_large). Prints the time of
# joins, the memory of a process, and the traffic of the host that sent most. All processes share this machine's cores,
# so a join takes the sum of all members' processor times; compare only figures of one run.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "$0")/common.sh"
hosts=32 members=16,64,256,1024 loss=0,1 case=''
while [ $# -gt 0 ]; do
    case $1 in
        --help | -h) usage; exit 0 ;;
        --version) version; exit 0 ;;
        --hosts | --members | --loss | --case) [ $# -ge 2 ] || bad_usage "'$1' needs a value" ;;&
        --hosts) hosts=$2; shift 2 ;;
        --members) members=$2; shift 2 ;;
        --loss) loss=$2; shift 2 ;;
        --case) case=$2; shift 2 ;;
        *) bad_usage "'$1' is no option" ;;
    esac
done
[[ $hosts =~ ^[1-9][0-9]?$ ]] || bad_usage "--hosts '$hosts': give a number from 1 to 99"
[[ $members =~ ^[1-9][0-9]{0,3}(,[1-9][0-9]{0,3})*$ ]] || bad_usage "--members '$members': give numbers of members"
[[ $loss =~ ^[0-9]{1,2}(,[0-9]{1,2})*$ ]] || bad_usage "--loss '$loss': give percentages"
can_cluster || finish
use_build
program=$BUILD/fi_mcc_large
[ -x "$program" ] || { echo "$ME: no $program: run util/build" >&2; exit 2; }
start_cluster "$hosts"
for percent in ${loss//,/ }; do
    "$LAB/loss" "$percent" >/dev/null
    for count in ${members//,/ }; do
        what="$count members on $hosts hosts, $percent % lost" code=0 start=$SECONDS
        bounded 600 "$program" ${case:+--case "$case"} --cluster "$VC" --members "$count" --timeout 580 --wait 300 >"$work/out" 2>&1 || code=$?
        if [ $code = 0 ]; then
            grep '^     ' "$work/out" || :
            pass "$what ($((SECONDS - start)) s)"
        else
            tail -n 20 "$work/out" | cut -c1-500
            fail "$what: code $code$([ $code != 124 ] || echo ' (hung)')"
        fi
    done
done
finish
