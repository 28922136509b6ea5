"""gpu_facts.py - which machine this is: driver, GPU, clocks, and the libraries that our tools would open.

    gpu_facts.py libraries      opens each as the runtime does; prints what it is and where it was found
    gpu_facts.py gpu            the name of the first GPU, by the driver

Both run in processes of their own: a library that crashes takes nothing with it.
"""

import ctypes
import json
import os
import platform
import re
import shutil
import sys

from gpu_child import run as run_child
from gpu_results import FACTS, shorten

# As lib/Runtime/Cuda opens them: the variable that names another file, the usual names, the function that tells a version.
LIBRARIES = {
    "driver": ("DS_CUDA_DRIVER", ["libcuda.so.1"], "cuDriverGetVersion"),
    "cuBLASLt": ("DS_CUBLASLT", ["libcublasLt.so.13", "/usr/local/cuda/lib64/libcublasLt.so.13"], "cublasLtGetVersion"),
    "cuDNN": ("DS_CUDNN", ["libcudnn.so.9"], "cudnnGetVersion"),
    "NVRTC": ("DS_NVRTC", ["libnvrtc.so.13"], "nvrtcVersion"),
    "NCCL": ("DS_NCCL", ["libnccl.so.2"], "ncclGetVersion"),
    "CUPTI": ("DS_CUPTI", ["libcupti.so.13"], "cuptiGetVersion"),
    "NVML": ("DS_NVML", ["libnvidia-ml.so.1"], ""),
}
BY_VALUE = ("cublasLtGetVersion", "cudnnGetVersion")  # the others write through a pointer
WORDS = re.compile(r"^(CUDA|NVIDIA|NCCL|CUDNN|CUBLAS|DS_|LD_|OMP_|PYTORCH|TORCH)")


def version_of(library, function):
    if not function:
        return None
    try:
        call = getattr(library, function)
        if function in BY_VALUE:
            call.restype = ctypes.c_size_t
            return str(call())
        numbers = [ctypes.c_int(0), ctypes.c_int(0)]
        call(*(ctypes.byref(number) for number in numbers))
        return ".".join(str(number.value) for number in numbers if number.value or number is numbers[0])
    except AttributeError:
        return f"has no {function}"


def file_of(function):
    """The file that holds a function, by the loader."""
    class Info(ctypes.Structure):
        _fields_ = [("file", ctypes.c_char_p), ("base", ctypes.c_void_p), ("name", ctypes.c_char_p), ("at", ctypes.c_void_p)]
    info = Info()
    find = ctypes.CDLL(None).dladdr
    find.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    if not find(ctypes.cast(function, ctypes.c_void_p), ctypes.byref(info)):
        return None
    return os.path.realpath(os.fsdecode(info.file))


def open_library(variable, names):
    names = [os.environ[variable]] if os.environ.get(variable) else names
    reason = None
    for name in names:
        try:
            return ctypes.CDLL(name, mode=os.RTLD_NOW | os.RTLD_LOCAL), name
        except OSError as error:
            reason = reason or str(error)
    return None, reason


def libraries():
    """{name: {"file", "version"} or {"missing"}}."""
    found = {}
    for name, (variable, names, function) in LIBRARIES.items():
        library, told = open_library(variable, names)
        if library is None:
            found[name] = {"missing": told}
            continue
        entry = getattr(library, function or "nvmlInit_v2", None)
        found[name] = {"file": (file_of(entry) if entry else None) or told, "version": version_of(library, function)}
    return found


def gpu():
    """The first GPU's name; exits with 9 if there is none."""
    driver, reason = open_library(*LIBRARIES["driver"][:2])
    if driver is None:
        sys.exit(refuse(f"NVIDIA's driver is missing: {reason}"))
    count, name = ctypes.c_int(0), ctypes.create_string_buffer(256)
    code = driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count))
    if code or count.value == 0:
        sys.exit(refuse(f"the driver finds no device (error {code})"))
    handle = ctypes.c_int(0)
    if driver.cuDeviceGet(ctypes.byref(handle), 0) or driver.cuDeviceGetName(name, 256, handle):
        sys.exit(refuse("the driver does not name its device"))
    return {"name": name.value.decode(errors="replace"), "count": count.value}


def refuse(reason):
    print(reason, file=sys.stderr)
    return 9


def find_gpu(args, scratch, environment):
    """The name of the first GPU, or the Ended that says why there is none."""
    ended = run_child([sys.executable, os.path.abspath(__file__), "gpu"], 60, scratch, environment)
    return json.loads(ended.out)["name"] if ended.ok else ended


# The part

