"""MLIR text of every phase, read back and planned from there; facts of modules, and stages that send each other messages."""

import json
import os
import re

from . import NUMBERS, Format, change_bytes, quietly
from .ds_config import MODEL, PLAIN
from .mlir_structure import change_structure
from .tokens import MODEL as TOKENS

# A layer with what a small transformer has: products, a norm, attention, dropout and relu.
LAYER = """
ds.state @rng role(scalar) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<2xi64>
ds.state @w role(parameter) trainable init(#ds.init<normal, 0.0, 0.5>) home(device) : tensor<8x8xf32>
ds.state @g role(parameter) trainable init(#ds.init<constant, 1.0, 0.0>) home(device) : tensor<8xf32>
func.func @forward(%x: tensor<2x4x8xf32> {ds.input = "x"}, %rng: tensor<2xi64> {ds.state = @rng},
                   %w: tensor<8x8xf32> {ds.state = @w}, %g: tensor<8xf32> {ds.state = @g}) -> tensor<f32> {
  %n, %r = ds.rms_norm %x weight(%g) over 1 epsilon 1.0e-5 : tensor<2x4x8xf32>, tensor<8xf32> -> tensor<2x4x8xf32>, tensor<2x4xf32>
  %m = ds.matmul %n, %w transpose_rhs epilogue(relu) : tensor<2x4x8xf32>, tensor<8x8xf32> -> tensor<2x4x8xf32>
  %d = ds.dropout %m, %rng probability 0.5 id 0 : tensor<2x4x8xf32>, tensor<2xi64>
  %h = ds.reshape %d : tensor<2x4x8xf32> -> tensor<2x4x2x4xf32>
  %t = ds.transpose %h perm [0, 2, 1, 3] : tensor<2x4x2x4xf32> -> tensor<2x2x4x4xf32>
  %s = ds.softmax %t dim 3 : tensor<2x2x4x4xf32>
  %l = ds.reduce sum %s dims [0, 1, 2, 3] : tensor<2x2x4x4xf32> -> tensor<f32>
  return %l : tensor<f32>
}
"""
PHASES = ["model", "step", "sharded", "resident", "scheduled", "planned"]
TYPES = ["f32", "f64", "bf16", "f16", "i64", "i32", "i8", "ui8", "i1", "i128", "index", "f8E5M2", "complex<f32>", "none", "!ds.x"]
# Of each kind: what it is found by, and what may stand there instead.
TOKEN = re.compile(r"%[\w#]+|@[\w.]+|#ds\.?[\w<, .]*>?|tensor<[^>]*>|!ds\.[\w]+<[^\n]*?>|-?\d+\.\d+(?:e[-+]?\d+)?|-?\d+|\"[^\"\n]*\"|"
                   r"\b[a-z_]+(?:\.[a-z_]+)*\b|[{}()\[\]<>,:=]|->")


def change_type(draw, text):
    parts = re.fullmatch(r"tensor<((?:[\d?]+x)*)(\w+)>", text)
    if not parts:
        return "tensor<f32>"
    sizes, element = parts.group(1).split("x")[:-1], parts.group(2)
    way = draw.randrange(5)
    if way == 0:
        element = draw.choice(TYPES)
    elif way == 1 and sizes:
        sizes[draw.randrange(len(sizes))] = str(draw.choice([0, 1, 2, 3, 5, "?", 2**31, 2**62, 2**63 - 1]))
    elif way == 2:
        sizes = sizes + [str(draw.choice([1, 2]))]
    elif way == 3:
        sizes = sizes[1:]
    else:
        sizes = sizes[::-1]
    return "tensor<" + "".join(size + "x" for size in sizes) + element + ">"


def change_token(draw, token, tokens):
    same = [other for other in tokens if other[:1] == token[:1]]
    if token.startswith("tensor<"):
        return change_type(draw, token) if draw.random() < 0.8 else draw.choice(same)
    if re.fullmatch(r"-?\d+", token):
        return str(draw.choice([int(number) for number in NUMBERS if isinstance(number, int)] + [int(token) + 1, int(token) - 1]))
    if re.fullmatch(r"-?\d+\.\d+(e[-+]?\d+)?", token):
        return draw.choice(["0.0", "-1.0", "1.0e308", "0x7FC00000", "1", "1.0e-30", "-0.0", "2.5"])
    if token.startswith('"'):
        return draw.choice(['""', '"\\00"', '"' + "a" * 5000 + '"', draw.choice(same), '"sum"', '"\\ff"'])
    return draw.choice(same if draw.random() < 0.7 else tokens)


