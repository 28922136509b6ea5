#!/usr/bin/python3
"""corrupt.py ARCHIVE FOLDER - write archives with right checksums that LibTorch cannot load, each for another reason."""

import os
import sys
import zipfile

ARCHIVE, FOLDER = sys.argv[1:]
with zipfile.ZipFile(ARCHIVE) as archive:
    ENTRIES = {name: archive.read(name) for name in archive.namelist()}
ROOT = next(iter(ENTRIES)).split("/")[0]


def write(name, changes):
    """`changes` by entry: the new bytes, or None for no such entry."""
    entries = {**ENTRIES, **{f"{ROOT}/{entry}": data for entry, data in changes.items()}}
    with zipfile.ZipFile(os.path.join(FOLDER, name + ".pt"), "w") as archive:
        for entry, data in entries.items():
            if data is not None:
                archive.writestr(entry, data)


def code(old, new):
    """A change to the first source that holds `old`."""
    entry = next(entry for entry, data in ENTRIES.items() if entry.endswith(".py") and old in data)
    return {entry[len(ROOT) + 1:]: ENTRIES[entry].replace(old, new, 1)}


write("opcode", {"data.pkl": b"\x80\x02\xf7."})
write("stack", {"data.pkl": b"\x80\x02R."})
write("type", {"data.pkl": b"\x80\x02K\x01."})
write("record", {"data/0": None})
write("short", {"data/0": b"1234"})
write("version", {".data/version": b"99\n"})
write("letters", {".data/version": b"four\n"})
write("schema", code(b"torch.layer_norm(", b"torch.layer_norm(torch, "))
write("syntax", code(b"  def forward(", b"  def forward(("))
write("deep", {"data.pkl": b"\x80\x02)" + b"\x85" * 1000000 + b"."})
