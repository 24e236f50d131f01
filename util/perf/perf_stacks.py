"""Stacks and their launch: the table stacks.conf, and the command lines that follow from the table.

This module runs only a compiler, for an MPI without a measuring program; compiled programs are kept in the user's cache
folder, named after the source's contents.
"""
import hashlib
import os
import shlex
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.realpath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
LAB = os.path.join(TOP, "util", "cluster")
LAUNCHERS = ("openmpi", "mpich", "fabric", "floor")
MPI_SOURCES = ("perf_mpi.c", "perf_floor.c", "perf_floor.h", "perf_data.h")
# sched_yield() does not yield to processes of another session, hence --leave-session-attached.
OPENMPI = ["--allow-run-as-root", "--leave-session-attached", "--oversubscribe"]


class StackError(Exception):
    """An error in a stack, a table or this machine."""


def find_program(*names):
    return next((path for path in map(shutil.which, names) if path), None)


def is_setting(word):
    name, equals, _ = word.partition("=")
    return bool(equals) and name.replace("_", "").isalnum() and not name[0].isdigit()


class Stack:
    def __init__(self, name, launcher, words):
        if launcher not in LAUNCHERS:
            raise StackError(f"stack '{name}': '{launcher}' is not a launcher: give {', '.join(LAUNCHERS)}")
        if not name or not all(c.isalnum() or c in "-_.+" for c in name):
            raise StackError(f"'{name}' is not a valid name of a stack: use letters, digits and -_.+ only")
        self.name, self.launcher = name, launcher
        self.settings = dict(word.split("=", 1) for word in words if is_setting(word))
        self.options = [word for word in words if not is_setting(word)]

    def level(self):
        return "fabric" if self.launcher == "fabric" else "mpi"

    def is_floor(self):
        """The lower bound: has a ratio in the table, but stacks are not dropped or failed for being slower."""
        return self.launcher == "floor"

    def words(self):
        return [f"{name}={value}" for name, value in self.settings.items()] + self.options


def parse_row(text, where):
    try:
        words = shlex.split(text, comments=True)
    except ValueError as problem:
        raise StackError(f"{where}: {problem}") from problem
    if not words:
        return None
    if len(words) < 2:
        raise StackError(f"{where}: give NAME LAUNCHER WORDS..., LAUNCHER being one of {', '.join(LAUNCHERS)}")
    return Stack(words[0], words[1], words[2:])


def read_tables(paths, rows):
    """Stacks by name: from stacks.conf and other tables, and `rows` from --stack, 'NAME=LAUNCHER WORDS...'."""
    stacks = {}
    for path in [os.path.join(HERE, "stacks.conf"), *paths]:
        try:
            with open(path) as file:
                lines = file.readlines()
        except OSError as problem:
            raise StackError(f"{path}: {problem.strerror}") from problem
        for number, line in enumerate(lines, 1):
            stack = parse_row(line, f"{path}:{number}")
            if stack:
                stacks[stack.name] = stack
    for row in rows:
        name, equals, words = row.partition("=")
        if not equals:
            raise StackError(f"--stack '{row}': give 'NAME=LAUNCHER WORDS...'")
        stack = parse_row(f"{name} {words}", f"--stack '{row}'")
        stacks[stack.name] = stack
    return stacks


def build_folder():
    """The build that contains this script; None if installed."""
    named = os.environ.get("MCASTCOLL_BUILD")
    if named:
        return named
    build = os.path.join(TOP, "build")
    return build if os.path.exists(os.path.join(TOP, "configure.ac")) and os.path.isdir(build) else None


def program_path(name):
    build = build_folder()
    places = [os.path.join(build, "util", "perf")] if build else []
    places.append(os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(HERE))), "libexec", "mcastcoll"))
    return next((path for path in (os.path.join(place, name) for place in places) if os.access(path, os.X_OK)), None)


def environment():
    """The caller's environment, with this build's provider and component unless the caller has set others."""
    env, build = dict(os.environ), build_folder()
    if build:
        env.setdefault("MCASTCOLL_BUILD", build)
        provider, component = os.path.join(build, "lib"), os.path.join(build, "lib", "openmpi")
        if os.path.isdir(provider):
            env.setdefault("FI_PROVIDER_PATH", provider)
        if os.path.isdir(component):  # with one folder missing, Open MPI would find none of its own components
            env.setdefault("OMPI_MCA_opal_mca_base_component_path", component + ":SYSTEM_DEFAULT:USER_DEFAULT")
    return env


