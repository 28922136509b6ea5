"""offload_budget.py - trains a model on devices of a third of the memory that its states take, and compares with all memory.

    offload_budget.py FOLDER RANKS

FOLDER has config.json, ds.json, data.bin and an empty folder nvme. Says for each home of the states that losses and weights are those
of states on the device, or ends with 1.
"""

import filecmp
import json
import subprocess
import sys


def main():
    folder, ranks = sys.argv[1:]

    def run(*command, code=0):
        done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != code:
            sys.exit(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stdout}")

    def compile_program(name, *options, code=0):
        run("ds-opt", f"{folder}/config.json", "--config", f"{folder}/ds.json", "--input", "input_ids=1x16xi64", "--input",
            "labels=1x16xi64", "--ranks", ranks, "--plan-json", f"{folder}/{name}.json", "--emit=program", "-o", f"{folder}/{name}.dsx",
            *options, code=code)

    def train(name):
        run("ds-run", f"{folder}/{name}.dsx", "--data", f"{folder}/data.bin", "--seed", 3, "--steps", 3, "--ranks", ranks, "--log-jsonl",
            f"{folder}/{name}.jsonl", "--save-weights", f"{folder}/{name}.after.safetensors")
        with open(f"{folder}/{name}.jsonl") as file:
            return [(step["loss"], step["grad_norm"]) for step in map(json.loads, file)]

    def rank(name):
        with open(f"{folder}/{name}.json") as file:
            return json.load(file)["ranks"][0]

    compile_program("device")
    losses, states = train("device"), rank("device")["states"]
    budget = int(ranks) * (states["parameters"] + states["gradients"] + states["optimizer"]) // 3
    limits = ["--memory", budget, "--host-memory", "1GiB"]
    if ranks == "1":
        compile_program("device", *limits, code=4)
    for home in "cpu", "nvme":
        where = [word for part in ("offload_optimizer", "offload_param") for key, value in (
            ("device", home), ("nvme_path", f"{folder}/nvme")) for word in ("--set", f"zero_optimization.{part}.{key}={value}")]
        compile_program(home, *where, "--set", "zero_optimization.offload_param.max_in_cpu=0", *limits)
        arenas = rank(home)["arenas"]
        if arenas["device"] > budget or int(ranks) * arenas["host" if home == "cpu" else "nvme"] < budget:
            sys.exit(f"{home}: expects most of {3 * budget} bytes elsewhere, and {budget} here, but got {arenas}")
        if train(home) != losses or not filecmp.cmp(f"{folder}/device.after.safetensors", f"{folder}/{home}.after.safetensors", shallow=False):
            sys.exit(f"{home}: other losses or weights")
        print(f"{home}: the same, with {arenas['device']} bytes of {3 * budget} on the device")


if __name__ == "__main__":
    main()
