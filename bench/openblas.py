"""openblas.py - which kernels of OpenBLAS PyTorch is to be measured with on this processor.

OpenBLAS takes its kernels by the processor's model number, and its oldest where it does not know the number.  A ratio to
such a PyTorch flatters whoever is compared with it.  So the kernels of each core type whose instructions the processor
has are tried, in a process of their own, and the fastest go into the environment, which every PyTorch started later
inherits.
"""

import functools
import os
import subprocess
import sys

TORCH = "/usr/bin/python3"
VARIABLE = "OPENBLAS_CORETYPE"
OWN_CHOICE = ""  # OpenBLAS is left to itself
AVX2 = {"avx2", "fma"}
AVX512 = AVX2 | {"avx512f", "avx512dq", "avx512bw", "avx512vl", "avx512cd"}
# Kernels of a core type are used as they are asked for: without its instructions the process would die.
CORE_TYPES = {"Haswell": AVX2, "Zen": AVX2, "SkylakeX": AVX512, "Cooperlake": AVX512 | {"avx512_bf16"},
              "Sapphirerapids": AVX512 | {"avx512_bf16", "amx_tile", "amx_bf16"}}
# GFLOP/s of square products on one thread, by the processor time that it takes: others may use the machine meanwhile.
TRIAL = """
import time, torch
torch.set_num_threads(1)
side, best = 1024, 0.0
a, b, c = torch.rand(side, side), torch.rand(side, side), torch.empty(side, side)
for _ in range(12):
    start = time.thread_time()
    torch.mm(a, b, out=c)
    best = max(best, 2e-9 * side ** 3 / (time.thread_time() - start))
print(best)
"""


def processor_flags():
    with open("/proc/cpuinfo") as file:
        return set(next((line for line in file if line.startswith("flags")), "").split())


def candidates(flags):
    """The core types that a processor with these flags can run, what OpenBLAS takes by itself first."""
    return [OWN_CHOICE] + [name for name, needed in CORE_TYPES.items() if needed <= flags]


def trial_rate(core_type):
    """GFLOP/s of PyTorch's own square products with these kernels; 0 where the process fails."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    environment.pop(VARIABLE, None)
    if core_type:
        environment[VARIABLE] = core_type
    done = subprocess.run([TORCH, "-W", "ignore", "-c", TRIAL], env=environment, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True)
    # "Core not found": this OpenBLAS was built without it and has taken its own choice
    return float(done.stdout) if done.returncode == 0 and "not found" not in done.stderr.lower() else 0.0


def choose(rates):
    """Of GFLOP/s by core type the fastest; OpenBLAS's own choice where nothing is clearly faster."""
    fastest = max(rates, key=rates.get)
    return fastest if rates[fastest] > 1.03 * rates[OWN_CHOICE] else OWN_CHOICE


def spell(core_type):
    return core_type or "OpenBLAS's own choice"


@functools.lru_cache(maxsize=None)
def use_fastest():
    """Sets the variable for this process and its children; returns what was taken, in words.  One trial a run; a
    variable that the user has set is left alone."""
    if VARIABLE in os.environ:
        return f"{os.environ[VARIABLE]}, from the environment"
    rates = {core_type: trial_rate(core_type) for core_type in candidates(processor_flags())}
    taken = choose(rates)
    if taken:
        os.environ[VARIABLE] = taken
    told = ", ".join(f"{spell(name)} {rate:.0f}" if rate else f"{spell(name)} not built" for name, rate in rates.items())
    print(f"PyTorch's products by {spell(taken)} (GFLOP/s of one thread: {told})", file=sys.stderr)
    return spell(taken)
