#!/bin/bash
# mpi_pmpi.sh [options] -- MPICH programs with libmcastcoll-pmpi.so: every collective that it interposes, compared with
# MPICH's own.
#
#   --alone          this host only
#
#   --hosts N        hosts of the cluster (default 4)
#   --ranks N        ranks on this host alone (default 3)
#   --loss PERCENT   percentage of the multicast datagrams lost (default 5)
#   --count N        random calls (default 150)
#   --large          also: the secret of a group of 34 ranks, which takes MPICH minutes on two cores
#
# Random calls on this host alone and over the cluster; every limit of the library, with the operations that must be
# served; errors, and calls that come back to the library; and that an invalid setting is reported, and leaves a correct
# job to MPICH.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "$0")/common.sh"
hosts=4 ranks=3 loss=5 count=150 alone=0 large=''
while [ $# -gt 0 ]; do
    case $1 in
        --help | -h) usage; exit 0 ;;
        --version) version; exit 0 ;;
        --alone) alone=1; shift ;;
        --large) large=1; shift ;;
        --hosts | --ranks | --loss | --count) [ $# -ge 2 ] || bad_usage "'$1' needs a value" ;;&
        --hosts) hosts=$2; shift 2 ;;
        --ranks) ranks=$2; shift 2 ;;
        --loss) loss=$2; shift 2 ;;
        --count) count=$2; shift 2 ;;
        *) bad_usage "'$1' is no option" ;;
    esac
done
[[ $hosts =~ ^[1-9][0-9]{0,2}$ ]] && ((hosts >= 2)) || bad_usage "--hosts '$hosts': give 2 or more"
[[ $ranks =~ ^[1-9][0-9]?$ ]] && ((ranks >= 2)) || bad_usage "--ranks '$ranks': give 2 to 99"
[[ $loss =~ ^[0-9]{1,2}$ ]] || bad_usage "--loss '$loss': give 0 to 99"
[[ $count =~ ^[1-9][0-9]{0,5}$ ]] || bad_usage "--count '$count': give a number"

for name in $(compgen -e | grep -E '^(FI|UCX|MCASTCOLL_PMPI)_'); do unset "$name"; done
[ -r "$BUILD/env" ] || { echo "$ME: $BUILD is not built: run util/build" >&2; exit 2; }
. "$BUILD/env"
interposer=$BUILD/lib/pmpi/libmcastcoll-pmpi.so program=$BUILD/fabtests/mpi/mpi_pmpi_check
if ! command -v mpiexec.mpich >/dev/null || [ ! -e "$interposer" ]; then
    skip "this build has no interposer, or this machine no MPICH"
    finish
fi
[ -x "$program" ] || { echo "$ME: no $program: run util/build" >&2; exit 2; }
# A sanitizer's runtime must be the first preloaded library.
sanitizer=$(ldd "$interposer" | awk '/lib[at]san/ { print $3; exit }')
preload="LD_PRELOAD=${sanitizer:+$sanitizer }$interposer"
export MCASTCOLL_PMPI_VERBOSE=1

served() { # served LOG: the operations served on rank 0, from its last line
    sed -n 's/.*calls served of calls made: //p' "$1" | tr ',' '\n' | awk '$2 + 0 > 0 { all = all sep $1; sep = " " } END { print all }'
}
judge() { # judge WHAT LOG CODE OPERATION..: correct, and these operations were served
    local what=$1 log=$2 code=$3 operation have
    shift 3
    have=" $(served "$log") "
    if [ "$code" != 0 ] || ! grep -q ' 0 bad$' "$log"; then
        tail -n 20 "$log" | sed 's/^/     /'
        fail "$what: code $code$([ "$code" != 124 ] || echo ' (hung)')"
        return
    fi
    for operation in "$@"; do
        [[ $have == *" $operation "* ]] || { fail "$what: $operation was not served; these were:$have"; return; }
    done
    pass "$what: $(grep -o '[0-9]* checked, 0 bad' "$log"); served:$have"
}

