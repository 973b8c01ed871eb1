#!/usr/bin/env python3
"""What a list of many runs takes, in the terminal and from the page's server. See README.md.

    bench/page/list.py FOLDER PROGRAM…

Programs are measured in turn, so that two versions meet the same machine.
"""

import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

ROUNDS = 7
ANSWERS = 15
# Longer than the 3 seconds in which a file may change and keep its identity.
SETTLE_S = 4


def main():
    if len(sys.argv) < 3:
        sys.exit("give the folder of runs and one or more programs")
    folder, programs = pathlib.Path(sys.argv[1]), sys.argv[2:]
    time.sleep(SETTLE_S)
    found = {program: {} for program in programs}
    for _ in range(ROUNDS):
        for program in programs:
            round_of(program, folder, found[program])
    for program in programs:
        served(program, folder, found[program])
    for program in programs:
        print(program)
        for what, values in found[program].items():
            print(f"  {what}: median {statistics.median(values):.3g}, {min(values):.3g} to {max(values):.3g}")


def round_of(program, folder, found):
    catalogue = folder / "catalogue.parquet"
    catalogue.unlink(missing_ok=True)
    terminal(program, folder, "without a catalogue", found)
    terminal(program, folder, "again", found)
    # Its time of change is another one now.
    os.utime(sorted(folder.glob("run-*"))[0] / "run.json")
    terminal(program, folder, "after one run changed", found)
    time.sleep(SETTLE_S)


def terminal(program, folder, what, found):
    begin = time.perf_counter()
    child = subprocess.Popen([program, "runs", "--runs", folder], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    wall = time.perf_counter() - begin
    child.returncode = status
    if status:
        sys.exit(f"{program} failed")
    enter(found, f"whyso runs, {what}: s", wall)
    enter(found, f"whyso runs, {what}: s of CPU", usage.ru_utime + usage.ru_stime)
    enter(found, f"whyso runs, {what}: MiB at most", usage.ru_maxrss / 1024)


def served(program, folder, found):
    with tempfile.TemporaryDirectory() as cache:
        (folder / "catalogue.parquet").unlink(missing_ok=True)
        environment = {**os.environ, "XDG_CACHE_HOME": cache}
        command = [program, "serve", "--runs", folder, "--listen", "127.0.0.1:0"]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        try:
            address, token = re.match(r"(http://\S+)/#token=(\S+)", server.stdout.readline()).groups()
            request = urllib.request.Request(f"{address}/api/v1/runs", headers={"Authorization": f"Bearer {token}"})
            seconds, body = ask(request)
            enter(found, "page, without a catalogue: s", seconds)
            enter(found, "page: runs", len(body["runs"]))
            enter(found, "page, after its first list: MiB at most", high_water_mib(server.pid))
            for _ in range(ANSWERS):
                enter(found, "page, again, while findings are worked out: s", ask(request)[0])
            wait_for_findings(request)
            for _ in range(ANSWERS):
                before = cpu_s(server.pid)
                enter(found, "page, again: s", ask(request)[0])
                enter(found, "page, again: s of CPU", cpu_s(server.pid) - before)
            enter(found, "page, after all findings: MiB at most", high_water_mib(server.pid))
        finally:
            server.terminate()
            server.wait(60)


def ask(request):
    begin = time.perf_counter()
    with urllib.request.urlopen(request, timeout=120) as answer:
        body = answer.read()
    return time.perf_counter() - begin, json.loads(body)


def wait_for_findings(request):
    while ask(request)[1]["verdicts_coming"]:
        time.sleep(2)


def high_water_mib(pid):
    return int(re.search(r"VmHWM:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text())[1]) / 1024


def cpu_s(pid):
    user, system = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def enter(found, what, value):
    found.setdefault(what, []).append(value)


if __name__ == "__main__":
    main()
