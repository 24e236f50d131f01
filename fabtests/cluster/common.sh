# shellcheck shell=bash
# Sourced by the tests on the virtual cluster: options, the cluster's life, and counting.
#
# Each test owns one cluster, named after the test and the process; the cluster is removed when the test ends.
ME=${0##*/}
TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
LAB=$TOP/util/cluster
BUILD=${MCASTCOLL_BUILD:-$TOP/build}
passed=0 failed=0 skipped=0

say() { echo "$*"; }
pass() { echo "ok   $*"; passed=$((passed + 1)); }
fail() { echo "FAIL $*"; failed=$((failed + 1)); }
skip() { echo "skip $*"; skipped=$((skipped + 1)); }
bad_usage() { echo "$ME: $*; see '$ME --help'" >&2; exit 2; }
usage() { awk 'NR > 1 { if (!/^#/) exit; sub(/^# ?/, ""); print }' "$0"; }
version() { sed -n 's/^AC_INIT(\[mcastcoll\], \[\([^]]*\)\].*/mcastcoll \1/p' "$TOP/configure.ac"; }
finish() { # prints the summary line; exit code 77 means that the test could not run
    echo "$passed passed, $failed failed, $skipped skipped"
    [ $failed = 0 ] || exit 1
    [ $passed != 0 ] || exit 77
    exit 0
}

# Whether this machine can create a cluster; prints the reason if not.
can_cluster() {
    [ "$(id -u)" = 0 ] || { skip "the cluster needs root"; return 1; }
    ip netns add "mcc-try-$$" 2>/dev/null || { skip "this machine cannot make network namespaces"; return 1; }
    ip netns del "mcc-try-$$"
    command -v nft mpirun.openmpi >/dev/null || { skip "needs nftables and Open MPI: run util/install-deps"; return 1; }
}

# on_exit COMMAND: runs COMMAND when the test ends, in whatever way, after ending the jobs that the test has not waited
# for.  Bash runs an EXIT trap also in a child killed between fork and exec, so the trap checks which process runs it.
on_exit() {
    trap "[ \$BASHPID != \$\$ ] || { kill \$(jobs -p) 2>/dev/null || :; disown -a; $1; }" EXIT
    trap 'exit 130' INT TERM HUP
}

start_cluster() { # start_cluster HOSTS [SITES]; NET may be chosen from the environment
    export VC=mct$$ VC_OWNER=$$ MCASTCOLL_BUILD=$BUILD
    work=$(mktemp -d)
    on_exit '"$LAB/down"; rm -rf "$work"'
    "$LAB/down" --stale
    # Without offloads every datagram is one packet, so that the filters lose single datagrams.
    GSO=${GSO-off} "$LAB/up" "$@" || { fail "the cluster does not come up"; finish; }
}

# Results of this build's provider and component must not depend on the caller's shell.
use_build() {
    local name
    for name in $(compgen -e | grep -E '^(FI|OMPI)_'); do unset "$name"; done
    # Tests need groups from the first collective on.
    export OMPI_MCA_coll_mcastcoll_form_after=0 OMPI_MCA_coll_mcastcoll_selection=$TOP/fabtests/cluster/broadcasts_here.conf
    [ -r "$BUILD/env" ] || { echo "$ME: $BUILD is not built: run util/build" >&2; exit 2; }
    . "$BUILD/env"
    [ -e "$FI_PROVIDER_PATH/libmcastcoll-fi.so" ] || { echo "$ME: $BUILD has no provider: run util/build" >&2; exit 2; }
    if [ ! -e "$BUILD/lib/openmpi/mca_coll_mcastcoll.so" ]; then
        skip "this build has no Open MPI component"
        finish
    fi
}

# Prints the state of the groups of a job that does not end: a process whose operations_completed stands still waits.
show_groups() {
    local host
    for host in $(ip netns list | sed -n "s/^${VC:-none}-\(h[0-9]*\).*/\1/p"); do
        timeout 5 "$LAB/on" "$host" "$BUILD/util/topo/mcastcoll-topo" --job 2>&1 | grep '^process' || :
    done
}
# Runs a job with a time limit of SECONDS; returns 124 if the job exceeded it.  With this way of waiting, a signal to
# the test takes effect at once.
bounded() { # bounded SECONDS COMMAND...
    local job late ended code=0
    timeout -k 10 "$@" &
    job=$!
    sleep $(($1 - 2)) &
    late=$!
    wait -n -p ended "$job" "$late" || code=$?
    if [ "$ended" = "$late" ]; then
        show_groups >&2
        wait "$job"
    else
        kill "$late" 2>/dev/null || :
        return $code
    fi
}

# A bridge as Docker creates it, with one container; the pair of interfaces reports 10 Gbit/s, like eth0.
add_docker0() { # add_docker0 HOST'S-NUMBER
    ip -n "$VC-h$1" -batch - <<END
link add docker0 type bridge
addr add 172.17.0.1/16 dev docker0
link add veth1 type veth peer name veth2
link set veth1 master docker0
link set veth1 up
link set veth2 up
link set docker0 up
END
}

# judge_listener WHAT LOG: checks the report of fabtests/mpi/listener.c, which is preloaded into each rank, records the
# secrets and private keys drawn by the process, and searches for them in all data sent by the process.
LISTENER=$BUILD/fabtests/mpi/.libs/liblistener.so
judge_listener() {
    local secrets secrets_sent salts salts_sent
    read -r secrets secrets_sent salts salts_sent < <(sed -n 's/.*listener: \(.*\)/\1/p' "$2" | tr -dc '0-9 \n' |
        awk '{ for (i = 1; i <= 4; ++i) all[i] += $i } END { print all[1] + 0, all[2] + 0, all[3] + 0, all[4] + 0 }')
    if ((secrets > 0 && secrets_sent == 0 && salts > 0 && salts_sent == salts)); then
        pass "$1: none of $secrets secrets and private keys is sent in clear; $salts encrypted ones are"
    else
        fail "$1: $secrets_sent of $secrets secrets and private keys are sent in clear; $salts_sent of $salts encrypted ones"
    fi
}

counted() { # counted matched|dropped: datagrams over all hosts since the last 'loss PCT'
    "$LAB/loss" show --json | python3 -c 'import json, sys; print(sum(h.get(sys.argv[1], 0) for h in json.load(sys.stdin)["hosts"]))' "$1"
}
