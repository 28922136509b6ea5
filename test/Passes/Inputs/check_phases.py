"""check_phases.py - every pass refuses every phase that is not its own, and every phase leads on to a program.

    check_phases.py DS_OPT MODEL.mlir FOLDER

Brings the model to each phase and runs each pass on each: a pass ends with 0 where the phase is its own, and otherwise
with 3 and one error that says which phase it expects. Then makes the plan and the program from what each phase
prints: both must be those that the model itself has.
"""

import pathlib
import re
import subprocess
import sys

PHASES = ["model", "step", "sharded", "fused", "resident", "scheduled", "planned"]
# Pass -> the phases that it works on. A pass that is not named here is a fault.
WORKS_ON = {
    "set-machine": "model step sharded fused resident scheduled planned",
    # Of stages that are modules; one that has none is left as it is.
    "share-kernels": "model step sharded fused resident scheduled planned", "verify-stages": "model step sharded fused resident scheduled planned",
    "cut-stages": "model", "pipeline-segments": "scheduled",
    "freeze-parameters": "model", "add-adapters": "model", "verify-model": "model", "raise-attention": "model", "raise-gelu": "model", "raise-loss-cap": "model", "raise-splits": "model", "lower-precision": "model",
    "offer-loss": "model", "split-loss": "model", "differentiate": "model", "sink-loss": "model", "build-step": "model",
    "decompose": "model step sharded", "simplify": "model step sharded", "verify-step": "step", "shard-tensors": "step", "shard-zero": "step", "verify-sharded": "sharded",
    "offload-states": "sharded", "offload-updates": "fused", "place-states": "fused", "verify-fused": "fused", "rematerialize-cheap": "fused",
    "verify-resident": "resident", "normalize-shapes": "fused", "join-loss": "resident",
    "fuse-regions": "fused resident", "apply-gelu": "resident", "split-columns": "resident", "order-issue": "fused resident",
    "bufferize": "resident", "inline-recompute": "resident", "split-updates": "scheduled", "rotate-updates": "scheduled", "speculate-updates": "scheduled", "align-rows": "scheduled", "choose-products": "scheduled", "join-bias-grad": "scheduled", "join-column-sums": "scheduled", "release-stored": "scheduled", "overlap-exchanges": "scheduled", "prefetch-loads": "scheduled", "share-host": "scheduled", "overlap-reductions": "scheduled", "schedule-communication": "scheduled",
    "group-launches": "scheduled", "insert-events": "scheduled", "split-gathers": "scheduled", "verify-scheduled": "scheduled planned",
    "assign-workspaces": "scheduled", "plan-memory": "scheduled", "verify-planned": "planned",
    "verify-collectives": "scheduled planned"}
# What else a pass asks of its phase, in the words of its error.
ASKS_MORE = {"build-step": "expects at least one gradient", "bufferize": "to be fused"}


def run(*command):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True)


def find_passes(ds_opt):
    names = re.findall(r"^ +--ds-([a-z-]+)", run(ds_opt, "--help-hidden").stdout, re.M)
    return [name for name in names if not name.endswith("-pipeline")]


def check_pass(ds_opt, name, phase, path):
    result = run(ds_opt, path, f"--ds-{name}", "-o", path.with_suffix(".out"))
    errors = re.findall(r"error: (.*)", result.stderr)
    is_own = phase in WORKS_ON[name].split()
    if is_own and result.returncode == 3 and name in ASKS_MORE and len(errors) == 1 and ASKS_MORE[name] in errors[0]:
        return
    if is_own and result.returncode != 0:
        yield f"ds-{name} on its own phase {phase}: exit {result.returncode}: {result.stderr.strip()}"
    if is_own:
        return
    if result.returncode != 3:
        yield f"ds-{name} on phase {phase}: exit {result.returncode}, not 3: {result.stderr.strip()[:300]}"
    elif len(errors) != 1 or not re.match(rf"--ds-{name} expects phase [a-z ]+, but got a module in phase {phase}",
                                          errors[0]):
        yield f"ds-{name} on phase {phase}: expected one error about phases, but got {errors}"


def make(ds_opt, path, out):
    """The bytes of the program and of the plan of `path`."""
    program, plan = out.with_suffix(".dsx"), out.with_suffix(".json")
    result = run(ds_opt, path, "--emit=program", "-o", program, "--plan-json", plan, "--threads-per-rank", "2")
    if result.returncode:
        return result.stderr.strip()
    name = re.sub(r'"model": "[^"]*"', '"model": ""', plan.read_text())
    return program.read_bytes(), name


def main():
    ds_opt, model, folder = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
    folder.mkdir(parents=True, exist_ok=True)
    faults = []
    paths = {phase: folder / f"{phase}.mlir" for phase in PHASES}
    for phase, path in paths.items():
        result = run(ds_opt, model, "--emit=ir", f"--phase={phase}", "-o", path, "--threads-per-rank", "2",
                     "--mlir-print-debuginfo")
        if result.returncode:
            sys.exit(f"--phase={phase}: {result.stderr}")
    passes = find_passes(ds_opt)
    faults += [f"ds-{name}: what phases does it work on?" for name in passes if name not in WORKS_ON]
    faults += [f"ds-{name}: ds-opt does not have it" for name in WORKS_ON if name not in passes]
    for name in set(passes) & set(WORKS_ON):
        for phase, path in paths.items():
            faults += check_pass(ds_opt, name, phase, path)
    direct = make(ds_opt, model, folder / "direct")
    for phase, path in paths.items():
        made = make(ds_opt, path, folder / f"from-{phase}")
        if made != direct:
            faults.append(f"from phase {phase}: another plan or program: {made if isinstance(made, str) else ''}")
    print("\n".join(faults) or f"{len(passes)} passes hold to {len(PHASES)} phases")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