work=$(mktemp -d)
on_exit 'rm -rf "$work"'
code=0
bounded 240 mpiexec.mpich -n "$ranks" env "$preload" "$program" "$count" 64K 1 >"$work/alone" 2>&1 || code=$?
judge "$ranks ranks of this host" "$work/alone" $code bcast barrier reduce allreduce allgather allgatherv

# Collectives carry the group's secret, which rank 0 draws, to the other ranks; to more than 32 in two steps.
if [ -z "$sanitizer" ]; then
    for many in 3 ${large:+34}; do
        code=0
        MPIR_CVAR_NOLOCAL=1 UCX_TLS=tcp,self MCASTCOLL_PMPI_EXPERIMENT=wait=nap bounded 600 mpiexec.mpich -n $many env "LD_PRELOAD=$LISTENER $interposer" \
            "$program" 2 4K 1 >"$work/secret" 2>&1 || code=$?
        judge "$many ranks, listened to" "$work/secret" $code
        judge_listener "$many ranks" "$work/secret"
    done
fi

# Every limit at limit - 1, limit and limit + 1; the library serves the expected operations.
bounds() { # bounds RANKS [NAME=VALUE..] -- PART..
    local ranks=$1 log=$work/bounds settings=() code=0 should have
    shift
    while [ "$1" != -- ]; do settings+=("$1"); shift; done
    shift
    bounded 200 mpiexec.mpich -n "$ranks" env "$preload" "${settings[@]}" "${program%_check}_bounds" "$@" >"$log" 2>&1 || code=$?
    should=$(sed -n 's/^should be served: //p' "$log") have=$(sed -n 's/.*calls served of calls made: //p' "$log")
    if [ $code = 0 ] && [ -n "$should" ] && [ "$should" = "$have" ]; then
        pass "bounds, $ranks ranks, $*: $(grep -o '[0-9]* checked, 0 bad' "$log"), served as they should be"
    else
        tail -n 20 "$log" | sed 's/^/     /'
        fail "bounds, $ranks ranks, $*: code $code$([ "$code" != 124 ] || echo ' (hung)'); served: $have"
    fi
}
bounds 2 MCASTCOLL_PMPI_BYTES=960-5M -- bounce uneven bytes depth orphans
bounds 4 MCASTCOLL_PMPI_MIN_MEMBERS=3 -- shapes members
bounds 4 -- uneven

# A setting's lowest and highest values are accepted, the values beyond them are not.  (MPICH 4.2 mixes standard output
# with errors within lines.)
setting() { # setting NAME good|bad VALUE..
    local name=MCASTCOLL_PMPI_$1 kind=$2 value said
    shift 2
    for value in "$@"; do
        bounded 60 mpiexec.mpich -n 1 env "$preload" "$name=$value" "$program" 1 >/dev/null 2>"$work/setting" || { fail "$name=$value: it ends with an error"; return; }
        said=good
        ! grep -q "$name.*; MPI's own collectives serve this job" "$work/setting" || said=bad
        [ $said = "$kind" ] || { fail "$name=$value is taken for $said"; return; }
    done
    pass "$name: $kind are $*"
}
setting VERBOSE good 0 2 && setting VERBOSE bad 3 -1
setting MIN_MEMBERS good 2 1M && setting MIN_MEMBERS bad 1 1048577
setting BYTES good 0- 0 1G 0-1G -0 5-5 && setting BYTES bad 1073741825 -2G 0-1073741825 6-5 - 1-2-3 x
setting EXPERIMENT good join_timeout=1 join_timeout=3600000,linger=0 linger=3600000,progress=none,provider=mcastcoll &&
    setting EXPERIMENT bad join_timeout=0 join_timeout=3600001 linger=3600001 linger= linger lingers=1 progress=2 provider= 1
setting LINGER bad 2000 # a former name

