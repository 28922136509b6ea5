#!/usr/bin/python3
"""baseline.py - keeps the figures of a build, and compares those of another with them: equal to the bit and the byte.

    bench/baseline.py write before.json                     all cases: what they train to, what their plans say
    bench/baseline.py compare before.json                   each difference, by case and field; exit code 1 if there is any
    bench/baseline.py compare before.json --plan-only       plans and programs alone
    bench/baseline.py compare before.json --only 'ranks2'   cases whose names match
    bench/baseline.py compare before.json --ignore '^program'               fields that may differ
    bench/baseline.py compare before.json --renamed OLD=NEW                 a key that is called otherwise since

For changes that may change no number.  Of each case of baseline_cases.py the file has

    plan      every figure of --plan-json: predicted seconds, bytes sent, arenas, peaks and what they are made of, answers to questions
    program   bytes and SHA-256 of the .dsx, and commands of each stream
    run       losses, norms and rates of each step; digests of weights and of the checkpoint; peaks

Numbers with a fraction stand there as hexadecimal floats.  Names, sentences, times and paths do not.  Losses and programs depend on
the processor's instructions: compare where you wrote.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import time

import baseline_cases
import baseline_models

ROOT = baseline_cases.ROOT
NAMES_ONLY = {"inputs", "layer", "schema"}  # of plans: what was asked for, and what is a name even where it is a number
STEP_KEYS = ("loss", "grad_norm", "lr", "loss_scale", "skipped", "eval_loss", "tokens")


def exact(value):
    return value.hex() if isinstance(value, float) else value


def figures(value):
    """What of a JSON value is a number or holds one, exactly."""
    if isinstance(value, dict):
        kept = {key: figures(part) for key, part in value.items() if key not in NAMES_ONLY}
        return {key: part for key, part in kept.items() if part not in (None, {}, [])} or None
    if isinstance(value, list):
        kept = [figures(part) for part in value]
        return kept if any(part is not None for part in kept) else None
    return exact(value) if isinstance(value, (bool, int, float)) else None


def digest_of_tensors(paths):
    """SHA-256 of names, types, shapes and bytes of the tensors of safetensors files, whatever else their headers say."""
    digest = hashlib.sha256()
    for path in paths:
        digest.update(os.path.basename(path).encode())
        with open(path, "rb") as file:
            content = file.read()
        start = 8 + struct.unpack("<Q", content[:8])[0]
        header = json.loads(content[8:start])
        for name, tensor in sorted(item for item in header.items() if item[0] != "__metadata__"):
            begin, end = tensor["data_offsets"]
            digest.update(json.dumps([name, tensor["dtype"], tensor["shape"]]).encode())
            digest.update(content[start + begin:start + end])
    return digest.hexdigest()


def read_lines(path):
    with open(path) as file:
        return [json.loads(line) for line in file]


def read_json(path):
    with open(path) as file:
        return json.load(file)


class Fault(Exception):
    """A tool ended otherwise than it may."""


class Bench:
    """Makes cases, each in a folder of its own, with the tools of one build."""

    def __init__(self, args):
        self.bin, self.out, self.plan_only = os.path.abspath(args.bin), os.path.abspath(args.out), args.plan_only
        self.models = baseline_models.Models(os.path.join(self.out, "models"))
        self.environment = {key: value for key, value in os.environ.items() if not key.startswith("DS_")}
        self.environment.update(OMP_WAIT_POLICY="passive", OMP_NUM_THREADS="1")

    def call(self, folder, allowed, tool, *words):
        """The exit code of a tool, which must be one of those that are allowed."""
        done = subprocess.run([os.path.join(self.bin, tool), *map(str, words)], cwd=folder, env=self.environment,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
        if done.returncode not in allowed:
            said = [line for line in done.stdout.splitlines() if "error" in line] or done.stdout.splitlines()[-1:] or [""]
            raise Fault(f"{tool} ended with {done.returncode}: {said[0][:300]}")
        return done.returncode

    def make(self, case, files):
        """The entry of a case."""
        folder = os.path.join(self.out, "cases", case.name)
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(os.path.join(folder, "nvme"))
        settings = dict(case.config)
        if case.model[0] == "archive":
            settings["train_micro_batch_size_per_gpu"] = int(re.match(r"\w+=(\d+)", files[2][0])[1])
        with open(os.path.join(folder, "ds.json"), "w") as file:
            json.dump(settings, file, indent=2)
        try:
            entry = self.plan(case, files, folder)
            if case.steps and not self.plan_only:
                entry["run"] = self.run(case, files, folder)
        except Fault as fault:
            return {"fault": str(fault)}
        return entry

    def plan(self, case, files, folder):
        """Plans, and compiles what is trained."""
        path, _, inputs = files
        command = [os.path.relpath(path, folder), "--config", "ds.json", "--cluster", case.cluster, "--ranks", case.ranks,
                   *[word for text in inputs for word in ("--input", text)], *case.options]
        if "--plan" in case.options:  # chooses a configuration, which is planned then
            self.call(folder, (0,), "ds-opt", *command, "-o", "auto.json")
            command = command[:command.index("--plan")] + command[command.index("--plan") + 2:]
            command[2] = "auto.json"
        command += ["--plan-json", "plan.json"]
        if case.model[0] == "large":
            code = self.call(folder, (0, 4), "ds-opt", *command, "-o", "plan.txt")
            return {"exit": code, "plan": figures(read_json(os.path.join(folder, "plan.json")))}
        threads = [] if "--threads-per-rank" in case.options else ["--threads-per-rank", "1"]
        self.call(folder, (0,), "ds-opt", *command, *threads, "--trace", "planned.json", "--emit=program", "-o", "model.dsx")
        return {"plan": figures(read_json(os.path.join(folder, "plan.json"))), "program": self.program(folder)}

    @staticmethod
    def program(folder):
        with open(os.path.join(folder, "model.dsx"), "rb") as file:
            content = file.read()
        return {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest(),
                "commands": commands(read_json(os.path.join(folder, "planned.json")))}

    def run(self, case, files, folder):
        """Trains, and reads what the run leaves."""
        self.call(folder, (0,), "ds-run", "model.dsx", "--ranks", case.ranks, "--data", os.path.relpath(files[1], folder), "--seed", "3",
                  "--steps", case.steps, "--log-jsonl", "log.jsonl", "--save-weights", "after.safetensors", "--save", "saved",
                  "--nvme", "nvme")
        log = read_lines(os.path.join(folder, "log.jsonl"))
        saved = os.path.join(folder, "saved", f"step-{case.steps}")
        shards = sorted(os.path.join(saved, name) for name in os.listdir(saved) if name.endswith(".safetensors"))
        return {**{key: [exact(line.get(key)) for line in log] for key in STEP_KEYS if any(key in line for line in log)},
                "peak_bytes": log[-1]["peak_bytes"], "checkpoint": digest_of_tensors(shards),
                "weights": digest_of_tensors([os.path.join(folder, "after.safetensors")])}


def commands(trace):
    """How many commands each stream of each rank has, by the planned trace."""
    events = trace["traceEvents"] if isinstance(trace, dict) else trace
    counts = {}
    for event in events:
        if event.get("ph") == "X":
            track = f"{event['pid']}.{event['tid']}"
            counts[track] = counts.get(track, 0) + 1
    return counts


def flatten(value, path=""):
    """(path, leaf) of everything in an entry."""
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    if parts is None:
        yield path, value
        return
    for key, part in parts:
        yield from flatten(part, f"{path}.{key}" if path else str(key))


def rename(path, renamed):
    """The path with the parts that have other names since."""
    names = dict(pair.split("=") for pair in renamed)
    return ".".join(names.get(part, part) for part in path.split("."))


def spell(leaf):
    """A leaf for people: hexadecimal floats with what they are."""
    if isinstance(leaf, str) and re.fullmatch(r"-?0x[01]\.[0-9a-f]+p[+-]\d+", leaf):
        return f"{leaf} ({float.fromhex(leaf):.9g})"
    return "-" if leaf is None else str(leaf)


def differences(before, after, args):
    """A line for each field that the entries of one case do not share."""
    if before is None or after is None:
        yield "not in the file" if before is None else "no longer a case"
        return
    before, after = ({rename(path, args.renamed): leaf for path, leaf in flatten(before)}, dict(flatten(after)))
    for path in sorted(before.keys() | after.keys()):
        if before.get(path) != after.get(path) and not (args.ignore and re.search(args.ignore, path)):
            yield f"{path}: {spell(before.get(path))} -> {spell(after.get(path))}"


def processor():
    with open("/proc/cpuinfo") as file:
        lines = dict(line.split(":", 1) for line in file.read().split("\n\n")[0].splitlines() if ":" in line)
    fields = {key.strip(): value.strip() for key, value in lines.items()}
    return f"{fields.get('model name', 'unknown')}, flags {hashlib.sha256(fields.get('flags', '').encode()).hexdigest()[:12]}"


def make_all(args):
    """The entries of all cases that are wanted."""
    cases = [case for case in baseline_cases.all_cases() if re.search(args.only, case.name)]
    bench = Bench(args)
    shutil.rmtree(bench.models.folder, ignore_errors=True)
    files = [bench.models.files(case.model) for case in cases]  # PyTorch's seeds are the process's: one after the other
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        return dict(zip((case.name for case in cases), pool.map(bench.make, cases, files)))


def write(args, entries):
    faults = [f"{name}: {entry['fault']}" for name, entry in entries.items() if "fault" in entry]
    print("\n".join(faults + [f"{len(entries)} cases, {len(faults)} faults"]))
    if faults:
        return 1
    with open(args.file, "w") as file:
        json.dump({"processor": processor(), "cases": entries}, file, indent=1, sort_keys=True)
        file.write("\n")
    return 0


def compare(args, entries):
    kept = read_json(args.file)
    if kept["processor"] != processor():
        print(f"note: written on another processor, {kept['processor']}: losses and programs may differ for that alone")
    before = {name: entry for name, entry in kept["cases"].items() if re.search(args.only, name)}
    if args.plan_only:
        before = {name: {key: part for key, part in entry.items() if key != "run"} for name, entry in before.items()}
    lines = [f"{name}: {line}" for name in sorted(before.keys() | entries.keys())
             for line in differences(before.get(name), entries.get(name), args)]
    print("\n".join(lines + [f"{len(entries)} cases, {len(lines)} differences"]))
    return 1 if lines else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("write", "compare"))
    parser.add_argument("file", metavar="FILE")
    parser.add_argument("--bin", default=os.path.join(ROOT, "build", "bin"), metavar="DIR", help="the tools")
    parser.add_argument("--out", default=os.path.join(ROOT, "build", "bench", "baseline"), metavar="DIR", help="models, plans and logs")
    parser.add_argument("--only", default="", metavar="REGEX", help="cases whose names match")
    parser.add_argument("--ignore", metavar="REGEX", help="fields that may differ")
    parser.add_argument("--renamed", action="append", default=[], metavar="OLD=NEW", help="a key of the file and what it is called now")
    parser.add_argument("--plan-only", action="store_true", help="train nothing")
    parser.add_argument("--jobs", type=int, default=2, help="cases at once")
    args = parser.parse_args()
    begin = time.monotonic()
    entries = make_all(args)
    if not entries:
        parser.error(f"no case matches {args.only!r}")
    code = write(args, entries) if args.action == "write" else compare(args, entries)
    print(f"{time.monotonic() - begin:.0f} s", file=sys.stderr)
    sys.exit(code)


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":  # TorchScript writes sets of names in the order of their hashes
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, [sys.executable, "-W", "ignore", *sys.argv])
    main()
