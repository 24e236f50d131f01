#!/usr/bin/env python3
"""test_gateway.py [--only CASE,CASE,..] [--large] [--list] -- gateways as processes, over this machine's loopback.

Each case starts gateways, acts as the sites' processes, and checks the data that arrive and the gateways' reports.
--large: 10,000 connections and 10 GB, which take longer than a test has."""

import argparse
import concurrent.futures
import contextlib
import hashlib
import multiprocessing
import os
import random
import re
import selectors
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time
import traceback

from gateway_lab import GATEWAY, WAIT_S, Lab, Server, echo, endpoint, ends_with_us, free_port, hello, preface, read_exactly, shared_key, wait_for

LARGE = False
KEY = "correct horse battery staple, and more of it\n"


def expect_reset(sock, what, seconds=WAIT_S):
    sock.settimeout(seconds)
    try:
        data = sock.recv(1)
    except (ConnectionResetError, BrokenPipeError):
        return
    raise AssertionError(f"{what}: got {data!r} instead of a reset")


def expect_closed(sock):
    """The connection is reset or ended, within the time that a peer has to identify itself."""
    sock.settimeout(WAIT_S)
    with contextlib.suppress(ConnectionResetError):
        while sock.recv(4096):
            pass


def pump(sock, size, seed):
    """Sends `size` bytes derived from a seed, and ends."""
    block = random.Random(seed).randbytes(1 << 20)
    digest = hashlib.blake2b()
    while size > 0:
        piece = memoryview(block)[: min(size, len(block))]
        sock.sendall(piece)
        digest.update(piece)
        size -= len(piece)
    sock.shutdown(socket.SHUT_WR)
    return digest.hexdigest()


def drain(sock):
    buffer, digest, size = bytearray(1 << 20), hashlib.blake2b(), 0
    while got := sock.recv_into(buffer):
        digest.update(memoryview(buffer)[:got])
        size += got
    return digest.hexdigest(), size


class Sink:
    """Receives everything, and sends a digest of the data at the end."""

    def __init__(self, address="127.2.0.5"):
        self.server = Server(self.serve, address)
        self.address = self.server.address

    @staticmethod
    def serve(sock):
        digest, size = drain(sock)
        sock.sendall(f"{digest} {size}".encode())


def send_and_check(lab, sink, size, seed):
    with lab.connect(sink.address) as sock:
        sock.settimeout(None)
        digest = pump(sock, size, seed)
        answer = drain_text(sock)
        assert answer == f"{digest} {size}", f"connection {seed}: {size} bytes sent, got {answer!r}"


def drain_text(sock):
    text = b""
    while data := sock.recv(4096):
        text += data
    return text.decode()


def case_bytes_go_both_ways():
    with Lab().start().up(4) as lab:
        server = Server(echo)

        def talk(seed):
            rng = random.Random(seed)
            with lab.connect(server.address) as sock:
                for _ in range(20):
                    data = rng.randbytes(rng.choice([1, 100, 5000, 200_000, 700_000]))
                    sender = threading.Thread(target=sock.sendall, args=(data,))
                    sender.start()
                    assert read_exactly(sock, len(data)) == data
                    sender.join()
                sock.shutdown(socket.SHUT_WR)
                assert sock.recv(1) == b""
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(talk, range(8)))
        lab.quiet()
        assert not server.failures, server.failures
        assert lab.session("alpha")["counters"]["opened"] == 8
        # The reverse direction: the site with the greater name opens.
        server = Server(echo, "127.1.0.9")
        with lab.connect(server.address, "127.2.0.7", "beta") as sock:
            sock.sendall(b"hello")
            assert read_exactly(sock, 5) == b"hello"
        for name in list(lab.processes):
            lab.stop(name)


def case_the_acceptor_learns_the_connecting_site():
    with Lab().start().up() as lab:
        server = Server(echo)
        with lab.connect(server.address, node=5, process=77) as sock:
            source = sock.getsockname()
            sock.sendall(b"x")
            read_exactly(sock, 1)
        assert server.sources == [preface(source, server.address, 5, 77)]


def case_half_closed_connections_go_on():
    with Lab().start().up() as lab:
        sink = Sink()
        send_and_check(lab, sink, 3_000_000, 1)  # ends its half, then gets the answer
        server = Server(lambda sock: (sock.shutdown(socket.SHUT_WR), drain(sock)))
        with lab.connect(server.address) as sock:
            assert sock.recv(1) == b""
            sock.sendall(bytes(100_000))
        lab.quiet()
        assert not server.failures, server.failures


def case_a_refused_connection_is_a_reset():
    with Lab().start().up() as lab:
        with lab.connect(("127.2.0.5", free_port("127.2.0.5"))) as sock:
            expect_reset(sock, "no process listens")
        lab.quiet()
        assert lab.counter("beta", "targets_failed") == 1


def case_a_reset_goes_through():
    with Lab().start().up() as lab:
        first = threading.Event()

        def die(sock):
            read_exactly(sock, 5)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            first.set()
        server = Server(die)
        with lab.connect(server.address) as sock:
            sock.sendall(b"hello")
            assert first.wait(WAIT_S)
            expect_reset(sock, "the acceptor died")
        seen = []

        def watch(sock):
            try:
                seen.append(drain(sock))
            except ConnectionResetError:
                seen.append("reset")
        server = Server(watch)
        sock = lab.connect(server.address)
        sock.sendall(b"hello")
        wait_for("the connection is there", lambda: server.sources)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        sock.close()
        wait_for("the reset comes", lambda: seen)
        assert seen == ["reset"], seen
        # Also after one half was ended.
        seen.clear()
        got = []

        def send_forever(sock):
            try:
                while True:
                    sock.sendall(bytes(65536))
            except (ConnectionResetError, BrokenPipeError):
                got.append("reset")
        server = Server(send_forever)
        sock = lab.connect(server.address)
        sock.shutdown(socket.SHUT_WR)
        read_exactly(sock, 1)
        sock.close()  # with bytes unread
        wait_for("the sender gets an error", lambda: got)
        lab.quiet()


