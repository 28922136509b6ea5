"""check_frozen.py - compare plans of one model of which nothing, a half and nearly all is frozen.

    check_frozen.py WHOLE.json HALF.json NORM.json
"""

import json
import sys


def load(path):
    with open(path) as file:
        plan = json.load(file)
    rank = plan["ranks"][0]
    trained = plan.get("trained_parameters", plan["parameters"])
    return {"trained": trained, "parameters": plan["parameters"], "states": rank["states"], "activations": rank["at_peak"]["activations"],
            "flops": plan["flops_per_step"], "reduced": plan["predicted"]["communication_bytes"].get("reduce_scatter", 0)}


def main():
    whole, half, norm = plans = [load(path) for path in sys.argv[1:4]]
    complaints = []
    for plan in plans:
        optimizer = 8 * plan["trained"] // 2  # two moments of f32, over two ranks
        if plan["states"]["optimizer"] != optimizer:
            complaints.append(f"{plan}: expects {optimizer} bytes of moments")
        if plan["states"].get("frozen_parameters", 0) != 4 * (plan["parameters"] - plan["trained"]):
            complaints.append(f"{plan}: the frozen parameters have other bytes")
        if plan["states"]["parameters"] != 4 * plan["parameters"]:
            complaints.append(f"{plan}: expects all parameters whole")
    if not norm["reduced"] < half["reduced"] < whole["reduced"]:
        complaints.append("as much is reduced whatever is frozen")
    # A forward takes a third of the work: nearly nothing else is left.
    if not norm["flops"] < 0.7 * half["flops"] < 0.7 * whole["flops"]:
        complaints.append("backward goes on below what is trained")
    if not norm["activations"] < 0.4 * half["activations"] < 0.4 * whole["activations"]:
        complaints.append("values of frozen layers are kept")
    for name, plan in zip(("whole", "half", "norm"), plans):
        print(name, plan)
    print("\n".join(complaints) or "what is frozen takes no activations, gradients or moments")
    sys.exit(1 if complaints else 0)


if __name__ == "__main__":
    main()
