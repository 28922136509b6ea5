"""Changes to what MLIR text of ds says: facts of modules, meshes, commands and messages, and the words of enumerations."""

import re

FACT = re.compile(r"#ds\.(?:training|decisions|machine)<")
# A field: its key, and what it has; of lists and structs the innermost.
FIELD = re.compile(r"(\w+) = (\{[^{}]*\}|\[[^\[\]]*\]|\"[^\"\n]*\"|[\w.+-]+(?: : \w+)?)")
KEYS = ["type", "stage", "world", "lr", "optimizer", "offload", "way", "by", "next", "of", "what", "bytes", "target", "x", ""]
WORDS = ["adam", "sgd", "lamb", "mean", "sum", "tokens", "bf16", "f16", "f32", "f64", "recomputed", "kept", "host", "device", "nvme", "pieces",
         "choice", "reduce_bucket", "true", "false", "send", "recv", "all_gather", "none", "x", "99", "-1", "unit"]
NUMBERS = ["0", "1", "-1", "2", "7", "4294967295", "4294967296", "9223372036854775807", "-9223372036854775808", "18446744073709551616",
           "0x7FF0000000000000 : f64", "0x7FF8000000000000", "1.0e308", "-1.0e308", "1.0e-320", "1 : i8", "0.5 : f32", "true"]
COMMAND = re.compile(r"^ *(?:%[^=\n]*= )?ds\.(?:communicate|record|wait|launch|call|copy|alloc|storage)\b.*$", re.MULTILINE)
MESSAGE = re.compile(r"^.*ds\.communicate\b.*$", re.MULTILINE)
MESH = re.compile(r"(ds\.mesh @\w+ axes \[)([^\]\n]*)\]")
ENUM = re.compile(r"#ds\.(?:phase|work|segment|init)<[^<>\n]*>")


def body_of(text, begin):
    """The end of what stands in the angle bracket before `begin`; angles within strings and arrows aside."""
    depth, at = 1, begin
    while at < len(text):
        if text[at] == '"':
            at = text.find('"', at + 1)
            if at < 0:
                break
        elif text[at] == "<":
            depth += 1
        elif text[at] == ">" and text[at - 1] != "-":
            depth -= 1
            if depth == 0:
                return at
        at += 1
    return len(text)


def change_value(draw, value, others):
    if value[:1] in "{[":
        return draw.choice(["{}", "[]", value[0] + value[-1], value[:-1] + ", " + value[1:], draw.choice(others), "[" * 300 + "]" * 300, "{x = 1}"])
    if re.match(r"-?\d", value):
        return draw.choice(NUMBERS + [draw.choice(others)])
    return draw.choice(WORDS + [draw.choice(others), '""', '"x"', '"\\00"'])


def change_fact(draw, text):
    """One field of what stands on a module: of another value or name, gone, twice, or in another's place."""
    found = list(FACT.finditer(text))
    if not found:
        return None
    begin = draw.choice(found).end()
    end = body_of(text, begin)
    body = text[begin:end]
    fields = list(FIELD.finditer(body))
    if not fields:
        return text[:begin] + draw.choice(KEYS) + " = " + draw.choice(WORDS + NUMBERS) + text[end:]
    field, other = draw.choice(fields), draw.choice(fields)
    key, value = field.group(1), field.group(2)
    way = draw.randrange(6)
    if way == 0:
        new = f"{draw.choice(KEYS + [other.group(1)])} = {value}"
    elif way == 1:
        new = f"{field.group(0)}, {draw.choice([field, other]).group(0)}"
    elif way == 2:
        new = draw.choice(["", key, "= " + value, "{" + field.group(0) + "}"])
    else:
        new = f"{key} = {change_value(draw, value, [each.group(2) for each in fields])}"
    return text[:begin] + body[:field.start()] + new + body[field.end():] + text[end:]


def change_order(draw, text):
    """Commands, or messages, in each other's place; one of them gone, or twice."""
    found = list((MESSAGE if draw.random() < 0.6 else COMMAND).finditer(text))
    if not found:
        return None
    one, other = sorted((draw.choice(found), draw.choice(found)), key=lambda match: match.start())
    way = draw.randrange(4)
    if way == 0:
        return text[:one.start()] + text[one.end() + 1:]
    if way == 1 or one is other:
        return text[:one.start()] + other.group(0) + "\n" + text[one.start():]
    return text[:one.start()] + other.group(0) + text[one.end():other.start()] + one.group(0) + text[other.end():]


def change_message(draw, text):
    """A message, or collective: another kind, partner, group, number or stream."""
    found = list(MESSAGE.finditer(text))
    if not found:
        return None
    one = draw.choice(found)
    pattern, new = draw.choice([
        (r"communicate \w+", "communicate " + draw.choice(["send", "recv", "all_gather", "all_reduce", "reduce_scatter", "all_to_all", "broadcast", "x"])),
        (r"peer = -?\d+", "peer = " + draw.choice(NUMBERS)),
        (r"along \w+", "along " + draw.choice(["pp", "dp", "tp", "x", "pp, dp", "dp, dp"])),
        (r"number \d+", "number " + draw.choice(NUMBERS)),
        (r" on \w+", " on " + draw.choice(["gather", "reduce", "compute", "copy", "host", "x"])),
        (r"reduce \w+", "reduce " + draw.choice(["sum", "max", "mean", "none"])),
        (r"\{peer[^{}]*\}", ""),
        (r"ins\([^()]*\)", "ins()"), (r"outs\([^()]*\)", "outs()"),
    ])
    return text[:one.start()] + re.sub(pattern, lambda _: new, one.group(0), count=1) + text[one.end():]


def change_mesh(draw, text):
    """Axes and their sizes: other ones, one more, in another order, a second mesh or none."""
    found = list(MESH.finditer(text))
    if not found:
        return None
    one = draw.choice(found)
    axes = one.group(2).split(", ")
    way = draw.randrange(6)
    if way == 0:
        axes.reverse()
    elif way == 1:
        axes.append(draw.choice(["tp = 2", "dp = 2", "pp = 1", "x = 0", "ep = 3"]))
    elif way == 2:
        axes.pop()
    else:
        at = draw.randrange(len(axes))
        name, _, size = axes[at].partition(" = ")
        axes[at] = f"{draw.choice([name, name, 'dp', 'tp'])} = {draw.choice(NUMBERS + ['3', '4', '8', size])}"
    new = one.group(1) + ", ".join(axes) + "]"
    if draw.random() < 0.1:
        new = draw.choice(["", one.group(0) + "\n" + new])
    return text[:one.start()] + new + text[one.end():]


def change_enum(draw, text):
    found = list(ENUM.finditer(text))
    if not found:
        return None
    one = draw.choice(found)
    words = list(re.finditer(r"\w+", one.group(0)))[2:]
    if not words:
        return None
    word = draw.choice(words)
    new = draw.choice(NUMBERS + WORDS + ["forward", "backward", "update", "planned", "model", "stage 1", "chunk 3", ""])
    return text[:one.start() + word.start()] + new + text[one.start() + word.end():]


def change_structure(draw, text):
    """`text` with one change; None where a kind of it was chosen for which there is no place."""
    return draw.choice([change_fact, change_fact, change_order, change_message, change_enum, change_mesh])(draw, text)
