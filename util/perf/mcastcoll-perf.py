#!/usr/bin/env python3
"""Measures collectives of libfabric or MPI, one stack beside the others, taking turns in one run.

On a shared machine two runs cannot be compared with each other, only repetitions within one run. This file has the arguments;
perf_bench.py measures, perf_stacks.py has the stacks, perf_report.py prints the results.
"""
import os
import signal
import sys

sys.dont_write_bytecode = True  # make uninstall would not remove __pycache__
HERE = os.path.dirname(os.path.realpath(__file__))
for folder in (os.path.join(HERE, "..", "share", "mcastcoll", "perf"), HERE):
    if os.path.exists(os.path.join(folder, "perf_bench.py")):
        sys.path.insert(0, os.path.realpath(folder))

import perf_report  # noqa: E402
from perf_arguments import MAX_RANKS, Parser, add_times, number, numbers, places_of, sizes, words  # noqa: E402
from perf_bench import Bench  # noqa: E402
from perf_stacks import StackError, cores, read_tables  # noqa: E402

MPI = ("bcast", "barrier", "reduce", "allreduce", "allgather", "allgatherv", "gather", "gatherv", "scatter", "scatterv", "alltoall",
       "alltoallv", "reduce_scatter", "reduce_scatter_block", "scan", "exscan")
FABRIC = ("broadcast", "barrier", "reduce", "allreduce", "allgather", "gather", "scatter", "alltoall", "reduce_scatter")
OPERATIONS = {"mpi": MPI + tuple(f"i{name}" for name in MPI), "fabric": FABRIC}
REDUCTIONS = ("reduce", "allreduce", "reduce_scatter", "reduce_scatter_block", "scan", "exscan")
STACKS = {"mpi": "mcastcoll,ompi-tuned,ompi-han", "fabric": "fi-mcastcoll,fi-rxm"}
DEFAULT_OPERATIONS = {"mpi": "bcast,barrier,allreduce,allgather", "fabric": "broadcast,barrier,allreduce,allgather"}

USAGE = """
  mcastcoll-perf                                              mcastcoll and Open MPI's collectives, on this host
  mcastcoll-perf --hosts 8,16 --operation bcast --sizes 8,64K on the virtual hosts of util/cluster, as root
  mcastcoll-perf --rounds 2 --svg latency.svg                 two repetitions of each stack, and a chart
  mcastcoll-perf --list-stacks                                all known stacks"""


def arguments():
    daily = dict.fromkeys(("--sizes", "--ranks", "--hosts", "--list-stacks", "--loss", "--rounds", "--json", "--svg"))
    p = Parser("mcastcoll-perf", USAGE, __doc__.splitlines()[0],
               "mcastcoll-perf(1) describes the measurements; 'stacks.conf' beside it lists the stacks.",
               {"--operation": "'all', or some of bcast, allreduce, ...: --help-all lists them", "--stacks": "of --list-stacks", **daily})
    p.add_argument("--level", choices=("mpi", "fabric"), default="mpi", help="interface to measure (mpi)")
    p.add_argument("--operation", "--operations", dest="operations", type=words, metavar="O,O,..",
                   help="'all', or some of: " + ", ".join(MPI) + "; with the prefix i: nonblocking; with --level fabric: "
                   + ", ".join(OPERATIONS["fabric"]))
    p.add_argument("--sizes", type=sizes, default="8,1K,64K,1M", metavar="S,S,..", help="bytes, see mcastcoll-perf(1) (8,1K,64K,1M)")
    p.add_argument("--ranks", "--members", dest="ranks", type=numbers(2, MAX_RANKS), metavar="N,N,..",
                   help="processes (4, or one per host)")
    p.add_argument("--hosts", type=numbers(2, MAX_RANKS), metavar="H,H,..",
                   help="number of hosts of util/cluster, as root (this host only)")
    p.add_argument("--stacks", type=words, metavar="S,S,..", help="the first is compared with the others "
                   f"({STACKS['mpi']}; --level fabric: {STACKS['fabric']})")
    p.add_argument("--stack", action="append", default=[], metavar="'NAME=LAUNCHER WORDS'",
                   help="additional stack; LAUNCHER is openmpi, mpich, fabric or floor")
    p.add_argument("--stacks-file", action="append", default=[], metavar="FILE", help="file with rows as in stacks.conf")
    p.add_argument("--list-stacks", action="store_true", help="list all stacks")
    p.add_argument("--inner", metavar="PROVIDER", help="FI_MCASTCOLL_INNER, for example tcp or shm")
    p.add_argument("--loss", type=number(0, 100, float), default=0.0, metavar="P", help="percent of multicast datagrams lost (0)")
    add_times(p, "repetitions of each stack at each cell (5)", seconds=0.3)
    p.add_argument("--metric", choices=("last", "max"), default="last", help="last: the last rank's end minus the start; "
                   "max: the longest time of any rank, as in OSU and IMB (last)")
    p.add_argument("--yield", dest="yields", choices=("auto", "yes", "no"), default="auto",
                   help="idle ranks of Open MPI yield; auto: if there are more ranks than cores")
    p.add_argument("--probes", type=number(0, 1000000), default=0, metavar="N", help="calls of MPI_Test while overlapping (0)")
    p.add_argument("--csv", metavar="FILE")
    p.add_argument("--json", metavar="FILE")
    p.add_argument("--markdown", metavar="FILE", help="table with a column for each stack, medians in us")
    p.add_argument("--svg", metavar="FILE", help="latency against size, or against ranks if there is one size")
    p.add_argument("--fail-above", type=number(0.01, 1000, float), metavar="F",
                   help="exit with 1 if the first stack takes more than F times as long as the best other stack")
    p.add_argument("--quiet", action="store_true", help="no progress on stderr")
    return p


