#!/usr/bin/env python3
"""Runs the stacks of mpi_host.sh in turns and leaves what was measured as JSON.

Algorithm: for each number of ranks every stack gets one job for each way to launch it.  All jobs stay alive, asleep, and are woken
one at a time: for each cell, for each round, every job measures once, the first to go being another one each round.  So whatever
else the machine does hits all stacks alike, and nobody pays for launching.  A turn's result is its median; a job's is the median of
its turns; a stack's is that of the best of its jobs, which share the stack's time.  A peer's job that is ten times behind after two
turns, or a hundred times after one, gets no more of them in that cell: who spins where there are more ranks than cores would take
most of the time.

Who owns what: a Job owns its processes, its pipes and its folder; the driver ends every job it started, by its own process.
"""
import argparse
import collections
import json
import os
import queue
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from host_table import judge

# Debian's mpirun for each MPI.  --leave-session-attached: sched_yield() does not yield to another session's processes.
OPENMPI = ["mpirun.openmpi", "--allow-run-as-root", "--leave-session-attached", "--oversubscribe"]
CHANNELS = ["--mca", "pml", "ob1", "--mca", "btl", "self,vader"]
MPICH = ["mpirun.mpich"]
PEERS = {
    "vader": ["--mca", "coll", "^mcastcoll,han,sm"],
    "han": ["--mca", "coll", "^mcastcoll,sm", "--mca", "coll_han_priority", "100"],
    "sm": ["--mca", "coll", "^mcastcoll,han", "--mca", "coll_sm_priority", "100"],
}
START_LIMIT_S = 90
LEAST_TURN_S = 0.1
LOST = {1: 100, 2: 10}  # turns: how many times behind
LEAST_TURNS = 2


def in_bytes(size):
    return int(size.rstrip("KM")) << {"K": 10, "M": 20}.get(size[-1], 0)


def ways(stack, ranks, cores):
    """How a stack is launched, by name: with a core for each rank the best of several counts."""
    if stack == "mpich":
        return {"unbound": ["-bind-to", "none"], **({"bound": ["-bind-to", "core"]} if ranks <= cores else {})}
    yields = {"yielding": "1", **({"spinning": "0"} if ranks <= cores else {})}
    binds = {"unbound": ["--bind-to", "none"], **({"bound": ["--bind-to", "core", "--map-by", "core"]} if ranks <= cores else {})}
    return {f"{b}, {y}": binds[b] + ["--mca", "mpi_yield_when_idle", yields[y]] for b in binds for y in yields}


def without(options, chosen):
    """MCA parameters that have not been chosen already: mpirun refuses those that are named twice."""
    names = {chosen[i + 1] for i in range(len(chosen) - 2) if chosen[i] == "--mca"}
    triples = [options[i:i + 3] for i in range(0, len(options), 3)]
    return [word for triple in triples if triple[1] not in names for word in triple]


def is_setting(word):
    return "=" in word and not word.startswith("-") and word.split("=")[0].replace("_", "").isalnum()


class Job:
    """One stack, launched in one way, asleep between its turns."""

    def __init__(self, stack, way, options, ranks, args):
        self.stack, self.way, self.error, self.turns = stack, way, None, {}
        self.folder = tempfile.mkdtemp(prefix="mcc-host-")
        self.pipes = []
        for rank in range(ranks):
            os.mkfifo(f"{self.folder}/{rank}")
            # Also open for reading, so that nobody waits in open(); when this process ends the ranks see the end.
            self.pipes.append(os.open(f"{self.folder}/{rank}", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC))
        env = dict(os.environ)
        if stack == "mpich":
            command = MPICH + options + ["-np", str(ranks), args.mpich_program]
        else:
            words = args.ours.split() if stack == "ours" else []
            settings = [word for word in words if is_setting(word)]
            env.update(word.split("=", 1) for word in settings)
            own = ["-x", "FI_PROVIDER_PATH", "--mca", "coll_mcastcoll_verbose", "1"] if stack == "ours" else PEERS[stack]
            for word in settings:
                own += ["-x", word.split("=")[0]]
            own += [word for word in words if word not in settings]
            command = OPENMPI + without(CHANNELS, own) + options + own + ["-np", str(ranks), args.openmpi_program]
        self.log = open(f"{self.folder}/log", "w+")
        self.process = subprocess.Popen(command + ["--serve", self.folder], env=env, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=self.log, text=True)
        self.lines = queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()
        self.answer(START_LIMIT_S, "did not start")

    def name(self):
        return f"{self.stack} ({self.way})"

    def read(self):
        for line in self.process.stdout:
            if line.startswith("{"):
                self.lines.put(line)
        self.lines.put(None)

    def answer(self, limit_s, what):
        try:
            line = self.lines.get(timeout=limit_s)
            if line is not None:
                return json.loads(line)
            self.error = f"{what}: it ended"
        except queue.Empty:
            self.error = f"{what}: nothing for {limit_s:.0f} s"
        except ValueError:
            self.error = f"{what}: no JSON"
        return None

    def turn(self, operation, size, seconds):
        for pipe in self.pipes:
            os.write(pipe, f"{operation} {size} {seconds:g}\n".encode())
        result = self.answer(60 + 10 * seconds, f"{operation} of {size} B")
        if result is None:
            return
        if result["bad"]:
            self.error = f"{operation} of {size} B: {result['bad']} results were wrong"
        self.turns.setdefault((operation, size), []).append(result)

    def median_us(self, cell):
        turns = self.turns.get(cell)
        return statistics.median(turn["median_us"] for turn in turns) if turns else float("inf")

    def said(self):
        self.log.seek(0)
        return self.log.read()

    def close(self):
        for pipe in self.pipes:
            os.close(pipe)
        try:
            if not self.error:
                self.answer(60, "did not say that it ends")
            code = self.process.wait(timeout=1 if self.error else 60)
            # Open MPI's launcher takes a rank for lost that it was too busy to hear the end of; a rank that crashes is another matter.
            if code >= 128 or code < 0:
                self.error = self.error or f"exit code {code}"
            elif code != 0 and not self.error:
                print(f"     {self.name()}: exit code {code}, after all results were there", flush=True)
        except subprocess.TimeoutExpired:
            self.error = self.error or "did not end"
            self.process.terminate()  # the launchers end their ranks
            try:
                self.process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                self.process.kill()
        if self.error:
            print(f"FAIL {self.name()}: {self.error}", *self.said().splitlines()[-30:], sep="\n     ", flush=True)
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def best(jobs, cell):
    """The job whose median over the rounds is the least, as the stack's row; None where all failed."""
    rows = []
    for job in (job for job in jobs if not job.error and cell in job.turns):
        rows.append({"median_us": job.median_us(cell), "way": job.way,
                     "rounds_us": [turn["median_us"] for turn in job.turns[cell]],
                     "p10_us": statistics.median(turn["p10_us"] for turn in job.turns[cell]),
                     "p90_us": statistics.median(turn["p90_us"] for turn in job.turns[cell]),
                     "samples": sum(turn["samples"] for turn in job.turns[cell])})
    rows.sort(key=lambda row: row["median_us"])
    return {**rows[0], "other_ways_us": {row["way"]: row["median_us"] for row in rows[1:]}} if rows else None


