"""Measures stacks in turns: the common part of mcastcoll-perf and mcastcoll-tune.

Algorithm: at each place (number of hosts and ranks) every stack has one job. All jobs stay alive, asleep, and are woken one
at a time: for each cell (operation and size), in each round, every stack measures once, beginning with a different stack
each round. So other load of the machine affects all stacks alike, and launch times do not count. The figure of a repetition is
its median; a stack's figure is the median of its repetitions; a ratio is the median of the rounds' ratios, each between adjacent
repetitions. A stack that is ten times slower after two repetitions, or a hundred times after one, gets no more repetitions in that cell. A
stack that hangs, crashes or returns wrong data is reported and launched again for the next cell. If the first stack would
fail --fail-above, there are up to three times the rounds: a ratio from a few repetitions on a busy machine is unreliable. The
floor (perf_floor.c) has a ratio, too, but no stack counts as slow against the floor, and --fail-above ignores it.

On the cluster, the switch's ports count the bytes sent by each host during a repetition, divided by the operations of the repetition;
these include the barriers between operations.

Ownership: a Job owns its processes, its pipes and its folder, and ends all of them; the Bench ends every job it started;
the Lab takes its cluster down.
"""
import json
import os
import queue
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from perf_stacks import LAB, StackError, cores, launch_line

LOST = {1: 100, 2: 10}  # repetitions: factor of slowness
MIN_REPETITIONS = 2
MAX_LAUNCHES = 3
MAX_AGAIN = 3
START_LIMIT_S = 180
END_LIMIT_S = 60
SETTLE_S = 10
LOG_LINES = 12
FIGURES = ("min", "p10", "median", "p90", "p99")


class Lab:
    """Hosts made of network namespaces (util/cluster), while this object is entered."""

    def __init__(self, hosts, loss):
        self.hosts, self.loss = hosts, loss

    def __enter__(self):
        if not self.hosts:
            return self
        if not os.path.exists(os.path.join(LAB, "up")):
            raise StackError("--hosts needs the cluster lab of the source tree (util/cluster)")
        os.environ.update(VC=f"mcp{os.getpid()}", VC_OWNER=str(os.getpid()))
        if self.loss:
            os.environ.setdefault("GSO", "off")  # so that the filters drop single datagrams
        self.call("down", "--stale")
        self.call("up", str(self.hosts))
        if self.loss:
            self.call("loss", f"{self.loss:g}")
        return self

    def __exit__(self, *_):
        if self.hosts:
            subprocess.run([os.path.join(LAB, "down")], stdout=subprocess.DEVNULL, timeout=120, check=False)

    def sent_bytes(self):
        """Bytes sent by each host so far, as counted by its port of the switch; empty without a cluster."""
        if not self.hosts:
            return []
        done = subprocess.run(["ip", "-n", f"{os.environ['VC']}-sw0", "-s", "-j", "link"], capture_output=True, text=True, timeout=60)
        ports = {port["ifname"]: port["stats64"]["rx"]["bytes"] for port in json.loads(done.stdout or "[]") if "stats64" in port}
        return [ports.get(f"h{i}", 0) for i in range(self.hosts)]

    @staticmethod
    def call(tool, *words):
        done = subprocess.run([os.path.join(LAB, tool), *words], capture_output=True, text=True, timeout=180)
        if done.returncode != 0:
            raise StackError(f"util/cluster/{tool} {' '.join(words)}: {done.stderr.strip() or done.stdout.strip()}")


