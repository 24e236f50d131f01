#!/bin/bash
# check.sh [--quick] [--no-install] [--only STEP,STEP,..] [--list] -- is everything all right?  35 to 45 minutes on two cores.
#
# Builds in build/ and, with sanitizers, in build-asan/; runs the unit and functional tests in both, the cluster's selftest and MPI
# jobs on the cluster, with datagrams lost, multicast cut and restored, a slow member and a rank killed, in a virtual machine with
# RDMA, and on Debian 13; checks exported symbols, the installation and the style.  Most jobs on the cluster wait more than they
# compute, so the builds with sanitizers and on Debian 13 go on beside them, with what they leave of the processors.  Every step has a
# time limit and its log in build-check/.  The last line is "N passed, N failed, N skipped", the exit code is 1 if anything failed.  A
# step that this machine cannot run (the cluster needs root and network namespaces) says so and counts as skipped.
#   --quick        build, tests and style only            --no-install  do not look for missing packages
#   --only STEPS   only these                             --list        name the steps
set -u
ME=${0##*/}
TOP=$(cd "$(dirname "$0")/.." && pwd)
cd "$TOP" || exit 1
LOGS=$TOP/build-check
read -r BEGUN _ </proc/uptime
DEADLINE=3600 # a slow machine is no failure; two quiet cores need less than 45 minutes
# As they stand at the end of this file.
mapfile -t all < <(sed -nE 's/^ *(\[[^|]*\|\| )?(step|aside) ([a-z0-9-]+) [0-9].*/\3/p' "$0")
quick=(packages build units symbols style scripts)
bad_usage() { echo "$ME: $*; see '$ME --help'" >&2; exit 2; }
steps=("${all[@]}")
while [ $# -gt 0 ]; do
    case $1 in
        --help | -h) awk 'NR > 1 { if (!/^#/) exit; sub(/^# ?/, ""); print }' "$0"; exit 0 ;;
        --version) sed -n 's/^AC_INIT(\[mcastcoll\], \[\([^]]*\)\].*/mcastcoll \1/p' "$TOP/configure.ac"; exit 0 ;;
        --list) printf '%s\n' "${all[@]}"; exit 0 ;;
        --quick) steps=("${quick[@]}"); shift ;;
        --no-install) NO_INSTALL=1; shift ;;
        --only) [ $# -ge 2 ] || bad_usage "'--only' needs names of steps"; IFS=, read -ra steps <<<"$2"; shift 2 ;;
        *) bad_usage "'$1' is no option" ;;
    esac
done
for s in "${steps[@]}"; do
    case " ${all[*]} " in *" $s "*) ;; *) bad_usage "'$s' is no step; there are: ${all[*]}" ;; esac
done
# What the caller's shell chose for libfabric, Open MPI or sanitizers must not change a verdict.
for name in $(compgen -e | grep -E '^(FI|OMPI|ASAN|UBSAN|LSAN|VC|NET|HOSTS|STACK|MCASTCOLL)(_|$)'); do unset "$name"; done
rm -rf "$LOGS"
mkdir -p "$LOGS"

