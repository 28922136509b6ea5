"""check_live_count.py - what is live by the count that choices are made by, and in buffers, of steps of all kinds.

    check_live_count.py DIR

ds-opt warns where the two differ, on the device, the host or in storage. `as expected`: the plan, with workspaces and what lies between rows, also takes what was
expected of it when it was chosen what is kept, but for the 64 bytes to which each buffer is rounded up and, on the CPU, for what oneDNN asks
for a product, which depends on the processor and is known once there are buffers.
"""

import json
import os
import re
import subprocess
import sys

GPT = {"model_type": "gpt2", "vocab_size": 5001, "n_positions": 256, "n_embd": 128, "n_layer": 4, "n_head": 4,
       "resid_pdrop": 0.1, "embd_pdrop": 0.1, "attn_pdrop": 0.0}
LLAMA = {"model_type": "llama", "vocab_size": 4096, "max_position_embeddings": 512, "hidden_size": 128, "intermediate_size": 256,
         "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2, "rms_norm_eps": 1e-5}
NEOX = {"model_type": "gpt_neox", "vocab_size": 1024, "max_position_embeddings": 256, "hidden_size": 64, "intermediate_size": 256,
        "num_hidden_layers": 2, "num_attention_heads": 4, "rotary_pct": 0.25, "use_parallel_residual": True,
        "hidden_dropout": 0.0, "attention_dropout": 0.0, "layer_norm_eps": 1e-5, "tie_word_embeddings": False}
STEP = {"train_micro_batch_size_per_gpu": 4, "gradient_clipping": 1.0, "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}}}
H100 = ["--cluster", "h100-80g", "--target", "cuda:sm_90"]
HOST = {"device": "cpu"}
DISK = {"device": "nvme", "nvme_path": "/tmp/states"}
# name, model, what of the configuration is its own, options, whether the plan takes what was expected
JOBS = [
    ("gpt", GPT, {}, [], True),
    ("gpt, short of memory", GPT, {}, ["--memory", "50MiB"], True),
    ("gpt with odd rows, bf16", GPT, {"bf16": {"enabled": True}}, H100, True),
    ("gpt, a fused head and ZeRO 1 in buckets", GPT,
     {"bf16": {"enabled": True}, "gradient_accumulation_steps": 4, "zero_optimization": {"stage": 1}},
     ["--ranks", "8", "--cluster", "a100-80g", "--target", "cuda:sm_80"], True),
    ("llama in 4 chunks, fp16", LLAMA, {"fp16": {"enabled": True}, "loss_chunks": 4}, H100, True),
    ("llama, ZeRO 3", LLAMA, {"bf16": {"enabled": True}, "zero_optimization": {"stage": 3}}, ["--ranks", "8", *H100], True),
    ("llama, all states on the host", LLAMA,
     {"bf16": {"enabled": True}, "zero_optimization": {"stage": 3, "offload_optimizer": HOST, "offload_param": HOST}},
     ["--ranks", "2", *H100], False),
    ("gpt, masters and moments on the host", GPT,
     {"bf16": {"enabled": True}, "gradient_accumulation_steps": 2, "zero_optimization": {"stage": 1, "offload_optimizer": HOST}}, H100, False),
    ("gpt, moments in storage", GPT,
     {"bf16": {"enabled": True}, "gradient_accumulation_steps": 2, "zero_optimization": {"stage": 3, "offload_optimizer": DISK, "offload_param": HOST}},
     ["--ranks", "2", *H100], False),
    ("llama, all states in storage", LLAMA,
     {"bf16": {"enabled": True}, "zero_optimization": {"stage": 3, "offload_optimizer": DISK, "offload_param": DISK}}, H100, False),
    ("gpt, checkpoints on the host", GPT,
     {"bf16": {"enabled": True}, "activation_checkpointing": {"number_checkpoints": 4, "cpu_checkpointing": True}}, H100, True),
    ("rotary halves of a fused projection", NEOX, {}, [], True),
]


def plan(directory, model, config, options):
    """What was expected of the plan, what is live in it, how far apart both may be, and what ds-opt said."""
    paths = [os.path.join(directory, name) for name in ("model.json", "ds.json", "plan.mlir")]
    for path, content in zip(paths, (model, {**STEP, **config})):
        with open(path, "w") as file:
            json.dump(content, file)
    done = subprocess.run(["ds-opt", paths[0], "--config", paths[1], "--emit=ir", "--phase=planned", "-o", paths[2], *options],
                          capture_output=True, text=True)
    assert done.returncode in (0, 4), done.stderr
    with open(paths[2]) as file:
        text = file.read()
    expected = int(re.search(r"expected_bytes = (\d+)", text).group(1))
    live = int(re.search(r"ds\.arena device bytes \d+ lower_bound (\d+)", text).group(1))
    scratch = [int(size) for size in re.findall(r"ds\.alloc workspace .*tensor<(\d+)xi8>", text)] if "--target" not in options else []
    return expected, live, 64 * text.count("ds.alloc") + max(scratch, default=0), done.stderr


def main():
    for name, model, config, options, is_expected in JOBS:
        expected, live, apart, said = plan(sys.argv[1], model, config, options)
        assert "were counted" not in said, f"{name}: {said}"
        if is_expected:
            assert live - apart <= expected <= live, f"{name}: {expected} bytes expected, {live} live"
        print(f"{name}: {'as expected' if is_expected else 'counted'} ({expected} bytes expected, {live} live)")


if __name__ == "__main__":
    main()
