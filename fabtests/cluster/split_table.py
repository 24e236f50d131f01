#!/usr/bin/env python3
"""The table of split_patterns.sh, from the files of its jobs in one folder: text, CSV, JSON and, if gnuplot is installed,
SVG."""
import argparse
import csv
import glob
import json
import os
import re
import shutil
import statistics
import subprocess
import sys

COUNTED = ("retransmissions", "timeouts", "out_of_order")
ORDER = ("BT", "SP", "LU", "CG", "MG", "FT", "IS", "EP")


def load(path):
    with open(path) as file:
        return json.load(file)


def restarts_of(snapshot):
    return sum(stream.get("idle_restarts", 0) for gateway in snapshot["sessions"] for session in gateway.get("sessions", [])
               for stream in session.get("streams", []))


def read_jobs(folder):
    runs = []
    for path in sorted(glob.glob(f"{glob.escape(folder)}/*.job")):
        kernel, way, traffic, rounds = re.fullmatch(r"(\w+)\.(\w+)\.(\w+)\.(\d+)\.job", os.path.basename(path)).groups()
        try:
            job = load(path)
        except ValueError:  # the job did not complete
            continue
        before, after = load(path[:-3] + "before"), load(path[:-3] + "after")
        run = {"kernel": kernel, "way": way, "traffic": traffic, "round": int(rounds), "seconds": job["seconds"], "digest": job["digest"],
               "bytes": job["bytes"], "messages": job["messages"], "pingpong": job.get("pingpong"),
               "idle_restarts": job["idle_restarts"] + restarts_of(after) - restarts_of(before)}
        run["iterations"], run["long_connections"] = job["iterations"], job["long_connections"] / 2  # each has two ends
        split = way in ("gateway", "plain")
        for name in COUNTED:  # the long distance is between hosts, or between gateways
            counts = {where: after[where][name] - before[where][name] for where in ("hosts", "gateways")}
            run[name] = counts["gateways" if split else "hosts"]
            run["local_" + name] = counts["hosts"] if split else 0
        runs.append(run)
    return runs


def cells_of(runs):
    groups = {}
    for run in runs:
        groups.setdefault((run["kernel"], run["traffic"], run["way"]), []).append(run)
    cells = []
    for (kernel, traffic, way), group in groups.items():
        cell = {"kernel": kernel, "traffic": traffic, "way": way, "runs": len(group)}
        for name in ("seconds", "iterations", "long_connections", "idle_restarts", *COUNTED, *("local_" + name for name in COUNTED)):
            cell[name] = statistics.median(run[name] for run in group)
        cell["least"], cell["most"] = min(r["seconds"] for r in group), max(r["seconds"] for r in group)
        cells.append(cell)
    base = {(c["kernel"], c["traffic"]): c["seconds"] for c in cells if c["way"] == "direct"}
    for cell in cells:
        direct = base.get((cell["kernel"], cell["traffic"]))
        cell["relative"] = cell["seconds"] / direct if direct else None
    return sorted(cells, key=lambda c: (ORDER.index(c["kernel"]), c["traffic"] != "none", c["way"]))


def show(cells):
    print(f"{'':8}{'traffic':9}{'way':9}{'seconds':>9}{'relative':>10}{'least':>9}{'most':>9}{'restarts':>10}{'resent':>8}{'timeouts':>10}{'unordered':>11}{'local: timeouts':>17}{'unordered':>11}")
    for c in cells:
        relative = f"{c['relative']:.2f}" if c["relative"] else "-"
        print(f"{c['kernel']:8}{c['traffic']:9}{c['way']:9}{c['seconds']:9.2f}{relative:>10}{c['least']:9.2f}{c['most']:9.2f}"
              f"{c['idle_restarts']:10.0f}{c['retransmissions']:8.0f}{c['timeouts']:10.0f}{c['out_of_order']:11.0f}{c['local_timeouts']:17.0f}{c['local_out_of_order']:11.0f}")


def show_pingpong(runs):
    table = {}
    for run in runs:
        for point in run["pingpong"] or []:
            table.setdefault((run["traffic"], point["bytes"]), {}).setdefault(run["way"], []).append(point["median_us"])
    for (traffic, size), ways in sorted(table.items()):
        print(f"traffic {traffic}, {size:8} bytes, half a round trip in us: " +
              ", ".join(f"{way} {statistics.median(times):.1f}" for way, times in sorted(ways.items())))
    return [{"traffic": t, "bytes": s, **{w: statistics.median(v) for w, v in ways.items()}} for (t, s), ways in sorted(table.items())]


def draw(cells, path):
    """Bars: time relative to direct TCP."""
    cells = [c for c in cells if c["relative"]]
    if not shutil.which("gnuplot") or all(c["way"] == "direct" for c in cells):
        return
    traffics = list(dict.fromkeys(c["traffic"] for c in cells))
    ways = [w for w in dict.fromkeys(c["way"] for c in cells) if w != "direct"]
    curves = [(w, t) for t in traffics for w in ways]
    kernels = list(dict.fromkeys(c["kernel"] for c in cells))
    value = {(c["kernel"], c["way"], c["traffic"]): c["relative"] for c in cells}
    rows = "\n".join(" ".join([k, *(str(value.get((k, w, t)) or "NaN") for w, t in curves)]) for k in kernels)
    plots = ", ".join(f'$d using {i + 2}:xtic(1) title "{w}, traffic {t}"' for i, (w, t) in enumerate(curves))
    script = (f'set terminal svg size 900,400 noenhanced background "white"\nset output "{path}"\n$d << END\n{rows}\nEND\n'
              'set style data histograms\nset style fill solid 0.7\nset yrange [0:*]\nset ylabel "time, direct TCP = 1"\nset grid y\n'
              f'set key top right\nplot {plots}, 1 with lines linecolor "black" notitle\n')
    subprocess.run(["gnuplot"], input=script, text=True, check=True, timeout=60)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--about", default="")
    options = parser.parse_args()
    runs = read_jobs(options.jobs)
    if not runs:
        sys.exit("no job has left a result")
    cells = cells_of([run for run in runs if run["kernel"] in ORDER])
    print(options.about)
    show(cells)
    pingpong = show_pingpong(runs)
    with open(options.out + ".json", "w") as file:
        json.dump({"about": options.about, "cells": cells, "pingpong": pingpong, "runs": runs}, file, indent=1)
    with open(options.out + ".csv", "w", newline="") as file:
        writer = csv.DictWriter(file, list(cells[0]) if cells else list(pingpong[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(cells or pingpong)
    draw(cells, options.out + ".svg")
    for kernel in {run["kernel"] for run in runs}:
        if len({run["digest"] for run in runs if run["kernel"] == kernel}) != 1:
            sys.exit(f"{kernel}: results differ")


if __name__ == "__main__":
    main()
