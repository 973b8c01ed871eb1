#!/usr/bin/env python3
"""What the page's server takes: charts of any window, the first page, memory, a run in progress. See README.md."""

import json
import os
import random
import re
import statistics
import subprocess
import sys
import threading
import time
import urllib.request

PIXELS = 1200
CHARTS = 60
DAY_S = 86_400
WINDOWS_S = [60, 600, 3_600, 21_600, 43_200, DAY_S]


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit("give the program, the folder of recordings, and the id of the run (the first one there)")
    program, runs = sys.argv[1:3]
    server = subprocess.Popen([program, "serve", "--runs", runs, "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True)
    try:
        address, token = re.match(r"(http://\S+)/#token=(\S+)", server.stdout.readline()).groups()
        ask = asker(address, token)
        run = sys.argv[3] if len(sys.argv) == 4 else json.loads(ask("/api/v1/runs")[1])["runs"][0]["id"]
        measure(ask, run, server.pid)
    finally:
        server.terminate()
        server.wait(30)


def asker(address, token):
    def ask(path):
        request = urllib.request.Request(address + path, headers={"Authorization": f"Bearer {token}"})
        begin = time.perf_counter()
        with urllib.request.urlopen(request, timeout=60) as answer:
            body = answer.read()
        return (time.perf_counter() - begin) * 1000, body

    return ask


def measure(ask, run, pid):
    page_ms, page = ask("/")
    tell("the page itself", page_ms, None, f"{len(page) // 1024} KiB")
    head_ms, head = ask(f"/api/v1/runs/{run}")
    tell("the head of the run, opened for the first time", head_ms, 1000, f"{len(head) // 1024} KiB")
    tell("the same again", ask(f"/api/v1/runs/{run}")[0], None)
    series = [one["slot"] for one in json.loads(head)["series"] if one["slot"] < 1 << 31]
    dice = random.Random(1)
    for count in (1, 5, 20):
        for window_s in WINDOWS_S:
            times = []
            for _ in range(CHARTS if count < 20 else CHARTS // 4):
                begin = dice.uniform(0, DAY_S - window_s)
                numbers = ",".join(str(dice.choice(series)) for _ in range(count))
                times.append(ask(f"/api/v1/runs/{run}/series?numbers={numbers}&from_s={begin}&to_s={begin + window_s}&px={PIXELS}")[0])
            tell(f"a chart of {count} series over {window_s} s", statistics.median(times), 150, f"95 %: {percentile(times, 0.95):.0f} ms, worst: {max(times):.0f} ms")
    # Ten charts of 20 series at once, as a page does after a drag.
    def chart():
        numbers = ",".join(str(dice.choice(series)) for _ in range(20))
        ask(f"/api/v1/runs/{run}/series?numbers={numbers}&from_s=0&to_s=3600&px={PIXELS}")

    threads = [threading.Thread(target=chart) for _ in range(10)]
    begin = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    tell("ten charts of 20 series over an hour, at once", (time.perf_counter() - begin) * 1000, None)
    with open(f"/proc/{pid}/status") as status:
        text = status.read()
    for name, words in (("VmRSS", "memory now"), ("VmHWM", "memory at most")):
        mib = int(re.search(rf"{name}:\s+(\d+)", text).group(1)) / 1024
        print(f"{words}: {mib:.0f} MiB, wanted at most 300: {mib / 300:.2f}")


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def tell(what, ms, wanted, more=""):
    bound = f", wanted at most {wanted}: {ms / wanted:.2f}" if wanted else ""
    print(f"{what}: {ms:.1f} ms{bound}{f' ({more})' if more else ''}", flush=True)


if __name__ == "__main__":
    if not os.path.isdir("/proc/self"):
        sys.exit("this needs Linux")
    main()
