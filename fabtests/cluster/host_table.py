#!/usr/bin/env python3
"""The table of mpi_host.sh: the fastest stack of each cell, and our time relative to the best other stack, as text,
Markdown and CSV."""
import argparse
import csv
import json

WITHIN = 1.10
NAMES = {"vader": "Open MPI", "han": "Open MPI han", "sm": "Open MPI sm", "mpich": "MPICH", "ours": "mcastcoll"}

WORDS = ("operation", "best peer", "we are")  # columns without figures


def judge(cell, of=lambda row: row["median_us"]):
    """The fastest of the other stacks, our time over its time, and a word for the result."""
    peers = {stack: of(row) for stack, row in cell["stacks"].items() if stack != "ours" and row}
    ours = cell["stacks"].get("ours")
    best = min(peers, key=peers.get) if peers else None
    ratio = of(ours) / peers[best] if ours and best else None
    word = "-" if ratio is None else "ahead" if ratio < 1 else "within 10 %" if ratio <= WITHIN else "behind"
    return {"best_peer": best, "ratio": ratio, "outcome": word}


def time_text(row):
    if not row:
        return "-"
    us = row["median_us"]
    return f"{us:.2f}" if us < 10 else f"{us:.1f}" if us < 100 else f"{us:.0f}"


def rows_of(table):
    for cell in table["cells"]:
        outcome = judge(cell)
        name = cell["operation"] + (f" {size_text(cell['bytes'])}" if cell["bytes"] else "")
        row = [name, str(cell["ranks"]), *(time_text(cell["stacks"].get(stack)) for stack in table["stacks"]),
               NAMES.get(outcome["best_peer"], "-")]
        if "ours" in table["stacks"]:
            row += [f"{outcome['ratio']:.2f}" if outcome["ratio"] else "-", outcome["outcome"]]
        yield row


def size_text(size):
    for shift, unit in ((20, "MiB"), (10, "KiB")):
        if size >= 1 << shift and size % (1 << shift) == 0:
            return f"{size >> shift} {unit}"
    return f"{size} B"


def head_of(table):
    return ["operation", "ranks", *(NAMES[stack] for stack in table["stacks"]), "best peer",
            *(["ratio", "we are"] if "ours" in table["stacks"] else [])]


def repetitions_text(table):
    """Number of repetitions of the cells, counted for the stack with the most."""
    repetitions = {max((len(row["rounds_us"]) for row in cell["stacks"].values() if row), default=0) for cell in table["cells"]}
    return str(max(repetitions)) if len(repetitions) == 1 else f"{min(repetitions)} to {max(repetitions)}"


def count(words):
    return (f"ahead in {words.count('ahead')}, within 10 % in {words.count('within 10 %')}, behind in {words.count('behind')}"
            + (f", without a figure in {words.count('-')}" if "-" in words else ""))


def summary(table):
    words = [judge(cell)["outcome"] for cell in table["cells"]]
    least = [judge(cell, lambda row: min(row["rounds_us"]))["outcome"] for cell in table["cells"]]
    host = table["host"]
    lines = [f"{host['cores']} cores, {repetitions_text(table)} repetitions of {host['seconds']:g} s for each stack and cell, medians of medians in us, "
             f"until the last rank has ended."]
    if "ours" in table["stacks"]:
        lines[0] += " Ratio: ours over the best peer."
        lines.append(f"Of {len(words)} cells we are {count(words)}; by each stack's quickest repetition instead: {count(least)}.")
    lines += [f"Ours says: {note}" for note in host.get("ours_says", [])]
    return lines


def write_csv(table, path):
    with open(path, "w", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(["operation", "bytes", "ranks", "stack", "median_us", "p10_us", "p90_us", "quickest_us", "samples", "way",
                      "best_peer", "ratio"])
        for cell in table["cells"]:
            outcome = judge(cell)
            for stack, row in cell["stacks"].items():
                figures = [""] * 6
                if row:
                    times = [row["median_us"], row["p10_us"], row["p90_us"], min(row["rounds_us"])]
                    figures = [f"{t:.3f}" for t in times] + [row["samples"], row["way"]]
                ratio = f"{outcome['ratio']:.3f}" if stack == "ours" and outcome["ratio"] else ""
                out.writerow([cell["operation"], cell["bytes"], cell["ranks"], stack, *figures, outcome["best_peer"], ratio])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", help="JSON of host_bench.py")
    parser.add_argument("--csv", required=True)
    parser.add_argument("--markdown", required=True)
    args = parser.parse_args()
    with open(args.table) as file:
        table = json.load(file)
    head, rows = head_of(table), list(rows_of(table))
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    print()
    for row in [head, *rows]:
        print("  ".join(word.ljust(w) if head[i] in WORDS else word.rjust(w) for i, (word, w) in enumerate(zip(row, widths))).rstrip())
    print(*summary(table), sep="\n")
    write_csv(table, args.csv)
    with open(args.markdown, "w") as file:
        lines = [head, ["---" if name in WORDS else "---:" for name in head], *rows]
        file.writelines("| " + " | ".join(line) + " |\n" for line in lines)
        file.write("\n" + "\n".join(summary(table)) + "\n")


if __name__ == "__main__":
    main()
