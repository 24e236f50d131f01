#!/bin/bash
# valgrind.sh [--list] [RUN...] -- memcheck over programs of this build: open, join, traffic, leave, close, and their
# error paths.
#
# Runs in the top folder of a build without sanitizers. Each process has its own log; the script prints the errors of
# each. Errors and leaked memory count; suppressions (valgrind.supp) are for libraries of other projects.
#   RUN   of the list; without any all of it: processes are 30 times as slow, so each is a small part of its program
set -u
case ${1:-} in --help | -h) awk 'NR > 1 { if (!/^#/) exit; sub(/^# ?/, ""); print }' "$0"; exit 0 ;; esac
here=$(cd "$(dirname "$0")" && pwd)
slow=(--wait 250 --timeout 300)
# NAME [VARIABLE=VALUE] PROGRAM ARGUMENT...
runs=(
    "failures FI_MCASTCOLL_JOIN_TIMEOUT=200000 fi_mcc_failures --operations 6"
    "collectives fi_mcc_collectives --members 2 --case pieces"
    "barrier fi_mcc_barrier --members 3 --case flags"
    "reduce fi_mcc_reduce --members 2 --fault loss=5,seed=1 --case one.at"
    "broadcast fi_mcc_broadcast --members 3 --fault loss=5,seed=2 --case root.reuses"
    "sites fi_mcc_broadcast --members 3 --places 2x1 --case root.reuses"
    "groups fi_mcc_groups --members 3 --case parents"
    "join fi_mcc_join --members 2 --case closed --case rejoin"
    "datagram fi_mcc_datagram --case many --case queues --case refusals"
    "reliable fi_mcc_reliable --members 2 --operations 100 --case all.to.all --case offers"
    "kill fi_mcc_kill --members 3 --case receiver"
    "gateway gateway"
    "interposer interposer"
)
if [ "${1:-}" = --list ]; then printf '%s\n' "${runs[@]%% *}"; exit 0; fi
command -v valgrind >/dev/null || { echo "skip valgrind is not installed"; exit 77; }
if nm -D prov/mcastcoll/ofi/.libs/libmcastcoll-fi.so 2>/dev/null | grep -qE '__(asan|tsan)_'; then
    echo "skip this build has sanitizers, which valgrind does not go with"
    exit 77
fi
logs=$(mktemp -d) || exit 1
trap 'rm -rf "$logs"' EXIT
# Suppressions match names of functions, which valgrind cannot see if the function was inlined by link-time
# optimisation. So the provider is linked once more from the same objects, without this optimisation. libtool drops the
# flag from the links of libraries, unless -Wc passes it to the compiler.
plain_provider() {
    local at=prov/mcastcoll/ofi so=prov/mcastcoll/ofi/.libs/libmcastcoll-fi.so code=0
    mkdir "$logs/provider" && cp -p "$so" "$logs/whole.so" && rm "$at/libmcastcoll-fi.la" || return
    make -s MCC_WHOLE= AM_LDFLAGS=-Wc,-fno-lto "$at/libmcastcoll-fi.la" >"$logs/link" 2>&1 && cp "$so" "$logs/provider/" || code=1
    mv "$logs/whole.so" "$so"
    [ $code = 0 ] || { cat "$logs/link"; echo "FAIL no provider could be linked"; }
    return $code
}
plain_provider || exit 1
export FI_PROVIDER_PATH=$logs/provider
memcheck=(valgrind --quiet --leak-check=full --show-leak-kinds=definite --errors-for-leak-kinds=definite --num-callers=30
    "--suppressions=$here/valgrind.supp" "--log-file=$logs/%q{RUN}.%p")

# Runs with a gateway that is a script, which starts the real program under memcheck.
gateway() {
    local program=$PWD/util/gateway/mcastcoll-gateway
    [ -x "$program" ] || { echo "no gateway in this build"; return 0; }
    # Calls with --status, which are repeated often, run without memcheck, for speed.
    printf '%s\n' '#!/bin/sh' "case \" \$* \" in *' --status '*) exec '$program' \"\$@\" ;; esac" \
        "exec $(printf "'%s' " "${memcheck[@]}") '$program' \"\$@\"" >"$logs/gateway-here"
    chmod +x "$logs/gateway-here"
    MCC_GATEWAY=$logs/gateway-here "$here/../gateway/gateway.sh" --only bytes_go_both_ways
}

# MPICH's own transports share memory that memcheck cannot track.
interposer() {
    local library=$PWD/lib/pmpi/libmcastcoll-pmpi.so program=$PWD/fabtests/mpi/mpi_pmpi_bounds
    [ -x "$program" ] && command -v mpiexec.mpich >/dev/null || { echo "no interposer in this build, or no MPICH here"; return 0; }
    UCX_TLS=tcp,self timeout -k 10 250 mpiexec.mpich -n 2 env "LD_PRELOAD=$library" "${memcheck[@]}" "$program" bounce uneven depth
}

run() { # run [VARIABLE=VALUE] PROGRAM ARGUMENT...
    if [ "$1" = gateway ] || [ "$1" = interposer ]; then
        "$1"
    else
        [[ $1 != *=* ]] || { export "${1?}"; shift; }
        "${memcheck[@]}" "./$1" "${@:2}" "${slow[@]}"
    fi
}

found() { # found NAME: prints what memcheck has found
    local log code=1
    for log in "$logs/$1".[0-9]*; do
        # valgrind warns that it does not implement pidfd_open, which then fails, and other calls.
        grep '^==' "$log" 2>/dev/null | grep -qv ' WARNING: ' || continue
        code=0
        echo "--- ${log##*/}"
        grep '^==' "$log" | head -n 80
    done
    return $code
}

one() { # one NAME [VARIABLE=VALUE] PROGRAM ARGUMENT...
    local name=$1 start=$SECONDS code=0
    shift
    # Cases are parts of names; a dot stands for a blank.
    set -- "${@//./ }"
    export RUN=$name
    run "$@" >"$logs/$name.out" 2>&1 || code=$?
    if found "$name"; then
        code=1
    elif [ $code != 0 ]; then
        # At this speed members may time out on each other; a timeout counts only if the second run has one, too.
        echo "     $name: once more"
        code=0
        run "$@" >"$logs/$name.out" 2>&1 || code=$?
        ! found "$name" || code=1
    fi
    if [ $code = 0 ]; then
        echo "ok   $name ($((SECONDS - start)) s)"
    else
        echo "FAIL $name ($((SECONDS - start)) s)"
        tail -n 10 "$logs/$name.out"
    fi
    return $code
}

failed=0 passed=0 workers=()
finish() { if wait "${workers[0]}"; then passed=$((passed + 1)); else failed=$((failed + 1)); fi; workers=("${workers[@]:1}"); }
wanted=" $* "
for run in "${runs[@]}"; do
    read -ra words <<<"$run"
    case $wanted in '  ' | *" ${words[0]} "*) ;; *) continue ;; esac
    one "${words[@]}" &
    workers+=($!)
    [ ${#workers[@]} -lt 2 ] || finish
done
while [ ${#workers[@]} -gt 0 ]; do finish; done
echo "$passed passed, $failed failed, 0 skipped"
[ $failed = 0 ] && [ $passed -gt 0 ]
