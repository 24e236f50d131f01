#!/bin/bash
# emulated.sh [--seeds N] [--all] [ARCH...] -- runs pure tests and the simulator on processors that this machine
# emulates.
#
# For each of Debian's architectures (s390x, which is big-endian, and arm64, whose char is unsigned) builds pure tests
# with the cross compiler, against libraries of this machine's release of Debian, unpacked in build-for-ARCH/, and runs
# them in qemu.  Then the simulator runs some seeds there and here: the same bytes must arrive at the same times.
# Prints the processor time of each part. Exit code 77: this machine cannot run the test, and a line gives the reason.
# util/install-deps --processors installs the prerequisites.
#   --seeds N   of the simulator, each a whole group and then engines alone [40]
#   --all       the slow tests, too: of the engine, of levels and groups, some minutes each
set -uo pipefail
ME=${0##*/}
TOP=$(cd "$(dirname "$0")/../.." && pwd)
bad_usage() { echo "$ME: $*; see '$ME --help'" >&2; exit 2; }
seeds=40 tests=(wire reduce reliable)
while case ${1:-} in -*) true ;; *) false ;; esac do
    case $1 in
        --help | -h) awk 'NR > 1 { if (!/^#/) exit; sub(/^# ?/, ""); print }' "$0"; exit 0 ;;
        --version) sed -n 's/^AC_INIT(\[mcastcoll\], \[\([^]]*\)\].*/mcastcoll \1/p' "$TOP/configure.ac"; exit 0 ;;
        --seeds) [[ ${2:-} =~ ^[1-9][0-9]*$ ]] || bad_usage "'--seeds' needs a number"; seeds=$2; shift 2 ;;
        --all) tests+=(sites engine levels group simulator); shift ;;
        *) bad_usage "'$1' is no option" ;;
    esac
