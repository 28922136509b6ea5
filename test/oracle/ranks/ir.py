"""ir.py - reads what `ds-opt --mlir-print-op-generic` prints: ops with their attributes and regions.

Every op has one spelling there, so that a reader of 200 lines knows all of them, also those that come later:

    %1:2 = "ds.NAME"(%a, %b) <{key = VALUE, flag}> ({ REGION }) {ds.work = VALUE} : (TYPES) -> TYPES

Attributes become numbers, words (of enums), strings, lists, dictionaries, `Dense` and `Attr`; a type is the pair of its
sizes and its element, of `!ds.stored` and `!ds.buffer` that of the tensor within.
"""

import functools
import re
from collections import namedtuple

Type = namedtuple("Type", "shape element")
Dense = namedtuple("Dense", "body type")  # the text between dense< and >
Attr = namedtuple("Attr", "name body")  # #ds.NAME<BODY>
Block = namedtuple("Block", "arguments ops")  # arguments: [(name, type)]

TENSOR = re.compile(r"tensor<((?:\d+x)*)(\w+)>")
SPACE = re.compile(r"\s*")
NAMES = r'\s*(?:((?:%[\w$.-]+(?::\d+)?(?:, )?)+) = )?"([\w.]+)"\(([^()]*)\)'
HEAD = re.compile(NAMES)
LINE = re.compile(NAMES + r"(?: <\{(.*?)\}>)?(?: \{(.*)\})? : \(([^()]*)\) -> (.*)\n")  # an op without regions
KEY = re.compile(r'\s*(?:"((?:[^"\\]|\\.)*)"|([\w.$-]+))( = )?')
STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
SYMBOL = re.compile(r'@(?:"([^"]*)"|([\w.$-]+))')
NUMBER = re.compile(r"(-?(?:0x[0-9A-Fa-f]+|[\d.]+(?:[eE][+-]?\d+)?))(?: : (\w+))?")
WORD = re.compile(r"!?[\w.]+")
ENUM = re.compile(r"#ds<(\w+) (\w+)>")
ARRAY = re.compile(r"array<\w+(?:: ([^>]*))?>")
ARGUMENTS = re.compile(r"\s*\^bb\d+(?:\((.*)\))?:\n")
CLOSES = {"<": ">", "(": ")", "[": "]", "{": "}"}


@functools.lru_cache(maxsize=None)  # most ops share their types with others
def types_in(text):
    return [Type([int(size) for size in sizes.split("x")[:-1]], element) for sizes, element in TENSOR.findall(text)]


class Op:
    """`types` are the results'; `place` says where it stands, for messages. Attributes are read when they are asked for."""

    def __init__(self, name, results, operands, spelled=()):
        self.name, self.results, self.operands, self.spelled, self.place = name, results, operands, spelled, ""
        self.regions, self.types, self.operand_types = [], [], []

    @functools.cached_property
    def attributes(self):
        return {key: value for text in self.spelled if text for key, value in Reader(text + "}").entries("}").items()}

    def get(self, key, default=None):
        return self.attributes.get(key, default)

    def has(self, flag):
        return flag in self.attributes


