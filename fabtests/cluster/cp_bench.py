#!/usr/bin/env python3
"""One file to the disks of N hosts: mcastcoll-cp compared with udpcast, uftp, and a TCP stream for each host, in turns.

Needs the virtual cluster (util/cluster) and root.  h0 has the file; the other hosts write it to folders in memory.  A
turn is timed from the start of the sender to the end of the last receiver; receivers of udpcast, uftp and TCP run
already, while the start of mcastcoll-cp's receivers is part of the time.  Every copy is compared with the file.
udpcast and uftp are the Debian packages of these names; missing programs are left out.

  mcastcoll-cp   --hosts with the cluster's agent, digests included
  udpcast        udp-sender and udp-receiver, full-duplex, no rate set
  uftp           one uftpd on each host; sends at 95 % of the link's rate, since it cannot find a rate by itself
  tcp            what a fan-out of scp would send, without encryption: sendfile() to all hosts at the same time
"""
import argparse
import contextlib
import filecmp
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LAB = os.path.join(TOP, "util", "cluster")
PORT = 4711
limit_s = 300

RECEIVE = """
import socket, sys
server = socket.create_server((sys.argv[1], int(sys.argv[2])))
print("ready", flush=True)
connection = server.accept()[0]
with open(sys.argv[3], "wb") as file:
    while data := connection.recv(1 << 20):
        file.write(data)
"""
SEND = """
import socket, sys, threading
def send(host):
    with socket.create_connection((host, int(sys.argv[2]))) as connection, open(sys.argv[1], "rb") as file:
        connection.sendfile(file)
threads = [threading.Thread(target=send, args=(host,)) for host in sys.argv[3:]]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""


class Cluster:
    def __init__(self, hosts, rate, loss, folder):
        self.folder, self.rate = folder, rate
        self.hosts = [f"h{i}" for i in range(1, hosts)]
        net = os.environ.get("NET", "10.77")
        self.addresses = [f"{net}.0.{i + 1}" for i in range(1, hosts)]
        self.environment = dict(os.environ, VC=f"mcb{os.getpid()}", VC_OWNER=str(os.getpid()), RATE=rate, GSO="off")
        self.call("up", str(hosts))
        if loss > 0:
            self.call("loss", str(loss), "random", "meta protocol ip")

    def call(self, *words):
        subprocess.run([os.path.join(LAB, words[0]), *words[1:]], env=self.environment, check=True, stdout=subprocess.DEVNULL)

    def start(self, host, *words, **more):
        more.setdefault("stdout", subprocess.DEVNULL)
        return subprocess.Popen([os.path.join(LAB, "on"), host, *words], env=self.environment, stdin=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL, start_new_session=True, **more)

    def place(self, host):
        return os.path.join(self.folder, host)

    def down(self):
        self.call("down")


def end(processes):
    for process in processes:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def finish(processes):
    """Whether all processes succeed."""
    limit = time.monotonic() + limit_s
    try:
        return all(process.wait(max(0.1, limit - time.monotonic())) == 0 for process in processes)
    except subprocess.TimeoutExpired:
        return False


def mcastcoll(cluster, source):
    began = time.monotonic()
    sender = cluster.start("h0", "mcastcoll-cp", "--quiet", "--hosts", ",".join(cluster.hosts), "--rsh", os.path.join(LAB, "rsh"), source,
                           cluster.folder + "/%h/")
    good = finish([sender])
    end([sender])
    return good, time.monotonic() - began


def udpcast(cluster, source):
    meet = ("--mcast-rdv-address", "239.7.7.7")  # the hosts have no broadcast address
    receivers = [cluster.start(host, "udp-receiver", "--nokbd", "--no-progress", "--interface", "eth0", *meet, "--file",
                               os.path.join(cluster.place(host), "file")) for host in cluster.hosts]
    time.sleep(1)
    began = time.monotonic()
    sender = cluster.start("h0", "udp-sender", "--nokbd", "--no-progress", "--full-duplex", "--interface", "eth0", *meet, "--min-receivers",
                           str(len(receivers)), "--max-wait", "20", "--file", source)
    good = finish([sender, *receivers])
    took = time.monotonic() - began
    end([sender, *receivers])
    return good, took


def uftp(cluster, source):
    daemons = [cluster.start(host, "uftpd", "-d", "-t", "-D", cluster.place(host), "-I", "eth0") for host in cluster.hosts]
    time.sleep(1)
    kbps = int(95 * int(cluster.rate[:-4]) * {"g": 10000, "m": 10}[cluster.rate[-4]])
    began = time.monotonic()
    sender = cluster.start("h0", "uftp", "-q", "-I", "eth0", "-R", str(kbps), "-H", ",".join(cluster.addresses), source)
    good = finish([sender])  # ends when each receiver has confirmed
    took = time.monotonic() - began
    end([sender, *daemons])
    return good, took


def tcp(cluster, source):
    receivers = [cluster.start(host, sys.executable, "-c", RECEIVE, address, str(PORT), os.path.join(cluster.place(host), "file"),
                               stdout=subprocess.PIPE) for host, address in zip(cluster.hosts, cluster.addresses)]
    for receiver in receivers:
        receiver.stdout.readline()
    began = time.monotonic()
    sender = cluster.start("h0", sys.executable, "-c", SEND, source, str(PORT), *cluster.addresses)
    good = finish([sender, *receivers])
    took = time.monotonic() - began
    end([sender, *receivers])
    return good, took


WAYS = {"mcastcoll-cp": (mcastcoll, "mcastcoll-cp"), "udpcast": (udpcast, "udp-sender"), "uftp": (uftp, "uftp"), "tcp": (tcp, sys.executable)}


def one_turn(way, cluster, source):
    for host in cluster.hosts:
        shutil.rmtree(cluster.place(host), ignore_errors=True)
        os.mkdir(cluster.place(host))
    good, took = WAYS[way][0](cluster, source)
    if not good:
        return None, "it failed"
    for host in cluster.hosts:
        copy = os.path.join(cluster.place(host), "file")
        if not os.path.exists(copy) or not filecmp.cmp(source, copy, shallow=False):
            return None, f"{host} has another file, or none"
    return took, ""


def measure(args, hosts, loss, folder):
    source = os.path.join(folder, "file")
    cluster = Cluster(hosts, args.rate, loss, folder)
    try:
        turns = {way: [] for way in args.ways}
        for round_ in range(args.rounds):
            order = args.ways[round_ % len(args.ways):] + args.ways[:round_ % len(args.ways)]
            for way in order:
                took, wrong = one_turn(way, cluster, source)
                turns[way].append(took)
                if wrong:
                    print(f"{way}, {hosts} hosts, {loss} % lost: {wrong}", file=sys.stderr, flush=True)
    finally:
        cluster.down()
    return turns


def row_of(args, hosts, loss, way, times):
    good = [t for t in times if t is not None]
    row = {"way": way, "hosts": hosts, "loss_percent": loss, "bytes": args.size, "rate": args.rate, "seconds": times, "failed": len(times) - len(good)}
    if good:
        row["median_s"] = statistics.median(good)
        row["median_MBps"] = args.size / row["median_s"] / 1e6
    return row


def size(text):
    shift = {"K": 10, "M": 20, "G": 30}.get(text[-1:], 0)
    digits = text[:-1] if shift else text
    if not digits.isdigit() or int(digits) == 0:
        raise argparse.ArgumentTypeError(f"'{text}': give bytes, with K, M or G")
    return int(digits) << shift


def rate(text):
    if not (text[:-4].isdigit() and int(text[:-4]) > 0 and text[-4:] in ("gbit", "mbit")):
        raise argparse.ArgumentTypeError(f"'{text}': give for example 1gbit or 200mbit")
    return text


def list_of(kind, low, high):
    def read(text):
        values = [kind(word) for word in text.split(",")]
        if not all(low <= value <= high for value in values):
            raise argparse.ArgumentTypeError(f"'{text}': give numbers from {low} to {high}")
        return values
    return read


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--hosts", type=list_of(int, 2, 64), default=[4], metavar="N,N", help="hosts, the sender among them (4)")
    p.add_argument("--losses", type=list_of(float, 0, 50), default=[0.0], metavar="PCT,PCT", help="of all IP packets, at each host that they reach (0)")
    p.add_argument("--size", type=size, default=64 << 20, metavar="BYTES", help="of the file (64M)")
    p.add_argument("--rate", type=rate, default="1gbit", metavar="R", help="of each host's link (1gbit)")
    p.add_argument("--rounds", type=int, default=3, metavar="R", help="turns of each way (3)")
    p.add_argument("--ways", type=lambda text: text.split(","), default=list(WAYS), metavar="WAY,WAY", help="only these")
    p.add_argument("--limit", type=float, default=300, metavar="S", help="a turn that takes longer has failed (300)")
    p.add_argument("--json", metavar="FILE", help="write all times there")
    args = p.parse_args()
    for way in args.ways:
        if way not in WAYS:
            p.error(f"--ways: '{way}' is none of {', '.join(WAYS)}")
    return args


@contextlib.contextmanager
def in_memory(folder):
    """Not in /dev/shm, because each host of the cluster has its own."""
    # The default is half of the memory.
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=90%", "cp_bench", folder], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", folder], check=False)


def main():
    global limit_s
    args = arguments()
    limit_s = args.limit
    if os.geteuid() != 0:
        sys.exit("cp_bench.py: the cluster needs root")
    for name in [n for n in os.environ if n.startswith("FI_")]:
        del os.environ[name]
    build = os.environ.get("MCASTCOLL_BUILD", os.path.join(TOP, "build"))
    said = subprocess.run(["bash", "-c", '. "$1/env" && env -0', "bash", build], stdout=subprocess.PIPE, check=True).stdout
    os.environ.update(dict(one.split("=", 1) for one in said.decode().split("\0") if "=" in one))
    for way in [w for w in args.ways if shutil.which(WAYS[w][1]) is None]:
        print(f"{way}: {WAYS[way][1]} is not installed: left out", file=sys.stderr)
        args.ways.remove(way)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    rows = []
    print(f"{'hosts':>5} {'lost':>6} {'way':<14} {'median s':>9} {'MB/s':>8}  failed")
    with tempfile.TemporaryDirectory(prefix="cp_bench.") as folder, in_memory(folder):
        with open(os.path.join(folder, "file"), "wb") as file:
            left = args.size
            while left > 0:
                left -= file.write(os.urandom(min(left, 1 << 20)))
        for hosts in args.hosts:
            for loss in args.losses:
                for way, times in measure(args, hosts, loss, folder).items():
                    row = row_of(args, hosts, loss, way, times)
                    rows.append(row)
                    print(f"{hosts:>5} {loss:>5g}% {way:<14} {row.get('median_s', float('nan')):>9.2f} {row.get('median_MBps', float('nan')):>8.1f}"
                          f"  {row['failed'] or ''}", flush=True)
    if args.json:
        with open(args.json, "w") as file:
            json.dump({"rows": rows}, file, indent=1)
    sys.exit(0 if all("median_s" in row for row in rows) else 1)


if __name__ == "__main__":
    main()
