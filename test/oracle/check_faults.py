#!/usr/bin/python3
"""check_faults.py - bring one of the ranks of a running job down, and hold the others to what they promise.

    check_faults.py PROGRAM.dsx --data FILE --out DIR --ranks 3 --times 20 --timeout 3

Every survivor must end with exit code 7, within the time-out, and name the rank, its host and the collective. A rank is
killed, stopped, or never started; under ds-run --ranks, under mpirun, and with ranks started by hand. When it happens is
drawn by chance between the marks of a run that nothing befell; in which phase of a step it was, the survivors'
messages say. It goes on until every phase has been hit --times times, and prints how many of them went as promised.

    start-up    until the first collective: rendezvous, connecting, comparing programs
    gathers     of parameters, forward and backward       reductions   of gradients
    update      norm, optimizer, agreement to continue    save         weights, and the end of the run
"""

import argparse
import json
import os
import random
import re
import shutil
import signal
import statistics
import sys
import time

from fault_jobs import LAUNCHERS, PHASES, Job, phase_of, read

SIGNALS = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP}
NEVER = "never started"
ENDLESS = 10 ** 8  # steps


class Prober:
    """Draws the moments of faults, and judges what comes of them."""

    def __init__(self, args):
        self.args, self.draw = args, random.Random(args.seed)
        self.log, self.saved = (os.path.join(args.out, name) for name in ("faults.jsonl", "faults.safetensors"))

    def start(self, launcher, steps, absent=None):
        for path in (self.log, self.saved):
            if os.path.exists(path):
                os.remove(path)
        command = ["ds-run", self.args.program, "--data", self.args.data, "--timeout", self.args.timeout, "--steps", steps,
                   "--log-jsonl", self.log, "--save-weights", self.saved]
        return Job(launcher, command, self.args.ranks, self.args.out, absent)

    def wait_for_step(self, job, count):
        """Whether the log came to have `count` lines before the job ended."""
        while not job.ended():
            if read(self.log).count("\n") >= count:
                return True
            time.sleep(0.001)
        return False

    def calibrate(self):
        """Seconds of start-up, of a step, and from the last step to the end, where nothing goes wrong."""
        begin, job = time.monotonic(), self.start("hand", 4)
        job.process(0)
        started = time.monotonic()
        assert self.wait_for_step(job, 1), job.words(0)
        first = time.monotonic() - started
        self.wait_for_step(job, 4)
        last = time.monotonic()
        for part in job.parts.values():
            assert part.wait(self.args.patience) == 0, job.words(0)
        self.save = time.monotonic() - last
        with open(self.log) as file:
            self.step = statistics.median(json.loads(line)["step_seconds"] for line in file)
        self.start_up = max(first - self.step, 0.05)
        print(f"start-up {self.start_up:.2f} s, step {self.step:.3f} s, save {self.save:.3f} s, all "
              f"{last - begin + self.save:.2f} s", flush=True)

    def strike(self, launcher, fault, aim):
        """One job and one fault in it: (phase, seconds, complaint), or nothing if the job ended before it."""
        victim, moment = self.draw.randrange(self.args.ranks), self.draw.random()
        job = self.start(launcher, 2 if aim == "save" else ENDLESS)
        try:
            pid = job.process(victim)
            if aim == "start-up":
                time.sleep(moment * self.start_up)
            elif not self.wait_for_step(job, 2 if aim == "save" else 1):
                return None
            else:
                time.sleep(moment * (self.save if aim == "save" else 3 * self.step))
            if pid is None or job.running(victim) != (job.survivors(victim) if launcher != "ds-run" else [None]):
                return None
            os.kill(pid, SIGNALS[fault])
            return self.judge(job, victim, fault)
        except ProcessLookupError:
            return None
        finally:
            job.end()
            shutil.rmtree(job.folder)

    def never(self, launcher):
        """A job of which one rank does not come."""
        absent = self.args.ranks - 1 if launcher == "mpirun" else self.draw.randrange(self.args.ranks)
        job = self.start(launcher, 1, absent)
        try:
            return self.judge(job, absent, NEVER)
        finally:
            job.end()
            shutil.rmtree(job.folder)

    def judge(self, job, victim, fault):
        """(phase, seconds, complaint) once the survivors have ended; nothing if they had finished their work."""
        seconds = job.wait(victim, self.args.timeout + self.args.patience)
        if seconds is None:
            return "start-up", self.args.timeout + self.args.patience, "survivors did not end"
        if fault == "stop" and seconds < self.args.timeout / 2:
            return None  # the machine had stood still, and the job had failed before
        words = {rank: job.words(rank) for rank in job.survivors(victim)}
        if f"rank {victim} was killed" in job.launcher_words() and not any("error:" in text for text in words.values()):
            return "save", seconds, ""  # it was stopped after its goodbye, and the launcher alone was left to see it
        codes = {rank: job.code(rank) for rank in words}
        noticed = [rank for rank, code in codes.items() if code == 7]
        if fault != NEVER and not noticed and set(codes.values()) == {0}:
            return None  # it was over
        phase = phase_of(words[noticed[0]]) if noticed else "start-up"
        if noticed and "end of the run" in words[noticed[0]]:  # a rank that has every other's goodbye may have ended well
            codes = {rank: code for rank, code in codes.items() if code != 0}
        complaints = [f"rank {rank}: exit code {code}: {words[rank][-400:]}" for rank, code in codes.items() if code != 7]
        complaints += [f"rank {rank} does not say what happened: {words[rank][-400:]}" for rank in codes
                       if not self.tells(words[rank], victim, phase)]
        complaints += [f"rank {rank} had to be killed" for rank in words
                       if f"rank {rank} was killed" in job.launcher_words()]
        if seconds > self.args.timeout + self.args.margin:
            complaints.append(f"took {seconds:.1f} s")
        return phase, seconds, "; ".join(complaints)

    @staticmethod
    def tells(text, victim, phase):
        """Whether a message names the rank, its host and what was going on; a rank that never came has no host."""
        for line in text.splitlines():
            if phase == "start-up" and re.search(rf"ranks? {victim} (of \d+ did not come|was killed .* before) .*the rendezvous"
                                                 rf"|rank {victim} was killed .*; noticed while the ranks connected", line):
                return True
            if re.search(rf"rank {victim} on host \S+ .*(collective \d+ of channel \d+ \(\w+ [^)]+\)|exchange '|connect|end of the run)", line):
                return True
        return False


