#!/usr/bin/env python3
"""Prints results of quickstart.sh: the line of a job with checked bytes, or the table of results of mcastcoll-perf."""
import argparse
import glob
import json
import os
import statistics
import sys
import textwrap

SAME = 0.05  # times within this share of each other count as equal
BAR = 20     # characters of the longest bar
WIDTH = 19   # of a column of times


def load(path):
    with open(path) as file:
        return json.load(file)


def summed(counters, name):
    return sum(c.get(name, 0) for c in counters)


def verified(folder, loss):
    """The line of one job. The job must have sent multicasts; otherwise another component carried its broadcasts."""
    check = load(f"{folder}/check.json")
    counters = [load(path) for path in glob.glob(f"{folder}/stats.*.json")]
    hosts = load(f"{folder}/loss.json")["hosts"]
    arrived, lost = summed(hosts, "matched"), summed(hosts, "dropped")
    if not check["ok"] or not arrived and float(loss) < 100:
        print(f"{loss} % loss: " + ("no multicast arrived: something else carried the broadcasts" if check["ok"] else "WRONG BYTES"))
        return 1
    print(f"{loss} % loss: every byte right on every rank; {lost:,} of {arrived:,} multicast packets lost, "
          f"{summed(counters, 'fragments_repaired'):,} fragments repaired by message, "
          f"{summed(counters, 'fragments_restored'):,} restored from parity")
    return 0


def size_text(size):
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit:
            return f" {size // unit} {name}"
    return f" {size} B" if size else ""


def cells_of(rows):
    """{(hosts, operation, bytes): {stack: row}} of the cells with a time."""
    cells = {}
    for row in rows:
        if "median_us" in row:
            cells.setdefault((row["hosts"], row["operation"], row["bytes"]), {})[row["stack"]] = row
    return cells


def compared(cell, first):
    """The best other stack, and its time as a multiple; None if either time is missing."""
    others = [row for name, row in cell.items() if name != first]
    if first not in cell or not others:
        return None, None
    best = min(others, key=lambda row: row["median_us"])
    return best, best["median_us"] / cell[first]["median_us"]


def word_for(factor):
    if factor > 1 + SAME:
        return f"{factor:.1f} times as fast"
    return "the same" if factor >= 1 / (1 + SAME) else f"{1 / factor:.1f} times as slow"


def times(row):
    return f"{row['median_us']:,.0f} / {row['last_p90_us']:,.0f}"


def short_name(stack):
    return stack.removeprefix("ompi-")


def print_table(cells, stacks):
    first, most = stacks[0], max((compared(cell, stacks[0])[1] or 1 for cell in cells.values()), default=1)
    print(f"{'':18}hosts" + "".join(f"{short_name(s):>{WIDTH}}" for s in stacks) + f"  {first}, beside the better other one")
    for (hosts, operation, size), cell in cells.items():
        _, factor = compared(cell, first)
        bar = "" if factor is None else "█" * max(1, round(BAR * factor / most))
        print(f"{operation + size_text(size):18}{hosts:>5}" + "".join(f"{times(cell[s]) if s in cell else '-':>{WIDTH}}" for s in stacks)
              + ("" if factor is None else f"  {bar} {word_for(factor)}"))


def conclusion(cells, first):
    factors = {key: compared(cell, first)[1] for key, cell in cells.items()}
    factors = {key: f for key, f in factors.items() if f is not None}
    if not factors:
        return "Nothing could be compared."
    faster = [f for f in factors.values() if f > 1 + SAME]
    slower = {key: f for key, f in factors.items() if f < 1 / (1 + SAME)}
    text = f"{first} is faster than the better of both in {len(faster)} of {len(factors)} cells"
    if faster:
        text += f", {statistics.median(faster):.1f} times in the middle"
    same = len(factors) - len(faster) - len(slower)
    if same:
        text += f"; the same, within {SAME:.0%}, in {same}"
    if slower:
        text += "; slower in: " + ", ".join(f"{o}{size_text(b)} on {h} hosts" for h, o, b in slower)
    return text + "."


def print_losses(none, lossy, first, percent):
    """The cost of losses, beside the same cell without loss."""
    without, cells = cells_of(none["rows"]), cells_of(lossy["rows"])
    print(f"\n{first}, each datagram through the kernel by itself\n{'':18}hosts{'none lost':>{WIDTH}}{f'{percent} % lost':>{WIDTH}}")
    for (hosts, operation, size), cell in cells.items():
        before = without.get((hosts, operation, size), {}).get(first)
        if before and first in cell:
            print(f"{operation + size_text(size):18}{hosts:>5}{times(before):>{WIDTH}}{times(cell[first]):>{WIDTH}}"
                  f"  {cell[first]['median_us'] / before['median_us']:.1f} times as long")


def measured(folder, percent, json_path):
    clean, *losses = (load(path) if os.path.exists(path) else None
                      for path in (f"{folder}/clean.json", f"{folder}/loss.0.json", f"{folder}/loss.{percent}.json"))
    stacks = list(dict.fromkeys(row["stack"] for row in clean["rows"]))
    cells = cells_of(clean["rows"])
    print(f"\nUntil the last rank is done, us: the median / what 90 of 100 stay below; a rank on each host, {clean['cores']} cores for all hosts")
    print_table(cells, stacks)
    if all(losses):
        print_losses(*losses, stacks[0], percent)
    print("\n" + textwrap.fill(conclusion(cells, stacks[0]), 115))
    runs = [clean, *filter(None, losses)]
    for run in runs:
        print("".join(f"{note}\n" for note in run["notes"]), end="")
    if json_path:
        with open(json_path, "w") as file:
            json.dump(runs, file, indent=1)
            file.write("\n")
    return 0 if cells else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--verified", metavar="FOLDER", help="of a job whose bytes were checked")
    parser.add_argument("--measured", metavar="FOLDER", help="with clean.json; loss.0.json and loss.PERCENT.json")
    parser.add_argument("--loss", required=True, help="its percentage, or the worst one that was measured")
    parser.add_argument("--json", help="where to write what was measured, too")
    args = parser.parse_args()
    return verified(args.verified, args.loss) if args.verified else measured(args.measured, args.loss, args.json)


if __name__ == "__main__":
    sys.exit(main())
