#!/bin/bash
# mpi_networks.sh [--large] -- hosts with several networks, some of which do not lead to the other hosts.
#
# MPI jobs on four hosts that have docker0 with the same address everywhere, no IPv4, link-local addresses only, another
# order of interfaces on one host, or a firewall that drops datagrams.  Each job is served at once over the right
# network, or is left to Open MPI with one clear line and without a join that must time out.  Open MPI's own messages
# use eth0 in all of them.
#   --large    also: docker0 as fast as a network card, three networks of which one carries multicast, no network in common
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "$0")/common.sh"
large=''
while [ $# -gt 0 ]; do
    case $1 in
        --help | -h) usage; exit 0 ;;
        --version) version; exit 0 ;;
        --large) large=1; shift ;;
        *) bad_usage "'$1' is no option" ;;
    esac
done
can_cluster || finish
use_build
program=$BUILD/fabtests/mpi/mpi_coll_check
[ -x "$program" ] || { echo "$ME: no $program: run util/build" >&2; exit 2; }
start_cluster 4
NET=${NET:-10.77}

in_host() { ip netns exec "$VC-h$1" "${@:2}"; }
lan() { # lan NAME SUBNET: adds a network card to each host, on a switch of its own
    local i
    ip -n "$VC-sw0" link add "$1" type bridge stp_state 0 forward_delay 0 mcast_snooping 0
    ip -n "$VC-sw0" link set "$1" up
    for i in 0 1 2 3; do
        ip link add "$1" netns "$VC-h$i" type veth peer name "$1-$i" netns "$VC-sw0"
        ip -n "$VC-sw0" link set "$1-$i" master "$1" up
        ip -n "$VC-h$i" addr add "$2.$((i + 1))/24" dev "$1"
        ip -n "$VC-h$i" link set "$1" up
    done
}
fast() { # fast HOST NAME ADDRESS: adds a card of 100 Gbit/s, which exists as long as a process holds it
    in_host "$1" python3 - "$2" >"$work/fast$1-$2" <<'END' &
import fcntl, struct, subprocess, sys, time
device = open("/dev/net/tun", "r+b", buffering=0)
fcntl.ioctl(device, 0x400454CA, struct.pack("16sH", sys.argv[1].encode(), 0x1002))
subprocess.run(["ethtool", "-s", sys.argv[1], "speed", "100000", "duplex", "full"], check=True)
print("ready", flush=True)
time.sleep(3600)
END
    for _ in {1..300}; do [ ! -s "$work/fast$1-$2" ] || break; sleep .1; done
    [ -z "$3" ] || ip -n "$VC-h$1" addr add "$3" dev "$2"
    ip -n "$VC-h$1" link set "$2" up
}

# Open MPI's own messages use libfabric's tcp on eth0, and not btl tcp. mcastcoll chooses its network by itself.
job() { # job LOG OPTIONS...; sets code
    local log=$1
    shift
    code=0
    STACK=${STACK:-ofi} FI_TCP_IFACE=eth0 bounded 60 "$LAB/run" -n 4 --mca oob_tcp_if_include eth0 --mca coll ^sm \
        --mca coll_mcastcoll_verbose 1 "$@" "$program" --count 5 --max 4K --seed 1 >"$work/$log" 2>&1 || code=$?
}
complain() { # complain WHAT LOG
    tail -n 20 "$work/$2" | sed 's/^/     /'
    fail "$1: code $code$([ "$code" != 124 ] || echo ' (hung)')"
}
served() { # served WHAT LOG [PATTERN]: correct, at the first join, and the log contains the pattern
    if [ "$code" = 0 ] && grep -q ' 0 bad$' "$work/$2" && grep -q 'coll/mcastcoll serves MPI_COMM_WORLD' "$work/$2" &&
        ! grep -q 'failed on rank' "$work/$2" && grep -q "${3:-serves}" "$work/$2"; then
        pass "$1: served"
    else
        complain "$@"
    fi
}
left() { # left WHAT LOG PATTERN: correct, without a join, and one line gives the reason
    if [ "$code" = 0 ] && grep -q ' 0 bad$' "$work/$2" && [ "$(grep -c "coll/mcastcoll is off.*$3" "$work/$2")" = 1 ] &&
        ! grep -q 'failed on rank\|mcastcoll serves' "$work/$2"; then
        pass "$1: left to Open MPI, $(grep -o "$3.*" "$work/$2")"
    else
        complain "$@"
    fi
}
export FI_LOG_LEVEL=info FI_LOG_PROV=mcastcoll

for i in 0 1 2 3; do add_docker0 $i; done
if [ -n "$large" ]; then
    job equal
    served "docker0, as fast as eth0" equal "multicast on eth0"
    STACK=tcp job exclude --mca btl_tcp_if_exclude lo,docker0
    served "docker0, which Open MPI may not use" exclude "multicast on eth0"
