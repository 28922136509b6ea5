"""archive_mutations.py - small TorchScript archives of all that an archive can hold, and changes to them."""

import io
import os
import re
import warnings
import zipfile
from typing import Dict, List, Optional, Tuple

import torch
import torch.nn.functional as F

#===- What is mutated ----------------------------------------------------------===#


class Traced(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.GELU(), torch.nn.LayerNorm(8), torch.nn.Linear(8, 6))
        self.register_buffer("mask", torch.ones(6, 6).tril()[3])

    def forward(self, x):
        return (torch.softmax(self.body(x), -1) * self.mask).pow(2).mean()


class Holder(torch.nn.Module):
    """Containers, options, numbers and text as attributes; saves and restores itself."""

    numbers: List[int]
    names: Dict[str, int]
    maybe: Optional[torch.Tensor]

    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.randn(6, 6))
        self.numbers, self.names, self.maybe, self.scale = [1, 2, 3], {"a": 1, "b": 2}, None, 0.5

    def forward(self, x):
        total = x @ self.w
        for number in self.numbers:
            if number > 1:
                total = total + number * self.scale
        if self.maybe is not None:
            total = total * 2
        pieces = [total, total.sin()]
        return torch.cat(pieces, 0).sum() / float(self.names["b"])

    @torch.jit.export
    def __getstate__(self):
        return self.w, self.numbers, self.names, self.scale, self.training

    @torch.jit.export
    def __setstate__(self, state: Tuple[torch.Tensor, List[int], Dict[str, int], float, bool]):
        self.w, self.numbers, self.names, self.scale, self.training = state
        self.maybe = None


class Slides(torch.nn.Module):
    """Convolutions, tied weights, types other than f32, constants."""

    def __init__(self):
        super().__init__()
        self.slide = torch.nn.Conv1d(1, 4, 3, padding=1)
        self.table = torch.nn.Parameter(torch.randn(4, 6).half())
        self.tied = self.table
        self.register_buffer("positions", torch.arange(6))
        self.holder = Holder()

    def forward(self, x):
        y = F.relu(self.slide(x.unsqueeze(1))) * self.table.float() + self.tied.float()[self.positions % 4].sum()
        assert y.dim() == 3, "three dimensions"
        return y.mean() + self.holder(x)


def make_bases(folder):
    """Archives as lists of (name, bytes), by name; and as they were written."""
    warnings.simplefilter("ignore")
    torch.manual_seed(3)
    modules = {"traced": torch.jit.trace(Traced(), torch.randn(2, 6)), "holder": torch.jit.script(Holder()),
               "slides": torch.jit.script(Slides())}
    bases = {}
    for name, module in modules.items():
        path = os.path.join(folder, name + ".pt")
        module.save(path)
        with open(path, "rb") as file:
            raw = file.read()
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            bases[name] = raw, [(entry, archive.read(entry)) for entry in archive.namelist()]
    return bases


#===- How it is mutated --------------------------------------------------------===#

NUMBERS = ["0", "-1", "1", "2", "7", "255", "65536", "2147483648", "-9223372036854775808", "9223372036854775807",
           "1e308", "18446744073709551616", "nan", "inf"]
OPCODES = b"()]}Nt.qhXKMJ\x85\x86\x87\x88\x89\x8a\x8bcRQbuasBGIjr\x80\x94eldioP0F12"
TOKEN = re.compile(r"[A-Za-z_][\w.]*|\d[\w.+-]*|\s+|.", re.DOTALL)


def change_bytes(data, chance, most=8):
    """Some bytes replaced, removed, inserted or repeated."""
    data = bytearray(data)
    for _ in range(chance.randint(1, most)):
        at = chance.randrange(len(data) + 1)
        kind = chance.randrange(6)
        if kind == 0 and data:
            data[at % len(data)] = chance.randrange(256)
        elif kind == 1 and data:
            data[at % len(data)] ^= 1 << chance.randrange(8)
        elif kind == 2:
            del data[at:at + chance.randint(1, 4)]
        elif kind == 3:
            data[at:at] = bytes(chance.randrange(256) for _ in range(chance.randint(1, 4)))
        elif kind == 4:
            data[at:at] = data[at:at + chance.randint(1, 40)]
        elif data:
            data[at % len(data)] = chance.choice(OPCODES)
    return bytes(data)


