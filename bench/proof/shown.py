#!/usr/bin/env python3
"""Five causes from end to end, each on MariaDB and on MySQL: a run, and what `whyso prove` makes of it.

    bench/proof/shown.py [--whyso PROGRAM] [--only NAME]...     # as root, with BPF; writes SHOWN.md and shown.jsonl

Each case is a load and a server that have the cause on purpose. `whyso prove` gets the recording, and tests the suspects by itself or the remedy of the case. A
decoy, a setting that changes nothing, is tested against the first one.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from contextlib import nullcontext
from pathlib import Path

from plants import neighbours

HERE = Path(__file__).resolve().parent
RESULTS, TABLE = HERE / "shown.jsonl", HERE / "SHOWN.md"
BUILDS = ["mariadb-11.4", "mysql-sid"]
# Each file with its text. InnoDB releases the locks of a transaction before it waits for the redo log, so a hot row needs a transaction that works on.
CHANGE = "-- \\set id random(1, {most})\nBEGIN;\nUPDATE sbtest1 SET k = k + 1 WHERE id = :id;\nSELECT SUM(k) FROM sbtest1 WHERE id BETWEEN 1 AND 200;\nCOMMIT;\n"
FILES = {
    "scan": "SELECT id FROM sbtest1 WHERE c = 'no row has this text';\n",
    "hot": CHANGE.replace("{most}", "1"),
    "spread": CHANGE.replace("{most}", "10000"),
}
DECOY = ["--versus", "--set", "wait_timeout=28000"]
PROVE = ["--accept", "durability,memory,semantics", "--budget", "3m"]
RUN_S_MAX, PROVE_S_MAX = 240, 420
# Name, the cause that is meant, the run's arguments, and what stands after `whyso prove RUN`. "{pid}" is the neighbour's number.
CASES = [
    ("a hot row", "row-lock", ["{hot}", "--tables", "1", "--rows", "10000", "--users", "1,8"], ["--workload", "{hot}", "--versus", "--workload", "{spread}"]),
    ("a small buffer pool", "buffer-pool-miss", ["oltp-read-only", "--tables", "4", "--rows", "100000", "--users", "1,8", "--set", "innodb_buffer_pool_size=8M"], []),
    ("a missing index", "full-scan", ["{scan}", "--tables", "1", "--rows", "20000", "--users", "1,4"], ["--workload", "{scan}", "--versus", "--sql", "ALTER TABLE sbtest1 ADD INDEX (c)"]),
    ("sync at commit", "binlog", ["oltp-update-non-index", "--tables", "4", "--rows", "10000", "--users", "1,8", "--rand-type", "uniform", "--set", "log_bin=binlog", "--set", "sync_binlog=1"], []),
    ("a bad neighbour", "noisy-neighbour", ["oltp-point-select", "--tables", "1", "--rows", "10000", "--users", "1,4", "--server-cpus", "0", "--client-cpus", "1"], ["--pause", "{pid}"]),
]


def json_of(typed, seconds_max):
    done = subprocess.run(typed, capture_output=True, text=True, timeout=seconds_max)
    if not done.stdout:
        sys.exit(f"{' '.join(typed)}: {done.stderr.strip().splitlines()[-1]}")
    return json.loads(done.stdout)


def show(whyso, case, build, folder):
    name, cause, load, words = case
    for file, text in FILES.items():
        (folder / f"{file}.sql").write_text(text)
    paths = {f"{{{file}}}": str(folder / f"{file}.sql") for file in FILES}
    with neighbours(2) if "{pid}" in words else nullcontext([]) as pids:
        fill = lambda word: paths.get(word, word)
        pause = [word for pid in pids for word in ("--pause", pid)]
        words = pause if pids else [fill(word) for word in words]
        typed = [whyso, "run", *map(fill, load), "--server", build, "--seconds", "4", "--warmup", "2", "--no-repeat", "--json", "--out", str(folder / "runs")]
        recorded = json_of(typed, RUN_S_MAX)
        prove = [whyso, "prove", "--runs", str(folder / "runs"), "--json", *PROVE]
        begin = time.monotonic()
        proofs = json_of([*prove, *words], PROVE_S_MAX)["proofs"]
        seconds = round(time.monotonic() - begin)
        source = ["--workload", fill(load[0])] if load[0] in paths else []
        decoy = json_of([*prove, *source, *DECOY], PROVE_S_MAX)["proofs"]
    kept = ("cause", "share", "words", "predicted_gain", "measured_gain", "verdict", "why", "undone", "slowed")
    shorter = lambda some: [{key: proof[key] for key in kept} for proof in some]
    rate = recorded["levels"][-1]["transactions_per_s"]
    return {"case": name, "cause": cause, "build": build, "per_s": round(rate), "seconds": seconds, "proofs": shorter(proofs), "decoy": shorter(decoy), "date": time.strftime("%Y-%m-%d")}


def gain(proof):
    measured, predicted = proof["measured_gain"], proof["predicted_gain"]
    text = f"{proof['cause']} {proof['verdict']}"
    text += f" ×{measured['value']:.2f} ({measured['low']:.2f} to {measured['high']:.2f})" if measured else ""
    return text + (f", predicted {predicted['low']:.2f} to {predicted['high']:.2f}" if predicted else "")


def table():
    results = [json.loads(line) for line in RESULTS.read_text().splitlines()]
    lines = ["# Causes proved from end to end", "", "Made by `bench/proof/shown.py` on this machine: 2 CPUs, virtual.", "",
             "| case | server | tps | proofs, in whyso's order | decoy |", "| --- | --- | --- | --- | --- |"]
    for result in results:
        lines.append(f"| {result['case']} | {result['build']} | {result['per_s']} | {'; '.join(map(gain, result['proofs']))} | {'; '.join(map(gain, result['decoy']))} |")
    TABLE.write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--whyso", default="whyso", help="the program [default: the one on the PATH]")
    parser.add_argument("--only", action="append", help="a case, or CASE/BUILD; may be repeated")
    options = parser.parse_args()
    done = [json.loads(line) for line in RESULTS.read_text().splitlines()] if RESULTS.exists() else []
    for case in CASES:
        for build in BUILDS:
            wanted = not options.only or case[0] in options.only or f"{case[0]}/{build}" in options.only
            if not wanted or any((result["case"], result["build"]) == (case[0], build) for result in done):
                continue
            with tempfile.TemporaryDirectory(prefix="whyso-shown-", dir="/var/tmp") as folder:
                result = show(options.whyso, case, build, Path(folder))
            with RESULTS.open("a") as out:
                out.write(json.dumps(result) + "\n")
            print(result["case"], build, "; ".join(map(gain, result["proofs"])), flush=True)
    table()


if __name__ == "__main__":
    main()
