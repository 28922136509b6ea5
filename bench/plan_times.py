#!/usr/bin/python3
"""plan_times.py - how long ds-opt plans, from 124M parameters on one rank to 1T on 3072.

    bench/plan_times.py [--ds-opt build/bin/ds-opt] [--repeat 3] [--memory 4000GiB] [--only NAME]
                        [--question max-batch]

Each plan is the program's: bf16, AdamW, 4 micro-steps, ZeRO 3 where there are ranks, on H100s whose memory is raised by
--memory so that all of them fit; without it, those that do not fit also pay for the changes that are planned for them. Prints
the least wall clock of the runs, the processor's time, and the most memory of the process.

With --question the plan and the answer take turns, and what the answer takes in plans stands behind it, with its last line.
"""

import argparse
import json
import os
import subprocess
import tempfile
import time


def gpt(width, layers, heads, context):
    return {"model_type": "gpt2", "n_embd": width, "n_layer": layers, "n_head": heads, "vocab_size": 50257,
            "n_positions": context, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}


def llama(width, inner, layers, heads):
    return {"model_type": "llama", "hidden_size": width, "intermediate_size": inner, "num_hidden_layers": layers,
            "num_attention_heads": heads, "num_key_value_heads": 8, "vocab_size": 128256, "hidden_act": "silu",
            "max_position_embeddings": 8192, "rms_norm_eps": 1e-5, "rope_theta": 500000.0, "tie_word_embeddings": False}


JOBS = {"gpt2-124m": (gpt(768, 12, 12, 1024), 1), "llama3-8b": (llama(4096, 14336, 32, 32), 8),
        "llama3-70b": (llama(8192, 28672, 80, 64), 64), "gpt-175b": (gpt(12288, 96, 96, 2048), 1024),
        "gpt-1t": (gpt(25600, 128, 160, 2048), 3072)}


def configuration(ranks):
    return {"train_batch_size": 4 * ranks, "train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 4,
            "zero_optimization": {"stage": 3 if ranks > 1 else 0}, "bf16": {"enabled": True}, "gradient_clipping": 1.0,
            "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}}}


def measure(command):
    """Wall clock, processor time and most memory of one run, and what it ended with."""
    begin = time.monotonic()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    return time.monotonic() - begin, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024, child.returncode


def answer(command, question, repeat):
    """The least processor time of a plan and of the question's answer, and what the answer says."""
    asked = [*command, f"--{question}"]
    times = [(measure(command)[1], measure(asked)[1]) for _ in range(repeat)]
    with open(command[command.index("-o") + 1]) as file:
        said = [line.strip() for line in file if not line.startswith("note:")]
    return min(plan for plan, _ in times), min(taken for _, taken in times), said[-1]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ds-opt", default="build/bin/ds-opt")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--memory")
    parser.add_argument("--only", choices=JOBS)
    parser.add_argument("--question", choices=("what-if", "max-batch", "max-seq"))
    args = parser.parse_args()
    print(f"{'job':<12}{'ranks':>6}{'plan s':>9}{'answer s':>10}{'plans':>7}" if args.question else f"{'job':<12}{'ranks':>6}{'wall s':>9}{'cpu s':>8}{'MiB':>7}  exit")
    with tempfile.TemporaryDirectory() as folder:
        for name, (model, ranks) in JOBS.items():
            if args.only and name != args.only:
                continue
            for file, value in (("config.json", model), ("ds_config.json", configuration(ranks))):
                with open(os.path.join(folder, file), "w") as out:
                    json.dump(value, out)
            command = [args.ds_opt, os.path.join(folder, "config.json"), "--config", os.path.join(folder, "ds_config.json"),
                       "--cluster", "h100-80g", "--ranks", str(ranks), "--emit=plan", "-o", os.path.join(folder, "plan.txt"),
                       "--plan-json", os.path.join(folder, "plan.json")]
            command += ["--memory", args.memory] if args.memory else []
            if args.question:
                plan, taken, said = answer(command, args.question, args.repeat)
                print(f"{name:<12}{ranks:>6}{plan:>9.2f}{taken:>10.2f}{taken / plan:>7.1f}  {said}", flush=True)
                continue
            runs = [measure(command) for _ in range(args.repeat)]
            wall, cpu, memory, code = min(runs)
            print(f"{name:<12}{ranks:>6}{wall:>9.2f}{cpu:>8.2f}{memory / 2**20:>7.0f}  {code}", flush=True)


if __name__ == "__main__":
    main()