def case_connections_that_cross_end_in_order():
    """Two processes connect to each other at once, like Open MPI's, and send their names. The lesser keeps its own
    connection and ends the other after it has read the name there; the greater continues with the lesser's. Neither
    may see a reset or miss a message, however often streams break."""
    names = {"lesser": b"lesser".ljust(24), "greater": b"greater".ljust(24)}

    def lesser(lab, own, other, pause):
        time.sleep(pause)
        with lab.connect(other.getsockname(), "127.1.0.9", "alpha") as mine:
            mine.sendall(names["lesser"])
            theirs, _ = own.accept()
            with theirs:
                theirs.settimeout(WAIT_S)
                assert read_exactly(theirs, 88)[64:] == names["greater"]
                theirs.shutdown(socket.SHUT_RDWR)
            assert read_exactly(mine, 24) == names["greater"], "the one that is kept is answered"
            mine.sendall(b"first message")
            assert mine.recv(1) == b""

    def greater(lab, own, other, pause, waits):
        time.sleep(pause)
        with lab.connect(other.getsockname(), "127.2.0.5", "beta") as mine:
            mine.sendall(names["greater"])
            theirs, _ = own.accept()
            with theirs:
                theirs.settimeout(WAIT_S)
                assert read_exactly(theirs, 88)[64:] == names["lesser"]
                if waits:
                    assert mine.recv(1) == b"", "an end, no reset"
                mine.shutdown(socket.SHUT_RDWR)
                mine.close()
                theirs.sendall(names["greater"])
                assert read_exactly(theirs, 13) == b"first message"

    def cross(lab, pool, seed):
        rng = random.Random(seed)
        with socket.create_server(("127.1.0.9", 0)) as one, socket.create_server(("127.2.0.5", 0)) as other:
            for listener in (one, other):
                listener.settimeout(WAIT_S)
            both = [pool.submit(lesser, lab, one, other, rng.uniform(0, 0.003)),
                    pool.submit(greater, lab, other, one, rng.uniform(0, 0.003), seed % 2 == 0)]
            for half in both:
                half.result()

    with Lab(relay=True).start().up(4) as lab, concurrent.futures.ThreadPoolExecutor(32) as pool:
        ended = threading.Event()

        def break_streams():
            while not ended.wait(0.05):
                lab.relays["beta"].cut(1)
        thread = threading.Thread(target=break_streams)
        thread.start()
        try:
            with concurrent.futures.ThreadPoolExecutor(16) as pairs:
                list(pairs.map(lambda seed: cross(lab, pool, seed), range(500)))
        finally:
            ended.set()
            thread.join()
        assert lab.counter("alpha", "lan_resets") == lab.counter("beta", "lan_resets") == 0
        lab.quiet()


def case_a_slow_reader_stops_no_other_connection():
    with Lab(options=["--memory", "64"]).start().up() as lab:
        release = threading.Event()
        stuck = Server(lambda sock: (release.wait(4 * WAIT_S), sock.sendall(drain(sock)[0].encode())))
        sink, slow, sent = Sink(), [], []
        for i in range(20):
            sock = lab.connect(stuck.address)
            sock.settimeout(None)
            slow.append(sock)
            thread = threading.Thread(target=lambda s=sock, i=i: sent.append((s, pump(s, 8_000_000, i))), daemon=True)
            thread.start()
        time.sleep(1)
        for seed in range(10):
            send_and_check(lab, sink, 1_000_000, seed)
        for name in ("alpha", "beta"):
            memory = lab.memory_kib(name)
            assert memory < 128 * 1024, f"{name} has {memory} KiB"
        release.set()
        wait_for("all are sent", lambda: len(sent) == 20)
        for sock, digest in sent:
            assert drain_text(sock) == digest
            sock.close()
        lab.quiet()


