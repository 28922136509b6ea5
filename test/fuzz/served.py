"""served.py - command lines of a tool, each in a process of its own, without loading the tool for each.

A tool is started once with libds_fork_server.so preloaded, which forks it for each command line. Where that library is not
there, or a caller wants none (sanitizers come first themselves), every command line starts the tool anew.
"""

import os
import queue
import select
import shutil
import signal
import struct
import subprocess
import resource
from dataclasses import dataclass

FORK_SERVER = "libds_fork_server.so"


@dataclass
class Answer:
    """How a command line ended: `code` is "hang" where it did not, and negative for a signal."""
    code: object
    said: str  # on standard error


class Server:
    """One process of a tool that forks. Used by one thread at a time."""

    def __init__(self, tool, library, folder, number):
        self.said = os.path.join(folder, f"said-{number}.txt")
        ask, self.requests = os.pipe()
        self.answers, tell = os.pipe()
        environment = {**os.environ, "LD_PRELOAD": library, "LD_BIND_NOW": "1", "DS_FORK_SERVER": f"{ask},{tell}"}
        self.process = subprocess.Popen([tool], env=environment, pass_fds=(ask, tell))
        os.close(ask)
        os.close(tell)

    def run(self, command, seconds, environment, source, memory):
        parts = [source or "/dev/null", "/dev/null", self.said, str(memory), str(len(environment)),
                 *(f"{name}={value}" for name, value in environment.items()), *command]
        request = b"".join(os.fsencode(part) + b"\0" for part in parts)
        os.write(self.requests, struct.pack("<I", len(request)) + request)
        child, hung = self.take(), False
        if not select.select([self.answers], [], [], seconds)[0]:
            hung = True
            os.killpg(child, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(self.take())
        with open(self.said, "rb") as file:
            said = file.read().decode(errors="replace")
        return Answer("hang" if hung else status, said)

    def take(self):
        data = os.read(self.answers, 4)
        if len(data) != 4:
            raise RuntimeError(f"the fork server of {self.process.args[0]} has ended")
        return struct.unpack("<i", data)[0]

    def close(self):
        os.close(self.requests)
        os.close(self.answers)
        self.process.wait()


def limit(memory):
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if memory:
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        resource.setrlimit(resource.RLIMIT_FSIZE, (64 << 20, 64 << 20))
    os.setsid()


def run_alone(command, seconds, environment, source, memory):
    with open(source or os.devnull, "rb") as stdin:
        child = subprocess.Popen(command, stdin=stdin, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                 env={**os.environ, **environment}, preexec_fn=lambda: limit(memory))
    try:
        said = child.communicate(timeout=seconds)[1]
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        return Answer("hang", child.communicate()[1].decode(errors="replace"))
    return Answer(child.returncode, said.decode(errors="replace"))


class Tools:
    """Runs command lines of several threads. What `environment` adds is read by a tool after it is loaded."""

    def __init__(self, folder, served=True):
        self.folder, self.idle, self.all, self.library = folder, {}, [], None
        tool = shutil.which("ds-run")
        library = os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(tool))), "lib", FORK_SERVER) if tool else ""
        if served and os.path.exists(library):
            self.library = library

    def run(self, command, seconds, environment=None, source=None, memory=0):
        """The answer to `command`, of which the first part is the tool. `memory`: its limit, in bytes."""
        if not self.library:
            return run_alone(command, seconds, environment or {}, source, memory)
        idle = self.idle.setdefault(command[0], queue.SimpleQueue())
        try:
            server = idle.get_nowait()
        except queue.Empty:
            server = Server(command[0], self.library, self.folder, len(self.all))
            self.all.append(server)
        answer = server.run(command, seconds, environment or {}, source, memory)
        idle.put(server)
        return answer

    def close(self):
        for server in self.all:
            server.close()
