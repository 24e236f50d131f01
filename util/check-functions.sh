#!/bin/bash
# check-functions.sh FUNCTION -- runs a step of util/check-steps that needs more than one command.
#
# util/check.sh calls this script; by hand, "util/check-functions.sh symbols" runs only that step.  A function follows the
# rules of each test: exit code 0 if all is well, 77 after a line "skip REASON" if this machine cannot run the step, and, if
# the function counts, a last line "N passed, N failed, N skipped".
#
# Environment, set by util/check.sh: CHECK_STEPS and CHECK_GROUPS, the names of the steps and of the groups of this run;
# CHECK_NO_INSTALL, not empty if packages must not be installed.
set -u
ME=${0##*/}
TOP=$(cd "$(dirname "$0")/.." && pwd)
cd "$TOP" || exit 1

packages() {
    [ -z "${CHECK_NO_INSTALL:-}" ] || return 0
    util/install-deps || return
    # Without these packages, the steps "processors" and "verbs" say that they are skipped.
    util/install-deps --processors || echo "cannot install the cross compilers and their emulator"
    util/install-deps --lab || echo "cannot install the packages for the virtual machine"
}

# Three jobs keep two processors busy, because many tests wait.  With MCC_SEED_STEP=8 the simulator takes an eighth of its seeds;
# "make check" alone takes all seeds.  Without --all, MCC_QUICK leaves out variants, too.
units() {
    [[ " ${CHECK_GROUPS:-} " == *" all "* ]] || export MCC_QUICK=1
    MCC_SEED_STEP=8 make -C build -j3 VERBOSE=1 check || { echo "FAIL make check"; return 1; }
    grep -q '^# PASS: *[1-9]' build/test-suite.log || { echo "FAIL make check ran no test"; return 1; }
}

selftest() { VC=mcs$$ NET=10.79 exec util/cluster/selftest; }

quickstart() { exec util/quickstart.sh --no-install --hosts 4 --loss 2 --limit 20 --json build-check/quickstart.json; }

large() {
    fabtests/cluster/mpi_large.sh --one-host 34,64 && fabtests/cluster/mpi_large.sh --one-host 257 --hosts 0 --pml ob1
}

thousand() {
    fabtests/cluster/large_groups.sh --members 1024 --loss 1 --case everything &&
        fabtests/cluster/large_groups.sh --members 256 --loss 1 --case dies
}

memcheck() { cd build && exec ../fabtests/functional/valgrind.sh; }

# -- Debian 13, in a folder: its gcc, libfabric (other TCP and ofi_rxm) and Open MPI 5 (which queries an accelerator component, here a
# made-up one, where a buffer is).
debian13_tests=(fi_mcc_tagged fabtests/unit/test_ports fabtests/mpi/test_accelerator)
on_debian13() { util/on-debian trixie "$@"; }

# Code 77 if this machine cannot make the folder: without root, disk space or network.  The build is plain: it compiles each file by
# itself, without precompiled headers, so it also finds files that lack an #include.  It is not optimised, to be quicker.
debian13_build() {
    ! grep -q '^VERSION_CODENAME=trixie' /etc/os-release || { echo "skip this is Debian 13 itself"; return 77; }
    on_debian13 true || return
    # Only missing packages need the network.
    on_debian13 ./util/install-deps --check || on_debian13 apt-get -qq -o APT::Update::Error-Mode=any update ||
        { echo "skip cannot fetch Debian 13's packages"; return 77; }
    on_debian13 ./util/install-deps &&
        on_debian13 ./util/build --parts quickstart --enable-werror --disable-build-speed CFLAGS="-O0 -g0" CXXFLAGS="-O0 -g0" &&
        on_debian13 make -C build -j2 "${debian13_tests[@]}" fabtests/mpi/mpi_coll_check lib/fake/mca_accelerator_mccfake.so
}

debian13() {
    local test
    debian13_build || return
    for test in "${debian13_tests[@]}"; do
        on_debian13 bash -c "cd build && ../fabtests/run-test $test" || { echo "FAIL $test"; return 1; }
    done
    on_debian13 ./fabtests/cluster/mpi_loss.sh --loss 5 --count 100 --hosts 3 &&
        on_debian13 ./fabtests/cluster/mpi_device.sh --count 100 --max 64K
}

# -- Sanitizers, in build-asan.  Without -Werror: instrumented code makes gcc warn of code that is right.
build_sanitized() { util/build --dir build-asan --parts "$1" --enable-sanitizers=address,undefined --without-ompi; }

# Builds for Debian 13, too, if the run has that step, so that both builds go on beside the steps that wait.
asan_build() {
    case " ${CHECK_STEPS:-} " in
        *" debian13 "*) debian13_build || echo "the step debian13 reports this failure" ;;
    esac
    build_sanitized tests
}

# asan_tests TARGET JOBS: libfabric, Open MPI and Criterion keep allocated memory until the process ends.  A leak of our own has
# our names in its trace.
asan_tests() {
    printf 'leak:%s\n' libfabric.so libcriterion.so libboxfort.so libopen-pal.so libopen-rte.so libmpi.so libpmix libhwloc libibverbs.so \
        librdmacm.so libpsm >build-asan/lsan.supp
    MCC_SEED_STEP=80 MCC_SEEDS=60 MCC_QUICK=1 UBSAN_OPTIONS=print_stacktrace=1 \
        ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1:detect_stack_use_after_return=0 \
        LSAN_OPTIONS=suppressions=$TOP/build-asan/lsan.supp:print_suppressions=0 make -C build-asan -j"$2" VERBOSE=1 "$1"
}
asan_pure() { asan_tests check-pure 2; }
asan_units() { asan_tests check-rest 3; }

