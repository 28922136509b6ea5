#!/usr/bin/python3
"""check_unsharding.py - what stays gathered over micro-steps changes what is sent, and no number.

    check_unsharding.py gpt --out DIR --config ds_config.json --ranks 2,3 --accumulation 4 --steps 3

Trains at stage 3 three times: with as little kept as the configuration can say, with all the room there is, and with
room for a part. Logs and saved weights must be equal to the bit; what ranks send must fall with the room.
"""

from commands import finish
from trials import Trials, parse

STAYS = "for all micro-steps"


def check(trials):
    few = trials.train("few", {"stage": 3, "stage3_max_reuse_distance": 0})
    roomy = trials.train("roomy", {"stage": 3})
    for share in (1.0, 0.985, 0.97, 0.96, 0.95, 0.945, 0.935, 0.92):  # of what the plan takes that keeps little
        memory = int(share * few.arena())
        tight = trials.train("tight", {"stage": 3}, memory=memory)
        if few.sent("all_gather") > tight.sent("all_gather") > roomy.sent("all_gather"):
            break  # a part fits
    complaints = few.differences(roomy, "roomy") + few.differences(tight, "tight")
    sent = [result.sent("all_gather") for result in (few, tight, roomy)]
    if not sent[0] > sent[1] > sent[2]:
        complaints.append(f"expects less to be gathered with more room, but got {sent}")
    if tight.arena() > memory:
        complaints.append(f"the plan takes {tight.arena()} bytes of {memory}")
    for name, result in {"roomy": roomy, "tight": tight}.items():
        if not any(STAYS in note for note in result.plan["notes"]):
            complaints.append(f"{name}: no note says what stays: {result.plan['notes']}")
    if few.rank()["states"] != roomy.rank()["states"]:
        complaints.append("what stays gathered counts as a state of the model")
    return complaints, f"{trials.ranks} ranks: equal to the bit; gathered bytes {sent[0]}, {sent[1]}, {sent[2]}"


def main():
    args, rest = parse(__doc__)
    complaints, summary = [], []
    for ranks in args.ranks.split(","):
        found, line = check(Trials(args, rest, int(ranks)))
        complaints += [f"{ranks} ranks: {text}" for text in found]
        summary.append(line)
    finish(complaints, "\n".join(summary))


if __name__ == "__main__":
    main()
