#!/bin/bash
# variants.sh [NAME=VALUE...] -- broadcasts, barriers, reductions and joins over every inner provider and with other
# settings.
#
# Runs in the top folder of a build. Each argument is environment for one run; without any the script takes its own
# list, in which settings that are independent of each other share a run.
set -u
case ${1:-} in --help | -h) awk 'NR > 1 { if (!/^#/) exit; sub(/^# ?/, ""); print }' "$0"; exit 0 ;; esac
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
head -c 32 /dev/urandom >"$scratch/key"
chmod 600 "$scratch/key"
secret="FI_MCASTCOLL_KEY_FILE=$scratch/key FI_MCASTCOLL_SECURITY"
variants=("$@")
[ $# -gt 0 ] || variants=(
    'FI_MCASTCOLL_INNER=tcp;ofi_rxm'
    FI_MCASTCOLL_INNER=tcp
    FI_MCASTCOLL_INNER=shm
    FI_MCASTCOLL_MULTICAST=off
    "FI_MCASTCOLL_EXPERIMENT=repair=push,window=4 $secret=encrypt"
    FI_MCASTCOLL_EXPERIMENT=repair=sync,root_sync=delay:200
    "FI_MCASTCOLL_EXPERIMENT=repair=sync,channels=1,root_sync=adaptive,mac=gmac $secret=authenticate"
    "FI_MCASTCOLL_EXPERIMENT=repair=auto,root_sync=random,mac=umac64,redundancy=on,sndbuf=65536,port=20111 FI_MCASTCOLL_RCVBUF=16384 $secret=authenticate"
)
[ -z "${MCC_QUICK:-}" ] || variants=("FI_MCASTCOLL_EXPERIMENT=repair=sync,channels=1,root_sync=adaptive $secret=encrypt" FI_MCASTCOLL_INNER=shm)
failed=0
for variant in "${variants[@]}"; do
    echo "== $variant"
    address=()
    # Unquoted on purpose: a variant may be several variables, none of which contains a blank. Shared memory has no
    # network addresses.
    case $variant in *=shm) address=(--address '') ;; esac
    env $variant ./fi_mcc_join "${address[@]}" --case "set's address" --case overlapping || failed=$((failed + 1))
    env $variant ./fi_mcc_broadcast "${address[@]}" --members 3 --case 'one at a time' --case 'many in flight' || failed=$((failed + 1))
    env $variant ./fi_mcc_barrier "${address[@]}" --members 5 --case 'between broadcasts' || failed=$((failed + 1))
    env $variant ./fi_mcc_reduce "${address[@]}" --members 3 --case 'many in flight' --case 'blocking among' || failed=$((failed + 1))
done
if [ $# -eq 0 ]; then
    for rows in 'allgather * * * chains:1;allreduce * * 1K- split:2' 'allgather * * * reduction' 'allgather * * * messages'; do
        echo "== $rows"
        tr ';' '\n' <<<"$rows" >"$scratch/selection"
        FI_MCASTCOLL_SELECTION=$scratch/selection ./fi_mcc_reduce --members 4 --case 'allgathers' --case 'many in flight' ||
            failed=$((failed + 1))
    done
    echo 'allgather * * * ring' >"$scratch/selection"
    if FI_LOG_LEVEL=warn FI_MCASTCOLL_SELECTION=$scratch/selection ./fi_mcc_barrier --members 2 >"$scratch/log" 2>&1 ||
        ! grep -q 'line 1: algorithm' "$scratch/log"; then
        echo "variants: a bad table is not refused"
        failed=$((failed + 1))
    fi
fi
[ $failed = 0 ]
