#!/usr/bin/env python3
"""Makes one recording of a set-up, unless it is there, and asks which causes are named in it. measure.py starts it for each run.

It prints one JSON object: throughput, and what each view names. The recording lies in FOLDER, with recording.json next to it once it is complete.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import Iterator

from generate import HIDING_VIEWS, setups
from limits import limited
from mixtures import mixtures
from setups import Run

RUN_SECONDS_MAX = 150
# How long a program may take to put everything back after an interrupt.
ENDING_SECONDS_MAX = 40
ERROR_CHARACTERS_MAX = 400
VIEWS = {"full": "", **HIDING_VIEWS}


class Failed(Exception):
    """A run that has no result; the text says why."""


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("setup", help="name of the set-up, as measure.py prints it")
    parser.add_argument("run", help="planted, without, both, without-first, without-second, or live-VIEW")
    parser.add_argument("folder", type=Path, help="folder of the recording")
    parser.add_argument("--whyso", default="whyso", help="the program [default: the one on the PATH]")
    parser.add_argument("--view", action="append", default=[], choices=VIEWS, help="ask for causes in this view")
    parser.add_argument("--again", action="store_true", help="record although a recording is there")
    return parser.parse_args()


def find_run(name: str, which: str) -> tuple[str, Run]:
    """Returns the build and the run of a set-up or a mixture."""
    for setup in [*setups(), *mixtures()]:
        if setup.name == name:
            runs = setup.runs
            if which.startswith("live-"):
                runs = {f"live-{view}": run for view, run in setup.live_runs.items()}
            return setup.build, runs[which]
    raise Failed(f"no set-up is called {name}")


def command(build: str, run: Run) -> list[str]:
    """Returns the arguments of `whyso run` that decide what is measured, the file of statements left out."""
    typed = ["--server", build, "--users", f"1,{run.users}", "--tables", str(run.tables), "--rows", str(run.rows)]
    typed += ["--seconds", "3", "--warmup", "1", "--no-repeat"]
    if run.stacks:
        typed.append("--stacks" if run.stacks == "full" else f"--stacks={run.stacks}")
    if run.own_cpus:
        typed += ["--server-cpus", "0", "--client-cpus", "1"]
    for knob, value in run.settings.items():
        typed += ["--set", f"{knob}={value}"]
    return [*typed, *run.flags]


def recipe(build: str, run: Run) -> str:
    """Returns a short text that differs where two recordings are not of the same set-up."""
    surroundings = [run.writes_per_s, run.reads_per_s, run.quota_cpus, run.neighbours]
    text = json.dumps([command(build, run), run.sql, surroundings])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@contextmanager
def neighbours(count: int) -> Iterator[None]:
    """Keeps the server's CPU busy with this number of programs."""
    spin = ["taskset", "-c", "0", sys.executable, "-c", "while True: pass"]
    started = [subprocess.Popen(spin) for _ in range(count)]
    try:
        yield
    finally:
        for one in started:
            one.kill()
            one.wait()


def output(typed: list[str], enter=None, exits_allowed: tuple[int, ...] = (0,)) -> str:
    """Returns what the program prints. Raises Failed where it ends otherwise or takes too long; it then has time to put everything back."""
    program = subprocess.Popen(typed, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=enter)
    try:
        printed, complaint = program.communicate(timeout=RUN_SECONDS_MAX)
    except (subprocess.TimeoutExpired, KeyboardInterrupt) as error:
        # Ctrl-C reaches the program, too.
        if isinstance(error, subprocess.TimeoutExpired):
            program.send_signal(signal.SIGINT)
        try:
            program.communicate(timeout=ENDING_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            program.kill()
            program.communicate()
        if isinstance(error, KeyboardInterrupt):
            raise
        raise Failed(f"{Path(typed[0]).name} {typed[1]} took more than {RUN_SECONDS_MAX} s") from error
    if program.returncode not in exits_allowed or not printed:
        raise Failed(complaint.strip()[-ERROR_CHARACTERS_MAX:] or f"{typed[1]} ended with {program.returncode}")
    return printed


def generator_cpu(level: dict) -> float:
    """Returns how busy the load generator's loops were, by their CPU time: 1 is a full CPU for each."""
    loops = max(level["engine"]["loops"], 1)
    return level["client"]["cpu_s"] / max(level["seconds"], 1e-9) / loops


def record(whyso: str, build: str, run: Run, folder: Path) -> dict:
    """Records from scratch; returns what recording.json holds, too."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    file = folder / "workload.sql"
    file.write_text(run.sql)
    typed = [whyso, "run", str(file), *command(build, run), "--json", "--out", str(folder)]
    with limited(folder, run.writes_per_s, run.reads_per_s, run.quota_cpus) as enter, neighbours(run.neighbours):
        # A server that answers nothing for a while makes the run fail, and is what is to be explained.
        level = json.loads(output(typed, enter, exits_allowed=(0, 1)))["levels"][-1]
    recordings = [path.name for path in folder.iterdir() if path.is_dir()]
    recorded = {
        "recipe": recipe(build, run),
        "recording": recordings[0],
        "users": run.users,
        "per_s": round(level["transactions_per_s"], 1),
        "generator_cpu": round(generator_cpu(level), 2),
    }
    (folder / "recording.json").write_text(json.dumps(recorded, indent=1) + "\n")
    return recorded


def stored_recording(build: str, run: Run, folder: Path) -> dict | None:
    """Returns the recording of this set-up that is there already and complete."""
    try:
        recorded = json.loads((folder / "recording.json").read_text())
    except (OSError, json.JSONDecodeError):
        return None
    return recorded if recorded.get("recipe") == recipe(build, run) else None


def named(whyso: str, recording: Path, users: int, view: str) -> dict:
    """Returns what `whyso why` names in a view: suspects with their shares, what is possible, and the limit's id where there is one."""
    typed = [whyso, "why", str(recording), "--users", str(users), "--json"]
    if VIEWS[view]:
        typed += ["--without", VIEWS[view]]
    answer = json.loads(output(typed))
    found = {
        "suspects": [[suspect["id"], round(suspect["share"], 3)] for suspect in answer["suspects"]],
        "possible": [suspect["id"] for suspect in answer["possible"]],
        "gains": {suspect["id"]: [round(bound, 2) for bound in suspect["predicted_gain"].values()] for suspect in answer["suspects"] if suspect["predicted_gain"]},
    }
    limit = answer.get("limit")
    if limit:
        found["limit"] = limit["id"] if isinstance(limit, dict) else limit
    return found


def attempt(options: argparse.Namespace) -> dict:
    build, run = find_run(options.setup, options.run)
    began = time.monotonic()
    recorded = None if options.again else stored_recording(build, run, options.folder)
    is_new = recorded is None
    recorded = recorded or record(options.whyso, build, run, options.folder)
    recording = options.folder / recorded["recording"]
    result = {name: recorded[name] for name in ("per_s", "generator_cpu")}
    result["named"] = {view: named(options.whyso, recording, recorded["users"], view) for view in options.view}
    return {**result, "is_new": is_new, "seconds": round(time.monotonic() - began, 1)}


def main() -> None:
    try:
        print(json.dumps(attempt(arguments())))
    except (Failed, OSError, KeyError, IndexError, json.JSONDecodeError) as error:
        sys.exit(f"{type(error).__name__}: {error}")
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
