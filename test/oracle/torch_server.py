#!/usr/bin/python3
"""torch_server.py - runs Python scripts in forks of one process that has PyTorch loaded.

    torch_server.py SOCKET-NUMBER       listens on the socket that it was given as that descriptor, until its input ends

Loading PyTorch takes 1.8 s of a processor and a test run wants it 350 times. with_torch.py asks for a script here as it would
ask the interpreter: the fork takes over its descriptors, directory, environment, limits and arguments, and its exit code goes
back. Nothing but loaded modules is shared: each fork begins where the interpreter would after `import torch`. An environment
that libraries or the interpreter read when they start, and that differs from this process's, gets an interpreter of its own.
"""

import array
import atexit
import gc
import json
import os
import resource
import runpy
import select
import signal
import socket
import sys
import threading
import traceback

import numpy
import torch  # noqa: F401

LIMITS = [getattr(resource, name) for name in sorted(dir(resource)) if name.startswith("RLIMIT_")]
READ_AT_START = ("ATEN", "GLIBC", "GOMP", "KMP", "LANG", "LC_", "LD_", "MALLOC", "MKL", "OMP_", "OPENBLAS", "PYTHON", "TORCH")


def read_at_start(environment):
    """What the loader, the interpreter and the libraries of PyTorch have read before a script begins."""
    return {name: value for name, value in environment.items() if name.startswith(READ_AT_START)}


def run_script(arguments):
    """What the interpreter does with -c TEXT or FILE and what follows."""
    sys.argv = arguments
    if arguments[0] == "-c":
        sys.argv = ["-c", *arguments[2:]]
        sys.path[0] = ""
        main = type(sys)("__main__")
        sys.modules["__main__"] = main
        exec(compile(arguments[1], "<string>", "exec"), main.__dict__)
    else:
        sys.path[0] = os.path.dirname(os.path.realpath(arguments[0]))
        runpy.run_path(arguments[0], run_name="__main__")


def run(arguments):
    """Runs the script to its end and gives the exit code: as the interpreter says, a text is an error."""
    code = 0
    try:
        run_script(arguments)
    except SystemExit as exit:
        code = exit.code
    except BaseException as error:  # KeyboardInterrupt too, and the lines of this file are not the script's
        traceback.print_exception(type(error), error, error.__traceback__)
        code = 1
    if not isinstance(code, (int, type(None))):
        print(code, file=sys.stderr)
        code = 1
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    return (code or 0) & 255


def become(request, descriptors):
    """This fork takes over what the process that asked has."""
    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
    os.closerange(3, 1 << 20)
    os.chdir(request["directory"])
    os.umask(request["umask"])
    for number, limits in zip(LIMITS, request["limits"], strict=True):
        resource.setrlimit(number, limits)
    if read_at_start(request["environment"]) != read_at_start(os.environ):
        os.execve(sys.executable, [sys.executable, "-W", "ignore", *request["arguments"]], request["environment"])
    os.environ.clear()
    os.environ.update(request["environment"])
    numpy.random.seed()
    return run(request["arguments"])


def receive(connection):
    """A request: its length, with the three descriptors, and JSON. None if whoever asked is gone."""
    descriptors = array.array("i")
    head, ancillary, _, _ = connection.recvmsg(8, socket.CMSG_LEN(3 * descriptors.itemsize))
    for level, kind, data in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            descriptors.frombytes(data)
    text = b""
    while len(head) == 8 and len(text) < int.from_bytes(head, "little"):
        part = connection.recv(int.from_bytes(head, "little") - len(text))
        if not part:
            return None, list(descriptors)
        text += part
    return (json.loads(text) if text else None), list(descriptors)


class Server:
    """The forks that run, each by the connection that asked for it."""

    def __init__(self, listening):
        self.listening, self.running = listening, {}  # connection -> (process, its descriptor)

    def start(self):
        connection, _ = self.listening.accept()
        request, descriptors = receive(connection)
        process = os.fork() if request and len(descriptors) == 3 else None
        if process == 0:
            code = 1
            try:
                code = become(request, descriptors)
            finally:
                os._exit(code)
        for descriptor in descriptors:
            os.close(descriptor)
        if process:
            self.running[connection] = process, os.pidfd_open(process)
        else:
            connection.close()

    def finish(self, connection):
        """The fork has ended, or whoever asked has: then the fork and what it started end too."""
        process, descriptor = self.running.pop(connection)
        if not select.select([descriptor], [], [], 0)[0]:
            try:
                os.killpg(process, signal.SIGKILL)
            except ProcessLookupError:  # it has no group of its own yet
                os.kill(process, signal.SIGKILL)
        code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        os.close(descriptor)
        try:
            connection.sendall(code.to_bytes(4, "little", signed=True))
        except OSError:
            pass
        connection.close()

    def serve(self):
        while True:
            ends = {descriptor: connection for connection, (_, descriptor) in self.running.items()}
            ready, _, _ = select.select([0, self.listening, *ends, *self.running], [], [])
            if 0 in ready:
                return
            for connection in {ends.get(one, one) for one in ready} & set(self.running):
                self.finish(connection)
            if self.listening in ready:
                self.start()


if __name__ == "__main__":
    gc.collect()
    gc.freeze()  # what is loaded stays, so that forks need not copy it
    server = Server(socket.socket(fileno=int(sys.argv[1])))
    server.serve()
    for running, _ in server.running.values():
        os.killpg(running, signal.SIGKILL)
