"""What was measured, as a table for the eye, CSV, JSON; the verdict of --fail-above."""
import csv
import json

COLUMNS = ("operation", "bytes", "hosts", "ranks", "stack", "median_us", "p99_us", "last_min_us", "last_median_us", "last_p90_us",
           "last_p99_us", "max_min_us", "max_median_us", "max_p90_us", "max_p99_us", "overlap_percent", "sent_bytes",
           "sent_most_bytes", "ratio", "least_ratio", "samples", "bad", "error")


def cells_of(rows):
    cells = {}
    for row in rows:
        cells.setdefault((row["hosts"], row["ranks"], row["operation"], row["bytes"]), []).append(row)
    return cells


def head(args, cores):
    return {"level": args.level, "cores": cores, "rounds": args.rounds, "seconds_per_turn": args.seconds, "loss_percent": args.loss,
            "metric": args.metric, "first": args.stacks[0]}


def print_table(rows, about, file):
    metric = {"last": "last rank's end minus the start", "max": "the longest of all ranks' own times"}[about["metric"]]
    places = {(r["hosts"], r["ranks"]): r["ranks"] / about["cores"] for r in rows}
    ranks = ", ".join(f"{r} ranks {f'on {h} hosts ' if h else ''}= {per:g} per core" for (h, r), per in places.items())
    print(f"{about['level']} level; {metric}, us; {about['rounds']} rounds, taking turns; {about['cores']} cores, {ranks}"
          + (f"; {about['loss_percent']:g} % of multicast datagrams lost" if about["loss_percent"] else ""), file=file)
    print(f"ratio: {about['first']}'s time over this one's, below 1 where {about['first']} is ahead", file=file)
    overlap, sent = (any(name in row for row in rows) for name in ("overlap_percent", "sent_bytes"))
    print(f"{'operation':<21} {'bytes':>9} {'hosts':>5} {'ranks':>5} {'stack':<15} {'median':>10} {'min':>10} {'p99':>10} "
          f"{'max median':>10} {'ratio':>6}" + (" overlap" if overlap else "") + (f" {'sent':>10}" if sent else "")
          + f" {'samples':>8}", file=file)
    for row in rows:
        begin = f"{row['operation']:<21} {row['bytes']:>9} {row['hosts'] or '-':>5} {row['ranks']:>5} {row['stack']:<15}"
        if "median_us" not in row:
            print(f"{begin} {row['error']}", file=file)
            continue
        ratio = f"{row['ratio']:.2f}" if "ratio" in row else "-"
        share = f" {row['overlap_percent']:>6.0f}%" if "overlap_percent" in row else " " * 8 if overlap else ""
        out = f" {row['sent_bytes']:>10}" if "sent_bytes" in row else " " * 11 if sent else ""
        print(f"{begin} {row['median_us']:>10.1f} {row[about['metric'] + '_min_us']:>10.1f} {row['p99_us']:>10.1f} "
              f"{row['max_median_us']:>10.1f} {ratio:>6}{share}{out} {row['samples']:>8}"
              + (f"  {row['error']}" if row["error"] else ""), file=file)


def write_csv(path, rows):
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def write_markdown(path, rows):
    """A line for each operation and size, a column for each stack, and the first one's time over the fastest other's."""
    stacks = list(dict.fromkeys(row["stack"] for row in rows))
    with open(path, "w") as file:
        print(f"| hosts | ranks | operation | {' | '.join(stacks)} | ratio |\n|---:|---:|---|{'---:|' * (len(stacks) + 1)}", file=file)
        for (hosts, ranks, operation, size), cell in cells_of(rows).items():
            found = {row["stack"]: row for row in cell}
            times = [f"{found[s]['median_us']:,.0f}" if "median_us" in found.get(s, {}) else "" for s in stacks]
            ratio = max((row["ratio"] for row in cell if "ratio" in row), default=None)
            print(f"| {hosts or 1} | {ranks} | {operation}{f' {size} B' if size else ''} | {' | '.join(times)} | "
                  f"{'' if ratio is None else f'{ratio:.2f}'} |", file=file)


def write_json(path, rows, about, notes):
    with open(path, "w") as file:
        json.dump({**about, "notes": notes, "rows": rows}, file, indent=1)
        file.write("\n")


def slower(rows, factor):
    """Cells where the first stack is slower than the best other one by more than the factor, by both times, worst first."""
    found = []
    for (hosts, ranks, operation, size), cell in cells_of(rows).items():
        ratios = [(row["least_ratio"], row["stack"]) for row in cell if "least_ratio" in row]
        if ratios and max(ratios)[0] > factor:
            place = f"{hosts} hosts, {ranks} ranks" if hosts else f"{ranks} ranks"
            worst, stack = max(ratios)
            found.append((worst, f"{place}, {operation}{f' {size} B' if size else ''}: {worst:.2f} times {stack}"))
    return [text for _, text in sorted(found, reverse=True)]
