#!/usr/bin/python3
"""check_ckpt.py - damage a checkpoint in every way, and hold ds-ckpt to what it says of it.

    check_ckpt.py CHECKPOINT --out DIR

Flips in a header, in data and in the manifest, files cut off, missing, empty, extra, links, pipes and directories instead
of files; paths that are absent or forbidden.  verify must end with 5 and name the file and the place, and no command may end
in a way that is not documented.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

from commands import finish

EXITS = {0, 2, 3, 4, 5, 6}


def call(*command, **options):
    return subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60,
                          **options)


def flip(path, at):
    with open(path, "r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 4]))


def cut(path, size):
    os.truncate(path, size)


def replace(path, make):
    os.remove(path)
    make(path)


def append(path):
    with open(path, "ab") as file:
        file.write(b"more")


def damages(shard, size):
    """name: (change to a copy's folder, whether it is damage, file that must be named)."""
    at = lambda change: lambda folder: change(os.path.join(folder, shard))  # noqa: E731
    manifest = lambda change: lambda folder: change(os.path.join(folder, "manifest.json"))  # noqa: E731
    return {
        "nothing": (lambda folder: None, False, None),
        "header length": (at(lambda path: flip(path, 2)), True, shard),
        "header": (at(lambda path: flip(path, 40)), True, shard),
        "data": (at(lambda path: flip(path, size - 20)), True, shard),
        "cut in data": (at(lambda path: cut(path, size - 1)), True, shard),
        "cut in header": (at(lambda path: cut(path, 100)), True, shard),
        "empty": (at(lambda path: cut(path, 0)), True, shard),
        "appended": (at(append), True, shard),
        "missing": (at(os.remove), True, shard),
        "link": (at(lambda path: replace(path, lambda name: os.symlink("/dev/zero", name))), True, shard),
        "pipe": (at(lambda path: replace(path, os.mkfifo)), True, shard),
        "directory": (at(lambda path: replace(path, os.mkdir)), True, shard),
        "manifest": (manifest(lambda path: flip(path, 300)), True, "manifest.json"),
        "manifest's digest": (manifest(lambda path: flip(path, 15)), True, "manifest.json"),
        "manifest cut": (manifest(lambda path: cut(path, 1000)), True, "manifest.json"),
        "manifest empty": (manifest(lambda path: cut(path, 0)), True, "manifest.json"),
        "manifest missing": (manifest(os.remove), True, "manifest.json"),
        "extra": (lambda folder: append(os.path.join(folder, "extra.safetensors")), False, None),
    }


def check_damage(source, folder, name, change, is_damage, named):
    root = os.path.join(folder, name.replace(" ", "-").replace("'", ""))
    path = os.path.join(root, os.path.basename(source))
    shutil.copytree(source, path)
    change(path)
    complaints = []
    for target in (path, root):
        verified, spelt = call("ds-ckpt", "verify", target, "--json"), call("ds-ckpt", "verify", target)
        report = json.loads(verified.stdout)["checkpoints"][0]
        if (verified.returncode, spelt.returncode) != ((5, 5) if is_damage else (0, 0)):
            complaints.append(f"{name}: verify ends with {verified.returncode} and {spelt.returncode}: {spelt.stderr}")
        if is_damage and not any(named in damage["file"] for damage in report["damages"]):
            complaints.append(f"{name}: verify does not name {named}: {report}")
        if len(spelt.stdout.splitlines()) != max(1, len(report["damages"])):
            complaints.append(f"{name}: a line for each damage: {spelt.stdout}")
    if name == "data" and "tokens.weight" not in str(report["damages"]) and not report["damages"][0]["tensors"]:
        complaints.append(f"{name}: no tensors are named: {report}")
    if name == "extra" and report["extra"] != ["extra.safetensors"]:
        complaints.append(f"{name}: {report}")
    for command in (["ls", root], ["show", path], ["show", root], ["diff", path, source], ["diff", source, root],
                    ["export", path, os.path.join(root, "out")], ["gc", root, "--damaged", "--dry-run"]):
        done = call("ds-ckpt", *command)
        if done.returncode not in EXITS or (done.returncode and not done.stderr):
            complaints.append(f"{name}: ds-ckpt {command} ends with {done.returncode}: {done.stderr}")
        if command[0] == "export" and is_damage != (done.returncode == 5):
            complaints.append(f"{name}: export ends with {done.returncode}: {done.stderr}")
    return complaints


def as_nobody():
    if os.geteuid() == 0:  # to whom nothing is forbidden
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)


def check_forbidden(source, complaints):
    """What may not be read, or is not there, is an error of reading: 6, whoever asks."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:  # where everybody may look
        os.chmod(folder, 0o755)
        tool = shutil.copy(shutil.which("ds-ckpt"), folder)
        root = os.path.join(folder, "run")
        path = shutil.copytree(source, os.path.join(root, os.path.basename(source)))
        shard = os.path.join(path, next(name for name in os.listdir(path) if name.startswith("shard")))
        manifest = os.path.join(path, "manifest.json")
        if os.geteuid() == 0:
            for name in (root, path, *(os.path.join(path, each) for each in os.listdir(path))):
                os.chown(name, 65534, 65534)
        for closed in (root, path, manifest, shard):
            mode = os.stat(closed).st_mode
            os.chmod(closed, 0)
            commands = [["verify", path], ["export", path, os.path.join(root, "out")]]
            commands += [] if closed == shard else [["show", path], ["diff", path, path]]
            commands += [["ls", root], ["verify", root]] if closed == root else []
            for command in commands:
                done = call(tool, *command, preexec_fn=as_nobody)
                if done.returncode != 6 or "Permission denied" not in done.stderr:
                    complaints.append(f"closed {os.path.relpath(closed, folder)}: {command[0]}: {done.returncode} {done.stderr}")
            os.chmod(closed, mode)
        absent = os.path.join(folder, "absent")
        for command in (["ls", absent], ["show", absent], ["verify", absent], ["diff", absent, path], ["diff", path, absent],
                        ["export", absent, os.path.join(folder, "out")], ["gc", absent], ["ls", manifest], ["verify", folder],
                        ["export", path, os.path.join(absent, "out")], ["export", path, root], ["export", path, manifest]):
            done = call(tool, *command)
            if done.returncode != 6 or os.path.exists(absent):
                complaints.append(f"absent: {command}: {done.returncode} {done.stderr}")
    return complaints


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint")
    parser.add_argument("--out", required=True, metavar="DIR")
    args = parser.parse_args()
    shutil.rmtree(args.out, ignore_errors=True)
    shard = sorted(name for name in os.listdir(args.checkpoint) if name.startswith("shard"))[0]
    kinds = damages(shard, os.path.getsize(os.path.join(args.checkpoint, shard)))
    complaints = []
    for name, (change, is_damage, named) in kinds.items():
        complaints += check_damage(args.checkpoint, args.out, name, change, is_damage, named)
    check_forbidden(args.checkpoint, complaints)
    finish(complaints, f"{len(kinds)} kinds of damage are told")


if __name__ == "__main__":
    main()
