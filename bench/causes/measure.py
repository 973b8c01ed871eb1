#!/usr/bin/env python3
"""Plants causes on real servers and records which cause whyso names: see README.md.

    bench/causes/measure.py tune|sealed|quick|all [--family NAME …] [--keep DIR]
    bench/causes/measure.py tune --effect            only what each plant costs; whyso is not asked for causes
"""

import argparse
import datetime
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from generate import Setup, quick, setups
from limits import limited
from setups import Run

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results.json"
SEALED_LOG = HERE / "sealed.log"
RUN_SECONDS_MAX = 150
QUICK_COUNT = 24


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["tune", "sealed", "quick", "all"])
    parser.add_argument("--whyso", default="whyso", help="the program [default: the one on the PATH]")
    parser.add_argument("--family", action="append", help="only these families")
    parser.add_argument("--keep", help="folder that keeps the recordings [default: they are removed]")
    parser.add_argument("--effect", action="store_true", help="only measure what each plant costs")
    parser.add_argument("--again", action="store_true", help="also run what has a result of these rules")
    return parser.parse_args()


def rules() -> str:
    """Returns the commit that last changed what names causes."""
    paths = ["crates/explain", "crates/lab", "crates/trace", "crates/watch"]
    log = ["git", "-C", str(HERE), "log", "-1", "--format=%h", "--", *(f":/{path}" for path in paths)]
    return subprocess.run(log, capture_output=True, text=True, check=True).stdout.strip()


def command(whyso: str, setup: Setup, run: Run, folder: Path) -> list[str]:
    file = folder / "workload.sql"
    file.write_text(run.sql)
    typed = [whyso, "run", str(file), "--server", setup.build, "--users", f"1,{run.users}"]
    typed += ["--tables", str(run.tables), "--rows", str(run.rows), "--seconds", "3", "--warmup", "1", "--no-repeat"]
    typed += ["--stacks", "--json", "--out", str(folder)]
    if run.own_cpus:
        typed += ["--server-cpus", "0", "--client-cpus", "1"]
    for knob, value in run.settings.items():
        typed += ["--set", f"{knob}={value}"]
    return [*typed, *run.flags]


def measure(whyso: str, setup: Setup, run: Run, folder: Path) -> tuple[Path, dict]:
    """Runs one half of a set-up; returns its recording and the second level's result."""
    folder.mkdir(parents=True)
    spin = ["taskset", "-c", "0", sys.executable, "-c", "while True: pass"]
    neighbours = [subprocess.Popen(spin) for _ in range(run.neighbours)]
    try:
        with limited(folder, run.writes_per_s, run.reads_per_s, run.quota_cpus) as enter:
            done = subprocess.run(
                command(whyso, setup, run, folder), capture_output=True, text=True, timeout=RUN_SECONDS_MAX, preexec_fn=enter
            )
    finally:
        for neighbour in neighbours:
            neighbour.kill()
            neighbour.wait()
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip()[-400:])
    recordings = [path for path in folder.iterdir() if path.is_dir()]
    return recordings[0], json.loads(done.stdout)["levels"][-1]


def named(whyso: str, recording: Path, users: int) -> dict:
    typed = [whyso, "why", str(recording), "--users", str(users), "--json"]
    done = subprocess.run(typed, capture_output=True, text=True, timeout=RUN_SECONDS_MAX)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip()[-400:])
    answer = json.loads(done.stdout)
    return {
        "suspects": [[one["id"], round(one["share"], 3)] for one in answer["suspects"]],
        "possible": [one["id"] for one in answer["possible"]],
    }


def half(whyso: str, setup: Setup, run: Run, folder: Path, effect: bool) -> dict:
    recording, level = measure(whyso, setup, run, folder)
    result = {"per_s": round(level["transactions_per_s"], 1)}
    if not effect:
        result["named"] = named(whyso, recording, run.users)
    return result


def try_setup(whyso: str, setup: Setup, folder: Path, effect: bool) -> dict:
    began = time.monotonic()
    result = {"cause": setup.family.cause, "rules": rules(), "date": datetime.date.today().isoformat()}
    try:
        result["planted"] = half(whyso, setup, setup.planted, folder / "planted", effect)
        result["without"] = half(whyso, setup, setup.without, folder / "without", effect)
        result["true_gain"] = round(result["without"]["per_s"] / max(result["planted"]["per_s"], 1e-9), 2)
    except (OSError, RuntimeError, KeyError, IndexError, subprocess.TimeoutExpired, json.JSONDecodeError) as error:
        result["failed"] = str(error)[-400:]
    result["seconds"] = round(time.monotonic() - began)
    return result


def load() -> dict:
    return json.loads(RESULTS.read_text()) if RESULTS.exists() else {}


def store(results: dict) -> None:
    text = json.dumps(dict(sorted(results.items())), indent=1)
    temporary = RESULTS.with_suffix(".new")
    temporary.write_text(text + "\n")
    os.replace(temporary, RESULTS)


def chosen(given: argparse.Namespace) -> list[Setup]:
    if given.part == "quick":
        part = quick(QUICK_COUNT)
    elif given.part == "all":
        part = setups()
    else:
        part = [setup for setup in setups() if setup.is_sealed == (given.part == "sealed")]
    return [setup for setup in part if not given.family or setup.family.name in given.family]


def log_opening(now: str, part: list[Setup]) -> None:
    """Notes that causes were asked for in the sealed part, before it is done: an opening that is broken off counts, too."""
    count = sum(setup.is_sealed for setup in part)
    if count:
        with SEALED_LOG.open("a") as log:
            log.write(f"{datetime.date.today().isoformat()} rules {now}: {count} sealed set-ups\n")


def main() -> None:
    given = arguments()
    part, now, results = chosen(given), rules(), load()
    if not given.effect:
        log_opening(now, part)
    if given.effect:
        results = {}
    with tempfile.TemporaryDirectory(dir=given.keep) as temporary:
        for at, setup in enumerate(part, 1):
            old = results.get(setup.name, {})
            if old.get("rules") == now and "failed" not in old and not given.again:
                continue
            result = try_setup(given.whyso, setup, Path(given.keep or temporary) / setup.name, given.effect)
            shown = result.get("failed") or f"gain {result['true_gain']}, {result['planted']['per_s']} per second"
            if not given.effect and "failed" not in result:
                suspects = result["planted"]["named"]["suspects"]
                shown += ", named " + ", ".join(f"{name} {share:.0%}" for name, share in suspects[:3])
                results[setup.name] = result
                store(results)
            print(f"{at}/{len(part)} {setup.name}: {shown} ({result['seconds']} s)", flush=True)


if __name__ == "__main__":
    main()
