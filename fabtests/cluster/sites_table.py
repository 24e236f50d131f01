#!/usr/bin/env python3
"""The table of mpi_sites.sh, from the files of its jobs in one folder: text, CSV and JSON; with --strict also a result."""
import argparse
import csv
import glob
import json
import re
import statistics
import sys

TOLERANCE = 1.10   # allowance for headers, and for the launcher's traffic during a job
SMALL = 4096       # below this size, packets are counted instead of bytes
OPERATIONS = ("bcast", "barrier", "allreduce")


def load(path):
    with open(path) as file:
        return json.load(file)


def in_bytes(size):
    return int(size.rstrip("KM")) << {"K": 10, "M": 20}.get(size[-1], 0)


def hosts_of(sites, hosts):
    """Number of hosts in each site, by the rule of util/cluster/up."""
    if "+" in sites:
        return [int(n) for n in sites.split("+")]
    count = [0] * int(sites)
    for host in range(hosts):
        count[host * len(count) // hosts] += 1
    return count


def allowed(link, operation, here, mesh):
    """Messages per operation over a link, both directions, in a flat tree of sites in which every rank is root equally
    often."""
    a, b = (link["from"], link["to"]) if link["from"] < link["to"] else (link["to"], link["from"])
    all_hosts, others = sum(here), len(here) - 1
    if operation != "bcast":  # up to the first site and down again
        return 2.0
    if mesh:
        return (here[a] + here[b]) / all_hosts
    return (here[b] * others + all_hosts - here[b]) / all_hosts


def crossings(prefix, operation, size, here, mesh):
    """The busiest link of one operation: crossings per operation, the allowed number, packets and bytes."""
    counted = {int(re.search(r"\.(\d+)\.json$", path)[1]): load(path)["links"] for path in glob.glob(f"{glob.escape(prefix)}.*.json")}
    times = max(counted) - 1
    if len(counted) != 2 or 1 not in counted:
        sys.exit(f"{prefix}: not two counts but {sorted(counted)}")
    links = {}
    for one, many in zip(counted[1], counted[times + 1]):
        link = links.setdefault(one["link"], {"packets": 0.0, "bytes": 0.0, "allowed": allowed(one, operation, here, mesh)})
        link["packets"] += (many["payload_packets"] - one["payload_packets"]) / times
        link["bytes"] += (many["payload_bytes"] - one["payload_bytes"]) / times
    for link in links.values():
        link["crossings"] = link["packets"] if size < SMALL else link["bytes"] / size
    if not links:  # a single site
        return {"packets": 0.0, "bytes": 0.0, "crossings": 0.0, "allowed": 1.0}
    return max(links.values(), key=lambda link: link["crossings"] / link["allowed"])


def rows_of(args):
    rows = []
    for sites in args.sites.split(","):
        here = hosts_of(sites, args.hosts)
        times = {}
        for stack in args.stacks.split(","):
            for r in range(1, args.rounds + 1):
                for row in load(f"{args.jobs}/time.{sites}.{stack}.{r}.json")["rows"]:
                    times.setdefault((row["operation"], row["bytes"], stack), []).append(row["median_us"])
        for operation, size, stack in sorted(times, key=lambda k: (OPERATIONS.index(k[0]), k[1], args.stacks.split(",").index(k[2]))):
            written = next(s for s in (str(size), f"{size >> 10}K", f"{size >> 20}M")
                           if in_bytes(s) == size and glob.glob(f"{glob.escape(args.jobs)}/cross.{sites}.{stack}.{operation}.{s}.1.json"))
            link = crossings(f"{args.jobs}/cross.{sites}.{stack}.{operation}.{written}", operation, size, here, args.mesh)
            rounds = times[operation, size, stack]
            rows.append({"sites": sites, "operation": operation, "bytes": size, "stack": stack, "median_us": statistics.median(rounds),
                         "crossings": link["crossings"], "allowed": link["allowed"], "wan_payload_packets": link["packets"],
                         "wan_payload_bytes": link["bytes"], "rounds": rounds})
    return rows


def show(rows, stacks, args):
    print(f"{args.hosts} hosts of {args.ranks} ranks on {args.cores} cores; links of {args.wan} (us, Mbit/s, % lost)"
          f"{', each two sites linked' if args.mesh else ''}; {args.rounds} rounds, every rank root in turn")
    print(f"{'sites':>7} {'operation':<9} {'bytes':>8}  " + "  ".join(f"{f'{s} us':>12} {'crossed':>7}/allowed" for s in stacks))
    for i in range(0, len(rows), len(stacks)):
        cell = rows[i:i + len(stacks)]
        print(f"{cell[0]['sites']:>7} {cell[0]['operation']:<9} {cell[0]['bytes']:>8}  "
              + "  ".join(f"{r['median_us']:>12.0f} {r['crossings']:>7.2f}/{r['allowed']:<7.2f}" for r in cell))
    print("crossed: per operation over the link that is most above what is allowed, both directions, in message sizes, or, below 4 KiB,\n"
          "in packets with data")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("jobs", "sites", "stacks", "wan", "out"):
        parser.add_argument(f"--{name}", required=True)
    for name in ("hosts", "ranks", "rounds", "cores", "mesh"):
        parser.add_argument(f"--{name}", required=True, type=int)
    parser.add_argument("--strict", action="store_true")
    args = parser.parse_args()
    rows, stacks = rows_of(args), args.stacks.split(",")
    with open(f"{args.out}.json", "w") as file:
        json.dump({"hosts": args.hosts, "ranks_per_host": args.ranks, "cores": args.cores, "wan": args.wan, "mesh": bool(args.mesh),
                   "stacks": stacks, "rows": rows}, file, indent=1)
        file.write("\n")
    with open(f"{args.out}.csv", "w", newline="") as file:
        table = csv.DictWriter(file, [key for key in rows[0] if key != "rounds"], extrasaction="ignore", lineterminator="\n")
        table.writeheader()
        for row in rows:
            table.writerow({k: f"{v:.3f}" if isinstance(v, float) else v for k, v in row.items()})
    show(rows, stacks, args)
    over = [r for r in rows if r["stack"] == "mcastcoll" and r["crossings"] > TOLERANCE * r["allowed"]]
    for r in over:
        print(f"mcastcoll: {r['operation']} of {r['bytes']} bytes in {r['sites']} sites crosses {r['crossings']:.2f} times, not {r['allowed']:.2f}")
    return 1 if over and args.strict else 0


if __name__ == "__main__":
    sys.exit(main())
