"""check_manuals.py - manual pages and completions name every option that --help lists, and no other.

    check_manuals.py SHARE TOOL...
"""

import pathlib
import re
import subprocess
import sys

COMMANDS = {"ds-ckpt": ["ls", "show", "verify", "diff", "export", "import", "gc"], "ds-run": ["--sample=x", "--calibrate"]}
OPTION = re.compile(r"(?<![\w-])--?[a-z][\w-]*")


def listed(tool):
    """The options that --help lists, of the tool and of its commands: those that begin a line."""
    found = set()
    for command in [[], *([name] for name in COMMANDS.get(tool, []))]:
        text = subprocess.run([tool, *command, "--help"], check=True, stdout=subprocess.PIPE, text=True).stdout
        for line in text.splitlines():
            head = re.match(r"\s+((?:--?[a-z][\w-]*(?:,\s*)?)+)", line)
            found |= set(OPTION.findall(head.group(1))) if head else set()
    return found - {"--help-list"}  # of LLVM's, which is there while help is printed


def manual_names(page):
    """The options that the page has an entry for."""
    text = re.sub(r"\\f.", " ", page.read_text()).replace("\\-", "-")
    return {name for line in re.findall(r"(?m)^\.TP\n(.*)$", text) for name in OPTION.findall(line)}


def completed(script, tool):
    """The options that bash offers behind the tool and behind its commands."""
    found = set()
    for command in ["", *COMMANDS.get(tool, [])]:
        words = f"({tool} {command.replace('=', ' ')} -)"
        text = f"source {script}; COMP_WORDS={words}; COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _{tool.replace('-', '_')}; echo ${{COMPREPLY[@]}}"
        found |= set(subprocess.run(["bash", "-c", text], check=True, stdout=subprocess.PIPE, text=True).stdout.split())
    return found


def main():
    share, faults = pathlib.Path(sys.argv[1]), []
    for tool in sys.argv[2:]:
        wanted = listed(tool)
        for what, names in (("manual", manual_names(share / f"man/man1/{tool}.1")),
                            ("completion", completed(share / f"bash-completion/completions/{tool}", tool))):
            faults += [f"{tool}: the {what} lacks {name}" for name in sorted(wanted - names)]
            faults += [f"{tool}: the {what} has {name}, and --help has not" for name in sorted(names - wanted)]
        print(f"{tool}: {len(wanted)} options")
    print("\n".join(faults) or "all are there")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
