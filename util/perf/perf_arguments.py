"""Common arguments of mcastcoll-perf and mcastcoll-tune: sizes, numbers, lists, and placement of ranks."""
import argparse
import os
import subprocess

from perf_stacks import HERE, Place, cores, program_path

MAX_RANKS = 63
MAX_BYTES = 1 << 30


class Parser(argparse.ArgumentParser):
    """--help shows the options in `daily`, with the text in `daily` if given, on one screen; --help-all shows all options."""
    def __init__(self, tool, usage, description, manual, daily):
        super().__init__(prog=tool, usage=usage, description=description, epilog=manual, allow_abbrev=False, add_help=False)
        self.daily = {"--help": None, "--help-all": None, "--version": None, **daily}
        self.add_argument("-h", "--help", action=Short, nargs=0, help="print the most common options, and exit")
        self.add_argument("--help-all", action="help", help="print all options, and exit")
        self.add_argument("--version", action="version", version=version(tool))

    def error(self, message):
        self.exit(2, f"{self.prog}: error: {message}; see --help\n")


class Short(argparse.Action):
    def __call__(self, parser, *_):
        for action in parser._actions:
            names = [name for name in action.option_strings if name in parser.daily]
            action.help = (parser.daily[names[0]] or action.help) if names else argparse.SUPPRESS
        parser.epilog = None
        parser.print_help()
        parser.exit()


def size(text):
    shift = {"K": 10, "M": 20, "G": 30}.get(text[-1:], 0)
    digits = text[:-1] if shift else text
    if not digits.isdigit() or int(digits) << shift > MAX_BYTES:
        raise argparse.ArgumentTypeError(f"'{text}': give bytes up to 1G, comma-separated, with K, M or G")
    return int(digits) << shift


def sizes(text):
    return list(dict.fromkeys(size(word) for word in text.split(",")))


def number(low, high, kind=int):
    def read(text):
        try:
            value = kind(text)
        except ValueError:
            value = None
        if value is None or not low <= value <= high:
            raise argparse.ArgumentTypeError(f"'{text}': give a number from {low:g} to {high:g}")
        return value
    return read


def numbers(low, high):
    one = number(low, high)
    return lambda text: list(dict.fromkeys(one(word) for word in text.split(",")))


def words(text):
    return [word for word in dict.fromkeys(text.split(",")) if word]


def add_times(p, rounds, seconds):
    p.add_argument("--rounds", type=number(1, 1000), default=5, metavar="R", help=rounds)
    p.add_argument("--seconds", type=number(0.01, 600, float), default=seconds, metavar="S", help=f"seconds of each repetition ({seconds})")
    p.add_argument("--timeout", type=number(1, 3600, float), default=60, metavar="S", help="seconds after which a repetition counts as hung (60)")
    p.add_argument("--limit", type=number(1, 86400, float), metavar="S", help="seconds for the whole run: fewer rounds if time is short")


def version(tool):
    """The version of the source; if installed, the version of the program beside this file."""
    source = os.path.join(HERE, "..", "..", "configure.ac")
    if os.path.exists(source):
        with open(source) as file:
            number = next(line for line in file if line.startswith("AC_INIT")).split("[")[2].split("]")[0]
        return f"{tool} {number}"
    program = program_path("mcastcoll-perf-fabric")
    said = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=30).stdout if program else ""
    return f"{tool} {said.split()[-1]}" if said.split() else tool


def places_of(p, args, yields, inner):
    """All combinations of --hosts and --ranks; yields is 'auto', 'yes' or 'no'."""
    if args.hosts and os.geteuid() != 0:
        p.error("argument --hosts: network namespaces need root")
    places = []
    for hosts in args.hosts or [0]:
        for ranks in args.ranks or [hosts or 4]:
            if hosts and ranks < hosts:
                p.error(f"argument --ranks: {ranks} ranks on {hosts} hosts: give at least one for each host")
            crowded = ranks > cores() or (hosts and ranks == cores())
            places.append(Place(ranks, hosts, args.loss, yields == "yes" or (yields == "auto" and crowded), inner))
    return places
