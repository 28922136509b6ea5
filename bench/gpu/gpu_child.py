"""gpu_child.py - run one command so that nothing of it outlives its time or the round that started it.

    gpu_child.py PARENT SECONDS STATUS COMMAND...     a guard: runs the command, ends all that came of it

The guard is told by the kernel when its parent dies, adopts what the command leaves behind (also what made a session of
its own, as compilers' workers do), and kills it all before it ends. On the file descriptor STATUS it says how the command
ended: one JSON object {"why": "exit" | "signal" | "time" | "start" | "told", "code": N}. No object: the guard was killed.
"""

import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
GRACE = 1.0  # seconds between the request to end and the end
PATIENCE = 10.0  # seconds that a killed process may take to go
LAST_WORDS = 4 << 20  # bytes that are read of an output


def prctl(option, value):
    """Without it (a system that has none) only killed rounds leave children behind."""
    try:
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)
    except (OSError, AttributeError):
        pass


def adopt_orphans():
    """From now on what descendants leave behind are this process's children."""
    prctl(PR_SET_CHILD_SUBREAPER, 1)


def descendants(root):
    """Process ids below `root`, the root left out."""
    children = {}
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{entry}/stat") as file:
                parent = int(file.read().rpartition(")")[2].split()[1])
        except (OSError, ValueError, IndexError):  # no process, or one that has just ended
            continue
        children.setdefault(parent, []).append(int(entry))
    found, at = [root], 0
    while at < len(found):
        found += children.get(found[at], [])
        at += 1
    return found[1:]


def reap():
    """Takes the ends of all children that have ended; {pid: status}."""
    ended = {}
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if pid == 0:
            return ended
        ended[pid] = status


def end_all(grace=0.0):
    """Ends every descendant of this process; asks first where there is `grace`. One that a driver holds is left."""
    began, asked = time.monotonic(), False
    while left := descendants(os.getpid()):
        spent = time.monotonic() - began
        if spent > grace + PATIENCE:
            return
        number = signal.SIGTERM if spent < grace else signal.SIGKILL
        for pid in left if number == signal.SIGKILL or not asked else []:
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass
        asked = True
        reap()
        time.sleep(0.01)


def guard(parent, seconds, status, command):
    """What the script does."""
    watched = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD}
    signal.pthread_sigmask(signal.SIG_BLOCK, watched)
    prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    adopt_orphans()
    os.setsid()

    def say(why, code):
        os.write(status, json.dumps({"why": why, "code": code}).encode())

    def at_start():
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        signal.pthread_sigmask(signal.SIG_SETMASK, set())

    if os.getppid() != parent:
        return 1
    try:
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, preexec_fn=at_start)
    except OSError as error:
        sys.stderr.write(f"{error}\n")
        say("start", error.errno)
        return 1
    until = time.monotonic() + seconds
    while True:
        ended = reap()
        if child.pid in ended:
            code = os.waitstatus_to_exitcode(ended[child.pid])
            end_all()
            say("signal" if code < 0 else "exit", abs(code))
            return 0
        left = until - time.monotonic()
        got = signal.sigtimedwait(watched, max(left, 0))
        if got is None:
            end_all(GRACE)
            say("time", 0)
            return 0
        if got.si_signo != signal.SIGCHLD:
            end_all()
            say("told", got.si_signo)
            return 0


@dataclass
class Ended:
    """How a command ended: `why` as the guard says it, or "guard"."""
    why: str
    code: int
    out: str
    err: str
    seconds: float

    @property
    def ok(self):
        return self.why == "exit" and self.code == 0

    def describe(self):
        """One line: how, and the last that it said."""
        how = {"exit": f"exit code {self.code}", "signal": f"killed by signal {self.code}",
               "time": f"no end after {self.seconds:.0f} s", "start": "cannot be started",
               "guard": "its guard was killed", "told": "stopped"}[self.why]
        lines = [line.strip() for line in (self.err.strip() or self.out.strip()).splitlines() if line.strip()]
        told = [line for line in lines if "error:" in line or "Error" in line][-1:] or lines[-1:]
        return how + (": " + told[0] if told else "")


def read_end(path):
    """The text of a file: its start and its end where it is long."""
    size = os.path.getsize(path)
    with open(path, "rb") as file:
        if size <= LAST_WORDS:
            return file.read().decode(errors="replace")
        head = file.read(LAST_WORDS // 2)
        file.seek(size - LAST_WORDS // 2)
        return (head + b"\n[...]\n" + file.read()).decode(errors="replace")


class Running:
    """A command under its guard. Its outputs pass through files in `scratch`, named after `tag`."""

    def __init__(self, command, seconds, scratch, environment=None, tag="child"):
        self.paths = [os.path.join(scratch, f"{tag}.{name}") for name in ("out", "err")]
        self.reads, writes = os.pipe()
        self.began = time.monotonic()
        with open(self.paths[0], "wb") as out, open(self.paths[1], "wb") as err:
            self.guard = subprocess.Popen([sys.executable, "-I", "-S", os.path.abspath(__file__), str(os.getpid()),
                                           str(seconds), str(writes), *map(str, command)],
                                          stdin=subprocess.DEVNULL, stdout=out, stderr=err, pass_fds=[writes], env=environment)
        os.close(writes)

    def ended(self):
        """How it ended, once its guard has; None before."""
        if self.guard.poll() is None:
            return None
        told = os.read(self.reads, 4096)
        os.close(self.reads)
        status = json.loads(told) if told else {"why": "guard", "code": self.guard.returncode}
        return Ended(status["why"], status["code"], *map(read_end, self.paths), time.monotonic() - self.began)

    def stop(self):
        """Tells the guard to end, which ends the rest."""
        self.guard.terminate()
        try:
            self.guard.wait(5)
        except subprocess.TimeoutExpired:
            self.guard.kill()
            self.guard.wait()
        os.close(self.reads)


def run(command, seconds, scratch, environment=None):
    """Runs `command` for at most so many seconds."""
    running = Running(command, seconds, scratch, environment)
    try:
        running.guard.wait()
    except BaseException:
        running.stop()
        end_all()
        raise
    end_all()
    return running.ended()


if __name__ == "__main__":
    sys.exit(guard(int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]))
