#!/bin/bash
# doctor.sh -- mcastcoll-doctor reports nothing on healthy hosts, and finds each fault that this test makes.  Two
# minutes.
#
# Over eight hosts: healthy; with firewalls, ports that do not receive or send, losses, copies, MTUs, a switch that
# forgets members.  On one host: missing or wrong settings.  Independent faults are made together, on different hosts.
set -u
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "$0")/common.sh"
while [ $# -gt 0 ]; do
    case $1 in
        --help | -h) usage; exit 0 ;;
        --version) version; exit 0 ;;
        *) bad_usage "'$1' is no option" ;;
    esac
done
can_cluster || finish
use_build
unset OMPI_MCA_coll_mcastcoll_form_after OMPI_MCA_coll_mcastcoll_selection
doctor=$BUILD/util/doctor/mcastcoll-doctor
[ -x "$doctor" ] || { echo "$ME: no $doctor: run util/build" >&2; exit 2; }
GSO=on start_cluster 8
sw=$VC-sw0
all=h0,h1,h2,h3,h4,h5,h6,h7
# Findings about the machine that runs the test, which are not faults of the hosts.
machine='virtual one-machine no-query-received clock-slow clock-scaled interposer-missing component-missing buffer-small shm-small shm-full
    files-few cma-refused loss-at-rate overflow memlock-small rdma-refused'

agent=$LAB/rsh # starts the doctor on the other hosts
# Runs the doctor on h0, over all hosts; the report is in $work/report.
look() { # look WHAT ARGUMENT..., with NAME=VALUE before them
    local what=$1 words=()
    shift
    while [[ ${1:-} == *=* && $1 != -* ]]; do words+=("$1"); shift; done
    bounded 100 "$LAB/on" h0 env "${words[@]}" "$doctor" --rsh "$agent" --share 1 --json "$@" >"$work/report" 2>"$work/said"
    code=$?
    python3 -c 'import json, sys; json.load(open(sys.argv[1]))' "$work/report" 2>/dev/null ||
        { fail "$what: no report, code $code: $(head -c 300 "$work/said")"; return 1; }
}
# ID[:SEVERITY][@HOST,HOST]: a finding of exactly these hosts.  Any other finding is a false alarm.
expect() { # expect WHAT CODE FINDING...
    local what=$1 wanted=$2 wrong
    shift 2
    if wrong=$(python3 - "$work/report" "$machine" "$@" <<'END'
import json, sys
report = json.load(open(sys.argv[1]))
allowed, wrong = set(sys.argv[2].split()), []
for want in sys.argv[3:]:
    ident, _, hosts = want.partition("@")
    ident, _, severity = ident.partition(":")
    found = [f for f in report["findings"] if f["id"] == ident and (not severity or f["severity"] == severity)
             and (not hosts or sorted(f["hosts"]) == sorted(hosts.split(",")))]
    allowed.add(ident)
    if not found:
        wrong.append("no " + want)
    for f in found:
        if not all(f[k] for k in ("title", "cause", "cost", "mend")):
            wrong.append(ident + " lacks a sentence")
wrong += ["false alarm: %s@%s" % (f["id"], ",".join(f["hosts"])) for f in report["findings"] if f["id"] not in allowed]
if wrong:
    wrong.append("found: " + " ".join("%s@%s" % (f["id"], ",".join(f["hosts"])) for f in report["findings"]))
print("; ".join(wrong))
sys.exit(bool(wrong))
END
    ) && { [ "$wanted" = any ] || [ "$wanted" = "$code" ]; }; then
        pass "$what"
    else
        fail "$what: code $code instead of $wanted; $wrong"
    fi
}
# The machine itself may cause findings about performance.
usual() { [ "$code" -le 1 ] && wanted=$code || wanted=0; }
rules() { ip netns exec "$1" nft -f -; } # rules NAMESPACE: reads rules from standard input
lift() { ip netns exec "$1" nft delete table "$2" t; } # lift NAMESPACE FAMILY

# Healthy hosts.
if look "healthy hosts" --hosts $all --listen 1; then
    usual
    expect "healthy hosts" "$wanted" one-machine:note no-query-received:note
    python3 - "$work/report" <<'END' && pass "all hosts receive from all hosts, and a group uses multicast" || fail "what eight healthy hosts did"
