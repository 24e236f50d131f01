#!/bin/sh
# symbols.sh [PATH] -- the provider (PATH; default: this build's) exports only fi_prov_ini, needs no libfabric internals and
# stays loaded; the interposer, if built, exports only names of MPI, the library for site connections only names of the C library.
case ${1:-} in
    --help) sed -n '2,3s/^# //p' "$0"; exit 0 ;;
    --version) echo "symbols.sh (mcastcoll)"; exit 0 ;;
esac
lib=${1:-${MCASTCOLL_BUILD:-.}/prov/mcastcoll/ofi/.libs/libmcastcoll-fi.so}
[ -r "$lib" ] || { echo "symbols.sh: cannot read $lib" >&2; exit 2; }
# A sanitizer's runtime exports symbols of its own from each object linked with it.
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
split=${MCASTCOLL_BUILD:-.}/.libs/libmcastcoll-split.so
if [ -z "${1:-}" ] && [ -r "$split" ]; then
    # Only names of the C library, and only those of these calls: a program must not see any other symbol of this
    # project.
    calls='accept|accept4|connect|getpeername|read|readv|recv|recvfrom|recvmmsg|recvmsg|send|sendfile|sendfile64|sendmmsg|sendmsg|sendto|splice|write|writev'
    names=$(nm -D --defined-only "$split" | awk '{ print $NF }' | grep -v -e '^__asan' -e '^__ubsan' -e '^__odr_asan')
    if other=$(echo "$names" | grep -vxE "($calls)|__(read|recv|recvfrom)_chk"); then
        echo "symbols.sh: $split exports:" >&2
        echo "$other" >&2
        exit 1
    fi
    echo "$names" | grep -qx connect || { echo "symbols.sh: $split lacks connect" >&2; exit 1; }
    # A build with sanitizers lists all linked libraries as needed.
    if ! nm -D "$split" | grep -q __asan && readelf -d "$split" | grep NEEDED | grep -e fabric -e fmt -e hwloc; then
        echo "symbols.sh: $split brings libraries into programs that do not need them" >&2
        exit 1
    fi
fi
pmpi=${MCASTCOLL_BUILD:-.}/.libs/libmcastcoll-pmpi.so
[ -z "${1:-}" ] && [ -r "$pmpi" ] || exit 0
names=$(nm -D --defined-only "$pmpi" | awk '{ print $NF }' | grep -v -e '^__asan' -e '^__ubsan' -e '^__odr_asan')
if other=$(echo "$names" | grep -v '^MPI_'); then
    echo "symbols.sh: $pmpi exports:" >&2
    echo "$other" >&2
    exit 1
fi
for name in Bcast Barrier Reduce Allreduce Allgather Allgatherv Gather Scatter Alltoall Reduce_scatter Reduce_scatter_block; do
    echo "$names" | grep -qx "MPI_$name" || { echo "symbols.sh: $pmpi lacks MPI_$name" >&2; exit 1; }
done
# The program provides the MPI symbols, from whichever library it uses.
if readelf -d "$pmpi" | grep NEEDED | grep -i 'mpi'; then
    echo "symbols.sh: $pmpi is linked with an MPI" >&2
    exit 1
fi
