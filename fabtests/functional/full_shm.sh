#!/bin/bash
# full_shm.sh -- with a full /dev/shm processes of one host are served as if each were a host of its own.
#
# Runs in the top folder of a build, as root: in a mount namespace of its own, where /dev/shm is small.
set -u
case ${1:-} in --help | -h) awk 'NR > 1 { if (!/^#/) exit; sub(/^# ?/, ""); print }' "$0"; exit 0 ;; esac
if [ -z "${FULL_SHM_INSIDE:-}" ]; then
    unshare --mount true 2>/dev/null || { echo "skip this user cannot make mount namespaces"; exit 77; }
    FULL_SHM_INSIDE=1 exec unshare --mount bash "$0"
fi
mount -t tmpfs -o size=64k tmpfs /dev/shm || exit 1
stats=$(mktemp -d) || exit 1
trap 'rm -rf "$stats"' EXIT
FI_LOG_LEVEL=info FI_MCASTCOLL_STATS=$stats/count ./fi_mcc_broadcast --places auto --case 'one at a time' >"$stats/log" 2>&1 || { cat "$stats/log"; exit 1; }
grep -q 'served as a host of its own: no [0-9]* bytes of shared memory' "$stats/log" || { echo "FAIL the log does not say why"; exit 1; }
grep -h '"datagrams_sent"' "$stats"/count.*.json | grep -qv ': 0,' || { echo "FAIL nothing was multicast"; exit 1; }
echo "ok   a full /dev/shm is fallen back from, and said so"
