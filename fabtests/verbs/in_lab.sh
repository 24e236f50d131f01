#!/bin/bash
# in_lab.sh PART... -- run by verbs_lab.sh in the machine of util/rxe-lab: multicast over UD queue pairs, and
# collectives over it.
#
#   transport        the transport's own tests, on two hosts
#   broadcast        the functional program of broadcasts; barrier, reduce, collectives, groups, wait: likewise
#   mpi              an Open MPI job of mpi_coll_check with a rank on each host
#   doctor           mcastcoll-doctor's findings about RDMA: none; then with little lockable memory, and with an interface without a device
#   datagram         datagram endpoints with FI_MULTICAST, groups over verbs, unicast over UDP
#   deaf             as mpi, but all multicasts are lost after some time: the job ends successfully
#   down             as mpi, but host 2's link goes down: the job ends in time, with errors; must be the last part
#   removed          as mpi, but host 2's RDMA device is removed: the job ends in time; must be the last part
# LOSS (0,1,5): percentages of multicasts lost in turn. COUNT (60): rounds of the MPI job. CASES: only these cases of
# functional programs. OPERATIONS: number of operations in cases that repeat them at random.
set -u
. "$(dirname "$0")/../cluster/common.sh"
use_build
# By default the queues of libfabric's verbs are for 256 peers, more than Soft-RoCE supports.
export FI_UNIVERSE_SIZE=16
# ofi_rxm 1.17 may crash when it closes connections over verbs without shared buffers (docs/VERBS.md).
export FI_OFI_RXM_USE_SRX=1
# In emulation a process may not be scheduled for a long time.
export FI_MCASTCOLL_JOIN_TIMEOUT=60000
work=$(mktemp -d)
addresses=$(seq -f '10.9.0.%g' -s , "$RXE_HOSTS")

# A counter's sum over the members of the latest job.
counted_by_members() { cat "$work"/stats.*.json 2>/dev/null | awk -F': ' -v name="\"$1\"" 'index($1, name) { sum += $2 } END { print sum + 0 }'; }

judge() { # judge WHAT CODE LOSS
    local sent received repaired lost
    sent=$(counted_by_members verbs_datagrams_sent) received=$(counted_by_members fragments_by_multicast) repaired=$(counted_by_members fragments_repaired)
    # Upper bound of the losses: in groups of a few members, not all other members should receive a datagram.
    ((lost = (RXE_HOSTS - 1) * $(counted_by_members datagrams_sent) - $(counted_by_members datagrams_received)))
    if [ "$2" != 0 ]; then
        sed 's/^/     /' "$work/log" | tail -n 30
        fail "$1: code $2$([ "$2" != 124 ] || echo ' (hung)')"
    elif ((sent == 0)); then
        fail "$1: nothing was multicast over verbs"
    elif ((received * ${3%.*} >= 1000 && repaired == 0)); then # at least ten losses are expected
        fail "$1: nothing was lost"
    else
        pass "$1: $sent datagrams over verbs, $received fragments received, $repaired repaired; at most $lost datagrams were lost"
    fi
}

functional() { # functional NAME LOSS
    local code=0 cases=() name
    for name in ${CASES:-}; do cases+=(--case "${name//_/ }"); done
    rm -f "$work"/stats.*
    FI_MCASTCOLL_STATS=$work/stats timeout -k 10 "${PROGRAM_LIMIT:-300}" "$BUILD/fi_mcc_$1" --inner 'verbs;ofi_rxm' --address "$addresses" --members "$RXE_HOSTS" \
        --timeout "${CASE_LIMIT:-120}" --wait "${CASE_LIMIT:-60}" --operations "${OPERATIONS:-0}" ${cases[@]+"${cases[@]}"} >"$work/log" 2>&1 || code=$?
    grep -aE '^(ok|FAIL)' "$work/log" | sed 's/^/     /'
    judge "fi_mcc_$1 on $RXE_HOSTS hosts, $2 % lost" $code "$2"
}

# For eval; a rank on each host, by util/rxe/rank: Debian 13's mpirun crashes if each rank has an app context (":") of
# its own.
mpi_command() {
    rm -f "$work"/stats.*
    printf '%q ' timeout -k 10 "${MPI_LIMIT:-300}" mpirun.openmpi --allow-run-as-root --oversubscribe --bind-to none --mca pml cm --mca mtl ofi --mca coll_mcastcoll_form_after 0 \
        --mca btl '^ofi,openib' --mca mpi_yield_when_idle 1 --np "$RXE_HOSTS" -x FI_UNIVERSE_SIZE -x FI_PROVIDER_PATH -x FI_PROVIDER=mcastcoll \
        -x 'FI_MCASTCOLL_INNER=verbs;ofi_rxm' -x FI_MCASTCOLL_JOIN_TIMEOUT \
        -x "FI_LOG_LEVEL=${FI_LOG_LEVEL:-warn}" -x FI_LOG_PROV=mcastcoll -x "FI_MCASTCOLL_STATS=$work/stats" \
        "$TOP/util/rxe/rank" "$BUILD/fabtests/mpi/mpi_coll_check" --count "${COUNT:-60}" --max 64K --seed 7
}

mpi() { # mpi LOSS
    local code=0 command
    command=$(mpi_command)
    eval "$command" >"$work/log" 2>&1 || code=$?
    tail -n 3 "$work/log" | sed 's/^/     /'
    judge "mpi_coll_check on $RXE_HOSTS hosts, $1 % lost" $code "$1"
}

