#!/usr/bin/env python3
"""Measures the alternatives of mcastcoll's selection tables, and writes the table that follows.

The best algorithm depends on wires and cores; the built-in tables are right for the machines of their measurements. Two
tables can be written: the provider's (the algorithm of an operation) and the Open MPI component's (whether mcastcoll or
another component serves the operation). perf_bench.py measures, perf_selection.py decides.
"""
import os
import signal
import sys
import tempfile

sys.dont_write_bytecode = True  # make uninstall would not remove __pycache__
HERE = os.path.dirname(os.path.realpath(__file__))
for folder in (os.path.join(HERE, "..", "share", "mcastcoll", "perf"), HERE):
    if os.path.exists(os.path.join(folder, "perf_bench.py")):
        sys.path.insert(0, os.path.realpath(folder))

from perf_arguments import MAX_RANKS, Parser, add_times, number, numbers, places_of, sizes, words  # noqa: E402
from perf_bench import Bench  # noqa: E402
from perf_report import cells_of  # noqa: E402
from perf_selection import COMPONENT, PROVIDER, choices, table_text  # noqa: E402
from perf_stacks import Stack, StackError, cores, read_tables  # noqa: E402

COMPONENT_OPERATIONS = ("bcast", "barrier", "reduce", "allreduce", "allgather", "allgatherv", "gather", "scatter", "alltoall",
                        "reduce_scatter", "reduce_scatter_block")

USAGE = """
  mcastcoll-tune --table provider --out selection.conf        algorithms, for FI_MCASTCOLL_SELECTION
  mcastcoll-tune --table component --out steps.conf           mcastcoll or Open MPI, for --mca coll_mcastcoll_selection"""


def arguments():
    daily = dict.fromkeys(("--table", "--out", "--sizes", "--hosts", "--ranks", "--loss", "--margin", "--rounds", "--limit"))
    p = Parser("mcastcoll-tune", USAGE, __doc__.splitlines()[0], "mcastcoll-tune(1) describes the tables and their use.",
               {"--operation": "only these operations: --help-all lists them (all)", **daily})
    p.add_argument("--table", choices=("provider", "component"), required=True,
                   help="provider: FI_MCASTCOLL_SELECTION; component: --mca coll_mcastcoll_selection")
    p.add_argument("--out", metavar="FILE", required=True, help="output file")
    p.add_argument("--operation", "--operations", dest="operations", type=words, metavar="O,O,..",
                   help=f"(all) provider: {', '.join(PROVIDER)}; component: {', '.join(COMPONENT_OPERATIONS)}")
    p.add_argument("--sizes", type=sizes, default="8,1K,8K,64K,512K", metavar="S,S,..", help="bytes (8,1K,8K,64K,512K)")
    p.add_argument("--hosts", type=numbers(2, MAX_RANKS), metavar="H,H,..",
                   help="number of hosts of util/cluster, as root (this host only)")
    p.add_argument("--ranks", type=numbers(2, MAX_RANKS), metavar="N,N,..", help="processes (4, or one per host)")
    p.add_argument("--stack", default="mcastcoll", metavar="NAME", help="row of stacks.conf that launches mcastcoll (mcastcoll)")
    p.add_argument("--previous", default="ompi-tuned", metavar="NAME", help="component: stack to compare with (ompi-tuned)")
    p.add_argument("--stacks-file", action="append", default=[], metavar="FILE", help="file with rows as in stacks.conf")
    p.add_argument("--loss", type=number(0, 100, float), default=0.0, metavar="P", help="percent of multicast datagrams lost (0)")
    p.add_argument("--margin", type=number(0, 100, float), default=5.0, metavar="P",
                   help="percent by which an alternative must be faster than the first one (5)")
    add_times(p, "repetitions of each alternative (5)", seconds=0.2)
    return p


def everything_here(folder):
    """A component's table that keeps every operation in mcastcoll; otherwise an earlier choice would be measured again."""
    path = os.path.join(folder, "here")
    with open(path, "w") as file:
        file.write("all * * * here\n")
    return ["--mca", "coll_mcastcoll_selection", path]