def change_lines(draw, lines):
    at, other = draw.randrange(len(lines)), draw.randrange(len(lines))
    way = draw.randrange(6)
    if way == 0:
        del lines[at]
    elif way == 1:
        lines.insert(other, lines[at])
    elif way == 2:
        lines[at], lines[other] = lines[other], lines[at]
    elif way == 3:
        lines.insert(at, draw.choice(["module {", "}", "{", "func.func @forward() { return }", "builtin.module {}", "// x", "^bb1:",
                                      "func.func private @forward(tensor<f32>)", "\"ds.mul\"() : () -> ()", "\"ds.yield\"() : () -> ()",
                                      "#a = loc(unknown)", "%0 = \"ds.reduce\"(%arg0) : (tensor<f32>) -> tensor<f32>"]))
    elif way == 4:
        lines[at:at] = ["module {"] * draw.choice([1, 2, 100, 20000])
    else:
        del lines[at:]
    return lines


def change_text(draw, text):
    for _ in range(draw.choice([1, 1, 1, 2, 4])):
        if draw.random() < 0.25:
            text = "\n".join(change_lines(draw, text.split("\n")))
            continue
        found = list(TOKEN.finditer(text))
        if not found:
            return text
        # The first line of an imported module is long: choose a line first.
        starts = [0] + [match.end() for match in re.finditer("\n", text)]
        low = draw.choice(starts)
        chosen = next((match for match in found if match.start() >= low), found[0])
        line = [match for match in found if low <= match.start() <= (text.find("\n", low) if "\n" in text[low:] else len(text))]
        chosen = draw.choice(line) if line else chosen
        new = change_token(draw, chosen.group(0), [match.group(0) for match in found])
        text = text[:chosen.start()] + new + text[chosen.end():]
    return text


ADAM = {**PLAIN, "optimizer": {"type": "AdamW", "params": {"lr": 0.01}}, "zero_optimization": {"stage": 2}}
HOST = {"stage": 3, "offload_optimizer": {"device": "cpu"}, "offload_param": {"device": "cpu"}}
# Facts of many fields, and a machine that is not this one: (name, model, configuration, options, phases).
MODULES = [("small", MODEL, ADAM, [], PHASES), ("tokens", TOKENS, ADAM, [], PHASES), ("layer", LAYER, ADAM, [], PHASES),
           ("facts", LAYER, {**ADAM, "zero_optimization": HOST, "fp16": {"enabled": True}, "gradient_clipping": 0.5,
                             "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 8}}}, [], ["model", "resident", "planned"]),
           ("machine", LAYER, ADAM, ["--target", "cuda:sm_90"], ["resident", "scheduled"])]
TESTS = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# What tests say by hand, and what reads it.
BY_HAND = {"facts": ("Dialect/facts.mlir", "--verify-roundtrip"), "stages": ("Passes/Plan/verify-collectives-stages.mlir", "--ds-verify-collectives")}


made = []  # text and bytecode start from the same


def make_modules(folder):
    """Files named by model and phase, in the folder of whoever asks first."""
    return made or made.extend(write_modules(folder)) or made


def write_modules(folder):
    config, paths = os.path.join(folder, "ds.config"), []
    for name, text, settings, options, phases in MODULES:
        source = os.path.join(folder, name + ".mlir")
        with open(source, "w") as file:
            file.write(text)
        with open(config, "w") as file:
            json.dump(settings, file)
        for phase in phases:
            path = os.path.join(folder, f"{name}-{phase}.mlir")
            quietly(["ds-opt", source, "--config", config, "--ranks", "2", *options, "--emit=ir", f"--phase={phase}", "-o", path])
            paths.append(path)
    for name, (source, _) in BY_HAND.items():
        with open(os.path.join(TESTS, source)) as file:
            parts = file.read().split("// -----\n")
        for number, part in enumerate(parts):
            path = os.path.join(folder, f"{name}-hand-{number}.mlir")
            with open(path, "w") as file:
                file.write(part)
            paths.append(path)
    return paths


def weighted(paths):
    """The models, and what is short, twice as often as what no user writes."""
    return paths + [path for path in paths if "-model." in path] * 4 + [path for path in paths if "-hand-" in path]


def command_of(path):
    """What reads a seed, or what was made of it."""
    by_hand = re.search(r"(\w+)-hand-", os.path.basename(path))
    return ["ds-opt", path, BY_HAND[by_hand.group(1)][1] if by_hand else "--emit=plan"]


def change(draw, data, path):
    way = draw.random()
    if way < 0.1:
        return change_bytes(draw, data)
    text = data.decode()
    changed = None
    if way < 0.5:
        changed = change_structure(draw, text)
    return (changed if changed is not None else change_text(draw, text)).encode("utf-8", "surrogatepass")


def make(folder):
    return Format(weighted(make_modules(folder)), change, lambda path: (command_of(path), None))
