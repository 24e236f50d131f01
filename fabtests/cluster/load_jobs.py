#!/usr/bin/env python3
"""The jobs of load.sh, which starts the cluster: draws each job from its seed, runs it, and prints the outcome."""
import argparse
import contextlib
import ctypes
import os
import random
import re
import signal
import subprocess
import threading
import time

PR_SET_PDEATHSIG = 1


def die_with_parent():
    """Runs in a child: the child ends with this script, however the script ends."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def begin(dice):
    """Seconds from the start of the ranks to a fault: during their first joins, or while they work."""
    return dice.uniform(0.5, 6) if dice.random() < 0.5 else dice.uniform(8, 20)


class Draw:
    """The job that a seed determines."""

    def __init__(self, seed, options):
        dice = random.Random(seed)
        self.seed = seed
        self.hosts = 1 if dice.random() < 0.25 else dice.randint(3, options.hosts)
        self.ranks = dice.choice([2, 4, 8]) if self.hosts == 1 else self.hosts * dice.choice([1, 1, 2])
        self.pml = dice.choice(["ob1", "ob1", "cm"])
        self.loss = 0 if self.hosts == 1 else dice.choice([0, 0, 1, 5])
        self.spinners = dice.choice([0, 0, 2, 4, 8, 16])
        self.forks = dice.choice([0, 0, 0, 1, 2])
        self.stops = []  # (at, rank, seconds)
        if options.stop > 0 and dice.random() < 0.4:
            for _ in range(dice.randint(1, 3)):
                self.stops.append((begin(dice), dice.randrange(self.ranks), dice.uniform(1, options.stop)))
        self.silences = []  # (at, host, way, seconds)
        if options.silence > 0 and self.hosts > 1 and dice.random() < 0.4:
            for _ in range(dice.choice([1, 1, 2])):
                self.silences.append((begin(dice), dice.randrange(self.hosts), dice.choice(["in", "out", "both"]),
                                      dice.uniform(1, options.silence)))
        ends = [at + seconds for at, *_, seconds in self.stops + self.silences]
        self.seconds = int(max(ends, default=0)) + dice.randint(2, 4)

    def limit(self):
        """No job counts as hung before this time: TCP waits again as long as a silence lasted, and the load slows
        everything down."""
        return 120 + 4 * sum(seconds for *_, seconds in self.stops + self.silences) + 10 * self.seconds

    def __str__(self):
        parts = [f"{self.ranks} ranks on {'one host' if self.hosts == 1 else f'{self.hosts} hosts'}, {self.pml}"]
        if self.loss:
            parts.append(f"{self.loss} % lost")
        if self.spinners:
            parts.append(f"{self.spinners} spin")
        if self.forks:
            parts.append(f"{self.forks} fork")
        parts += [f"rank {rank} stops at {at:.1f} for {seconds:.1f} s" for at, rank, seconds in self.stops]
        parts += [f"h{host} silent ({way}) at {at:.1f} for {seconds:.1f} s" for at, host, way, seconds in self.silences]
        return ", ".join(parts)


def processes_of(program):
    """Numbers of the processes whose first argument is this path."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as file:
            if file.read().split(b"\0")[0] == program.encode():
                yield int(pid)


class Disturbance:
    """Load, stops and silences of one run, which end with the run."""

    def __init__(self, draw, program):
        self.draw, self.program = draw, program
        self.over = threading.Event()
        self.children, self.threads, self.errors = [], [], []

    def __enter__(self):
        spin, fork = "while :; do :; done", "while :; do /bin/true; sleep 0.005; done"
        for code in [spin] * self.draw.spinners + [fork] * self.draw.forks:
            self.children.append(subprocess.Popen(["bash", "-c", code], start_new_session=True, preexec_fn=die_with_parent,
                                                  stdin=subprocess.DEVNULL))
        for at, rank, seconds in self.draw.stops:
            self.start(at, seconds, lambda rank=rank: self.signal_rank(rank, signal.SIGSTOP),
                       lambda rank=rank: self.signal_rank(rank, signal.SIGCONT))
        for i, (at, host, way, seconds) in enumerate(self.draw.silences):
            self.start(at, seconds, lambda i=i, host=host, way=way: silence(i, host, way),
                       lambda i=i, host=host, way=way: speak(i, host, way))
        return self

    def start(self, at, seconds, begin, end):
        def run():
            # A host that is silent before the launcher has reached it would only test the launcher.
            while not self.ranks_started():
                if self.over.wait(0.1):
                    return
            if self.over.wait(at):
                return
            try:
                begin()
                self.over.wait(seconds)
            except (OSError, subprocess.SubprocessError) as error:
                self.errors.append(error)
            finally:
                end()
        self.threads.append(threading.Thread(target=run))
        self.threads[-1].start()

    def ranks_started(self):
        return len(list(processes_of(self.program))) >= self.draw.ranks

    def signal_rank(self, rank, number):
        """Signals the process that runs this job's symbolic link with the rank in its environment."""
        for pid in processes_of(self.program):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/environ", "rb") as file:
                if f"OMPI_COMM_WORLD_RANK={rank}".encode() in file.read().split(b"\0"):
                    os.kill(pid, number)

    def __exit__(self, *_):
        self.over.set()
        for thread in self.threads:
            thread.join()
        for child in self.children:
            child.kill()
            child.wait()
        if self.errors:
            raise RuntimeError(f"no disturbance could be made: {self.errors}")