class Reader:
    def __init__(self, text):
        self.text, self.at = text, 0

    def fail(self, wanted):
        line = self.text.count("\n", 0, self.at) + 1
        raise ValueError(f"line {line}: expects {wanted}, but got {self.text[self.at:self.at + 40]!r}")

    def take(self, pattern, wanted):
        found = pattern.match(self.text, self.at)
        if not found:
            self.fail(wanted)
        self.at = found.end()
        return found

    def blanks(self):
        self.at = SPACE.match(self.text, self.at).end()

    def skips(self, literal):
        """Takes blanks and, if it comes next, `literal`."""
        self.blanks()
        if not self.text.startswith(literal, self.at):
            return False
        self.at += len(literal)
        return True

    def balanced(self):
        """The text within the brackets that begin here."""
        begin, stack = self.at, []
        while True:
            char = self.text[self.at]
            if char == '"':
                self.take(STRING, "a string")
                continue
            if char in CLOSES:
                stack.append(CLOSES[char])
            elif char == stack[-1] and not (char == ">" and self.text[self.at - 1] == "-"):
                stack.pop()
            self.at += 1
            if not stack:
                return self.text[begin + 1:self.at - 1]

    def entries(self, close):
        """{key: value} up to `close`."""
        result = {}
        while not self.skips(close):
            quoted, plain, has_value = self.take(KEY, "a key").groups()
            result[quoted or plain] = self.value() if has_value else True
            self.skips(",")
        return result

    def items(self):
        result = []
        while not self.skips("]"):
            result.append(self.value())
            self.skips(",")
        return result

    def value(self):
        self.blanks()
        if self.skips("["):
            return self.items()
        if self.skips("{"):
            return self.entries("}")
        char = self.text[self.at]
        if char == '"':
            return self.take(STRING, "a string").group(1).replace("\\22", '"').replace("\\0A", "\n")
        if char == "@":
            return "".join(part or "" for part in self.take(SYMBOL, "a symbol").groups())
        if char == "#":
            return self.dialect_attribute()
        if char == "(":  # a function's type, which its arguments say as well
            return self.signature()
        return self.word()

    def dialect_attribute(self):
        found = ENUM.match(self.text, self.at)
        if found:
            self.at = found.end()
            return found.group(2)
        self.at += 1
        name = self.take(WORD, "an attribute's name").group(0)
        return Attr(name, self.balanced() if self.text[self.at] == "<" else "")

    def word(self):
        found = ARRAY.match(self.text, self.at)
        if found:
            self.at = found.end()
            return [int(item) for item in (found.group(1) or "").split(",") if item.strip()]
        found = NUMBER.match(self.text, self.at)
        if found:
            self.at = found.end()
            return number(*found.groups())
        name = self.take(WORD, "a value").group(0)
        if name in ("true", "false"):
            return name == "true"
        if self.text[self.at] != "<":
            return name
        body = self.balanced()
        if name == "dense":
            return Dense(body, self.value() if self.skips(":") else None)
        return types_in(f"{name}<{body}>")[0]

    def signature(self):
        """(operands' types, results' types)."""
        operands = types_in(self.balanced())
        if not self.skips("->"):
            self.fail("->")
        self.blanks()
        if self.skips("("):
            self.at -= 1
            return operands, types_in(self.balanced())
        begin = self.at
        self.take(re.compile(r"\s*!?[\w.]+"), "a type")
        if self.text[self.at] == "<":
            self.balanced()
        return operands, types_in(self.text[begin:self.at])

    def op(self):
        line = LINE.match(self.text, self.at)
        if line:
            self.at = line.end()
            results, name, operands, inherent, others, operand_types, types = line.groups()
            op = Op(name, names_in(results), names_in(operands), (inherent, others))
            op.operand_types, op.types = types_in(operand_types), types_in(types)
            return op
        results, name, operands = self.take(HEAD, "an op").groups()
        op = Op(name, names_in(results), names_in(operands))
        op.attributes = self.entries("}>") if self.skips("<{") else {}
        while self.skips("({") or (op.regions and self.skips(", {")):
            op.regions.append(self.block())
        self.skips(")")
        if self.skips("{"):
            op.attributes.update(self.entries("}"))
        if not self.skips(":"):
            self.fail(":")
        self.blanks()
        op.operand_types, op.types = self.signature()
        return op

    def block(self):
        """The one block of a region, up to its `}`."""
        found, arguments, ops = ARGUMENTS.match(self.text, self.at), [], []
        if found:
            self.at = found.end()
            spelled = found.group(1) or ""
            arguments = list(zip(re.findall(r"(%[\w$.-]+): ", spelled), types_in(spelled)))
        while not self.skips("}"):
            ops.append(self.op())
        return Block(arguments, ops)


def names_in(text):
    """The names of values; `%1:2` are two."""
    names = []
    for part in (text or "").split(", "):
        name, _, count = part.partition(":")
        if name:
            names += [f"{name}#{index}" for index in range(int(count))] if count else [name]
    return names


def number(text, kind):
    if text.lstrip("-").startswith("0x"):
        return int(text, 16)
    is_float = kind.startswith(("f", "bf")) if kind else not re.fullmatch(r"-?\d+", text)
    return float(text) if is_float else int(text)


def read_modules(text):
    """The modules of a file, split by `// -----`, each the op `builtin.module`."""
    return [Reader(part).op() for part in text.split("// -----")]
