#!/bin/bash
# Tests how host sets form and detect failures, with real processes. Run in the top folder of a build.
#
# The agent of these tests starts its command line in a network namespace with the host's name; without root or namespaces, tests
# with several hosts are skipped.
set -u
work=$(mktemp -d)
check=$PWD/util/hostset/hostset_check
passed=0 failed=0 skipped=0
pass() { echo "ok   $*"; passed=$((passed + 1)); }
fail() { echo "FAIL $*"; sed 's/^/     /' "$work"/out "$work"/err 2>/dev/null | tail -n 20; failed=$((failed + 1)); }
skip() { echo "skip $*"; skipped=$((skipped + 1)); }
finish() {
    echo "$passed passed, $failed failed, $skipped skipped"
    [ $failed = 0 ]
    exit
}
prefix=mcw$$
clean() {
    local h
    for h in 0 1 2 sw; do ip netns del $prefix$h 2>/dev/null; done
    rm -rf "$work"
}
trap clean EXIT
trap 'exit 130' INT TERM HUP

run() { # run COMMAND...: stores the output and the exit code
    code=0
    timeout -k 5 60 "$@" >"$work/out" 2>"$work/err" </dev/null || code=$?
}
said() { grep -qF -- "$1" "$work/out" "$work/err"; }
expect() { # expect WHAT CODE TEXT...
    local what=$1 want=$2 text
    shift 2
    [ "$code" = "$want" ] || { fail "$what: code $code, not $want"; return; }
    for text in "$@"; do said "$text" || { fail "$what: nothing says '$text'"; return; }; done
    pass "$what"
}

run "$check" --here
expect "alone" 0 "0/1 works localhost.0"
run env -u PMIX_RANK "$check"
expect "started in no way" 2 "mpirun -N 1"
run "$check" --here --hosts a
expect "two ways at once" 2 "exclude each other"
run "$check" --hosts a,b,a
expect "a host twice" 2 "host a is named twice"
run "$check" --hosts @/nonexistent
expect "no list of hosts" 2 "cannot read /nonexistent"
run "$check" --hosts other --rsh /nonexistent/agent --wait 5
expect "no agent" 2 "other: cannot start /nonexistent/agent" "no other host has joined"
run "$check" --join 127.0.0.1:1 --wait 1
expect "joined by hand" 2 "no invitation"
printf '#!/bin/sh\necho "no route to $1" >&2\nexit 7\n' >"$work/refuses" && chmod +x "$work/refuses"
run "$check" --hosts other --rsh "$work/refuses"
expect "an agent that fails" 2 "other: no route to other" "ended with status 7"
printf '#!/bin/sh\nshift\nexec sh -c "$*"\n' >"$work/same" && chmod +x "$work/same"
run "$check" --hosts localhost,other --rsh "$work/same" --wait 10
expect "one host by two names" 2 "other: is the same host as localhost"

# Three hosts on one switch.
hosts_up() {
    local h
    ip netns add ${prefix}sw && ip -n ${prefix}sw link add br0 type bridge && ip -n ${prefix}sw link set br0 up || return
    for h in 0 1 2; do
        ip netns add $prefix$h && ip -n $prefix$h link set lo up &&
            ip -n $prefix$h link add eth0 type veth peer name v$h netns ${prefix}sw &&
            ip -n $prefix$h addr add 10.66.0.$((h + 1))/24 dev eth0 && ip -n $prefix$h link set eth0 up &&
            ip -n ${prefix}sw link set v$h master br0 up || return
    done
}
if [ "$(id -u)" != 0 ] || ! hosts_up 2>"$work/err"; then
    skip "hosts need root and network namespaces"
    finish
fi
# The host's name is the name of its namespace, not of a machine.
cat >"$work/agent" <<END
#!/bin/sh
h=\$1
shift
exec ip netns exec "\$h" unshare --uts sh -c "hostname \$h; \$*"
END
chmod +x "$work/agent"
h0=${prefix}0 h1=${prefix}1 h2=${prefix}2
on0() { run "$work/agent" $h0 "$(printf '%q ' "$check" --rsh "$work/${by:-agent}" "$@")"; } # in the first host

