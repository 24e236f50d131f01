"""One stack's job: alive from its launch to the end of a place's measurements, asleep but for its turns.

Who owns what: a Job owns its processes, its pipes and its folder, and ends all of them.  The ranks sleep in read(), where no MPI can
spin; a turn is a line in each rank's pipe, and rank 0 answers with a line of JSON.
"""
import json
import os
import queue
import shutil
import subprocess
import tempfile
import threading

START_LIMIT_S = 180
END_LIMIT_S = 60
SETTLE_S = 10
LOG_LINES = 12


class Job:
    def __init__(self, stack, place, line, env, start_limit_s=START_LIMIT_S):
        self.stack, self.place, self.error, self.stuck = stack, place, None, False
        self.folder = tempfile.mkdtemp(prefix="mcc-perf-")
        self.pipes = []
        for rank in range(place.ranks):
            os.mkfifo(f"{self.folder}/{rank}")
            # Also open for reading, so that nobody waits in open(); when this process ends the ranks see the end.
            self.pipes.append(os.open(f"{self.folder}/{rank}", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC))
        with open(f"{self.folder}/board", "wb") as board:  # memory that the ranks share: perf_mpi.c
            board.write(bytes(4096))
        self.log = open(f"{self.folder}/log", "w+")
        self.process = subprocess.Popen(line + ["--serve", self.folder], env=env, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=self.log, text=True)
        self.lines = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()
        if self._answer(start_limit_s, "did not start") is None:
            self.close()

    def _read(self):
        for line in self.process.stdout:
            if line.startswith("{"):
                self.lines.put(line)
            elif not line.startswith("ok "):
                self.log.write(line)
        self.lines.put(None)

    def _answer(self, limit_s, what):
        try:
            line = self.lines.get(timeout=limit_s)
            if line is not None:
                return json.loads(line)
            self.error = f"{what}: it ended"
        except queue.Empty:
            self.error = f"{what}: hung, nothing for {limit_s:.0f} s"
        except ValueError:
            self.error = f"{what}: no JSON"
        return None

    def turn(self, operation, size, seconds, probes, limit_s):
        """What rank 0 says, or None; the job is of no more use then, and says why."""
        words = f"{operation}:{size}:{seconds:g}" + (f":{probes}" if probes else "") + "\n"
        for pipe in self.pipes:
            os.write(pipe, words.encode())
        return self._answer(limit_s + 2 * seconds, f"{operation} of {size} B")

    def said(self):
        """The log: what a stack says about itself, and why it failed."""
        if self.log.closed:
            return self.last_words
        self.log.flush()
        with open(self.log.name, errors="replace") as file:
            return file.read()

    def tail(self):
        return [line for line in self.said().splitlines() if line.strip()][-LOG_LINES:]

    def close(self):
        if self.log.closed:
            return
        for pipe in self.pipes:
            os.close(pipe)
        try:
            code = self.process.wait(timeout=1 if self.error else END_LIMIT_S)
            # A launcher that takes a rank for lost which it was too busy to hear the end of is not worth a word; a crash is.
            if (code >= 128 or code < 0) and not self.error:
                self.error = f"ended with exit code {code}"
        except subprocess.TimeoutExpired:
            self.stuck = not self.error
            self.error = self.error or f"did not end within {END_LIMIT_S} s of its last result"
            self.process.terminate()  # the launchers end their ranks
            try:
                self.process.wait(timeout=SETTLE_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
        self.last_words = self.said()
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)
