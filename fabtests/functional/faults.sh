#!/bin/bash
# faults.sh [SPEC...] -- broadcasts, barriers and reductions while multicast datagrams are lost, duplicated, corrupted
# and reordered.
#
# Runs in the top folder of a build. SPECs are values of FI_MCASTCOLL_FAULT; without any the script takes its own list.
set -u
case ${1:-} in --help | -h) awk 'NR > 1 { if (!/^#/) exit; sub(/^# ?/, ""); print }' "$0"; exit 0 ;; esac
specs=("$@")
[ $# -gt 0 ] || specs=(
    loss=5,seed=1
    loss=20,seed=2
    loss=100
    loss=10,burst=70,seed=3
    duplicate=30,delay=8,seed=4
    corrupt=10,seed=5
    loss=5,duplicate=5,corrupt=5,delay=4,seed=6
)
[ -z "${MCC_QUICK:-}" ] || specs=("${specs[-1]}") # all faults at once, because builds with sanitizers are slow
failed=0
for spec in "${specs[@]}"; do
    echo "== $spec"
    ./fi_mcc_broadcast --fault "$spec" --case 'many in flight' --case 'sizes and roots' || failed=$((failed + 1))
    ./fi_mcc_barrier --fault "$spec" --case 'with flags' --case 'between broadcasts' || failed=$((failed + 1))
    ./fi_mcc_reduce --fault "$spec" --case 'many in flight' --case 'blocking among' || failed=$((failed + 1))
    ./fi_mcc_collectives --fault "$spec" --case 'many groups' || failed=$((failed + 1))
done
[ $# -gt 0 ] || ./fi_mcc_threads --fault loss=5,seed=8 --case 'threads and groups' || failed=$((failed + 1))
# A sleeping member must also wake up for repairs.
[ $# -gt 0 ] || ./fi_mcc_wait --fault loss=30,seed=7 --case poll || failed=$((failed + 1))
# One line of the log names the lost rank and the cause, by whichever of the two paths the death was seen first.
if [ $# -eq 0 ]; then
    log=$(FI_LOG_LEVEL=warn ./fi_mcc_kill --verbose --case 'a receiver dies' 2>&1)
    if ! grep -qE 'failed: .*\(lost rank [0-9]+ at 127.0.0.1:[0-9]+( on host [^:]+)?: (its process [0-9]+ has ended|a message to it failed: .*)\)' <<<"$log"; then
        echo "faults: the log does not say why a member counts as lost"
        grep 'mcastcoll' <<<"$log" | tail
        failed=$((failed + 1))
    fi
fi
[ $failed = 0 ]