class Driver:
    def __init__(self, args):
        self.args, self.start, self.failed, self.notes = args, time.monotonic(), 0, []
        self.cores = len(os.sched_getaffinity(0))
        self.cells_left = len(args.cells) * len(args.ranks.split(","))

    def say(self, text):
        print(f"[{time.monotonic() - self.start:4.0f} s] {text}", flush=True)

    def measure(self, jobs, operation, size):
        """All turns of one cell; on a machine too busy for that only as many as fit into its share of the time left, but two."""
        cell, shares, begin = (operation, size), collections.Counter(job.stack for job in jobs), time.monotonic()
        share = (self.start + self.args.limit - begin) / self.cells_left
        self.cells_left -= 1
        for turn in range(self.args.rounds):
            if turn >= (LEAST_TURNS if share > 0 else 1) and (time.monotonic() - begin) * (turn + 1) / turn > share:
                break
            first = turn % len(jobs)
            least = min(job.median_us(cell) for job in jobs)
            for job in jobs[first:] + jobs[:first]:
                if job.stack != "ours" and any(turn >= t and job.median_us(cell) > f * least for t, f in LOST.items()):
                    continue
                if not job.error:
                    job.turn(operation, size, max(LEAST_TURN_S, self.args.seconds / shares[job.stack]))

    def ranks_row(self, ranks):
        """All cells at one number of ranks."""
        jobs = []
        try:
            for stack in self.args.stacks.split(","):
                for way, options in ways(stack, ranks, self.cores).items():
                    jobs.append(Job(stack, way, options, ranks, self.args))
            self.say(f"{ranks} ranks: {len(jobs)} jobs are up")
            for operation, size in self.args.cells:
                self.measure(jobs, operation, size)
                rows = {stack: best([j for j in jobs if j.stack == stack], (operation, size))
                        for stack in self.args.stacks.split(",")}
                self.say(f"{ranks} ranks, {operation}{f' {size} B' if size else ''}: "
                         + ", ".join(f"{s} {r['median_us']:.1f}" if r else f"{s} -" for s, r in rows.items()))
                cell = {"ranks": ranks, "operation": operation, "bytes": size, "stacks": rows}
                yield cell | judge(cell)
        finally:
            for job in jobs:
                self.notes += [line.partition("coll/mcastcoll")[2] for line in job.said().splitlines()
                               if job.stack == "ours" and "coll/mcastcoll" in line]
                job.close()
                self.failed += bool(job.error)

    def run(self):
        cells = []
        try:
            for ranks in self.args.ranks.split(","):
                cells += self.ranks_row(int(ranks))
        finally:
            self.write(cells)
        self.say(f"{len(cells)} cells, {self.failed} jobs failed")
        return 1 if self.failed else 0

    def write(self, cells):
        """Also what an interrupted run has."""
        notes = list(dict.fromkeys(note.lstrip(": ") for note in self.notes))
        for note in notes:
            print(f"     ours says: {note}")
        with open(self.args.out, "w") as file:
            json.dump({"host": {"cores": self.cores, "rounds": self.args.rounds, "seconds": self.args.seconds,
                                "load": os.getloadavg()[1], "ours": self.args.ours, "ours_says": notes,
                                "took_s": round(time.monotonic() - self.start)},
                       "stacks": self.args.stacks.split(","), "cells": cells}, file, indent=1)
            file.write("\n")


def parse_cell(text):
    operation, _, size = text.partition(":")
    return operation, in_bytes(size) if size else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("ranks", "cells", "stacks", "ours", "openmpi-program", "mpich-program", "out"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--rounds", required=True, type=int)
    parser.add_argument("--seconds", required=True, type=float)
    parser.add_argument("--limit", required=True, type=float)
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(130))  # so that the jobs are ended
    args.cells = [parse_cell(cell) for cell in args.cells.split(",")]
    if os.path.exists(args.out):
        os.remove(args.out)
    return Driver(args).run()


if __name__ == "__main__":
    sys.exit(main())
