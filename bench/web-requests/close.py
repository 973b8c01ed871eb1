#!/usr/bin/env python3
"""How well the time of a web request closes: what clients measured, and what the tiers add up to, by users.

    close.py [--whyso PATH] [--rounds N] [--seconds S] [--users 1,2,4] [--write]

`whyso run --url` loads the sample application and records Apache, PHP-FPM and MariaDB meanwhile, so that both numbers are of the same window.
One JSON comes on standard output, as bench/tables.py takes it. --write keeps it as results.json and writes the README's table.
"""

import argparse
import contextlib
import datetime
import json
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

FOLDER = pathlib.Path(__file__).resolve().parent
REPOSITORY = FOLDER.parent.parent
PHP = {"fpm": "PHP-FPM", "mod": "within Apache"}
WARMUP_S = 3
# The most that the tiers may differ from what the clients measured.
DIFFERENCE_MAX = 0.05


def run(command: list[str], bound_s: float) -> str:
    ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=bound_s, check=False)
    if ended.returncode != 0:
        sys.exit(f"{' '.join(command)} failed: {ended.stderr.strip()[-800:]}")
    return ended.stdout


@contextlib.contextmanager
def application(whyso: str, php: str):
    """Yields the address of its page, and the numbers of its programs' first processes."""
    workers = ["--workers", "16"] if php == "fpm" else []
    printed = run([whyso, "server", "app", "start", "--php", php, "--max-clients", "80", *workers], 600)
    folder = re.search(r"^ *folder *(\S+)", printed, re.MULTILINE)[1]
    try:
        processes = re.search(r"^ *processes(.*)$", printed, re.MULTILINE)[1]
        numbers = [re.search(rf"{name} (\d+)", processes) for name in ("httpd", "php-fpm", "mariadbd")]
        yield printed.splitlines()[0].rstrip("/") + "/event.php?id=7", [found[1] for found in numbers if found]
    finally:
        subprocess.run([whyso, "server", "app", "stop", folder], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, timeout=120, check=False)


def closed(asked: argparse.Namespace, url: str, processes: list[str]) -> dict[int, tuple[float, float]]:
    """By users: the mean time of a page in ms, as clients measured it and as the tiers add up to."""
    watched = [option for number in processes for option in ("--process", number)]
    users = ",".join(str(number) for number in asked.users)
    bound_s = 60 + len(asked.users) * (WARMUP_S + asked.seconds) * 2
    with tempfile.TemporaryDirectory(prefix="whyso-close-") as folder:
        load = [asked.whyso, "run", "--url", url, *watched, "--users", users, "--warmup", str(WARMUP_S), "--seconds", str(asked.seconds)]
        recorded = json.loads(run([*load, "--out", folder, "--json"], bound_s))
        found = {}
        for level in recorded["levels"]:
            why = json.loads(run([asked.whyso, "why", recorded["path"], "--users", str(level["users"]), "--json"], 60))
            first = next(tier for tier in why["tiers"] if tier["is_first"])
            found[level["users"]] = (level["latency_ms"]["mean"], first["mean_ms"])
        return found


def main() -> None:
    options = argparse.ArgumentParser(usage=__doc__)
    options.add_argument("--whyso", default="whyso")
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--seconds", type=int, default=8)
    options.add_argument("--users", default="1,2,4,8,16,32,64")
    options.add_argument("--entered", default="not recorded", help="commit by which the figures enter the repository")
    options.add_argument("--machine", default="not recorded")
    options.add_argument("--write", action="store_true")
    asked = options.parse_args()
    asked.users = [int(number) for number in asked.users.split(",")]
    rows = []
    for php, name in PHP.items():
        with application(asked.whyso, php) as (url, processes):
            rounds = [closed(asked, url, processes) for _ in range(asked.rounds)]
        for users in asked.users:
            pairs = [of[users] for of in rounds]
            ratios = [tiers / clients for clients, tiers in pairs]
            middle = statistics.median(ratios)
            verdict = "" if abs(middle - 1) <= DIFFERENCE_MAX else " ✗"
            clients, tiers = (f"{statistics.median(pair[place] for pair in pairs):.2f} ms" for place in (0, 1))
            rows.append([name, str(users), clients, tiers, f"**{middle:.3f}** ({min(ratios):.3f} to {max(ratios):.3f}){verdict}"])
            print(*rows[-1], sep="  ", file=sys.stderr, flush=True)
    commit = subprocess.run(["git", "describe", "--always", "--exclude=*"], cwd=REPOSITORY, capture_output=True, text=True, check=False).stdout.strip()
    table = {
        "date": datetime.date.today().isoformat(), "machine": asked.machine, "commit": commit or "not recorded", "entered": asked.entered,
        "columns": ["PHP", "users", "clients measured", "the tiers add up to", "ratio"],
        "align": ["left", "right", "right", "right", "left"], "rows": rows,
    }
    results = {"tables": {"closing": table}}
    if asked.write:
        kept = FOLDER / "results.json"
        before = json.loads(kept.read_text()) if kept.exists() else {"tables": {}}
        kept.write_text(json.dumps({"tables": {**before["tables"], **results["tables"]}}, indent=2, ensure_ascii=False) + "\n")
        subprocess.run([REPOSITORY / "bench" / "tables.py", FOLDER.name], check=True)
    print(json.dumps(results, indent=2, ensure_ascii=False))


main()