fi
for i in 0 1 2 3; do
    fast $i tap0 ''
    ip -n "$VC-h$i" link set tap0 master docker0
done
job faster
served "docker0, faster than eth0" faster "multicast on eth0"
job chosen -x FI_MCASTCOLL_IFACE=docker0
left "docker0 was requested" chosen "hosts h0 and h[1-3] both have the address 172.17.0.1 of docker0; set FI_MCASTCOLL_IFACE"
# All ranks but the last have a group, and so an endpoint, when they find no common network with the last.
code=0
last=$(ip -n "$VC-h3" -6 -o addr show dev eth0 scope global | awk '{ sub("/.*", "", $4); print $4 }')
STACK=ofi FI_TCP_IFACE=eth0 bounded 60 "$LAB/run" -n 4 --mca oob_tcp_if_include eth0 --mca coll ^sm --mca coll_mcastcoll_verbose 1 \
    sh -c 'r=$OMPI_COMM_WORLD_RANK; FI_MCASTCOLL_IFACE=$2; [ $r = 3 ] || FI_MCASTCOLL_IFACE=$1.0.$((r + 1)); export FI_MCASTCOLL_IFACE; exec "$0"' \
    "$BUILD/fabtests/mpi/mpi_part_first" "$NET" "$last" >"$work/part" 2>&1 || code=$?
if [ "$code" = 0 ] && grep -q 'mcastcoll serves .*, 3 members' "$work/part" && grep -q 'coll/mcastcoll is off.*no network connects all' "$work/part"; then
    pass "the last host shares no network: the others are served, all together are left"
else
    complain "the last host shares no network" part
fi
# Programs without MPI only have the list of members.
FI_MCASTCOLL_IFACE=172.17.0.1 bounded 100 "$BUILD/fi_mcc_barrier" --cluster "$VC" -n 3 --case "barriers with flags" >"$work/list" 2>&1 || :
if [ "$(grep -c "all 3 members have the address of this host, 172.17.0.1:[0-9]*, but the other members are not on this host" "$work/list")" = 3 ]; then
    pass "a program of libfabric gets the error at once"
else
    complain "a program of libfabric" list
fi

for i in 0 1 2 3; do ip -n "$VC-h$i" link del docker0; done

# Only a missing answer shows that datagrams are dropped.
for i in 0 1 2 3; do
    in_host $i nft -f - <<'END'
table inet fw {
    chain in {
        type filter hook input priority 0
        iif lo accept
        meta l4proto udp drop
    }
}
END
done
job udp -x FI_MCASTCOLL_MULTICAST=off
if [ "$code" = 0 ] && grep -q ' 0 bad$' "$work/udp" && ! grep -q 'timed out' "$work/udp" &&
    [ "$(grep -c "leaves communicator MPI_COMM_WORLD .* UDP to rank 0's host (a firewall?) failed on rank 1" "$work/udp")" = 1 ]; then
    pass "UDP is dropped: left to Open MPI, without waiting for a join"
else
    complain "UDP is dropped" udp
fi
for i in 0 1 2 3; do in_host $i nft delete table inet fw; done

# A card of a single host, listed first there; then three networks, of which a single network carries multicast.
fast 2 fast0 10.250.0.1/24
job other
served "one host lists a faster card first" other "multicast on eth0"
if [ -n "$large" ]; then
    lan eth1 10.251.1
    lan eth2 10.251.2
    ip netns exec "$VC-sw0" nft -f - <<'END'
table bridge t {
    chain through {
        type filter hook forward priority 0
        iifname { h0, h1, h2, h3, eth2-0, eth2-1, eth2-2, eth2-3 } ip daddr 224.0.0.0/4 udp dport != 0 drop
    }
}
END
    job deaf
    served "the first of three networks carries no multicast" deaf
    job third -x FI_MCASTCOLL_IFACE=eth1
    served "the network that carries multicast was requested" third "multicast on eth1"
    ip netns exec "$VC-sw0" nft delete table bridge t
fi

# Open MPI needs an address of its own; mcastcoll is configured for the network with only link-local addresses. h2 has
# one card more, so there the interface has a different number.
[ -n "$large" ] || lan eth1 10.251.1
for i in 0 1 2 3; do
    ip -n "$VC-h$i" addr flush dev eth1
    ip -n "$VC-h$i" addr add fe80::a:$((i + 1))/64 dev eth1 nodad
done
job local -x FI_MCASTCOLL_IFACE=eth1
served "link-local addresses only" local "multicast on eth1 (IPv6"
for i in 0 1 2 3; do ip -n "$VC-h$i" -4 addr flush dev eth0; done
STACK=tcp job six --mca btl_tcp_if_include eth0 --mca btl_tcp_disable_family 4
served "hosts with IPv6 only" six "multicast on eth0 (IPv6"
finish
