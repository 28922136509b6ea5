"""check_tutorial.py - the commands of docs/tutorial.md do what the page says, in their order, on a small checkpoint.

    check_tutorial.py ROOT DIR

DIR has a checkpoint and data of nanoGPT's form. Steps are fewer (SHORTER); the first training run is sent SIGINT in its middle.
"""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

SHORTER = {"--steps 2000": "--steps 24", "--steps 2400": "--steps 30", "--save-every 200": "--save-every 5", "--eval-every 500": "--eval-every 12"}
INTERRUPTED = 75


def commands_of(page):
    """The page's commands in order, and its JSON."""
    config = re.compile(r"```json\n(.*?)```", re.S)
    return re.findall(r"^    (\S.*)$", config.sub("", page), re.M), config.search(page).group(1)


def steps_of(log):
    return [json.loads(line)["step"] for line in log.read_text().splitlines() if line.startswith("{") and line.endswith("}")] if log.exists() else []


def interrupt(shell, command, log):
    """Starts the command, and asks it to end when it has made some steps."""
    process = subprocess.Popen([*shell, f"exec {command}"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    while process.poll() is None and len(steps_of(log)) < 4:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    said = process.communicate()[0]
    assert process.returncode == INTERRUPTED, f"exit code {process.returncode} of an interrupted run:\n{said}"
    assert steps_of(log)[-1] < 24, "the run had ended before it was interrupted"
    print(f"interrupted after step {steps_of(log)[-1]}")


def torch_loss(length=256):
    """The loss of the archive that was written, over the windows of val.bin."""
    import numpy as np
    import torch
    model = torch.jit.load("gpt/gpt.pt")
    tokens = torch.from_numpy(np.fromfile("val.bin", dtype="<u2").astype(np.int64))
    count = (len(tokens) - 1) // length // 16 * 16
    starts = [torch.stack([tokens[k * length:(k + 1) * length + 1] for k in range(first, first + 16)]) for first in range(0, count, 16)]
    with torch.no_grad():
        return float(sum(model(part[:, :-1].contiguous(), part[:, 1:].contiguous()) for part in starts) / len(starts))


def main():
    root, folder = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    commands, config = commands_of((root / "docs/tutorial.md").read_text())
    os.chdir(folder)
    pathlib.Path("ds.json").write_text(config)
    os.environ.update(root=str(root), PYTHONWARNINGS="ignore")
    setup, log, interrupted = [], pathlib.Path("gpt/log.jsonl"), False
    for command in commands:
        for long, short in SHORTER.items():
            command = command.replace(long, short)
        if re.match(r"(export|inputs=)", command):
            setup += [] if "PATH" in command else [command]
            continue
        shell = ["env", *(line.replace('"', "") for line in setup), "bash", "-c"]
        if "--save-every" in command and not interrupted:
            interrupt(shell, command, log)
            interrupted = True
            continue
        done = subprocess.run([*shell, command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert done.returncode == 0, f"{command}\n{done.stdout}\nexit code {done.returncode}"
        print(f"$ {command}")
        if "--eval-only" in command:
            ours, theirs = float(re.search(r"eval_loss (\S+)", done.stdout).group(1)), torch_loss()
            assert abs(ours - theirs) < 1e-4 * theirs, f"ds-run finds a loss of {ours}, PyTorch of {theirs}"
            print("the loss is PyTorch's")
    steps = steps_of(log)
    assert sorted(set(steps)) == list(range(1, 31)), f"steps of the log: {steps}"
    names = json.loads(b"".join(p.read_bytes()[8:8 + int.from_bytes(p.read_bytes()[:8], "little")] for p in
                                sorted(pathlib.Path("gpt/trained").glob("*.safetensors"))[:1]))
    assert "transformer.h.1.attn.c_attn.weight" in names, f"exported names: {list(names)[:4]}"
    print(f"{len(commands)} commands of the tutorial work")
    return 0


if __name__ == "__main__":
    sys.exit(main())
