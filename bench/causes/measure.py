#!/usr/bin/env python3
"""Plants causes on real servers and records which cause whyso names: see README.md.

    bench/causes/measure.py tune|sealed|quick|all [--family NAME …] [--keep DIR]
    bench/causes/measure.py tune --effect            only what each plant costs; whyso is not asked for causes
    bench/causes/measure.py live [--keep DIR]        runs without a source, against runs whose source is hidden

Ctrl-C ends it after what is being done is put back; the same command goes on from there. A recording that --keep holds is not made again: its causes
are named by the rules of now.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import results
from attempt import VIEWS, stored_recording
from generate import HIDING_VIEWS, SEED, Setup, in_turn, setups, to_tune_on
from mixtures import Mixture, mixtures
from scores import summary
from setups import Run

HERE = Path(__file__).resolve().parent
QUICK_MINUTES = 25
LIVE_EACH = 4
# Builds whose Performance Schema is on unless it is turned off.
BUILDS_WITH_PFS = {"mysql-sid"}
# What a run takes until one was measured.
RECORDING_SECONDS = 20.0
NAMING_SECONDS = 2.0
ENDING_SECONDS_MAX = 60


class Failed(Exception):
    """A run that has no result; the text says why."""


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["tune", "sealed", "quick", "all", "live"])
    parser.add_argument("--whyso", default="whyso", help="the program [default: the one on the PATH]")
    parser.add_argument("--family", action="append", help="only set-ups of these families; may be repeated")
    parser.add_argument("--kind", choices=["one", "two"], help="only set-ups that plant one cause, or two [default: both]")
    parser.add_argument("--keep", type=Path, help="folder that keeps the recordings [default: they are removed]")
    parser.add_argument("--effect", action="store_true", help="only measure what each plant costs")
    parser.add_argument("--again", action="store_true", help="also record what is stored, and name what has a result of these rules")
    parser.add_argument("--prefix", default="", metavar="CMD", help='a command before each run, such as "nice -n -5"')
    parser.add_argument("--minutes", type=float, help=f"begin nothing that would end later [default for quick: {QUICK_MINUTES}]")
    options = parser.parse_args()
    if options.part == "quick" and options.minutes is None:
        options.minutes = QUICK_MINUTES
    return options


def chosen(options: argparse.Namespace) -> list[Setup | Mixture]:
    if options.part == "quick":
        part = to_tune_on()
    elif options.part == "all":
        part = [*in_turn(setups()), *mixtures()]
    else:
        is_sealed = options.part == "sealed"
        part = [setup for setup in [*in_turn(setups()), *mixtures()] if setup.is_sealed == is_sealed]
    if options.kind:
        part = [setup for setup in part if len(setup.families) == (1 if options.kind == "one" else 2)]
    return [setup for setup in part if not options.family or all(family.name in options.family for family in setup.families)]


class Pace:
    """How long a run takes, and when everything will have ended."""

    def __init__(self, minutes: float | None):
        self.began = time.monotonic()
        self.seconds_max = None if minutes is None else 60 * minutes
        self.durations_s: dict[bool, list[float]] = {True: [], False: []}

    def enter(self, is_new: bool, seconds: float) -> None:
        self.durations_s[is_new].append(seconds)

    def each(self, is_new: bool) -> float:
        durations_s = self.durations_s[is_new]
        return sum(durations_s) / len(durations_s) if durations_s else RECORDING_SECONDS if is_new else NAMING_SECONDS

    def allows(self, seconds: float) -> bool:
        return self.seconds_max is None or time.monotonic() - self.began + seconds <= self.seconds_max


class Runner:
    """Starts attempts, one at a time."""

    def __init__(self, options: argparse.Namespace, temporary: Path):
        self.options = options
        self.place = options.keep or temporary
        self.pace = Pace(options.minutes)

    def folder(self, setup: Setup | Mixture, which: str) -> Path:
        return self.place / setup.name / which

    def is_stored(self, setup: Setup | Mixture, which: str, run: Run) -> bool:
        return not self.options.again and stored_recording(setup.build, run, self.folder(setup, which)) is not None

    def seconds(self, setup: Setup | Mixture, runs: dict[str, Run]) -> float:
        """Returns an estimate for all runs of a set-up."""
        return sum(self.pace.each(not self.is_stored(setup, which, run)) for which, run in runs.items())

    def run(self, setup: Setup | Mixture, which: str, views: list[str]) -> dict:
        """Returns what attempt.py prints. Raises Failed."""
        typed = [*shlex.split(self.options.prefix), sys.executable, str(HERE / "attempt.py"), setup.name, which]
        typed += [str(self.folder(setup, which)), "--whyso", self.options.whyso]
        typed += [f"--view={view}" for view in views] + ["--again"] * self.options.again
        began = time.monotonic()
        program = subprocess.Popen(typed, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
        try:
            printed, complaint = program.communicate()
        except KeyboardInterrupt:
            print("waiting for the run to put everything back", file=sys.stderr)
            os.killpg(program.pid, signal.SIGINT)
            program.communicate(timeout=ENDING_SECONDS_MAX)
            raise
        if program.returncode != 0:
            raise Failed(complaint.strip() or f"attempt.py ended with {program.returncode}")
        result = json.loads(printed)
        # What waits for the prefix counts: the rest will wait as long.
        self.pace.enter(result.pop("is_new"), time.monotonic() - began)
        del result["seconds"]
        return result

    def all_runs(self, setup: Setup | Mixture, views: list[str]) -> dict:
        """Returns the results of each run of a set-up; of one that failed, why."""
        result: dict = {}
        for which in setup.runs:
            try:
                result[which] = self.run(setup, which, views)
            except Failed as error:
                result["failed"] = f"{which}: {error}"
                break
        if not self.options.keep:
            shutil.rmtree(self.place / setup.name, ignore_errors=True)
        return result


def gain(result: dict, planted: str, without: str) -> float:
    return round(result[without]["per_s"] / max(result[planted]["per_s"], 1e-9), 2)


def finished(setup: Setup | Mixture, result: dict, now: str) -> dict:
    """Returns the result with what it is of, and what the causes cost in truth."""
    causes = [family.cause for family in setup.families]
    dated = {"rules": now, "date": results.today(), **result}
    if len(causes) == 1:
        dated["cause"] = causes[0]
        if "failed" not in result:
            dated["true_gain"] = gain(result, "planted", "without")
    else:
        dated["causes"] = causes
        if "failed" not in result:
            dated["true_gains"] = [gain(result, "both", "without-first"), gain(result, "both", "without-second")]
    return dated


def described(result: dict) -> str:
    if "failed" in result:
        return f"failed: {result['failed']}"
    planted = result.get("planted") or result["both"]
    text = f"gain {result.get('true_gain', result.get('true_gains'))}, {planted['per_s']} per second"
    if planted["named"]:
        suspects = planted["named"]["full"]["suspects"][:3]
        text += ", named " + (", ".join(f"{name} {share:.0%}" for name, share in suspects) or "nothing")
    return text


def remaining(runner: Runner, left: list[Setup | Mixture]) -> str:
    minutes = sum(runner.seconds(setup, setup.runs) for setup in left) / 60
    return f"about {minutes:.0f} min left" if left else "done"


def measure(options: argparse.Namespace, runner: Runner) -> None:
    now, measured = results.rules(), results.load(results.RESULTS)

    def is_done(setup: Setup | Mixture) -> bool:
        old = measured.get(setup.name, {})
        return not options.effect and not options.again and old.get("rules") == now and "failed" not in old

    part = chosen(options)
    todo = [setup for setup in part if not is_done(setup)]
    print(f"{len(part)} set-ups, of which {len(part) - len(todo)} have a result of the rules {now}; {remaining(runner, todo)}", flush=True)
    sealed_count = sum(setup.is_sealed for setup in todo)
    if sealed_count and not options.effect:
        results.log_opening(now, sealed_count)
    for at, setup in enumerate(todo):
        if not runner.pace.allows(runner.seconds(setup, setup.runs)):
            print(f"not measured, for {options.minutes:g} min do not suffice: {len(todo) - at} set-ups")
            break
        result = finished(setup, runner.all_runs(setup, [] if options.effect else list(VIEWS)), now)
        if not options.effect:
            measured[setup.name] = result
            results.store(results.RESULTS, measured)
        print(f"{at + 1}/{len(todo)} {setup.name}: {described(result)} ({remaining(runner, todo[at + 1:])})", flush=True)
    if sealed_count and not options.effect:
        of_part = [measured.get(setup.name, {}) for setup in part if setup.is_sealed]
        results.log_score(summary([result for result in of_part if result.get("rules") == now]))


def drawn_for_live() -> list[tuple[str, Setup]]:
    """Returns views that hide a source, each with set-ups that run without this source, too."""
    draw = random.Random(SEED)
    tune = to_tune_on()
    drawn = []
    for view in HIDING_VIEWS:
        has_source = [one for one in tune if view != "without-pfs" or one.build in BUILDS_WITH_PFS]
        drawn += [(view, setup) for setup in draw.sample(has_source, LIVE_EACH)]
    return drawn


def live(options: argparse.Namespace, runner: Runner) -> None:
    """Compares what a run without a source names with what is named where the source is hidden."""
    now, measured = results.rules(), results.load(results.LIVE)
    todo = [(view, setup) for view, setup in drawn_for_live() if not options.family or setup.family.name in options.family]
    for at, (view, setup) in enumerate(todo, 1):
        old = measured.get(f"{setup.name} {view}", {})
        if old.get("rules") == now and "failed" not in old and not options.again:
            continue
        runs = {"planted": setup.planted, f"live-{view}": setup.live_runs[view]}
        if not runner.pace.allows(runner.seconds(setup, runs)):
            print(f"not measured, for {options.minutes:g} min do not suffice: {len(todo) - at + 1} set-ups")
            break
        result = {"rules": now, "date": results.today(), "cause": setup.family.cause, "view": view}
        try:
            result["hidden"] = runner.run(setup, "planted", [view])
            result["live"] = runner.run(setup, f"live-{view}", ["full"])
        except Failed as error:
            result["failed"] = str(error)
        if not options.keep:
            shutil.rmtree(runner.place / setup.name, ignore_errors=True)
        measured[f"{setup.name} {view}"] = result
        results.store(results.LIVE, measured)
        print(f"{at}/{len(todo)} {setup.name} {view}: {result.get('failed') or described_live(result)}", flush=True)


def described_live(result: dict) -> str:
    sides = ((result["live"], "full"), (result["hidden"], result["view"]))
    firsts = [(side["named"][view]["suspects"] or [["nothing", 0]])[0][0] for side, view in sides]
    return f"live {firsts[0]}, hidden {firsts[1]}"


def main() -> None:
    options = arguments()
    # Also where a shell that runs this in the background ignores them.
    for ending in (signal.SIGINT, signal.SIGTERM):
        signal.signal(ending, signal.default_int_handler)
    with tempfile.TemporaryDirectory() as temporary:
        runner = Runner(options, Path(temporary))
        try:
            live(options, runner) if options.part == "live" else measure(options, runner)
        except KeyboardInterrupt:
            sys.exit("ended; the same command goes on from here")


if __name__ == "__main__":
    main()
