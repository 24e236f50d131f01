#!/usr/bin/env python3
"""Evaluates the counters of one case of mpi_levels.sh: a line "ok ..." or "FAIL ..." for each condition.

The folder holds two jobs, short/ and long/, with the provider's counters (stats.HOST.PID.json), those of the kernels
before and after (before.HOST, after.HOST: /proc/net/netstat and /proc/net/snmp), result.json and log.
"""
import argparse
import glob
import json
import re
import sys


def load(path):
    with open(path) as file:
        return json.load(file)


def kernel(path):
    """'IpExt.InMcastPkts': 7, ... from pairs of lines, names and numbers."""
    counters = {}
    with open(path) as file:
        lines = file.read().splitlines()
    for names, numbers in zip(lines[::2], lines[1::2]):
        group = names.split(":")[0]
        counters |= {f"{group}.{name}": int(number) for name, number in zip(names.split()[1:], numbers.split()[1:])}
    return counters


class Job:
    def __init__(self, folder):
        self.result = load(f"{folder}/result.json")
        self.provider = [load(path) for path in glob.glob(f"{folder}/stats.*.json")]
        self.kernel = {}
        for path in glob.glob(f"{folder}/after.*"):
            host = path.rsplit(".", 1)[1]
            before, after = kernel(f"{folder}/before.{host}"), kernel(path)
            self.kernel[host] = {name: n - before.get(name, 0) for name, n in after.items()}
        with open(f"{folder}/log", errors="replace") as file:
            self.fragment_bytes = {int(n) for n in re.findall(r"fragments of (\d+) bytes", file.read())}

    def total(self, name):
        return sum(report.get(name, 0) for report in self.provider)


def holds(good, text):
    print(f"{'ok  ' if good else 'FAIL'} {text}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--ranks", required=True, type=int, help="on each host")
    parser.add_argument("--root-host", required=True, type=int)
    parser.add_argument("--copies", required=True, choices=("host", "rank"))
    args = parser.parse_args()
    short, long = Job(f"{args.folder}/short"), Job(f"{args.folder}/long")
    if len(long.fragment_bytes) != 1:
        sys.exit(f"the log does not state one length of fragments: {sorted(long.fragment_bytes)}")
    if not long.provider:
        sys.exit("no process left its counters")
    broadcasts = long.result["count"] - short.result["count"]
    fragments = -(-long.result["bytes"] // long.fragment_bytes.pop())
    want = broadcasts * fragments
    holds(long.result["bad"] == 0 and short.result["bad"] == 0, f"{broadcasts} broadcasts of {fragments} fragments, all bytes right")

    def provider(name):
        return long.total(name) - short.total(name)

    # Elections multicast probes as well, whenever a member requests one.
    sent = provider("datagrams_sent") - provider("probes_sent")
    holds(sent == want, f"provider: {sent / broadcasts:g} datagrams sent a broadcast, {fragments} wanted")
    receivers = len(long.kernel) - 1 if args.copies == "host" else len(long.kernel) * args.ranks - 1
    got = provider("fragments_by_multicast") + provider("fragments_repaired")
    holds(got == want * receivers, f"provider: {got / want:g} members took each fragment from the network, {receivers} wanted; "
          f"{provider('fragments_repaired')} of {got} came by repair, {provider('duplicates')} twice")

    each = 1 if args.copies == "host" else args.ranks
    others = {host: {name: n - short.kernel[host].get(name, 0) for name, n in counters.items()} for host, counters in long.kernel.items()}
    root = others.pop(f"h{args.root_host}")
    carried = [counters["IpExt.InMcastPkts"] for counters in others.values()]
    # The packets may include probes of an election, hence the tolerance, which is less than a second copy of each
    # packet.
    holds(all(want <= n < want * 1.05 + 5 for n in carried),
          f"kernels: {' '.join(f'{n / broadcasts:g}' for n in carried)} packets came into the other hosts a broadcast, {fragments} wanted")
    handed = [counters["Udp.InDatagrams"] for counters in others.values()]
    holds(all(want * each * 0.95 - 5 < n < want * each * 1.05 + 5 for n in handed),
          f"kernels: {' '.join(f'{n / want:.3g}' for n in handed)} sockets of the other hosts were handed each datagram, {each} wanted")
    # The root's own kernel delivers copies in runs not yet split, so this check can only distinguish no copies from at
    # least one per broadcast. Repetitions at a slow start are included.
    own = root["Udp.InDatagrams"]
    if args.copies == "host":
        holds(own < 5 + broadcasts / 2, f"kernels: {own / broadcasts:g} datagrams or runs of them were handed to sockets of the root's host a broadcast, "
              "0 wanted")
    drops = sum(counters["Udp.RcvbufErrors"] for counters in [root, *others.values()])
    print(f"     {drops} datagrams found no room in a socket; elections held: {provider('elections')}")


if __name__ == "__main__":
    main()
