#!/bin/bash
# quickstart.sh [--hosts N,N] [--loss P,P,..] [--limit S] [--json FILE] [--no-install] -- a demonstration without any preparation.
#
# Takes two or three minutes on two cores: installs missing packages, builds the necessary parts in build/, and makes hosts of
# this machine's network namespaces, with real IP multicast and real loss between them. An MPI program broadcasts 1 B to 16 MiB
# from every rank, at each percentage P of lost multicast datagrams (default 0,1,5), and checks every byte on every rank. Then
# bcast, barrier, allreduce and allgather are timed beside Open MPI's own algorithms, on 8 hosts and on 16, in turns. The table
# shows where mcastcoll is faster and where it is not; build/quickstart.svg has the same as a figure. The hosts are removed at the
# end.
#   --hosts N,N     numbers of hosts (default 8,16); bytes are checked on the first one
#   --limit S       seconds for the timing (default 50): fewer repetitions if the time is short
#   --json FILE     also write the results to FILE
#   --no-install    do not look for missing packages
set -euo pipefail
ME=${0##*/}
TOP=$(cd "$(dirname "$0")/.." && pwd)
LAB=$TOP/util/cluster
BUILD=$TOP/build
hosts=8,16 losses=0,1,5 limit=50 json='' install=1
die() { echo "$ME: $*" >&2; exit 1; }
bad_usage() { echo "$ME: $*; see '$ME --help'" >&2; exit 2; }
while [ $# -gt 0 ]; do
    case $1 in
        --help | -h) awk 'NR > 1 { if (!/^#/) exit; sub(/^# ?/, ""); print }' "$0"; exit 0 ;;
        --version) sed -n 's/^AC_INIT(\[mcastcoll\], \[\([^]]*\)\].*/mcastcoll \1/p' "$TOP/configure.ac"; exit 0 ;;
        --hosts | --loss | --limit | --json) [ $# -ge 2 ] || bad_usage "'$1' needs a value" ;;&
        --hosts) hosts=$2; shift 2 ;;
        --loss) losses=$2; shift 2 ;;
        --limit) limit=$2; shift 2 ;;
        --json) json=$2; shift 2 ;;
        --no-install) install=0; shift ;;
        *) bad_usage "'$1' is no option" ;;
    esac
