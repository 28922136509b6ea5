"""safetensors_io.py - read and write safetensors with numpy alone.

The format is eight bytes of header length, a JSON header and the packed tensors.  The examples and the tests need
nothing else of it, so they carry these few lines instead of a dependency that Debian 12 does not package.
"""

import json
import os
import struct

import numpy as np

NAME_OF_DTYPE = {"f4": "F32", "f8": "F64", "f2": "F16", "i8": "I64", "i4": "I32", "i2": "I16", "i1": "I8",
                 "u8": "U64", "u4": "U32", "u2": "U16", "u1": "U8", "b1": "BOOL"}
DTYPE_OF_NAME = {name: np.dtype(code) for code, name in NAME_OF_DTYPE.items()}


def widen_bf16(data):
    """float32 values of packed bf16, which numpy has no type for."""
    return (np.frombuffer(data, dtype="<u2").astype(np.uint32) << 16).view(np.float32)


def save(path, tensors, metadata=None):
    """Writes `tensors` (name -> array), wide dtypes first and then by name, to a temporary name and renames it."""
    arrays = {name: np.ascontiguousarray(value) for name, value in tensors.items()}
    header = {"__metadata__": metadata} if metadata else {}
    offset = 0
    order = sorted(arrays, key=lambda name: (-arrays[name].itemsize, name))
    for name in order:
        array = arrays[name]
        shape = list(np.shape(tensors[name]))  # ascontiguousarray turns rank 0 into rank 1
        header[name] = {"dtype": NAME_OF_DTYPE[array.dtype.str[1:]], "shape": shape,
                        "data_offsets": [offset, offset + array.nbytes]}
        offset += array.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    temporary = f"{path}.tmp"
    with open(temporary, "wb") as file:
        file.write(struct.pack("<Q", len(text)))
        file.write(text)
        for name in order:
            file.write(arrays[name].tobytes())
    os.replace(temporary, path)


def load(path):
    """Returns name -> array; bf16 comes as float32.  For files of our own: it trusts the header."""
    with open(path, "rb") as file:
        size = struct.unpack("<Q", file.read(8))[0]
        header = json.loads(file.read(size))
        data = file.read()
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        packed = data[begin:end]
        is_bf16 = entry["dtype"] == "BF16"
        array = widen_bf16(packed) if is_bf16 else np.frombuffer(packed, dtype=DTYPE_OF_NAME[entry["dtype"]])
        tensors[name] = array.reshape(entry["shape"]).copy()
    return tensors
