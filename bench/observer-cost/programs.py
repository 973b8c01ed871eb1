#!/usr/bin/env python3
"""What each program in the kernel costs per query, by workload: of one build of whyso, or of several in turn.

    programs.py WHYSO[,WHYSO…] DSN|BUILD [ROUNDS] [SECONDS] [USERS,…] [WORKLOAD…] [-- OPTION…]     as root

Each round runs every build once per workload and number of users, in another order each round. OPTIONs go to each `whyso run`, such as
`--stacks=full` or `--trace-sql`. From each recording, of the measured window: how often each program ran, and for how long without what
counting adds; each per query, as medians over the rounds. The kernel counts in a part of the window, which is scaled up. Below that the sum
as a share of the CPU time that the machine used, and what else the run itself says that watching cost.
"""
import os
import statistics
import sys
import tempfile
import json
import subprocess

from stacks import BUSY, grown, series

WORKLOADS = ["oltp-point-select", "oltp-read-only", "oltp-read-write", "oltp-update-non-index"]
SOURCES = ["trace_cost", "stacks", "sql"]


def one(whyso, server, workload, users, seconds, options):
    """Figures of one run by their names."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        words = [whyso, "run", workload, "--users", users, "--seconds", str(seconds), "--warmup", "2", "--no-repeat", "--json"]
        words += ["--out", folder, *(["--dsn", server] if server.startswith("mysql:") else ["--server", server]), *options]
        done = subprocess.run(words, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"programs.py: {' '.join(words)} failed: {done.stderr}")
        return figures(whyso, json.loads(done.stdout)["path"])


def figures(whyso, run):
    with open(os.path.join(run, "run.json")) as file:
        level = json.load(file)["levels"][-1]
    window = (level["window"]["begin_ns"], level["window"]["end_ns"])
    length = window[1] - window[0]
    queries = level["result"]["queries_per_s"] * length / 1e9
    cpu = series(whyso, run, "cpu")
    used = sum(grown(readings, window) for (metric, instance), readings in cpu.items() if instance in ("", "all") and metric in BUSY)
    found = {source: series(whyso, run, source) for source in SOURCES}
    trace = found["trace_cost"]
    counted = grown(trace[("counted_ns", "")], window) / length if ("counted_ns", "") in trace else 1.0
    added = [value for _, value in trace.get(("counting_ns", ""), [])]
    added = statistics.mean(added) if added else 0.0
    all_of = {"queries/s": level["result"]["queries_per_s"], "CPU ns per query": used / queries, "counting, ns per run": added}
    all_runs, all_ns = 0.0, 0.0
    for source, metrics in found.items():
        for metric, name in sorted(metrics):
            if metric != "program_ns" or name == "nothing":
                continue
            runs = grown(metrics[("program_runs", name)], window) / counted
            ns = max(grown(metrics[(metric, name)], window) / counted - runs * added, 0.0)
            if runs / queries < 0.005:
                continue
            of = name if source == "trace_cost" else f"{source}: {name}"
            all_of[f"{of} | runs per query"] = runs / queries
            all_of[f"{of} | ns per run"] = ns / runs
            all_of[f"{of} | ns per query"] = ns / queries
            all_runs, all_ns = all_runs + runs, all_ns + ns
    all_of["all | runs per query"] = all_runs / queries
    all_of["all | ns per query"] = all_ns / queries
    all_of["all | % of CPU used"] = 100 * all_ns / used
    for name, source, metric in [("accounts' reader", "trace_cost", "tracer_cpu_ns"), ("stacks' reader", "stacks", "cpu_ns"), ("commands' reader", "sql", "cpu_ns")]:
        ns = grown(found[source].get((metric, ""), []), window)
        if ns:
            all_of[f"{name} | ns per query"] = ns / queries
            all_of[f"{name} | % of CPU used"] = 100 * ns / used
    probes = [value for _, value in found["sql"].get(("probes_ns", ""), [])]
    if probes:
        all_of["probes | ns per command"] = statistics.mean(probes)
    return all_of


def number(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}"


def main():
    words, options = sys.argv[1:], []
    if "--" in words:
        at = words.index("--")
        words, options = words[:at], words[at + 1 :]
    if len(words) < 2:
        sys.exit("programs.py: give the program and a server: programs.py WHYSO[,WHYSO…] DSN|BUILD [ROUNDS] [SECONDS] [USERS,…] [WORKLOAD…]")
    builds, server = words[0].split(","), words[1]
    numbers = [word for word in words[2:] if word[0].isdigit()]
    workloads = [word for word in words[2:] if not word[0].isdigit()] or WORKLOADS
    rounds, seconds, users = (numbers + ["3", "8", "8,16"][len(numbers) :])[:3]
    cases = [(workload, number_of_users) for workload in workloads for number_of_users in users.split(",")]
    found = {(build, case): [] for build in range(len(builds)) for case in cases}
    for turn in range(int(rounds)):
        for case in cases:
            order = [(turn + place) % len(builds) for place in range(len(builds))]
            for build in order:
                found[build, case].append(one(builds[build], server, *case, seconds, options))
    for case in cases:
        print(f"\n{case[0]}, {case[1]} users: medians of {rounds} runs of {seconds} s (from least to most)\n")
        print("| | " + " | ".join(builds) + " |\n| --- |" + " ---: |" * len(builds))
        names = dict.fromkeys(name for build in range(len(builds)) for run in found[build, case] for name in run)
        for name in names:
            cells = []
            for build in range(len(builds)):
                values = [run[name] for run in found[build, case] if name in run]
                cells.append(f"{number(statistics.median(values))} ({number(min(values))} to {number(max(values))})" if values else "")
            print(f"| {name.replace(' | ', ': ')} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
