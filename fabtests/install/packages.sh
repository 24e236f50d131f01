#!/bin/bash
# packages.sh [--at DIR] [RELEASE...] -- builds Debian's packages on these releases (bookworm, trixie), and tests them
# on fresh systems.
#
#   fabtests/install/packages.sh trixie
#
# Each release is built in a folder of util/on-debian, as its user would build it: util/install-deps, dpkg-buildpackage.
# The packages stay in DIR/RELEASE/root/packages.  lintian must report neither errors nor warnings.  Then a fresh
# folder, DIR/RELEASE-fresh, gets the release's MPI and compilers, and of this project only the packages, by apt.  An
# ordinary user's jobs run there with only FI_PROVIDER=mcastcoll set; counters, and the libraries mapped into the
# processes, must show that mcastcoll served them. All other installed parts are checked, and after "apt purge" every
# file must be as it was before; dependencies of the packages are installed before this comparison starts. systemd only
# parses the gateway's unit; the test starts a gateway with the user and rights of the unit. 5 to 10 minutes per
# release.  Exit code 77: this machine cannot run the test.
#   --at DIR    the folder (build-packages)
set -u
ME=${0##*/}
TOP=$(cd "$(dirname "$0")/../.." && pwd)
bad_usage() { echo "$ME: $*; see '$ME --help'" >&2; exit 2; }
. "$TOP/fabtests/install/outcomes.sh"
apt() { apt-get -qq -o Dpkg::Options::=--force-confold -o Acquire::Retries=3 "$@" </dev/null; }

# Runs in the folder where packages are built.
build() {
    set -e
    apt update
    ./util/install-deps
    apt install -y --no-install-recommends build-essential debhelper lintian
    rm -rf /root/packages
    git checkout-index -a --prefix=/root/packages/mcastcoll/
    cd /root/packages/mcastcoll
    dpkg-buildpackage -us -uc -j"$(nproc)"
    cd ..
    rm -rf mcastcoll
    echo "lintian:"
    lintian --allow-root --fail-on error,warning ./*.changes
}

# Runs in the fresh folder.
ours=(libfabric-mcastcoll libmcastcoll-dev libmcastcoll-pmpi libmcastcoll-split mcastcoll-doc mcastcoll-gateway mcastcoll-tools openmpi-mcastcoll)
as_user() { (cd /tmp && runuser -u tester -- env -i HOME=/home/tester PATH=/usr/bin:/bin timeout 300 "$@"); }
# All files except the databases and logs of apt and dpkg, and the kernel's file systems.  Lines of /etc/group and
# similar files are sorted.
listing() {
    find / -xdev \( -path /root -o -path /proc -o -path /sys -o -path /dev -o -path /run -o -path /tmp -o -path /home -o -path /var/log -o -path /var/cache \
        -o -path /var/lib/apt -o -path /var/lib/dpkg \) -prune -o ! -name 'ld.so.cache' ! -name '*-' \
        \( -type d -printf '%p\n' -o -printf '%p %s\n' \) | grep -vE '^/etc/(passwd|group|shadow|gshadow|subuid|subgid) ' | sort
    sort /etc/passwd /etc/group /etc/shadow /etc/gshadow
}
serves() { # serves COMMAND...: a job of four processes, whose counters must show operations of the provider
    rm -rf /tmp/counted
    mkdir -m 1777 /tmp/counted
    as_user env FI_MCASTCOLL_STATS=/tmp/counted/by "$@" || return
    python3 - <<'EOF'
import glob, json
files = [json.load(open(path)) for path in glob.glob("/tmp/counted/by*.json")]
total = sum(one["operations_completed"] + one["host_operations"] for one in files)
print(len(files), "processes,", total, "operations")
raise SystemExit(len(files) < 4 or total < 100)
EOF
}
loaded() { # loaded MPIRUN...: a job with enough operations for a group, which prints the libraries in its processes
    cat >/tmp/maps.c <<'EOF'
#include <mpi.h>
#include <stdio.h>
#include <string.h>
int main(int count, char** words) {
    MPI_Init(&count, &words);
    for (int i = 0; i < 200; ++i) MPI_Barrier(MPI_COMM_WORLD);
    char line[4096];
    FILE* maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof(line), maps))
        if (strstr(line, "r-xp")) fputs(line, stdout);
    return MPI_Finalize();
}
EOF
    mpicc.openmpi -o /tmp/maps /tmp/maps.c && as_user "$@" /tmp/maps >/tmp/maps.said || return
    [ "$(grep -c /mca_coll_mcastcoll.so /tmp/maps.said)" = 4 ] && [ "$(grep -c /libmcastcoll-fi.so /tmp/maps.said)" = 4 ]
}
silent() { local said; said=$("$@" 2>&1) && [ -z "$said" ] || { echo "$said"; false; }; }
has_version() { "$1" --version | grep -F "$(sed -n 's/^AC_INIT(\[mcastcoll\], \[\([^]]*\)\].*/\1/p' configure.ac)"; }
compiles() { # compiles COMPILER [LANGUAGE]
    printf '#include <mcastcoll/mcastcoll.h>\nint main(void) { return (int)sizeof(struct fi_mcastcoll_set_ops) == 0; }\n' >/tmp/header.c
    "$1" -x "${2:-c}" -Wall -Wextra -Werror $(pkg-config --cflags mcastcoll) -o /tmp/header /tmp/header.c && /tmp/header
}
gateway_runs() { # as the unit runs it, without systemd
    local key=/etc/mcastcoll/session.key sites=/etc/mcastcoll/sites.conf pid tries=0 code=0
    printf '[site a]\nnetworks = 127.0.0.0/8\ngateway = 127.82.0.1:7400\n[site b]\nnetworks = 10.0.0.0/8\ngateway = 127.82.0.2:7400\n[sessions]\nkey = session.key\n' >$sites
    (umask 077 && head -c 32 /dev/urandom | base64 >$key)
    chown mcastcoll-gateway $key
    setpriv --reuid mcastcoll-gateway --regid mcastcoll-gateway --clear-groups --no-new-privs --inh-caps=-all --bounding-set=-all \
        mcastcoll-gateway --sites $sites --site a --drain 0 &
    pid=$!
    until as_user mcastcoll-gateway --status 127.82.0.1:7400; do
        { kill -0 $pid && [ $((tries += 1)) -lt 60 ]; } || { code=1; break; }
        sleep 1
    done
    kill $pid && wait $pid && rm $key $sites && [ $code = 0 ]
}
unit_is_right() { # and limits the rights of a compromised gateway
    local unit=/usr/lib/systemd/system/mcastcoll-gateway@.service
    systemd-analyze verify --man=no $unit && systemd-analyze security --offline=true --threshold=20 --no-pager $unit
}
left_nothing() { listing | diff /tmp/before -; }
try() {
    local debs=(/root/packages/*.deb) wanted others
    export DEBIAN_FRONTEND=noninteractive
    apt update || exit
    # The packages' dependencies, and the programs for jobs and checks, are installed first, so that only our files are
    # compared.
    others=$(apt-get -s install --no-install-recommends "${debs[@]}" | awk '$1 == "Inst" { print $2 }' | grep -vxF "$(printf '%s\n' "${ours[@]}")")
    apt install -y --no-install-recommends $others openmpi-bin libopenmpi-dev mpich libmpich-dev libfabric-bin libfabric-dev gcc g++ libc6-dev pkgconf python3 \
        openssh-client >/tmp/apt.log 2>&1 || { tail /tmp/apt.log; exit 1; }
    useradd -m tester
    listing >/tmp/before
    check "apt installs them" apt install -y --no-install-recommends "${debs[@]}"

    check "fi_info finds the provider" as_user fi_info -p mcastcoll
    # The programs compare all operations' results with the expected ones.  Open MPI's component begins to serve after
    # 100 operations of a communicator.
    check "mpicc.openmpi builds a program" mpicc.openmpi -O1 -o /tmp/check.openmpi fabtests/mpi/mpi_coll_{check,cases}.c -lpthread
    check "mpicc.mpich builds a program" mpicc.mpich -O1 -o /tmp/check.mpich fabtests/mpi/mpi_pmpi_{check,calls}.c
    local job=(env FI_PROVIDER=mcastcoll mpirun --map-by :OVERSUBSCRIBE -n 4) # there may be fewer processors
    check "FI_PROVIDER=mcastcoll mpirun" as_user "${job[@]}" /tmp/check.openmpi
    check "... has component and provider in it" loaded "${job[@]}"
    check "... which serve" serves "${job[@]}" /tmp/check.openmpi
    check "so does it over pml cm" serves "${job[@]}" --mca pml cm --mca mtl ofi /tmp/check.openmpi
    check "so does MPICH with the interposer" serves mpiexec.mpich -n 4 env LD_PRELOAD=libmcastcoll-pmpi.so /tmp/check.mpich
    check "the loader finds libmcastcoll-split.so by its name" silent env LD_PRELOAD=libmcastcoll-split.so true
    for tool in cp doctor gateway perf sim topo tune; do check "mcastcoll-$tool --version" has_version "mcastcoll-$tool"; done
    check "mcastcoll-topo shows this host" as_user mcastcoll-topo
    check "mcastcoll-sim simulates" as_user mcastcoll-sim --ranks 16 --ops 10
    check "mcastcoll-perf measures" as_user mcastcoll-perf --ranks 2 --operation bcast --sizes 8 --rounds 1 --seconds 0.05
    check "a gateway runs as its own user" gateway_runs
    check "systemd takes its unit" unit_is_right
    check "the header compiles as C" compiles gcc
    check "the header compiles as C++" compiles g++ c++
    check "documentation is there" test -e /usr/share/doc/mcastcoll-doc/README.md.gz -o -e /usr/share/doc/mcastcoll-doc/README.md

    mkdir -p /etc/systemd/system/multi-user.target.wants
    ln -s /usr/lib/systemd/system/mcastcoll-gateway@.service /etc/systemd/system/multi-user.target.wants/mcastcoll-gateway@lyon.service
    check "apt purges them" apt purge -y "${ours[@]}"
    rmdir /etc/systemd/system/multi-user.target.wants /etc/systemd/system 2>/dev/null
    check "nothing is left" left_nothing
    echo "$passed passed, $failed failed, 0 skipped"
    [ $failed = 0 ]
}
case ${1:-} in
    --build) build; exit ;;
    --try) try; exit ;;
esac

at=$TOP/build-packages
while case ${1:-} in -*) true ;; *) false ;; esac do
    case $1 in
        --help | -h) awk 'NR > 1 { if (!/^#/) exit; sub(/^# ?/, ""); print }' "$0"; exit 0 ;;
        --at) [ $# -ge 2 ] && [ -n "$2" ] || bad_usage "'$1' needs a folder"; at=$2; shift 2 ;;
        *) bad_usage "'$1' is no option" ;;
    esac
done
[ $# -gt 0 ] || set -- bookworm trixie
mkdir -p "$at"
inside() { # inside FOLDER RELEASE WHAT
    "$TOP/util/on-debian" --at "$1" "$2" fabtests/install/packages.sh "$3"
}
built() { [ $code = 0 ] || { tail -n 25 "$at/$release.log"; false; }; }
forget() { [ ! -e "$1/.on-debian" ] || find "$1" -xdev -delete; }
for release; do
    echo "$release: building; $at/$release.log"
    code=0
    inside "$at/$release" "$release" --build >"$at/$release.log" 2>&1 || code=$?
    if [ $code = 77 ]; then grep '^skip ' "$at/$release.log"; exit 77; fi
    check "$release: they are built, and lintian has nothing to say" built || continue
    fresh=$at/$release-fresh
    forget "$fresh"
    "$TOP/util/on-debian" --at "$fresh" "$release" mkdir -p /root/packages >>"$at/$release.log" 2>&1
    cp "$at/$release"/root/packages/*.deb "$fresh/root/packages/"
    rm -f "$fresh"/root/packages/*-dbgsym_*
    inside "$fresh" "$release" --try >"$at/$release.tried" 2>&1
    sed "s/^\(ok  \|FAIL\) /\1 $release: /; / skipped\$/d" "$at/$release.tried"
    read -r p _ f _ < <(grep ' skipped$' "$at/$release.tried")
    passed=$((passed + ${p:-0})) failed=$((failed + ${f:-1}))
    forget "$fresh"
done
echo "$passed passed, $failed failed, 0 skipped"
[ $failed = 0 ]
