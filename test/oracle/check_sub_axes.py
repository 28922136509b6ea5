#!/usr/bin/python3
"""check_sub_axes.py - forms of stage 3 on a cut data-parallel axis: the numbers, the bytes along each axis, and the memory.

    check_sub_axes.py gpt --data 96 --out DIR --config ds_config.json --ranks 4,8 --accumulation 3 --steps 3 --built-in CPU.JSON

On N ranks, hpZ with a second copy among two, MiCS in groups of half, and, on nodes of two ranks, MiCS that gathers between nodes
first.  hpZ trains to the bit as stage 3 does, whatever the accumulation and wherever parameters live, and MiCS in two steps as
MiCS in one.  What ranks send along each axis is what the formulas of docs/zero.md say, in the plan and as the run counts it; a
run takes the memory that the plan says, in which the secondary partitions are named.
"""

import os

from commands import finish, run
from ranks.ir import read_modules
from ranks.program import Program
from trials import Trials, parse

# Nothing stays gathered from one use to the next, nothing is whole, and buckets are small.
NOTHING_STAYS = {"stage": 3, "stage3_max_reuse_distance": 1, "stage3_param_persistence_threshold": 0}
HPZ = {"zero_hpz_partition_size": 2}


def write_cluster(folder, built_in):
    """A cluster of nodes of two ranks, made of the one that this machine is."""
    path = os.path.join(folder, "pairs.json")
    with open(built_in) as file:
        text = file.read()
    for old, new in (('"nodes": 1', '"nodes": 8'), ('"devices_per_node": 64', '"devices_per_node": 2')):
        if old not in text:
            raise SystemExit(f"{built_in} does not say {old}")
        text = text.replace(old, new)
    end = text.rindex("}")
    with open(path, "w") as file:
        file.write(text[:end].rstrip() + ',\n  "between": {"latency_seconds": 1e-4, "port_bytes_per_second": 1e8, "ports_per_node": 1}\n}\n')
    return path


def divided_bytes(trials, name, zero, cluster=None):
    """(bytes of the buckets that ranks divide, of those of them that backward reads as well), by the IR."""
    folder = os.path.join(trials.args.out, f"{name}-ranks{trials.ranks}")
    shapes = [part for text in trials.inputs for part in ("--input", text)]
    text = run("ds-opt", trials.archive, "--config", os.path.join(folder, "config.json"), *shapes, "--ranks", trials.ranks, "--emit=ir",
               "--phase=sharded", "--mlir-print-op-generic", *(["--cluster", cluster] if cluster else []))
    stage = Program(read_modules(text[text.index('"builtin.module"'):])[0]).stages[0]
    last = next(run.function for run in reversed(stage.runs))
    forward = both = 0
    for state in stage.states.values():
        if state.role != "parameter" or not any(state.cuts):
            continue
        size = 4 * state.type.shape[0]
        # The sources of a function's gathers: the shard, or a part of it that an earlier gather left.
        names = {state.name} | {other.name for other in stage.states.values() if other.gathered_from == state.name}
        gathers = count_gathers(last, names)
        forward += size
        both += size if gathers > 1 else 0
    return forward, both


def count_gathers(function, names):
    arguments = {value for (value, _), binding in zip(function.body.arguments, function.reads)
                 if binding and binding[0] == "state" and binding[1] in names}
    parts, wholes = set(arguments), set()
    count = 0
    for op in function.body.ops:
        if op.name == "ds.all_gather" and op.operands[0] in parts:
            count += 1
            wholes.add(op.results[0])
        elif op.name == "ds.local_shard" and op.operands[0] in wholes:
            parts.add(op.results[0])
    return count


def check_bytes(name, result, expected):
    """Complaints about what is gathered along each axis of `expected`, in the plan and in each step of the run."""
    planned = result.plan["predicted"]["communication_bytes_by_axes"]["all_gather"]
    complaints = [] if planned == expected else [f"{name}: gathers {planned} by the plan, not {expected}"]
    return complaints + [f"{name}: gathers {line['communication_bytes_by_axes']['all_gather']} in step {line['step']}, not {expected}"
                         for line in result.log if line["communication_bytes_by_axes"]["all_gather"] != expected]