def transfer_while(lab, disturb, size, connections=4):
    sink = Sink()
    with concurrent.futures.ThreadPoolExecutor(connections) as pool:
        futures = [pool.submit(send_and_check, lab, sink, size // connections, seed) for seed in range(connections)]
        while any(not future.done() for future in futures):
            disturb()
        for future in futures:
            future.result()
    lab.quiet()
    assert not sink.server.failures, sink.server.failures


def case_broken_streams_lose_nothing():
    size = 10_000_000_000 if LARGE else 200_000_000
    for key in (None, KEY):
        with Lab(relay=True, key=key).start().up(4) as lab:
            relay, cuts = lab.relays["beta"], [0]

            def cut():
                time.sleep(0.2)
                cuts[0] += relay.cut(random.choice([1, 1, 2, None]))
            transfer_while(lab, cut, size)
            counters = lab.session("alpha")["counters"]
            print(f"  {size} bytes, {cuts[0]} streams cut, {counters['resent_frames']} frames sent again, "
                  f"{lab.session('beta')['counters']['duplicate_frames']} of them known already", flush=True)
            assert counters["streams_lost"] > 0 and counters["sessions_lost"] == 0


CONNECTS = """import socket, sys
sock = socket.create_connection((sys.argv[1], int(sys.argv[2])), source_address=("127.1.0.8", 0))
preface = bytearray.fromhex(sys.argv[3])
preface[10:12] = sock.getsockname()[1].to_bytes(2, "big")
sock.sendall(preface + bytes(1000))
print("sending", flush=True)
while True:
    sock.sendall(bytes(65536))"""
ACCEPTS = """import socket
listener = socket.create_server(("127.2.0.6", 0))
print(listener.getsockname()[1], flush=True)
sock, _ = listener.accept()
while sock.recv(65536):
    print("receiving", flush=True)"""


def case_killed_processes_harm_no_other():
    """Under load, while streams break: connecting and accepting processes are killed in the middle of their data. Their
    peers get an error, and the bytes of the remaining connections are correct."""
    size, killed, ended = 10_000_000_000 if LARGE else 200_000_000, [0], []

    def start(script, *arguments):
        return subprocess.Popen([sys.executable, "-c", script, *arguments], stdout=subprocess.PIPE, text=True)

    def swallow(sock):
        try:
            with contextlib.suppress(ConnectionResetError):
                drain(sock)
        finally:
            ended.append(sock)

    with Lab(relay=True).start().up(4) as lab:
        server = Server(swallow)

        def kill_two():
            lab.relays["beta"].cut(1)
            before = len(ended)
            host, port = lab.gateways["alpha"]
            with start(CONNECTS, host, str(port), preface(("127.1.0.8", 9), server.address).hex()) as process:
                process.stdout.readline()
                wait_for("it is connected", lambda: len(server.sources) > before)
                process.kill()
            wait_for("its peer learns it", lambda: len(ended) > before)
            with start(ACCEPTS) as process, lab.connect(("127.2.0.6", int(process.stdout.readline()))) as sock:
                sock.sendall(bytes(100_000))
                process.stdout.readline()
                process.kill()
                with contextlib.suppress(ConnectionResetError, BrokenPipeError):
                    while True:  # or until the socket's timeout
                        sock.sendall(bytes(65536))
            killed[0] += 2
        transfer_while(lab, kill_two, size)
        print(f"  {size} bytes, {killed[0]} processes killed", flush=True)
        assert killed[0] > 0 and lab.session("alpha")["counters"]["sessions_lost"] == 0


def case_a_paused_gateway_goes_on():
    with Lab(options=["--silence", "1"]).start().up(4) as lab:
        pauses = [0]

        def pause():
            time.sleep(0.1)
            if pauses[0] == 2:
                return
            victim = lab.processes[("alpha", "beta")[pauses[0]]]
            pauses[0] += 1
            victim.send_signal(signal.SIGSTOP)
            time.sleep(2)
            victim.send_signal(signal.SIGCONT)
        transfer_while(lab, pause, 400_000_000)
        assert lab.session("alpha")["counters"]["sessions_lost"] == 0


def case_a_session_comes_back():
    with Lab(relay=True).start().up(4) as lab:
        relay, server = lab.relays["beta"], Server(echo)
        with lab.connect(server.address) as sock:
            sock.sendall(b"before")
            assert read_exactly(sock, 6) == b"before"
            relay.refusing = True
            relay.cut()
            wait_for("it is down", lambda: lab.session("alpha")["state"] == "down")
            sock.sendall(b"between")
            time.sleep(1)
            relay.refusing = False
            assert read_exactly(sock, 7) == b"between"
        lab.up(4).quiet()


def case_a_dead_session_is_an_error_in_time():
    with Lab(relay=True, options=["--session-timeout", "2"]).start().up() as lab:
        relay, server = lab.relays["beta"], Server(echo)
        with lab.connect(server.address) as sock:
            sock.sendall(b"x")
            read_exactly(sock, 1)
            relay.refusing = True
            relay.cut()
            start = time.monotonic()
            expect_reset(sock, "the session is gone")
            assert time.monotonic() - start > 1, "it had two seconds to come back"
        with lab.connect(server.address) as sock:
            expect_reset(sock, "there has been no session for long")
        wait_for("the acceptor's side is reset, too", lambda: server.failures)
        relay.refusing = False
        lab.up(4)
        with lab.connect(server.address) as sock:
            sock.sendall(b"again")
            assert read_exactly(sock, 5) == b"again"
        lab.quiet()


def case_silent_streams_are_broken():
    with Lab(relay=True, options=["--silence", "1", "--session-timeout", "3"]).start().up(4) as lab:
        relay = lab.relays["beta"]
        relay.silent = relay.refusing = True
        wait_for("they are given up", lambda: lab.session("alpha")["state"] == "down" and lab.session("beta")["state"] == "down")
        relay.silent = relay.refusing = False
        relay.cut()
        lab.up(4)


def case_a_killed_gateway_is_an_error_and_comes_back():
    with Lab(options=["--session-timeout", "2"]).start().up() as lab:
        server = Server(echo)
        for victim, left in (("beta", "alpha"), ("alpha", "beta")):
            sock = lab.connect(server.address)
            sock.sendall(b"x")
            read_exactly(sock, 1)
            lab.kill(victim)
            if left == "alpha":
                expect_reset(sock, "the other gateway is dead")
            else:
                expect_closed(sock)
            sock.close()
            # A restarted gateway is recognized as a new one: connections through the old one are reset, and not mixed
            # up.
            lab.start(victim).up(4)
            with lab.connect(server.address) as sock:
                sock.sendall(b"again")
                assert read_exactly(sock, 5) == b"again"
        lab.quiet()
        for name in ("alpha", "beta"):
            lab.stop(name)


def case_garbage_harms_no_connection():
    with Lab(options=["--connections", "2000"]).start().up() as lab:
        server = Server(echo)
        victim = lab.connect(server.address)
        address = lab.gateways["alpha"]
        named = hello(5, "beta", "alpha")
        # The kernel gives these ports to no other process.
        source, target = ("127.1.0.6", free_port("127.1.0.6")), server.address
        good = preface(source, target)
        words = [
            b"\0" * 64, b"MCCR" + b"\xff" * 60, b"MCCT" + b"\xff" * 196, named, b"POST / HTTP/1.0\r\n\r\n", os.urandom(5000),
            preface(source, ("127.8.0.1", 80)), preface(source, ("127.1.0.1", 80)), good[:8] + bytes(20) + good[28:],
            named.replace(b"beta", b"what"), named.replace(b"alpha", b"omega"), named[:40] + b"x" * 64, hello(5, "beta", "alpha", version=1) + bytes(96), first_bytes_of_tls(),
            b"\x16\x03\x01\xff\xff" + bytes(500),
        ]
        for word in words:
            with socket.create_connection(address, timeout=WAIT_S, source_address=("127.1.0.6", 0)) as sock:
                word = word.replace(endpoint(*source), endpoint(*sock.getsockname()))
                with contextlib.suppress(ConnectionResetError, BrokenPipeError):
                    sock.sendall(word)
                expect_closed(sock)
        # A process of another site, at the port for other gateways.
        with lab.connect(target, "127.2.0.5") as sock:
            expect_closed(sock)
        # Half a hello or preface, or nothing.
        halves = [socket.create_connection(address, source_address=("127.1.0.6", 0)) for _ in range(40)]
        for i, sock in enumerate(halves):
            sock.sendall([good, named, b"GET / HT"][i % 3][: i])
        # More connections than may wait: the oldest are closed.
        crowd = [socket.create_connection(address, source_address=("127.1.0.6", 0)) for _ in range(1100)]
        wait_for("the crowd is counted", lambda: lab.counter("alpha", "evicted") > 0)
        for _ in range(20):
            victim.sendall(b"still here")
            assert read_exactly(victim, 10) == b"still here"
        for sock in halves + crowd:
            sock.settimeout(WAIT_S)
            with contextlib.suppress(ConnectionResetError):
                assert sock.recv(1) == b""
            sock.close()
        counters = lab.page("alpha")["counters"]
        assert counters["garbage"] >= 4 and counters["foreign_connections"] == 1 and counters["hello_timeouts"] > 0, counters
        assert counters["no_route"] == 2 and counters["refused_hellos"] >= 6, counters
        victim.close()
        lab.quiet()
        assert lab.session("alpha")["counters"]["sessions_lost"] == 0


def case_no_process_connects_for_another():
    """A preface must name the address and port that it comes from; and no gateway forwards connections on behalf of
    another site."""
    with Lab(sites=3) as lab:
        with open(lab.sites) as file:
            text = file.read()
        # This gateway's file assigns a host of gamma to its own site.
        wider = lab.write("wider.conf", text.replace("127.1.0.0/16", "127.1.0.0/16, 127.3.7.0/24"))
        lab.start("alpha", sites=wider).start("beta").up()
        server = Server(echo)

        def speak(source, named=None):
            with socket.create_connection(lab.gateways["alpha"], timeout=WAIT_S, source_address=(source, 0)) as sock:
                own = sock.getsockname()
                with contextlib.suppress(ConnectionResetError, BrokenPipeError):
                    sock.sendall(preface(named(own) if named else own, server.address) + b"let me in")
                    return read_exactly(sock, 9) == b"let me in"

        def refused(*arguments):
            with contextlib.suppress(EOFError):
                assert not speak(*arguments), arguments
        refused("127.1.0.5", lambda own: ("127.1.0.6", own[1]))
        refused("127.1.0.5", lambda own: (own[0], own[1] ^ 1))
        refused("127.1.0.5", lambda own: ("127.2.0.5", own[1]))
        assert lab.counter("alpha", "false_sources") == 3 and not server.sources, server.sources
        refused("127.3.7.5")
        assert lab.counter("beta", "false_sources") == 1 and not server.sources, server.sources
        assert speak("127.1.0.5") and speak("127.1.0.6")
        # An IPv4 address over an IPv6 socket is the same address.
        with socket.socket(socket.AF_INET6) as sock:
            sock.bind(("::ffff:127.1.0.5", 0))
            sock.connect(("::ffff:" + lab.gateways["alpha"][0], lab.gateways["alpha"][1]))
            sock.sendall(preface(("127.1.0.5", sock.getsockname()[1]), server.address) + b"x")
            assert read_exactly(sock, 1) == b"x"
        lab.quiet()


def case_a_site_reaches_its_allowed_targets():
    """Each gateway enforces the rule, even if the other does not."""
    with Lab() as lab:
        server, other = Server(echo), Server(echo)
        elsewhere = Server(echo, "127.2.1.5")
        with open(lab.sites) as file:
            text = file.read()
        first = "networks = 127.1.0.0/16\n"
        assert first in text
        strict = lab.write("strict.conf", text.replace(first, first + f"reach = 127.2.0.0/24:{server.address[1]}, 127.2.1.0/24:1-9\n"))

        def reach(target):
            with lab.connect(target) as sock:
                with contextlib.suppress(ConnectionResetError, BrokenPipeError):
                    sock.sendall(b"x")
                    return sock.recv(1) == b"x"
            return False
        for strict_one in ("alpha", "beta"):
            for name in ("alpha", "beta"):
                lab.start(name, sites=strict if name == strict_one else lab.sites)
            lab.up()
            assert reach(server.address) and not reach(other.address) and not reach(elsewhere.address)
            assert lab.counter(strict_one, "out_of_reach") == 2
            # The rule does not cover the other site.
            back = Server(echo, "127.1.0.9")
            with lab.connect(back.address, "127.2.0.7", "beta") as sock:
                sock.sendall(b"x")
                assert read_exactly(sock, 1) == b"x"
            lab.quiet()
            for name in ("alpha", "beta"):
                lab.stop(name)
        assert not other.sources and not elsewhere.sources


def case_a_gateway_without_a_key_is_known_by_its_address():
    with Lab().start().up() as lab:
        server = Server(echo)
        victim = lab.connect(server.address)
        sources = ["127.1.0.2", "127.2.0.9", "127.8.0.1", "127.0.0.1"]
        for i, source in enumerate(sources):
            with socket.create_connection(lab.gateways["beta"], timeout=WAIT_S, source_address=(source, 0)) as sock:
                with contextlib.suppress(ConnectionResetError, BrokenPipeError):
                    sock.sendall(hello(5, "alpha", "beta"))
                    assert sock.recv(1) == b"", "it was answered"
            assert lab.counter("beta", "foreign_hellos") == i + 1
        victim.sendall(b"still here")
        assert read_exactly(victim, 10) == b"still here"
        assert lab.session("beta")["counters"]["sessions_lost"] == 0
        victim.close()
        lab.quiet()


def case_foreign_connections_do_not_crowd_members_out():
    """More foreign connections than may wait, each from a different address, and a process of the site with an earlier connection."""
    with Lab().start().up() as lab:
        server = Server(echo)
        end = time.monotonic() + WAIT_S
        while True:
            began, before = time.monotonic(), lab.counter("alpha", "evicted")
            with contextlib.ExitStack() as crowd, socket.create_connection(
                    lab.gateways["alpha"], timeout=WAIT_S, source_address=("127.1.0.5", 0)) as sock:
                for i in range(1100):
                    source = (f"127.2.{1 + i // 250}.{1 + i % 250}", 0)
                    crowd.enter_context(socket.create_connection(lab.gateways["alpha"], timeout=WAIT_S, source_address=source))
                wait_for("there are too many", lambda: lab.counter("alpha", "evicted") >= before + 70)
                if time.monotonic() - began > 4:  # so slow that the process's time limit may be over
                    assert time.monotonic() < end, "this machine is too slow for this"
                    continue
                sock.sendall(preface(sock.getsockname(), server.address) + b"let me in")
                assert read_exactly(sock, 9) == b"let me in"
                break
        lab.quiet()


def case_a_protocol_error_ends_only_its_own_session():
    """A peer gateway without a key that sends a valid hello, and then data that are not frames, or violates the protocol."""
    with Lab(sites=3).start("beta", "gamma").up() as lab:
        server = Server(echo, "127.3.0.5")
        victim = lab.connect(server.address, "127.2.0.5", "beta")
        rng = random.Random(3)
        for i in range(200):
            with socket.create_connection(lab.gateways["beta"], timeout=WAIT_S, source_address=(lab.gateways["alpha"][0], 0)) as sock:
                with contextlib.suppress(ConnectionResetError, BrokenPipeError):
                    sock.sendall(hello(5 + i, "alpha", "beta"))
                    read_exactly(sock, 24 + 20)
                    if i % 2 == 0:
                        sock.sendall(rng.randbytes(500))
                    else:
                        for _ in range(50):
                            size = rng.choice([0, 0, 8, 68])
                            sock.sendall(struct.pack(">IIIIQ", rng.randrange(1, 11) << 24, size, rng.randrange(5), rng.randrange(3),
                                                     rng.randrange(9)) + rng.randbytes(size))
            if i % 20 == 0:
                victim.sendall(b"still here")
                assert read_exactly(victim, 10) == b"still here"
        victim.close()
        sessions = {t["site"]: t for t in lab.page("beta")["sessions"]}
        assert sessions["gamma"]["counters"]["sessions_lost"] == 0
        assert sessions["alpha"]["counters"]["violations"] > 10, sessions["alpha"]["counters"]


def case_a_key_refuses_other_gateways():
    with Lab(key=KEY, relay=True, streams=1).start().up() as lab:
        server = Server(echo)
        with lab.connect(server.address) as sock:
            secret = b"this must not be seen on its way"
            sock.sendall(secret * 1000)
            assert read_exactly(sock, len(secret) * 1000) == secret * 1000
        assert lab.page("alpha")["encrypted"]
        lab.stop("alpha")
        with open(lab.sites) as file:
            text = file.read()
        for what, sites in (("another key", text.replace("session.key", "other.key")), ("no key", text.replace("key = session.key\n", ""))):
            lab.write_key("other.key", "a key that is as good but another one\n")
            lab.start("alpha", sites=lab.write("other.conf", sites))
            counter = "wrong_keys" if what == "another key" else "refused_hellos"
            wait_for(f"{what} is refused", lambda: lab.counter("beta", counter) > 2)
            if what == "another key":
                wait_for("alpha is informed", lambda: lab.counter("alpha", "wrong_keys") > 2)
                wait_for("alpha reports this", lambda: "no TLS with the gateway of beta: " in lab.log("alpha"))
            line = "no TLS: binder does not verify" if what == "another key" else "the gateway of alpha has no key, but this gateway has one"
            # Some of many equal lines are left out of the log.
            wait_for("beta reports this", lambda: line in lab.log("beta"))
            assert lab.session("alpha")["state"] == "down" and lab.session("beta")["state"] == "down"
            lab.stop("alpha")
        lab.start("alpha").up()


def first_bytes_of_tls(version=ssl.TLSVersion.TLSv1_3):
    """The first TLS bytes of a client without any key."""
    context, out = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), ssl.MemoryBIO()
    context.minimum_version = context.maximum_version = version
    with contextlib.suppress(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), out, server_hostname="beta").do_handshake()
    return out.read()