done
[ $# -gt 0 ] || set -- s390x arm64
mapfile -t arches < <(printf '%s\n' "$@" | sort -u)
jobs=$((($(nproc) + ${#arches[@]} - 1) / ${#arches[@]})) # they are built and run in parallel
declare -A triplet=([s390x]=s390x-linux-gnu [arm64]=aarch64-linux-gnu)
cannot() { echo "skip $*"; exit 77; }
# Found by its file name, of which distributions have two forms.
emulator_of() { local name=qemu-${triplet[$1]%%-*}; command -v "$name-static" || command -v "$name"; }
for arch in "${arches[@]}"; do
    [ -n "${triplet[$arch]:-}" ] || bad_usage "'$arch' is none of: ${!triplet[*]}"
    for program in "${triplet[$arch]}-gcc" "${triplet[$arch]}-g++" apt-get dpkg-deb; do
        command -v "$program" >/dev/null || cannot "there is no $program"
    done
    emulator_of "$arch" >/dev/null || cannot "there is no emulator of $arch: qemu-user-static"
done
here=$TOP/build/util/sim/mcastcoll-sim
[ -x "$here" ] || { echo "$ME: no $here: run util/build" >&2; exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# unpack ARCH: fills build-for-ARCH/root with the libraries and headers; returns false if they are not available.  This
# apt is independent of the machine's own.
unpack() {
    local at=$TOP/build-for-$1 deb mirror options
    [ ! -e "$at/unpacked" ] || return 0
    mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 'Origin: Debian' 2>/dev/null | head -n 1)
    [ -n "$mirror" ] || { echo "apt has no source of Debian's packages"; return 1; }
    rm -rf "$at" && mkdir -p "$at"/apt/{lists,archives}/partial "$at/root" && : >"$at/apt/status"
    echo "deb [arch=$1 signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $(. /etc/os-release; echo "$VERSION_CODENAME") main" \
        >"$at/apt/sources"
    options=(-q -o "APT::Architecture=$1" -o "APT::Architectures=$1" -o APT::Sandbox::User=root -o Acquire::Languages=none -o Acquire::Retries=3
        -o "Dir::State=$at/apt" -o "Dir::State::status=$at/apt/status" -o "Dir::Cache=$at/apt" -o "Dir::Etc::sourcelist=$at/apt/sources"
        -o Dir::Etc::sourceparts=/dev/null -o Dir::Etc::preferencesparts=/dev/null)
    apt-get "${options[@]}" update && apt-get "${options[@]}" install --no-install-recommends --download-only -y libc6-dev libfabric-dev \
        libisal-dev nettle-dev libssl-dev libzstd-dev libfmt-dev libcli11-dev nlohmann-json3-dev || return
    for deb in "$at"/apt/archives/*.deb; do dpkg-deb -x "$deb" "$at/root" || return; done
    rm -rf "$at/apt" && : >"$at/unpacked"
}
build() { # build ARCH
    local at=$TOP/build-for-$1 cross=${triplet[$1]}
    cd "$at" || return
    # Criterion is not available on every processor: a header replaces it for these tests.
    [ -e config.status ] || PKG_CONFIG_SYSROOT_DIR=$at/root PKG_CONFIG_LIBDIR=$at/root/usr/lib/$cross/pkgconfig:$at/root/usr/share/pkgconfig \
        "$TOP/configure" --host="$cross" CC="$cross-gcc --sysroot=$at/root" CXX="$cross-g++ --sysroot=$at/root" --enable-werror \
        --without-ompi --without-mpich --without-verbs --without-munge \
        CRITERION_CFLAGS="-I$TOP/fabtests/processors" CRITERION_LIBS=-pthread || return
    make -j"$jobs" MCC_WHOLE= "${tests[@]/#/fabtests/unit/test_}" util/sim/mcastcoll-sim
}
simulate() { # simulate COMMAND...: prints the arrived data, seed by seed
    local seed
    for ((seed = 1; seed <= seeds; ++seed)); do "$@" --campaign 1 --first "$seed" || return; done
}
compare() { # compare COMMAND...
    simulate "$here" >"$work/here" && simulate "$@" >"$work/there" || return
    grep -q '^ *packets [0-9a-f]' "$work/here" || { echo "the simulator here says nothing of packets"; return 1; }
    diff "$work/here" "$work/there"
}
part() { # part WHAT COMMAND...: runs COMMAND, and prints the result and the cost
    local what=$1 code=0
    shift
    local TIMEFORMAT='%U %S'
    { time "$@" >"$work/log" 2>&1; } 2>"$work/took" || code=$?
    what+=$(awk '{ printf ", %.1f s of processors", $1 + $2 }' "$work/took")
    if [ $code = 0 ]; then
        echo "ok   $what"
    else
        tail -n 30 "$work/log"
        echo "FAIL $what: code $code"
    fi
    return $code
}
examine() { # examine ARCH: all parts
    local run name
    part "$1: build" build "$1" || return
    run=("$(emulator_of "$1")" -L "$TOP/build-for-$1/root")
    for name in "${tests[@]}"; do
        MCC_QUICK=1 MCC_SEED_STEP=40 part "$1: test_$name" timeout 900 "${run[@]}" "$TOP/build-for-$1/fabtests/unit/test_$name"
    done
    part "$1: $seeds seeds of the simulator, there and here" compare timeout 300 "${run[@]}" "$TOP/build-for-$1/util/sim/mcastcoll-sim"
}

for arch in "${arches[@]}"; do
    unpack "$arch" >"$work/log" 2>&1 || cannot "the libraries of $arch cannot be had: $(tail -n 1 "$work/log")"
done
for arch in "${arches[@]}"; do
    mkdir "$work/$arch"
    (work=$work/$arch && examine "$arch" && echo "     $arch: all parts were run") >"$work/$arch.said" 2>&1 &
done
wait
for arch in "${arches[@]}"; do
    grep -qE "^FAIL |^     $arch: all parts" "$work/$arch.said" || echo "FAIL $arch: it was ended" >>"$work/$arch.said"
done
cat "$work"/*.said
count() { cat "$work"/*.said | grep -c "^$1 "; }
echo "$(count ok) passed, $(count FAIL) failed, 0 skipped"
[ "$(count FAIL)" = 0 ] && [ "$(count ok)" -gt 0 ]
