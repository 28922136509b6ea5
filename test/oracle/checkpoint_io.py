"""checkpoint_io.py - read a checkpoint as its files say, without any of Deepstage's code.

The tensors of all files are put together by the offsets in their headers; each element must come once.
"""

import json
import struct
from pathlib import Path

import numpy as np

TYPES = {"F32": np.float32, "F64": np.float64, "F16": np.float16, "BF16": np.uint16, "I64": np.int64, "I32": np.int32,
         "I8": np.int8, "U8": np.uint8, "BOOL": np.uint8}


def load(folder):
    """(manifest, {name: array}) of one checkpoint."""
    folder = Path(folder)
    manifest = json.loads((folder / "manifest.json").read_text())
    tensors, counts = {}, {}
    for tensor in manifest["tensors"]:
        shape = tensor["shape"]
        tensors[tensor["name"]] = np.zeros(shape, TYPES[tensor["dtype"]])
        counts[tensor["name"]] = np.zeros(shape, np.uint8)
    for entry in manifest["files"]:
        data = (folder / entry["name"]).read_bytes()
        assert len(data) == entry["bytes"], entry["name"]
        (length,) = struct.unpack_from("<Q", data)
        header = json.loads(data[8:8 + length])
        offsets = json.loads(header.pop("__metadata__")["DCP_SHARDING_INFO"])
        for name, part in header.items():
            begin, end = (8 + length + at for at in part["data_offsets"])
            values = np.frombuffer(data[begin:end], TYPES[part["dtype"]]).reshape(part["shape"])
            box = tuple(slice(at, at + size) for at, size in zip(offsets[name]["saved_offsets"], part["shape"]))
            tensors[name][box] = values
            counts[name][box] += 1
    for name, count in counts.items():
        assert (count == 1).all(), f"{name}: an element comes {count.min()} to {count.max()} times"
    return manifest, tensors


def differences(a, b):
    """Names of tensors that two checkpoints do not share to the bit."""
    return sorted(name for name in a.keys() | b.keys()
                  if name not in a or name not in b or a[name].tobytes() != b[name].tobytes())
