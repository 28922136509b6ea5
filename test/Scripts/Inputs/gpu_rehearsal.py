"""gpu_rehearsal.py ROOT PACK FAKE-LIBRARY SCENARIO...: rounds of gpu-test on the fake device, with faults.

The pack's ds-run becomes a script that notes how it was called, does what the scenario's fault says (a piece of shell) and
then runs the tool with the kernels of its program, or pretend_run.py, which has the losses of the CPU without computing
them. nvidia-smi and compute-sanitizer are scripts too. Where there is no pack, one is made whose programs are empty: it can
only be pretended to run.
"""

import contextlib
import glob
import json
import os
import shutil
import signal
import sys
import time

from rehearsal import FAKE, PACK, Rehearsal, prepare


def device():
    """The tool itself on the fake device, beside PyTorch on the CPU."""
    r = Rehearsal("device")
    output = r.run(0, "--models", "mlp,gpt2-micro", "--only", "facts,ladder,speed,micro,torch", PRETEND="", NO_TORCH="")
    records = r.records()
    failed = [name for name, state in r.states().items() if state == "failed"]
    assert not failed, failed  # the fake device has no context, and less than planned is no fault
    assert records["ladder"]["text"].startswith("4 of 4 rungs hold"), records["ladder"]
    assert set(records["ladder off mlp"]["data"]["far"]) == {"the CPU", "PyTorch"}, records["ladder off mlp"]
    versions = records["facts libraries"]["data"]["libraries"]
    assert versions["cuBLASLt"] == {"file": os.path.realpath(FAKE), "version": "130100"}, versions
    assert len(records["dearest gpt2-micro"]["data"]["commands"]) == 20, records["dearest gpt2-micro"]
    for command, ours, theirs, times in records["dearest gpt2-micro"]["data"]["commands"]:
        assert ours > 0 and theirs > 0 and times >= 1, (command, ours, theirs, times)
    assert "GELU within" in records["speed gpt2-micro"]["data"]["head"], records["speed gpt2-micro"]
    assert records["PyTorch compile gpt2-micro"]["data"]["ratio"] > 0
    assert "rows odd" in output and "Dearest commands" in output and "x, aim" in output, output


def whole():
    """Everything works: every step is made, and a second call has nothing to do."""
    r = Rehearsal("whole")
    output = r.run(0)
    states = r.states()
    assert states["several GPUs gpt-zero2"] == "skipped" and states["speed gpt2-milli"] == states["dearest gpt2-milli"] == "ok", states
    assert states["engines llama-blocks"] == states["gpt2-micro without graph"] == states["racecheck mlp"] == states["trace llama-bf16"] == "ok", states
    chosen = r.records()["ladder"]["data"]["environment"]
    assert chosen["DS_CUDA_GRAPH"] == chosen["DS_CUDA_GELU"] == "1" and "DS_CUDNN" not in chosen, chosen
    assert chosen["DS_CUDA_CHECK"] == "0", chosen
    cluster = "".join(line for line in r.text("cluster.json").splitlines() if not line.startswith("//"))
    assert json.loads(cluster)["device"]["launch_seconds"] > 0
    assert output.rstrip().splitlines()[-1].endswith("at its end"), output
    assert "everything on the GPU" in r.text("facts.txt")
    assert set(r.text("algorithms.txt").split()) == {"chosen"}, r.text("algorithms.txt")
    calls = len(r.calls())
    r.run(0)
    assert len(r.calls()) == calls, r.calls()[calls:]
    r.run(0, "--only", "checks", DS_FAKE_DEVICES="2")  # on the machine of two GPUs the round is done, too
    assert len(r.calls()) == calls, r.calls()[calls:]


def two_gpus():
    """Models for two GPUs where there are two; memory and losses that are not as planned are failures."""
    r = Rehearsal("two-gpus")
    r.run(1, "--only", "checks", DS_FAKE_DEVICES="2", PRETEND_BEYOND="1.5 GiB")
    states = r.states()
    assert states["several GPUs gpt-zero2"] == "ok" and states["memory mlp"] == "failed", states