import json, sys
report = json.load(open(sys.argv[1]))
hosts = report["facts"]["hosts"]
assert len(hosts) == 8, len(hosts)
for host in hosts:
    small = [h for h in host["received"] if h["phase"] == "small" and h["datagrams"] >= 45]
    assert len(small) == 7, host["received"]
    assert host["end_to_end"]["error"] == "" and host["end_to_end"]["members"] == 8, host["end_to_end"]
assert sum(h["end_to_end"]["multicast_sent"] for h in hosts) > 0
END
fi
if command -v mpirun.openmpi >/dev/null && ldd "$doctor" | grep -q libpmix; then
    STACK=none bounded 60 "$LAB/run" -n 3 -H h0,h1,h2 -x FI_PROVIDER_PATH "$doctor" --share 1 --no-group --json >"$work/report" 2>"$work/said"
    if python3 -c 'import json, sys; assert len(json.load(open(sys.argv[1]))["facts"]["hosts"]) == 3' "$work/report" 2>/dev/null; then
        pass "started by mpirun"
    else
        fail "started by mpirun: $(head -c 300 "$work/said")"
    fi
else
    skip "started by mpirun: needs Open MPI and PMIx"
fi

if look "over IPv6" FI_MCASTCOLL_EXPERIMENT=ip=6 --hosts h0,h1 --listen 0; then
    usual
    expect "over IPv6" "$wanted"
    grep -q '"family": 6' "$work/report" || fail "over IPv6: it was IPv4"
fi
if look "without multicast" FI_MCASTCOLL_TOPOLOGY=-segment --hosts h0,h1 --listen 0; then
    expect "a group that does without" 1 group-without-multicast:limits
fi
for i in 0 1 2; do add_docker0 $i; done
if look "docker0 is not chosen" --hosts h0,h1,h2 --listen 0; then
    usual
    expect "docker0 is not chosen" "$wanted"
fi
if look "one address on all hosts" FI_MCASTCOLL_IFACE=172.17.0.1 FI_MCASTCOLL_JOIN_TIMEOUT=2000 --hosts h0,h1,h2 --listen 0; then
    expect "one address on all hosts" 2 address-shared:broken
    grep -q 'ok.*interface docker0' "$work/report" && fail "one address on all hosts: the interface is said to be as it should be"
fi
for i in 0 1 2; do
    ip -n "$VC-h$i" link del docker0
    ip -n "$VC-h$i" link del veth1
done
if look "a group that fails" FI_MCASTCOLL_JOIN_TIMEOUT=1 --hosts h0,h1 --listen 0; then
    expect "a group that fails" 2 group-failed:broken
    grep -q 'The provider: .*join failed' "$work/report" || fail "a group that fails: the provider's warning is missing"
fi

# Which hosts receive from which.
rules "$VC-h1" <<'END'
table inet t {
    chain in {
        type filter hook input priority 0
        meta pkttype multicast drop
    }
}
END
rules "$VC-h2" <<'END'
table inet t {
    chain out {
        type filter hook output priority 0
        ip daddr 224.0.0.0/4 udp dport 1024-65535 counter drop
    }
}
END
rules "$sw" <<'END'
table bridge t {
    chain through {
        type filter hook forward priority 0
        oifname h3 ip daddr 224.0.0.0/4 udp dport != 0 drop
        iifname h4 ip daddr 224.0.0.0/4 udp dport != 0 drop
        iifname h5 oifname h6 ip daddr 224.0.0.0/4 udp dport != 0 drop
        oifname h7 ip daddr 224.0.0.0/4 udp dport != 0 numgen random mod 100 < 10 drop
    }
}
END
if look "reception between hosts" --hosts $all --listen 0 --no-group; then
    expect "reception between hosts" 1 firewall:limits@h1 firewall:limits@h2 not-receiving:limits@h3 not-received:limits@h4 path-broken:limits loss:limits@h7
    grep -q 'h6 does not receive from h5' "$work/report" || fail "the pair that is cut is not named"
    grep -q '"mend": "nft delete rule inet t in handle ' "$work/report" || fail "the rule's removal is missing"
fi
lift "$sw" bridge
rules "$sw" <<'END'
table bridge t {
    chain through {
        type filter hook forward priority 0
        ip daddr 224.0.0.0/4 udp dport != 0 drop
    }
}
END
lift "$VC-h1" inet
lift "$VC-h2" inet
if look "no multicast at all" --hosts h0,h1,h2 --listen 0; then
    expect "no multicast at all" 1 none-receives:limits
    grep -q '"diagnosis": "mcastcoll will be slower here' "$work/report" || fail "no multicast at all: it is not said to work"
