"""gpu_round.py - what a GPU machine does with a folder that gpu-test has packed.

A round is a list of named steps. Each is one line of results.jsonl, written before the next step starts; a step that has
its line is not measured again. So a round may be ended at any time, by its budget, a signal or the power, and goes on where it
was. Nothing that fails ends it: the failure and all it said are noted, and the next step is made.
"""

import json
import os
import shutil
import signal
import sys
import tempfile
import time
from dataclasses import dataclass
from typing import Callable

import gpu_checks
import gpu_facts
import gpu_ladder
import gpu_models
import gpu_speed
from gpu_child import Ended, Running, adopt_orphans, end_all, run as run_child
from gpu_results import ALGORITHMS, SUMMARY, Busy, Printer, Results, Unwritable
from gpu_summary import summarise

OK, FAILED, USAGE, UNWRITABLE, NO_GPU, UNFINISHED = 0, 1, 2, 6, 9, 75
RESERVE = 4.0  # seconds of the budget that are kept to write what is known
CHOICES = "cache/choices"  # as the runtime names the file in DS_CACHE_DIR
TICK = 0.01  # seconds between looks at commands that run side by side
PARTS = {"facts": gpu_facts.facts, "ladder": gpu_ladder.ladder, "speed": gpu_speed.speed, "micro": gpu_speed.micro,
         "torch": gpu_speed.torch, "checks": gpu_checks.checks, "large": gpu_speed.large, "large-torch": gpu_speed.large_torch,
         "ways": gpu_speed.ways, "sanitizer": gpu_checks.sanitizer}


class OutOfTime(Exception):
    """The budget is spent, or somebody asks the round to end."""


class Outcome:
    """What a step found: "ok", "failed" or "skipped", a line of text, and figures."""

    def __init__(self, state, text, **data):
        self.state, self.text, self.data = state, text, data


@dataclass
class Job:
    """A step of one command, which may run beside others: `judge(round, ended)` is its outcome."""
    name: str
    seconds: float
    command: list
    environment: dict
    judge: Callable


