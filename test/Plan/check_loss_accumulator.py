"""check_loss_accumulator.py - what chunks of a loss with a 16-bit head add to a plan: one sum in f32, and no more.

    check_loss_accumulator.py DIR

DIR has tiny.json, a model of which all but the tied table is small, tiny.ds.json, and 3b.ds.json for Llama 3.2 3B.
"""

import json
import os
import subprocess
import sys

MIB = 1 << 20
FREE = ["gradient_clipping=0", "bf16.check_grad_overflow=false"]


def peak(directory, model, config, shape, cluster, sets, chunks):
    report = os.path.join(directory, "plan.json")
    command = ["ds-opt", model, "--config", os.path.join(directory, config), "--cluster", cluster, "--emit=plan", "-o", report + ".txt",
               "--plan-json", report, "--set", f"loss_chunks={chunks}"]
    for name in ("input_ids", "labels"):
        command += ["--input", f"{name}={shape}xi64"]
    for text in sets:
        command += ["--set", text]
    subprocess.run(command, check=True, capture_output=True)
    with open(report) as file:
        return json.load(file)["ranks"][0]["peak"]["bytes"]


def check_tiny(directory):
    """A table of 65,536 x 64: 8 MiB in bf16, 16 in f32. Parameters and two moments are three tables."""
    tiny = os.path.join(directory, "tiny.json")
    for sets in ([], ["gradient_clipping=0"], FREE):
        for accumulation, tables in ((1, 3), (2, 4)):  # with micro-steps, what is kept of the gradient is a table as well
            own = sets + [f"gradient_accumulation_steps={accumulation}"]
            whole = peak(directory, tiny, "tiny.ds.json", "1x8", "a100-40g", own, 1)
            for chunks in (2, 4) if sets == FREE else (2,):
                found = peak(directory, tiny, "tiny.ds.json", "1x8", "a100-40g", own, chunks)
                print(f"{own}, {chunks} chunks: {whole / MIB:.1f} MiB whole, {found / MIB:.1f} in chunks")
                assert found <= 54 * MIB, (own, chunks, found)
                # The sum, the result where it is not what is kept, the states; 6 MiB are all else and workspaces.
                assert found <= (tables * 8 + 16 + (8 if accumulation == 1 else 0) + 6) * MIB, (own, chunks, found)


def check_3b(directory):
    """The f32 sum of a table of 128,256 x 3,072."""
    accumulator = 4 * 128256 * 3072
    for sets in (FREE, ["gradient_clipping=0"], []):
        whole, chunks = (peak(directory, "llama-3.2-3b", "3b.ds.json", "2x4096", "a100-80g", sets, count) for count in (1, 8))
        print(f"Llama 3.2 3B {sets}: {whole / 2**30:.2f} GiB whole, {chunks / 2**30:.2f} in 8 chunks")
        assert chunks <= whole + accumulator, (sets, whole, chunks)
        if sets == FREE:
            assert whole <= 22.2 * 2**30, whole


def main():
    check_tiny(sys.argv[1])
    check_3b(sys.argv[1])


if __name__ == "__main__":
    main()