fi
lift "$sw" bridge
"$LAB/loss" 10 >/dev/null
if look "a firewall that loses some" --hosts h0,h1,h2,h3 --listen 0 --no-group; then
    # Each host loses another share.
    expect "a firewall that loses some" 1 firewall:limits
fi
"$LAB/loss" off

# Interfaces and ports.
ip -n "$VC-h1" link set eth0 mtu 1400
ip -n "$sw" link set h2 mtu 1300
ip netns exec "$sw" nft -f - <<'END'
table netdev t {
    chain copies {
        type filter hook ingress device h0 priority 0
        ip daddr 224.0.0.0/4 ip protocol udp dup to "h3"
    }
}
END
offloads() { ip netns exec "$VC-h4" ethtool -K eth0 gso "$1" tso "$1" tx-udp-segmentation "$1" >/dev/null; } # offloads on|off
offloads off
ip -n "$VC-h5" link set eth0 multicast off
if look "interfaces" FI_MCASTCOLL_RCVBUF=4096 --hosts $all,nowhere --wait 5 --listen 0 --no-group; then
    expect "interfaces" 2 mtu-small:limits@h1 mtu-differs:limits full-size-lost:limits@h2 duplicates:limits@h3 offload-off:note@h4 \
        no-sockets:broken@h5 buffer-tiny:limits host-missing:broken@nowhere
fi
lift "$sw" netdev
ip -n "$VC-h1" link set eth0 mtu 1500
ip -n "$sw" link set h2 mtu 1500
offloads on
ip -n "$VC-h5" link set eth0 multicast on

# The turns take longer than a querier's second. Whether the buffer overflows depends on the scheduler, so the test is
# repeated.
tiny() { look "a receive buffer for two, no querier" FI_MCASTCOLL_RCVBUF=4096 --hosts h0,h6 --listen 0 --query-interval 1 --no-group; }
if tiny; then
    for _ in 1 2 3 4; do grep -q '"overflow"' "$work/report" || tiny || break; done
    expect "a receive buffer for two, no querier" 1 buffer-tiny:limits overflow:note querier-missing:limits
fi
tc -n "$sw" qdisc add dev h7 root tbf rate 20mbit burst 16k latency 2ms
if look "a slow link" --hosts h0,h6,h7 --listen 0 --no-group; then
    usual
    expect "a slow link" "$wanted" loss-at-rate:note@h7
fi
tc -n "$sw" qdisc del dev h7 root

# Two paths from h0 to the others: every second datagram enters "slow" and leaves at "late", a port of the switch.
ip -n "$sw" -batch - <<'END'
link add slow type veth peer name late
link set late master br0 up
link set late type bridge_slave learning off flood off mcast_flood off bcast_flood off
link set slow up
END
tc -n "$sw" qdisc add dev slow root tbf rate 40mbit burst 16k limit 16m
if ! rules "$sw" 2>"$work/said" <<'END'
table netdev t {
    chain ways {
        type filter hook ingress device h0 priority 0
        ip daddr 224.0.0.0/4 ip protocol udp numgen inc mod 2 == 0 fwd to "slow"
    }
}
END
then
    skip "two ways: this kernel cannot send a datagram another way: $(head -c 200 "$work/said")"
elif look "two ways" --hosts h0,h1 --listen 0 --no-group; then
    usual
    expect "two ways" "$wanted" reordered:note@h1
fi
lift "$sw" netdev 2>/dev/null
ip -n "$sw" link del slow

# A switch with IGMP snooping: it sends a query, h3 does not receive the query, and the switch forgets h3. A bridge that
# begins to query forwards everything for as long as it waits for answers, so querying starts before the fault.
ip -n "$sw" link set br0 type bridge mcast_igmp_version 3 mcast_query_interval 100 mcast_startup_query_interval 100 \
    mcast_query_response_interval 50 mcast_membership_interval 500
ip -n "$sw" link set br0 type bridge mcast_snooping 1 mcast_querier 1
sleep 1
rules "$sw" <<'END'
table bridge t {
    chain out {
        type filter hook output priority 0
        oifname h3 ip protocol igmp drop
    }
}
END
if look "a switch that forgets" --hosts h0,h1,h2,h3 --listen 9 --no-group; then
    expect "a switch that forgets" 1 cut-off:limits@h3
    grep -q 'IGMP queries of .* are received' "$work/report" || fail "the querier is not found"