def case_foreign_connections_end_at_the_hello():
    """Plain text, an older version's hello, TLS without the key, half a handshake: closed in time, with a log line with
    the reason."""
    with Lab(key=KEY).start().up(4) as lab:
        server = Server(echo)
        victim = lab.connect(server.address)
        old = hello(5, "alpha", "beta", version=1) + bytes(96)
        good = first_bytes_of_tls()
        in_pieces = good[:3] + struct.pack(">H", 100) + good[5:105]  # the other bytes never come
        for words in (hello(5, "alpha", "beta"), old, good, first_bytes_of_tls(ssl.TLSVersion.TLSv1_2), good[:5] + bytes(len(good) - 5), in_pieces):
            with socket.create_connection(lab.gateways["beta"], timeout=WAIT_S, source_address=("127.1.0.1", 0)) as sock:
                sock.sendall(words)
                with contextlib.suppress(ConnectionResetError):
                    answer = sock.recv(4096)
                    assert answer == b"" or answer[0] == 21, f"more than an alert: {answer!r}"
        said = lab.log("beta")
        for line in ("has no key, but this gateway has one", "it uses version 1 of the session protocol, this gateway uses 2", "no TLS: unsupported protocol"):
            assert line in said, said
        counters = lab.page("beta")["counters"]
        assert counters["refused_hellos"] == 2 and counters["wrong_keys"] == 4, counters
        # A peer that has sent less than a hello is unauthenticated, costs little memory, and is closed in time.
        crowd = [socket.create_connection(lab.gateways["beta"], source_address=(f"127.1.{1 + i % 200}.7", 0)) for i in range(1100)]
        before = lab.memory_kib("beta")
        for sock in crowd:
            with contextlib.suppress(ConnectionResetError, BrokenPipeError):
                sock.sendall(good[:-1])
        for sock in crowd:
            expect_closed(sock)
            sock.close()
        assert lab.memory_kib("beta") - before < 8 * 1024, f"{before} KiB, then {lab.memory_kib('beta')}"
        assert lab.counter("beta", "hello_timeouts") > 0
        victim.sendall(b"still here")
        assert read_exactly(victim, 10) == b"still here"
        victim.close()
        lab.quiet()
        assert lab.session("beta")["counters"]["sessions_lost"] == 0