def compiled_for(launcher):
    """The MPI program for a launcher's MPI; compiled if missing."""
    ready = program_path("mcastcoll-perf-mpi") if launcher != "mpich" else None
    if ready:
        return ready
    compiler = find_program(*(["mpicc.mpich"] if launcher == "mpich" else ["mpicc.openmpi", "mpicc"]))
    if not compiler:
        raise StackError(f"the compiler of {launcher} is missing: run util/install-deps")
    sources = [os.path.join(HERE, name) for name in MPI_SOURCES]
    digest = hashlib.sha256(compiler.encode() + b"".join(open(path, "rb").read() for path in sources)).hexdigest()[:12]
    cache = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "mcastcoll")
    program = os.path.join(cache, f"mcastcoll-perf-{launcher}-{digest}")
    if not os.path.exists(program):
        os.makedirs(cache, exist_ok=True)
        own = f"{program}.{os.getpid()}"
        done = subprocess.run([compiler, "-O2", "-o", own, *(path for path in sources if path.endswith(".c"))],
                              capture_output=True, text=True, timeout=120)
        if done.returncode != 0:
            raise StackError(f"{compiler} failed: {done.stderr.strip()[-400:]}")
        os.replace(own, program)
    return program


class Place:
    """Placement of a job's ranks: hosts is 0 on this machine itself, else the number of hosts of the cluster."""

    def __init__(self, ranks, hosts, loss=0.0, yields=True, inner=None):
        self.ranks, self.hosts, self.loss, self.yields, self.inner = ranks, hosts, loss, yields, inner

    def key(self):
        return self.hosts, self.ranks

    def __str__(self):
        return f"{self.hosts} hosts, {self.ranks} ranks" if self.hosts else f"{self.ranks} ranks"


def openmpi_command(stack, place, program, env):
    options = list(stack.options)
    chosen = {options[i + 1] for i in range(len(options) - 2) if options[i] == "--mca"}
    if place.hosts:
        env["STACK"], env["YIELD"] = "none", "1" if place.yields else "0"
        command = [os.path.join(LAB, "run"), "-n", str(place.ranks)]
    else:
        mpirun = find_program("mpirun.openmpi", "mpirun")
        if not mpirun:
            raise StackError("mpirun of Open MPI is missing: run util/install-deps")
        # A core for each rank if there are enough, as Open MPI does by default. On the cluster all hosts would bind to the
        # same cores.
        command = [mpirun, *OPENMPI, "--bind-to", "core" if place.ranks <= cores() else "none"]
        command += ["--mca", "mpi_yield_when_idle", "1" if place.yields else "0", "-n", str(place.ranks)]
        if "ob1" in options and "btl" not in chosen:
            options += ["--mca", "btl", "self,vader"]
        if "FI_PROVIDER_PATH" in env:
            command += ["-x", "FI_PROVIDER_PATH"]
    for name in stack.settings:
        if not (place.hosts and name.startswith("FI_")):  # forwarded by util/cluster/run
            command += ["-x", name]
    floor = ["--floor", "yield" if place.yields else "spin"] if stack.is_floor() else []
    return command + options + [program, *(["--stay"] if place.hosts else []), *floor]


def mpich_command(stack, place, program, env):
    mpirun = find_program("mpirun.mpich")
    if not mpirun:
        raise StackError("mpirun of MPICH is missing: run util/install-deps")
    if not place.hosts:
        return [mpirun, "-bind-to", "none", *stack.options, "-n", str(place.ranks), program]
    hosts = [f"h{i}" for i in range(place.hosts)]
    per_host = -(-place.ranks // place.hosts)
    env.setdefault("UCX_NET_DEVICES", "eth0")
    env.setdefault("UCX_TLS", "tcp,self,sm")
    return [os.path.join(LAB, "on"), hosts[0], mpirun, "-bind-to", "none", "-launcher", "rsh", "-launcher-exec",
            os.path.join(LAB, "rsh"), "-iface", "eth0", "-hosts", ",".join(hosts), "-ppn", str(per_host), *stack.options,
            "-n", str(place.ranks), program, "--stay"]


def fabric_command(stack, place, timeout_s):
    program = program_path("mcastcoll-perf-fabric")
    if not program:
        raise StackError("mcastcoll-perf-fabric is missing: run util/build")
    command = [program, "--members", str(place.ranks), "--timeout", "100000", "--wait", str(max(1, int(timeout_s)))]
    if place.inner:
        command += ["--inner", place.inner]
    if place.loss:
        command += ["--fault", f"loss={place.loss:g}"]
    return command + stack.options


def launch_line(stack, place, timeout_s):
    """The command without its last words, and its environment."""
    env = environment()
    env.update(stack.settings)
    if stack.launcher == "fabric":
        return fabric_command(stack, place, timeout_s), env
    if place.inner:
        env["FI_MCASTCOLL_INNER"] = place.inner
        stack = Stack(stack.name, stack.launcher, [*stack.words(), f"FI_MCASTCOLL_INNER={place.inner}"])
    line = mpich_command if stack.launcher == "mpich" else openmpi_command
    return line(stack, place, compiled_for(stack.launcher), env), env


def cores():
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count()
