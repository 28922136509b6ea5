#!/usr/bin/python3
"""archives.py - mutate TorchScript archives, and see that importing them ends as documented.

    archives.py --build DIR [--count N] [--seed S] [--jobs J] [--share PART] [--keep DIR] [--only NUMBER]

Mutants have right checksums, so that what reads the entries is reached: pickles, code, the version, tensors, names and
sizes are changed; a tenth has bytes of the file changed as they lie. Each is imported in a process of its own
(ds-import-many, which starts LibTorch once); PART of them, and each whose process died, go through ds-opt as well.
An import may succeed (0), refuse the model (3) or the file (5), or die; with bytes changed as they lie it succeeds
only where they mean nothing. ds-opt may do the first three and nothing else;
no message shows a library's stack. A finding is kept in DIR and fails the run.
"""

import argparse
import collections
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import archive_mutations  # noqa: E402

INPUTS = ["x=2x6xf32"]
MEMORY, SECONDS = 256 << 20, 10
STACK = re.compile(r"frame #\d|Exception raised from|INTERNAL ASSERT|\.\./(aten|torch|c10|caffe2)/|please report|0x[0-9a-f]{9}")


def judge(answer):
    """What is wrong with how an import ended; empty where nothing is."""
    if answer["hung"]:
        return "hung"
    if STACK.search(answer["message"]):
        return "a library's stack in the message"
    if answer["signal"]:
        return ""  # ds-opt is asked what it makes of it
    if answer["exit"] == 0:
        return "" if answer["done"] else "ended without a word"
    if answer["exit"] not in (3, 5) or answer["code"] != answer["exit"] or len(answer["message"]) < 10:
        return f"exit code {answer['exit']}, reported code {answer['code']}"
    return ""


def judge_ds_opt(build, path):
    """What is wrong with ds-opt's word on an archive, and its exit code."""
    command = [f"{build}/bin/ds-opt", path, *(f"--input={text}" for text in INPUTS), "--emit=plan",
               f"--import-memory={MEMORY}", f"--import-seconds={SECONDS}"]
    try:
        done = subprocess.run(command, capture_output=True, timeout=40 * SECONDS)
    except subprocess.TimeoutExpired:
        return "ds-opt hung", -1
    said = done.stderr.decode(errors="replace")
    if done.returncode not in (0, 3, 5):
        return f"ds-opt: exit code {done.returncode}: {said[-400:]}", done.returncode
    if STACK.search(said):
        return f"ds-opt: a library's stack: {said[-400:]}", done.returncode
    return "", done.returncode


class Worker(threading.Thread):
    """Imports every `jobs`-th mutant."""

    def __init__(self, args, bases, numbers, folder):
        super().__init__()
        self.args, self.bases, self.numbers = args, bases, numbers
        self.path = os.path.join(folder, f"mutant-{numbers[0]}.pt")
        self.ends, self.findings, self.slowest = collections.Counter(), [], (0, 0)
        self.failure, self.made = None, {}

    def run(self):
        command = [f"{self.args.build}/unittests/ds-import-many", str(MEMORY), str(SECONDS), *INPUTS]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            try:
                for name, (raw, _) in self.bases.items():
                    answer = self.ask(process, raw)
                    assert answer["exit"] == 0 and answer["done"], f"{name} as it is: {answer}"
                    self.made[name] = answer["made"]
                for number in self.numbers:
                    self.try_one(process, number)
            except Exception as error:  # told by the main thread
                self.failure = f"{self.path}: {error!r}"
            process.stdin.close()

    def ask(self, process, archive):
        """What becomes of an archive."""
        with open(self.path, "wb") as file:
            file.write(archive)
        process.stdin.write(self.path + "\n")
        process.stdin.flush()
        return json.loads(process.stdout.readline())

    def try_one(self, process, number):
        chance = random.Random(f"{self.args.seed} {number}")
        name, how, mutant = archive_mutations.mutate(self.bases, chance)
        begin = time.monotonic()
        answer = self.ask(process, mutant)
        self.slowest = max(self.slowest, (time.monotonic() - begin, number))
        wrong = judge(answer)
        if how == "bytes" and answer["exit"] == 0 and answer["made"] != self.made[name]:
            wrong = "a changed byte went unnoticed"
        self.ends["signal " + str(answer["signal"]) if answer["signal"] else answer["exit"]] += 1
        if not wrong and (answer["signal"] or chance.random() < self.args.share):
            wrong, code = judge_ds_opt(self.args.build, self.path)
            self.ends[f"ds-opt {code}"] += 1
        if wrong or self.args.only is not None:
            self.keep(number, f"{name}, {how}: {wrong}", answer, mutant)

    def keep(self, number, wrong, answer, mutant):
        self.findings.append(f"mutant {number} of seed {self.args.seed}: {wrong}\n  {json.dumps(answer)[:1500]}")
        if self.args.keep:
            os.makedirs(self.args.keep, exist_ok=True)
            with open(os.path.join(self.args.keep, f"{self.args.seed}-{number}.pt"), "wb") as file:
                file.write(mutant)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build")
    parser.add_argument("--count", type=int, default=10000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--share", type=float, default=0.02)
    parser.add_argument("--keep")
    parser.add_argument("--only", type=int, help="this mutant alone, whatever becomes of it")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bases = archive_mutations.make_bases(folder)
        numbers = range(args.count) if args.only is None else [args.only]
        workers = [Worker(args, bases, numbers[i::args.jobs], folder) for i in range(min(args.jobs, len(numbers)))]
        begin = time.monotonic()
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    ends, findings = sum((w.ends for w in workers), collections.Counter()), sum((w.findings for w in workers), [])
    findings += [worker.failure for worker in workers if worker.failure]
    print("\n".join(findings))
    print(f"{len(numbers)} mutants of {len(bases)} archives, seed {args.seed}, {time.monotonic() - begin:.0f} s, slowest "
          f"%.1f s (mutant %d): {len(findings)} findings" % max(w.slowest for w in workers))
    print("ends:", ", ".join(f"{end}: {count}" for end, count in sorted(ends.items(), key=str)))
    sys.exit(1 if findings else 0)


if __name__ == "__main__":
    main()