def choose_operations(p, args):
    known = OPERATIONS[args.level]
    chosen = args.operations or words(DEFAULT_OPERATIONS[args.level])
    if chosen == ["all"]:
        chosen = list(known[:len(MPI)] if args.level == "mpi" else known)
    for name in chosen:
        if name not in known:
            p.error(f"argument --operation: '{name}': give 'all' or some of {', '.join(known)}")
    cells = []
    for name in chosen:
        plain = name[1:] if args.level == "mpi" and name not in MPI else name
        if plain in REDUCTIONS and any(s % 8 for s in args.sizes):
            p.error(f"argument --sizes: {name} adds doubles: give multiples of 8")
        cells += [(name, s) for s in ([0] if plain == "barrier" else args.sizes)]
    return cells


def choose_stacks(p, args):
    try:
        known = read_tables(args.stacks_file, args.stack)
    except StackError as problem:
        p.error(str(problem))
    if args.list_stacks:
        for stack in known.values():
            print(f"{stack.name:<15} {stack.level():<7} {' '.join(stack.words())}")
        sys.exit(0)
    fits = [name for name, stack in known.items() if stack.level() == args.level]
    named = [row.partition("=")[0] for row in args.stack]
    usual = words(STACKS[args.level])
    args.stacks = args.stacks or usual + [name for name in named if name in fits and name not in usual]
    for name in args.stacks:
        if name not in fits:
            p.error(f"argument --stacks: '{name}': give some of {', '.join(fits)} at the {args.level} level")
    return [known[name] for name in args.stacks]


def main():
    p = arguments()
    args = p.parse_args()
    if args.hosts and args.level == "fabric":
        p.error("argument --hosts: only at the mpi level; members of --level fabric are on this host")
    stacks, cells, places = choose_stacks(p, args), choose_operations(p, args), places_of(p, args, args.yields, args.inner)
    for path in filter(None, (args.csv, args.json, args.markdown, args.svg)):
        if not os.path.isdir(os.path.dirname(os.path.abspath(path))):
            p.error(f"no folder for {path}")
    if args.svg and not perf_report.can_plot():
        p.error("argument --svg: needs gnuplot: run util/install-deps")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the jobs are ended
    bench = Bench(stacks, places, cells, rounds=args.rounds, seconds=args.seconds, timeout_s=args.timeout, limit_s=args.limit,
                  probes=args.probes, metric=args.metric, enough=args.fail_above, quiet=args.quiet)
    about, failed = perf_report.head(args, cores()), False
    try:
        bench.run()
    except KeyboardInterrupt:
        failed = True
    finally:  # also reports the results of an interrupted run
        rows = bench.rows
        perf_report.print_table(rows, about, sys.stdout)
        if args.csv:
            perf_report.write_csv(args.csv, rows)
        if args.json:
            perf_report.write_json(args.json, rows, about, bench.notes)
        if args.markdown:
            perf_report.write_markdown(args.markdown, rows)
        problem = perf_report.write_svg(args.svg, rows, args.metric) if args.svg else None
        if problem:
            print(f"mcastcoll-perf: --svg: {problem}", file=sys.stderr)
    for row in rows:
        failed |= bool(row["error"]) and "does not have it" not in row["error"]
    failed |= not rows or any(note.startswith("FAIL") for note in bench.notes)
    worse = perf_report.slower(rows, args.fail_above) if args.fail_above else []
    for text in worse:
        print(f"slower: {text}")
    return 1 if failed or worse or problem else 0


if __name__ == "__main__":
    sys.exit(main())
