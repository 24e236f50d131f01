#!/usr/bin/env python3
"""Runs the stacks of mpi_host.sh in turns and writes the measurements as JSON.

For each number of ranks every stack gets one mcastcoll-perf job for each way to launch it.  All jobs stay alive,
asleep, and are woken one at a time: for each cell, in each round, every job measures once, and each round starts with
a different job. So other load on the machine affects all stacks alike, and launch times do not count.  A repetition's result
is its median; a job's is the median of its repetitions; a stack's is that of the best of its jobs, which share the stack's
time.  A job of another stack ten times slower after two repetitions, or a hundred times after one, gets no further repetitions in
that cell: with more ranks than cores, jobs that spin would otherwise take most of the time.

The driver ends each job that it has started, by the job's own process.
"""
import argparse
import collections
import json
import os
import signal
import statistics
import sys
import time

from host_table import judge

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "util", "perf"))
import perf_bench  # noqa: E402
from perf_bench import MIN_REPETITIONS, LOST  # noqa: E402
from perf_stacks import OPENMPI, Place, compiled_for, is_setting  # noqa: E402

CHANNELS = ["--mca", "pml", "ob1", "--mca", "btl", "self,vader"]
PEERS = {
    "vader": ["--mca", "coll", "^mcastcoll,han,sm"],
    "han": ["--mca", "coll", "^mcastcoll,sm", "--mca", "coll_han_priority", "100"],
    "sm": ["--mca", "coll", "^mcastcoll,han", "--mca", "coll_sm_priority", "100"],
}
MIN_REPETITION_S = 0.1


def in_bytes(size):
    return int(size.rstrip("KM")) << {"K": 10, "M": 20}.get(size[-1], 0)


def ways(stack, ranks, cores):
    """Ways to launch a stack, by name: with a core for each rank, the best of several counts."""
    if stack == "mpich":
        return {"unbound": ["-bind-to", "none"], **({"bound": ["-bind-to", "core"]} if ranks <= cores else {})}
    yields = {"yielding": "1", **({"spinning": "0"} if ranks <= cores else {})}
    binds = {"unbound": ["--bind-to", "none"], **({"bound": ["--bind-to", "core", "--map-by", "core"]} if ranks <= cores else {})}
    return {f"{b}, {y}": binds[b] + ["--mca", "mpi_yield_when_idle", yields[y]] for b in binds for y in yields}


def without(options, chosen):
    """MCA parameters without a value so far: mpirun refuses duplicates."""
    names = {chosen[i + 1] for i in range(len(chosen) - 2) if chosen[i] == "--mca"}
    triples = [options[i:i + 3] for i in range(0, len(options), 3)]
    return [word for triple in triples if triple[1] not in names for word in triple]


class Job(perf_bench.Job):
    """One stack, launched in one way, asleep between its turns."""

    def __init__(self, stack, way, options, ranks, args):
        self.way, self.repetitions = way, {}
        env = dict(os.environ)
        if stack == "mpich":
            command = ["mpirun.mpich"] + options + ["-np", str(ranks), compiled_for("mpich")]
        else:
            words = args.ours.split() if stack == "ours" else []
            settings = [word for word in words if is_setting(word)]
            env.update(word.split("=", 1) for word in settings)
            own = ["-x", "FI_PROVIDER_PATH", "--mca", "coll_mcastcoll_verbose", "1"] if stack == "ours" else PEERS[stack]
            for word in settings:
                own += ["-x", word.split("=")[0]]
            own += [word for word in words if word not in settings]
            command = ["mpirun.openmpi"] + OPENMPI + without(CHANNELS, own) + options + own
            command += ["-np", str(ranks), compiled_for("openmpi")]
        super().__init__(stack, Place(ranks, 0), command, env)

    def measure(self, operation, size, seconds):
        result = self.repeat(operation, size, seconds, 0, 60 + 8 * seconds)
        if result is None:
            return
        if result["bad"]:
            self.error = f"{operation} of {size} B: {result['bad']} results were wrong"
        self.repetitions.setdefault((operation, size), []).append(result["last_us"] | {"samples": result["samples"]})

    def median_us(self, cell):
        repetitions = self.repetitions.get(cell)
        return statistics.median(repetition["median"] for repetition in repetitions) if repetitions else float("inf")

    def close(self):
        if self.log.closed:
            return
        super().close()
        if self.error:
            print(f"FAIL {self.stack} ({self.way}): {self.error}", *self.tail(), sep="\n     ", flush=True)


def best(jobs, cell):
    """The job with the smallest median over the rounds, as the stack's row; None if all failed."""
    rows = []
    for job in (job for job in jobs if not job.error and cell in job.repetitions):
        rows.append({"median_us": job.median_us(cell), "way": job.way,
                     "rounds_us": [repetition["median"] for repetition in job.repetitions[cell]],
                     "p10_us": statistics.median(repetition["p10"] for repetition in job.repetitions[cell]),
                     "p90_us": statistics.median(repetition["p90"] for repetition in job.repetitions[cell]),
                     "samples": sum(repetition["samples"] for repetition in job.repetitions[cell])})
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
        """The repetitions of one cell; on a busy machine only as many as fit into its share of the remaining time, but at least
        two."""
        cell, shares, begin = (operation, size), collections.Counter(job.stack for job in jobs), time.monotonic()
        share = (self.start + self.args.limit - begin) / self.cells_left
        self.cells_left -= 1
        for repetition in range(self.args.rounds):
            if repetition >= (MIN_REPETITIONS if share > 0 else 1) and (time.monotonic() - begin) * (repetition + 1) / repetition > share:
                break
            first = repetition % len(jobs)
            least = min(job.median_us(cell) for job in jobs)
            for job in jobs[first:] + jobs[:first]:
                if job.stack != "ours" and any(repetition >= t and job.median_us(cell) > f * least for t, f in LOST.items()):
                    continue
                if not job.error:
                    job.measure(operation, size, max(MIN_REPETITION_S, self.args.seconds / shares[job.stack]))

    def ranks_row(self, ranks):
        """The cells for one number of ranks."""
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
        """Also covers the results of an interrupted run."""
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
    for name in ("ranks", "cells", "stacks", "ours", "out"):
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