# Errors: no rank waits for a failed operation, and an error handler may free the communicator.
code=0
MCASTCOLL_PMPI_EXPERIMENT=linger=0 bounded 120 mpiexec.mpich -n 3 env "$preload" "${program%_check}_errors" >"$work/errors" 2>&1 || code=$?
if [ $code = 0 ] && grep -q '3 ranks: ok' "$work/errors"; then
    pass "what fails, and what comes back to the library"
else
    tail -n 20 "$work/errors" | sed 's/^/     /'
    fail "what fails, and what comes back to the library: code $code$([ "$code" != 124 ] || echo ' (hung)')"
fi

# Collectives in callbacks, MPI_BOTTOM.
code=0
bounded 120 mpiexec.mpich -n 3 env "$preload" "${program%_check}_callbacks" >"$work/callbacks" 2>&1 || code=$?
if [ $code = 0 ] && [ "$(grep -c ': 0 bad$' "$work/callbacks")" = 3 ] && [ -n "$(served "$work/callbacks")" ]; then
    pass "collectives in delete callbacks, and MPI_BOTTOM; served: $(served "$work/callbacks")"
else
    tail -n 20 "$work/callbacks" | sed 's/^/     /'
    fail "collectives in delete callbacks, and MPI_BOTTOM: code $code$([ "$code" != 124 ] || echo ' (hung)')"
fi

# An MPI with GPU buffers: the library accesses them as MPI_Pack does, for which the test substitutes its own.
code=0
bounded 120 mpiexec.mpich -n 3 env "$preload" "${program%_check}_device" >"$work/device" 2>&1 || code=$?
judge "3 ranks, one with its buffers on a device" "$work/device" $code bcast reduce allreduce allgather gather scatter alltoall reduce_scatter_block

# Threads creating and using communicators at once, errors, inter-communicators, objects never freed.
code=0
bounded 120 mpiexec.mpich -n 4 env "$preload" "${program%_check}_fallthrough" >"$work/edges" 2>&1 || code=$?
if [ $code = 0 ] && grep -q '4 ranks: ok' "$work/edges"; then
    pass "the edges: threads, errors, other communicators"
else
    tail -n 20 "$work/edges" | sed 's/^/     /'
    fail "the edges: code $code"
fi

code=0
MCASTCOLL_PMPI_ENABLE=bcast,broom bounded 120 mpiexec.mpich -n 2 env "$preload" "$program" 30 1K 1 >"$work/bad" 2>&1 || code=$?
judge "a bad setting" "$work/bad" $code
if grep -q "'broom' is none of all, none, bcast" "$work/bad" && [ -z "$(served "$work/bad")" ]; then
    pass "a bad setting is named, and nothing is served"
else
    fail "a bad setting: $(head -n 3 "$work/bad")"
fi

if [ $alone = 0 ] && can_cluster; then
    rm -rf "$work"
    start_cluster "$hosts"
    "$LAB/loss" "$loss" >/dev/null
    # The hosts share this machine's cores, so waiting ranks sleep. UCX would treat the hosts as one machine.
    export MCASTCOLL_PMPI_EXPERIMENT=wait=nap UCX_TLS=tcp,self UCX_NET_DEVICES=eth0 FI_TCP_IFACE=eth0
    names=$(seq -f 'h%.0f' 0 $((hosts - 1)) | paste -sd,)
    code=0
    bounded 240 "$LAB/on" h0 mpiexec.mpich -launcher rsh -launcher-exec "$LAB/rsh" -hosts "$names" -iface eth0 -n "$hosts" env "$preload" \
        "$program" "$count" 64K 2 >"$work/cluster" 2>&1 || code=$?
    judge "$hosts hosts, $loss % lost" "$work/cluster" $code bcast barrier reduce allreduce
    if (($(counted matched) >= count / 20)); then pass "multicast carried them"; else fail "multicast was not used"; fi
fi
finish