class Job:
    """One stack's job: alive from its launch to the end of a place's measurements, asleep except for its turns. The ranks
    sleep in read(), where no MPI can spin; a repetition is a line in each rank's pipe, and rank 0 answers with a line of JSON."""

    def __init__(self, stack, place, line, env):
        self.stack, self.place, self.error, self.stuck = stack, place, None, False
        self.folder = tempfile.mkdtemp(prefix="mcc-perf-")
        self.pipes = []
        for rank in range(place.ranks):
            os.mkfifo(f"{self.folder}/{rank}")
            # Also open for reading, so that open() does not block; when this process ends, the ranks read the
            # end.
            self.pipes.append(os.open(f"{self.folder}/{rank}", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC))
        with open(f"{self.folder}/board", "wb") as board:  # memory shared by the ranks: perf_mpi.c
            board.write(bytes(4096))
        self.log = open(f"{self.folder}/log", "w+")
        self.process = subprocess.Popen(line + ["--serve", self.folder], env=env, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=self.log, text=True)
        self.lines = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()
        if self._answer(START_LIMIT_S, "did not start") is None:
            self.close()

    def _read(self):
        for line in self.process.stdout:
            if line.startswith("{"):
                self.lines.put(line)
            elif not line.startswith("ok "):
                self.log.write(line)
        self.lines.put(None)

    def _answer(self, limit_s, what):
        try:
            line = self.lines.get(timeout=limit_s)
            if line is not None:
                return json.loads(line)
            self.error = f"{what}: it ended"
        except queue.Empty:
            self.error = f"{what}: hung, nothing for {limit_s:.0f} s"
        except ValueError:
            self.error = f"{what}: no JSON"
        return None

    def repeat(self, operation, size, seconds, probes, limit_s):
        """Rank 0's answer, or None; then the job is unusable and has the reason."""
        words = f"{operation}:{size}:{seconds:g}" + (f":{probes}" if probes else "") + "\n"
        for pipe in self.pipes:
            os.write(pipe, words.encode())
        return self._answer(limit_s + 2 * seconds, f"{operation} of {size} B")

    def said(self):
        """The log: messages of the stack, including reasons of failures."""
        if self.log.closed:
            return self.last_words
        self.log.flush()
        with open(self.log.name, errors="replace") as file:
            return file.read()

    def tail(self):
        return [line for line in self.said().splitlines() if line.strip()][-LOG_LINES:]

    def close(self):
        if self.log.closed:
            return
        while self.pipes:  # a signal may interrupt this, and then it is called again
            os.close(self.pipes.pop())
        try:
            code = self.process.wait(timeout=1 if self.error else END_LIMIT_S)
            # A launcher may report a rank as lost if it was too busy to notice the rank's normal end: that is ignored, but a
            # crash is reported.
            if (code >= 128 or code < 0) and not self.error:
                self.error = f"ended with exit code {code}"
        except subprocess.TimeoutExpired:
            self.stuck = not self.error
            self.error = self.error or f"did not end within {END_LIMIT_S} s of its last result"
            self.process.terminate()  # the launchers end their ranks
            try:
                self.process.wait(timeout=SETTLE_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
        self.last_words = self.said()
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)


