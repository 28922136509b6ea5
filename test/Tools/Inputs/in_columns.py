"""in_columns.py N COMMAND...: runs a command on a terminal of N columns and prints what it wrote, then the length of the longest
line that has a space behind its indentation (a word that is longer than a line stays whole)."""

import fcntl
import os
import pty
import re
import struct
import sys
import termios

columns = int(sys.argv[1])
child, terminal = pty.fork()
if child == 0:
    fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    os.execvp(sys.argv[2], sys.argv[2:])
written = b""
while True:
    try:
        part = os.read(terminal, 4096)
    except OSError:  # the command has ended
        break
    if not part:
        break
    written += part
os.waitpid(child, 0)
text = re.sub("\x1b\\[[0-9;]*m", "", written.decode().replace("\r\n", "\n"))  # colours take no columns
sys.stdout.write(text)
print("longest line:", max(len(line) for line in text.split("\n") if " " in line.strip()))
