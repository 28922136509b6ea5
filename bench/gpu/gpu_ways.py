"""gpu_ways.py - parts of a GPU round that run one program in two ways, as a variable says: by libraries, and by kernels."""

import os
import re
import statistics

import gpu_models

ATTENTION = re.compile(r"; (attention by .*?)(?:; GELU within [^;]*)?; device memory")
GELU = re.compile(r"; GELU within (\d+) of (\d+) products")


def relative(a, b):
    return max(abs(x - y) / max(abs(y), 1e-12) for x, y in zip(a, b))


def tokens(r, name):
    """The data of a model: packed, or a stream of tokens made here, the same on every machine."""
    model = gpu_models.MODELS[name]
    if "hf" not in model:
        return None
    path = os.path.join(r.out, f"{name}.bin")
    state, words = 1, bytearray()
    for _ in range(model["batch"] * model["length"] * 8 + 1):
        state = (state * 6364136223846793005 + 1442695040888963407) % (1 << 64)
        words += ((state >> 33) % min(model["vocab"], 1 << 16)).to_bytes(2, "little")
    with open(path, "wb") as file:
        file.write(words)
    return path


def in_16_bits(r):
    return [name for name in r.models if gpu_models.MODELS[name]["config"]["bf16"]["enabled"]]


def ways(r, name, variable, labels):
    """[(records, stderr)] of runs of one program, with `variable` as each label's value says; None if one failed."""
    compared = "example" in gpu_models.MODELS[name]
    data, steps, runs = tokens(r, name), 10 if compared else r.steps + 5, []
    for label, choice in labels.items():
        environment = {variable: choice} if choice else {}
        records, result = r.trained(name, f"{name} {label}", os.path.join(r.out, f"{name}.{label}.jsonl"), data=data,
                                    steps=steps, environment=environment, extra=["--token-dtype", "u16"] if data else [])
        if records is None:
            return None
        runs.append((records, result.stderr))
    return runs


def compare_ways(r, what, first, second, other, is_timed):
    """Checks the numbers of the first way against the second's; the median seconds of both, where they mean something."""
    worst = relative(*([record["loss"] for record in records] for records in (first, second)))
    r.check(f"{what} numbers", worst <= 2e-2, f"{worst:.2e} from {other}, limit 2e-02")
    if not is_timed:
        return None
    seconds = [statistics.median(record["step_seconds"] for record in records[5:]) for records in (first, second)]
    r.figure(f"{what} step seconds, and with {other}", seconds)
    return seconds


def attention(r):
    """Attention in 16 bits: on cuDNN, with the numbers of the runtime's own kernels, every bit again, and faster."""
    for name in in_16_bits(r):
        runs = ways(r, name, "DS_CUDNN", {"cudnn": None, "cudnn again": None, "kernels": "0"})
        if runs is None:
            continue
        (fast, stderr), (again, _), (slow, _) = runs
        found = ATTENTION.search(stderr)
        said = found.group(1) if found else None
        r.check(f"{name} attention", said is not None and re.fullmatch(r"attention by cuDNN [\d.]+", said) is not None,
                str(said))
        losses = ([record["loss"] for record in records] for records in (fast, again))
        r.check(f"{name} attention repeats", next(losses) == next(losses), "losses of two runs with cuDNN")
        seconds = compare_ways(r, f"{name} attention", fast, slow, "the runtime's kernels",
                               "example" not in gpu_models.MODELS[name])
        if seconds:
            r.check(f"{name} attention speed", seconds[0] < seconds[1],
                    f"a step takes {seconds[0]:.4g} s with cuDNN, {seconds[1]:.4g} s without")


def gelu(r):
    """GELU within products where that was found to be faster: the numbers of kernels after them, and no slower."""
    for name in in_16_bits(r):
        runs = ways(r, name, "DS_CUDA_GELU", {"gelu within": None, "gelu after": "0"})
        found = GELU.search(runs[0][1]) if runs else None
        if not found:
            continue
        r.figure(f"{name} products with GELU, and all that could", [int(count) for count in found.groups()])
        (chosen, _), (after, _) = runs
        seconds = compare_ways(r, f"{name} GELU", chosen, after, "kernels after products",
                               "example" not in gpu_models.MODELS[name])
        if seconds:
            r.check(f"{name} GELU speed", seconds[0] < 1.02 * seconds[1],
                    f"a step takes {seconds[0]:.4g} s as chosen, {seconds[1]:.4g} s with kernels after products")
