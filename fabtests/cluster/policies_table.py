#!/usr/bin/env python3
"""The tables of mpi_policies.sh, from the files of its jobs in one folder: CSV, JSON and Markdown."""
import argparse
import csv
import glob
import json
import statistics
import sys

TOLERANCE = 1.10
COUNTERS = ("messages_sent", "datagrams_sent", "fragments_repaired", "fragments_by_multicast", "duplicates")


def load(path):
    with open(path) as file:
        return json.load(file)


def totals(prefix):
    """The counters of a job, summed over its processes."""
    reports = [load(path) for path in glob.glob(f"{glob.escape(prefix)}.stats.*.json")]
    return {name: sum(r.get(name, 0) for r in reports) for name in COUNTERS} | {"processes": len(reports)}


def job(prefix, base):
    """A job: its times, and its counters per broadcast without joining and leaving."""
    result, counted, joined = load(f"{prefix}.json"), totals(prefix), totals(base)
    if counted["processes"] != result["ranks"] or joined["processes"] != result["ranks"]:
        sys.exit(f"{prefix}: counters of {counted['processes']} and {joined['processes']} processes, not {result['ranks']}")
    more = result["count"] + result["warmup"] - 1
    hosts = load(f"{prefix}.loss")["hosts"]
    matched = sum(h["matched"] for h in hosts)
    return {
        "bad": result["bad"],
        "median_us": result["receivers"]["median_us"],
        "p99_us": result["receivers"]["p99_us"],
        "last_median_us": result["last"]["median_us"],
        "last_p99_us": result["last"]["p99_us"],
        "lost_percent": 100 * sum(h["dropped"] for h in hosts) / matched if matched else 0,
        **{f"{name}_per_broadcast": (counted[name] - joined[name]) / more for name in COUNTERS},
    }


def paired_ratio(row, best, key):
    """The median over rounds of auto's figure divided by the best other policy's in the same round."""
    return statistics.median(mine[key] / theirs[key] for mine, theirs in zip(row["rounds"], best["rounds"]))


def compare(rows):
    """Adds to auto's row of a cell the ratio to the best other policy, by each figure; the best policy may differ between
    figures."""
    others = [r for r in rows if r["policy"] != "auto"]
    for row in rows:
        for key in ("median_us", "last_median_us", "p99_us") if row["policy"] == "auto" and others else ():
            best = min(others, key=lambda r: r[key])
            row[f"best_{key}"] = best["policy"]
            row[f"ratio_{key}"] = paired_ratio(row, best, key)


def rows_of(args):
    rows = []
    for hosts in args.hosts.split(","):
        for size in args.sizes.split(","):
            for cell in args.cells.split():
                here = []
                for policy in args.policies.split(","):
                    base = f"{args.jobs}/base.{hosts}.{size}.{policy}"
                    rounds = [job(f"{args.jobs}/run.{hosts}.{size}.{cell}.{policy}.{r + 1}", base) for r in range(args.rounds)]
                    loss, kind = cell.split("@")
                    row = {"hosts": int(hosts), "bytes": in_bytes(size), "loss_percent": float(loss), "kind": kind, "policy": policy}
                    row |= {key: statistics.median(r[key] for r in rounds) for key in rounds[0]}
                    row["bad"] = sum(r["bad"] for r in rounds)
                    here.append(row | {"rounds": rounds})
                compare(here)
                rows += here
    return rows


def in_bytes(size):
    return int(size.rstrip("KM")) << {"K": 10, "M": 20}.get(size[-1], 0)


def cell_text(row):
    return (f"{row['median_us']:.0f} / {row['p99_us']:.0f} / {row['last_median_us']:.0f}, "
            f"{row['messages_sent_per_broadcast']:.1f}")


def markdown(rows, policies, args):
    """One line for each cell, one column for each policy."""
    per_core = ", ".join(f"{int(n) / args.cores:g}" for n in args.hosts.split(","))
    lines = [f"{args.hosts} hosts of one rank each on {args.cores} cores ({per_core} ranks to a core), root {args.root}, "
             f"{args.rounds} rounds, every byte checked.",
             "For each policy: median / 99th percentile over all receivers and broadcasts / median of the last rank, in us; "
             "then messages per broadcast, of all ranks together. Auto against the best of the others: paired by round, "
             "over all receivers and for the last rank.", ""]
    lines.append("| hosts | bytes | loss | datagrams | " + " | ".join(policies) + " | auto : best | last rank |")
    lines.append("|---:|---:|---|---:|" + "---|" * len(policies) + "---|---|")
    for start in range(0, len(rows), len(policies)):
        cell = rows[start:start + len(policies)]
        one, auto = cell[0], next((r for r in cell if r["policy"] == "auto"), {})
        loss = "none" if one["kind"] == "none" else f"{one['loss_percent']:g} % {one['kind']}"
        ratios = [f"{auto[f'ratio_{k}']:.2f} {auto[f'best_{k}']}" if f"ratio_{k}" in auto else "-"
                  for k in ("median_us", "last_median_us")]
        lines.append(f"| {one['hosts']} | {one['bytes']} | {loss} | {one['datagrams_sent_per_broadcast']:.1f} | "
                     + " | ".join(cell_text(r) for r in cell) + " | " + " | ".join(ratios) + " |")
    return lines


def outcome(rows):
    """The number of cells in which auto is good enough, and the others."""
    judged = [r for r in rows if "ratio_median_us" in r]
    if not judged:
        return []
    late = [r for r in judged if max(r["ratio_median_us"], r["ratio_last_median_us"]) > TOLERANCE]
    lines = ["", f"auto is within {100 * (TOLERANCE - 1):.0f} % of the best policy, over all receivers and for the last rank, "
             f"in {len(judged) - len(late)} of {len(judged)} cells."]
    for r in late:
        lines.append(f"- not at {r['hosts']} hosts, {r['bytes']} B, {r['loss_percent']:g} % {r['kind']}: "
                     f"{r['ratio_median_us']:.2f} of {r['best_median_us']}, "
                     f"last rank {r['ratio_last_median_us']:.2f} of {r['best_last_median_us']}")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("jobs", "hosts", "sizes", "cells", "policies", "root", "out"):
        parser.add_argument(f"--{name}", required=True)
    for name in ("rounds", "cores"):
        parser.add_argument(f"--{name}", required=True, type=int)
    args = parser.parse_args()
    rows, policies = rows_of(args), args.policies.split(",")
    with open(f"{args.out}.json", "w") as file:
        json.dump({"cores": args.cores, "root": args.root, "policies": policies, "rows": rows}, file, indent=1)
        file.write("\n")
    fields = [key for key in rows[0] if key != "rounds"]
    fields += [key for key in rows[-1] if key not in fields and key != "rounds"]
    with open(f"{args.out}.csv", "w", newline="") as file:
        table = csv.DictWriter(file, fields, extrasaction="ignore", restval="", lineterminator="\n")
        table.writeheader()
        for row in rows:
            table.writerow({k: f"{v:.2f}" if isinstance(v, float) else v for k, v in row.items()})
    text = "\n".join(markdown(rows, policies, args) + outcome(rows))
    with open(f"{args.out}.md", "w") as file:
        file.write(text + "\n")
    print(text)
    return 1 if any(r["bad"] for r in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