def change_pickle(data, chance):
    """Bytes of a pickle; or one name in it by another; or a number or a piece made very large."""
    kind = chance.randrange(5)
    words = re.findall(rb"[A-Za-z_][A-Za-z_.]{2,}", data)
    if kind == 0 and len(words) > 1:
        return data.replace(chance.choice(words), chance.choice(words), 1)
    if kind == 1:
        at = chance.randrange(len(data))
        return data[:at] + chance.choice([b"J\xff\xff\xff\x7f", b"J\xff\xff\xff\xff", b"\x8a\x08" + b"\xff" * 7 + b"\x7f",
                                          b"]" * 3, b"(" * 2000, b"h\x00", b"h\xff", b"t", b"\x85" * 5000,
                                          b"X\xff\xff\xff\x7f", b"NQ", b"R", b"b", b"0."]) + data[at:]
    if kind == 2:
        return data[:chance.randrange(len(data))]
    return change_bytes(data, chance)


def change_code(data, chance):
    """Words by other words, numbers by extreme ones, lines removed, repeated or moved."""
    text = data.decode("latin-1")  # It may have been changed before.
    kind = chance.randrange(5)
    lines = text.splitlines(keepends=True)
    if kind == 0 and lines:
        del lines[chance.randrange(len(lines))]
        return "".join(lines).encode("latin-1")
    if kind == 1 and lines:
        lines.insert(chance.randrange(len(lines)), chance.choice(lines))
        return "".join(lines).encode("latin-1")
    if kind == 2:
        return change_bytes(data, chance, 3)
    tokens = TOKEN.findall(text)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(tokens))
        is_number = tokens[at][:1].isdigit()
        tokens[at] = chance.choice(NUMBERS) if is_number and chance.random() < 0.7 else chance.choice(tokens)
    return "".join(tokens).encode("latin-1")


def change_tensor(data, chance):
    """Other bytes, or another length."""
    return chance.choice([lambda: change_bytes(data, chance) if data else b"x", lambda: b"", lambda: data[:len(data) // 2],
                          lambda: data + b"\0" * chance.choice([1, 64, 100000]), lambda: b"\xff" * len(data)])()


def change_version(_, chance):
    return chance.choice([b"0\n", b"1\n", b"2\n", b"4\n", b"9\n", b"10\n", b"11\n", b"99\n", b"-1\n", b"", b"x\n", b"3" * 40,
                          b"3", b"\0", b"3.5\n", b" 3\n"])


def change_names(entries, chance):
    """Entries gone, renamed, exchanged or added."""
    entries = list(entries)
    at, other = chance.randrange(len(entries)), chance.randrange(len(entries))
    name, data = entries[at]
    kind = chance.randrange(5)
    if kind == 0:
        del entries[at]
    elif kind == 1:
        entries[at] = (name + chance.choice(["x", ".py", "/", "/x", " ", "\u00e9", "0"]), data)
    elif kind == 2:
        entries[at], entries[other] = (name, entries[other][1]), (entries[other][0], data)
    elif kind == 3:
        root = name.split("/")[0]
        entries.append((chance.choice([name, root + "/data/99", root + "/extra/x.json", "other/data.pkl", root + "/code/a.py",
                                       root + "/../x", "/etc/x", root + "/byteorder", root + "/bytecode.pkl"]), data))
    else:
        chance.shuffle(entries)
    return entries


def changer(name):
    if name.endswith((".pkl", ".debug_pkl")):
        return change_pickle
    if name.endswith(".py"):
        return change_code
    return change_version if name.endswith("version") else change_tensor


def write(entries, chance):
    """The file, with right checksums."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in entries:
            archive.writestr(name, data, zipfile.ZIP_DEFLATED if chance.random() < 0.1 else zipfile.ZIP_STORED)
    return buffer.getvalue()


def mutate(bases, chance):
    """The name of the archive, how it was changed, and the mutant."""
    warnings.simplefilter("ignore")
    name = chance.choice(sorted(bases))
    raw, entries = bases[name]
    way = chance.random()
    if way < 0.1:
        return name, "bytes", change_bytes(raw, chance, 4)
    if way < 0.2:
        return name, "names", write(change_names(entries, chance), chance)
    # Debug information is most of the bytes, and least of what there is to break.
    weights = [0.2 if entry.endswith("debug_pkl") else 4 if entry.endswith(("data.pkl", ".py")) else 1 for entry, _ in entries]
    changed = dict(entries)
    for entry in chance.choices([entry for entry, _ in entries], weights, k=chance.choice([1, 1, 1, 2])):
        changed[entry] = changer(entry)(changed[entry], chance) if changed[entry] or "pkl" not in entry else b"\x80\x02"
        how = entry
    return name, how, write(list(changed.items()), chance)
