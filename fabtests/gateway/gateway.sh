#!/bin/bash
# gateway.sh [ARGUMENT...] -- gateways as processes, on loopback: runs test_gateway.py with the gateway of this build.
set -u
here=$(cd "$(dirname "$0")" && pwd)
export MCC_GATEWAY=${MCC_GATEWAY:-$PWD/util/gateway/mcastcoll-gateway}
[ -x "$MCC_GATEWAY" ] || { echo "skip no $MCC_GATEWAY: run util/build"; exit 77; }
export PYTHONDONTWRITEBYTECODE=1
# Fewer cases, because builds with sanitizers are slow.
[ -z "${MCC_QUICK:-}" ] || [ $# -gt 0 ] || set -- --only bytes_go_both_ways,broken_streams_lose_nothing,garbage_harms_no_connection
exec python3 "$here/test_gateway.py" "$@"
