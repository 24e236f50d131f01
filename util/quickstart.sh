#!/bin/bash
# quickstart.sh [--hosts N] [--loss P,P,..] [--sizes S,S,..] [--json FILE] [--no-install] -- see it work, with nothing prepared.
#
# Installs what is missing, builds what it needs in build/, brings up a cluster of N hosts (default 8) on this machine and runs an MPI program
# on it: broadcasts of 1 B to 16 MiB from every root, at each percentage P of lost multicast datagrams (default 0,1,5), every byte
# checked on every rank.  Then prints a table, beside it the time of Open MPI's own broadcast over the same inner provider, and
# draws build/quickstart.svg.  The cluster is gone when it ends.
#   --sizes S,S,..  message sizes, with K and M (default 1,16,256,4K,64K,1M,16M)
#   --json FILE     write the table there too
#   --no-install    do not look for missing packages
set -euo pipefail
ME=${0##*/}
TOP=$(cd "$(dirname "$0")/.." && pwd)
LAB=$TOP/util/cluster
BUILD=$TOP/build
hosts=8 losses=0,1,5 sizes=1,16,256,4K,64K,1M,16M json='' install=1
die() { echo "$ME: $*" >&2; exit 1; }
bad_usage() { echo "$ME: $*; see '$ME --help'" >&2; exit 2; }
while [ $# -gt 0 ]; do
    case $1 in
        --help | -h) awk 'NR > 1 { if (!/^#/) exit; sub(/^# ?/, ""); print }' "$0"; exit 0 ;;
        --version) sed -n 's/^AC_INIT(\[mcastcoll\], \[\([^]]*\)\].*/mcastcoll \1/p' "$TOP/configure.ac"; exit 0 ;;
        --hosts | --loss | --sizes | --json) [ $# -ge 2 ] || bad_usage "'$1' needs a value" ;;&
        --hosts) hosts=$2; shift 2 ;;
        --loss) losses=$2; shift 2 ;;
        --sizes) sizes=$2; shift 2 ;;
        --json) json=$2; shift 2 ;;
        --no-install) install=0; shift ;;
        *) bad_usage "'$1' is no option" ;;
    esac
