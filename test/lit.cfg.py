# Configuration of the lit tests.
#
# Features:  torch  Debian's PyTorch is there: tests that compare with it run
#            cuda   an NVIDIA GPU is there
#            chromium  Debian's browser is there: pages are looked at in it
#            network-namespaces  whoever runs this may make nodes of one machine (root, iproute2)
#            direct-io  files of the build directory can be read past the system's cache
#            dpkg-dev  packages can be made
#            cuda-plugin  the CUDA part was built; fake-cuda: and the device of host memory that runs it
# Substitutions:  %python           the Python that has PyTorch
#                 %check-training   one model, configuration and length of run, ds-run against PyTorch
#                 %export           examples/export.py
#                 %exits            exits CODE COMMAND...: both outputs on stdout, succeeds on that exit code
#                 %check-cuda       one model compiled for CUDA, on the fake device against the CPU
#                 %check-archive    one model source, import and first step against PyTorch
import os
import shutil
import socket
import subprocess

import lit.formats

config.name = "Deepstage"
config.test_format = lit.formats.ShTest(execute_external=True)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs", "CMakeLists.txt"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.ds_binary_root, "test")

oracle = os.path.join(config.test_source_root, "oracle")
config.substitutions += [
    ("%check-training", f"%python {oracle}/check_training.py"),
    ("%check-cuda", f"%python {oracle}/check_cuda.py --fake {config.ds_binary_root}/lib/libds-fake-cuda.so"),
    ("%check-archive", f"%python {oracle}/check_archive.py --out %t"),
    ("%export", f"%python {config.ds_source_root}/examples/export.py"),
    ("%exits", f"{oracle}/exits"),
    ("%examples", os.path.join(config.ds_source_root, "examples")),
    ("%root", config.ds_source_root),
    ("%build", config.ds_binary_root),
    ("%oracle", oracle),
]

path = [os.path.join(config.ds_binary_root, "bin"), config.llvm_tools_dir, os.environ["PATH"]]
config.environment["PATH"] = os.pathsep.join(path)
config.environment["FILECHECK_OPTS"] = "--enable-var-scope --dump-input=fail"
config.environment["OMP_NUM_THREADS"] = os.environ.get("OMP_NUM_THREADS", "2")
config.environment["OMP_WAIT_POLICY"] = "passive"  # several tests share the processors
config.environment["PYTHONDONTWRITEBYTECODE"] = "1"
config.environment["PYTHONHASHSEED"] = "0"

# Sanitizers are told by whoever builds with them.
for name in ("ASAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS", "LLVM_PROFILE_FILE"):
    if name in os.environ:
        config.environment[name] = os.environ[name]


def runs(*command):
    """Whether `command` can be run and succeeds."""
    try:
        return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0
    except OSError:
        return False


def serve_torch():
    """Starts the process that has PyTorch loaded, which ends with this one, and gives the name that it is found by."""
    name = f"ds-torch-{os.getpid()}"
    listening = socket.socket(socket.AF_UNIX)
    listening.bind("\0" + name)
    listening.listen(128)
    ends, _ = os.pipe()  # the other end stays open as long as this process lives
    subprocess.Popen([config.torch_python, "-W", "ignore", f"{oracle}/torch_server.py", str(listening.fileno())], stdin=ends,
                     pass_fds=[listening.fileno()], env=config.environment)
    os.close(ends)
    listening.close()
    return name


if runs(config.torch_python, "-c", "import torch, numpy"):
    config.available_features.add("torch")
    config.substitutions.append(("%python", f"{config.torch_python} -I -S {oracle}/with_torch.py {serve_torch()}"))
else:
    config.substitutions.append(("%python", f"{config.torch_python} -W ignore"))
if runs("sh", "-c", f"PATH={config.environment['PATH']}; command -v ds-run && ds-opt --help | grep -q plan-json"):
    config.available_features.add("train")
if shutil.which("ptxas") or shutil.which("ptxas", path="/usr/local/cuda/bin"):
    config.available_features.add("ptxas")
if shutil.which("nvidia-smi") and runs("nvidia-smi", "-L"):
    config.available_features.add("cuda")
if runs("unshare", "--net", "--uts", "ip", "link", "add", "eth0", "type", "veth", "peer", "name", "eth1") and shutil.which("tc"):
    config.available_features.add("network-namespaces")
else:
    lit_config.note("no name spaces may be made: ranks of two nodes are not run (root can, with iproute2)")


def has_direct_io(folder):
    """Whether a file in `folder` can be opened as storage wants it."""
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, f"direct-io-{os.getpid()}")
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_DIRECT, 0o600))
    except OSError:
        return False
    finally:
        if os.path.exists(path):
            os.unlink(path)
    return subprocess.run(["stat", "-f", "-c", "%T", folder], stdout=subprocess.PIPE, text=True).stdout.strip() != "tmpfs"


if has_direct_io(config.test_exec_root):
    config.available_features.add("direct-io")
else:
    lit_config.note("no direct access to files here: nothing is kept in storage")
if config.has_jemalloc:
    config.available_features.add("jemalloc")
if shutil.which("dpkg-shlibdeps"):
    config.available_features.add("dpkg-dev")
if shutil.which("chromium"):
    config.available_features.add("chromium")
else:
    lit_config.note("chromium is not there: no page is looked at (script/setup installs it)")
for feature, library in (("cuda-plugin", "libds-cuda.so"), ("fake-cuda", "libds-fake-cuda.so")):
    if os.path.exists(os.path.join(config.ds_binary_root, "lib", library)):
        config.available_features.add(feature)