def case_a_session_speaks_tls():
    """Interoperability with another TLS implementation: openssl(1) connects to a gateway with the pair's key, and gets a
    welcome."""
    openssl = shutil.which("openssl")
    if openssl is None:
        print("  skip no openssl(1)")
        return
    with Lab(key=KEY).start("beta") as lab:
        lab.page("beta")

        def handshake(identity, key, *options):
            command = [openssl, "s_client", "-connect", "%s:%d" % lab.gateways["beta"], "-psk_identity", identity, "-psk", key.hex(),
                       "-ign_eof", "-quiet", *options]
            with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  preexec_fn=ends_with_us) as client:
                with contextlib.suppress(BrokenPipeError):
                    client.stdin.write(hello(5, "alpha", "beta"))
                    client.stdin.flush()
                answer = client.stdout.read(44)
                client.kill()
            return answer
        identity, key = shared_key(KEY, "alpha", "beta")
        welcome = handshake(identity, key, "-tls1_3")
        assert welcome[0] == 10 and welcome[32:40] == struct.pack(">Q", 5), welcome
        assert lab.counter("beta", "wrong_keys") == 0
        # The same key under another name or in an older TLS, another pair's key, and another gateway's hello.
        assert handshake("alpha", key, "-tls1_3") == b"" and handshake(identity, key, "-tls1_2") == b""
        other, others_key = shared_key(KEY, "alpha", "gamma")
        assert handshake(identity, others_key, "-tls1_3") == b"" and handshake(other, others_key, "-tls1_3") == b""
        assert lab.counter("beta", "wrong_keys") == 4


