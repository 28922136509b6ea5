"""check_early_updates.py - what a plan that lacks less than its gradients says would let updates start early.

    check_early_updates.py DIR ARGUMENT...

Each case plans the job of ARGUMENTs as it is and with what the note should name, as small as can be, takes a limit between the
two, and holds the note of the plan with that limit, in text and in JSON, to the plan of the settings that it names. Where nothing
waits, or more is lacking than gradients take, there is no note.
"""

import json
import os
import re
import subprocess
import sys

# (settings of the job, ranks, what the note names, the same as settings)
CASES = [
    ([], 1, "gradient_clipping = 0", ["gradient_clipping=0"]),
    (["bf16.enabled=true", "gradient_clipping=0"], 1, "bf16.check_grad_overflow = false", ["bf16.check_grad_overflow=false"]),
    (["bf16.enabled=true"], 1, "gradient_clipping = 0 and bf16.check_grad_overflow = false",
     ["gradient_clipping=0", "bf16.check_grad_overflow=false"]),
    (["fp16.enabled=true", "gradient_clipping=0"], 1, "bf16 without bf16.check_grad_overflow in place of fp16",
     ["fp16.enabled=false", "bf16.enabled=true", "bf16.check_grad_overflow=false"]),
    (["gradient_clipping=0", "skip_bad_steps=true"], 1, "skip_bad_steps = false", ["skip_bad_steps=false"]),
    (["gradient_clipping=0", "gradient_accumulation_steps=2"], 1, "gradient_accumulation_steps = 1 (fewer samples a step)",
     ["gradient_accumulation_steps=1"]),
    (["gradient_clipping=0", "gradient_accumulation_steps=2", "zero_optimization.stage=1", 'gradient_reduction="once_per_step"'], 2,
     'gradient_reduction = "each_micro_step"', ['gradient_reduction="each_micro_step"']),
]
NOTE = re.compile(r"the plan lacks .* of gradients at its peak, which wait: with (.*), parameters are updated and gradients freed "
                  r"one after the other, and the plan takes .* \(([0-9,]+) bytes\), which fits")


def plan(directory, arguments, sets, ranks, memory=None):
    """(exit code, text, plan) of the job with `sets`."""
    report = os.path.join(directory, "plan.json")
    command = ["ds-opt", *arguments, "--ranks", str(ranks), "--emit=plan", "--plan-json", report]
    for text in sets:
        command += ["--set", text]
    done = subprocess.run(command + (["--memory", str(memory)] if memory else []), capture_output=True, text=True)
    assert done.returncode in (0, 4), done.stderr
    with open(report) as file:
        return done.returncode, done.stdout, json.load(file)


def peak(found):
    return found["ranks"][0]["peak"]["bytes"]


def notes(found):
    return [match for match in map(NOTE.fullmatch, found["notes"]) if match]


def main():
    directory, *arguments = sys.argv[1:]
    for sets, ranks, name, changed in CASES:
        waits, early = (peak(plan(directory, arguments, given, ranks, memory=1024)[2]) for given in (sets, sets + changed))
        assert early < waits, (sets, early, waits)
        limit = (early + waits) // 2
        code, text, tight = plan(directory, arguments, sets, ranks, limit)
        assert code == 4, (sets, code, early, waits)
        said = notes(tight)
        assert len(said) == 1 and said[0][1] == name, (sets, tight["notes"])
        assert said[0][0] in " ".join(text.split()), text
        code, _, without = plan(directory, arguments, sets + changed, ranks, limit)
        assert code == 0 and peak(without) == int(said[0][2].replace(",", "")), (sets, peak(without), said[0][0])
        print(f"{sets}: {said[0][0]}")
    # Nothing waits; and what is lacking is more than gradients are.
    early = peak(plan(directory, arguments, ["gradient_clipping=0"], 1, memory=1024)[2])
    for sets, limit in ((["gradient_clipping=0"], early * 9 // 10), ([], 1024)):
        code, _, found = plan(directory, arguments, sets, 1, limit)
        assert code == 4 and not any("of gradients at its peak" in note for note in found["notes"]), (sets, found["notes"])


if __name__ == "__main__":
    main()
