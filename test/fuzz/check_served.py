"""check_served.py DIR - command lines end as they do alone when a fork of a loaded tool has them: by code, signal, limit or not at all."""

import os
import sys

from served import Tools

CASES = [  # command of sh, how it ends, what it says
    ("exit 0", 0, ""),
    ("echo no >&2; exit 3", 3, "no\n"),
    ("kill -SEGV $$", -11, ""),
    ("echo early >&2; sleep 100", "hang", "early\n"),
    ("echo $WORD >&2; cat >&2", 0, "given\nsource\n"),
    ("ulimit -v >&2", 0, f"{1 << 20}\n"),
    ("echo $LD_PRELOAD >&2", 0, "\n"),
]


def main():
    folder = sys.argv[1]
    source, errors = os.path.join(folder, "source.txt"), 0
    with open(source, "w") as file:
        file.write("source\n")
    for served in (True, False):
        tools = Tools(folder, served)
        assert bool(tools.library) == served, "there is no fork server"
        for command, code, said in CASES:
            answer = tools.run(["sh", "-c", command], 3, {"WORD": "given"}, source, 1 << 30)
            if (answer.code, answer.said) != (code, said):
                errors += 1
                print(f"{command!r}, {'served' if served else 'alone'}: expects {code} and {said!r}, but got {answer}")
        assert len(tools.all) == served, "one process has all of them"
        tools.close()
    print(f"{2 * len(CASES)} command lines, {errors} end otherwise")
    sys.exit(1 if errors else 0)


main()
