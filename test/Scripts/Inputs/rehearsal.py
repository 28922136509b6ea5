"""rehearsal.py - one round of gpu-test on the fake device, in a folder of its own; sys.argv is ROOT PACK FAKE-LIBRARY ...

See gpu_rehearsal.py for what is played.
"""

import contextlib
import glob
import json
import os
import shutil
import subprocess
import sys
import time

ROOT, PACK, FAKE = (os.path.abspath(path) for path in sys.argv[1:4])
HERE = os.path.dirname(os.path.abspath(__file__))
COVERAGE = os.environ.get("REHEARSAL_TRACER", "").split()
LIBRARIES = ("DS_CUDA_DRIVER", "DS_CUBLASLT", "DS_CUDNN", "DS_NCCL", "DS_NVML", "DS_CUPTI")
WRAPPER = """#!/bin/bash
echo "$@" >> "$CALLS"
for word; do case $word in *.dsx) export DS_FAKE_KERNELS=${word%.dsx}.kernels.so;; esac; done
[ -z "$FAULT" ] || . "$FAULT"
[ -z "$PRETEND" ] || exec "$PRETEND" "$@"
exec "$(dirname "$0")/ds-run.real" "$@"
"""
LDD = """#!/bin/bash
case $1 in */bin/ds-run) set -- "$1.real";; esac
exec /usr/bin/ldd "$1"
"""
SMI = """#!/bin/sh
case "$*" in
  -q) echo "everything on the GPU";;
  *) [ -z "$SMI_FAILS" ] || { echo "no answer" >&2; exit 3; }
     echo "Fake GPU, 580.1, ${SMI_MEMORY:-80000}, 0, 1980, 1980, 2600, 700, 40, Enabled, Default, Disabled";;
esac
"""
SANITIZER = """#!/bin/sh
while [ "${1#-}" != "$1" ]; do case $1 in --tool|--error-exitcode|--print-limit) shift;; esac; shift; done
"$@"
code=$?
echo "========= ERROR SUMMARY: ${SANITIZER_ERRORS:-0} errors"
[ "${SANITIZER_ERRORS:-0}" = 0 ] && exit $code
exit 99
"""


def write_script(path, text):
    with open(path, "w") as file:
        file.write(text)
    os.chmod(path, 0o755)


def make_pack():
    """What `gpu-test --pack` makes, without compiling anything."""
    sys.path.insert(0, f"{ROOT}/bench/gpu")
    import gpu_pack
    for folder in ("bin", "lib"):
        os.makedirs(f"{PACK}/{folder}")
    for name in gpu_pack.ROUND:
        shutil.copy2(f"{ROOT}/bench/gpu/{name}", PACK)
    shutil.copy2(f"{ROOT}/script/gpu-test", PACK)
    for name in ("bin/ds-run", "lib/libds-cuda.so", "lib/libds-gloo.so"):
        shutil.copy2("/bin/true", f"{PACK}/{name}")
    models = ("mlp", "llama-bf16", "gpt", "llama", "gpt-zero2", "llama-blocks", "gpt2-micro", "gpt2-milli")
    for name in models:
        memory = [{"where": "device", "bytes": 1 << 30, "beyond_arenas": beyond} for beyond in (False, True)]
        plan = {"ranks": [{"arenas": {"device": 1 << 30}, "memory": memory}],
                "predicted": {"step_seconds": 0.001}}
        for end, value in (("plan.json", plan), ("cpu.json", {"losses": [2.0 - step / 20 for step in range(20)]}),
                           ("planned.json", [["matmul a", 2e-6]])):
            with open(f"{PACK}/{name}.{end}", "w") as file:
                json.dump(value, file)
    with open(f"{PACK}/models.json", "w") as file:
        json.dump({"packed": models, "refused": {}, "target": "cuda:sm_90", "compile_seconds": {}, "pack": "pretended"}, file)


