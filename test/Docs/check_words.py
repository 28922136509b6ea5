"""check_words.py ROOT - one name a thing, the field's, in the manual, in descriptions of ops and passes, and in what the tools say.

Readers search for the usual words. Looked at are README.md, CONTRIBUTING.md, docs/*.md, *.td, and string literals of lib, tools and include.
Comments and names there are looked at for recomputation alone.
"""

import re
import sys
from pathlib import Path

# What is not to be said, over line breaks too, and the usual word.
RETIRED = [
    (r"ma[dk]es? again|makes? (?:[\w'{}]+ ){1,3}again", "recompute, or repeat a step"),
    (r"comput(?:es?|ed|ing) (?:\w+ )?again|rematerial\w+", "recompute"),
    (r"behind (?:\w+ ){0,2}(?:\d+\w+ )?steps?|behind (?:it|them|that|this one)", "after"),
    (r"(?:go|goes|going|went) on (?:from|with)|(?:run|runs|training|data) (?:go|goes) on", "resume, or continue"),
    (r"(?:is|are|was|were|be|been) told(?! apart)|tells? (?:all|them|how|what|why)", "report"),
    (r"(?:is|are|was|were) held to", "check against"),
    (r"updates? (?:\w+ ){0,4}go(?:es)? early|early updates?", "speculative update"),
]
# What is not to be said in comments either, nor in names.
RETIRED_IN_CODE = [(r"ma[dk]es?\s(?:[/#* ]+\s)?again|ma[dk]es?Again|MadeAgain|Repeater", "recompute, or repeat a step")]
PATTERNS = [(re.compile(rf"\b(?:{pattern})\b".replace(" ", r"\s+"), re.I), word) for pattern, word in RETIRED]

# Names that stay: options, passes and keys only grow.
NAMES = re.compile(r"ds-rematerialize-cheap|RematerializeCheap")

TOKEN = re.compile(r"""//[^\n]*|/\*.*?\*/|R"(\w*)\((?P<raw>.*?)\)\1"|"(?P<plain>(?:[^"\\\n]|\\.)*)"|(?<!\w)'(?:[^'\\\n]|\\.)*'""", re.S)


def literals(code):
    """(line, text) of each string literal of C++; those that the compiler joins are one."""
    found, end = [], None
    for token in TOKEN.finditer(code):
        text = token["plain"] if token["raw"] is None else token["raw"]
        if text is None:
            continue
        if end is not None and not code[end:token.start()].strip():
            found[-1][1] += text
        else:
            found.append([code.count("\n", 0, token.start()) + 1, text])
        end = token.end()
    return found


def codes(root):
    """(file, text) of all code that is looked at."""
    for room in ("lib", "tools", "include"):
        for path in sorted(found for ending in ("cpp", "h") for found in (root / room).rglob(f"*.{ending}")):
            yield path, path.read_text()


def texts(root):
    """(file, first line, text) of all that is looked at."""
    for path in [root / "README.md", root / "CONTRIBUTING.md", *sorted(root.glob("docs/*.md")), *sorted(root.glob("include/**/*.td"))]:
        if path.is_file():
            yield path, 1, path.read_text()
    for path, code in codes(root):
        yield from ((path, line, text) for line, text in literals(code))


def faults_of_code(root):
    for path, text in codes(root):
        for pattern, word in RETIRED_IN_CODE:
            for hit in re.finditer(pattern, text):
                line = 1 + text.count("\n", 0, hit.start())
                yield f'{path.relative_to(root)}:{line}: "{" ".join(hit[0].split())}": say {word}'


def main():
    root = Path(sys.argv[1])
    looked, faults = 0, list(faults_of_code(root))
    for path, first, text in texts(root):
        looked += 1
        named = NAMES.sub(lambda name: "-" * len(name[0]), text)
        for pattern, word in PATTERNS:
            for hit in pattern.finditer(named):
                line = first + text.count("\n", 0, hit.start())
                faults.append(f'{path.relative_to(root)}:{line}: "{" ".join(hit[0].split())}": say {word}')
    print("\n".join(faults) or f"{looked} texts have the usual words")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