class Round:
    """One call of gpu-test."""

    def __init__(self, args, results, scratch, printer, deadline):
        self.folder, self.results, self.scratch, self.printer = args.folder, results, scratch, printer
        self.deadline, self.steps, self.python, self.most = deadline, args.steps, args.python, args.timeout
        self.parts, self.packed = args.only, read_json(os.path.join(args.folder, "models.json"))
        self.models = [name for name in self.packed["packed"] if args.models == "all" or name in args.models.split(",")]
        self.made, self.limit, self.quick, self.jobs = 0, None, args.quick, args.jobs
        self.outcome, self.job, self.read_lines = Outcome, Job, read_lines
        restore_algorithms(self)

    # Steps

    def step(self, name, work, seconds, least=0):
        """The record of a step: an earlier round's, or what `work(self)` finds now within `seconds` for each command.
        A step that needs `least` seconds is left to the next round if the budget has less, but for the first one."""
        found = self.results.records.get(name)
        if found:
            return found
        if self.results.worn_out(name):
            return self.note(name, Outcome("failed", "it ended the round each time it was tried: not tried again"))
        if self.left() < (min(least, seconds) if self.made else 1):
            raise OutOfTime(f"{name} needs {least:.0f} s" if least else "the budget is spent")
        self.made += 1
        self.limit = min(seconds, self.most or seconds)
        self.results.append({"step": name, "state": "started"})
        began = time.monotonic()
        try:
            outcome = self.guarded(work)
        except OutOfTime:
            self.results.append({"step": name, "state": "stopped"})
            raise
        return self.note(name, outcome, seconds=round(time.monotonic() - began, 3))

    def guarded(self, work):
        """What `work(self)` finds: one step's mistake must not cost the others their turn on the machine."""
        try:
            return work(self)
        except OutOfTime:
            raise
        except Exception as error:
            return Outcome("failed", f"{type(error).__name__}: {error}")

    def together(self, jobs):
        """The records of steps whose commands run side by side, as many as the machine has room for. A step that was started
        before, by a round that did not live to tell, is made alone: it would cost its neighbours their turn."""
        beside = [job for job in jobs if job.name not in self.results.records and not self.results.starts.get(job.name)]
        if self.jobs > 1:
            self.side_by_side(beside)
        return [self.step(job.name, lambda r, job=job: job.judge(r, r.child(job.command, job.environment)), job.seconds)
                for job in jobs]

    def side_by_side(self, waiting):
        running, waiting = {}, list(waiting)
        try:
            while waiting or running:
                while waiting and len(running) < self.jobs:
                    job = waiting.pop(0)
                    self.results.append({"step": job.name, "state": "started"})
                    running[job.name] = job, self.begin(job, f"beside{self.made}")
                    self.made += 1
                for name, (job, command) in list(running.items()):
                    ended = command.ended()
                    if ended is not None:
                        del running[name]
                        self.take_end(job, ended)
                time.sleep(TICK)
        except BaseException:
            for name, (_, command) in running.items():
                command.stop()
                self.results.append({"step": name, "state": "stopped"})
            raise
        finally:
            end_all()

    def begin(self, job, tag):
        within = min(job.seconds, self.most or job.seconds, self.left())
        if within <= 0:
            raise OutOfTime("the budget is spent")
        return Running(job.command, within, self.scratch, {**own_environment(self.scratch), **job.environment}, tag)

    def take_end(self, job, ended):
        """The record of a step that ran beside others; raises OutOfTime where the budget ended it."""
        if ended.why == "time" and ended.seconds < min(job.seconds, self.most or job.seconds):
            self.results.append({"step": job.name, "state": "stopped"})
            raise OutOfTime("the budget is spent")
        self.note(job.name, self.guarded(lambda r: job.judge(r, ended)), seconds=round(ended.seconds, 3))

    def note(self, name, outcome, **more):
        record = {"step": name, "state": outcome.state, "text": outcome.text, **more, "data": outcome.data}
        self.results.append(record)
        self.printer.detail(f"{outcome.state.upper() if outcome.state == 'failed' else outcome.state:8}{name}: {outcome.text}")
        return record

    def left(self):
        return float("inf") if self.deadline is None else self.deadline - RESERVE - time.monotonic()

    # Commands

    def child(self, command, environment=None):
        """Runs a command within the step's time; raises OutOfTime where the budget ends it."""
        within = min(self.limit, self.left())
        if within <= 0:
            raise OutOfTime("the budget is spent")
        ended = run_child(command, within, self.scratch, {**own_environment(self.scratch), **(environment or {})})
        if ended.why == "time" and within < self.limit:
            raise OutOfTime("the budget is spent")
        return ended

    def path(self, name):
        return os.path.join(self.folder, name)

    def temporary(self, name):
        return os.path.join(self.scratch, name)

    def ds_environment(self, environment=None):
        """Where our tools find libraries, and what switches them."""
        libraries = os.pathsep.join([self.path("lib"), *gpu_facts.cuda_folders(self), os.environ.get("LD_LIBRARY_PATH", "")])
        return {"LD_LIBRARY_PATH": libraries, "DS_CACHE_DIR": self.temporary("cache"), **(environment or {})}

    def ds_command(self, name, log, extra=(), steps=20, wrapper=()):
        """What runs a packed program on the GPU."""
        model = gpu_models.MODELS[name]
        data = ["--data", gpu_models.tokens(name, self.scratch), "--token-dtype", f"u{8 * gpu_models.token_width(name)}"] if "hf" in model else \
            ["--data", self.path(f"{name}.data.safetensors")]
        ranks = ["--ranks", model["ranks"]] if "ranks" in model else []
        nvme = ["--nvme", self.temporary("")] if gpu_models.keeps_on_nvme(name) else []
        return [*wrapper, self.path("bin/ds-run"), self.path(f"{name}.dsx"), "--device", "cuda", *data,
                "--steps", steps, "--log-jsonl", log, *ranks, *nvme, *extra]

    def ds_run(self, name, environment, extra=(), steps=20, wrapper=()):
        """Runs a packed program; returns how it ended and the log's records."""
        log = self.temporary("log.jsonl")
        if os.path.exists(log):
            os.remove(log)
        ended = self.child(self.ds_command(name, log, extra, steps, wrapper), self.ds_environment(environment))
        return ended, read_lines(log)

    def failed(self, name, ended, **data):
        """A step whose command failed: its whole output goes to a file."""
        self.results.failure(name, f"{ended.describe()}\n--- stderr\n{ended.err}--- end of stdout\n{ended.out[-4000:]}")
        return Outcome("failed", ended.describe(), **data)