done
[ -n "$hosts" ] && [ -n "$losses" ] || bad_usage "nothing to do"
for n in ${hosts//,/ }; do [[ $n =~ ^[1-9][0-9]{0,2}$ ]] && ((n >= 2 && n <= 128)) || bad_usage "--hosts '$n': give 2 to 128"; done
for p in ${losses//,/ }; do
    [[ $p =~ ^[0-9]+(\.[0-9]+)?$ ]] && awk "BEGIN { exit !($p <= 100) }" || bad_usage "--loss '$p' is no percentage"
done
[[ $limit =~ ^[1-9][0-9]{0,4}$ ]] || bad_usage "--limit '$limit': give seconds"
if [ -n "$json" ]; then
    : >"$json" || die "cannot write $json"
    json=$(realpath "$json")
fi
[ "$(id -u)" = 0 ] || die "needs root (hosts are made of network namespaces): run it as root or through sudo"
progress() { printf '[%3d s] %s\n' "$SECONDS" "$*"; }

[ $install = 0 ] || { progress "looking for missing packages"; "$TOP/util/install-deps"; }
progress "building what this needs"
"$TOP/util/build" --parts quickstart
for name in $(compgen -e | grep -E '^(FI_PROVIDER|FI_PROVIDER_PATH|OMPI_MCA_pml|OMPI_MCA_coll|OMPI_MCA_opal_mca_base_component_path)$'); do
    unset "$name"
done
. "$BUILD/env"
check=$BUILD/fabtests/mpi/mpi_bcast_check perf=$BUILD/util/mcastcoll-perf
for f in "$FI_PROVIDER_PATH/libmcastcoll-fi.so" "$BUILD/lib/openmpi/mca_coll_mcastcoll.so" "$check" "$perf"; do
    [ -e "$f" ] || die "the build made no $f; see $BUILD/build.log"
done

work=$(mktemp -d)
export VC=quick$$ VC_OWNER=$$
finish() {
    local code=$?
    trap - EXIT
    "$LAB/down" || echo "$ME: hosts may be left: VC=$VC $LAB/down" >&2
    rm -rf "$work"
    exit $code
}
trap finish EXIT
trap 'exit 130' INT TERM HUP
bounded() { # bounded SECONDS COMMAND...: a signal ends the wait, and this script, at once
    local code=0
    timeout -k 10 "$@" &
    wait $! || code=$?
    return $code
}
failures=0

# Every rank is root in turn; the datagrams of the job are counted.
verify() { # verify LOSS
    local p=$1 at=$work/verify.$1 said
    mkdir "$at"
    "$LAB/loss" "$p"
    if STACK=mcastcoll OMPI_MCA_coll_mcastcoll_form_after=0 FI_MCASTCOLL_STATS=$at/stats bounded 120 "$LAB/run" "$check" \
        --max 16M --multiple 1 --min 1 --count $((10 * first)) --cycles 0 --contiguous --json "$at/check.json" >"$at/log" 2>&1; then
        "$LAB/loss" show --json >"$at/loss.json"
        said=$(python3 "$TOP/util/quickstart_report.py" --verified "$at" --loss "$p") || failures=$((failures + 1))
        progress "$said"
    else
        failures=$((failures + 1))
        progress "FAILED at $p % loss"
        tail -n 15 "$at/log" | sed 's/^/        /'
    fi
}
first=${hosts%%,*}
"$LAB/down" --stale
progress "making $first hosts; then broadcasts of 1 B to 16 MiB, every byte checked on every rank"
"$LAB/up" "$first"
for p in ${losses//,/ }; do verify "$p"; done
"$LAB/down"

# At the worst loss only mcastcoll is timed: only multicasts are dropped, and Open MPI's own algorithms send none.
worst=$(tr , '\n' <<<"$losses" | sort -g | tail -n 1)
measure() { # measure FILE SECONDS OPTION...
    local file=$1 seconds=$2
    shift 2
    bounded $((seconds + 180)) "$perf" --limit "$seconds" --rounds 3 --seconds 0.15 --sizes 8,64K,1M --json "$work/$file.json" "$@" \
        >"$work/$file.log" 2> >(sed -u 's/^/    /' >&2) || { failures=$((failures + 1)); tail -n 5 "$work/$file.log"; }
}
progress "timing, beside Open MPI's own algorithms: tuned, and han"
measure clean "$limit" --hosts "$hosts" --svg "$BUILD/quickstart.svg"
if [ "$worst" != 0 ] && [ "$worst" != 100 ]; then
    # Without GSO each datagram passes the kernel separately, so that single datagrams are lost; also without
    # loss, for comparison.
    progress "timing with $worst % of the multicast datagrams lost, and with none, on $first hosts"
    for p in 0 "$worst"; do GSO=off measure "loss.$p" $((limit / 5 + 1)) --hosts "$first" --loss "$p" --stacks mcastcoll; done
fi

python3 "$TOP/util/quickstart_report.py" --measured "$work" --loss "$worst" ${json:+--json "$json"} || failures=$((failures + 1))
[ ! -e "$BUILD/quickstart.svg" ] || echo "The same as a figure: $(realpath --relative-to=. "$BUILD")/quickstart.svg"
[ $failures = 0 ] || die "$failures of the runs failed"
progress "done"
cat <<END
Next:
    . build/env          # in this shell
    mpirun ./program     # your program of Open MPI, with our collectives
    ./util/build         # the tools and the tests, too
README.md says more.
END