passed=0 failed=0 skipped=0 spent=0 job='' aside='' aside_begun=0 aside_limit=0
interrupted() {
    local p
    for p in $job ${aside#failed}; do kill "$p"; wait "$p"; done 2>/dev/null
    [ "$(id -u)" != 0 ] || "$TOP/util/cluster/down" --stale
    echo "$ME: interrupted"
    exit 130
}
trap interrupted INT TERM HUP

# Adds what a step's own log counts: the summary of "make check", or a closing line like ours.  Prints nothing.
count_from() { # count_from LOG; false if the log counts nothing
    local p f s
    # "make check" may print its totals twice, a failing run's log having them too: each "# TOTAL" starts anew.
    read -r p f s < <(awk '
        /^# TOTAL: +[0-9]+$/ { p = f = s = 0; seen = 1 }
        /^# (PASS|XFAIL): +[0-9]+$/ { p += $3; seen = 1 }
        /^# (FAIL|XPASS|ERROR): +[0-9]+$/ { f += $3; seen = 1 }
        /^# SKIP: +[0-9]+$/ { s += $3; seen = 1 }
        /^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$/ { p += $1; f += $3; s += $5; seen = 1 }
        END { if (seen) print p + 0, f + 0, s + 0 }' "$1") || return 1
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
    counted="$p passed$([ "$f" = 0 ] || echo ", $f failed")$([ "$s" = 0 ] || echo ", $s skipped")"
    step_failed=$f
}

# What ended children of this shell have taken of the processors, in seconds.
count_processors() {
    times >"$LOGS/times"
    spent=$(awk -F'[ms ]+' 'END { printf "%d", 60 * ($1 + $3) + $2 + $4 }' "$LOGS/times")
}
wanted() { case " ${steps[*]} " in *" $1 "*) ;; *) return 1 ;; esac; }
# Starts a step as process $started, which may take $limit seconds; false if no time is left.
start() { # start NAME LIMIT_s WHAT COMMAND...
    local name=$1
    limit=$2
    printf '[%4d s] %-10s %s\n' "$SECONDS" "$name" "$3"
    shift 3
    ((limit < DEADLINE - SECONDS)) || limit=$((DEADLINE - SECONDS))
    if ((limit < 5)); then
        echo "         $name: FAILED, no time is left"
        failed=$((failed + 1))
        return 1
    fi
    if [ "$(type -t "$1")" = function ]; then
        export -f "$1"
        set -- bash -c "set -u; $1"
    fi
    TOP=$TOP ${lowly[@]+"${lowly[@]}"} timeout -k 15 "$limit" "$@" </dev/null >"$LOGS/$name.log" 2>&1 &
    started=$!
}
conclude() { # conclude NAME LIMIT_s SECONDS CODE: says and counts how a step ended
    local name=$1 limit=$2 took=$3 code=$4 log=$LOGS/$1.log counted='' step_failed=0 before=$spent
    count_processors
    took="$took s, of the processors $((spent - before)) s"
    count_from "$log" || case $code in
        0) passed=$((passed + 1)) ;;
        77) skipped=$((skipped + 1)) ;;
    esac
    case $code in
        0) echo "         $name: ok${counted:+, $counted} ($took)"; return 0 ;;
        77) echo "         $name: skipped: $(grep -m 1 '^skip ' "$log" | cut -c6-)"; return 0 ;;
        124 | 137) echo "         $name: FAILED, no end within $limit s${counted:+ ($counted)}" ;;
        *) echo "         $name: FAILED, code $code${counted:+ ($counted)}" ;;
    esac
    [ "$step_failed" != 0 ] || failed=$((failed + 1))
    { grep -E '^(FAIL|ERROR|XPASS)[: ]|error:|ERROR: AddressSanitizer|runtime error' "$log" | head -n 20; echo ...; tail -n 15 "$log"; } | sed 's/^/         | /'
    echo "         all of it is in $log"
    neighbours_lost
    return 1
}
# A kernel whose table of neighbours overflows drops packets of every cluster on the machine, which can make any step fail.
neighbours_lost() {
    dmesg 2>/dev/null | awk -F'[][ ]+' -v begun="$BEGUN" '/neighbor table overflow/ && $2 + 0 >= begun { n++; line = $0 }
        END { if (n) printf "         the kernel dropped packets meanwhile (%d lines of dmesg): %s\n", n, line }'
}
step() { # step NAME LIMIT_s WHAT COMMAND...
    local begun=$SECONDS code=0 limit lowly=()
    wanted "$1" || return 0
    start "$@" || return
    job=$started
    wait "$job" || code=$?
    job=''
    conclude "$1" "$limit" $((SECONDS - begun)) "$code"
}
# A step that only computes: it goes on beside later ones, with what processors those leave, until `await` waits for it.
aside() { # aside NAME LIMIT_s WHAT COMMAND...
    local limit lowly=(nice -n 5) # not "idle": ranks that wait yield, and would leave it nothing
    wanted "$1" || return 0
    aside=failed
    start "$1" "$2" "$3, beside what follows" "${@:4}" || return
    aside=$started aside_begun=$EPOCHSECONDS aside_limit=$limit
}
await() { # await NAME: as step does
    local code=0
    wanted "$1" || return 0
    [ "$aside" != failed ] || return 1
    wait "$aside" || code=$?
    aside=''
    conclude "$1" "$aside_limit" $(($(stat -c %Y "$LOGS/$1.log") - aside_begun)) "$code" # its log's last line is its end
}

