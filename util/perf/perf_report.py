"""The results as a table for people, CSV, JSON, Markdown, and as curves drawn by gnuplot; the result of --fail-above."""
import csv
import json
import shutil
import subprocess

COLUMNS = ("operation", "bytes", "hosts", "ranks", "stack", "median_us", "p99_us", "last_min_us", "last_median_us", "last_p90_us",
           "last_p99_us", "max_min_us", "max_median_us", "max_p90_us", "max_p99_us", "overlap_percent", "sent_bytes",
           "sent_most_bytes", "ratio", "least_ratio", "samples", "bad", "lost", "lost_datagrams", "error")
AXES = {"bytes": ['set xtics 1,16', 'set format x "%.0b %BB"', 'set xlabel "bytes"'],
        "ranks": ["set xtics (2,4,8,16,32,64)", 'set format x "%g"', 'set xlabel "ranks"'],
        "": ["unset xtics", 'set xlabel ""']}


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
    print(f"ratio: time of {about['first']} divided by the time of this stack, below 1 if {about['first']} is faster", file=file)
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
              + (f"  not counted: {row['lost']} that lost {row['lost_datagrams']} datagrams" if row.get("lost") else "")
              + (f"  {row['error']}" if row["error"] else ""), file=file)


def write_csv(path, rows):
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def write_markdown(path, rows):
    """A line per operation and size, a column per stack, and the ratio of the first stack's time to the fastest other's."""
    stacks = list(dict.fromkeys(row["stack"] for row in rows))
    with open(path, "w") as file:
        print(f"| hosts | ranks | operation | {' | '.join(stacks)} | ratio |\n|---:|---:|---|{'---:|' * (len(stacks) + 1)}", file=file)
        for (hosts, ranks, operation, size), cell in cells_of(rows).items():
            found = {row["stack"]: row for row in cell}
            times = [f"{found[s]['median_us']:,.0f}" if "median_us" in found.get(s, {}) else "" for s in stacks]
            ratio = max((row["ratio"] for row in cell if "least_ratio" in row), default=None)
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


def panels_of(rows):
    """(title, axis, {stack: [(x, y), ...]}) of each panel: an operation at one place, against size; with several places and
    only one size (a barrier has none), an operation at one size, against the number of ranks."""
    sizes, places = {}, {(row["hosts"], row["ranks"]) for row in rows}
    for row in rows:
        sizes.setdefault(row["operation"], set()).add(row["bytes"])
    panels = {}
    for row in rows:
        if "median_us" not in row:
            continue
        several = len(sizes[row["operation"]]) > 1
        if several or len(places) == 1:
            place = f"{row['ranks']} ranks" + (f" on {row['hosts']} hosts" if row["hosts"] else "")
            key, axis, x = f"{row['operation']}, {place}", "bytes" if row["bytes"] else "", max(row["bytes"], 1)
        else:
            key = row["operation"] + (f", {row['bytes']} B" if row["bytes"] else "")
            axis, x = "ranks", row["ranks"]
        panels.setdefault((key, axis), {}).setdefault(row["stack"], []).append((x, row["median_us"]))
    return [(title, axis, curves) for (title, axis), curves in panels.items()]


def script_of(panels, metric, path):
    lines, columns = (len(panels) + 1) // 2, min(len(panels), 2)
    script = [f'set terminal svg size {500 * columns},{340 * lines} noenhanced background "white"', f'set output "{path}"',
              f"set multiplot layout {lines},{columns}", "set logscale y 10", 'set format y "%.0s %cs"', "set key left top", "set grid",
              "set logscale x 2"]
    what = {"last": "until the last rank is done", "max": "of the longest rank"}[metric]
    for title, axis, curves in panels:
        xs = [x for points in curves.values() for x, _ in points]
        ys = [y / 1e6 for points in curves.values() for _, y in points]
        for i, points in enumerate(curves.values()):
            script += [f"$d{i} << END", *(f"{x} {y / 1e6:.9f}" for x, y in points), "END"]
        script += AXES[axis] + [f"set xrange [{min(xs) / 1.5}:{max(xs) * 1.5}]", f"set yrange [{min(ys) / 2:.9f}:{max(ys) * 6:.9f}]",
                                f'set title "{title}"', f'set ylabel "median {what}"',
                                "plot " + ", ".join(f'$d{i} with linespoints linewidth 2 title "{name}"'
                                                    for i, name in enumerate(curves))]
    return "\n".join([*script, "unset multiplot", ""])


def can_plot():
    return shutil.which("gnuplot") is not None


def write_svg(path, rows, metric):
    """Returns an error message or None."""
    panels = panels_of(rows)
    if not panels:
        return "nothing was measured"
    done = subprocess.run(["gnuplot"], input=script_of(panels, metric, path), capture_output=True, text=True, timeout=120)
    return done.stderr.strip() if done.returncode else None