def case_replays_and_forgeries_are_refused():
    """A gateway's bytes are recorded and replayed; and a byte in a stream is changed."""
    with Lab(key=KEY).start("beta") as lab:
        wait_for("beta is there", lambda: lab.status("beta"))
        recorded, turn = [], [False]

        def spy(near, far, record):
            with contextlib.suppress(OSError):
                while data := near.recv(65536):
                    if record:
                        recorded.append(data)
                    if turn[0] and record and len(data) > 100:
                        data = data[:50] + bytes([data[50] ^ 1]) + data[51:]
                        turn[0] = False
                    far.sendall(data)
            for sock in (near, far):
                with contextlib.suppress(OSError):
                    sock.shutdown(socket.SHUT_RDWR)
        listener = socket.create_server(("127.9.0.1", 0))

        def accept():
            while True:
                near, _ = listener.accept()
                try:
                    far = socket.create_connection(lab.gateways["beta"])
                except OSError:
                    return near.close()
                threading.Thread(target=spy, args=(near, far, True), daemon=True).start()
                threading.Thread(target=spy, args=(far, near, False), daemon=True).start()
        threading.Thread(target=accept, daemon=True).start()
        with open(lab.sites) as file:
            text = file.read().replace("[sessions]\nstreams = 4", "[sessions]\nstreams = 1")
        beta = "gateway = %s:%d\n" % lab.gateways["beta"]
        assert beta in text
        lab.start("alpha", sites=lab.write("spied.conf", text.replace(beta, beta + "wan = 127.9.0.1:%d\n" % listener.getsockname()[1]))).up()
        server = Server(echo)
        with lab.connect(server.address) as sock:
            sock.sendall(b"secret words" * 100)
            read_exactly(sock, 1200)
        assert b"secret words" not in b"".join(recorded)
        with socket.create_connection(lab.gateways["beta"], timeout=WAIT_S) as replay:
            with contextlib.suppress(ConnectionResetError, BrokenPipeError):
                replay.sendall(b"".join(recorded))
            expect_closed(replay)
        assert lab.counter("beta", "wrong_keys") == 1
        assert lab.session("beta")["state"] == "up" and lab.session("beta")["counters"]["sessions_lost"] == 0
        with lab.connect(server.address) as sock:
            turn[0] = True
            sock.sendall(bytes(1000))
            assert read_exactly(sock, 1000) == bytes(1000), "it was sent again on another stream"
        assert lab.counter("beta", "forged_records") == 1


