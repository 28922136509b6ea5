"""check_names.py DIR: runs the tools on files whose names have a line break and an escape, well and with mistakes, and looks for either in
what they print. Every message that names such a file must show it escaped."""

import os
import pathlib
import shutil
import struct
import subprocess
import sys

EVIL = "a\nds-opt: error: fake \x1b[31mred"
SHOWN = "a\\x0ads-opt: error: fake \\x1b[31mred"
GPT = '{"model_type": "gpt2", "vocab_size": 64, "n_positions": 16, "n_embd": 16, "n_layer": 1, "n_head": 2, "attn_pdrop": 0}'


def main():
    folder = pathlib.Path(sys.argv[1])
    os.chdir(folder)
    here = folder / EVIL
    (here / "gpt").mkdir(parents=True)
    (here / "gpt/config.json").write_text(GPT)
    (here / "bad").mkdir()
    (here / "bad/config.json").write_text('{"model_type": "t5"}')
    (here / "ds.json").write_text('{"train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": "auto"}}')
    (here / "bad.json").write_text('{"train_batch_size": 8, "stag\\u001be": 1}')
    (here / "bad.mlir").write_text("func.func @f() { ds.nothing }\n")
    (here / "tokens.bin").write_bytes(struct.pack("<640H", *(k % 64 for k in range(640))))
    (here / "large.bin").write_bytes(struct.pack("<640H", *[999] * 640))
    shutil.copytree(here / "gpt", folder / (EVIL + "model"))
    program, data = f"{EVIL}/gpt.dsx", f"{EVIL}/tokens.bin"
    opt, run, ckpt = ["ds-opt"], ["ds-run", program, "--data", data, "--steps", "2"], ["ds-ckpt"]
    commands = [  # exit code, whether the name is shown, command
        (0, True, [*opt, f"{EVIL}/gpt", "--config", f"{EVIL}/ds.json"]),
        (0, True, [*opt, EVIL + "model"]),
        (0, True, [*opt, f"{EVIL}/gpt", f"--config={EVIL}/ds.json", "--emit=program", "-o", program]),
        (3, True, [*opt, f"{EVIL}/bad"]),
        (3, True, [*opt, f"{EVIL}/gpt", "--config", f"{EVIL}/bad.json"]),
        (3, True, [*opt, f"{EVIL}/bad.mlir", "--config", f"{EVIL}/ds.json"]),
        (3, True, [*opt, f"{EVIL}/bad.mlir"]),
        (6, True, [*opt, f"{EVIL}/none.json"]),
        (2, True, [*opt, f"{EVIL}/gpt", f"--{EVIL}"]),
        (0, True, [*run, "--save", f"{EVIL}/runs"]),
        (3, True, ["ds-run", program, "--data", f"{EVIL}/large.bin", "--steps", "1"]),
        (6, True, ["ds-run", f"{EVIL}/none.dsx", "--data", data]),
        (0, False, [*ckpt, "ls", f"{EVIL}/runs"]),
        (0, True, [*ckpt, "show", f"{EVIL}/runs"]),
        (0, True, [*ckpt, "verify", f"{EVIL}/runs"]),
        (6, True, [*ckpt, "show", f"{EVIL}/none"]),
    ]
    for code, shows, command in commands:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        said = done.stdout.decode()
        assert done.returncode == code, (command, done.returncode, said)
        bad = [c for c in said if (ord(c) < 32 and c != "\n") or ord(c) == 127]
        assert not bad, (command, bad, said)
        assert not any(line.startswith("ds-opt: error: fake") for line in said.split("\n")), (command, said)
        assert not shows or "fake \\x1b[31mred" in said, (command, said)
        if command[:2] == ["ds-ckpt", "verify"]:  # what lies there beside what was saved
            (here / "runs" / ("step-9.tmp-" + "ab")).mkdir()
    print(f"{len(commands)} commands print no control character")


main()
