#!/usr/bin/env python3
"""Multicast and TCP probes for the cluster's selftest.

probe.py recv SECONDS        count the distinct datagrams of both groups; prints: HOST IPV4-COUNT IPV6-COUNT
probe.py send COUNT [SIZE]   send COUNT datagrams to the IPv4 group and as many to the IPv6 group
probe.py sink                take one TCP connection, print its rate
probe.py flood HOST MIB      send to it
probe.py datagrams HOST COUNT SIZE   send so many to one host
"""
import select
import socket
import struct
import sys
import time

GROUP4, GROUP6, PORT = "239.77.0.9", "ff15::77:9", 5099


def receivers():
    v4 = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    v4.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
    v4.bind((GROUP4, PORT))
    v4.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, struct.pack("4sI", socket.inet_aton(GROUP4), 0))
    v6 = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    v6.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
    v6.bind((GROUP6, PORT))
    group = socket.inet_pton(socket.AF_INET6, GROUP6) + struct.pack("I", socket.if_nametoindex("eth0"))
    v6.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, group)
    return v4, v6


def recv(seconds):
    sockets = receivers()
    seen = {s: set() for s in sockets}
    end = time.time() + seconds
    while time.time() < end:
        for s in select.select(sockets, [], [], 0.1)[0]:
            seen[s].add(s.recv(65536)[:4])
    print(socket.gethostname(), *(len(seen[s]) for s in sockets))


def send(count, size=60):
    v4 = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    v4.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 8)  # more than 1: the routers themselves must stop it
    v6 = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    v6.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, 8)
    v6.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, socket.if_nametoindex("eth0"))
    for i in range(count):
        datagram = struct.pack("I", i) + bytes(size)
        v4.sendto(datagram, (GROUP4, PORT))
        v6.sendto(datagram, (GROUP6, PORT))
        if i % 8 == 7:
            time.sleep(0.0005)


def sink():
    connection, _ = socket.create_server(("", PORT)).accept()
    total, start = 0, None
    while block := connection.recv(1 << 20):
        start = start or time.time()
        total += len(block)
    print(f"{total * 8 / (time.time() - start) / 1e6:.0f} Mbit/s")


def flood(host, mebibytes):
    connection = socket.create_connection((host, PORT))
    for _ in range(mebibytes):
        connection.sendall(bytes(1 << 20))


def datagrams(host, count, size):
    family, kind, protocol, _, address = socket.getaddrinfo(host, PORT, type=socket.SOCK_DGRAM)[0]
    peer = socket.socket(family, kind, protocol)
    for _ in range(count):
        peer.sendto(bytes(size), address)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["recv", seconds]:
            recv(float(seconds))
        case ["send", count, *size]:
            send(int(count), *map(int, size))
        case ["sink"]:
            sink()
        case ["flood", host, mebibytes]:
            flood(host, int(mebibytes))
        case ["datagrams", host, count, size]:
            datagrams(host, int(count), int(size))
        case _:
            sys.exit(__doc__)