def first_rung():
    """The first rung fails: the message names it, the sanitizer looks at it, and the rest of the round is made."""
    r = Rehearsal("first-rung")
    fault = 'if [ "$DS_CUDA_CHECK" = 1 ] && [ "$DS_POISON" = 0 ]; then echo "line 1" >&2; seq 900000 >&2; ' \
            'echo "ds-run: error: command 7 is broken" >&2; exit 9; fi\n'
    r.run(1, "--only", "ladder,speed", fault=fault, SANITIZER_ERRORS="3")
    records = r.records()
    assert records["ladder off mlp"]["state"] == "failed" and "command 7 is broken" in records["ladder off mlp"]["text"]
    assert "ERROR SUMMARY: 3 errors" in records["ladder off mlp, memcheck"]["text"]
    assert records["ladder running freely mlp"]["state"] == "ok" and records["speed gpt2-micro"]["state"] == "ok"
    assert "line 1\n" in r.text("failures.txt") and "bytes ...]" in r.text("failures.txt")
    assert os.path.getsize(os.path.join(r.out, "failures.txt")) < 6 << 20
    r = Rehearsal("nothing-works")  # three failures say enough of a rung, four are looked at
    r.run(1, "--only", "ladder", fault="exit 9\n")
    states = r.states()
    assert "ladder off gpt" in states and "ladder off llama" not in states, states
    assert sum(name.endswith(", memcheck") for name in states) == 4, states


def one_feature():
    """A feature that fails on one model is left off for everything after it."""
    r = Rehearsal("one-feature")
    fault = 'if [ "$DS_CUDA_GRAPH" = 1 ] && [[ "$*" == *llama* ]]; then kill -SEGV $$; fi\n'
    output = r.run(1, "--only", "ladder,checks,speed,ways", fault=fault, tools=("smi",))
    records = r.records()
    assert "signal 11" in records["ladder graph llama-bf16"]["text"], records["ladder graph llama-bf16"]
    assert "ladder graph llama-bf16, each command waited for" in records
    assert records["ladder graph llama-bf16, memcheck"]["text"] == "compute-sanitizer is not here"
    assert records["ladder"]["data"]["environment"]["DS_CUDA_GRAPH"] == "0" and records["ladder"]["text"].startswith("6 of 7")
    assert records["repeats llama-bf16"]["state"] == "ok" and "graph" in output
    assert records["gpt2-micro without graph"]["text"] == "the ladder left it off"
    r = Rehearsal("no-graph")
    r.run(1, "--only", "ladder", "--models", "mlp", PRETEND_GRAPH="command 3 cannot be recorded")
    assert r.records()["ladder graph mlp"]["text"].endswith("no graph: command 3 cannot be recorded"), r.records()
    assert r.states()["ladder running freely mlp"] == "ok" and r.states()["ladder poison mlp"] == "ok", r.states()
    r = Rehearsal("no-speed")
    r.run(0, "--only", "ways")
    assert "there is no run" in r.records()["gpt2-micro without graph"]["text"]


def wrong_numbers():
    """Losses that are not the CPU's, or no numbers, are a failure with both in failures.txt."""
    for loss in ("3", "nan", "cut"):  # off, none, and a log that ends in the middle of a line
        r = Rehearsal(f"wrong-{loss}")
        r.run(1, "--only", "facts,ladder", "--models", "mlp", tools=(), PRETEND_LOSS=loss)
        record = r.records()["ladder off mlp"]
        assert record["state"] == "failed" and "limits" in record["text"], record
        assert "ours [" in r.text("failures.txt") and "0 of 4" in r.records()["ladder"]["text"]


def poor_machine():
    """No PyTorch, no nvidia-smi that answers, no sanitizer, a small GPU: what cannot be is skipped and says why."""
    r = Rehearsal("poor-machine")
    r.run(1, "--only", "facts,speed,torch,sanitizer", SMI_FAILS="1", DS_CUBLASLT="/nowhere/libcublasLt.so",
          tools=("smi",))
    records = r.records()
    assert records["facts PyTorch"]["state"] == records["PyTorch eager gpt2-micro"]["state"] == "skipped"
    assert records["facts libraries"]["state"] == "failed" and "cuBLASLt missing" in records["facts libraries"]["text"]
    assert records["facts nvidia-smi"]["state"] == "failed" and "no answer" in records["facts nvidia-smi"]["text"]
    assert records["memcheck mlp"]["text"] == "compute-sanitizer is not here"
    r = Rehearsal("no-python")
    r.run(0, "--only", "facts", "--models", "mlp", "--python", "/nowhere/python3")
    assert "cannot be started" in r.records()["facts PyTorch"]["text"], r.records()
    r = Rehearsal("small-gpu")
    r.run(0, "--only", "facts,speed", SMI_MEMORY="100")
    assert "the GPU has 0.1" in r.records()["speed gpt2-micro"]["text"]
    assert r.records()["dearest gpt2-micro"]["state"] == "skipped"