class Tally:
    """How often each fault in each phase went as promised."""

    def __init__(self):
        self.rows, self.complaints = {}, []

    def add(self, launcher, fault, result):
        phase, seconds, complaint = result
        self.rows.setdefault((launcher, fault, phase), []).append((seconds, not complaint))
        if complaint:
            self.complaints.append(f"{launcher}: {fault}, {phase}: {complaint}")
            print(self.complaints[-1], flush=True)

    def count(self, launcher, fault, phase):
        return len(self.rows.get((launcher, fault, phase), []))

    def show(self, launcher, fault, phase):
        found = self.rows.get((launcher, fault, phase), [])
        print(f"{launcher:7} {fault:13} {phase:11} {sum(good for _, good in found)} of {len(found)}, "
              f"longest {max((seconds for seconds, _ in found), default=0):.2f} s", flush=True)


def probe(args, prober, tally, launcher, fault):
    """Strikes until every phase has been hit often enough, or hardly ever is."""
    if fault == NEVER:
        for _ in range(args.times if launcher != "ds-run" else 0):
            tally.add(launcher, fault, prober.never(launcher))
        if launcher != "ds-run":
            tally.show(launcher, fault, "start-up")
        return
    for aim in args.phases:
        left = 10 + 15 * args.times
        while tally.count(launcher, fault, aim) < args.times and left > 0:
            result = prober.strike(launcher, fault, aim)
            left -= 1
            if args.verbose:
                print(f"{launcher} {fault} aimed at {aim}: {result}", flush=True)
            if result:
                tally.add(launcher, fault, result)
                if aim == "start-up" and result[0] != aim:
                    prober.start_up *= 0.8  # it was measured while the machine was slower
        if tally.count(launcher, fault, aim) < args.times:
            tally.complaints.append(f"{launcher}: {fault}: {aim} was hit {tally.count(launcher, fault, aim)} times only")
    for phase in PHASES:
        tally.show(launcher, fault, phase)


def words(known):
    def parse(text):
        chosen = text.split(",")
        if not set(chosen) <= set(known):
            raise argparse.ArgumentTypeError(f"expects some of {', '.join(known)}")
        return chosen
    return parse


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--data", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--ranks", type=int, default=3)
    parser.add_argument("--times", type=int, default=20, help="of each fault in each phase, at least")
    parser.add_argument("--timeout", type=int, default=3, help="of the job, seconds")
    parser.add_argument("--margin", type=float, default=5, help="seconds beyond the time-out that a loaded machine may take")
    parser.add_argument("--patience", type=float, default=60, help="seconds until a job counts as hanging")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--verbose", action="store_true", help="tell every strike")
    parser.add_argument("--launchers", type=words(LAUNCHERS), default=list(LAUNCHERS))
    parser.add_argument("--faults", type=words([*SIGNALS, NEVER]), default=[*SIGNALS, NEVER])
    parser.add_argument("--phases", type=words(PHASES), default=list(PHASES))
    args = parser.parse_args()
    os.makedirs(args.out, exist_ok=True)
    prober, tally = Prober(args), Tally()
    prober.calibrate()
    for launcher in args.launchers:
        for fault in args.faults:
            probe(args, prober, tally, launcher, fault)
    good, all_of_them = (sum(map(len, ([s for s in found if s[1]] if only else found for found in tally.rows.values())))
                         for only in (True, False))
    print(f"{good} of {all_of_them} jobs ended as they should")
    sys.exit("\n".join(tally.complaints) if tally.complaints else 0)


if __name__ == "__main__":
    main()
