#!/usr/bin/env python3
"""What sampling stacks costs, by level of `--stacks`: none, light and full in rounds, each round in another order.

    stacks.py WHYSO DSN [ROUNDS] [SECONDS] [WORKLOAD…]     as root; 16 users; rounds of three runs per workload

From each recording, of the measured window: the CPU time that the machine used, and of it the programs that take stacks (each apart, as
the kernel counted it, without what counting adds), the thread that unwinds, and for comparison the tracer's own programs. The programs'
time is counted in a part of the window and scaled up. Of the whole command: its wall time, the part of that after the level's end (naming
functions, ending the server, the report) and its peak memory.
"""
import csv
import io
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

LEVELS = ["none", "light", "full"]
PROGRAMS = ["perf_event", "sched_waking", "rseq_update"]
BUSY = ["user_ns", "nice_ns", "system_ns", "irq_ns", "softirq_ns"]


def series(whyso, run, source):
    """Readings of a source by metric and instance: [(t_ns, value)]."""
    out = subprocess.run([whyso, "export", run, "--source", source], capture_output=True, text=True, check=True).stdout
    found = {}
    for row in csv.DictReader(io.StringIO(out)):
        if row["value"]:
            found.setdefault((row["metric"], row["instance"]), []).append((int(row["t_ns"]), float(row["value"])))
    return found


def grown(readings, window):
    """The increase over a window, by the slope between the readings that lie in it, scaled to its length."""
    inside = [one for one in readings if window[0] <= one[0] <= window[1]]
    if len(inside) < 2:
        return 0.0
    (first_ns, first), (last_ns, last) = inside[0], inside[-1]
    return (last - first) / (last_ns - first_ns) * (window[1] - window[0])


def parts_of(whyso, run):
    """Shares of the CPU time that was used, in per cent, and numbers of samples and waits."""
    with open(os.path.join(run, "run.json")) as file:
        info = json.load(file)
    level = info["levels"][-1]
    window = (level["window"]["begin_ns"], level["window"]["end_ns"])
    cpu = series(whyso, run, "cpu")
    used = sum(grown(readings, window) for (metric, instance), readings in cpu.items() if instance in ("", "all") and metric in BUSY)
    trace, stacks = series(whyso, run, "trace_cost"), series(whyso, run, "stacks")
    counted = grown(trace[("counted_ns", "")], window) / (window[1] - window[0]) if ("counted_ns", "") in trace else 1.0
    added = [value for _, value in trace.get(("counting_ns", ""), [])]
    added = statistics.mean(added) if added else 0.0

    def program(of, name):
        ns, runs = (grown(of.get((metric, name), []), window) for metric in ("program_ns", "program_runs"))
        return 100 * max(ns - runs * added, 0) / counted / used

    parts = {name: program(stacks, name) for name in PROGRAMS}
    parts["unwinding"] = 100 * grown(stacks.get(("cpu_ns", ""), []), window) / used
    parts["tracer"] = sum(program(trace, name) for metric, name in trace if metric == "program_ns" and name != "nothing")
    shown = subprocess.run([whyso, "functions", run, "--role", "all", "--json", "--observer"], capture_output=True, text=True)
    shares = json.loads(shown.stdout) if shown.returncode == 0 else {"samples": 0, "waits": 0, "rootless": 0}
    parts["samples"], parts["waits"] = shares["samples"], shares["waits"]
    parts["whole"] = 100 - 100 * shares["rootless"] / max(shares["samples"] + shares["waits"], 1)
    parts["queries"], parts["end_s"] = level["result"]["queries_per_s"], window[1] / 1e9
    return parts


def one(whyso, dsn, workload, level, seconds):
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        words = [whyso, "run", workload, "--users", "16", "--seconds", str(seconds), "--warmup", "2", "--no-repeat", "--json"]
        words += ["--out", folder, f"--stacks={level}", *(["--dsn", dsn] if dsn.startswith("mysql:") else ["--server", dsn])]
        begun = time.monotonic()
        run = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        out = run.stdout.read()
        _, status, usage = os.wait4(run.pid, 0)
        ended = time.monotonic()
        if status:
            sys.exit(f"stacks.py: {' '.join(words)} failed: {status}")
        parts = parts_of(whyso, json.loads(out)["path"])
        # Both are the monotonic clock.
        parts["wall_s"], parts["after_s"] = ended - begun, ended - parts["end_s"]
        parts["peak_mb"] = usage.ru_maxrss * 1024 / 1e6
        return parts


def main():
    if len(sys.argv) < 3:
        sys.exit("stacks.py: give the program and a server: stacks.py WHYSO DSN|BUILD [ROUNDS] [SECONDS] [WORKLOAD…]")
    whyso, dsn = sys.argv[1:3]
    numbers = [word for word in sys.argv[3:] if word.isdigit()]
    workloads = [word for word in sys.argv[3:] if not word.isdigit()] or ["oltp-point-select", "oltp-read-write"]
    rounds, seconds = (int(word) for word in (numbers + ["5", "8"][len(numbers) :])[:2])
    columns = ["queries", *PROGRAMS, "unwinding", "tracer", "samples", "waits", "whole", "wall_s", "after_s", "peak_mb"]
    print(f"{rounds} rounds, {seconds} s each, 16 users; medians\n")
    print("| workload | stacks | " + " | ".join(columns) + " |")
    print("| --- | --- |" + " ---: |" * len(columns))
    for workload in workloads:
        found = {level: [] for level in LEVELS}
        for number in range(rounds):
            shift = number % len(LEVELS)
            for level in LEVELS[shift:] + LEVELS[:shift]:
                found[level].append(one(whyso, dsn, workload, level, seconds))
        for level in LEVELS:
            middle = [statistics.median(parts[column] for parts in found[level]) for column in columns]
            cells = [f"{value:,.0f}" if value >= 100 else f"{value:.3f}" for value in middle]
            print(f"| {workload} | {level} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
