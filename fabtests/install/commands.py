#!/usr/bin/env python3
"""Runs the command lines of README.md, HACKING.md, docs/ and man/ as they are written, on a scratch system.

A command line is a line of an indented block (Markdown; text other than commands is fenced with ```), of an .EX block
(manual pages), or a piece of code in a sentence that begins with one of our commands or with a launcher's.  First all
of them run in the tree, each in a separate shell after ". build/env"; then, in an empty folder and without it, those
that name no path of the tree and took at most REPEAT_S seconds, with the files that "make install" has installed. Each
must exit with 0.  mcastcoll must have served jobs started with mpirun, and programs with the interposer.

commands.unrun lists the commands not to run, with reasons.  A command listed there that is in no document counts as a
failure.
"""
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.realpath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
ELSEWHERE = "/tmp/elsewhere"
LONGEST_S = 900  # a longer command counts as hung
REPEAT_S = 8  # a command that took longer in the tree is not repeated with the installed files
INLINE = re.compile(r"(man|fi_info|ompi_info|mpirun|mpiexec\S*|mcastcoll-\w+) \S")
OF_THE_TREE = re.compile(r"(^|[\s(;])(\.|make|\S*\bautoreconf|(\.\.?/)?(build|util|fabtests|docs)\S*/\S+|cd|\./util/\S+)(\s|$)|\bbuild/|\bdocs/figures/")
# Commands that run until stopped, or until a client has connected, with the port of each.
SERVERS = {
    "mcastcoll-gateway --sites sites.conf --site lyon": 7400,
    "FI_PROVIDER=mcastcoll fi_pingpong -p mcastcoll -e rdm": 47592,
}
# An ordinary user's shell, with these differences: root may run jobs, this machine has four slots, and counters are
# written.
ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LANG": "C.UTF-8", "TERM": "dumb",
    "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_MCA_orte_default_hostfile": "/tmp/slots", "FI_MCASTCOLL_STATS": "/tmp/counted/by",
}
PROGRAM = r"""
#include <mpi.h>
#include <stdio.h>
#include <string.h>
int main(int count, char** words) {
    int rank, size, sum;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 1; i <= 100; ++i) {  // more than enough for a group to form
        int word = 0 == rank ? i : 0;
        MPI_Bcast(&word, 1, MPI_INT, 0, MPI_COMM_WORLD);
        MPI_Allreduce(&word, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        if (word != i || sum != i * size) MPI_Abort(MPI_COMM_WORLD, 1);
    }
    char line[4096];
    FILE* maps = fopen("/proc/self/maps", "r");
    while (0 == rank && maps && fgets(line, sizeof(line), maps))
        if (strstr(line, "r-xp") && strrchr(line, '/')) printf("loaded %s", strrchr(line, '/') + 1);
    MPI_Finalize();
    return 0;
}
"""


def whole(lines):
    """Lines joined as a shell would, without comments: (number, command)."""
    begun, at = [], 0
    for number, line in lines:
        if not begun and (not line.strip() or line.lstrip().startswith("#")):
            continue
        at = at if begun else number
        begun.append(re.sub(r"\s+# .*$", "", line).strip())
        text = "\n".join(begun)
        if text.endswith("\\") or subprocess.run(["bash", "-n", "-c", text], stderr=subprocess.DEVNULL).returncode:
            continue
        yield at, re.sub(r"\s*\\\n\s*", " ", text)
        begun = []
    if begun:
        yield at, "\n".join(begun)  # no shell accepts the line, which therefore fails when it is run


def of_markdown(text):
    fenced, block, previous = False, [], ""
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            fenced = not fenced
        elif not fenced and line.startswith("    ") and (block or not previous.strip()):
            block.append((number, line))
        elif not fenced:
            yield from whole(block)
            block = []
            yield from ((number, code) for code in re.findall(r"`([^`]+)`", line) if INLINE.match(code))
        previous = line
    yield from whole(block)


