"""program_structure.py - changes to what the tables of a program say together.

Commands stay in segments that count them, and what is exchanged has the form of what it is exchanged for: such a file
passes what looks at one field, and only what compares them can tell: orders of messages, partners, groups, stages, events.
"""

import json

KERNEL, LIBRARY, COPY, COLLECTIVE, STORAGE, RECORD, WAIT = range(7)
SEND, RECEIVE = 5, 6
BAD_ENUMS = [7, 8, 31, 127, 128, 255]


def commands_of(draw, tree, kinds=None):
    """(segment, numbers of its commands of some kinds): of one of the segments that have any."""
    found = []
    for segment in tree["segments"]:
        first = segment["first_command"]
        numbers = [i for i in range(first, first + segment["num_commands"])
                   if kinds is None or tree["commands"][i]["kind"] in kinds]
        if numbers:
            found.append((segment, numbers))
    return draw.choice(found) if found else (None, [])


def some_kinds(draw):
    """Collectives and messages are few, and events: each is chosen as often as all others."""
    return draw.choice([None, {COLLECTIVE}, {COLLECTIVE}, {RECORD, WAIT}])


def swap_commands(draw, tree):
    segment, numbers = commands_of(draw, tree, some_kinds(draw))
    if len(numbers) < 2:
        return None
    at, other = draw.sample(numbers, 2)
    if draw.random() < 0.5:
        other = numbers[(numbers.index(at) + 1) % len(numbers)]
    commands = tree["commands"]
    commands[at], commands[other] = commands[other], commands[at]
    return f"commands {at} and {other} of {segment['name']!r} in each other's place"


def resize_segment(tree, segment, by):
    """Gives a segment a command more, or less, of which the list has been told."""
    end = segment["first_command"] + segment["num_commands"]
    segment["num_commands"] += by
    for other in tree["segments"]:
        if other is not segment and other["first_command"] >= end:
            other["first_command"] += by


def drop_command(draw, tree):
    segment, numbers = commands_of(draw, tree, some_kinds(draw))
    if not segment:
        return None
    at = draw.choice(numbers)
    resize_segment(tree, segment, -1)
    del tree["commands"][at]
    return f"command {at} of {segment['name']!r} is gone"


def repeat_command(draw, tree):
    segment, numbers = commands_of(draw, tree, some_kinds(draw))
    if not segment:
        return None
    at = draw.choice(numbers)
    to = segment["first_command"] + draw.randrange(segment["num_commands"] + 1)
    resize_segment(tree, segment, 1)
    tree["commands"].insert(to, dict(tree["commands"][at]))
    return f"command {at} of {segment['name']!r} stands again at {to}"


def move_command(draw, tree):
    """Into another segment, as a message that another work of the stage has, or another stage."""
    segment, numbers = commands_of(draw, tree, some_kinds(draw))
    if not segment or len(tree["segments"]) < 2:
        return None
    at = draw.choice(numbers)
    command = tree["commands"][at]
    resize_segment(tree, segment, -1)
    del tree["commands"][at]
    other = draw.choice([each for each in tree["segments"] if each is not segment])
    to = other["first_command"] + draw.randrange(other["num_commands"] + 1)
    resize_segment(tree, other, 1)
    tree["commands"].insert(to, command)
    return f"command {at} of {segment['name']!r} now in {other['name']!r}"


def change_kind(draw, tree):
    """Another kind of command, with a callee that it may have."""
    command = draw.choice(tree["commands"])
    command["kind"] = draw.choice([*range(7), draw.choice(BAD_ENUMS)])
    tables = {KERNEL: "kernels", COLLECTIVE: "collectives"}
    most = {LIBRARY: 40, RECORD: tree["num_events"], WAIT: tree["num_events"]}.get(
        command["kind"], len(tree[tables[command["kind"]]]) if command["kind"] in tables else 1)
    command["callee"] = draw.randrange(max(most, 1) + (draw.random() < 0.1))
    return f"a command of kind {command['kind']}, callee {command['callee']}"


def change_operands(draw, tree):
    commands = [command for command in tree["commands"] if command["num_operands"] > 0]
    if not commands:
        return None
    command, other = draw.choice(commands), draw.choice(commands)
    way = draw.randrange(4)
    first, count = command["first_operand"], command["num_operands"]
    if way == 0:
        command["first_operand"] = other["first_operand"]
    elif way == 1:
        command["first_operand"], command["num_operands"] = other["first_operand"], other["num_operands"]
    elif way == 2:
        window = tree["operands"][first:first + count]
        draw.shuffle(window)
        tree["operands"][first:first + count] = window
    else:
        tree["operands"][first + draw.randrange(count)] = draw.randrange(len(tree["buffers"]) + 1)
    return f"operands of a command of kind {command['kind']} (way {way})"