def check_memory(name, result, is_named):
    """Complaints about the memory of a run, and about how its plan lists it."""
    complaints = [f"{name}: step {line['step']} takes {line['peak_bytes']['device']} bytes, not {result.arena()}"
                  for line in result.log if line["peak_bytes"]["device"] != result.arena()]
    rows = [row for row in result.rank()["memory"] if "secondary partition" in row["source"]]
    if bool(rows) != is_named:
        complaints.append(f"{name}: the plan lists {len(rows)} rows of secondary partitions")
    return complaints


def check_hpz(trials, accumulation):
    ranks, local = trials.ranks, HPZ["zero_hpz_partition_size"]
    changes = {"gradient_accumulation_steps": accumulation}
    plain = trials.train(f"stage3-{accumulation}", NOTHING_STAYS, changes)
    name = f"hpz-{accumulation}"
    hpz = trials.train(name, {**NOTHING_STAYS, **HPZ}, changes)
    complaints = plain.differences(hpz, f"hpZ, accumulation {accumulation}")
    complaints += check_memory(name, hpz, True) + check_memory("stage 3", plain, False)
    forward, both = divided_bytes(trials, name, {**NOTHING_STAYS, **HPZ})
    further = (accumulation - 1) * (forward + both)
    complaints += check_bytes(name, hpz, {"dp": forward * (ranks - 1) // ranks, "dp.local": (both + further) * (local - 1) // local})
    complaints += check_bytes("stage 3", plain, {"dp": accumulation * (forward + both) * (ranks - 1) // ranks})
    roomy = trials.train("roomy", {"stage": 3, **HPZ}, changes)
    complaints += trials.train("roomy-stage3", {"stage": 3}, changes).differences(roomy, "with room") + check_memory("roomy", roomy, True)
    moved = trials.train("moved", {**NOTHING_STAYS, **HPZ, "offload_param": {"device": "cpu"}, "offload_optimizer": {"device": "cpu"}}, changes)
    complaints += plain.differences(moved, "with parameters on the host") + check_memory("moved", moved, True)
    again = trials.train("again", {**NOTHING_STAYS, **HPZ}, {**changes, "activation_checkpointing": {"number_checkpoints": 2}})
    return complaints + plain.differences(again, "with recomputation") + check_memory("again", again, True)


def check_mics(trials, cluster):
    group, local = trials.ranks // 2, 2
    name, mics = "mics", {**NOTHING_STAYS, "mics_shard_size": group}
    one = trials.train(name, mics, cluster=cluster)
    two = trials.train("mics-nodes", {**mics, "mics_hierarchical_params_gather": True}, cluster=cluster)
    complaints = one.differences(two, "MiCS in two steps") + check_memory("mics", one, False) + check_memory("mics-nodes", two, False)
    forward, both = divided_bytes(trials, name, mics, cluster)
    sent = trials.args.accumulation * (forward + both)
    complaints += check_bytes(name, one, {"dp.local": sent * (group - 1) // group})
    if group > local:
        complaints += check_bytes("mics-nodes", two, {"dp.node": sent * (group // local - 1) // group, "dp.local": sent * (local - 1) // local})
    return complaints + (["MiCS in one node sends otherwise"] if group <= local and one.plan["predicted"] != two.plan["predicted"] else [])


def main():
    args, rest = parse(__doc__)
    cluster = write_cluster(args.out, rest.pop(rest.index("--built-in") + 1))
    rest.remove("--built-in")
    complaints, summary = [], []
    for ranks in map(int, args.ranks.split(",")):
        trials = Trials(args, rest, ranks)
        for accumulation in (1, args.accumulation):
            complaints += [f"{ranks} ranks: {text}" for text in check_hpz(trials, accumulation)]
        complaints += [f"{ranks} ranks: {text}" for text in check_mics(trials, cluster)]
        summary.append(f"{ranks} ranks: hpZ as stage 3, MiCS in two steps as in one, to the bit; bytes and memory as planned")
    finish(complaints, "\n".join(summary))


if __name__ == "__main__":
    main()
