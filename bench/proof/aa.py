#!/usr/bin/env python3
"""How often does a comparison of a setting with itself find a difference?

    bench/proof/aa.py record switch-back|duet none|periodic|bursty [--seconds 600]   # windows of one setting, into windows/
    bench/proof/aa.py resample [--examples FOLDER]                                   # 10,000 comparisons and 1,000 searches of each file: RESULTS.md
    bench/proof/aa.py live N [--seconds 60]                                          # N comparisons of a setting with itself: live.jsonl

Both sides are the same server with the same effective settings: innodb_io_capacity 200 and 201, or back_log 80 and 81 for two servers. `record`
needs the program `whyso` on the PATH, `resample` the examples `alternation_aa` and `halving_aa` of crates/inference.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
WINDOWS = HERE / "windows"
LIVE = HERE / "live.jsonl"
RESULTS = HERE / "RESULTS.md"
SETTINGS = {"switch-back": "innodb_io_capacity=20", "duet": "back_log=8"}
# Seconds of work, seconds of rest, programs.
NEIGHBOURS = {"none": None, "periodic": (3, 7, 1), "bursty": (8, 45, 2)}
COMPARISON_S = 600


def ab(design, seconds, seed, matters):
    setting = SETTINGS[design]
    command = ["whyso", "ab", "oltp-read-write", "--users", "8", "--seconds", str(seconds), "--seed", str(seed), "--matters", str(matters),
               "--starts", "1", "--json", "--set", setting + "0", "--versus", "--set", setting + "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds + 300)
    if done.returncode != 0:
        sys.exit(f"whyso ab failed: {done.stderr.strip().splitlines()[-1]}")
    return json.loads(done.stdout)


def neighbour_of(kind):
    """Starts the neighbour; returns a function that ends it."""
    if NEIGHBOURS[kind] is None:
        return lambda: None
    work, rest, programs = NEIGHBOURS[kind]
    busy = f"timeout {work} sh -c 'while :; do :; done'"
    script = f"while :; do {' & '.join([busy] * programs)} & wait; sleep {rest}; done"
    process = subprocess.Popen(["sh", "-c", script], start_new_session=True)
    return lambda: os.killpg(process.pid, 15)


def record(design, kind, seconds):
    end = neighbour_of(kind)
    steal_before, total_before = steal()
    try:
        found = ab(design, seconds, 1, 1.0001)
    finally:
        end()
    steal_after, total_after = steal()
    values = []
    for pair in found["pairs"]:
        order = ["variant", "baseline"] if pair["variant_first"] else ["baseline", "variant"]
        values += [pair[side]["transactions"] / pair[side]["seconds"] for side in order]
    WINDOWS.mkdir(exist_ok=True)
    name = f"{design}-{kind}"
    (WINDOWS / f"{name}.txt").write_text("".join(f"{value:.2f}\n" for value in values))
    facts = {
        "design": design, "neighbour": kind, "date": time.strftime("%Y-%m-%d"), "windows": len(values), "window_s": found["window_s"],
        "cut_s": found["cut_s"], "seconds": seconds, "load_average": os.getloadavg()[1],
        "steal": (steal_after - steal_before) / max(1, total_after - total_before), "found": found["ratio"], "verdict": found["verdict"],
    }
    (WINDOWS / f"{name}.json").write_text(json.dumps(facts, indent=1) + "\n")
    print(f"{name}: {len(values)} windows, {found['sentence']}")


def steal():
    """Ticks that the hypervisor took, and all ticks."""
    fields = [int(field) for field in Path("/proc/stat").read_text().split("\n")[0].split()[1:]]
    return fields[7], sum(fields)


def live(count, seconds):
    with LIVE.open("a") as out:
        for number in range(count):
            design = "switch-back" if number % 2 == 0 else "duet"
            found = ab(design, seconds, 100 + number, 1.01)
            kept = {key: found[key] for key in ("verdict", "ratio", "design", "ended_early", "seconds", "smallest_detectable")}
            kept["date"] = time.strftime("%Y-%m-%d")
            kept["load_average"] = os.getloadavg()[0]
            out.write(json.dumps(kept) + "\n")
            out.flush()
            print(f"{number + 1}/{count} {design}: {found['verdict']}")


def printed_by(command):
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=1200).stdout


def resample(examples):
    lines = ["# A setting compared with itself", "", "Made by `bench/proof/aa.py resample` from the windows in [windows](windows).", ""]
    for facts_file in sorted(WINDOWS.glob("*.json")):
        facts = json.loads(facts_file.read_text())
        step = facts["window_s"] + facts["cut_s"]
        windows = str(facts_file.with_suffix(".txt"))
        printed = printed_by([f"{examples}/alternation_aa", windows, f"{step:.3f}", str(COMPARISON_S)])
        searches = printed_by([f"{examples}/halving_aa", windows, f"{step:.3f}"])
        lines += [
            f"## {facts['design']}, neighbour: {facts['neighbour']}", "",
            f"{facts['windows']} windows of {facts['window_s']:.2f} s with {facts['cut_s']:.1f} s cut off before each, on {facts['date']}; load average "
            f"{facts['load_average']:.1f}, steal {100 * facts['steal']:.1f} %.", "", "```", printed.rstrip(), "```", "",
            "Searches among settings over the same windows:", "", "```", searches.rstrip(), "```", "",
        ]
    if LIVE.exists():
        all_live = [json.loads(line) for line in LIVE.read_text().splitlines()]
        wrong = [found for found in all_live if found["verdict"] in ("faster", "slower")]
        lines += ["## Live", "", f"{len(all_live)} comparisons of a setting with itself, each a minute long: {len(wrong)} called different.", ""]
    RESULTS.write_text("\n".join(lines).rstrip() + "\n")
    print(RESULTS.read_text())


def main():
    arguments = sys.argv[1:]
    option = lambda name, default: arguments[arguments.index(name) + 1] if name in arguments else default
    if arguments[:1] == ["record"] and len(arguments) >= 3:
        record(arguments[1], arguments[2], int(option("--seconds", 600)))
    elif arguments[:1] == ["resample"]:
        target = os.environ.get("CARGO_TARGET_DIR", str(Path.home() / ".cache/whyso-target"))
        resample(option("--examples", f"{target}/release/examples"))
    elif arguments[:1] == ["live"] and len(arguments) >= 2:
        live(int(arguments[1]), int(option("--seconds", 60)))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