def read_json(path):
    with open(path) as file:
        return json.load(file)


def read_lines(path):
    """The records of a log; a last line that is cut off is left out."""
    records = []
    if os.path.exists(path):
        with open(path) as file:
            for line in file:
                try:
                    records.append(json.loads(line))
                except ValueError:
                    break
    return records


def own_environment(scratch):
    """What libraries write goes into scratch, and numbers are the same in every run. What PyTorch compiles goes where the caller says,
    if it says so: a second round then has it."""
    folders = {"TMPDIR": "tmp", "XDG_CACHE_HOME": "xdg", "CUDA_CACHE_PATH": "jit"}
    folders.update({key: name for key, name in (("TRITON_CACHE_DIR", "triton"), ("TORCHINDUCTOR_CACHE_DIR", "inductor"))
                    if key not in os.environ})
    for name in folders.values():
        os.makedirs(os.path.join(scratch, name), exist_ok=True)
    return {**os.environ, **{key: os.path.join(scratch, name) for key, name in folders.items()},
            "PYTHONDONTWRITEBYTECODE": "1"}


def restore_algorithms(r):
    """Algorithms that an earlier call chose: the same ones give the same bits and need no choosing."""
    os.makedirs(r.temporary("cache"), exist_ok=True)
    if os.path.exists(r.results.path(ALGORITHMS)):
        shutil.copy(r.results.path(ALGORITHMS), r.temporary(CHOICES))


def keep_algorithms(r):
    if os.path.exists(r.temporary(CHOICES)):
        with open(r.temporary(CHOICES), "rb") as file:
            r.results.store(ALGORITHMS, file.read())


def make_parts(r):
    """All parts in their order; why the round is not at its end, or None."""
    try:
        for name, part in PARTS.items():
            if name in r.parts:
                part(r)
    except OutOfTime as reason:
        return str(reason)
    return None


def told(number, frame):
    signal.signal(number, signal.SIG_IGN)
    raise OutOfTime(f"signal {number}")


def run_in(args, scratch, deadline):
    printer = Printer()
    packed = read_json(os.path.join(args.folder, "models.json"))
    gpu = gpu_facts.find_gpu(args, scratch, own_environment(scratch))
    if isinstance(gpu, Ended):
        print(f"gpu-test: there is no GPU to test: {gpu.describe()}"[:400])
        return NO_GPU
    try:
        results = Results(args.out, {"gpu": gpu, "pack": packed["pack"]}, printer)
    except Unwritable as error:
        print(f"gpu-test: the results cannot be written: {error}; give another folder with --out")
        return UNWRITABLE
    except Busy:
        print(f"gpu-test: another round writes to {args.out}; wait for its end, or give another folder with --out")
        return USAGE
    r = Round(args, results, scratch, printer, deadline)
    reason = make_parts(r)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})  # what is left takes no time
    keep_algorithms(r)
    text, failed = summarise(results, printer, reason)
    results.store(SUMMARY, text)
    if results.broken:
        return UNWRITABLE
    return UNFINISHED if reason else FAILED if failed else OK


def run(args):
    """Runs the parts; returns the exit code."""
    deadline = None if args.budget is None else time.monotonic() + args.budget
    if not os.path.exists(os.path.join(args.folder, "models.json")):
        print(f"gpu-test: {args.folder} was not made by gpu-test --pack", file=sys.stderr)
        return USAGE
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, told)
    adopt_orphans()
    scratch = tempfile.mkdtemp(prefix="gpu-test-", dir=args.scratch)
    try:
        return run_in(args, scratch, deadline)
    except OutOfTime as reason:
        print(f"gpu-test: stopped: {reason}")
        return UNFINISHED
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
