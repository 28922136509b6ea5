"""gpu_torch.py - PyTorch's side of a GPU round, in a process of its own.

    gpu_torch.py losses JSON    trains examples/gpt.py from given weights on given data; prints its losses
    gpu_torch.py speed JSON     times training steps of a GPT-2 with flash attention and fused AdamW

Prints one JSON object.
"""

import json
import statistics
import sys
import time
from dataclasses import replace

import torch
from torch import nn
from torch.nn import functional as F


def optimizer_of(model, config, fused=False):
    params = config["optimizer"]["params"]
    return torch.optim.AdamW(model.parameters(), lr=params["lr"], betas=params["betas"], eps=params["eps"],
                             weight_decay=params["weight_decay"], fused=fused)


def losses(settings):
    """The same arithmetic as the program: fp32 without tf32, or bf16 under autocast."""
    import gpt
    import safetensors_io
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    config = settings["config"]
    model = gpt.GPT(replace(gpt.SIZES[settings["size"]], layers=settings["layers"])).cuda()
    tensors = {key: torch.from_numpy(value) for key, value in safetensors_io.load(settings["weights"]).items()}
    model.load_state_dict(tensors, strict=False)
    data = {key: torch.from_numpy(value).cuda() for key, value in safetensors_io.load(settings["data"]).items()}
    optimizer = optimizer_of(model, config)
    batch, accumulation = config["train_micro_batch_size_per_gpu"], config["gradient_accumulation_steps"]
    at, found = 0, []
    for _ in range(settings["steps"]):
        total = 0.0
        for _ in range(accumulation):
            rows = torch.arange(at, at + batch, device="cuda") % len(data["x"])
            at += batch
            with torch.autocast("cuda", dtype=torch.bfloat16, enabled=settings["bf16"]):
                loss = model(data["x"][rows], data["y"][rows])
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


def speed(settings):
    """Median of steps after five; compiling counts as the first step."""
    torch.manual_seed(0)
    shape = [settings[key] for key in ("vocab", "length", "layers", "heads", "width")]
    model = GPT2(*shape).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.1, fused=True)
    run = torch.compile(model) if settings["compile"] else model
    tokens = torch.randint(settings["vocab"], (settings["batch"], settings["length"] + 1), device="cuda")
    x, y = tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()
    seconds = []
    for _ in range(settings["steps"] + 5):
        torch.cuda.synchronize()
        started = time.perf_counter()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = run(x, y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        loss.item()
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - started)
    median = statistics.median(seconds[5:])
    return {"step_seconds": median, "first_step_seconds": seconds[0],
            "tokens_per_second": settings["batch"] * settings["length"] / median,
            "peak_bytes": torch.cuda.max_memory_allocated()}


if __name__ == "__main__":
    print(json.dumps({"losses": losses, "speed": speed}[sys.argv[1]](json.loads(sys.argv[2]))))
