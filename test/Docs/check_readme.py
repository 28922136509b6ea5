"""check_readme.py - the commands of README.md do what the page says, in their order.

    check_readme.py ROOT DIR

Steps are fewer (SHORTER). What installs, builds and runs all tests is left to the tests of scripts.
"""

import json
import os
import pathlib
import re
import subprocess
import sys

SHORTER = {"--steps 200": "--steps 4", "--steps 50": "--steps 3", "--eval-every 50": "--eval-every 2"}
ELSEWHERE = re.compile(r"script/|export |podman |\. ")


def commands_of(page):
    """Lines of indented blocks; a line that ends with a backslash goes on."""
    block = "".join(line[4:] + "\n" for line in page.splitlines() if line.startswith("    "))
    return [line.strip() for line in block.replace("\\\n", " ").splitlines() if not ELSEWHERE.match(line)]


def main():
    root, folder = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    os.chdir(folder)
    # The page's commands are given where the repository lies.
    if not (folder / "examples").exists():
        (folder / "examples").symlink_to(root / "examples")
    commands = commands_of((root / "README.md").read_text())
    for command in commands:
        for long, short in SHORTER.items():
            command = command.replace(long, short)
        done = subprocess.run(command, shell=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                              env={**os.environ, "PYTHONWARNINGS": "ignore"})
        assert done.returncode == 0, f"{command}\n{done.stdout}\nexit code {done.returncode}"
        print(f"$ {command}")
    log = [json.loads(line) for line in (folder / "gpt/log.jsonl").read_text().splitlines()]
    assert [record["step"] for record in log] == [1, 2, 3, 4], log
    assert (folder / "gpt/trained.safetensors").stat().st_size > 1 << 20
    print(f"{len(commands)} commands of README.md work")
    return 0


if __name__ == "__main__":
    sys.exit(main())
