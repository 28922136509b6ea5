"""fault_jobs.py - jobs of several ranks whose ranks a test can find, bring down and question.

Three ways to start the same ranks: `ds-run --ranks N`, mpirun, and each by hand, where the test itself sees how every
rank ends.  Under mpirun each rank is started by a shell that writes down how it ended: `--enable-recovery` keeps
OpenMPI from killing the survivors, and makes its own exit code say nothing.
"""

import os
import re
import signal
import subprocess
import time
import uuid

LAUNCHERS = ("ds-run", "mpirun", "hand")
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe"]
RECORD = '"$@" 2> "$0.err.$OMPI_COMM_WORLD_RANK"; echo $? > "$0.code.$OMPI_COMM_WORLD_RANK"'
RANK_VARIABLES = (b"DS_RANK=", b"OMPI_COMM_WORLD_RANK=")


def read(path):
    """The text of a file; nothing if there is none."""
    try:
        with open(path, errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def processes_of(mark):
    """rank -> process number of every ds-run that has `mark` in its environment and is a rank."""
    found = {}
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{entry}/environ", "rb") as file:
                variables = file.read().split(b"\0")
            if mark.encode() not in variables or os.path.basename(read(f"/proc/{entry}/cmdline").split("\0")[0]) != "ds-run":
                continue
        except OSError:
            continue  # it has ended
        for variable in variables:
            if variable.startswith(RANK_VARIABLES):
                found[int(variable.split(b"=")[1])] = int(entry)
    return found


class Job:
    """ranks of `command` under a launcher; rank `absent` is never started."""

    def __init__(self, launcher, command, ranks, folder, absent=None):
        self.launcher, self.ranks, self.absent = launcher, ranks, absent
        self.folder = os.path.join(folder, uuid.uuid4().hex)
        os.makedirs(self.folder)
        self.mark = f"DS_FAULT_TEST={self.folder}"
        self.stem = os.path.join(self.folder, "rank")
        self.parts = {}  # rank, or None for the launcher -> Popen
        getattr(self, "start_" + launcher.replace("-", "_"))([str(part) for part in command])

    def popen(self, command, errors, environment=()):
        with open(errors, "w") as file:
            return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=file,
                                    env={**os.environ, **dict([self.mark.split("=", 1)]), **dict(environment)})

    def start_ds_run(self, command):
        assert self.absent is None, "ds-run --ranks starts every rank"
        self.parts[None] = self.popen(command + ["--ranks", str(self.ranks)], self.stem + ".err")

    def start_mpirun(self, command):
        recorded = ["sh", "-c", RECORD, self.stem, *command]
        parts = ["--enable-recovery", "-n", str(self.ranks), *recorded]
        if self.absent is not None:  # in its place something that never asks for the others
            assert self.absent == self.ranks - 1
            parts = ["--enable-recovery", "-n", str(self.absent), *recorded, ":", "-n", "1", "sleep", "1000"]
        self.parts[None] = self.popen(MPIRUN + parts, self.stem + ".err")

    def start_hand(self, command):
        for rank in range(self.ranks):
            if rank != self.absent:
                place = {"DS_RANK": str(rank), "DS_WORLD": str(self.ranks), "DS_RENDEZVOUS": self.folder,
                         "DS_NONCE": "job", "DS_ONE_HOST": "1"}
                self.parts[rank] = self.popen(command, f"{self.stem}.err.{rank}", place.items())

    def process(self, rank, seconds=60):
        """The process number of a rank, as soon as there is one; None if the job ends before."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and not self.ended():
            found = processes_of(self.mark)
            if rank in found:
                return found[rank]
            time.sleep(0.01)
        return None

    def ended(self):
        return all(part.poll() is not None for part in self.parts.values())

    def survivors(self, victim):
        return [rank for rank in range(self.ranks) if rank not in (victim, self.absent)]

    def running(self, victim):
        """The survivors that have not ended, or the launcher itself where nobody else tells."""
        if self.launcher == "ds-run":
            return [None] if self.parts[None].poll() is None else []
        if self.launcher == "mpirun":
            return [rank for rank in self.survivors(victim) if not read(f"{self.stem}.code.{rank}").strip()]
        return [rank for rank in self.survivors(victim) if self.parts[rank].poll() is None]

    def wait(self, victim, seconds):
        """Seconds until all survivors had ended; None if some did not."""
        begin = time.monotonic()
        while self.running(victim):
            if time.monotonic() - begin > seconds:
                return None
            time.sleep(0.005)
        return time.monotonic() - begin

    def code(self, rank):
        """How a survivor ended. ds-run's launcher says 7 only if no rank ended in another way than 0, 7 or a signal."""
        if self.launcher == "mpirun":
            return int(read(f"{self.stem}.code.{rank}"))
        return self.parts[rank if self.launcher == "hand" else None].returncode

    def words(self, rank):
        """What a survivor wrote to stderr."""
        if self.launcher != "ds-run":
            return read(f"{self.stem}.err.{rank}")
        lines = read(self.stem + ".err").splitlines()
        if rank > 0:
            return "\n".join(line for line in lines if line.startswith(f"[rank {rank}] "))
        return "\n".join(line for line in lines if not line.startswith("[rank "))

    def launcher_words(self):
        return read(self.stem + ".err") if self.launcher == "ds-run" else ""

    def end(self):
        """Ends whatever is left, stopped or not."""
        for pid in processes_of(self.mark).values():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        for part in self.parts.values():
            try:
                part.wait(1 if self.absent is None else 0)
            except subprocess.TimeoutExpired:
                part.terminate()  # mpirun ends what it has started
                try:
                    part.wait(10)
                except subprocess.TimeoutExpired:
                    part.kill()
                    part.wait()


PHASES = ("start-up", "gathers", "reductions", "update", "save")
COLLECTIVE = re.compile(r"collective (\d+) of channel (\d) \((\w+) ([^)]*)\)")


def phase_of(text):
    """The phase in which a survivor noticed the failure, by what it waited for or took part in."""
    match = COLLECTIVE.search(text)
    if not match:
        return "save" if "end of the run" in text else "start-up"
    kind, name = match.group(3), match.group(4)
    if name == "saving of weights":
        return "save"
    if match.group(2) == "0" or "norm" in name:
        return "update"
    return {"all_gather": "gathers", "reduce_scatter": "reductions"}.get(kind, "update")
