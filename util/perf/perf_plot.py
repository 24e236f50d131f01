"""Draws latency with gnuplot.

A panel is an operation at one place, against size; where there are several places and only one size (a barrier has none) it is an
operation at one size, against the number of ranks.
"""
import shutil
import subprocess

AXES = {"bytes": ['set xtics 1,16', 'set format x "%.0b %BB"', 'set xlabel "bytes"'],
        "ranks": ["set xtics (2,4,8,16,32,64)", 'set format x "%g"', 'set xlabel "ranks"'],
        "": ["unset xtics", 'set xlabel ""']}


def panels_of(rows):
    """(title, axis, {stack: [(x, y), ...]}) of each."""
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
    """What went wrong, or None."""
    panels = panels_of(rows)
    if not panels:
        return "nothing was measured"
    done = subprocess.run(["gnuplot"], input=script_of(panels, metric, path), capture_output=True, text=True, timeout=120)
    return done.stderr.strip() if done.returncode else None
