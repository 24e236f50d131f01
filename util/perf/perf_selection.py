"""Derives the rows of a selection table from measurements.

Algorithm: at each place and size the fastest alternative wins, but the first alternative stays unless another is faster by
more than the margin: otherwise the table would follow the noise. Neighbouring sizes with the same winner become one row,
which extends to just below the next measured size; the last row is unbounded. Numbers of members and hosts extend to the
next measured ones in the same way. Each row has the measurements behind its choice as a comment.
"""
# Alternatives of the provider's table (FI_MCASTCOLL_SELECTION) for an operation, the fallback first.
PROVIDER = {
    "allgather": ("messages", "reduction", "chains:1", "chains:2", "chains:4", "chains:8", "chains:16"),
    "allreduce": ("levels", "split:2", "split:4", "split:8"),
}
# Alternatives of the Open MPI component's table (coll_mcastcoll_selection).
COMPONENT = ("here", "previous")
BLOCKS = ("allgather", "allgatherv", "gather", "scatter", "alltoall")


def bytes_in(table, operation, size, ranks):
    """The number of bytes used to select a row: the message or vector; for operations that move blocks, all members' blocks
    together in the provider's table, one block in the component's."""
    return size * ranks if table == "provider" and operation in BLOCKS else size


def ranges(values):
    """Each value as a range that extends to just below the next value."""
    ordered = sorted(set(values))
    found = {}
    for i, value in enumerate(ordered):
        low = value if i else None
        high = ordered[i + 1] - 1 if i + 1 < len(ordered) else None
        found[value] = (low, high)
    return found


def text_of(low, high):
    if low is None and high is None:
        return "*"
    if low == high:
        return str(low)
    return f"{'' if low is None else low}-{'' if high is None else high}"


def winner(times, margin):
    """times: microseconds by alternative, the fallback first; failed alternatives are missing."""
    first, best = next(iter(times)), min(times, key=times.get)
    return best if times[best] * (1 + margin) < times[first] else first


def choices(table, cells, margin):
    """cells: {(hosts, ranks, operation, size): {alternative: us}}.  Rows as (operation, members, hosts, bytes, choice, why)."""
    places = sorted({(hosts, ranks) for hosts, ranks, _, _ in cells})
    host_ranges = {hosts: (low or 2, high) for hosts, (low, high) in ranges(h for h, _ in places if h > 1).items()}
    host_ranges[1] = (1, 1)  # results in shared memory do not apply to wires
    rows = []
    for operation in dict.fromkeys(key[2] for key in cells):
        for hosts, ranks in places:
            members = ranges(r for h, r in places if h == hosts)[ranks]
            sizes = {bytes_in(table, operation, key[3], ranks): times for key, times in cells.items()
                     if key[:3] == (hosts, ranks, operation) and times}
            byte_ranges, last = ranges(sizes), None
            for size in sorted(sizes):
                times = sizes[size]
                choice = winner(times, margin)
                why = f"{size} B: " + ", ".join(f"{name} {us:.1f}" for name, us in times.items())
                if last and last[4] == choice:
                    last[3] = (last[3][0], byte_ranges[size][1])
                    last[5].append(why)
                    continue
                last = [operation, members, host_ranges[hosts], byte_ranges[size], choice, [why]]
                rows.append(last)
    return rows


def table_text(rows, head):
    lines = [*(f"# {line}" for line in head), f"# {'operation':<20} {'members':<9} {'hosts':<9} {'bytes':<21} algorithm"]
    for operation, members, hosts, sizes, choice, why in rows:
        lines += [f"# {line} us" for line in why]
        lines.append(f"{operation:<22} {text_of(*members):<9} {text_of(*hosts):<9} {text_of(*sizes):<21} {choice}")
    return "\n".join(lines) + "\n"
