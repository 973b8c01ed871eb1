#!/usr/bin/env python3
"""Plants causes on real servers and prints which cause whyso names: see README.md."""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from plants import PLANTS, Plant
from limits import limited

RUNS = 2
RUN_SECONDS_MAX = 120


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--whyso", default="whyso", help="the program [default: the one on the PATH]")
    parser.add_argument("--out", help="folder that keeps the recordings [default: a temporary one]")
    parser.add_argument("causes", nargs="*", help="plant only these [default: all]")
    given = parser.parse_args()
    known = {plant.cause for plant in PLANTS}
    if wrong := [cause for cause in given.causes if cause not in known]:
        parser.error(f"no set-up plants {', '.join(wrong)}; there are {', '.join(sorted(known))}")
    return given


def command(whyso: str, plant: Plant, folder: Path) -> list[str]:
    workload = plant.workload
    if " " in workload:
        workload = str(folder / f"{plant.cause}.sql")
        Path(workload).write_text(plant.workload)
    typed = [whyso, "run", workload, "--users", plant.users, "--tables", str(plant.tables), "--rows", str(plant.rows)]
    typed += ["--seconds", "3", "--warmup", "1", "--no-repeat", "--json", "--out", str(folder)]
    if plant.cpus:
        typed += ["--server-cpus", "0", "--client-cpus", "1"]
    if plant.stacks:
        typed.append("--stacks")
    for setting in plant.settings:
        typed += ["--set", setting]
    return typed + plant.flags


def explanation(whyso: str, plant: Plant, folder: Path) -> dict:
    """One run of this set-up; the suspects at its last level, and what is possible there."""
    beside = None
    if plant.beside:
        beside = subprocess.Popen(["taskset", "-c", "0", sys.executable, "-c", plant.beside])
    try:
        before = set(folder.iterdir())
        with limited(folder, writes_per_s=plant.writes_per_second) as enter:
            done = subprocess.run(
                command(whyso, plant, folder),
                capture_output=True,
                text=True,
                timeout=RUN_SECONDS_MAX,
                preexec_fn=enter,
            )
    finally:
        if beside:
            beside.kill()
            beside.wait()
    made = [path for path in set(folder.iterdir()) - before if path.is_dir()]
    if done.returncode != 0 or not made:
        raise RuntimeError(f"whyso run failed: {done.stderr.strip()[-300:]}")
    users = plant.users.split(",")[-1]
    why = [whyso, "why", str(made[0]), "--users", users, "--json"]
    answer = subprocess.run(why, capture_output=True, text=True, timeout=RUN_SECONDS_MAX)
    if answer.returncode != 0:
        raise RuntimeError(f"whyso why failed: {answer.stderr.strip()[-300:]}")
    return json.loads(answer.stdout)


def named(found: dict, at: int) -> str:
    suspects = found["suspects"]
    return f"{suspects[at]['id']} {suspects[at]['share']:.0%}" if len(suspects) > at else "–"


def is_right(found: dict, plant: Plant) -> bool:
    """The planted cause is first; one that nothing measures is possible, and nobody holds its time."""
    if not found["suspects"]:
        return False
    first = found["suspects"][0]["id"]
    if plant.only_possible:
        return first == "unknown" and plant.cause in [one["id"] for one in found["possible"]]
    return first == plant.cause


def listed(found: dict) -> str:
    return ", ".join(one["id"] for one in found["possible"]) or "–"


def main() -> None:
    given = arguments()
    chosen = [plant for plant in PLANTS if not given.causes or plant.cause in given.causes]
    right = 0
    print("| planted | named first, its share | second | possible | first, again | second | possible | |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |", flush=True)
    with tempfile.TemporaryDirectory() as temporary:
        for plant in chosen:
            folder = Path(given.out or temporary) / plant.cause
            os.makedirs(folder, exist_ok=True)
            cells, hits = [], 0
            for _ in range(RUNS):
                try:
                    found = explanation(given.whyso, plant, folder)
                except (OSError, RuntimeError, subprocess.TimeoutExpired) as error:
                    print(f"{plant.cause}: {error}", file=sys.stderr)
                    found = {"suspects": [], "possible": []}
                hits += is_right(found, plant)
                cells += [named(found, 0), named(found, 1), listed(found)]
            right += hits == RUNS
            verdict = "right" if hits == RUNS else "once right" if hits else "wrong"
            print(f"| {plant.cause} | {' | '.join(cells)} | {verdict} |", flush=True)
    print(f"\nRight both times: {right} of {len(chosen)}.")


if __name__ == "__main__":
    main()
