"""gpu_summary.py - what a round prints at its end, of all rounds with the same folder: what matters most comes last."""

SECTIONS = (("Dearest commands", 2600), ("Single figures", 2800), ("Speed", 1600), ("Failed", 2000), ("Round", 700))


def cut(lines, most):
    """As many lines as fit; how many do not."""
    kept, used = [], 0
    for index, line in enumerate(lines):
        line = line if len(line) <= 158 else line[:155] + "..."
        if used + len(line) + 1 > most - 40:
            return kept + [f"  ({len(lines) - index} more: results.jsonl)"]
        kept.append(line)
        used += len(line) + 1
    return kept


def milliseconds(seconds):
    return "      -" if seconds is None else f"{seconds * 1e3:7.3f}"


def dearest(records):
    lines = []
    for name, record in records.items():
        if name.startswith("dearest ") and record["state"] == "ok":
            lines.append(f"  {name[8:]}: ms a step measured, predicted, times; {record['text']}")
            lines += [f"  {milliseconds(ours)} {milliseconds(theirs)} {times:4d}  {command[:84]}"
                      for command, ours, theirs, times in record["data"]["commands"]]
    return lines


def figures(records):
    return [f"  {line['figure']}: {line['text']}" for name, record in records.items() if name.startswith("calibrate ")
            for line in record["data"].get("lines", [])]


def speeds(records):
    return [f"  {name}: {record['text']}" for name, record in records.items() if record["state"] == "ok"
            and (name.startswith(("speed ", "PyTorch eager", "PyTorch compile")) or " without " in name)]


def failures(records):
    looked = [(name, record) for name, record in records.items() if name.endswith((", memcheck", "waited for"))]
    failed = [(name, record) for name, record in records.items() if record["state"] == "failed"]
    return [f"  {name}: {record['text']}" for name, record in failed + [each for each in looked if each[1]["state"] == "ok"]]


def closing(records, identity, reason):
    count = {state: sum(record["state"] == state for record in records.values()) for state in ("ok", "failed", "skipped")}
    lines = [f"  {identity['gpu']}, pack {identity['pack']}"]
    lines += [f"  {name}: {records[name]['text']}" for name in ("facts libraries", "ladder") if name in records]
    lines.append(f"  {count['ok']} ok, {count['failed']} failed, {count['skipped']} skipped; "
                 + (f"NOT AT ITS END ({reason}): call again with the same --out" if reason else "at its end"))
    return lines


def summarise(results, printer, reason):
    """Prints the summary; returns it whole, and whether anything failed."""
    records = results.records
    found = {"Dearest commands": dearest(records), "Single figures": figures(records), "Speed": speeds(records),
             "Failed": failures(records), "Round": closing(records, results.identity, reason)}
    if printer.left_out:
        printer.line(f"({printer.left_out} more lines of steps: results.jsonl)")
    for title, most in SECTIONS:
        if found[title]:
            for line in [title] + cut(found[title], most):
                printer.line(line)
    text = "\n".join(line for title, _ in SECTIONS if found[title] for line in [title, *found[title]]) + "\n"
    return text, any(record["state"] == "failed" for record in records.values())
