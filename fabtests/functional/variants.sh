#!/bin/bash
# variants.sh [NAME=VALUE...] -- broadcasts, barriers and joins over every inner provider and with other settings.
#
# Runs in the top folder of a build. Each argument is environment for one run; without any it takes its own list.
set -u
case ${1:-} in --help | -h) awk 'NR > 1 { if (!/^#/) exit; sub(/^# ?/, ""); print }' "$0"; exit 0 ;; esac
variants=("$@")
[ $# -gt 0 ] || variants=(
    'FI_MCASTCOLL_INNER=tcp;ofi_rxm'
    FI_MCASTCOLL_INNER=tcp
    FI_MCASTCOLL_INNER=shm
    FI_MCASTCOLL_MULTICAST=off
    FI_MCASTCOLL_REPAIR=push
    FI_MCASTCOLL_WINDOW=4
    FI_MCASTCOLL_RCVBUF=16384
)
failed=0
for variant in "${variants[@]}"; do
    echo "== $variant"
    address=()
    # Shared memory has no network addresses.
    case $variant in *=shm) address=(--address '') ;; esac
    env "$variant" ./fi_mcc_join "${address[@]}" --case "set's address" --case overlapping || failed=$((failed + 1))
    env "$variant" ./fi_mcc_broadcast "${address[@]}" --members 3 --case 'one at a time' --case 'many in flight' || failed=$((failed + 1))
    env "$variant" ./fi_mcc_barrier "${address[@]}" --members 5 --case 'between broadcasts' || failed=$((failed + 1))
done
[ $failed = 0 ]
