#!/usr/bin/python3
"""tokenize_text.py - turn text files, or chats, into tokens that ds-run reads, by a model's tokenizer.json.

    examples/tokenize_text.py --tokenizer MODEL/tokenizer.json --out DIR --end '<|endoftext|>' TEXT...
    examples/tokenize_text.py --tokenizer MODEL/tokenizer.json --out DIR --end '<|endoftext|>' --chat --length 512 CHAT.jsonl...

Texts become DIR/train.bin, a stream of little-endian u16 (u32 for a vocabulary beyond 65536) with the token of --end
behind each file: give its number to ds-run as --document-token, and no target reaches over it.

Chats have a line of JSON each, {"messages": [{"role": "user", "content": "..."}, ...]}, as chat models are trained on.
They become DIR/train.safetensors: input_ids and labels of --length tokens, shifted by one, and loss_mask, which leaves out
what is not the model's to say: only the words of role "assistant", and the token that ends them, are targets.  A message is
written as the role, a line break and the content: "user\\nHow are you?\\n".  What is longer than --length is cut off, what
is shorter filled with the token of --end, which does not count either.
"""

import argparse
import json
import os
import sys

import byte_level


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def write_stream(path, tokens, width):
    with open(path + ".tmp", "wb") as file:
        for token in tokens:
            file.write(token.to_bytes(width, "little"))
    os.replace(path + ".tmp", path)
    print(f"{path}: {len(tokens)} tokens of {8 * width} bits")


def tokenize_texts(tokenizer, end, args):
    tokens = []
    for path in args.files:
        tokens += tokenizer.encode(read(path)) + [end]
    write_stream(os.path.join(args.out, "train.bin"), tokens, 2 if tokenizer.size <= 65536 else 4)


def tokens_of_chat(tokenizer, end, messages):
    """Its tokens, and for each whether the model is to say it."""
    tokens, said = [], []
    for message in messages:
        isAnswer = message["role"] == "assistant"
        head, content = tokenizer.encode(message["role"] + "\n"), tokenizer.encode(message["content"])
        tail = [end] if isAnswer else tokenizer.encode("\n")
        tokens += head + content + tail
        said += [False] * len(head) + [isAnswer] * (len(content) + len(tail))
    return tokens, said


def read_chats(paths):
    for path in paths:
        for number, line in enumerate(read(path).splitlines(), 1):
            if not line.strip():
                continue
            try:
                messages = json.loads(line)["messages"]
                [(message["role"] + "", message["content"] + "") for message in messages]
            except (ValueError, KeyError, TypeError) as error:
                sys.exit(f"{path}:{number}: expects {{\"messages\": [{{\"role\": ..., \"content\": ...}}]}}: {error!r}")
            yield messages


def tokenize_chats(tokenizer, end, args):
    import numpy as np  # streams do without

    import safetensors_io

    rows = {"input_ids": [], "labels": [], "loss_mask": []}
    for messages in read_chats(args.files):
        tokens, said = tokens_of_chat(tokenizer, end, messages)
        fill = args.length + 1 - len(tokens)
        tokens, said = (tokens + [end] * fill)[:args.length + 1], (said + [False] * fill)[:args.length + 1]
        for name, row in zip(rows, (tokens[:-1], tokens[1:], said[1:])):
            rows[name].append(row)
    path = os.path.join(args.out, "train.safetensors")
    types = {"input_ids": np.int64, "labels": np.int64, "loss_mask": np.bool_}
    arrays = {name: np.array(rows[name], dtype=kind).reshape(-1, args.length) for name, kind in types.items()}
    safetensors_io.save(path, arrays)
    print(f"{path}: {len(arrays['labels'])} chats, {int(arrays['loss_mask'].sum())} targets that count")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", metavar="FILE")
    parser.add_argument("--tokenizer", required=True, metavar="FILE")
    parser.add_argument("--out", required=True, metavar="DIR")
    parser.add_argument("--end", default="<|endoftext|>", metavar="TOKEN")
    parser.add_argument("--chat", action="store_true")
    parser.add_argument("--length", type=int, default=512, metavar="T")
    args = parser.parse_args()
    try:
        tokenizer = byte_level.Tokenizer(args.tokenizer)
        end = tokenizer.token(args.end)
    except (OSError, ValueError, KeyError) as error:
        sys.exit(f"{args.tokenizer}: {error}")
    os.makedirs(args.out, exist_ok=True)
    print(f"{args.end} is token {end}")
    (tokenize_chats if args.chat else tokenize_texts)(tokenizer, end, args)


if __name__ == "__main__":
    main()
