"""check_published.py FILE.json OUT [REFUSED...] - one configuration as it is published, from end to end.

Every key of the file must come out somewhere: as a setting with its value, or in a notice by its name. A plan is
made of it with a tiny model, or refused for exactly the keys REFUSED; with --ignore-unavailable, for those that
are not in parentheses.
"""
import json
import os
import re
import subprocess
import sys

MODEL = {"model_type": "gpt2", "vocab_size": 64, "n_positions": 16, "n_embd": 16, "n_layer": 2, "n_head": 2}


def leaves(value, path=""):
    """Dotted paths of all that is no object."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, f"{path}.{key}" if path else key)
    else:
        yield path


def ds_opt(*arguments):
    return subprocess.run(["ds-opt", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def main():
    path, out, refused = sys.argv[1], sys.argv[2], sys.argv[3:]
    os.makedirs(out, exist_ok=True)
    model = os.path.join(out, "config.json")
    with open(model, "w") as file:
        json.dump(MODEL, file)
    with open(path) as file:
        written = json.load(file)
    # The batch is the file's where it says one; two ranks, as many as layers can be split over.
    batch = written.get("train_micro_batch_size_per_gpu", "auto")
    if batch == "auto":
        whole = written.get("train_batch_size", "auto")
        batch = 4 if whole == "auto" else whole // 2
    command = [model, "--config", path, "--ranks", "2", "--notes=all", "--input", f"input_ids={batch}x16xi64"]
    printed = ds_opt(*command, "--print-config=json")
    assert printed.returncode == 0, printed.stderr
    settings = json.loads(printed.stdout)
    for leaf in leaves(written):
        if leaf.startswith("optimizer.params.") and "optimizer.type" in refused:
            continue  # of a type that has no rows: what refuses it refuses them
        told = leaf in settings or any(f'"{leaf[:end]}"' in printed.stderr for end in
                                       [m.start() for m in re.finditer(r"\.", leaf)] + [len(leaf)])
        assert told, f"{leaf} is neither a setting nor in a notice:\n{printed.stderr}"
    for extra, expected in (([], [key.strip("()") for key in refused]),
                            (["--ignore-unavailable"], [key for key in refused if not key.startswith("(")])):
        plan = ds_opt(*command, "--emit=plan", *extra)
        named = re.findall(r'"([a-z0-9_.]+)" = \S+ is not available in a program', plan.stderr, re.I)
        assert sorted(named) == sorted(expected), (extra, named, plan.stderr)
        assert plan.returncode == (3 if expected else 0), plan.stderr
        ignored = re.findall(r'IGNORED: \S+: "([a-z0-9_.]+)"', plan.stderr, re.I)
        wanted = [key.strip("()") for key in refused if key.startswith("(")] if extra else []
        assert sorted(ignored) == sorted(wanted), (ignored, plan.stderr)
    print("ok")


main()
