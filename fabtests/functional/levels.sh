#!/bin/bash
# levels.sh [PLACES...] -- the functional tests with members that share hosts: one host, several, and several sites.
#
# Runs in the top folder of a build. PLACES are values of --places; without any the script takes its own list.
set -u
case ${1:-} in --help | -h) awk 'NR > 1 { if (!/^#/) exit; sub(/^# ?/, ""); print }' "$0"; exit 0 ;; esac
places=("$@")
[ $# -gt 0 ] || places=(auto 1x2 2x1 2x2)
[ -z "${MCC_QUICK:-}" ] || places=(2x2) # all levels at once, because builds with sanitizers are slow
failed=0
try() { "$@" || failed=$((failed + 1)); }
for place in "${places[@]}"; do
    echo "== $place"
    try ./fi_mcc_broadcast --places "$place" --members 6 --case 'many in flight' --case 'sizes and roots'
    try ./fi_mcc_barrier --places "$place" --members 6 --case 'between broadcasts'
    try ./fi_mcc_broadcast --places "$place" --members 6 --fault loss=10,duplicate=5,seed=3 --case 'many in flight'
    try ./fi_mcc_collectives --places "$place" --members 5 --case 'every datatype' --case 'many in flight'
    # Longer tests where most levels are present.
    case $place in auto | 2x2) ;; *) continue ;; esac
    try ./fi_mcc_reduce --places "$place" --members 5 --case 'same bits' --case 'many in flight'
    try ./fi_mcc_kill --places "$place" --case dies --case 'no member waits'
done
# The topologies of a segment that uses messages.
for shape in chain 2-ary 8-ary; do
    echo "== $shape@segment"
    FI_MCASTCOLL_TOPOLOGY=flat,$shape@segment try ./fi_mcc_broadcast --members 6 --case 'many in flight' --case 'sizes and roots'
done
[ $failed = 0 ]