def stacks_for(args, operation, known, folder):
    """One stack per alternative; the first is kept if the difference is small."""
    base, here = known[args.stack], everything_here(folder)
    if args.table == "component":
        other = known[args.previous]
        return [Stack("here", base.launcher, base.words() + here), Stack("previous", other.launcher, other.words())]
    stacks = []
    for name in PROVIDER[operation]:
        path = os.path.join(folder, f"{operation}.{name.replace(':', '.')}")
        with open(path, "w") as file:
            file.write(f"{operation} * * * {name}\n")
        stacks.append(Stack(name.replace(":", "."), base.launcher, [*base.words(), f"FI_MCASTCOLL_SELECTION={path}", *here]))
    return stacks


def measure(args, known, places, folder):
    """{(hosts, ranks, operation, size): {alternative: us}}, and the notes of the runs."""
    cells, notes = {}, []
    groups = [[o] for o in args.operations] if args.table == "provider" else [args.operations]
    for operations in groups:
        wanted = [(o, s) for o in operations for s in ([0] if o == "barrier" else args.sizes)]
        bench = Bench(stacks_for(args, operations[0], known, folder), places, wanted, rounds=args.rounds, seconds=args.seconds,
                      timeout_s=args.timeout, limit_s=args.limit / len(groups) if args.limit else None)
        for key, rows in cells_of(bench.run()).items():
            # Without --hosts all ranks are on one host.
            cells[(max(key[0], 1), *key[1:])] = {r["stack"].replace(".", ":"): r["median_us"] for r in rows
                                                 if "median_us" in r and not r["error"]}
        notes += bench.notes
    return cells, notes


def main():
    p = arguments()
    args = p.parse_args()
    known_operations = tuple(PROVIDER) if args.table == "provider" else COMPONENT_OPERATIONS
    args.operations = args.operations or list(known_operations)
    for name in args.operations:
        if name not in known_operations:
            p.error(f"argument --operation: '{name}': give some of {', '.join(known_operations)} for --table {args.table}")
    if any(size % 8 for size in args.sizes):
        p.error("argument --sizes: reductions add doubles: give multiples of 8")
    if not os.path.isdir(os.path.dirname(os.path.abspath(args.out))):
        p.error(f"argument --out: no folder for {args.out}")
    try:
        known = read_tables(args.stacks_file, [])
    except StackError as problem:
        p.error(str(problem))
    for option in ("stack", "previous"):
        name = getattr(args, option)
        if name not in known or known[name].launcher != "openmpi":
            fits = [fit for fit, stack in known.items() if stack.launcher == "openmpi"]
            p.error(f"argument --{option}: '{name}': give one of {', '.join(fits)}")
    places = places_of(p, args, "auto", None)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the jobs are ended
    with tempfile.TemporaryDirectory(prefix="mcc-tune-") as folder:
        cells, notes = measure(args, known, places, folder)
    rows = choices(args.table, cells, args.margin / 100)
    if not rows:
        print("mcastcoll-tune: no measurement succeeded, so no table was written", file=sys.stderr)
        return 1
    names = ", ".join(COMPONENT) if args.table == "component" else "those measured above each row"
    text = table_text(rows, [f"Written by mcastcoll-tune --table {args.table}, by measurement on {cores()} cores"
                             + (f" with {args.loss:g} % of multicast datagrams lost." if args.loss else "."),
                             f"Alternatives: {names}; an alternative other than the first had to be {args.margin:g} % faster.",
                             "Above each row: the median times at the sizes it covers."])
    with open(args.out, "w") as file:
        file.write(text)
    print(text, end="")
    failed = [note for note in notes if note.startswith("FAIL")]
    print(f"mcastcoll-tune: {len(rows)} rows in {args.out}" + (f"; {len(failed)} jobs failed" if failed else ""), file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