fi
lift "$sw" bridge
# The turns are over when the doctor checks for queries.
if look "a querier that sent a query meanwhile" --hosts h0,h1 --listen 0 --query-interval 1 --no-group; then
    usual
    expect "a querier that sent a query meanwhile" "$wanted"
    grep -q 'IGMP queries of .* are received' "$work/report" || fail "the querier that sent a query meanwhile is not found"
fi
ip -n "$sw" link set br0 type bridge mcast_snooping 0 mcast_querier 0

# Hosts with different settings: h1 has another libfabric, according to its version number, and another Open MPI, h2 few
# descriptors, h3 a kernel that reports slow clocks, h4 a small shared memory, h5 a full one.
mkdir "$work/other"
cat >"$work/other/ompi_info" <<END
#!/bin/sh
[ "\$1" != --version ] || exec echo "Open MPI v9.9.9"
exec "$(command -v ompi_info)" "\$@"
END
echo 'unsigned fi_version(void) { return 9u << 16 | 9; }' |
    cc -shared -fPIC -x c - -o "$work/other/version.so" || fail "no library with another version"
echo hpet >"$work/clock"
cat >"$work/clocks" <<END
mount --bind "$work/clock" /sys/devices/system/clocksource/clocksource0/current_clocksource
cores=/sys/devices/system/cpu/cpufreq
[ -d \$cores ] || cores=/sys/devices/system/cpu
mount -t tmpfs none \$cores
mkdir -p /sys/devices/system/cpu/cpufreq/policy0
echo ondemand >/sys/devices/system/cpu/cpufreq/policy0/scaling_governor
END
cat >"$work/agent" <<END
#!/bin/sh
host=\$1 first=:
shift
case \$host in
    h1) first='PATH=$work/other:\$PATH; export LD_PRELOAD=$work/other/version.so' ;;
    h2) first='ulimit -n 256' ;;
    h3) first='. $work/clocks' ;;
    h4) first='mount -t tmpfs -o size=8m none /dev/shm' ;;
    h5) first='mount -t tmpfs -o size=80m none /dev/shm; head -c 76M /dev/zero >/dev/shm/x' ;;
esac
exec "$LAB/rsh" "\$host" "\$first; \$*"
END
chmod 755 "$work/other/ompi_info" "$work/agent"
if agent=$work/agent look "hosts that differ" --hosts h0,h1,h2,h3,h4,h5 --listen 0 --no-group; then
    expect "hosts that differ" 1 versions-differ:limits files-few:limits@h2 clock-slow:limits@h3 clock-scaled:note@h3 shm-small:limits@h4 \
        shm-full:limits@h5
    for what in libfabric "Open MPI"; do
        grep -q "different versions of $what: [0-9.]*, 9\\.9" "$work/report" || fail "hosts that differ: nothing of $what"
    done
fi

