#!/usr/bin/env python3
"""Runs third-party programs with mcastcoll and with Open MPI's own collectives, in turns, and compares times and results.

A faster operation makes a program faster only by the share of time that the program waits for it. Each program runs over
the virtual hosts of util/cluster (as root), one process per host, all stacks in turns in one run. The times are those of
whole jobs, from mpirun's start to its end. Results must be equal: a program with different answers fails.
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.realpath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
LAB = os.path.join(TOP, "util", "cluster")
PML = ["--mca", "pml", "ob1"]
STACKS = {
    "mcastcoll": PML,
    "tuned": [*PML, "--mca", "coll", "^mcastcoll,han,sm"],
    "han": [*PML, "--mca", "coll", "^mcastcoll,sm", "--mca", "coll_han_priority", "100"],
}


class Failure(Exception):
    """Names the job that failed."""


def write(folder, name, text):
    with open(os.path.join(folder, name), "w") as file:
        file.write(text)


HPL_ROW = "HPL alone, within HPC Challenge, on its own clock"
# Results of HPC Challenge computed from fixed input, one per line in its summary file: equal results have
# equal digits.
HPCC_ANSWERS = ("HPL_N HPL_RnormI HPL_Anorm1 HPL_AnormI HPL_Xnorm1 HPL_XnormI HPL_BnormI PTRANS_n PTRANS_residual "
                "MPIRandomAccess_N FFT_N MPIFFT_N MPIFFT_maxErr").split()


def prepare_hpcc(folder, processes):
    rows = 2 if processes % 2 == 0 else 1
    with open("/usr/share/doc/hpcc/examples/_hpccinf.txt") as file:
        lines = file.read().splitlines()
    for at, value in ((4, "5"), (5, "1200 " * 5), (7, "64"), (10, str(rows)), (11, str(processes // rows))):
        lines[at] = f"{value} {lines[at].split(None, 1)[1]}"
    write(folder, "hpccinf.txt", "\n".join(lines) + "\n")
    return ["/usr/bin/hpcc"]


def answer_hpcc(folder, _):
    path = os.path.join(folder, "hpccoutf.txt")
    with open(path) as file:
        said = file.read()
    os.remove(path)  # the next job would append
    if "Success=1" not in said or "FAILED" in said:
        raise Failure("a check failed: " + ", ".join(re.findall(r".*FAILED.*", said)[:3]))
    checks = re.findall(r"^(\|\|Ax-b.*) PASSED", said, re.M) + [f"{len(re.findall('PASSED', said))} passed"]
    seconds = [float(took) for took in re.findall(r"^WR\w+(?: +\d+){4} +(\S+)", said, re.M)]
    return checks + [re.search(rf"^{name}=.*", said, re.M).group() for name in HPCC_ANSWERS], {HPL_ROW: sum(seconds)}


def prepare_lammps(folder, _):
    with open("/usr/share/lammps/examples/melt/in.melt") as file:
        write(folder, "in.melt", file.read().replace("run\t\t250", "run\t\t600"))
    return ["/usr/bin/lmp", "-in", "in.melt", "-log", "none"]


def answer_lammps(_, said):
    rows = re.findall(r"^ *(\d+) +(\S+) +(\S+) +(\S+) +(\S+) +(\S+) *$", said, re.M)
    return [float(word) for row in rows for word in row], {}


def prepare_python(name):
    return lambda folder, processes: ["/usr/bin/python3", "-B", os.path.join(HERE, name)]


def answer_python(_, said):
    found = re.search(r"^answer (.*)$", said, re.M)
    return found.group(1).split() if found else [], {}


# name: description, Debian packages, a function that prepares the program and returns its command, a function that reads its
# answer and the seconds of its parts.
PROGRAMS = {
    "hpcc": ("HPC Challenge: HPL of 1,200 five times, PTRANS, FFT, RandomAccess, STREAM, latency", "hpcc", prepare_hpcc, answer_hpcc),
    "lammps": ("LAMMPS: 4,000 atoms melt, 600 steps", "lammps lammps-examples", prepare_lammps, answer_lammps),
    "arrays": ("mpi4py, NumPy: broadcasts and allreduces of 8 B to 800 KB", "python3-mpi4py python3-numpy", prepare_python("arrays.py"),
               answer_python),
    "descent": ("mpi4py, NumPy: gradient descent, 1.6 MB summed in each step", "python3-mpi4py python3-numpy", prepare_python("descent.py"),
                answer_python),
    "solve": ("ScaLAPACK: pdgesv of 2,000 rows", "libscalapack-openmpi2.2 python3-mpi4py python3-numpy", prepare_python("solve.py"),
              answer_python),
    "eigen": ("ELPA: eigenvalues and vectors of 800 rows", "libelpa19 python3-mpi4py python3-numpy", prepare_python("eigen.py"),
              answer_python),
}


def same(one, other):
    """Floating-point sums depend on the order, which differs between stacks."""
    if len(one) != len(other):
        return False
    for a, b in zip(one, other):
        try:
            if abs(float(a) - float(b)) > 1e-6 * max(1.0, abs(float(a))):
                return False
        except (TypeError, ValueError):
            if a != b:
                return False
    return True


def run(stack, command, folder, timeout):
    words = [os.path.join(LAB, "run"), *STACKS[stack], "--wdir", folder, *command]
    environment = {**os.environ, "STACK": "none", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    start = time.monotonic()
    try:
        done = subprocess.run(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=timeout,
                              errors="replace", check=False)
    except subprocess.TimeoutExpired as late:
        raise Failure(f"not finished within {timeout} s") from late
    took = time.monotonic() - start
    if done.returncode:
        raise Failure(f"code {done.returncode}: {done.stdout[-600:]}")
    return took, done.stdout


def measure(name, options, hosts):
    """The seconds of each row and stack: of the whole job, and of parts measured by the program itself."""
    what, packages, prepare, answer_of = PROGRAMS[name]
    rows, answers = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        command = prepare(folder, hosts)
        for turn in range(options.rounds):
            for at in range(len(options.stacks)):
                stack = options.stacks[(at + turn) % len(options.stacks)]
                print(f"\r{name}: turn {turn + 1} of {options.rounds}, {stack}          ", end="", file=sys.stderr, flush=True)
                took, said = run(stack, command, folder, options.timeout)
                answer, parts = answer_of(folder, said)
                for row, seconds in {what: took, **parts}.items():
                    rows.setdefault(row, {stack: [] for stack in options.stacks})[stack].append(seconds)
                if not answer or not same(answers.setdefault("first", answer), answer):
                    raise Failure(f"{stack} computed {answer} instead of {answers['first']}")
    print("\r" + " " * 60 + "\r", end="", file=sys.stderr)
    return {"program": name, "packages": packages, "hosts": hosts, "answer": answers["first"], "seconds": rows}


def row_of(what, hosts, seconds, stacks):
    medians = {stack: statistics.median(seconds[stack]) for stack in stacks}
    best = min((stack for stack in stacks[1:]), key=medians.get)
    ratio = medians[stacks[0]] / medians[best]
    word = "no difference" if 0.97 <= ratio <= 1.03 else f"{1 / ratio:.2f} times as fast" if ratio < 1 else f"{ratio:.2f} times as slow"
    cells = " | ".join(f"{medians[s]:.2f} ({min(seconds[s]):.2f}-{max(seconds[s]):.2f})" for s in stacks)
    return f"| {what} | {hosts} | {cells} | {word} |"


def arguments():
    def list_of(allowed):
        def read(text):
            chosen = text.split(",")
            wrong = [word for word in chosen if word not in allowed]
            if wrong:
                raise argparse.ArgumentTypeError(f"'{wrong[0]}' is not one of {', '.join(allowed)}")
            return chosen
        return read
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    p.add_argument("--programs", type=list_of(PROGRAMS), default=list(PROGRAMS), metavar="P,P,..", help=", ".join(PROGRAMS))
    p.add_argument("--stacks", type=list_of(STACKS), default=list(STACKS), metavar="S,S,..", help=", ".join(STACKS))
    p.add_argument("--rounds", type=int, default=5, metavar="R", help="jobs of each stack (5)")
    p.add_argument("--timeout", type=int, default=300, metavar="S", help="seconds after which a job counts as hung (300)")
    p.add_argument("--json", metavar="FILE", help="write all times to this file")
    return p.parse_args()


def main():
    options = arguments()
    if options.stacks[0] != "mcastcoll" or len(options.stacks) < 2 or options.rounds < 1:
        sys.exit("compare.py: give mcastcoll, then at least one other stack, and at least one round")
    up = subprocess.run([os.path.join(LAB, "on"), "h0", "true"], stderr=subprocess.PIPE, check=False)
    if up.returncode:
        sys.exit("compare.py: no hosts are running: run 'util/cluster/up 8' first")
    hosts = 0
    while subprocess.run([os.path.join(LAB, "on"), f"h{hosts}", "true"], stderr=subprocess.DEVNULL, check=False).returncode == 0:
        hosts += 1
    results, failed = [], 0
    print(f"| program | hosts | {' | '.join(options.stacks)} | mcastcoll is |")
    print("| --- | ---: |" + " ---: |" * len(options.stacks) + " --- |", flush=True)
    for name in options.programs:
        try:
            results.append(measure(name, options, hosts))
            for what, seconds in results[-1]["seconds"].items():
                print(row_of(what, hosts, seconds, options.stacks), flush=True)
        except (Failure, OSError) as problem:
            failed += 1
            print(f"\n| {PROGRAMS[name][0]} | {hosts} | failed: {problem} |", flush=True)
    if options.json:
        with open(options.json, "w") as file:
            json.dump(results, file, indent=1)
    print(f"{len(results)} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