def prepare():
    """Once for each pack."""
    if not os.path.exists(PACK):
        make_pack()
    if os.path.exists(f"{PACK}/bin/ds-run.real"):
        return
    for program in glob.glob(f"{PACK}/*.dsx"):
        subprocess.run([sys.executable, f"{ROOT}/test/oracle/ptx_to_cpp.py", program, "-o",
                        program.replace(".dsx", ".kernels.so")], check=True)
    for folder, name, text in (("smi", "nvidia-smi", SMI), ("sanitizer", "compute-sanitizer", SANITIZER),
                               ("ldd", "ldd", LDD), ("python", "python3", f'#!/bin/sh\nexport PYTHONPATH={HERE}/torch2\n'
                                                     f'exec "{sys.executable}" -W ignore "$@"\n')):
        os.makedirs(f"{PACK}/tools/{folder}", exist_ok=True)
        write_script(f"{PACK}/tools/{folder}/{name}", text)
    os.rename(f"{PACK}/bin/ds-run", f"{PACK}/bin/ds-run.real")
    write_script(f"{PACK}/bin/ds-run", WRAPPER)


class Rehearsal:
    """A results folder, and the rounds that write to it."""

    def __init__(self, name):
        self.folder = os.path.join(PACK, "rehearsals", name)
        self.out, self.calls_file = os.path.join(self.folder, "out"), os.path.join(self.folder, "calls")
        shutil.rmtree(self.folder, ignore_errors=True)
        os.makedirs(self.folder)

    def environment(self, fault=None, tools=("smi", "sanitizer"), **more):
        if fault is not None:
            with open(os.path.join(self.folder, "fault"), "w") as file:
                file.write(fault)
        path = os.pathsep.join([*(f"{PACK}/tools/{tool}" for tool in ("ldd", *tools)), "/usr/bin", "/bin"])
        return {**os.environ, **{key: FAKE for key in LIBRARIES}, "PATH": path, "CALLS": self.calls_file,
                "PRETEND": f"{HERE}/pretend_run.py", "NO_TORCH": "1",
                "FAULT": os.path.join(self.folder, "fault") if fault is not None else "", "DS_GPU_TEST_DEVICE": "cpu",
                "HOME": self.folder, "REHEARSAL": self.folder, **more}

    def command(self, *arguments):
        return [sys.executable, *COVERAGE, os.path.join(PACK, "gpu-test"), "--out", self.out, "--python",
                f"{PACK}/tools/python/python3", "--quick", "--steps", "3", "--jobs", "3", "--scratch", self.folder, *arguments]

    def start(self, *arguments, **options):
        return subprocess.Popen(self.command(*arguments), env=self.environment(**options), stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True, start_new_session=True)

    def run(self, expected, *arguments, **options):
        """A round; its output, within what every round must keep to."""
        round = self.start(*arguments, **options)
        output = round.communicate(timeout=500)[0]
        assert round.returncode == expected, (round.returncode, output)
        self.check_bounds(output)
        return output

    def check_bounds(self, output):
        assert len(output) < 12000, len(output)
        assert "Traceback" not in output, output
        last = output.rstrip().splitlines()[-1]
        assert "at its end" in last or "call again" in last or len(output.splitlines()) == 1, last
        names = os.listdir(self.out) if os.path.isdir(self.out) else []
        assert len(names) <= 8 and all(os.path.isfile(os.path.join(self.out, name)) for name in names), names
        assert all(os.path.getsize(os.path.join(self.out, name)) <= 16 << 20 for name in names)
        left = [name for name in os.listdir(self.folder) if name.startswith("gpu-test-")]
        assert not left, left
        self.wait_for(lambda: not self.alive(), 10)  # what a round has killed is gone soon after it

    def alive(self):
        """Processes that a round has left: they know its folder from their environment."""
        found = []
        for path in glob.glob("/proc/[0-9]*"):
            with contextlib.suppress(OSError):
                with open(f"{path}/environ", "rb") as file:
                    if f"REHEARSAL={self.folder}\0".encode() in file.read():
                        with open(f"{path}/cmdline", "rb") as line:
                            found.append((os.path.basename(path), line.read()))
        return found

    def records(self):
        """{step: its record}; lines that cannot be read are passed over."""
        found = {}
        with open(os.path.join(self.out, "results.jsonl")) as file:
            for line in file:
                with contextlib.suppress(ValueError):
                    record = json.loads(line)
                    if record["state"] not in ("started", "stopped"):
                        assert record["step"] not in found, f"made twice: {record['step']}"
                        found[record["step"]] = record
        return found

    def states(self):
        return {name: record["state"] for name, record in self.records().items()}

    def calls(self):
        with open(self.calls_file) as file:
            return file.read().splitlines()

    def text(self, name):
        with open(os.path.join(self.out, name)) as file:
            return file.read()

    def wait_for(self, condition, seconds=120):
        until = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < until, "it never happened"
            time.sleep(0.02)
