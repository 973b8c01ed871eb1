#!/usr/bin/env python3
"""Does a search among settings find the one that was planted?

    bench/proof/bisects.py run [--whyso PROGRAM] [--minutes N]   # appends to bisects.jsonl, and continues where it stopped
    bench/proof/bisects.py table                                 # BISECTS.md, from bisects.jsonl

Two runs of one build differ in twelve settings that change nothing and in one that costs throughput. `whyso bisect` gets both recordings, and nothing else.
"""

import argparse
import json
import os
import subprocess
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "bisects.jsonl"
TABLE = HERE / "BISECTS.md"
# Settings that the loads below do not depend on.
HARMLESS = {
    "wait_timeout": "28000",
    "interactive_timeout": "28100",
    "net_read_timeout": "31",
    "net_write_timeout": "61",
    "lock_wait_timeout": "40000",
    "innodb_lock_wait_timeout": "49",
    "max_connect_errors": "150",
    "group_concat_max_len": "2000",
    "connect_timeout": "11",
    "max_prepared_stmt_count": "16000",
    "net_retry_count": "11",
    "innodb_stats_persistent_sample_pages": "21",
}
# Build, workload, settings of both runs, the setting, its value in the faster run and in the slower one. Each costs a fifth or more.
BINLOG = {"log_bin": "binlog"}
PLANTED = [
    ("mariadb-10.11", "oltp-update-non-index", BINLOG, "sync_binlog", "0", "1"),
    ("mariadb-10.2", "oltp-read-only", {}, "tmp_table_size", "16M", "1024"),
    ("mysql-sid", "oltp-read-only", {}, "table_open_cache", "400", "1"),
    ("mariadb-11.4", "oltp-read-only", {}, "tmp_memory_table_size", "16M", "1024"),
    ("mysql-sid", "oltp-update-non-index", BINLOG, "sync_binlog", "0", "1"),
    ("mariadb-10.11", "oltp-read-only", {}, "innodb_buffer_pool_size", "128M", "8M"),
]
# Two names of one setting of MariaDB.
ALIASES = {"tmp_memory_table_size": "tmp_table_size"}
RUN_S_MAX, BISECT_S_MAX = 180, 900


def run(whyso, build, workload, settings, runs):
    typed = [whyso, "run", workload, "--server", build, "--users", "4", "--tables", "8", "--rows", "10000", "--seconds", "4", "--warmup", "2", "--no-repeat",
             "--out", runs, "--json"]
    for name, value in settings.items():
        typed += ["--set", f"{name}={value}"]
    done = subprocess.run(typed, capture_output=True, text=True, timeout=RUN_S_MAX, check=True)
    return json.loads(done.stdout)


def attempt(whyso, planted):
    build, workload, both, setting, fast, slow = planted
    with tempfile.TemporaryDirectory(prefix="whyso-bisects-", dir="/var/tmp") as runs:
        for settings in (both | {setting: fast}, both | HARMLESS | {setting: slow}):
            run(whyso, build, workload, settings, runs)
        begin = time.monotonic()
        done = subprocess.run([whyso, "bisect", "latest~1", "latest", "--runs", runs, "--budget", "14m", "--json"], capture_output=True, text=True, timeout=BISECT_S_MAX, check=False)
        seconds = round(time.monotonic() - begin)
        if done.returncode != 0:
            return {"failed": done.stderr.strip().splitlines()[-1], "seconds": seconds}
        found = json.loads(done.stdout)
        kept = ("whole", "effect", "share", "is_answer")
        return {"seconds": seconds, "differences": len(found["differences"]), "tests": len(found["steps"]) + 1,
                "found": [difference["name"] for difference in found["found"]]} | {key: found[key] for key in kept}


def stored():
    return [json.loads(line) for line in RESULTS.read_text().splitlines()] if RESULTS.exists() else []


def run_all(options):
    done = {(result["build"], result["workload"], result["setting"]) for result in stored()}
    deadline = time.monotonic() + 60 * options.minutes
    for planted in PLANTED:
        build, workload, _, setting, _, _ = planted
        if (build, workload, setting) in done or time.monotonic() + 240 > deadline:
            continue
        result = {"build": build, "workload": workload, "setting": setting} | attempt(options.whyso, planted)
        result |= {"date": time.strftime("%Y-%m-%d"), "load_average": round(os.getloadavg()[1], 1)}
        with RESULTS.open("a") as out:
            out.write(json.dumps(result) + "\n")
        print(json.dumps(result), flush=True)


def gain(value):
    return f"×{value['value']:.2f} ({value['low']:.2f} to {value['high']:.2f})" if value else "—"


def table():
    results = stored()
    plain = lambda name: ALIASES.get(name, name)
    is_right = lambda result: [plain(name) for name in result["found"]] == [plain(result["setting"])]
    right = sum(result.get("is_answer", False) and is_right(result) for result in results)
    wrong = sum(result.get("is_answer", False) and not is_right(result) for result in results)
    tests = sorted(result["tests"] for result in results if "tests" in result)
    lines = ["# Settings that were planted, searched", "", "Made by `bench/proof/bisects.py table` from [bisects.jsonl](bisects.jsonl).", "",
             f"{len(results)} searches: {right} found the setting, {wrong} named another one, {len(results) - right - wrong} ended without an answer. "
             f"Tests of a search, the whole difference included (median): {tests[len(tests) // 2] if tests else '—'}.", "",
             "| build | load | planted | differences | whole | found | makes | tests | seconds |", "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"]
    for result in results:
        found = result.get("failed") or (", ".join(result["found"]) + ("" if result["is_answer"] else " (no answer)"))
        lines.append(f"| {result['build']} | {result['workload']} | {result['setting']} | {result.get('differences', '—')} | {gain(result.get('whole'))} | {found} | "
                     f"{gain(result.get('effect'))} | {result.get('tests', '—')} | {result['seconds']} |")
    TABLE.write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["run", "table"])
    parser.add_argument("--minutes", type=float, default=1e6, help="begin nothing that would end later")
    parser.add_argument("--whyso", default="whyso", help="the program [default: the one on the PATH]")
    options = parser.parse_args()
    table() if options.what == "table" else run_all(options)


if __name__ == "__main__":
    main()