on0 --hosts $h0,$h1,$h2
expect "three hosts" 0 "0/3 works $h0.0 $h1.0 $h2.0" "0/3 works $h0.1 $h1.1 $h2.1"
on0 --hosts $h2,$h1 --rounds 1
expect "a head that is not in the list" 0 "0/3 leads $h0.0 $h2.0 $h1.0" "$h2: 1/3 leads $h0.0 $h2.0 $h1.0"
on0 --hosts $h0,$h1,$h2 --bytes 3000000
expect "three megabytes of each" 0 "0/3 works $h0.1 $h1.1 $h2.1"
on0 --hosts $h0,$h1,nowhere --wait 20
expect "a host that cannot be reached" 0 "nowhere: $work/agent ended with status" "0/3 works $h0.0 $h1.0 (nowhere: "
ip -n ${prefix}sw link set v2 down
on0 --hosts $h0,$h1,$h2 --wait 3
expect "a host that does not answer" 0 "$h2: did not join within 3 s" "0/3 works $h0.1 $h1.1 ($h2: did not"
ip -n ${prefix}sw link set v2 up
on0 --hosts $h0,$h1,$h2 --dies $h1
expect "a member is killed" 0 "0/3 works $h0.0 $h1.0 $h2.0" "0/3 works $h0.1 ($h1: its connection has ended) $h2.1"
on0 --hosts $h0,$h1,$h2 --sleeps $h1
expect "a member stops" 0 "0/3 works $h0.1 ($h1: did not answer within 3 s) $h2.1"

# Members report the end of a killed head by themselves.
members_say() {
    for _ in {1..100}; do
        [ "$(cat "$work"/member-* 2>/dev/null | grep -c "the head, $h0, is gone")" != 2 ] || return 0
        sleep .1
    done
    return 1
}
cat >"$work/apart" <<END
#!/bin/sh
exec "$work/agent" "\$@" 2>"$work/member-\$1"
END
chmod +x "$work/apart"
by=apart on0 --hosts $h0,$h1,$h2 --dies $h0
if members_say; then pass "members of a dead head"; else fail "members of a dead head: $(cat "$work"/member-*)"; fi

# Foreign processes: silent, sending rubbish, or sending too much; they stay connected until the host set has formed.
cat >"$work/foreign" <<'END'
import socket, sys, threading

host, _, port = sys.argv[1].rpartition(":")
kept = []


def connect_and_send(data):
    for _ in range(40):
        try:
            s = socket.create_connection((host, int(port)), 5)
            kept.append(s)
            if data is not None:
                s.settimeout(5)
                s.sendall(data)
                print(len(s.recv(32)) == 32 and s.recv(1) == b"", flush=True)
        except OSError as error:
            print(isinstance(error, ConnectionResetError), flush=True)


kinds = (None, b"GET / HTTP/1.0\r\n\r\n" * 9, b"\xff" * 100000, bytes(1 << 20))
for thread in [threading.Thread(target=connect_and_send, args=(data,)) for data in kinds]:
    thread.start()
END
cat >"$work/crowded" <<END
#!/bin/sh
at=\$(printf '%s' "\$*" | sed "s/.*--join '\([^',]*\).*/\1/")
timeout 50 ip netns exec $h2 python3 "$work/foreign" "\$at" </dev/null >>"$work/seen" 2>&1 &
sleep 2
exec "$work/agent" "\$@"
END
chmod +x "$work/crowded"
by=crowded on0 --hosts $h0,$h1,$h2
expect "foreign processes disturb no member" 0 "0/3 works $h0.1 $h1.1 $h2.1"
if grep -q True "$work/seen"; then pass "foreign processes are refused"; else fail "foreign processes saw $(sort "$work/seen" | uniq -c)"; fi

cat >"$work/spied" <<END
#!/bin/sh
printf '%s\n' "\$*" >>"$work/lines"
exec "$work/agent" "\$@"
END
chmod +x "$work/spied"
by=spied on0 --hosts $h0,$h1
if [ "$code" = 0 ] && grep -qxE "$h1 '[^']*' --join '[0-9.:,]*' --wait 30" "$work/lines"; then
    pass "the command line has no secret"
else
    fail "the command line is $(cat "$work/lines")"
fi

# Open MPI, if this build has PMIx.
if ! command -v mpirun.openmpi >/dev/null || ! ldd "$check" | grep -q libpmix; then
    skip "a launcher needs Open MPI and PMIx"
    finish
fi
mpi() { # mpi OPTION...: in the first host
    local daemons=(--mca plm rsh --mca plm_rsh_agent "$work/agent" --mca plm_rsh_no_tree_spawn 1 --mca oob_tcp_if_include eth0)
    ! command -v prterun >/dev/null || daemons=(--prtemca plm ssh --prtemca plm_ssh_agent "$work/agent" --prtemca prte_if_include eth0)
    run "$work/agent" $h0 "$(printf '%q ' mpirun.openmpi --allow-run-as-root "${daemons[@]}" "$@")"
}
mpi -n 3 --host $h0,$h1,$h2 "$check"
expect "mpirun" 0 "0/3 works $h0.1 $h1.1 $h2.1"
mpi -n 3 --host $h0,$h1:2 "$check"
[ "$code" = 0 ] || code=other
expect "mpirun, two on a host" other "are both on host $h1: start one process per host, as mpirun -N 1 does"
finish
