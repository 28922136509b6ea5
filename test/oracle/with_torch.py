"""with_torch.py - has torch_server.py run a script, or the interpreter itself where there is no server.

    python3 -I -S with_torch.py SOCKET [-c TEXT | FILE] ARGUMENT ...

SOCKET is a name without a place in the file system: who stands in another network, as tests with nodes do, finds no server there.
"""

import array
import json
import os
import resource
import signal
import socket
import sys


def ask(name, arguments):
    """The exit code of the script, negative for a signal; None without a server."""
    mask = os.umask(0)
    os.umask(mask)
    limits = [resource.getrlimit(getattr(resource, limit)) for limit in sorted(dir(resource)) if limit.startswith("RLIMIT_")]
    text = json.dumps({"arguments": arguments, "directory": os.getcwd(), "environment": dict(os.environ), "umask": mask,
                       "limits": limits}).encode()
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect("\0" + name)
    except OSError:
        return None
    rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0, 1, 2]))
    connection.sendmsg([len(text).to_bytes(8, "little")], [rights])
    connection.sendall(text)
    answer = connection.recv(4, socket.MSG_WAITALL)
    if len(answer) != 4:
        sys.exit("with_torch.py: the server has ended")
    return int.from_bytes(answer, "little", signed=True)


def main():
    name, arguments = sys.argv[1], sys.argv[2:]
    script = arguments and (arguments[0] == "-c" or not arguments[0].startswith("-"))
    code = ask(name, arguments) if script else None
    if code is None:
        os.execv(sys.executable, [sys.executable, "-W", "ignore", *arguments])
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    sys.exit(code)


if __name__ == "__main__":
    main()
