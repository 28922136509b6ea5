#!/usr/bin/python3
"""checkpoints.py - what saving costs a run, and how fast checkpoints are written and read, beside fio in the same folder.

    checkpoints.py DIR [--steps 20] [--rounds 3]

GPT-2 124M in fp32 with AdamW, 1.5 GB of states.  Prints the median of the rounds:
  write   bytes a second of a synchronous save, over fio's (sequential, direct, 4 MiB, depth 4, the same size and folder)
  read    bytes a second of a resumption, over fio's
  async   seconds of STEPS steps with one asynchronous save in their middle, over the same steps without; rounds alternate
"""

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys

import numpy as np

GPT2 = {"model_type": "gpt2", "vocab_size": 50257, "n_positions": 1024, "n_embd": 768, "n_layer": 12, "n_head": 12,
        "attn_pdrop": 0, "resid_pdrop": 0, "embd_pdrop": 0}
TRAINING = {"train_micro_batch_size_per_gpu": 1, "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}}}
SIZE = {"GiB": 2 ** 30, "MiB": 2 ** 20, "KiB": 2 ** 10, "B": 1}


def run(*command):
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        sys.exit(f"{command}: exit code {done.returncode}\n{done.stdout}")
    return done.stdout


def rate(log, pattern):
    """Bytes a second as a line of the log says."""
    value, unit, seconds = re.search(pattern + r".*?([\d.]+) (GiB|MiB|KiB|B) .*?in ([\d.e-]+) s", log).groups()
    return float(value) * SIZE[unit] / float(seconds)


def fio(folder, kind, size):
    text = run("fio", "--name=checkpoint", f"--directory={folder}", f"--size={size}", "--bs=4M", f"--rw={kind}",
               "--ioengine=libaio", "--iodepth=4", "--direct=1", "--output-format=json")
    return json.loads(text[text.index("{"):])["jobs"][0][kind]["bw_bytes"]


class Bench:
    def __init__(self, folder, steps):
        self.folder, self.steps = folder, steps
        os.makedirs(folder, exist_ok=True)
        for name, value in (("config.json", GPT2), ("ds.json", TRAINING)):
            with open(os.path.join(folder, name), "w") as file:
                json.dump(value, file)
        np.random.default_rng(0).integers(0, 50257, 100000).astype(np.uint16).tofile(os.path.join(folder, "data.bin"))
        run("ds-opt", f"{folder}/config.json", "--config", f"{folder}/ds.json", "--input", "input_ids=1x128xi64", "--input",
            "labels=1x128xi64", "--emit=program", "-o", f"{folder}/p.dsx")

    def train(self, steps, *options):
        shutil.rmtree(f"{self.folder}/s", ignore_errors=True)
        log = f"{self.folder}/log.jsonl"
        if os.path.exists(log):
            os.remove(log)
        text = run("ds-run", f"{self.folder}/p.dsx", "--data", f"{self.folder}/data.bin", "--steps", steps, "--log-jsonl", log,
                   *options)
        times = []
        with open(log) as file:
            times = [json.loads(line)["step_seconds"] for line in file]
        return text, times

    def save_and_read(self):
        """(write, read) as shares of fio's rates."""
        text, _ = self.train(1, "--save", f"{self.folder}/s", "--save-mode", "sync")
        size = sum(entry.stat().st_size for entry in os.scandir(f"{self.folder}/s/step-1"))
        written = rate(text, "checkpoint saved to")
        shutil.rmtree(f"{self.folder}/kept", ignore_errors=True)
        os.rename(f"{self.folder}/s", f"{self.folder}/kept")
        text, _ = self.train(1, "--resume", f"{self.folder}/kept")
        read = rate(text, "resumes from")
        wrote, got = fio(self.folder, "write", size), fio(self.folder, "read", size)
        os.remove(f"{self.folder}/checkpoint.0.0")
        return (written, wrote), (read, got)


    def overhead(self):
        """Wall seconds of the steps with one save, over those without."""
        walls = []
        for options in ((), ("--save", f"{self.folder}/s", "--save-every", self.steps // 2)):
            shutil.rmtree(f"{self.folder}/s", ignore_errors=True)
            trace = f"{self.folder}/trace.json"
            self.train(self.steps, "--trace", trace, *options)
            with open(trace) as file:
                events = [event for event in json.load(file)["traceEvents"] if event["ph"] == "X"]
            begin, end = min(event["ts"] for event in events), max(event["ts"] + event["dur"] for event in events)
            walls.append((end - begin) * 1e-6)
        return walls[1] / walls[0], walls


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    bench = Bench(args.folder, args.steps)
    shares = {"write": [], "read": [], "async": []}
    for index in range(args.rounds):
        (written, wrote), (read, got) = bench.save_and_read()
        ratio, walls = bench.overhead()
        shares["write"].append(written / wrote)
        shares["read"].append(read / got)
        shares["async"].append(ratio)
        print(f"round {index + 1}: write {written / 1e9:.2f} of {wrote / 1e9:.2f} GB/s, read {read / 1e9:.2f} of {got / 1e9:.2f} GB/s, "
              f"{args.steps} steps {walls[1]:.2f} s with a save, {walls[0]:.2f} s without", flush=True)
    for name, values in shares.items():
        print(f"{name} {statistics.median(values):.3f}")


if __name__ == "__main__":
    main()
