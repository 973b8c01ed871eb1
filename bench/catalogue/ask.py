#!/usr/bin/env python3
"""What one question to many runs takes: ask.py FOLDER WRITE_VIEWS RUN. DuckDB's shell has to be on the PATH.

WRITE_VIEWS is the example of crates/record: it does what `whyso sql` does before it starts DuckDB. RUN is the run that some questions are about.
Prints for each question the median of the wall time, the least and the most, and the median of the CPU time, of both programs together.
"""

import resource
import statistics
import subprocess
import sys
import tempfile
import time

ROUNDS = 5
METRIC = "SELECT run, count(*), max(value) - min(value) FROM readings WHERE metric = 'Questions'"


def ask(folder: str, views: str, place: str, chosen: list[str], sql: str) -> tuple[float, float]:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.monotonic()
    subprocess.run([views, folder, place, *chosen], check=True, stdout=subprocess.DEVNULL, timeout=600)
    subprocess.run(["duckdb", "-cmd", f".read {place}/views.sql", "-c", sql], check=True, stdout=subprocess.DEVNULL, timeout=600)
    wall = time.monotonic() - begin
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> int:
    if len(sys.argv) != 4:
        print(__doc__, file=sys.stderr)
        return 2
    folder, views, run = sys.argv[1:]
    for words, chosen, sql in [
        ("best throughput of each run", [], "SELECT run, max(transactions_per_s) FROM levels GROUP BY run"),
        ("one metric of one run, by WHERE", [], f"{METRIC} AND run = '{run}' GROUP BY run"),
        ("one metric of one run, by --run", [run], f"{METRIC} GROUP BY run"),
    ]:
        with tempfile.TemporaryDirectory() as place:
            times = [ask(folder, views, place, chosen, sql) for _ in range(ROUNDS)]
        walls = [wall for wall, _ in times]
        cpu = statistics.median(cpu for _, cpu in times)
        print(f"{words}: {statistics.median(walls):.2f} s ({min(walls):.2f} to {max(walls):.2f}), CPU {cpu:.2f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
