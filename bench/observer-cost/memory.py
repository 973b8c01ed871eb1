#!/usr/bin/env python3
"""What tracing takes in memory: whyso's resident memory while 1,000 connections are traced, and while they are not.

    memory.py WHYSO DSN [SECONDS] [USERS] [OPTION…]     as root; two runs of SECONDS (default 240) each, one after the other

The traced run has the options too, such as --stacks.

Each second of the measured window VmRSS is read, and what the kernel holds for the program's BPF maps. Printed are the last reading, and the growth of VmRSS by least squares over the second half of the window, a minute and extrapolated to an hour.
"""
import glob
import json
import subprocess
import sys
import tempfile
import time

INTERVAL_S = 1.0
THINK = "exp:500ms"


def resident_kib(pid):
    """The program's own resident memory."""
    with open(f"/proc/{pid}/status") as status:
        return int(next(line for line in status if line.startswith("VmRSS:")).split()[1])


def maps_kib(pid):
    """What the kernel holds for the program's BPF maps, by its own account of each; programs themselves are some 10 KiB each."""
    total = 0
    for info in glob.glob(f"/proc/{pid}/fdinfo/*"):
        try:
            with open(info) as lines:
                fields = dict(line.split(":", 1) for line in lines if ":" in line)
        except FileNotFoundError:
            continue
        if "map_type" in fields:
            total += int(fields["memlock"])
    return total // 1024


def slope(points):
    """KiB a second by least squares."""
    mean_t = sum(t for t, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    above = sum((t - mean_t) * (y - mean_y) for t, y in points)
    below = sum((t - mean_t) ** 2 for t, _ in points)
    return above / below


def level_runs(pid):
    """Whether the program has the threads of a running level."""
    found = subprocess.run(["grep", "-lx", "load-0", "-r", "--include=comm", f"/proc/{pid}/task"], capture_output=True)
    return bool(found.stdout)


def one(whyso, dsn, seconds, users, traced, options):
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        words = [whyso, "run", "oltp-point-select", "--dsn", dsn, "--users", str(users), "--seconds", str(seconds)]
        words += ["--warmup", "10", "--think", THINK, "--tables", "1", "--rows", "1000", "--no-repeat", "--json"]
        words += ["--out", folder] + (options if traced else ["--no-trace"])
        run = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        while run.poll() is None and not level_runs(run.pid):
            time.sleep(0.2)
        points, in_maps, begun = [], 0, time.monotonic()
        while run.poll() is None and time.monotonic() - begun < seconds:
            points.append((time.monotonic() - begun, resident_kib(run.pid)))
            time.sleep(INTERVAL_S)
            if not in_maps and len(points) > 5:
                in_maps = maps_kib(run.pid)
        out = json.loads(run.communicate()[0])
        queries = out["levels"][0]["queries_per_s"]
    late = [(t, kib) for t, kib in points if t > seconds / 2]
    resident = points[-1][1]
    a_minute = slope(late) * 60
    traced = "yes" if traced else "no"
    mb = lambda kib: kib * 1024 / 1e6
    print(f"| {traced} | {queries:,.0f} | {mb(resident):.1f} | {mb(in_maps):.1f} | {mb(a_minute):+.2f} | {mb(a_minute * 60):+.0f} |", flush=True)
    return resident + in_maps, a_minute


def main():
    if len(sys.argv) < 3:
        sys.exit("memory.py: give the program and a server: memory.py WHYSO DSN [SECONDS] [USERS] [OPTION…]")
    whyso, dsn = sys.argv[1:3]
    numbers = [word for word in sys.argv[3:] if word.isdigit()]
    options = [word for word in sys.argv[3:] if not word.isdigit()]
    seconds, users = (int(word) for word in (numbers + ["240", "1000"][len(numbers) :])[:2])
    print(f"{users} users, {seconds} s each.\n")
    print("| traced | queries/s | resident MB | in the kernel's maps MB | growth MB a minute | extrapolated to an hour |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    (without, grown_without), (traced, grown) = (one(whyso, dsn, seconds, users, traced, options) for traced in (False, True))
    mb = lambda kib: kib * 1024 / 1e6
    hour = mb(traced - without + (grown - grown_without) * 60)
    print(f"\nTracing takes {mb(traced - without):.1f} MB, and {hour:.0f} MB after an hour if it goes on to grow so.")


if __name__ == "__main__":
    main()