def ends_of(host, way):
    """Devices at which the packets of a direction arrive: at the host, or at the switch's port."""
    cluster = os.environ["VC"]
    return [(f"{cluster}-h{host}", "eth0")] * (way != "out") + [(f"{cluster}-sw0", f"h{host}")] * (way != "in")


def silence(number, host, way):
    for space, device in ends_of(host, way):
        rules = f"table netdev silent{number} {{\nchain in {{\ntype filter hook ingress device {device} priority -20; policy drop;\n}}\n}}\n"
        subprocess.run(["ip", "netns", "exec", space, "nft", "-f", "-"], input=rules.encode(), check=True)


def speak(number, host, way):
    for space, _ in ends_of(host, way):
        subprocess.run(["ip", "netns", "exec", space, "nft", "delete", "table", "netdev", f"silent{number}"], stderr=subprocess.DEVNULL)


class Runner:
    def __init__(self, options):
        self.options = options
        self.count = 0

    def command(self, draw, ours, program):
        args = [program, "--max", "16K", "--count", "1000000000", "--seed", str(draw.seed), "--seconds", str(draw.seconds)]
        mca = ["--mca", "pml", draw.pml] + (["--mca", "mtl", "ofi"] if draw.pml == "cm" else [])
        environment = dict(os.environ)
        if draw.hosts > 1:
            environment["STACK"] = "mcastcoll" if ours else "ofi" if draw.pml == "cm" else "tcp"
            hosts = ",".join(f"h{i}" for i in range(draw.hosts))
            return [self.options.lab + "/run", "-n", str(draw.ranks), "-H", hosts] + (mca if ours else []) + args, environment
        if ours and draw.pml == "cm":
            environment["FI_PROVIDER"] = "mcastcoll"
        mca += [] if ours else ["--mca", "coll", "^mcastcoll"]
        return ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1",
                "-n", str(draw.ranks)] + mca + args, environment

    def run(self, draw, ours):
        """Returns whether the job succeeded, a description, and the seconds."""
        self.count += 1
        name = f"{draw.seed}.{'ours' if ours else 'stock'}"
        program = f"{self.options.work}/job{os.getpid()}.{self.count}"
        os.symlink(f"{self.options.build}/fabtests/mpi/mpi_coll_check", program)
        command, environment = self.command(draw, ours, program)
        log = os.path.join(self.options.keep or self.options.work, name)
        begun = time.monotonic()
        with open(log, "wb") as out, Disturbance(draw, program):
            job = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
                                   preexec_fn=die_with_parent)
            try:
                code = job.wait(draw.limit())
            except subprocess.TimeoutExpired:
                code = None
            finally:
                job.kill()
                job.wait()
                self.end_ranks(program)
        took = time.monotonic() - begun
        with open(log, errors="replace") as file:
            text = file.read()
        checked = re.search(r"(\d+) checked, 0 bad$", text, re.M)
        if code == 0 and checked and int(checked[1]) > 0:
            return True, f"{checked[1]} rounds checked, {took:.0f} s", took
        lines = [line for line in text.splitlines() if re.search(r"mcastcoll|BAD|rror|signal|\d+ bad", line)]
        return False, f"{'no end' if code is None else f'code {code}'} after {took:.0f} s: {lines[0][:300] if lines else 'says nothing'}", took

    @staticmethod
    def end_ranks(program):
        for pid in processes_of(program):
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)

    def lose(self, percent):
        command = [self.options.lab + "/loss"] + ([str(percent)] if percent else ["off"])
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def main():
    parser = argparse.ArgumentParser()
    for name in ("lab", "build", "work", "keep"):
        parser.add_argument(f"--{name}")
    for name, value in (("jobs", 20), ("seed", 1), ("seconds", 0), ("hosts", 4), ("stop", 20), ("silence", 30)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--stock", action="store_true")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: exit(143))
    if options.keep:
        os.makedirs(options.keep, exist_ok=True)
    runner = Runner(options)
    begun = time.monotonic()
    passed = failed = skipped = 0
    for seed in range(options.seed, options.seed + options.jobs):
        if options.seconds and passed + failed and time.monotonic() - begun > options.seconds:
            break
        draw = Draw(seed, options)
        runner.lose(draw.loss)
        good, how, _ = runner.run(draw, True)
        stock = runner.run(draw, False) if options.stock or not good else None
        also = f"; stock: {stock[1]}" if stock else ""
        if good:
            passed += 1
            print(f"ok   seed {seed}: {draw}: {how}{also}", flush=True)
            continue
        again = f"fabtests/cluster/load.sh --jobs 1 --seed {seed} --hosts {options.hosts} --stop {options.stop} --silence {options.silence}"
        if stock[0]:
            failed += 1
        else:
            skipped += 1
        print(f"{'FAIL' if stock[0] else 'skip'} seed {seed}: {draw}: {how}{also}; again: {again}", flush=True)
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    exit(1 if failed else 0 if passed else 77)


if __name__ == "__main__":
    main()
