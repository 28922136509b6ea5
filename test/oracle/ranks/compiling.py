"""compiling.py - a model as the ranks of a configuration run it, in IR."""

import json
import os
import subprocess

from .program import read_program


def ds_opt(*arguments):
    """What ds-opt prints, as IR."""
    done = subprocess.run(["ds-opt", *map(str, arguments), "--emit=ir"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        raise SystemExit(f"ds-opt {' '.join(map(str, arguments))}:\n{done.stderr}")
    return done.stdout


def compile_ranks(model, config, ranks, folder, phase=None):
    """The program of a model in IR; `config` is a dictionary. Of one rank in phase step, by itself: later passes form sums
    within products, where they have another order."""
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "config.json")
    with open(path, "w") as file:
        json.dump(config, file)
    phase = phase or ("sharded" if ranks > 1 else "step")
    return read_program(ds_opt(model, "--config", path, "--ranks", ranks, f"--phase={phase}", "--mlir-print-op-generic"))
