"""try_next.py SAID DIR - run the commands that script/demo names at its end, in DIR."""

import re
import subprocess
import sys


def main():
    text = open(sys.argv[1]).read().partition("== What to try next")[2]
    commands = re.findall(r"  (ds-(?:opt|run|ckpt) .*)", text)
    for command in commands:
        done = subprocess.run(command, shell=True, cwd=sys.argv[2], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            print(f"{command}\n{done.stdout}exit code {done.returncode}")
            return 1
    print(f"{len(commands)} commands work")
    return 0


if __name__ == "__main__":
    sys.exit(main())
