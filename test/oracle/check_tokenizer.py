#!/usr/bin/python3
"""check_tokenizer.py - the tokens of ds-run --sample against those of examples/byte_level.py.

    check_tokenizer.py --out DIR

Both read one tokenizer.json, whose merges are those of a text: letters of many scripts, numbers, signs, spaces of all kinds
and added tokens.  What ds-run prints is the text again, whatever the tokens were.
"""

import argparse
import collections
import json
import os
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples"))

import byte_level
from check_archive import write_config
from commands import finish, run

TEXT = ("It's the model's 42nd sentence; they're longer than 1,000 words, aren't they?\n\n  We'll see - I'd say (no), I've "
        "been  there...\tÜber größere Straßen läuft naïve Prosa. Ελληνικά και русский текст; 中文字符 ۱۲۳ ½ ² Ⅷ "
        "नमस्ते 🙂👍🏽 a\u0301 \u00a0nbsp\u2003em\u3000wide \r\n'S 'LL ''s s's\n\n\n")
TEXTS = [TEXT, "a", " ", "  ", "   a", "\n", "\n\n x", "'", "''re", " 's", "1a2b", "!?x", "<|end|>", "a<|end|><|endless|> b",
         "<|en d|>", "\x00\x7f\x85 \xad", "the the the", "thethethethe", " \t the", "９９x", "\u2028x\u1680y"]
CONFIG = {"model_type": "gpt2", "vocab_size": 512, "n_positions": 1024, "n_embd": 8, "n_layer": 1, "n_head": 1,
          "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}


def train(text, count):
    """The merges that byte-pair encoding finds in `text`, the most frequent pair each time."""
    spelled = byte_level.alphabet()
    words = [[spelled[byte] for byte in piece.encode()] for piece in byte_level.pieces_of(text)]
    merges = []
    for _ in range(count):
        pairs = collections.Counter(pair for word in words for pair in zip(word, word[1:]))
        best = max(sorted(pairs), key=pairs.get)
        merges.append(best)
        for word in words:
            at = 0
            while at + 1 < len(word):
                if (word[at], word[at + 1]) == best:
                    word[at:at + 2] = ["".join(best)]
                at += 1
    return merges


def write_tokenizer(path):
    merges = train(TEXT * 2 + " the than then there", 120)
    words = list(dict.fromkeys([*byte_level.alphabet().values(), *("".join(pair) for pair in merges)]))
    added = [{"id": len(words) + place, "content": word, "special": True, "lstrip": False}
             for place, word in enumerate(["<|end|>", "<|endless|>"])]
    content = {"version": "1.0", "normalizer": None, "added_tokens": added,
               "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True},
               "decoder": {"type": "ByteLevel"}, "post_processor": {"type": "ByteLevel"},
               "model": {"type": "BPE", "vocab": {word: number for number, word in enumerate(words)},
                         "merges": [" ".join(pair) for pair in merges]}}
    with open(path, "w", encoding="utf-8") as file:
        json.dump(content, file, ensure_ascii=False)


def tokens_of(folder, program, text):
    log = os.path.join(folder, "log.jsonl")
    if os.path.exists(log):
        os.remove(log)
    run("ds-run", program, "--weights", "none", "--sample=" + text, "--length", 1, "--log-jsonl", log)
    with open(log, encoding="utf-8") as file:
        record = json.load(file)["sample"]
    return record["prompt_tokens"], record["prompt"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, metavar="DIR")
    folder = parser.parse_args().out
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    model, path, program = (os.path.join(folder, name) for name in ("config.json", "tokenizer.json", "model.dsx"))
    with open(model, "w") as file:
        json.dump(CONFIG, file)
    write_tokenizer(path)
    config, _ = write_config(folder, 1)
    run("ds-opt", model, "--config", config, "--entry", "logits", "--emit=program", "-o", program)
    tokenizer, complaints, count = byte_level.Tokenizer(path), [], 0
    for text in TEXTS:
        if "\0" in text:
            text = text.replace("\0", "\1")  # no argument has a zero
        expected = tokenizer.encode(text)
        tokens, back = tokens_of(folder, program, text)
        count += len(tokens)
        if tokens != expected:
            complaints.append(f"{text!r}: {tokens}, but {expected}")
        if back != text:
            complaints.append(f"{text!r} became {back!r}")
    finish(complaints, f"{len(TEXTS)} texts have the same {count} tokens")


if __name__ == "__main__":
    main()
