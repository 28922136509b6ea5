"""byte_level.py - the tokens of a text, by a tokenizer.json of the kind that GPT-2 has.

Byte-level BPE as OpenAI's encoder.py defines it and Hugging Face's tokenizer.json spells it: added tokens are found
first; what is between them is cut into pieces; the bytes of a piece are merged in the order of the list.  Other kinds of
tokenizer are refused: they would give other tokens.  Needs nothing but Python.
"""

import json
import unicodedata

CONTRACTIONS = ("'s", "'t", "'re", "'ve", "'m", "'ll", "'d")
# White_Space, which str.isspace is but for the separators of files.
SPACES = set(chr(point) for point in (*range(9, 14), 32, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029,
                                      0x202F, 0x205F, 0x3000))


def alphabet():
    """By byte: the character that spells it in a vocabulary."""
    seen = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(256) if byte not in seen]
    return {byte: chr(byte) for byte in seen} | {byte: chr(256 + place) for place, byte in enumerate(hidden)}


def kind_of(character):
    """"s" a space, "L" a letter, "N" a number, "o" anything else."""
    category = unicodedata.category(character)[0]
    return "s" if character in SPACES else category if category in "LN" else "o"


def pieces_of(text):
    """The pieces that merges stay within: contractions; runs of letters, numbers or signs, with a blank before; spaces."""
    at = 0
    while at < len(text):
        short = next((word for word in CONTRACTIONS if text.startswith(word, at)), None)
        end = at + len(short) if short else at + 1
        if not short:
            word = at + (text[at] == " " and at + 1 < len(text) and kind_of(text[at + 1]) != "s")
            kind = kind_of(text[word])
            end = word
            while end < len(text) and kind_of(text[end]) == kind:
                end += 1
            if kind == "s" and end < len(text) and end > at + 1:
                end -= 1  # the last space belongs to the word behind it
        yield text[at:end]
        at = end


def refuse(key, expected, got):
    raise ValueError(f"{key}: expects {expected}, but got {json.dumps(got)}: only byte-level BPE as of GPT-2 is read")


class Tokenizer:
    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            content = json.load(file)
        model, before = content["model"], content.get("pre_tokenizer") or {}
        if model.get("type", "BPE") != "BPE" or model.get("byte_fallback") or model.get("ignore_merges"):
            refuse("model", "BPE that merges bytes", model.get("type"))
        if before.get("type") != "ByteLevel" or not before.get("use_regex", True):
            refuse("pre_tokenizer", "ByteLevel with its expression", before)
        self.normalizer = content.get("normalizer")
        if self.normalizer and self.normalizer["type"] != "NFC":
            refuse("normalizer", "NFC or none", self.normalizer)
        self.prefix = " " if before.get("add_prefix_space") else ""
        self.vocabulary = model["vocab"]
        merges = [tuple(merge.split(" ", 1)) if isinstance(merge, str) else tuple(merge) for merge in model["merges"]]
        self.ranks = {pair: rank for rank, pair in enumerate(merges)}
        self.added = {token["content"]: token["id"] for token in content.get("added_tokens") or []}
        self.alphabet = alphabet()
        self.size = max([*self.vocabulary.values(), *self.added.values()]) + 1

    def token(self, name):
        """The number of an added token, or of one of the vocabulary."""
        number = self.added.get(name, self.vocabulary.get(name))
        if number is None:
            raise ValueError(f"the tokenizer has no token {name}")
        return number

    def merge(self, symbols):
        while len(symbols) > 1:
            pairs = list(zip(symbols, symbols[1:]))
            best = min(pairs, key=lambda pair: self.ranks.get(pair, len(self.ranks)))
            if best not in self.ranks:
                break
            at = pairs.index(best)
            symbols[at:at + 2] = ["".join(best)]
        return symbols

    def plain(self, text):
        """The tokens of text without added ones."""
        if text and not text.startswith(" "):
            text = self.prefix + text
        for piece in pieces_of(text):
            for symbol in self.merge([self.alphabet[byte] for byte in piece.encode()]):
                yield self.vocabulary[symbol]

    def encode(self, text):
        if self.normalizer:
            text = unicodedata.normalize("NFC", text)
        tokens = []
        while text:
            places = [(text.find(word), -len(word), word) for word in self.added if word in text]
            at, _, word = min(places, default=(len(text), 0, None))
            tokens += self.plain(text[:at])
            if word is None:
                break
            tokens.append(self.added[word])
            text = text[at + len(word):]
        return tokens