class Bench:
    def __init__(self, stacks, places, cells, *, rounds, seconds, timeout_s, limit_s=None, probes=0, metric="last",
                 enough=None, quiet=False):
        self.stacks, self.places, self.cells = stacks, places, cells
        self.rounds, self.seconds, self.timeout_s, self.limit_s = rounds, seconds, timeout_s, limit_s
        self.probes, self.metric, self.enough, self.quiet = probes, metric, enough, quiet
        self.start, self.rows, self.notes = time.monotonic(), [], []
        self.cells_left = self.cells_all = len(cells) * len(places)
        self.jobs, self.launches, self.place, self.lab = {}, {}, None, None

    def say(self, text):
        if not self.quiet:
            print(f"[{time.monotonic() - self.start:4.0f} s] {text}", file=sys.stderr, flush=True)

    def note(self, text):
        if text not in self.notes:
            self.notes.append(text)
            self.say(text)

    def launch(self, stack):
        """The stack's job, alive; None if it cannot be launched."""
        job = self.jobs.get(stack.name)
        if job and not job.error:
            return job
        if self.launches.get(stack.name, 0) == MAX_LAUNCHES:
            return None
        self.launches[stack.name] = self.launches.get(stack.name, 0) + 1
        try:
            job = Job(stack, self.place, *launch_line(stack, self.place, self.timeout_s))
        except (StackError, OSError) as problem:
            self.launches[stack.name] = MAX_LAUNCHES
            self.note(f"{stack.name} cannot be launched: {problem}")
            return None
        self.jobs[stack.name] = job
        if job.error:
            self.launches[stack.name] = MAX_LAUNCHES  # it would not start the next time either
            self.failed(job)
            return None
        return job

    def failed(self, job):
        job.close()
        self.note(f"FAIL {job.stack.name}, {self.place}: {job.error}")
        for line in job.tail():
            self.say(f"     {line}")

    def repeat(self, stack, cell, repetitions):
        job = self.launch(stack)
        if not job:
            return "not launched"
        before = self.lab.sent_bytes()
        result = job.repeat(*cell, self.seconds, self.probes if cell[0].startswith("i") else 0, self.timeout_s)
        if result is None:
            self.failed(job)
            return job.error
        if "unavailable" in result:
            return result["unavailable"]
        result["sent_bytes"] = [(b - a) / max(result["operations"], 1) for a, b in zip(before, self.lab.sent_bytes())]
        repetitions.append(result)
        return f"{result['bad']} results were wrong" if result["bad"] else None

    def median(self, repetitions):
        return statistics.median(t[f"{self.metric}_us"]["median"] for t in repetitions) if repetitions else float("inf")

    def behind(self, repetitions, best):
        return any(len(repetitions) >= t and self.median(repetitions) > factor * best for t, factor in LOST.items())

    def seems_slow(self, repetitions):
        """Whether the first stack seems slower than allowed."""
        first = repetitions[self.stacks[0].name]
        return self.enough and any(self.least_ratio(first, repetitions[s.name]) > self.enough for s in self.rivals())

    def rivals(self):
        return [s for s in self.stacks[1:] if not s.is_floor()]

    @staticmethod
    def ratio(first, repetitions, metric):
        """From adjacent repetitions; 0 if there are none."""
        pairs = [(a[f"{metric}_us"]["median"], b[f"{metric}_us"]["median"]) for a, b in zip(first, repetitions)]
        return statistics.median(a / max(b, 1e-3) for a, b in pairs) if pairs else 0

    def least_ratio(self, first, repetitions):
        """By the smaller of two ratios: `last` excludes work before the last rank's entry, `max` includes the whole wait for
        that rank."""
        return min(self.ratio(first, repetitions, metric) for metric in ("last", "max"))

    def measure(self, cell):
        """All repetitions of one cell; if the machine is too slow, only as many as fit into the cell's share of the remaining time,
        but at least two."""
        begin, repetitions = time.monotonic(), {s.name: [] for s in self.stacks}
        share = (self.start + self.limit_s - begin) / self.cells_left if self.limit_s else None
        errors = {}
        for number in range(self.rounds * MAX_AGAIN):
            spent = time.monotonic() - begin
            if number >= self.rounds and not self.seems_slow(repetitions):
                break
            if share is not None and number >= (MIN_REPETITIONS if share > 0 else 1) and spent * (number + 1) / number > share:
                break
            first, best = number % len(self.stacks), min((self.median(repetitions[s.name]) for s in self.stacks if not s.is_floor()), default=0)
            for stack in self.stacks[first:] + self.stacks[:first]:
                if stack.name in errors or (stack is not self.stacks[0] and self.behind(repetitions[stack.name], best)):
                    continue
                error = self.repeat(stack, cell, repetitions[stack.name])
                if error:
                    errors[stack.name] = error
        self.cells_left -= 1
        return [self.row(cell, stack, repetitions, errors.get(stack.name)) for stack in self.stacks]

    def row(self, cell, stack, repetitions, error):
        own, reference = repetitions[stack.name], repetitions[self.stacks[0].name]
        row = {"operation": cell[0], "bytes": cell[1], "hosts": self.place.hosts, "ranks": self.place.ranks,
               "stack": stack.name, "error": error}
        if not own:
            return row
        for metric in ("last", "max"):
            for figure in FIGURES:
                row[f"{metric}_{figure}_us"] = round(statistics.median(t[f"{metric}_us"][figure] for t in own), 3)
        row["median_us"], row["p99_us"] = row[f"{self.metric}_median_us"], row[f"{self.metric}_p99_us"]
        row["rounds_us"] = [t[f"{self.metric}_us"]["median"] for t in own]
        row["samples"], row["bad"] = sum(t["samples"] for t in own), sum(t["bad"] for t in own)
        if "lost" in own[0]:
            row["lost"], row["lost_datagrams"] = sum(t["lost"] for t in own), sum(t["lost_datagrams"] for t in own)
        if "overlap_percent" in own[0]:
            row["overlap_percent"] = round(statistics.median(t["overlap_percent"] for t in own), 1)
        if own[0]["sent_bytes"]:
            sent = [statistics.median(t["sent_bytes"][host] for t in own) for host in range(self.place.hosts)]
            row["sent_bytes"], row["sent_most_bytes"] = round(statistics.mean(sent)), round(max(sent))
        if stack is not self.stacks[0] and reference:
            row["ratio"] = round(self.ratio(reference, own, self.metric), 3)
            if not stack.is_floor():
                row["least_ratio"] = round(self.least_ratio(reference, own), 3)
        return row

    def progress(self, cell, rows):
        left = (time.monotonic() - self.start) / (self.cells_all - self.cells_left) * self.cells_left
        figures = ", ".join(f"{r['stack']} {r['median_us']:.1f}" if "median_us" in r else f"{r['stack']} -" for r in rows)
        size = f" {cell[1]} B" if cell[1] else ""
        self.say(f"{self.place}, {cell[0]}{size}: {figures} us ({self.cells_all - self.cells_left} of {self.cells_all}, "
                 f"about {left:.0f} s left)")

    def at_place(self, place):
        self.place, self.jobs, self.launches = place, {}, {}
        try:
            with Lab(place.hosts, place.loss) as self.lab:
                try:
                    for stack in self.stacks:
                        self.launch(stack)
                    per_core = place.ranks / cores()
                    self.say(f"{place}, {per_core:g} per core: {sum(not j.error for j in self.jobs.values())} stacks are up")
                    for cell in self.cells:
                        rows = self.measure(cell)
                        self.rows += rows
                        self.progress(cell, rows)
                finally:
                    self.close()
        except StackError as problem:
            self.note(f"FAIL {place}: {problem}")

    def close(self):
        for name, job in self.jobs.items():
            had_error = job.error
            job.close()
            if job.error and not had_error:
                # Another stack that hangs at its end, after all its results, is only noted.
                ours = name == self.stacks[0].name or not job.stuck
                self.note(f"{'FAIL ' if ours else ''}{name}, {self.place}: {job.error}")
            for line in job.said().splitlines():
                if "coll/mcastcoll" in line and len(self.notes) < 100:
                    words = line.partition("coll/mcastcoll")[2].lstrip(": ")
                    self.note(f"{name} says: {words}")

    def run(self):
        for place in self.places:
            self.at_place(place)
        return self.rows