# Finds use after free, but no leaks: MPICH and libfabric keep memory until the process ends.
asan_pmpi() { ASAN_OPTIONS=detect_leaks=0 MCASTCOLL_BUILD=$TOP/build-asan exec fabtests/cluster/mpi_pmpi.sh --alone --count 60; }

# Runs the inputs of the corpus, and inputs changed at random, the same in each run.  util/fuzz searches for new inputs, with clang.
fuzz() {
    local file name runs corpus passed=0 failed=0
    build_sanitized fuzzers || return
    for file in fabtests/fuzz/fuzz_*.cc; do
        name=${file##*/fuzz_} name=${name%.cc} corpus=()
        [ ! -d "fabtests/fuzz/corpus/$name" ] || corpus=("fabtests/fuzz/corpus/$name")
        if runs=$(UBSAN_OPTIONS=print_stacktrace=1 timeout 120 "build-asan/fabtests/fuzz/fuzz_$name" --seconds 4 \
            --findings "build-check/fuzz-$name" "${corpus[@]}"); then
            echo "ok   $name: $runs"
            passed=$((passed + 1))
        else
            echo "FAIL $name"
            failed=$((failed + 1))
        fi
    done
    echo "$passed passed, $failed failed, 0 skipped"
    [ $failed = 0 ]
}

# -- Results of the build, and sources.
# exports LIBRARY NAME: the library exports NAME, a pattern of grep for a whole line, and no other symbol (type A: a version).
exports() {
    local names others
    [ -e "$1" ] || { echo "FAIL no $1"; return 1; }
    names=$(nm -D --defined-only "$1" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }')
    [ -n "$names" ] || { echo "FAIL $1 exports nothing"; return 1; }
    others=$(grep -vx "$2" <<<"$names") || { echo "ok   $1 exports only $2"; return 0; }
    echo "FAIL $1 exports" $others
    return 1
}

symbols() {
    local bad=0
    exports build/lib/libmcastcoll-fi.so fi_prov_ini || bad=1
    exports build/lib/openmpi/mca_coll_mcastcoll.so mca_coll_mcastcoll_component || bad=1
    exports build/lib/pmpi/libmcastcoll-pmpi.so 'MPI_.*' || bad=1
    return $bad
}

# The source archive has each file that the repository has.
dist() {
    local archive missing
    git rev-parse >/dev/null 2>&1 || { echo "skip this is no clone: nothing to compare the archive with"; return 77; }
    make -C build dist-xz || return
    archive=$(ls -t build/mcastcoll-*.tar.xz | head -n 1)
    missing=$(comm -23 <(git ls-files | grep -v '^\.gitignore$' | sort) <(tar -tf "$archive" | sed 's,^[^/]*/,,' | sort))
    rm -f "$archive"
    [ -z "$missing" ] || { sed 's/^/FAIL EXTRA_DIST lacks /' <<<"$missing"; return 1; }
}

# sources PATTERN...: files of the repository, or, without git, of the folder.
sources() {
    local pattern
    git ls-files "$@" 2>/dev/null ||
        for pattern in "$@"; do find . -path './build*' -prune -o -name "$pattern" -print; done
}

style() {
    local files
    mapfile -t files < <(sources '*.cc' '*.h' '*.c')
    [ ${#files[@]} -gt 0 ] || { echo "FAIL found no sources"; return 1; }
    # Each version of clang-format formats differently.
    clang-format --version
    clang-format --version | grep -q 'version 14\.' || { echo "skip needs clang-format 14"; return 77; }
    printf '%s\0' "${files[@]}" | xargs -0 -n 20 -P "$(nproc)" clang-format --dry-run -Werror 2>&1 ||
        { echo "FAIL format the files with clang-format -i"; return 1; }
}

# Each script has correct syntax, and each command of util/ has a --help that fits a screen.
scripts() {
    local file bad=0
    while read -r file; do bash -n "$file" || bad=1; done < <(grep -lE '^#!/bin/(ba)?sh|^# shellcheck shell=' -r util fabtests .ci)
    while read -r file; do
        python3 -c 'import ast, sys; ast.parse(open(sys.argv[1]).read(), sys.argv[1])' "$file" || bad=1
    done < <(sources '*.py')
    for file in util/* util/cluster/*; do
        [ -f "$file" ] && [ -x "$file" ] || continue
        [ "$("$file" --help 2>&1 | wc -l)" -le 30 ] || { echo "FAIL $file --help has more than 30 lines"; bad=1; }
    done
    return $bad
}

case ${1:-} in
    --help | -h) awk 'NR > 1 { if (!/^#/) exit; sub(/^# ?/, ""); print }' "$0"; exit 0 ;;
    --version) sed -n 's/^AC_INIT(\[mcastcoll\], \[\([^]]*\)\].*/mcastcoll \1/p' configure.ac; exit 0 ;;
esac
[ $# = 1 ] && [ "$(type -t "$1")" = function ] || { echo "$ME: give the name of a function; see '$ME --help'" >&2; exit 2; }
"$1"