def no_gpu():
    """One line and exit code 9; no results folder."""
    r = Rehearsal("no-gpu")
    for options in ({"DS_CUDA_DRIVER": "/nowhere/libcuda.so.1"}, {"DS_FAKE_DEVICES": "0"}):
        output = r.run(9, **options)
        assert len(output.splitlines()) == 1 and "there is no GPU" in output, output
    assert not os.path.exists(r.out)


def budget():
    """A child that hangs is cut by the budget, its children too, and made again by the next call."""
    r = Rehearsal("budget")
    fault = 'if [ ! -e $REHEARSAL/hung ]; then touch $REHEARSAL/hung; (setsid sleep 1000 &); sleep 1000; fi\n'
    began = time.monotonic()
    output = r.run(75, "--only", "ladder", "--budget", "14", fault=fault)
    assert time.monotonic() - began < 60, time.monotonic() - began  # of the 1000 that it would hang
    assert "call again" in output and "NOT AT ITS END" in output, output
    r.run(0, "--only", "ladder", fault=fault)
    assert r.states()["ladder off mlp"] == "ok"


def no_time_for_more():
    """What takes long is not begun where the budget has less, and is all that the next call does."""
    r = Rehearsal("no-time")
    output = r.run(75, "--only", "speed,large", "--budget", "34")
    assert "speed gpt2-milli needs 30 s" in output and r.states()["speed gpt2-micro"] == "ok", output
    calls = len(r.calls())
    r.run(0, "--only", "speed,large", "--budget", "300")
    assert len(r.calls()) == calls + 2 and all("gpt2-milli" in call for call in r.calls()[-2:]), r.calls()
    assert len(r.text("algorithms.txt").split()) == len(r.calls())  # the second call went on with the first one's


def timeout():
    """A child that hangs for longer than its own time is a failure, and the next step is made."""
    r = Rehearsal("timeout")
    fault = 'case "$*" in *mlp*) trap "" TERM; sleep 1000 & wait; sleep 1000;; esac\n'
    r.run(1, "--only", "checks", "--timeout", "3", fault=fault)
    assert "no end after" in r.records()["memory mlp"]["text"], r.records()["memory mlp"]
    assert r.states()["trace llama-bf16"] == "ok"


def killed_child():
    """A child, or its guard, that is killed is a failure; nothing of it stays."""
    r = Rehearsal("killed-child")
    fault = 'case "$*" in *llama*) (sleep 1000 &); kill -9 $PPID; sleep 1000;; *) (sleep 1000 &) ; kill -9 $$;; esac\n'
    r.run(1, "--only", "checks", fault=fault)
    records = r.records()
    assert "signal 9" in records["memory mlp"]["text"] and "guard was killed" in records["trace llama-bf16"]["text"], records


def resume():
    """A round that is killed goes on where it was; what was done is not done again."""
    r = Rehearsal("resume")
    fault = 'if [[ "$*" == *llama* ]] && [ ! -e $REHEARSAL/on ]; then touch $REHEARSAL/hung; sleep 1000; fi\n'
    round = r.start("--only", "ladder", fault=fault)
    r.wait_for(lambda: os.path.exists(f"{r.folder}/hung") and "ladder off mlp" in r.states())  # they run side by side
    os.kill(round.pid, signal.SIGKILL)
    round.communicate()
    r.wait_for(lambda: not r.alive(), 20)  # sooner than any step ends by itself
    shutil.rmtree(glob.glob(f"{r.folder}/gpu-test-*")[0])  # nobody was left to do it
    made, before = r.states(), len(r.calls())
    assert made["ladder off mlp"] == "ok" and "ladder off llama-bf16" not in made, made
    with open(f"{r.out}/results.jsonl", "a") as file:
        file.write('{"step": "half a li')
    open(f"{r.folder}/on", "w").close()
    r.run(0, "--only", "ladder", fault=fault)
    again = [call for call in r.calls()[before:] if "mlp" in call]
    assert len(again) == len([name for name in r.states() if name.startswith("ladder ") and name.endswith(" mlp")]) - 1, again


def worn_out():
    """A step that ended two rounds is not tried a third time."""
    r = Rehearsal("worn-out")
    fault = 'if [[ "$*" == *llama* ]]; then kill -9 $(cat $REHEARSAL/round); sleep 1000; fi\n'
    for _ in range(2):
        round = r.start("--only", "speed,checks", fault=fault)
        with open(f"{r.folder}/round", "w") as file:
            file.write(str(round.pid))
        round.communicate()
        assert round.returncode == -signal.SIGKILL
        r.wait_for(lambda: not r.alive(), 20)  # sooner than any step ends by itself
        for folder in glob.glob(f"{r.folder}/gpu-test-*"):
            shutil.rmtree(folder)
    fault = 'if [[ "$*" == *llama* ]]; then exit 9; fi\n'
    r.run(1, "--only", "speed,checks", fault=fault)
    assert "not tried again" in r.records()["repeats llama-bf16"]["text"], r.records()["repeats llama-bf16"]


