#!/usr/bin/python3
"""check_limits.py - ds-opt and ds-run under small limits of descriptors, memory, stack, threads and file sizes.

    check_limits.py DIR [--archive model.pt --input x=...]... [--dense]

A tool may succeed or refuse, with a documented exit code and a message that says what is missing; it may not crash, hang, or end
with an internal error.  The loader's own refusal (127, or a code of 1 before main) is not ours.  --dense tries many more values.
"""

import argparse
import resource
import subprocess
import sys
from pathlib import Path

MIB = 1 << 20
GOOD = {0, 2, 3, 4, 6, 9}
CONFIG = ('{"model_type": "gpt2", "vocab_size": 64, "n_positions": 16, "n_embd": 32, "n_layer": 1, "n_head": 2,'
          ' "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}')


def limits(dense):
    """(name, number of the limit, values)"""
    return [("-n", resource.RLIMIT_NOFILE, range(3, 70) if dense else (4, 6, 8, 20, 64)),
            ("-v", resource.RLIMIT_AS, [mib * MIB for mib in (range(8, 1200, 12) if dense else (64, 300, 400, 600))]),
            ("-d", resource.RLIMIT_DATA, [mib * MIB for mib in (range(1, 200, 3) if dense else (4, 16))]),
            ("-s", resource.RLIMIT_STACK, [kib << 10 for kib in ((16, 32, 64, 100, 128, 256, 512, 1024, 4096, 1 << 30) if dense else (16, 64, 1 << 30))]),
            ("-f", resource.RLIMIT_FSIZE, (0, 1, 1000, 10000, 50000) if dense else (0, 1000, 50000)),
            ("-l", resource.RLIMIT_MEMLOCK, (0,))]


def run(command, number, value, output):
    def limit():
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(number, (value, value))

    with open(output, "w+b") as file:
        pipe = subprocess.PIPE  # a limit on files' sizes must not cut the messages
        try:
            done = subprocess.run(command, stdout=file, stderr=pipe, preexec_fn=limit, timeout=100)
        except subprocess.SubprocessError as error:
            return (None, "") if "preexec" in str(error) else (-99, str(error))
        return done.returncode, done.stderr.decode(errors="replace")


def isLoaders(code, said):
    return code in (1, 127) and ("error while loading shared libraries" in said or "cannot create" in said)


def check(name, command, folder, dense):
    complaints, seen = [], {}
    for option, number, values in limits(dense):
        for value in values:
            code, said = run(command, number, value, folder / "stdout")
            # With so little the kernel does not even start a program, or the loader has no room for a message.
            if code is None or isLoaders(code, said) or (code in (-11, -9, 127, 1) and not said):
                seen.setdefault(option, []).append("-")
                continue
            seen.setdefault(option, []).append(str(code))
            if code not in GOOD or (code != 0 and "hint:" not in said):
                complaints.append(f"{name}: ulimit {option} {value}: exit code {code}: {said[-500:]}")
    print(name, *(f"{option}: {' '.join(codes)}" for option, codes in seen.items()), sep="\n  ")
    return complaints


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--archive")
    parser.add_argument("--input", action="append", default=[])
    parser.add_argument("--dense", action="store_true")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    config, program, tokens = args.folder / "config.json", args.folder / "model.dsx", args.folder / "tokens.bin"
    config.write_text(CONFIG)
    tokens.write_bytes(bytes(4096))
    opt = ["ds-opt", str(config), "--emit=program", "--threads-per-rank", "2", "-o"]
    subprocess.run(opt + [str(program)], check=True, stderr=subprocess.DEVNULL)
    train = ["ds-run", str(program), "--data", str(tokens), "--token-dtype", "u16", "--steps", "2", "--save-weights",
             str(args.folder / "after.safetensors"), "--trace", str(args.folder / "trace.json")]
    complaints = check("ds-opt", opt + [str(args.folder / "again.dsx")], args.folder, args.dense)
    complaints += check("ds-run", train, args.folder, args.dense)
    if args.archive:
        inputs = [word for shape in args.input for word in ("--input", shape)]
        complaints += check("ds-import", ["ds-opt", args.archive, *inputs, "--emit=program", "-o", str(args.folder / "import.dsx")],
                            args.folder, args.dense)
    left = [path.name for path in args.folder.iterdir() if path.name.startswith(".")]
    complaints += [f"left behind: {', '.join(left)}"] if left else []
    print("\n".join(complaints) or "no crash")
    sys.exit(bool(complaints))


if __name__ == "__main__":
    main()
