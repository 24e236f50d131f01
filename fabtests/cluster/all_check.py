#!/usr/bin/env python3
"""Evaluates mpi_all.sh's table against the goals: a line 'ok|FAIL|skip TEXT' for each.

usage: all_check.py TABLE.json SLACK
"""
import json
import sys

AHEAD = (("barrier", 0), ("allreduce", 8), ("allgather", 65536))
# Blocks sent by a member in an allgather at most: its own, headers, repairs, and the barrier after it.
MAX_BLOCKS = 2.0


def judge(table, slack):
    cells = {}
    for row in table["rows"]:
        cells.setdefault((row["hosts"], row["operation"], row["bytes"]), []).append(row)
    for hosts in dict.fromkeys(key[0] for key in cells):
        for operation, size in AHEAD:
            name = f"{operation}{f' {size} B' if size else ''} on {hosts} hosts"
            ratios = {row["stack"]: row["ratio"] for row in cells.get((hosts, operation, size), []) if "ratio" in row}
            if not ratios:
                yield "skip", f"{name}: not measured"
                continue
            said = ", ".join(f"{ratio:.2f} of {stack}'s time" for stack, ratio in ratios.items())
            yield "ok" if max(ratios.values()) < 1 else "FAIL", f"{name}: {said}"
        gathered = [row for row in cells.get((hosts, "allgather", 65536), []) if "sent_bytes" in row]
        if gathered:
            blocks = {row["stack"]: row["sent_most_bytes"] / 65536 for row in gathered}
            first = gathered[0]["stack"]
            said = ", ".join(f"{stack} {sent:.2f}" for stack, sent in blocks.items())
            yield "ok" if blocks[first] <= MAX_BLOCKS else "FAIL", \
                f"blocks sent by the busiest member of an allgather of 64 KiB on {hosts} hosts, a ring's being {hosts - 1}: {said}"
    slow, judged = [], 0
    for (hosts, operation, size), rows in cells.items():
        worst = max((row["least_ratio"] for row in rows if "least_ratio" in row), default=None)
        judged += worst is not None
        if worst is not None and worst > slack:
            slow.append(f"{operation}{f' {size} B' if size else ''} on {hosts} hosts: {worst:.2f} times the fastest peer's time")
    for text in slow:
        yield "FAIL", text
    if judged and not slow:
        yield "ok", f"nowhere more than {slack:g} times as slow as the fastest peer ({judged} operations and sizes)"
    failed = [row for row in table["rows"] if row["error"]]
    for row in failed:
        yield "FAIL", f"{row['stack']}, {row['operation']} {row['bytes']} B on {row['hosts']} hosts: {row['error']}"
    if not failed:
        yield "ok", "all jobs ended well and all data are right"


def main():
    if len(sys.argv) != 3:
        print(__doc__.strip().splitlines()[-1], file=sys.stderr)
        return 2
    with open(sys.argv[1]) as file:
        table = json.load(file)
    for outcome, text in judge(table, float(sys.argv[2])):
        print(outcome, text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
