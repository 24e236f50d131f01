#!/usr/bin/env python3
"""The table of quickstart.sh, from what its runs left in one folder.

What is missing there (a run that failed, counters that nobody wrote) is shown as a dash and is null in the JSON, never as zero.
"""
import argparse
import glob
import json
import sys


def load(path):
    try:
        with open(path) as file:
            return json.load(file)
    except (OSError, ValueError):
        return None


def in_bytes(size):
    return int(size.rstrip("KM")) << {"K": 10, "M": 20}.get(size[-1], 0)


def summed(counters, *names):
    """The sum over all processes of the first of these counters that they have."""
    for name in names:
        if counters and all(name in c for c in counters):
            return sum(c[name] for c in counters)
    return None


def median_us(path, size):
    for row in (load(path) or {}).get("rows", []):
        if row["operation"] == "bcast" and row["bytes"] == size:
            return row["median_us"]
    return None


def row_of(work, loss, size):
    folder = f"{work}/stats/{loss}.{size}"
    check = load(f"{folder}/check.json")
    hosts = (load(f"{folder}/loss.json") or {}).get("hosts", [])
    counters = [c for c in map(load, glob.glob(f"{folder}/s.*.json")) if c]
    return {
        "loss_percent": float(loss),
        "bytes": in_bytes(size),
        "verified": bool(check and check["ok"]),
        "mcastcoll_us": median_us(f"{work}/time.{loss}.mcastcoll", in_bytes(size)),
        "openmpi_us": median_us(f"{work}/time.{loss}.openmpi", in_bytes(size)),
        "datagrams_sent": summed(counters, "datagrams_sent"),
        "deliveries": summed(hosts, "matched"),
        "deliveries_lost": summed(hosts, "dropped"),
        "fragments_repaired": summed(counters, "fragments_repaired"),
    }


def shown(value, form="{}"):
    return "-" if value is None else form.format(value)


def print_table(rows, hosts):
    print(f"\nMPI_Bcast on {hosts} hosts, one rank on each; medians, every rank being root in turn")
    print(f"{'loss':>5} {'bytes':>9} {'mcastcoll us':>13} {'Open MPI us':>12} {'ratio':>6}"
          f" {'sent':>8} {'delivered':>10} {'lost':>8} {'repaired':>9}  bytes right")
    for r in rows:
        both = r["mcastcoll_us"] and r["openmpi_us"]
        ratio = r["mcastcoll_us"] / r["openmpi_us"] if both else None
        print(f"{r['loss_percent']:>4g}% {r['bytes']:>9} {shown(r['mcastcoll_us'], '{:.0f}'):>13}"
              f" {shown(r['openmpi_us'], '{:.0f}'):>12} {shown(ratio, '{:.2f}'):>6} {shown(r['datagrams_sent']):>8}"
              f" {shown(r['deliveries']):>10} {shown(r['deliveries_lost']):>8} {shown(r['fragments_repaired']):>9}"
              f"  {'all' if r['verified'] else 'NO'}")
    print("Open MPI: its own broadcast (coll/tuned) over the same inner provider; it uses no multicast, so loses none.\n"
          "sent: multicast datagrams; delivered: packets with them that reached the hosts' links, of these lost (where the\n"
          "kernel segments late, a run of datagrams travels, and is lost, as one packet); repaired: fragments that came\n"
          "another way.  Counted while the bytes were checked, from the joining of the group on.")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--work", required=True, help="folder of the runs")
    parser.add_argument("--hosts", required=True, type=int)
    parser.add_argument("--loss", required=True, help="percentages, comma-separated")
    parser.add_argument("--sizes", required=True, help="message sizes, comma-separated")
    parser.add_argument("--json", required=True, help="where to write the rows")
    args = parser.parse_args()
    rows = [row_of(args.work, loss, size) for loss in args.loss.split(",") for size in args.sizes.split(",")]
    with open(args.json, "w") as file:
        json.dump({"hosts": args.hosts, "rows": rows}, file, indent=1)
        file.write("\n")
    print_table(rows, args.hosts)
    could = [r for r in rows if r["loss_percent"] < 100]
    if could and not any(r["deliveries"] for r in could):
        print("No host was sent a single multicast datagram: something else carried these broadcasts.  FI_LOG_LEVEL=info tells why.")
        return 1
    return 0 if all(r["verified"] for r in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