# Without the cases about the loopback or UDP's own sockets.
datagram() {
    local code=0 name cases=()
    for name in 'all members but the sender receive a message' 'many groups' unicast refusals descriptors queues; do cases+=(--case "$name"); done
    FI_MCASTCOLL_MULTICAST=verbs timeout -k 10 300 "$BUILD/fi_mcc_datagram" --address "$addresses" --timeout 120 --wait 60 "${cases[@]}" >"$work/log" 2>&1 || code=$?
    sed 's/^/     /' "$work/log"
    if [ $code = 0 ]; then pass "fi_mcc_datagram over verbs"; else fail "fi_mcc_datagram over verbs: code $code"; fi
}

# The doctor's findings about RDMA with this many KiB of lockable memory, as ID:SEVERITY.
found_of_rdma() { # found_of_rdma LOCKED INTERFACE, in a shell of its own
    ulimit -l "$1"
    FI_MCASTCOLL_IFACE=$2 FI_MCASTCOLL_MULTICAST=verbs timeout -k 10 100 "$BUILD/util/doctor/mcastcoll-doctor" --here --listen 0 --no-group --json |
        python3 -c 'import json, sys
print(*sorted(f["id"] + ":" + f["severity"] for f in json.load(sys.stdin)["findings"] if f["id"].startswith(("rdma", "memlock"))))'
}
doctor() {
    local found
    found=$(found_of_rdma unlimited h1 2>"$work/log")
    if [ $? = 0 ] && [ -z "$found" ]; then
        pass "the doctor finds RDMA fit for use"
    else
        fail "the doctor, where RDMA is fit for use: found '$found'; $(tail -n 1 "$work/log")"
    fi
    ip link add plain type veth peer name other
    ip addr add 10.8.0.1/24 dev plain
    ip link set other up
    ip link set plain up
    found=$(found_of_rdma 64 plain 2>"$work/log")
    if [ "$found" = 'memlock-small:limits rdma-refused:limits' ]; then
        pass "the doctor finds little memory to lock, and no device for an interface"
    else
        fail "the doctor, with little memory to lock and no device: found '$found'; $(tail -n 1 "$work/log")"
    fi
    ip link del plain
}

# fault WHAT EXPECTED COMMAND...: runs the MPI job, and COMMAND once the job multicasts.  EXPECTED: well, or end: any
# end but a hang.
fault() {
    local what=$1 expected=$2 start code=0 job out i
    shift 2
    out=$(COUNT=${COUNT:-$([ "$expected" = well ] && echo 100 || echo 5000)} FI_LOG_LEVEL=info mpi_command)
    : >"$work/log" # the log still contains the last job's joins
    eval "$out" >"$work/log" 2>&1 &
    job=$!
    for ((i = 0; i < 240; ++i)); do
        ((i % 4)) || [ "$(grep -ac 'joined as rank' "$work/log")" -lt "$RXE_HOSTS" ] || break
        kill -0 $job 2>/dev/null || break
        sleep 0.5
    done
    if ! kill -0 $job 2>/dev/null || ((i == 240)); then
        kill $job 2>/dev/null
        wait $job
        tail -n 5 "$work/log"
        fail "$what: the job never began"
        return
    fi
    sleep 3
    start=$SECONDS
    timeout 60 "$@" || echo "     $*: code $?"
    wait $job || code=$?
    grep -aE 'failed|fails|bad$|lost|gone' "$work/log" | tail -n 8 | cut -c1-220 | sed 's/^/     /'
    if [ $code = 0 ] || { [ "$expected" = end ] && [ $code != 124 ] && [ $code != 137 ]; }; then
        pass "$what: code $code $((SECONDS - start)) s later"
    else
        fail "$what: code $code $((SECONDS - start)) s later"
    fi
}

for part in "$@"; do
    case $part in
        datagram | doctor) "$part"; continue ;;
        deaf) fault 'all multicasts are lost' well "$TOP/util/rxe/loss" 100; "$TOP/util/rxe/loss" 0; continue ;;
        down) fault "host 2's link goes down" end ip link set h2 down; continue ;;
        removed) fault "host 2's device is removed" end sh -c 'rdma link delete rx2 & sleep 1'; continue ;;
    esac
    if [ "$part" = transport ]; then
        code=0
        timeout -k 10 200 "$BUILD/fabtests/verbs/test_verbs" --jobs 1 --verbose >"$work/log" 2>&1 || code=$?
        line=$(grep -a 'Synthesis' "$work/log" | sed 's/.*: Tested/Tested/')
        skips=$(grep -ac '^\[SKIP\]' "$work/log")
        if [ $code = 0 ] && [ "$skips" = 0 ]; then pass "the transport's tests: $line"; else cat "$work/log"; fail "the transport's tests: $line, $skips skipped"; fi
        continue
    fi
    percentages=${LOSS:-0,1,5}
    for loss in ${percentages//,/ }; do
        "$TOP/util/rxe/loss" "$loss" || { fail "the loss cannot be set"; continue; }
        case $part in
            mpi) mpi "$loss" ;;
            *) functional "$part" "$loss" ;;
        esac
    done
    "$TOP/util/rxe/loss" 0
done
finish
