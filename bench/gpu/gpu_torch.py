"""gpu_torch.py - PyTorch's side of a GPU round, in a process of its own.

    gpu_torch.py facts          its version, its libraries and its GPU
    gpu_torch.py losses JSON    trains a model of examples/ from given weights on given data; prints its losses
    gpu_torch.py speed JSON     times training steps of a model with flash attention and fused AdamW

Prints one JSON object. DS_GPU_TEST_DEVICE=cpu rehearses it without a GPU.
"""

import json
import os
import statistics
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F


DEVICE = os.environ.get("DS_GPU_TEST_DEVICE", "cuda")


def synchronize():
    if DEVICE == "cuda":
        torch.cuda.synchronize()


def facts():
    """What PyTorch is here; the files of NVIDIA's that it has opened."""
    found = {"torch": torch.__version__, "cuda": torch.version.cuda, "cudnn": torch.backends.cudnn.version()}
    if DEVICE == "cuda":
        properties = torch.cuda.get_device_properties(0)
        found.update(gpu=properties.name, multiprocessors=properties.multi_processor_count,
                     memory_bytes=properties.total_memory, nccl=".".join(map(str, torch.cuda.nccl.version())))
        torch.ones(16, 16, device="cuda") @ torch.ones(16, 16, device="cuda")
    with open("/proc/self/maps") as file:
        found["files"] = sorted({line.split()[-1] for line in file if any(
            word in line for word in ("libcuda", "cublas", "cudnn", "nccl", "nvrtc", "cupti"))})
    return found


def load_weights(model, path):
    """Every parameter must be in the file, under one of its names."""
    import safetensors_io
    tensors = {key: torch.from_numpy(value) for key, value in safetensors_io.load(path).items()}
    entries = model.state_dict(keep_vars=True)
    loaded = {id(value) for key, value in entries.items() if key in tensors}
    missing = [key for key, value in model.named_parameters() if id(value) not in loaded]
    if missing:
        sys.exit(f"{path} has no {', '.join(missing[:5])}")
    model.load_state_dict(tensors, strict=False)


def optimizer_of(model, config):
    params = config["optimizer"]["params"]
    return torch.optim.AdamW(model.parameters(), lr=params["lr"], betas=params["betas"], eps=params["eps"],
                             weight_decay=params["weight_decay"])


def losses(settings):
    """The same arithmetic as the program: fp32 without tf32, or bf16 under autocast."""
    import export
    import safetensors_io
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    config, args = settings["config"], export.parse([*settings["example"], "--out", "."])
    model = export.FAMILIES[args.name][1](export.make_config(args)).to(DEVICE)
    load_weights(model, settings["weights"])
    data = {key: torch.from_numpy(value).to(DEVICE) for key, value in safetensors_io.load(settings["data"]).items()}
    count = len(next(iter(data.values())))
    optimizer = optimizer_of(model, config)
    batch, accumulation = config["train_micro_batch_size_per_gpu"], config["gradient_accumulation_steps"]
    at, found = 0, []
    for _ in range(settings["steps"]):
        total = 0.0
        for _ in range(accumulation):
            rows = torch.arange(at, at + batch, device=DEVICE) % count
            at += batch
            with torch.autocast(DEVICE, dtype=torch.bfloat16, enabled=settings["bf16"]):
                loss = model(**{key: value[rows] for key, value in data.items()})
            (loss / accumulation).backward()
            total += loss.item() / accumulation
        nn.utils.clip_grad_norm_(model.parameters(), config["gradient_clipping"])
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        found.append(total)
    return {"losses": found}


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, time, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(batch, time, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(mixed.transpose(1, 2).reshape(batch, time, width))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class GPT2(nn.Module):
    """GPT-2 as it is usually written for speed: flash attention, one table for tokens and head."""

    def __init__(self, vocab, length, layers, heads, width):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocab, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList([Block(width, heads) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, x, y):
        hidden = self.tokens(x) + self.positions(torch.arange(x.size(1), device=x.device))
        for block in self.blocks:
            hidden = block(hidden)
        logits = F.linear(self.norm(hidden), self.tokens.weight)
        return F.cross_entropy(logits.view(-1, logits.size(-1)), y.reshape(-1))


class Published(nn.Module):
    """A model of Hugging Face's own code, with PyTorch's attention."""

    def __init__(self, hf):
        super().__init__()
        import transformers
        config = transformers.AutoConfig.for_model(**hf)
        self.model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="sdpa")

    def forward(self, x, y):
        logits = self.model(input_ids=x, use_cache=False).logits
        return F.cross_entropy(logits.view(-1, logits.size(-1)).float(), y.reshape(-1))


def speed_model(settings):
    """A GPT-2 as it is usually written for speed; any other family as it is published."""
    if settings["hf"]["model_type"] != "gpt2":
        return Published(settings["hf"])
    return GPT2(*(settings[key] for key in ("vocab", "length", "layers", "heads", "width")))


def speed(settings):
    """Median of steps after five; compiling counts as the first step."""
    torch.manual_seed(0)
    model = speed_model(settings).to(DEVICE)
    fused = {"fused": True} if DEVICE == "cuda" else {}
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.1, **fused)
    run = torch.compile(model) if settings["compile"] else model
    tokens = torch.randint(settings["vocab"], (settings["batch"], settings["length"] + 1), device=DEVICE)
    x, y = tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()
    seconds = []
    for _ in range(settings["steps"] + 5):
        synchronize()
        started = time.perf_counter()
        with torch.autocast(DEVICE, dtype=torch.bfloat16):
            loss = run(x, y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        loss.item()
        synchronize()
        seconds.append(time.perf_counter() - started)
    median = statistics.median(seconds[5:])
    return {"step_seconds": median, "first_step_seconds": seconds[0],
            "tokens_per_second": settings["batch"] * settings["length"] / median,
            "peak_bytes": torch.cuda.max_memory_allocated() if DEVICE == "cuda" else None}


if __name__ == "__main__":
    print(json.dumps({"facts": facts, "losses": losses, "speed": speed}[sys.argv[1]](*map(json.loads, sys.argv[2:]))))