def echo_to_all(listener):
    """Serves all connections in one thread."""
    chooser = selectors.DefaultSelector()
    chooser.register(listener, selectors.EVENT_READ, None)
    while True:
        for key, _ in chooser.select():
            if key.data is None:
                sock, _ = listener.accept()
                chooser.register(sock, selectors.EVENT_READ, [0])
                continue
            data = key.fileobj.recv(65536)
            if not data:
                chooser.unregister(key.fileobj)
                key.fileobj.close()
                continue
            skip = min(64 - key.data[0], len(data))
            key.data[0] += skip
            key.fileobj.sendall(data[skip:])


def case_many_connections():
    count = 10_000 if LARGE else 400
    with Lab().start().up(4) as lab:
        # In a separate process, because this one already uses as many descriptors.
        listener = socket.create_server(("127.2.0.5", 0), backlog=4096)
        server = multiprocessing.get_context("fork").Process(target=echo_to_all, args=(listener,), daemon=True)
        server.start()
        socks = [lab.connect(listener.getsockname(), f"127.1.{i % 200}.{1 + i // 20000}") for i in range(count)]
        for round in range(3):
            for i, sock in enumerate(socks):
                sock.sendall(struct.pack(">II", i, round) * 20)
            for i, sock in enumerate(socks):
                assert read_exactly(sock, 160) == struct.pack(">II", i, round) * 20
        memory = {name: lab.memory_kib(name) for name in ("alpha", "beta")}
        print(f"  {count} connections: {memory['alpha']} and {memory['beta']} KiB")
        assert max(memory.values()) < 60_000 + count * 20
        assert lab.page("alpha")["connections"] == count
        for sock in socks:
            sock.close()
        lab.quiet()
        server.kill()


def case_too_many_connections_are_refused():
    with Lab(options=["--connections", "20"]).start().up() as lab:
        server = Server(echo)
        socks = [lab.connect(server.address) for _ in range(20)]
        for sock in socks:
            sock.sendall(b"x")
            read_exactly(sock, 1)
        with lab.connect(server.address) as sock:
            expect_reset(sock, "the gateway is full")
        assert lab.counter("alpha", "over_limit") == 1
        for sock in socks:
            sock.close()
        lab.quiet()


def case_descriptors_may_run_out():
    with Lab(options=["--connections", "100"]) as lab:
        lab.start("beta")
        command = ["prlimit", "--nofile=400:400", GATEWAY, "--sites", lab.sites, "--site", "alpha"]
        lab.processes["alpha"] = subprocess.Popen(command, preexec_fn=ends_with_us)
        lab.up()
        server = Server(echo)
        victim = lab.connect(server.address)
        crowd = [socket.create_connection(lab.gateways["alpha"], source_address=("127.1.0.6", 0)) for _ in range(500)]
        victim.sendall(b"still here")
        assert read_exactly(victim, 10) == b"still here"
        for sock in crowd:
            sock.close()
        victim.close()
        lab.quiet()


def case_ends_on_a_signal():
    with Lab() as lab:
        lab.start("alpha", options=["--drain", "1"]).start("beta", options=["--drain", str(4 * WAIT_S)]).up()
        server = Server(echo)
        with lab.connect(server.address) as sock:
            sock.sendall(b"x")
            read_exactly(sock, 1)
            lab.stop("alpha", expect=1)  # a connection had to be cut
            expect_closed(sock)
        wait_for("the other end got a reset", lambda: server.failures)
        lab.start("alpha").up()
        # A connection that ends in time is served to its end.
        with lab.connect(server.address) as sock:
            sock.sendall(b"x")
            read_exactly(sock, 1)
            lab.processes["beta"].send_signal(signal.SIGTERM)
            sock.sendall(b"last words")
            assert read_exactly(sock, 10) == b"last words"
            sock.shutdown(socket.SHUT_WR)
            assert sock.recv(1) == b""
        assert lab.processes.pop("beta").wait(WAIT_S) == 0


def case_stays_below_its_cap():
    with Lab(sessions="cap = 80\n").start().up() as lab:  # 10 MB/s
        sink, start = Sink(), time.monotonic()
        send_and_check(lab, sink, 10_000_000, 1)
        seconds = time.monotonic() - start
        assert seconds > 0.9, f"10 MB in {seconds} s"


