"""program_changes.py - changes to a program: of one field, whatever it is, or of what its tables say together."""

import json

from program_structure import change_structure
from program_tree import CODE, find

BITS = {"ubyte": 8, "ushort": 16, "uint": 32, "ulong": 64, "byte": -8, "short": -16, "int": -32, "long": -64}


def change_number(draw, value, kind, others):
    if kind in ("double", "float"):
        return draw.choice([0.0, 1.0, -1.0, -value, value * 2, 1e308, -1e308, 1e-308, float("nan"), float("inf"), float("-inf"),
                            draw.choice(others)])
    bits = BITS[kind]
    low, high = (0, (1 << bits) - 1) if bits > 0 else (-(1 << (-bits - 1)), (1 << (-bits - 1)) - 1)
    known = [0, 1, 2, -1, value + 1, value - 1, -value, value * 2, value // 2, value ^ (1 << draw.randrange(abs(bits))),
             low, high, high - 1, high // 2, 2**15, 2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**40, 2**62, 2**63 - 1,
             draw.choice(others), draw.choice(others), draw.choice(others), draw.randrange(10), draw.randint(low, high)]
    return draw.choice([number for number in known if low <= number <= high and number != value])


def change_list(draw, items, isCode, kind):
    """Another length, or another order; None for an empty list of tables, which has no entry to repeat."""
    if not items:
        return {"[string]": [""], "[ubyte]": [0], "[uint]": [4], "[long]": [1], "[ulong]": [64]}.get(kind)
    ways = [items[:-1], items[:len(items) // 2], [], items + items[-1:], items[1:]]
    if not isCode and len(items) > 1:
        at = draw.randrange(len(items))
        swapped = list(items)
        other = draw.randrange(len(items))
        swapped[at], swapped[other] = swapped[other], swapped[at]
        ways += [items[:at] + items[at + 1:], items[:at] + [items[at]] + items[at:], swapped]
    return draw.choice([way for way in ways if way != items])


def change_text(draw, text, others):
    return draw.choice([t for t in ["", "x", text + "x", text[:-1], "../" + text, text + "\u0001", "y" * 5000, "%s%n", "\u00e9" * 9,
                                    draw.choice(others), draw.choice(others)] if t != text])


def change_field(program, draw):
    """(what was changed, the tree)."""
    tree = json.loads(program.text)
    place = draw.choice(program.paths)
    found, kind = find(tree, place), program.kinds[place]
    holder, key = draw.choice(found)
    before, others = holder[key], [h[k] for h, k in found]
    if kind in program.types:  # one that may be absent
        del holder[key]
        return f"{place}: {str(before)[:60]!r}, now absent", tree
    if kind.startswith("["):
        holder[key] = change_list(draw, before, key in CODE, kind)
        if holder[key] is None:
            return change_field(program, draw)
        return f"{place}: {len(before)} entries, now {len(holder[key])}", tree
    if kind == "bool":
        holder[key] = not before
    elif kind == "string":
        holder[key] = change_text(draw, before, others)
    else:
        holder[key] = change_number(draw, before, kind, others)
    return f"{place}: {str(before)[:60]!r}, now {str(holder[key])[:60]!r}", tree


def mutate(program, draw, structural=0.5):
    """(what was changed, the tree)."""
    if draw.random() >= structural:
        return change_field(program, draw)
    tree = json.loads(program.text)
    return change_structure(draw, tree), tree