done
[[ $hosts =~ ^[0-9]{1,3}$ ]] && ((10#$hosts >= 2 && 10#$hosts <= 128)) || bad_usage "--hosts '$hosts': give 2 to 128"
hosts=$((10#$hosts))
for p in ${losses//,/ }; do
    [[ $p =~ ^[0-9]+(\.[0-9]+)?$ ]] && awk "BEGIN { exit !($p <= 100) }" || bad_usage "--loss '$p' is no percentage"
done
for s in ${sizes//,/ }; do [[ $s =~ ^[0-9]{1,9}[KM]?$ ]] || bad_usage "--sizes '$s': give bytes, with K or M"; done
[ -n "$losses" ] && [ -n "$sizes" ] || bad_usage "nothing to do"
if [ -n "$json" ]; then
    : >"$json" || die "cannot write $json"
    json=$(realpath "$json")
fi
[ "$(id -u)" = 0 ] || die "needs root (the cluster is made of network namespaces): run it as root or through sudo"
progress() { printf '[%3d s] %s\n' "$SECONDS" "$*"; }

[ $install = 0 ] || { progress "looking for missing packages"; "$TOP/util/install-deps"; }
progress "building (the first time takes a minute or two)"
"$TOP/util/build" --parts quickstart | sed 's/^/        /'
for name in $(compgen -e | grep -E '^(FI_PROVIDER|FI_PROVIDER_PATH|OMPI_MCA_pml|OMPI_MCA_coll|OMPI_MCA_opal_mca_base_component_path)$'); do
    unset "$name"
done
. "$BUILD/env"
check=$BUILD/fabtests/mpi/mpi_bcast_check time=$BUILD/fabtests/mpi/mpi_bcast_time
for f in "$FI_PROVIDER_PATH/libmcastcoll-fi.so" "$BUILD/lib/openmpi/mca_coll_mcastcoll.so" "$check" "$time"; do
    [ -e "$f" ] || die "the build made no $f; see $BUILD/build.log"
done

work=$(mktemp -d)
export VC=quick$$ VC_OWNER=$$
finish() {
    local code=$?
    trap - EXIT
    "$LAB/down" || echo "$ME: the cluster may be left: VC=$VC $LAB/down" >&2
    rm -rf "$work"
    exit $code
}
trap finish EXIT
trap 'exit 130' INT TERM HUP
"$LAB/down" --stale
progress "starting $hosts hosts"
"$LAB/up" "$hosts"

on_cluster() { # on_cluster SECONDS LOG COMMAND...: an MPI job that must end in that time
    local limit=$1 log=$2 code=0
    shift 2
    STACK=mcastcoll OMPI_MCA_coll_mcastcoll_form_after=0 timeout -k 10 "$limit" "$LAB/run" "$@" >"$log" 2>&1 &
    wait $! || code=$? # a signal ends this wait, and with it us, at once
    [ $code != 124 ] || echo "$ME: no end within $limit s" >>"$log"
    return $code
}
failures=0
failed() { # failed WHAT LOG
    failures=$((failures + 1))
    progress "FAILED: $1"
    tail -n 15 "$2" | sed 's/^/        /'
}

verify() { # verify LOSS SIZE: every root broadcasts, every byte is checked, the datagrams of just this are counted
    local p=$1 size=$2 prefix=$work/stats/$1.$2 shown
    shown="$(sed 's/K$/ KiB/; s/M$/ MiB/; s/[0-9]$/& B/' <<<"$size") from $hosts roots"
    mkdir -p "$prefix"
    "$LAB/loss" "$p"
    if FI_MCASTCOLL_STATS=$prefix/s on_cluster 300 "$prefix/log" "$check" --min "$size" --max "$size" --multiple 1 \
        --count $((2 * hosts)) --cycles 0 --contiguous --json "$prefix/check.json"; then
        progress "$p % loss: $shown, every byte right on every rank"
    else
        failed "$p % loss: $shown" "$prefix/log"
    fi
    "$LAB/loss" show --json >"$prefix/loss.json"
}
measure() { # measure LOSS: both broadcasts one after the other, so that what else this machine does hits both
    local p=$1 who out=$work/time.$1 own
    "$LAB/loss" "$p"
    for who in mcastcoll openmpi; do
        progress "$p % loss: timing $who"
        # Open MPI's barrier between the broadcasts of both, or a lost datagram of ours would be charged to the next broadcast.
        own=(--mca coll_mcastcoll_enable bcast)
        [ $who = mcastcoll ] || own=(--mca coll '^mcastcoll')
        on_cluster 300 "$out.log" "${own[@]}" "$time" --sizes "$sizes" --operations bcast --root rotate --iterations 1000 --byte-budget 128M \
            --json "$out.$who" || failed "timing $who at $p % loss" "$out.log"
    done
}
for p in ${losses//,/ }; do
    for size in ${sizes//,/ }; do verify "$p" "$size"; done
    measure "$p"
done

code=0
python3 "$TOP/util/quickstart_table.py" --work "$work" --hosts "$hosts" --loss "$losses" --sizes "$sizes" --json "$work/table.json" || code=$?
[ -z "$json" ] || cp "$work/table.json" "$json"
if command -v gnuplot >/dev/null && "$TOP/util/plot" "$work/table.json" "$BUILD/quickstart.svg"; then
    echo "The times as a figure: $BUILD/quickstart.svg"
fi
[ $failures = 0 ] && [ $code = 0 ] || die "$failures of the runs failed"
progress "done: all bytes right"
echo "Next: ./util/build makes the rest, tools and tests; README.md tells how to use it."
