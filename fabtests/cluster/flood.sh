#!/bin/bash
# flood.sh [--hosts N] -- what broadcasts of 8 bytes take while a host floods their members' ports with forged packets.
#
# Over N hosts (default 5), the last of which floods. Members and sockets beside them that drop what comes are flooded in turns:
# fi_mcc_flood. Members sleep while they wait. It says what a broadcast took, and what processor time a packet cost who got it.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "$0")/common.sh"
hosts=5
while [ $# -gt 0 ]; do
    case $1 in
        --help | -h) usage; exit 0 ;;
        --version) version; exit 0 ;;
        --hosts) [ $# -ge 2 ] || bad_usage "'$1' needs a value"; hosts=$2; shift 2 ;;
        *) bad_usage "'$1' is no option" ;;
    esac
done
[[ $hosts =~ ^[1-9][0-9]?$ ]] && ((hosts >= 5)) || bad_usage "--hosts '$hosts': give 5 to 99"
can_cluster || finish
use_build
GSO=on start_cluster "$hosts"
if bounded 300 "$BUILD/fi_mcc_flood" --cluster "$VC" --large --case 'what a flood costs'; then
    pass "every byte right"
else
    fail "code $?"
fi
finish
