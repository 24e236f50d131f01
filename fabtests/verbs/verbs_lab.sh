#!/bin/bash
# verbs_lab.sh [--hosts N] [--loss P,P,..] [--count N] [--timeout S] [--steady] [PART...] -- tests multicast over RDMA
# in a virtual machine with Soft-RoCE.
#
# Parts: transport (its own tests), broadcast, barrier, reduce, collectives, groups, wait (these functional programs),
# mpi (an Open MPI job of all collectives, COUNT rounds), doctor (its findings about RDMA), datagram (FI_MULTICAST),
# deaf, down, removed (faults during a job, see in_lab.sh). Default, as in the checks: transport, doctor, mpi, and some
# cases of broadcast, barrier, reduce and collectives, on 4 hosts.  All parts but the transport and the last five run
# over the inner provider verbs;ofi_rxm at each percentage of lost multicasts in turn (5; the checks: 1).  CASES="one
# two" selects cases of the functional programs, with _ for a space; OPERATIONS=N shortens cases that repeat random
# operations.
set -u
. "$(dirname "$0")/../cluster/common.sh"
hosts=4 losses=5 count=20 limit=400 machine=()
while [ $# -gt 0 ]; do
    case $1 in
        --help | -h) usage; exit 0 ;;
        --version) version; exit 0 ;;
        --hosts | --loss | --count | --timeout) [ $# -ge 2 ] || bad_usage "'$1' needs a value" ;;&
        --hosts) hosts=$2; shift 2 ;;
        --loss) losses=$2; shift 2 ;;
        --count) count=$2; shift 2 ;;
        --timeout) limit=$2; shift 2 ;;
        --steady) machine=(--steady); shift ;;
        -*) bad_usage "'$1' is no option" ;;
        *) break ;;
    esac
done
if [ $# = 0 ]; then
    set -- transport doctor broadcast barrier reduce collectives mpi
    export CASES="sizes_and_roots many_in_flight barriers" OPERATIONS=15
fi
for part in "$@"; do
    case $part in transport | broadcast | barrier | reduce | collectives | groups | wait | mpi | doctor | datagram | deaf | down | removed) ;; *) bad_usage "'$part' is no part" ;; esac
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'kill "$lab" 2>/dev/null; exit 130' INT TERM HUP
"$TOP/util/rxe-lab" ${machine[@]+"${machine[@]}"} --hosts "$hosts" --timeout "$limit" -- env LOSS="$losses" COUNT="$count" CASES="${CASES:-}" OPERATIONS="${OPERATIONS:-0}" MCASTCOLL_BUILD="$BUILD" \
    "$TOP/fabtests/verbs/in_lab.sh" "$@" 2>"$work/errors" &
lab=$!
code=0
wait $lab || code=$?
cat "$work/errors" >&2
case $code in
    125) skip "$(grep -m 1 'no machine could be started' "$work/errors" | cut -c1-300)"; finish ;;
    124) fail "no end within $limit s"; finish ;;
esac
exit $code