def cuda_folders(r):
    """Where NVIDIA's libraries may lie: the toolkit, and the wheels that PyTorch brings."""
    if not hasattr(r, "cuda"):
        script = ("import importlib.util, json; s = importlib.util.find_spec('nvidia'); "
                  "print(json.dumps(list(s.submodule_search_locations or []) if s else []))")
        kept, r.limit = r.limit, 60
        ended = r.child([r.python, "-c", script])
        r.limit = kept
        bases = json.loads(ended.out.splitlines()[-1]) if ended.ok else []
        folders = [path for path in ("/usr/local/cuda/lib64", "/usr/local/cuda/extras/CUPTI/lib64") if os.path.isdir(path)]
        for base in bases:
            folders += [path for path, _, names in os.walk(base)
                        if os.path.basename(path).startswith("lib") and any(".so" in name for name in names)]
        r.cuda = folders
    return r.cuda


def keep(r, title, text):
    r.results.store(FACTS, f"===== {title} =====\n{shorten(text, 1 << 20)}\n", append=True)


def machine(r):
    """Processor, memory, disk, system, environment."""
    with open("/proc/meminfo") as file:
        memory = int(file.readline().split()[1]) >> 20
    facts = {"kernel": platform.release(), "libc": " ".join(platform.libc_ver()), "python": platform.python_version(),
             "cores": len(os.sched_getaffinity(0)), "memory_gib": memory,
             "scratch_free_gib": shutil.disk_usage(r.scratch).free >> 30}
    environment = {key: value for key, value in sorted(os.environ.items()) if WORDS.match(key)}
    keep(r, "environment", json.dumps(environment, indent=1))
    return r.outcome("ok", ", ".join(f"{key} {value}" for key, value in facts.items()), **facts)


QUERY = "name,driver_version,memory.total,memory.used,clocks.sm,clocks.max.sm,clocks.mem,power.limit,temperature.gpu,ecc.mode.current,compute_mode,mig.mode.current"


def nvidia_smi(r):
    """The GPU as its driver's tool describes it; everything it says goes to a file."""
    if not shutil.which("nvidia-smi"):
        return r.outcome("skipped", "nvidia-smi is not here")
    keep(r, "nvidia-smi -q", r.child(["nvidia-smi", "-q"]).out)
    ended = r.child(["nvidia-smi", f"--query-gpu={QUERY}", "--format=csv,noheader,nounits"])
    if not ended.ok:
        return r.failed("facts nvidia-smi", ended)
    rows = [dict(zip(QUERY.split(","), map(str.strip, line.split(",")))) for line in ended.out.strip().splitlines()]
    first = rows[0] if rows else {}
    return r.outcome("ok", ", ".join(f"{key} {value}" for key, value in first.items()), gpus=rows)


def opened(r):
    """NVIDIA's libraries, as ds-run would find them."""
    ended = r.child([sys.executable, os.path.abspath(__file__), "libraries"], r.ds_environment())
    if not ended.ok:
        return r.failed("facts libraries", ended)
    found = json.loads(ended.out.splitlines()[-1])
    keep(r, "libraries", json.dumps(found, indent=1))
    text = ", ".join(f"{name} {each.get('version') or ('missing' if 'missing' in each else 'found')}" for name, each in found.items())
    needed = [name for name in ("driver", "cuBLASLt") if "missing" in found[name]]
    return r.outcome("failed" if needed else "ok", text, libraries=found)


def linked(r):
    """What our own files need of the system."""
    lost = []
    for name in ("bin/ds-run", "lib/libds-cuda.so", "lib/libds-gloo.so"):
        ended = r.child(["ldd", r.path(name)], r.ds_environment())
        keep(r, f"ldd {name}", ended.out + ended.err)
        lost += [f"{name}: {line.strip()}" for line in (ended.out + ended.err).splitlines() if "not found" in line]
        if not ended.ok:
            lost.append(f"{name}: {ended.describe()}")
    return r.outcome("failed" if lost else "ok", "; ".join(lost) or "our tools find all that they are linked with")


def pytorch(r):
    """PyTorch, and the libraries that it brings."""
    ended = r.child([r.python, r.path("gpu_torch.py"), "facts"])
    if not ended.ok:
        keep(r, "PyTorch", ended.err)
        return r.outcome("skipped", ended.describe())
    found = json.loads(ended.out.splitlines()[-1])
    return r.outcome("ok", ", ".join(f"{key} {value}" for key, value in found.items() if key != "files"), **found)


def facts(r):
    """Before anything runs on the GPU."""
    for name, work in (("machine", machine), ("nvidia-smi", nvidia_smi), ("libraries", opened), ("ldd", linked),
                       ("PyTorch", pytorch)):
        r.step(f"facts {name}", work, 90)


if __name__ == "__main__":
    print(json.dumps({"libraries": libraries, "gpu": gpu}[sys.argv[1]]()))
