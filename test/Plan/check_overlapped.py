"""check_overlapped.py - exchanges of cut layers run beside products where a plan says that this is faster.

    check_overlapped.py FOLDER

Plans a Llama on eight H100 with `tp_overlap_comm` absent, true and false, with rows whole and cut, and a small one.
"""

import json
import pathlib
import subprocess
import sys

CONFIG = {"train_micro_batch_size_per_gpu": 2, "bf16": {"enabled": True}, "optimizer": {"type": "AdamW", "params": {"lr": 1e-3}}}
SMALL = {"model_type": "llama", "vocab_size": 512, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2,
         "num_attention_heads": 8, "num_key_value_heads": 8, "max_position_embeddings": 64}


def plan(folder, model, options, rows, overlaps):
    keys = {"autotp_size": 8, "sequence_parallel": rows, **({} if overlaps is None else {"tp_overlap_comm": overlaps})}
    config, out = folder / "config-ds.json", folder / "plan.json"
    config.write_text(json.dumps({**CONFIG, "tensor_parallel": keys}))
    subprocess.run(["ds-opt", model, *options, "--config", config, "--ranks", "8", "--cluster", "dgx-h100", "--target", "cuda:sm_90",
                    "--emit=plan", "--plan-json", out, "-o", folder / "plan.txt"], check=True)
    made = json.loads(out.read_text())
    return made["predicted"]["step_seconds"], made["predicted"]["exposed_communication_seconds"], made["ranks"][0]["peak"]["bytes"]


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    faults = []
    for rows in False, True:
        (waits, exposed, peak), chosen, asked = (plan(folder, "llama-3.2-1b", ["--length", "2048"], rows, key) for key in (False, None, True))
        name = f"rows {'cut' if rows else 'whole'}"
        print(f"{name}: {waits:.5f} s, chosen {chosen[0]:.5f} s, asked for {asked[0]:.5f} s; {peak} and {chosen[2]} bytes")
        # A gain that a plan shows, with exchanges hidden where no copies are saved, and no memory for it.
        faults += [f"{name}: {step:.5f} s is not faster than {waits:.5f} s" for step, _, _ in (chosen, asked) if step > 0.97 * waits]
        if chosen[1] > 0.95 * exposed:
            faults.append(f"{name}: {chosen[1]:.5f} s of exchanges are exposed, {exposed:.5f} s without")
        faults += [f"{name}: {step[2]} bytes, {peak} without" for step in (chosen, asked) if step[2] > 1.001 * peak]
    small = folder / "small.json"
    small.write_text(json.dumps(SMALL))
    (waits, _, _), chosen, asked = (plan(folder, small, [], False, key) for key in (False, None, True))
    print(f"small: {waits:.6f} s, chosen {chosen[0]:.6f} s, asked for {asked[0]:.6f} s")
    if chosen[0] > waits or asked[0] <= chosen[0]:
        faults.append("a small model is cut though it is not faster")
    print("\n".join(faults) or "exchanges run beside products where that is faster")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
