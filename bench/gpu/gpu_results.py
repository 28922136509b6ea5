"""gpu_results.py - what a GPU round leaves behind, and what it prints.

A folder of a few plain files, so that it can be carried away from a machine that is only lent. results.jsonl has one
object a line, written out before the next thing starts; a later round with the same folder reads it and goes on from
there. Lines that a killed round left half written are passed over.
"""

import fcntl
import json
import os
import stat
import time

RESULTS, FAILURES, FACTS, SUMMARY, CLUSTER, TRACE, ALGORITHMS = (
    "results.jsonl", "failures.txt", "facts.txt", "summary.txt", "cluster.json", "trace.json.gz", "algorithms.txt")
MOST_BYTES = 15 << 20  # of a file
TEXT_BYTES = 256 << 10  # of one failure
LINE, DETAILS, PRINTED = 160, 1700, 11600  # characters: of a line, of all lines on the way, of everything
MOST_STARTS = 2  # of a step that ended the round each time
FINAL = ("ok", "failed", "skipped")


class Unwritable(Exception):
    """The folder cannot be written."""


class Busy(Exception):
    """Another round writes to the folder."""


class Printer:
    """stdout within its limit: what is told last is what must be read."""

    def __init__(self):
        self.used, self.left_out = 0, 0

    def line(self, text, most=PRINTED):
        text = text if len(text) <= LINE else text[:LINE - 3] + "..."
        if self.used + len(text) + 1 > most:
            self.left_out += 1
            return
        self.used += len(text) + 1
        print(text, flush=True)

    def detail(self, text):
        self.line(text if len(text) <= 110 else text[:107] + "...", DETAILS)


def shorten(text, most):
    """The start and the end of a text that is longer."""
    data = text.encode(errors="replace")
    if len(data) <= most:
        return text
    cut = data[:most // 2] + b"\n[... %d bytes ...]\n" % (len(data) - most // 2 * 2) + data[-(most // 2):]
    return cut.decode(errors="replace")


class Results:
    """The folder. `identity` says which GPU and which pack a line is of: lines of others are kept and not read."""

    def __init__(self, folder, identity, printer):
        self.folder, self.identity, self.printer = folder, identity, printer
        self.records, self.starts, self.broken = {}, {}, None
        try:
            os.makedirs(folder, exist_ok=True)
            self.file = open(self.path(RESULTS), "ab", buffering=0)
        except OSError as error:
            raise Unwritable(f"{error.filename or folder}: {error.strerror}") from error
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise Busy(folder) from error
        self.load()

    def path(self, name):
        return os.path.join(self.folder, name)

    def load(self):
        status = os.fstat(self.file.fileno())
        if not stat.S_ISREG(status.st_mode) or status.st_size == 0:
            return
        with open(self.path(RESULTS), "rb") as file:
            data = file.read()
        for line in data.split(b"\n"):
            try:
                self.take(json.loads(line))
            except (ValueError, AttributeError, KeyError):
                continue
        if not data.endswith(b"\n"):
            self.write(b"\n")

    def take(self, record):
        """Reads one line: a start without an end is of a round that did not live to tell."""
        if {key: record.get(key) for key in self.identity} != self.identity or "step" not in record:
            return
        name = record["step"]
        if record["state"] == "started":
            self.starts[name] = self.starts.get(name, 0) + 1
        elif record["state"] == "stopped":
            self.starts[name] = max(self.starts.get(name, 0) - 1, 0)
        elif record["state"] in FINAL:
            self.records[name] = record

    def write(self, data):
        try:
            while data:
                data = data[self.file.write(data):]
            if stat.S_ISREG(os.fstat(self.file.fileno()).st_mode):
                os.fsync(self.file.fileno())
        except OSError as error:
            self.complain(RESULTS, error)

    def complain(self, name, error):
        """Says once that results are lost; the round goes on, for its output is left."""
        if self.broken is None:
            self.broken = f"{self.path(name)}: {error.strerror}"
            self.printer.line(f"gpu-test: {self.broken}: from here on results are in this output alone")

    def append(self, record):
        record = {**self.identity, "at": round(time.time(), 3), **record}
        self.write(json.dumps(record, separators=(",", ":")).encode() + b"\n")
        self.take(record)

    def worn_out(self, name):
        return self.starts.get(name, 0) >= MOST_STARTS

    def store(self, name, data, append=False):
        """One of the other files; at most MOST_BYTES of it."""
        data = data.encode(errors="replace") if isinstance(data, str) else data
        try:
            with open(self.path(name), "ab" if append else "wb") as file:
                file.write(data[:max(0, MOST_BYTES - file.tell())])
        except OSError as error:
            self.complain(name, error)

    def failure(self, name, text):
        """Everything that a failure said."""
        self.store(FAILURES, f"===== {name} =====\n{shorten(text, TEXT_BYTES)}\n\n", append=True)
