#!/bin/sh
# symbols.sh [PATH] -- the provider exports fi_prov_ini and nothing else, needs no libfabric internals, and stays loaded.
# PATH defaults to the build's own.
case ${1:-} in
    --help) sed -n '2,3s/^# //p' "$0"; exit 0 ;;
    --version) echo "symbols.sh (mcastcoll)"; exit 0 ;;
esac
lib=${1:-${MCASTCOLL_BUILD:-.}/prov/mcastcoll/ofi/.libs/libmcastcoll-fi.so}
[ -r "$lib" ] || { echo "symbols.sh: cannot read $lib" >&2; exit 2; }
# A sanitizer's run time exports symbols of its own from whatever it is linked into.
exported=$(nm -D --defined-only "$lib" | awk '{ print $NF }' | grep -v -e '^__asan' -e '^__ubsan' -e '^__odr_asan')
if [ "$exported" != fi_prov_ini ]; then
    echo "symbols.sh: $lib exports:" >&2
    echo "$exported" >&2
    exit 1
fi
if inner=$(nm -D --undefined-only "$lib" | awk '{ print $NF }' | grep '^ofi_'); then
    echo "symbols.sh: $lib needs what libfabric does not export:" >&2
    echo "$inner" >&2
    exit 1
fi
readelf -d "$lib" | grep -q NODELETE || { echo "symbols.sh: $lib can be unloaded" >&2; exit 1; }
