#!/usr/bin/python3
"""check_torch_server.py - a script run by torch_server.py does what it does by an interpreter of its own."""

import os
import socket
import subprocess
import sys
import time

from commands import finish

HERE = os.path.dirname(os.path.abspath(__file__))
SAYS = "import os, sys; print(sys.argv, sys.path[0], __name__, os.getcwd(), sorted(os.environ.items()), sys.stdin.read(), os.umask(0))"
CASES = {
    "arguments": ["-c", SAYS, "a b", "--c"],
    "exit code": ["-c", "import sys; print('before'); sys.exit(7)"],
    "exit text": ["-c", "import sys; sys.exit('words')"],
    "exception": ["-c", "raise ValueError(3)"],
    "signal": ["-c", "import os; os.kill(os.getpid(), 11)"],
    "at exit": ["-c", "import atexit; atexit.register(print, 'at exit')"],
    "thread": ["-c", "import threading, time; threading.Thread(target=lambda: (time.sleep(0.1), print('thread'))).start()"],
    "module": ["-m", "json.tool"],
    "descriptors": ["-c", "import os; print(len(os.listdir('/proc/self/fd')))"],
    "limit": ["-c", "import resource; print(resource.getrlimit(resource.RLIMIT_CORE))"],
}


def run(command, environment):
    """Exit code, output and the last line of errors."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, input="[1]", umask=0o27)
    return done.returncode, done.stdout, done.stderr.strip().split("\n")[-1]


def start(name):
    """The server and what its life hangs on."""
    listening = socket.socket(socket.AF_UNIX)
    listening.bind("\0" + name)
    listening.listen()
    ends, stays = os.pipe()
    process = subprocess.Popen([sys.executable, "-W", "ignore", os.path.join(HERE, "torch_server.py"), str(listening.fileno())],
                               stdin=ends, pass_fds=[listening.fileno()])
    os.close(ends)
    listening.close()
    return process, stays


def children(process):
    return subprocess.run(["pgrep", "-P", str(process.pid)], stdout=subprocess.PIPE, text=True).stdout.split()


def check(served, script, complaints):
    """Each case under two environments: another number of threads is read when libraries load."""
    alone = [sys.executable, "-W", "ignore"]
    cases = {**CASES, "file": [script, "x"]}
    for threads in (os.environ.get("OMP_NUM_THREADS", "2"), "7"):
        environment = {**os.environ, "OMP_NUM_THREADS": threads}
        for name, arguments in cases.items():
            ours, theirs = run([*served, *arguments], environment), run([*alone, *arguments], environment)
            if ours != theirs:
                complaints.append(f"{name}, {threads} threads: {ours} is not {theirs}")
        loaded = run([*served, "-c", "import sys; print('torch' in sys.modules)"], environment)[1].strip()
        if loaded != str(environment["OMP_NUM_THREADS"] == os.environ.get("OMP_NUM_THREADS")):
            complaints.append(f"PyTorch loaded with {threads} threads: {loaded}")
    return len(cases)


def main():
    name, script = f"ds-check-{os.getpid()}", sys.argv[1]
    with open(script, "w") as file:
        file.write(SAYS)
    served = [sys.executable, "-I", "-S", os.path.join(HERE, "with_torch.py"), name]
    server, stays = start(name)
    complaints = []
    count = check(served, script, complaints)
    asking = subprocess.Popen([*served, "-c", "import time; time.sleep(1000)"])
    while not children(server):
        time.sleep(0.01)
    asking.kill()
    asking.wait()
    for _ in range(1000):
        if not children(server):
            break
        time.sleep(0.01)
    else:
        complaints.append("a script outlives whoever asked for it")
    os.close(stays)
    server.wait()
    if run([*served, "-c", "print('alone')"], os.environ) != (0, "alone\n", ""):
        complaints.append("without a server there is no answer")
    finish(complaints, f"{count} scripts do what they do by an interpreter of their own")


if __name__ == "__main__":
    main()
