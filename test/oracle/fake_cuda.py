"""fake_cuda.py - has ds-run take the fake device, a library of host memory, for NVIDIA's libraries."""

import os
import sys

from commands import run

LIBRARIES = ("DS_CUDA_DRIVER", "DS_CUBLASLT", "DS_CUDNN", "DS_NCCL", "DS_NVML")


def kernels_in(folder):
    return os.path.join(folder, "kernels.so")


def translate(program, folder):
    """Translates the kernels of `program` to host code in `folder`."""
    run(sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), "ptx_to_cpp.py"), program, "-o", kernels_in(folder))


def use(library, folder, ranks):
    """From here on runs of this process are of the program whose kernels were translated in `folder`."""
    os.environ.update({name: library for name in LIBRARIES}, DS_FAKE_KERNELS=kernels_in(folder), DS_CACHE_DIR=folder,
                      DS_FAKE_DEVICES=str(ranks))
