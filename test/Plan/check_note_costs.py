"""check_note_costs.py - the bytes that a plan's notes name, beside the plans that have it the other way.

    check_note_costs.py DIR

For losses whole and in chunks, with memory to spare, with less, and where the number is given: the note names the number of
chunks and what they save, and `loss_chunks` with that number, or 1, plans the other way. For reductions once per step that do
not fit, `gradient_reduction` plans them. For attention, `--attention`.
"""

import json
import os
import re
import subprocess
import sys

GPT = {"model_type": "gpt2", "vocab_size": 8192, "n_positions": 1024, "n_embd": 64, "n_layer": 2, "n_head": 4, "attn_pdrop": 0.0}
LLAMA = {"model_type": "llama", "vocab_size": 16384, "max_position_embeddings": 1024, "hidden_size": 64, "intermediate_size": 128,
         "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "rms_norm_eps": 1e-5, "tie_word_embeddings": True}
PLAIN = {"train_micro_batch_size_per_gpu": 2}
LOSS = re.compile(r"logits and their loss are made (at once|some rows at a time): (\d+) chunks of [0-9,]+ rows (?:would )?take "
                  r"[^(]* \(([0-9,]+) bytes\) (less|more) at the peak.*")


class Job:
    def __init__(self, directory, model, config, *options):
        self.directory, self.options = directory, options
        self.files = [os.path.join(directory, name) for name in ("model.json", "ds.json", "plan.json")]
        for path, content in zip(self.files, (model, config)):
            with open(path, "w") as file:
                json.dump(content, file)

    def plan(self, *options):
        model, config, report = self.files
        done = subprocess.run(["ds-opt", model, "--config", config, "--emit=plan", "--plan-json", report, "--changes=none",
                               *self.options, *options], capture_output=True, text=True)
        assert done.returncode in (0, 4), done.stderr
        with open(report) as file:
            return json.load(file)


def peak(plan):
    return plan["ranks"][0]["peak"]["bytes"]


def check_loss(job, *options):
    """Holds the note of the plan with `options` to the plan of the other kind."""
    plan = job.plan(*options)
    way, chunks, exact, sign = [match for match in map(LOSS.fullmatch, plan["notes"]) if match][0].groups()
    saved = int(exact.replace(",", "")) * (1 if sign == "less" else -1)
    is_whole = way == "at once"
    other = job.plan(*options, "--set", f"loss_chunks={chunks if is_whole else 1}")
    assert saved == (peak(plan) - peak(other) if is_whole else peak(other) - peak(plan)), (options, way, peak(plan), peak(other))
    if not is_whole:
        assert plan["loss_chunks"]["saved_bytes"] == saved, plan["loss_chunks"]
    print(f"{' '.join(options)}: {way}, {chunks} chunks, {saved} bytes")
    return plan, is_whole


def check_losses(directory):
    kinds = set()
    for model in (GPT, LLAMA):
        for extra in ({}, {"zero_optimization": {"stage": 1}, "bf16": {"enabled": True}}):
            job = Job(directory, model, {**PLAIN, **extra})
            free, _ = check_loss(job, "--memory", "8GiB")
            kinds.add(check_loss(job, "--memory", str(peak(free) * 2 // 3))[1])
            kinds.add(check_loss(job, "--memory", str(peak(free) - 1))[1])
            kinds.add(check_loss(job, "--memory", "8GiB", "--set", "loss_chunks=2")[1])
    assert kinds == {False, True} or kinds == {False}, kinds


def check_reduction(directory):
    job = Job(directory, GPT, {"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 2, "zero_optimization": {"stage": 1},
                               "loss_chunks": 1}, "--ranks", "4")
    least = peak(job.plan("--memory", "1KiB", "--set", 'gradient_reduction="once_per_step"'))
    notes = []
    for percent in range(99, 60, -3):  # the least that it does with is found by a plan of some limit, not of every one
        limit = least * percent // 100
        notes = [note for note in job.plan("--memory", str(limit))["notes"] if "once per step would take" in note]
        if notes:
            break
    with_once = job.plan("--memory", str(limit), "--set", 'gradient_reduction="once_per_step"')
    assert len(notes) == 1 and f"({peak(with_once):,} bytes)" in notes[0], (notes, peak(with_once))
    print(notes[0])


def check_kept_gradients(directory):
    """What a rank keeps by either time of reductions differs as the peaks do, where nothing else is chosen otherwise."""
    job = Job(directory, {**GPT, "vocab_size": 128}, {"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 2,
                                                      "zero_optimization": {"stage": 1}, "loss_chunks": 1}, "--ranks", "4")
    kept, peaks = [], []
    for when in ("once_per_step", "each_micro_step"):
        plan = job.plan("--memory", "8GiB", "--set", f'gradient_reduction="{when}"')
        note = [note for note in plan["notes"] if "a rank keeps" in note][0]
        kept.append(int(re.search(r"([0-9,]+) bytes\)", note)[1].replace(",", "")))
        peaks.append(peak(plan))
        print(note)
    assert kept[0] - kept[1] == peaks[0] - peaks[1] > 0, (kept, peaks)


def check_attention(directory):
    job = Job(directory, {**GPT, "vocab_size": 64}, {"train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": True}},
              "--target", "cuda:sm_90")
    plans = {way: job.plan("--attention", way)["attention"] for way in ("exact", "fast")}
    for way, other in (("exact", "fast"), ("fast", "exact")):
        assert plans[way]["other_usual_workspace_bytes"] == plans[other]["usual_workspace_bytes"], plans
        assert plans[way]["other_gradient_seconds"] == plans[other]["gradient_seconds"], plans


def main():
    directory = sys.argv[1]
    check_losses(directory)
    check_reduction(directory)
    check_kept_gradients(directory)
    check_attention(directory)


if __name__ == "__main__":
    main()