packages() {
    [ -z "${NO_INSTALL:-}" ] || return 0
    "$TOP/util/install-deps" || return
    "$TOP/util/install-deps" --processors || echo "cross compilers and their emulator cannot be had" # its step says so
    "$TOP/util/install-deps" --lab || echo "the virtual machine's packages cannot be had" # its step says so
}
# Three at a time keep two processors busy, since many tests wait.  A third of the simulator's seeds; "make check" takes them all.
units() { # passing without a single test is no pass
    MCC_SEED_STEP=3 make -C "$TOP/build" -j3 VERBOSE=1 check && grep -q '^# PASS: *[1-9]' "$TOP/build/test-suite.log" || { echo "FAIL make check: failed, or ran no test"; return 1; }
}
# Debian 13 in a folder, with a build of what carries MPI jobs, a made-up accelerator for Open MPI 5, and tests of what is other there:
# libfabric's TCP and its ofi_rxm, and what Open MPI is asked about a buffer.
# Without optimising the provider as one, which is for speed.  Code 77, and a line that says why, where that cannot be had: without root, room or a network.
export DEBIAN13_TESTS='fi_mcc_tagged fabtests/unit/test_ports fabtests/mpi/test_accelerator'
on_debian13() { "$TOP/util/on-debian" trixie "$@"; }
debian13_build() {
    ! grep -q '^VERSION_CODENAME=trixie' /etc/os-release || { echo "skip this is Debian 13 itself"; return 77; }
    on_debian13 true || return
    on_debian13 ./util/install-deps --check || # which is all that needs a network
        on_debian13 apt-get -qq -o APT::Update::Error-Mode=any update || { echo "skip Debian 13's packages cannot be fetched"; return 77; }
    on_debian13 ./util/install-deps && on_debian13 ./util/build --parts quickstart --enable-werror CFLAGS="-O1 -g0" CXXFLAGS="-O1 -g0" &&
        on_debian13 make -C build -j2 $DEBIAN13_TESTS fabtests/mpi/mpi_coll_check lib/fake/mca_accelerator_mccfake.so
}
debian13() {
    local test
    debian13_build || exit
    for test in $DEBIAN13_TESTS; do
        on_debian13 bash -c "cd build && ../fabtests/run-test $test" || { echo "FAIL $test"; exit 1; }
    done
    on_debian13 ./fabtests/cluster/mpi_loss.sh --loss 5 --count 100 --hosts 3 &&
        on_debian13 ./fabtests/cluster/mpi_device.sh --count 100 --max 64K
}
export -f on_debian13 debian13_build
# Without -Werror: what sanitizers insert makes gcc warn of code that is right.
asan_build() {
    [ -z "$DEBIAN13" ] || debian13_build || echo "that is for the step debian13 to say"
    build_sanitized tests && echo built
}
build_sanitized() { "$TOP/util/build" --dir "$TOP/build-asan" --parts "$1" --enable-sanitizers=address,undefined --without-ompi; }
export -f build_sanitized
# libfabric, Open MPI and Criterion keep what they allocated until the process ends; our own leaks have our names in the trace.
asan_tests() { # asan_tests TARGET JOBS
    printf 'leak:%s\n' libfabric.so libcriterion.so libboxfort.so libopen-pal.so libopen-rte.so libmpi.so libpmix libhwloc libibverbs.so \
        librdmacm.so libpsm >"$TOP/build-asan/lsan.supp"
    MCC_SEED_STEP=80 MCC_SEEDS=60 MCC_QUICK=1 ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1:detect_stack_use_after_return=0 UBSAN_OPTIONS=print_stacktrace=1 \
        LSAN_OPTIONS=suppressions=$TOP/build-asan/lsan.supp:print_suppressions=0 make -C "$TOP/build-asan" -j"$2" VERBOSE=1 "$1"
}
asan_pure() { asan_tests check-pure 2; }
# The kept inputs, then some changed at random, the same ones each time.  util/fuzz looks for new ones, with clang.
fuzz() {
    local f name runs passed=0 failed=0
    build_sanitized fuzzers || exit
    for f in "$TOP"/fabtests/fuzz/fuzz_*.cc; do
        name=${f##*/fuzz_} name=${name%.cc}
        if runs=$(UBSAN_OPTIONS=print_stacktrace=1 timeout 120 "$TOP/build-asan/fabtests/fuzz/fuzz_$name" --seconds 4 \
            --findings "$TOP/build-check/fuzz-$name" $(ls -d "$TOP/fabtests/fuzz/corpus/$name" 2>/dev/null)); then
            echo "ok   $name: $runs" && passed=$((passed + 1))
        else
            echo "FAIL $name" && failed=$((failed + 1))
        fi
    done
    echo "$passed passed, $failed failed, 0 skipped"
    [ $failed = 0 ]
}
asan_units() { asan_tests check-rest 3; }
export -f asan_tests
# What MPICH and libfabric keep is not looked for; what is used after it was freed is.
asan_pmpi() { ASAN_OPTIONS=detect_leaks=0 MCASTCOLL_BUILD=$TOP/build-asan "$TOP/fabtests/cluster/mpi_pmpi.sh" --alone --count 60; }
symbols() {
    local want so bad=0
    for want in fi_prov_ini:lib/libmcastcoll-fi.so mca_coll_mcastcoll_component:lib/openmpi/mca_coll_mcastcoll.so; do
        so=$TOP/build/${want#*:}
        [ -e "$so" ] || { echo "FAIL no $so"; bad=1; continue; }
        got=$(nm -D --defined-only "$so" | awk '{print $NF}' | sed 's/@.*//' | grep -v '^MCASTCOLL' | sort -u)
        if [ "$got" = "${want%%:*}" ]; then echo "ok   $so exports ${want%%:*} alone"; else echo "FAIL $so exports: $got"; bad=1; fi
    done
    so=$TOP/build/lib/pmpi/libmcastcoll-pmpi.so
    [ -e "$so" ] || { echo "FAIL no $so"; return 1; }
    got=$(nm -D --defined-only "$so" | awk '{print $NF}' | grep -v '^MPI_')
    if [ -z "$got" ]; then echo "ok   $so exports names of MPI alone"; else echo "FAIL $so exports: $got"; bad=1; fi
    return $bad
}
# The source archive holds all that the repository does.
dist() {
    local archive missing
    git -C "$TOP" rev-parse >/dev/null 2>&1 || { echo "skip this is no clone: nothing to compare the archive with"; exit 77; }
    make -C "$TOP/build" dist-xz || exit
    archive=$(ls -t "$TOP"/build/mcastcoll-*.tar.xz | head -n 1)
    missing=$(comm -23 <(git -C "$TOP" ls-files | grep -v '^\.gitignore$' | sort) <(tar -tf "$archive" | sed 's,^[^/]*/,,' | sort))
    rm -f "$archive"
    [ -z "$missing" ] || { sed 's/^/FAIL EXTRA_DIST lacks /' <<<"$missing"; exit 1; }
}
sources() { git -C "$TOP" ls-files "$@" 2>/dev/null || (cd "$TOP" && for g in "$@"; do find . -path './build*' -prune -o -name "$g" -print; done); }
export -f sources
style() {
    local files
    mapfile -t files < <(sources '*.cc' '*.h' '*.c')
    [ ${#files[@]} -gt 0 ] || { echo "FAIL found no sources"; return 1; }
    clang-format --version
    # Each version has a taste of its own.
    clang-format --version | grep -q 'version 14\.' || { echo "skip the style is that of clang-format 14, which is not here"; exit 77; }
    printf '%s\0' "${files[@]}" | xargs -0 -n 20 -P "$(nproc)" clang-format --dry-run -Werror 2>&1 ||
        { echo "FAIL put these right with clang-format -i"; return 1; }
}
scripts() {
    local f bad=0
    while read -r f; do bash -n "$f" || bad=1; done < <(grep -lE '^#!/bin/(ba)?sh|^# shellcheck shell=' -r util fabtests .ci)
    while read -r f; do python3 -c 'import ast, sys; ast.parse(open(sys.argv[1]).read(), sys.argv[1])' "$f" || bad=1; done < <(sources '*.py')
    for f in util/* util/cluster/*; do
        [ -f "$f" ] && [ -x "$f" ] || continue
        [ "$("$f" --help 2>&1 | wc -l)" -le 30 ] || { echo "FAIL $f --help does not fit a screen: at most 30 lines"; bad=1; }
    done
    return $bad
}
can_cluster() { # in the way of a test: says why not
    [ "$(id -u)" = 0 ] || { echo "skip the cluster needs root"; return 1; }
    ip netns add "mcc-try-$$" || { echo "skip this machine cannot make network namespaces"; return 1; }
    ip netns del "mcc-try-$$"
}
export -f can_cluster
selftest() { can_cluster || exit 77; VC=mcs$$ NET=10.79 "$TOP/util/cluster/selftest"; }
quickstart() { can_cluster || exit 77; "$TOP/util/quickstart.sh" --no-install --hosts 4 --loss 2 --limit 20 --json "$TOP/build-check/quickstart.json"; }
export NO_INSTALL=${NO_INSTALL:-}

# A step that others stand on ends the run when it fails.
give_up() { echo "$passed passed, $failed failed, $skipped skipped"; exit 1; }
step packages 300 "install what is missing" packages || give_up
step build 1200 "build with warnings as errors" "$TOP/util/build" --enable-werror || give_up
# Most of the next steps wait, or leave a processor idle.
DEBIAN13=$(wanted debian13 && echo yes)
export DEBIAN13
aside asan-build 2400 "build with sanitizers${DEBIAN13:+, and on Debian 13}" asan_build
step units 1200 "unit and functional tests" units
step selftest 300 "the cluster's own test" selftest
step loss 480 "MPI at 0, 5, 20 and 100 % loss" "$TOP/fabtests/cluster/mpi_loss.sh"
step loss-ob1 300 "the same over pml ob1" "$TOP/fabtests/cluster/mpi_loss.sh" --pml ob1 --loss 5 --count 300 --hosts 4
step loss-ipv6 300 "the same over IPv6 multicast" "$TOP/fabtests/cluster/mpi_loss.sh" --multicast 6 --loss 5 --count 300 --hosts 4
step kill 360 "a rank is killed in the middle" "$TOP/fabtests/cluster/mpi_kill.sh"
step silence 180 "the network is silent for 6 s, and a host for good" "$TOP/fabtests/cluster/mpi_silence.sh" --power
step cp 300 "files to the disks of hosts" "$TOP/fabtests/cluster/cp.sh"
step faults 180 "faults of all kinds, drawn from a seed" "$TOP/fabtests/cluster/faults.sh" --seconds 40
step load 500 "MPI jobs drawn from a seed, on a busy machine and a silent network" "$TOP/fabtests/cluster/load.sh" --seconds 40 --stop 3 --silence 2
step levels 300 "a copy for each host, not for each rank" "$TOP/fabtests/cluster/mpi_levels.sh" --hosts 4 --ranks 2 --count 50
step host-kill 300 "a rank of one host is killed" "$TOP/fabtests/cluster/mpi_host_kill.sh"
step watch 120 "what a job does, watched from one host" "$TOP/fabtests/cluster/watch.sh"
step doctor 300 "the doctor, on healthy hosts and on each fault" "$TOP/fabtests/cluster/doctor.sh"
step first-death 400 "a rank dies in the first collective" "$TOP/fabtests/cluster/mpi_first_death.sh"
step composites 200 "a rank dies in operations that Open MPI makes of others" "$TOP/fabtests/cluster/mpi_composites.sh"
step networks 200 "hosts with several networks, and with IPv6 only" "$TOP/fabtests/cluster/mpi_networks.sh"
step forming 300 "how communicators come to their groups" "$TOP/fabtests/cluster/mpi_forming.sh"
step collectives 300 "all MPI operations, on one host and on several that lose datagrams" "$TOP/fabtests/cluster/mpi_collectives.sh"
step long 300 "messages of many segments" "$TOP/fabtests/cluster/mpi_long_messages.sh"
step pmpi 300 "MPICH programs with the interposer" "$TOP/fabtests/cluster/mpi_pmpi.sh"
step verbs 450 "multicast over RDMA, in a virtual machine with Soft-RoCE" "$TOP/fabtests/verbs/verbs_lab.sh" --loss 1
step sites 300 "broadcast, barrier and allreduce between sites" "$TOP/fabtests/cluster/mpi_sites.sh" --stacks mcastcoll --hosts 4 --sites 2 --ranks 2 --operations bcast,allreduce --sizes 64K \
    --iterations 20 --rounds 1 --strict
step gateways 480 "unmodified programs of two sites, through gateways" "$TOP/fabtests/cluster/split_programs.sh" --only python,openmpi,mcastcoll,mpich,crossing
step cut 480 "multicast is cut in mid-run and restored" "$TOP/fabtests/cluster/mpi_cut.sh" --hosts 5
step policies 300 "every repair policy, a small matrix" "$TOP/fabtests/cluster/mpi_policies.sh" --hosts 4 --losses 0,5 --kinds burst --rounds 1 --count 100
await asan-build
sanitized=$?
step debian13 900 "Debian 13: its gcc, libfabric and Open MPI, 5 % loss, and buffers on a device" debian13
[ $sanitized != 0 ] || aside asan-pure 1500 "pure tests with sanitizers" asan_pure
step large 1500 "jobs of 34 to 257 ranks" bash -c '"$TOP/fabtests/cluster/mpi_large.sh" --one-host 34,64 && "$TOP/fabtests/cluster/mpi_large.sh" --one-host 257 --hosts 0 --pml ob1'
step thousand 600 "a group of 1,024 members on 32 hosts, and deaths among 256" bash -c '"$TOP/fabtests/cluster/large_groups.sh" --members 1024 --loss 1 --case everything && "$TOP/fabtests/cluster/large_groups.sh" --members 256 --loss 1 --case dies'
step symbols 20 "what the libraries export" symbols
step install 180 "what make install installs and make uninstall leaves" "$TOP/fabtests/install/install.sh"
[ $sanitized != 0 ] || await asan-pure
[ $sanitized != 0 ] || aside fuzz 900 "fuzzers, from the kept inputs on" fuzz
step commands 900 "the command lines of README, manual pages and docs, as written" "$TOP/fabtests/install/commands.py" README.md man/ docs/
step dist 180 "the source archive" dist
step quickstart 300 "a small quickstart" quickstart
[ $sanitized != 0 ] || await fuzz
# These look at how long something takes.
step measured 300 "long broadcasts tried both ways" "$TOP/fabtests/cluster/mpi_measured.sh"
step slow 300 "a large broadcast to a slow member" "$TOP/fabtests/cluster/mpi_slow.sh" --size 32M
aside processors 1500 "a big-endian processor, emulated" "$TOP/fabtests/processors/emulated.sh" s390x
step valgrind 300 "memcheck over small parts of the functional programs, and a gateway" bash -c 'cd "$TOP/build" && "$TOP/fabtests/functional/valgrind.sh"'
if [ $sanitized = 0 ]; then
    step asan-units 1200 "other unit tests and functional tests with sanitizers" asan_units
    step asan-pmpi 300 "MPICH programs with the interposer, with sanitizers" asan_pmpi
fi
await processors
# A cluster whose test was killed is still there.
[ "$(id -u)" != 0 ] || "$TOP/util/cluster/down" --stale
step style 180 "clang-format" style
step scripts 30 "scripts" scripts
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
