#!/usr/bin/env python3
"""Evaluates the counters of one case of mpi_cut.sh: a line "ok ..." or "FAIL ..." for each condition."""
import argparse
import glob
import json


def load(path):
    with open(path) as file:
        return json.load(file)


def counters(folder):
    """By host number, from stats.HOST.PID.json."""
    return {int(path.split(".")[-3].removeprefix("h")): load(path) for path in glob.glob(f"{folder}/stats.*.json")}


def holds(good, text):
    print(f"{'ok  ' if good else 'FAIL'} {text}")


def receptions(first, count, host, args):
    """Number of the broadcasts [first, first + count) received by the host, which is not their root."""
    if args.root != "rotate":
        return 0 if host == int(args.root) else count
    return sum(1 for number in range(first, first + count) if number % args.hosts != host)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--case", required=True)
    parser.add_argument("--hosts", required=True, type=int)
    parser.add_argument("--victim", required=True, help="the host that was cut; empty: all")
    parser.add_argument("--root", required=True, help="a rank or rotate")
    args = parser.parse_args()
    phases = load(f"{args.folder}/phases.json")["phases"]
    stats = counters(args.folder)
    holds(sorted(stats) == list(range(args.hosts)), f"every host left its counters ({len(stats)})")

    # The hosts that do not receive during the cut: the victim, or the hosts no longer reached by the victim, or all.
    deaf = [int(args.victim)] if args.case in ("deaf", "large") else [h for h in stats if args.case == "all" or h != int(args.victim)]
    periods, number = [], 0
    for phase in phases:
        for count in (phase["broadcasts"], phase["between"]):
            periods.append(sum(receptions(number, count, host, args) for host in deaf))
            number += count
    before, cutting, cut, mending, after, _ = periods
    repaired = sum(stats[host]["fragments_repaired"] for host in deaf)
    received = sum(stats[host]["fragments_by_multicast"] for host in deaf)
    each = (repaired + received) / sum(periods)
    holds(each == round(each) and each >= 1, f"every receiver concerned got each fragment once: {each:g} a broadcast")
    each = round(each)
    print(f"     fragments to receivers concerned: {before * each} before, {cut * each} while it was cut, {after * each} after, "
          f"{(cutting + mending) * each} on the borders; {repaired} were repaired, {received} came by multicast")
    holds(repaired >= cut * each, f"all {cut * each} that were cut came by repair")
    # If multicast had not recovered, all of the last phase would have been repaired.
    most = (cutting + cut + mending + after // 2) * each
    holds(repaired < most, f"repairs stopped when it was restored: {repaired} are fewer than {most}")
    holds(received > (before + cutting + mending) * each,
                  f"multicast was received again: {received} are more than the {(before + cutting + mending) * each} before that")
    failed = sum(s["operations_failed"] for s in stats.values())
    holds(failed == 0, f"operations that failed: {failed}")
    changes = {name: sum(s[name] for s in stats.values()) for name in ("multicast_demotions", "multicast_promotions")
             if all(name in s for s in stats.values())}
    for name, count in changes.items():
        holds(count >= 1, f"{name}: {count}")
    if not changes:
        print("     this build does not count demotions and promotions")


if __name__ == "__main__":
    main()
