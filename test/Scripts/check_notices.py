"""check_notices.py BUILD NOTICES - compare what the files of packages contain with the notices that the packages have.

Archives that are linked in are those of the build's own commands, headers that are compiled in those that the compiler has told
the build of. Debian says of which package each is. What a shared library has, or what every program contains, needs no notice.
"""

import re
import subprocess
import sys
from pathlib import Path

FILES = {"runtime": r"bin/ds-(?:run|ckpt)|lib/libds-(?:onednn|gloo|pmix)\.so", "compiler": r"bin/ds-(?:opt|import)", "cuda": r"lib/libds-cuda\.so"}
# Packages of headers whose library is a shared one, and those of C, of C++ and of LLVM, whose licence is this tree's.
SHARED = re.compile(r"libc6-dev|linux-libc-dev|libstdc\+\+-\d+-dev|libgcc-.*|libclang-.*|llvm-19.*|libmlir-19-dev|libtorch.*|libfmt-dev|libgloo-dev|"
                    r"libdnnl-dev|libxxhash-dev|libpmix-dev|libzip-dev|libseccomp-dev|libgoogle-glog-dev|libgflags-dev|libzstd-dev|zlib1g-dev")


def packages_of(paths):
    """{path: package} by dpkg; a file that is of no package is left out."""
    said = subprocess.run(["dpkg", "-S", *paths], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    found = (line.rpartition(": ") for line in said.splitlines() if not line.startswith("diversion"))
    return {path: owner.split(",")[0].split(":")[0] for owner, _, path in found}


def archives(build):
    """{component: archives of others that are linked into its files}."""
    text = (build / "build.ninja").read_text()
    found = {}
    for component, pattern in FILES.items():
        for line in re.findall(rf"^build (?:{pattern}): .*$", text, re.MULTILINE):
            found.setdefault(component, set()).update(re.findall(r"(?<= )/usr/\S+\.a(?= |$)", line))
    return found


def headers(build):
    """One header of others for each folder of /usr that is compiled into the product."""
    said = subprocess.run(["ninja", "-C", build, "-t", "deps"], stdout=subprocess.PIPE, text=True, check=True).stdout
    found, isProduct = {}, False
    for line in said.splitlines():
        if not line.startswith(" "):
            isProduct = line.startswith(("lib/", "tools/"))
        elif isProduct and line.strip().startswith("/usr/"):
            path = line.strip()
            found[Path(path).parent if path.count("/") > 3 else path] = path
    return set(found.values())


def has(notice, package):
    """Whether a copyright file has what Debian says of a package, or of its part for developers."""
    return re.search(rf"^---- Contains {re.escape(package.removesuffix('-dev'))}(?:-dev)? ----\n\n\S", notice, re.MULTILINE)


def main():
    build, folder, errors, checked = Path(sys.argv[1]), Path(sys.argv[2]), [], 0
    notices = {component: (folder / component).read_text() for component in FILES}
    for component, paths in archives(build).items():
        for package in sorted(set(packages_of(paths).values())):
            checked += 1
            if not has(notices[component], package):
                errors.append(f"{component}: its files contain {package}, of which its copyright file has nothing")
    for package in sorted(set(packages_of(headers(build)).values())):
        if not SHARED.fullmatch(package):
            checked += 1
            if not any(has(notice, package) for notice in notices.values()):
                errors.append(f"headers of {package} are compiled in, of which no copyright file has anything")
    print("\n".join(errors + [f"{checked} notices checked, {len(errors)} are missing: see cmake/DsNotices.cmake"]))
    sys.exit(1 if errors else 0)


main()