def case_reports_errors():
    with Lab(sites=2) as lab:
        def fails(expect, code, *arguments):
            done = subprocess.run([GATEWAY, *arguments], capture_output=True, text=True, timeout=WAIT_S)
            assert done.returncode == code and re.search(expect, done.stderr), (arguments, done)
        bad = lab.write("bad.conf", "[site a]\nnetworks = 10.0.0.0/8\ngateway = there\n")
        fails(r"bad\.conf:3: \"there\" is no", 2, "--sites", bad, "--site", "a")
        fails(r"--site omega: .* no such site", 2, "--sites", lab.sites, "--site", "omega")
        fails("--sites and --site are needed", 2)
        fails("--colour", 2, "--colour")
        fails("Connection refused", 1, "--status", "127.0.0.1:%d" % free_port("127.0.0.1"))
        fails("not an IPv4", 2, "--status", "here")
        fails("--memory", 2, "--memory", "1")
        with open(lab.sites) as file:
            text = file.read()
        fails("key.*No such file", 2, "--check", "--site", "alpha", "--sites", lab.write("k.conf", text + "key = none\n"))
        lab.write("open.key", KEY)
        os.chmod(lab.folder.name + "/open.key", 0o644)
        fails("chmod 600", 2, "--check", "--site", "alpha", "--sites", lab.write("k.conf", text + "key = open.key\n"))
        lab.write_key("short.key", "secret\n")
        fails("16 to 4096", 2, "--check", "--site", "alpha", "--sites", lab.write("k.conf", text + "key = short.key\n"))
        fails("congestion = none: this system", 1, "--site", "alpha", "--sites", lab.write("k.conf", text + "congestion = none\n"))
        with socket.create_server(lab.gateways["alpha"]):
            fails("cannot listen at 127.1.0.1", 1, "--site", "alpha", "--sites", lab.sites)
        assert subprocess.run([GATEWAY, "--check", "--site", "alpha", "--sites", lab.sites]).returncode == 0
        lab.start().up()
        page = subprocess.run([GATEWAY, "--status", "%s:%d" % lab.gateways["alpha"]], capture_output=True, text=True).stdout
        assert "site alpha" in page and "session to beta" in page and "rtt ms" in page, page


def request_page(address, *fields):
    with socket.create_connection(address) as sock:
        sock.sendall(("\r\n".join(("GET /json HTTP/1.1",) + fields) + "\r\n\r\n").encode())
        return b"".join(iter(lambda: sock.recv(65536), b"")).decode()


def case_the_status_page_is_not_for_other_pages():
    """A web page under a host name that resolves to this address gets no data through a reader's browser (DNS rebinding)."""
    with Lab() as lab:
        lab.start().up()
        address = lab.gateways["alpha"]
        for good in ("%s:%d" % address, "localhost:1", "LOCALHOST", "[::1]:80", "127.1.0.1"):
            assert request_page(address, "User-Agent: x", "host:  " + good).startswith("HTTP/1.0 200 OK"), good
        assert request_page(address).startswith("HTTP/1.0 200 OK")
        for bad in ("evil.example", "evil.example:7400", "127.1.0.1.evil.example", "localhost.evil.example", "", "[::1"):
            page = request_page(address, "Host: " + bad, "Accept: */*")
            assert page.startswith("HTTP/1.0 403") and "alpha" not in page, (bad, page)


def case_the_status_page_is_not_built_for_each_request():
    with Lab() as lab:
        lab.start().up()
        address, many = lab.gateways["alpha"], 200
        with contextlib.ExitStack() as stack:
            sockets = [stack.enter_context(socket.create_connection(address)) for _ in range(many)]
            for sock in sockets:
                sock.sendall(b"GET /json HTTP/1.0\r\n\r\n")
            pages = [b"".join(iter(lambda: sock.recv(65536), b"")) for sock in sockets]
        assert all(page.startswith(b"HTTP/1.0 200 OK") for page in pages)
        assert len(set(pages)) < many, "each page was built anew"


def case_services_of_other_sites_are_out_of_reach():
    """By default, processes of a site can reach only processes with high ports in the other sites."""
    with Lab() as lab:
        lab.start().up()
        service, process = None, Server(echo)
        while service is None:  # until a free port is found
            with contextlib.suppress(OSError):
                service = Server(echo, port=random.randrange(2049, 32768))
        with lab.connect(service.address) as sock:
            with contextlib.suppress(ConnectionResetError, BrokenPipeError):
                sock.sendall(b"x")
                assert sock.recv(1) == b"", "a service was reached"
        with lab.connect(process.address) as sock:
            sock.sendall(b"x")
            assert read_exactly(sock, 1) == b"x"
        assert lab.counter("alpha", "out_of_reach") == 1
        lab.quiet()


def main():
    global LARGE
    cases = {name[5:]: function for name, function in globals().items() if name.startswith("case_")}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="these cases")
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--list", action="store_true")
    arguments = parser.parse_args()
    LARGE = arguments.large
    if arguments.list:
        print("\n".join(cases))
        return 0
    wanted = arguments.only.split(",") if arguments.only else list(cases)
    failed = 0
    for name in wanted:
        start = time.monotonic()
        try:
            cases[name]()
            print(f"ok   {name} ({time.monotonic() - start:.1f} s)", flush=True)
        except Exception as error:
            traceback.print_exc()
            print(f"FAIL {name}: {type(error).__name__}: {error}", flush=True)
            failed += 1
    print(f"{len(wanted) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
