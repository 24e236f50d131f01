#!/bin/bash
# flood.sh [--hosts N] -- measures broadcasts of 8 bytes while a host floods their members' ports with forged packets.
#
# N hosts (default 5), the last of which floods. fi_mcc_flood floods the members, and sockets beside them that only drop
# packets, in turns. Members sleep while they wait. Prints the time of a broadcast, and the processor time that a packet
# costs its receiver. Compare only figures of one run: members, the flood and the sockets share the processors.
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
