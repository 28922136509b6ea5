#!/usr/bin/python3
"""without_seccomp.py COMMAND... - run a command that may not install a filter of system calls.

As in a container whose own filter forbids it: seccomp() and prctl(PR_SET_SECCOMP) answer EPERM.
"""

import ctypes
import os
import struct
import sys

LOAD, JUMP_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, EPERM = 0x7FFF0000, 0x00050001
NUMBER, FIRST_ARGUMENT = 0, 16  # offsets in seccomp_data
SECCOMP, PRCTL = {"x86_64": (317, 157), "aarch64": (277, 167)}[os.uname().machine]
PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, FILTER_MODE = 22, 38, 2

PROGRAM = [
    (LOAD, 0, 0, NUMBER),
    (JUMP_EQUAL, 3, 0, SECCOMP),
    (JUMP_EQUAL, 0, 3, PRCTL),
    (LOAD, 0, 0, FIRST_ARGUMENT),
    (JUMP_EQUAL, 0, 1, PR_SET_SECCOMP),
    (RETURN, 0, 0, EPERM),
    (RETURN, 0, 0, ALLOW),
]


def main():
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in PROGRAM))
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(PROGRAM), ctypes.addressof(code)))
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    if prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or prctl(PR_SET_SECCOMP, FILTER_MODE, program, 0, 0):
        sys.exit("cannot install the filter: " + os.strerror(ctypes.get_errno()))
    os.execvp(sys.argv[1], sys.argv[1:])


if __name__ == "__main__":
    main()
