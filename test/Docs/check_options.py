"""check_options.py - docs/options.md has every option of ds-run, and every variable that sources read.

    check_options.py DS_RUN ROOT [--write]

The tables of options stand between <!-- options: ds-run ... --> and <!-- end -->, and are what the tool says of itself; --write puts
them there. Variables have a row each; `DS_` names that no source reads are found as well.
"""

import json
import pathlib
import re
import subprocess
import sys

TABLE = re.compile(r"(<!-- options: (ds-run.*?) -->\n)(.*?)(<!-- end -->)", re.S)
READ = re.compile(r'"(DS_[A-Z0-9_]+)"')


def cell(text):
    return text.replace("|", "\\|")


def value_of(option):
    """The value as CLI11 has it, with the words of a set in place of its name."""
    name, _, check = option["value"].partition(":")
    words = re.search(r"\{(.*?)\}", check)
    return "|".join(word.split("->")[0] for word in words.group(1).split(",")) if words else name


def table_of(tool, line):
    """Markdown of the options that the tool has on that command line."""
    said = subprocess.run([tool, *line, "--describe-options"], check=True, stdout=subprocess.PIPE).stdout
    rows = ["| option | value | |", "|---|---|---|"]
    for option in json.loads(said)["commands"][0]["options"]:
        value = value_of(option)
        names = ", ".join(f"`{name}`" for name in option["names"])
        rows.append(f"| {names} | {f'`{cell(value)}`' if value else ''} | {cell(option['help'])} |")
    return "\n".join(rows) + "\n"


def variables_of(root):
    """Those that a source asks the environment for, also by functions of our own."""
    files = [path for folder in ("lib", "tools", "include", "kernels") for path in (root / folder).rglob("*")
             if path.suffix in (".cpp", ".h", ".cu") and path.is_file()]
    return {name for path in files for name in READ.findall(path.read_text())}


def main():
    tool, root = sys.argv[1], pathlib.Path(sys.argv[2])
    page, faults = root / "docs/options.md", []
    text = page.read_text()

    def check(match):
        head, line, shown, tail = match.groups()
        made = table_of(tool, line.split()[1:])
        if made != shown:
            faults.append(f"{line}: the table is not what the tool says (check_options.py --write):\n" +
                          "\n".join(row for row in made.splitlines() if row not in shown.splitlines()))
        return head + made + tail

    rewritten = TABLE.sub(check, text)
    if "--write" in sys.argv:
        page.write_text(rewritten)
        return 0
    rows = set(re.findall(r"`(DS_[A-Z0-9_]+)[`=]", "\n".join(line.split("|")[1] for line in text.splitlines() if line.startswith("|"))))
    read = variables_of(root)
    faults += [f"no row for {name}" for name in sorted(read - rows)]
    faults += [f"no source reads {name}" for name in sorted(rows - read)]
    print("\n".join(faults) or f"{len(TABLE.findall(text))} tables of options, {len(read)} variables")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