def asked_to_end():
    """SIGTERM and SIGINT: what is known is written, the children end, and the code says that there is more to do."""
    for number in (signal.SIGTERM, signal.SIGINT):
        r = Rehearsal(f"asked-{number}")
        round = r.start("--only", "checks", fault="touch $REHEARSAL/hung; trap '' TERM INT; sleep 1000 & sleep 1000; wait\n")
        r.wait_for(lambda: os.path.exists(f"{r.folder}/hung"))
        os.kill(round.pid, number)
        output = round.communicate(timeout=60)[0]
        assert round.returncode == 75 and f"signal {number.value}" in output, (round.returncode, output)
        r.check_bounds(output)


def unwritable():
    """A folder that cannot be: exit code 6 before anything is run. A full disk: the output has what the files have not."""
    r = Rehearsal("unwritable")
    open(r.out, "w").close()
    output = r.start("--only", "checks").communicate()[0]
    assert len(output.splitlines()) == 1 and "cannot be written" in output and not os.path.exists(r.calls_file), output
    r = Rehearsal("full-disk")
    os.makedirs(r.out)
    os.symlink("/dev/full", f"{r.out}/results.jsonl")
    round = r.start("--only", "facts,checks")
    output = round.communicate()[0]
    assert round.returncode == 6 and "No space left" in output and "repeats mlp" in output and len(output) < 12000, output
    assert not r.alive()
    r = Rehearsal("full-later")
    os.makedirs(r.out)
    os.symlink("/dev/full", f"{r.out}/facts.txt")
    round = r.start("--only", "facts")
    output = round.communicate()[0]
    assert round.returncode == 6 and "facts.txt: No space left" in output and "at its end" in output, output


def two_at_once():
    """Two rounds do not write to one folder."""
    r = Rehearsal("two-at-once")
    round = r.start("--only", "checks", fault="touch $REHEARSAL/hung; sleep 1000\n")
    r.wait_for(lambda: os.path.exists(f"{r.folder}/hung"))
    second = r.start("--only", "checks")
    output = second.communicate()[0]
    assert second.returncode == 2 and "another round" in output, output
    round.terminate()
    round.communicate()


def bounds():
    """Whatever there is to tell, all sections fit, and the last lines of all are told."""
    sys.path.insert(0, PACK)
    import io
    import types

    import gpu_results
    import gpu_summary
    assert gpu_results.DETAILS + sum(most for _, most in gpu_summary.SECTIONS) <= gpu_results.PRINTED
    text = "x" * 300
    records = {f"{kind}{number}": {"state": state, "text": text, "data": {
        "commands": [[text, 1, 1, 1]] * 20, "lines": [{"figure": text, "text": text}] * 50}}
        for kind, state in (("speed ", "ok"), ("calibrate ", "failed"), ("dearest ", "ok")) for number in range(40)}
    printer, output = gpu_results.Printer(), io.StringIO()
    with contextlib.redirect_stdout(output):
        for _ in range(500):
            printer.detail(text)
        results = types.SimpleNamespace(records=records, identity={"gpu": text, "pack": text})
        gpu_summary.summarise(results, printer, "no reason")
    lines = output.getvalue().splitlines()
    assert len(output.getvalue()) <= gpu_results.PRINTED and "80 ok, 40 failed" in lines[-1], lines[-3:]
    assert "Failed" in lines and max(map(len, lines)) <= gpu_results.LINE


def mistakes():
    """A step that goes wrong in the round itself is a failure of that step; many long ones stay within the output."""
    r = Rehearsal("mistakes")
    os.rename(f"{PACK}/gpt2-micro.plan.json", f"{PACK}/plan.away")
    try:
        output = r.run(1, "--only", "facts,speed")
    finally:
        os.rename(f"{PACK}/plan.away", f"{PACK}/gpt2-micro.plan.json")
    assert "FileNotFoundError" in r.records()["speed gpt2-micro"]["text"], output
    r = Rehearsal("long")
    fault = "head -c 30000 /dev/zero | tr '\\0' x >&2; echo >&2; exit 9\n"
    output = r.run(1, fault=fault)
    assert "more: results.jsonl" in output or "more lines" in output, output
    assert "calibrate launches" in r.states()


if __name__ == "__main__":
    prepare()
    for scenario in sys.argv[4:]:
        globals()[scenario]()
        print(f"{scenario} holds", flush=True)
