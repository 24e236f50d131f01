"""Two or more gateways on this machine's loopback, each with a network of its own (127.1.0.0/16, 127.2.0.0/16, ...), and
the actions of their sites' processes: connect with a preface, listen and strip the preface.  Between the sites there
may be a relay that is slow, breaks streams or goes silent."""

import contextlib
import ctypes
import hmac
import json
import os
import random
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time

LIBC = ctypes.CDLL(None)
GATEWAY = os.environ.get("MCC_GATEWAY", "util/gateway/mcastcoll-gateway")
WAIT_S = 60  # generous, because a busy machine must not fail the test
NAMES = ["alpha", "beta", "gamma", "delta"]


def wait_for(what, condition, seconds=WAIT_S):
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < end, f"never happened: {what}"
        time.sleep(0.02)


def endpoint(address, port):
    return struct.pack(">HH", 4, port) + socket.inet_aton(address) + bytes(12)


def preface(source, target, node=0, process=0):
    return b"MCCR" + struct.pack(">HH", 1, 0) + endpoint(*source) + endpoint(*target) + struct.pack(">II", node, process) + bytes(8)


def hello(session, origin, to, version=2):
    """The first message of a gateway on a stream, its hello."""
    words = struct.pack(">HHQQIIII", version, 0, session, 0, 0, 4, 65536, 0)
    return b"MCCT" + words + origin.encode().ljust(32, b"\0") + to.encode().ljust(32, b"\0")


def shared_key(key, connector, acceptor):
    """The pre-shared key that a key file's text gives two gateways, and its name: HMAC-SHA-256, once for each purpose."""
    identity = f"mcastcoll trunk 2: {connector} {acceptor}"
    sessions = hmac.digest(bytes(32), b"trunks\0" + key.strip().encode(), "sha256")
    return identity, hmac.digest(sessions, identity.encode() + b"\0", "sha256")


def read_exactly(sock, size):
    data = b""
    while len(data) < size:
        more = sock.recv(size - len(data))
        if not more:
            raise EOFError(f"{len(data)} of {size} bytes")
        data += more
    return data


def free_port(address):
    with socket.socket() as sock:
        sock.bind((address, 0))
        return sock.getsockname()[1]


class Relay:
    """Forwards TCP connections to a target, from the client's address; can cut connections, or stop forwarding while they
    stay open."""

    def __init__(self, address, target):
        self.target, self.pairs, self.silent, self.refusing = target, [], False, False
        self.listener = socket.create_server((address, 0), backlog=64)
        self.address = self.listener.getsockname()
        self.lock = threading.Lock()
        self.ending = False
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while not self.ending:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            if self.refusing:
                near.close()
                continue
            try:
                far = socket.create_connection(self.target, timeout=5, source_address=(near.getpeername()[0], 0))
            except OSError:
                near.close()
                continue
            far.settimeout(None)
            for sock in (near, far):
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self.lock:
                self.pairs.append((near, far))
            for one, other in ((near, far), (far, near)):
                threading.Thread(target=self._carry, args=(one, other), daemon=True).start()

    def _carry(self, source, target):
        buffer = bytearray(1 << 18)
        with contextlib.suppress(OSError):
            while size := source.recv_into(buffer):
                while self.silent:
                    time.sleep(0.01)
                target.sendall(memoryview(buffer)[:size])
        for sock in (source, target):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        with self.lock:
            self.pairs = [pair for pair in self.pairs if source not in pair]

    def cut(self, count=None):
        with self.lock:
            chosen = self.pairs if count is None else random.sample(self.pairs, min(count, len(self.pairs)))
            self.pairs = [pair for pair in self.pairs if pair not in chosen]
        for pair in chosen:
            for sock in pair:
                with contextlib.suppress(OSError):
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    sock.shutdown(socket.SHUT_RDWR)
                    sock.close()
        return len(chosen)

    def close(self):
        self.ending = True
        self.listener.close()
        self.cut()