def of_manual(text):
    block = None
    for number, line in enumerate(text.splitlines(), 1):
        if line == ".EX":
            block = []
        elif line == ".EE" and block is not None:
            yield from whole(block)
            block = None
        elif block is not None:
            block.append((number, line.replace("\\-", "-").replace("\\e", "\\")))


def documents():
    for path in ["README.md", "HACKING.md", *sorted(glob.glob("docs/*.md")), *sorted(glob.glob("man/*.[17]"))]:
        with open(path) as file:
            text = file.read()
        for number, command in (of_markdown if path.endswith(".md") else of_manual)(text):
            yield f"{path}:{number}", command


def unrun():
    with open(os.path.join(HERE, "commands.unrun")) as file:
        return {line.rstrip("\n").replace("\\n", "\n") for line in file if line.strip() and not line.startswith("#")}


def counted():
    """Number of operations served by mcastcoll, and of reporting processes."""
    total, processes = 0, 0
    for path in glob.glob(ENVIRONMENT["FI_MCASTCOLL_STATS"] + "*.json"):
        with open(path) as file:
            counters = json.load(file)
        total, processes = total + counters["operations_completed"] + counters["host_operations"], processes + 1
    return total, processes


def listening(port):
    """Checked in the kernel's tables, because a test connection would count as a client."""
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with open(table) as file:
            if any(row.split()[1].endswith(f":{port:04X}") and row.split()[3] == "0A" for row in list(file)[1:]):
                return True
    return False


def text_of(path):
    with open(path, errors="replace") as file:
        return file.read()


class Test:
    def __init__(self):
        self.passed = self.failed = self.logs = 0
        self.servers = []
        self.long = set()  # commands not to repeat

    def say(self, where, command, reason="", seconds=None, said=""):
        took = "" if seconds is None else f" ({seconds:.1f} s)"
        first = command.splitlines()[0]
        if not reason:
            self.passed += 1
            print(f"ok   {where} {first}{took}", flush=True)
            return
        self.failed += 1
        print(f"FAIL {where} {first}{took}: {reason}", flush=True)
        for line in said.splitlines()[-25:]:
            print("     " + line, flush=True)

    def start(self, command, folder, prefix):
        shutil.rmtree("/tmp/counted", ignore_errors=True)
        os.mkdir("/tmp/counted")
        mpich = "mpich" in command
        shutil.copy("/tmp/program.mpich" if mpich else "/tmp/program.openmpi", os.path.join(folder, "program"))
        self.logs += 1
        log = f"/tmp/said.{self.logs}"
        with open(log, "w") as said:
            return log, subprocess.Popen(["bash", "-c", prefix + command], cwd=folder, env=ENVIRONMENT, stdin=subprocess.DEVNULL, stdout=said,
                                         stderr=subprocess.STDOUT, start_new_session=True)

    def run(self, where, command, folder, prefix):
        began = time.monotonic()
        log, job = self.start(command, folder, prefix)
        if command in SERVERS:
            while not listening(SERVERS[command]) and job.poll() is None and time.monotonic() - began < LONGEST_S:
                time.sleep(0.05)
            self.servers.append((where, command, log, job, began))
            return
        try:
            code = job.wait(LONGEST_S)
            reason = f"code {code}" if code else ""
        except subprocess.TimeoutExpired:
            os.killpg(job.pid, signal.SIGKILL)
            job.wait()
            reason = f"no end within {LONGEST_S} s"
        said = text_of(log)
        if reason == "code 1" and "mcastcoll-perf" in command and "hung, nothing for" in said and not re.search("it ended|no JSON|were wrong", said):
            reason = ""  # the manual page says this of a stack that hangs, and any stack may hang on a busy machine
        if not reason and "No manual entry" in said:
            reason = "there is no such page"
        if not reason and re.search(r"(^|\s)mpi(run|exec\S*) .*\./program", command):
            total, processes = counted()
            # MPICH's programs use mcastcoll only with the interposer.
            served = "mpich" not in command or "libmcastcoll-pmpi" in command
            if served and (total == 0 or processes < 2):
                reason = f"mcastcoll served {total} operations of {processes} processes"
            for library in re.findall(r"LD_PRELOAD[= ](?:\S*/)?(\S+\.so)", command):
                if "loaded " + library not in said:
                    reason = f"{library} was not loaded"
        took = time.monotonic() - began
        if took > REPEAT_S:
            self.long.add(command)
        self.say(where, command, reason, took, said)

    def end_servers(self):
        for where, command, log, job, began in self.servers:
            try:
                job.wait(1 if "gateway" in command else LONGEST_S)
            except subprocess.TimeoutExpired:
                os.killpg(job.pid, signal.SIGTERM)
            try:
                code = job.wait(LONGEST_S)
            except subprocess.TimeoutExpired:
                os.killpg(job.pid, signal.SIGKILL)
                code = "none: it does not end"
            self.say(where, command, f"code {code}" if code else "", time.monotonic() - began, text_of(log))
        self.servers = []