def change_params(draw, tree):
    commands = [command for command in tree["commands"] if command["num_params"] > 0]
    if not commands:
        return None
    command, other = draw.choice(commands), draw.choice(commands)
    if draw.random() < 0.2:
        command["first_param"], command["num_params"] = other["first_param"], other["num_params"]
        return "params of another command"
    at = command["first_param"] + draw.randrange(command["num_params"])
    tree["params"][at] = draw.choice([-1, 0, 1, 2, 3, 4, tree["params"][at] + 1, tree["params"][at] - 1, 2**31, 2**32, 2**63 - 1,
                                      -2**63, draw.choice(tree["params"])])
    return f"a param of a command of kind {command['kind']}: {tree['params'][at]}"


def messages(tree):
    return [command for command in tree["commands"] if command["kind"] == COLLECTIVE
            and command["callee"] < len(tree["collectives"]) and tree["collectives"][command["callee"]]["kind"] in (SEND, RECEIVE)]


def change_message(draw, tree):
    """Another partner, another number of messages behind it, the other end, or other words than its partner has."""
    found = messages(tree)
    if not found:
        return None
    command = draw.choice(found)
    entry, params = tree["collectives"][command["callee"]], tree["params"]
    way = draw.randrange(6)
    if way < 2 and command["first_param"] + way < len(params):
        params[command["first_param"] + way] = draw.choice([0, 1, 2, 3, 4, 7, -1, 2**32, 2**63 - 1])
    elif way == 2:
        entry["kind"] = SEND + RECEIVE - entry["kind"]
    elif way == 3:
        entry["elements"] = draw.choice([0, 1, entry["elements"] - 1, entry["elements"] + 1, entry["elements"] // 2, 2**62])
    elif way == 4:
        entry["name"] = draw.choice(tree["collectives"])["name"]
    else:
        command["stream"] = draw.randrange(len(tree["streams"]) + 1)
    return f"message {entry['name']!r} (way {way})"


def change_collective(draw, tree):
    if not tree["collectives"]:
        return None
    entry, other = draw.choice(tree["collectives"]), draw.choice(tree["collectives"])
    field = draw.choice(["kind", "reduction", "dtype", "axes", "elements", "all"])
    if field == "all":
        entry_before = dict(entry)
        entry.update(other)
        other.update(entry_before)
        return "two collectives in each other's place"
    entry[field] = draw.choice({
        "elements": [0, 1, other["elements"], entry["elements"] + 1, max(entry["elements"] - 1, 0), entry["elements"] * 2, 2**62, 2**64 - 1],
        "axes": [0, 1, 2, 3, 4, 7, 8, 2**31, 2**32 - 1, other["axes"]],
    }.get(field, [*range(9), draw.choice(BAD_ENUMS)]))
    return f"{field} of collective {entry['name']!r}: {entry[field]}"


def change_mesh(draw, tree):
    """Axes in another order, of other sizes, more or fewer; the number of ranks may follow."""
    mesh, way = tree["mesh"], draw.randrange(5)
    if way == 0 and len(mesh) > 1:
        mesh.reverse()
    elif way == 1 and mesh:
        draw.choice(mesh)["size"] = draw.choice([0, 1, 2, 3, 4, 64, 2**16, 2**31, 2**32 - 1])
    elif way == 2:
        mesh.insert(draw.randrange(len(mesh) + 1), {"name": draw.choice(["pp", "dp", "tp", "x"]), "size": draw.choice([1, 1, 2])})
    elif way == 3 and mesh:
        del mesh[draw.randrange(len(mesh))]
    elif mesh:
        draw.choice(mesh)["name"] = draw.choice(["pp", "dp", "tp", "sp", ""])
    world = 1
    for axis in mesh:
        world *= axis["size"]
    if draw.random() < 0.7 and world < 2**32:
        tree["world"] = world
    if draw.random() < 0.3:
        tree["data_axes"] = draw.choice([0, 1, 2, 3, 4, 2**32 - 1])
    if draw.random() < 0.3:
        tree["stage_axes"] = draw.choice([0, 1, 2, 3, 4, 2**32 - 1])
    return f"mesh {mesh} of {tree['world']} ranks"


def change_stage(draw, tree):
    """Whose stage something is, or the stages themselves."""
    way = draw.randrange(4)
    if way == 0:
        draw.shuffle(tree["stages"])
    elif way == 1:
        tree["stages"].append(json.loads(json.dumps(draw.choice(tree["stages"]))))
    elif way == 2:
        del tree["stages"][draw.randrange(len(tree["stages"]))]
    else:
        name = draw.choice([name for name in ("segments", "states", "inputs", "outputs", "lifetimes") if tree[name]])
        draw.choice(tree[name])["stage"] = draw.choice([*range(len(tree["stages"]) + 1), 2**32 - 1])
        return f"the stage of one of {name}"
    return f"{len(tree['stages'])} stages (way {way})"


def change_schedule(draw, tree):
    stage = draw.choice(tree["stages"])
    schedule, waits = stage["schedule"], stage.get("after", [])
    way = draw.randrange(6 if waits else 5)
    if way == 5:
        draw.choice(waits)[draw.choice(["compute", "transfer", "move"])] = draw.choice([0, 1, 2, 3, 4, 5, 2**32 - 1])
        return "what an entry of a schedule waits for"
    if way == 0:
        draw.shuffle(schedule)
    elif way == 1 and schedule:
        schedule.insert(draw.randrange(len(schedule) + 1), dict(draw.choice(schedule)))
    elif way == 2 and schedule:
        del schedule[draw.randrange(len(schedule))]
    elif schedule:
        entry = draw.choice(schedule)
        field = draw.choice(["segment", "first_micro_batch", "count", "gradients"])
        entry[field] = draw.choice([0, 1, 2, 3, 4, draw.choice(BAD_ENUMS), *([] if field == "gradients" else [2**31, 2**32 - 1])])
    return f"schedule of a stage (way {way})"


def change_buffers(draw, tree):
    one, other = draw.choice(tree["buffers"]), draw.choice(tree["buffers"])
    field = draw.choice(["offset", "first_dim", "rank", "space", "dtype", "slots", "slot_stride", "first_axis", "axes"])
    if field in ("space", "dtype") and draw.random() < 0.5:
        one[field] = draw.choice([*range(12), *BAD_ENUMS])
    else:
        one[field], other[field] = other[field], one[field]
    return f"{field} of buffers"


def change_layout(draw, tree):
    """What ranks have of a state: along other axes, of another bucket, of another view, in pieces."""
    found = [state for state in tree["states"] if "layout" in state]
    if not found:
        return None
    state, other = draw.choice(found), draw.choice(found)
    way = draw.randrange(6)
    if way == 3:  # another shape with the same elements, or with a few more or less
        shape = state["logical_shape"]
        state["layout"]["view"] = draw.choice([shape, shape[::-1], [1, *shape], [*shape, 1], [2, *shape], shape[1:], [1] * 300, [2**62, 4],
                                               [-1, *shape[1:]], [shape[0] + 1, *shape[1:]] if shape else [0]])
    elif way == 4:
        state["layout"]["existing"] = draw.choice([0, 1, 2, 2**32, 2**63, 2**64 - 1, state["layout"].get("existing") or 7])
    elif way == 5:  # pieces that fit, or nearly
        size = max(state["logical_shape"], default=4)
        state["layout"]["pieces"] = draw.choice([[size], [size // 2, size - size // 2], [size // 4 * 2, size // 4, size // 4], [1, size - 1],
                                                 [0, size], [-2, size + 2], [2**62, 2**62, size], [1] * 300])
    elif way == 0:
        state["layout"], other["layout"] = other["layout"], state["layout"]
    elif way == 1:
        state["layout"]["cuts"] = draw.choice([[], [1], [2], [1, 2], [3], [2**32 - 1], [0], [1] * 300])
    else:
        state["layout"]["bucket"] = draw.choice([0, 1, 2, 3, 4, 2**31, 2**32 - 1])
    return f"layout of {state['name']!r} (way {way})"


def swap_entries(draw, tree):
    """Two entries of a table, of which everything else says the place."""
    name = draw.choice([name for name in ("kernels", "segments", "states", "buffers", "lifetimes", "inputs", "outputs", "collectives",
                                          "strings", "streams") if len(tree[name]) > 1])
    at, other = draw.sample(range(len(tree[name])), 2)
    tree[name][at], tree[name][other] = tree[name][other], tree[name][at]
    return f"{name}[{at}] and [{other}] in each other's place"


STRUCTURAL = [swap_commands, swap_commands, drop_command, repeat_command, move_command, change_kind, change_operands, change_params,
              change_message, change_message, change_message, change_collective, change_mesh, change_stage, change_schedule,
              change_buffers, change_layout, swap_entries]


def change_structure(draw, tree):
    said = []
    for _ in range(draw.choice([1, 1, 1, 2])):
        what = None
        while what is None:
            try:
                what = draw.choice(STRUCTURAL)(draw, tree)
            except (IndexError, ValueError):
                pass  # an earlier change has left nothing to change there
        said.append(what)
    return "; ".join(said)