# One host.
here() { # here WHAT CODE FINDING... [-- NAME=VALUE... [ARGUMENT...]]
    local what=$1 wanted=$2 findings=()
    shift 2
    while [ $# -gt 0 ] && [ "$1" != -- ]; do findings+=("$1"); shift; done
    [ $# = 0 ] || shift
    look "$what" "$@" --here --listen 0 --no-group && expect "$what" "$wanted" "${findings[@]}"
}
here "a bad setting" 2 settings-wrong:broken -- FI_MCASTCOLL_TTL=1000
here "no provider" 2 provider-missing:broken -- FI_PROVIDER_PATH=/nonexistent
here "a provider kept out" 2 provider-missing:broken -- FI_PROVIDER=tcp
here "multicast off" 1 multicast-off:limits -- FI_MCASTCOLL_MULTICAST=off
here "RDMA requested" 1 rdma-missing:limits -- FI_MCASTCOLL_MULTICAST=verbs
here "no such interface" 2 no-interface:broken -- FI_MCASTCOLL_IFACE=nope
here "loopback" 1 loopback:limits -- FI_MCASTCOLL_IFACE=lo
here "no component, no interposer" any component-missing:limits interposer-missing:note -- OMPI_MCA_opal_mca_base_component_path=SYSTEM_DEFAULT \
    OMPI_MCA_coll_base_verbose=0 LD_LIBRARY_PATH=
here "more buffer than users get" 1 buffer-small:limits -- FI_MCASTCOLL_RCVBUF=67108864
rules "$VC-h0" <<'END'
table inet t {
    chain in {
        type filter hook input priority 0; policy drop
        ip protocol igmp accept
        tcp dport 22 accept
        ct state established,related accept
    }
}
END
here "a firewall that lets nothing in" 2 firewall:broken
lift "$VC-h0" inet
"$LAB/cut" in h0
here "a firewall that may hold for others" 1 firewall-suspected:limits
"$LAB/cut" off
# IPsec policies are not firewall rules: refused packets are visible only by the effect.
if ip -n "$VC-h0" xfrm policy add src 0.0.0.0/0 dst 224.0.0.0/4 dir in action block 2>"$work/said"; then
    here "a host that does not receive its own multicasts" 2 own-not-received:broken
    ip -n "$VC-h0" xfrm policy flush
    ip -n "$VC-h0" xfrm policy add src 0.0.0.0/0 dst 224.0.0.0/4 dir out action block
    here "a host whose kernel sends nothing" 2 own-not-received:broken
    grep -q 'kernel refuses to send' "$work/report" || fail "that the kernel refuses is not said"
    ip -n "$VC-h0" xfrm policy flush
else
    skip "a host that does not receive its own multicasts: this kernel has no IPsec: $(head -c 200 "$work/said")"
fi
# In a mount namespace of its own.
inside() { # inside WHAT CODE FINDING SHELL-WORDS
    bounded 60 "$LAB/on" h0 unshare --mount sh -c "$4" sh "$doctor" >"$work/report" 2>"$work/said"
    code=$?
    expect "$1" "$2" $3
}
options='--here --listen 0 --no-group --json'
# The memory of a process is not accessible if its user may run but not read the program.
chmod 755 "$work"
install -m 0111 "$doctor" "$work/doctor"
# The build may be accessible to root only.
install -D "$BUILD/lib/libmcastcoll-fi.so" "$work/provider/libmcastcoll-fi.so"
user="env FI_PROVIDER_PATH=$work/provider setpriv --reuid 65534 --regid 65534 --clear-groups"
inside "memory of others is closed" any cma-refused:limits "exec $user sh -c '$work/doctor $options'"
grep -q 'needs root' "$work/report" && grep -q 'nft shows the rules only to root' "$work/report" ||
    fail "what only root can look at is not said to an ordinary user"
# The real Yama setting belongs to the whole machine, so the test changes only the value read by the doctor.
yama="boot=\$(cat /proc/sys/kernel/random/boot_id); mount -t tmpfs -o mode=755 none /proc/sys/kernel; cd /proc/sys/kernel
    mkdir yama random; echo 1 >yama/ptrace_scope; echo \$boot >random/boot_id"
inside "memory of others is closed, by Yama" any cma-refused:limits "$yama; exec $user sh -c '$work/doctor $options'"
grep -q 'sysctl -w kernel.yama.ptrace_scope=0' "$work/report" || fail "Yama is not said to close the memory of others"

# Output for users.
text=$("$LAB/on" h0 env FI_MCASTCOLL_MULTICAST=off "$doctor" --here --listen 0 --no-group)
case $text in *$'\e'*) fail "colours go into a pipe" ;; *'[multicast-off]'*unset*) pass "text without colours" ;; *) fail "text: $text" ;; esac
text=$(script -qec "$LAB/on h0 $doctor --here --listen 0 --no-group" /dev/null)
plain=$(NO_COLOR=1 script -qec "$LAB/on h0 env NO_COLOR=1 $doctor --here --listen 0 --no-group" /dev/null)
case $text in *$'\e['*) case $plain in *$'\e['*) fail "NO_COLOR counts for nothing" ;; *) pass "colours on a terminal, unless NO_COLOR is set" ;; esac ;; *) fail "no colours on a terminal" ;; esac
"$doctor" >/dev/null 2>&1
[ $? = 3 ] && pass "bad usage is code 3" || fail "bad usage is not code 3"

# Hosts of two subnets.
"$LAB/down" && GSO=on "$LAB/up" 4 2 >/dev/null || fail "two sites do not come up"
if look "two subnets" --hosts h0,h1,h2,h3 --listen 0 --no-group; then
    expect "two subnets" 1 subnets-differ:limits
fi
# A network whose interfaces have no configured address.
for i in 0 1; do
    ip link add ll0 netns "$VC-h$i" type veth peer name "ll0-$i" netns "$VC-sw0"
    ip -n "$VC-sw0" link set "ll0-$i" master br0 up
    ip -n "$VC-h$i" link set ll0 up
done
if look "link-local addresses only" FI_MCASTCOLL_IFACE=ll0 --hosts h0,h1 --listen 0; then
    usual
    expect "link-local addresses only" "$wanted" link-local:note
fi
finish
