"""check_lora_memory.py - compare what plans keep of a model with adapters with the formula.

    check_lora_memory.py PLAN.json...

A rank of N keeps 2 bytes of each frozen parameter and 16 of each trained one, divided by N at stage 3, and nothing else
but scalars and padding; the peak is that, padding and what the plan lists as live beside it, and no byte more. What is
reduced are the gradients of what is trained, of two micro-steps.
"""

import json
import sys


def check(path):
    """(frozen, trained, complaints) of a plan."""
    with open(path) as file:
        plan = json.load(file)
    trained = plan["trained_parameters"]
    frozen = plan["parameters"] - trained
    complaints = []
    for rank in plan["ranks"]:
        states = rank["states"]
        expected = {"frozen_parameters": 2 * frozen, "parameters": 2 * (frozen + trained), "gradients": 2 * trained,
                    "optimizer": 12 * trained}
        for name, bytes in expected.items():
            if states[name] != bytes // plan["world"]:
                complaints.append(f"{path}: {name}: {states[name]} bytes, not {bytes // plan['world']}")
        together = sum(states[name] for name in ("parameters", "gradients", "optimizer"))
        if together * plan["world"] != 2 * frozen + 16 * trained:
            complaints.append(f"{path}: {together * plan['world']} bytes of states, not {2 * frozen + 16 * trained}")
        if sum(rank["at_peak"].values()) != rank["peak"]["bytes"]:
            complaints.append(f"{path}: the parts of the peak are not the peak")
        reduced, micro_steps = plan["predicted"]["communication_bytes"].get("reduce_scatter", 0), 2
        if plan["world"] > 1 and reduced != micro_steps * 2 * trained * (plan["world"] - 1) // plan["world"]:
            complaints.append(f"{path}: {reduced} bytes are reduced, and not the gradients of {trained} parameters alone")
        kept = rank["at_peak"]["parameters"] + rank["at_peak"]["gradients"] + rank["at_peak"]["optimizer"]
        print(f"{path}: peak {rank['peak']['bytes']}, states {together}, at the peak {rank['at_peak']}, {kept} kept")
    return frozen, trained, complaints


def main():
    results = [check(path) for path in sys.argv[1:]]
    complaints = [text for _, _, more in results for text in more]
    if len({result[:2] for result in results}) != 1:
        complaints.append("the plans have different parameters")
    if complaints:
        print("\n".join(complaints))
        sys.exit(1)
    print(f"{len(results)} plans keep 2 bytes of {results[0][0]} frozen parameters and 16 of {results[0][1]}")


if __name__ == "__main__":
    main()