def prepare():
    """Creates what the documents' commands assume: a program, files of sites, places and algorithms."""
    shutil.rmtree(ELSEWHERE, ignore_errors=True)
    os.mkdir(ELSEWHERE)
    with open("/tmp/slots", "w") as file:
        file.write("localhost slots=4\n")
    with open("/tmp/program.c", "w") as file:
        file.write(PROGRAM)
    for mpi in ("openmpi", "mpich"):
        subprocess.run([f"mpicc.{mpi}", "-o", f"/tmp/program.{mpi}", "/tmp/program.c"], check=True, env=ENVIRONMENT)
    with open("man/mcastcoll-gateway.1") as file:
        sites = re.search(r"\.nf\n(\[site lyon\].*?)\.fi\n", file.read(), re.S).group(1)
    os.makedirs("/etc/mcastcoll", exist_ok=True)
    for folder in (TOP, ELSEWHERE, "/etc/mcastcoll"):
        files = {"sites.conf": sites, "sites": sites, "session.key": "sixteen bytes and more", "places": "2* host=a\n2* host=b\n",
                 "selection.conf": "allgather * 2- -8K reduction\n", "steps.conf": "alltoall * 2- * here\n"}
        for name, text in files.items():
            path = os.path.join(folder, name)
            with open(path, "w") as file:
                file.write(text)
            os.chmod(path, 0o600)


def hides_components():
    """Debian 13's mpirun makes processes look for components only in PMIx's folder."""
    said = subprocess.run(["mpirun", "-n", "1", "env"], env=ENVIRONMENT, stdout=subprocess.PIPE, text=True, check=True).stdout
    return "OMPI_MCA_mca_base_component_path=" in said


def main():
    if sys.argv[1:2] != ["--inside"]:
        sys.exit(subprocess.call([os.path.join(HERE, "scratch_system.sh"), os.path.realpath(__file__), "--inside", *sys.argv[1:]]))
    only = [word for word in sys.argv[2:]]
    os.chdir(TOP)
    prepare()
    test, left_out, seen = Test(), unrun(), []
    for where, command in documents():
        if command not in [c for _, c in seen]:
            seen.append((where, command))
    for gone in sorted(left_out - {command for _, command in seen}):
        test.say("commands.unrun", gone, "is in no document")
    chosen = [(where, command) for where, command in seen
              if command not in left_out and (not only or any(word in where or word in command for word in only))]
    for where, command in chosen:
        test.run(where, command, TOP, ". build/env; ")
    test.end_servers()
    installed = [(where, command) for where, command in chosen if not OF_THE_TREE.search(command) and command not in test.long]
    subprocess.run(["make", "-s", "-C", "build", "install"], check=True, env=ENVIRONMENT, stdout=subprocess.DEVNULL)
    if hides_components():
        ENVIRONMENT["OMPI_MCA_opal_mca_base_component_path"] = "SYSTEM_DEFAULT:USER_DEFAULT"  # as the README says
    for where, command in installed:
        test.run(f"{where} installed", command, ELSEWHERE, "")
    test.end_servers()
    print(f"{test.passed} passed, {test.failed} failed, 0 skipped")
    sys.exit(1 if test.failed else 0)


if __name__ == "__main__":
    main()
