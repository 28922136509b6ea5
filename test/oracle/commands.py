"""commands.py - run ds-opt and ds-run from a test, echoing each command so that it can be repeated by hand."""

import shlex
import subprocess
import sys


def run(*command):
    """Runs the command; the test ends with its exit code and output if it fails."""
    print("$ " + " ".join(shlex.quote(str(part)) for part in command), flush=True)
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        print(done.stdout)
        sys.exit(f"exit code {done.returncode}")
    if "were counted to choose what is kept" in done.stdout:
        print(done.stdout)
        sys.exit("buffers take another number of bytes than was counted before")
    return done.stdout


def compile_program(archive, config, inputs, program, extra=()):
    """ds-opt: from an archive to a program and the weights beside it."""
    arguments = [part for text in inputs for part in ("--input", text)]
    run("ds-opt", archive, "--config", config, *arguments, *extra, "--emit=program", "-o", program)


def finish(complaints, summary):
    """Prints the verdict and ends the test with it."""
    if complaints:
        print("\n".join(complaints))
        sys.exit(1)
    print(summary)
