#!/bin/bash
# full_shm.sh -- tests a full /dev/shm: processes of one host are served as if each had a host of its own, and
# communicators of Open MPI with all ranks on one host are left to Open MPI.
#
# Runs in the top folder of a build, as root: in a mount namespace of its own with a small /dev/shm.
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
said=$(grep -c '<warn> no shared memory between the processes of a host: /dev/shm: no room for' "$stats/log")
[ "$said" = "$(grep -c ' this process is at ' "$stats/log")" ] && [ "$said" != 0 ] || { echo "FAIL $said warnings say why, not one for each process"; exit 1; }
grep -h '"datagrams_sent"' "$stats"/count.*.json | grep -qv ': 0,' || { echo "FAIL nothing was multicast"; exit 1; }
echo "ok   a full /dev/shm is fallen back from, and said so"

# Open MPI's own files may grow by 4 MiB for each of 4 ranks; this space is not for mcastcoll.
[ -x fabtests/mpi/mpi_coll_check ] && [ -e lib/openmpi/mca_coll_mcastcoll.so ] || exit 0
mount -o remount,size=24m /dev/shm && . ./env || exit 1
FI_LOG_LEVEL=warn timeout -k 5 120 mpirun.openmpi --allow-run-as-root --oversubscribe -n 4 --mca mpi_yield_when_idle 1 --mca coll_mcastcoll_form_after 0 \
    fabtests/mpi/mpi_coll_check --count 5 --max 1K >"$stats/log" 2>&1 || { cat "$stats/log"; exit 1; }
grep "leaves communicator .* to Open MPI's own collectives: shared memory of the host failed on rank [0-9]*" "$stats/log" >"$stats/left"
if [ ! -s "$stats/left" ] || [ -n "$(grep -o '^[^ ]*' "$stats/left" | sort | uniq -d)" ]; then
    cat "$stats/log"
    echo "FAIL not one line of a process reports communicators that are left to Open MPI for want of shared memory"
    exit 1
fi
echo "ok   communicators of one host without shared memory are left to Open MPI, in one line of a process at most"
