"""check_tokens.py TOKENIZER DATA FILE... - what examples/tokenize_text.py wrote is the text of its files again.

A token's text is that of the vocabulary, so that nothing is encoded here.
"""

import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "examples"))

import numpy as np

import byte_level
import safetensors_io


def decoder(path):
    """token -> its text."""
    with open(path, encoding="utf-8") as file:
        content = json.load(file)
    byte_of = {character: byte for byte, character in byte_level.alphabet().items()}
    bytes_of = {number: bytes(byte_of[character] for character in word) for word, number in content["model"]["vocab"].items()}
    bytes_of |= {token["id"]: token["content"].encode() for token in content["added_tokens"]}
    return lambda tokens: b"".join(bytes_of[int(token)] for token in tokens).decode()


def check_stream(decode, path, files):
    texts = [open(name, encoding="utf-8").read() for name in files]
    assert decode(np.fromfile(path, dtype="<u2")) == "".join(text + "<|end|>" for text in texts)
    print("the texts are there again")


def check_chats(decode, path):
    data = safetensors_io.load(path)
    first, mask = data["labels"][0], data["loss_mask"][0].astype(bool)
    whole = decode(np.concatenate([data["input_ids"][0][:1], first]))
    assert whole.startswith("user\nHi\nassistant\nthe<|end|>"), whole
    assert decode(first[mask]) == "the<|end|>", decode(first[mask])
    assert (data["input_ids"][0][1:] == first[:-1]).all()
    long, mask = data["labels"][1], data["loss_mask"][1].astype(bool)  # cut off: no end
    assert decode(long).endswith(decode(long[mask])) and decode(long[mask]).startswith("there there"), decode(long)
    assert "<|end|>" not in decode(long[mask]), decode(long)
    print("what counts are the answers")


def main():
    decode = decoder(sys.argv[1])
    if sys.argv[2].endswith(".bin"):
        check_stream(decode, sys.argv[2], sys.argv[3:])
    else:
        check_chats(decode, sys.argv[2])


if __name__ == "__main__":
    main()