def ends_with_us():
    """Runs in a new process: the process ends when the test ends, in whatever way."""
    PR_SET_PDEATHSIG = 1
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Lab:
    def __init__(self, sites=2, streams=4, sessions="", options=(), relay=False, key=None):
        self.folder = tempfile.TemporaryDirectory()
        self.options = list(options)
        self.keys = key
        self.processes = {}
        self.gateways = {}
        self.relays = {}
        text = ""
        for i in range(sites):
            host = f"127.{i + 1}.0.1"
            self.gateways[NAMES[i]] = (host, free_port(host))
            wan = ""
            if relay and i > 0:  # the site with the lesser name connects
                self.relays[NAMES[i]] = Relay("127.9.0.1", self.gateways[NAMES[i]])
                wan = "wan = %s:%d\n" % self.relays[NAMES[i]].address
            text += f"[site {NAMES[i]}]\nnetworks = 127.{i + 1}.0.0/16\ngateway = {host}:{self.gateways[NAMES[i]][1]}\n{wan}"
        text += f"[sessions]\nstreams = {streams}\n{sessions}"
        if key:
            text += "key = session.key\n"
            self.write_key("session.key", key)
        self.sites = self.write("sites.conf", text)

    def write(self, name, text):
        path = os.path.join(self.folder.name, name)
        with open(path, "w") as file:
            file.write(text)
        return path

    def write_key(self, name, key):
        path = self.write(name, key)
        os.chmod(path, 0o600)
        return path

    def start(self, *names, sites=None, options=()):
        for name in names or self.gateways:
            listen = "%s:%d" % self.gateways[name]
            command = [GATEWAY, "--sites", sites or self.sites, "--site", name, "--listen", listen, "--verbose", *self.options, *options]
            with open(self.log_of(name), "a") as log:
                self.processes[name] = subprocess.Popen(command, preexec_fn=ends_with_us, stderr=log)
        return self

    def log_of(self, name):
        return os.path.join(self.folder.name, name + ".log")

    def log(self, name):
        """The gateway's log so far."""
        with open(self.log_of(name)) as file:
            return file.read()

    def up(self, streams=None):
        for name in self.processes:
            wait_for(f"sessions of {name} are up", lambda: self.is_up(name, streams))
        return self

    def is_up(self, name, streams):
        status = self.status(name)
        return status and all(
            sum(s["up"] for s in t["streams"]) >= (streams or 1) for t in status["sessions"] if t["site"] in self.processes)

    def status(self, name):
        done = subprocess.run([GATEWAY, "--status", "%s:%d" % self.gateways[name], "--json"], capture_output=True, text=True)
        return json.loads(done.stdout) if done.returncode == 0 else None

    def page(self, name):
        """The status of a gateway that runs, or is just starting."""
        return wait_for(f"{name} says how it is", lambda: self.status(name))

    def session(self, name, index=0):
        return self.page(name)["sessions"][index]

    def counter(self, name, counter):
        return self.page(name)["counters"][counter]

    def quiet(self):
        """Checks that the gateways keep nothing once all processes have gone."""
        def nothing_left(name):
            status = self.page(name)
            return status["connections"] == 0 and all(t["channels"] == 0 and t["held_bytes"] == 0 for t in status["sessions"])
        for name, process in self.processes.items():
            if process.poll() is None:
                wait_for(f"{name} has nothing left", lambda: nothing_left(name))

    def memory_kib(self, name):
        """Returns 0 with a sanitizer, which keeps freed memory, so that the figure would be meaningless."""
        with open(f"/proc/{self.processes[name].pid}/maps") as file:
            if "libasan" in file.read():
                return 0
        with open(f"/proc/{self.processes[name].pid}/status") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("VmRSS"))

    def connect(self, target, source="127.1.0.5", via="alpha", node=7, process=99):
        sock = socket.create_connection(self.gateways[via], timeout=WAIT_S, source_address=(source, 0))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.sendall(preface(sock.getsockname(), target, node, process))
        return sock

    def stop(self, name, expect=0):
        process = self.processes.pop(name)
        process.terminate()
        code = process.wait(WAIT_S)
        assert expect is None or code == expect, f"{name} ends with {code}"

    def kill(self, name):
        process = self.processes.pop(name)
        process.kill()
        process.wait()

    def __enter__(self):
        return self

    def __exit__(self, failure, *_):
        for name in list(self.processes):
            self.kill(name)
        if failure is not None:
            for name in self.gateways:
                with contextlib.suppress(FileNotFoundError):
                    print(self.log(name), end="", flush=True)
        for relay in self.relays.values():
            relay.close()
        self.folder.cleanup()


class Server:
    """A process of a site that accepts: strips the preface and calls `serve` with each connection, in a thread of its
    own."""

    def __init__(self, serve, address="127.2.0.5", backlog=1024, port=0):
        self.listener = socket.create_server((address, port), backlog=backlog)
        self.address = self.listener.getsockname()
        self.serve, self.sources, self.failures = serve, [], []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._one, args=(sock,), daemon=True).start()

    def _one(self, sock):
        try:
            sock.settimeout(WAIT_S)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            words = read_exactly(sock, 64)
            self.sources.append(words)
            self.serve(sock)
        except Exception as error:  # reported when the test reads it
            self.failures.append(error)
        finally:
            sock.close()

    def close(self):
        self.listener.close()


def echo(sock):
    while data := sock.recv(65536):
        sock.sendall(data)
