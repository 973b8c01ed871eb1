#!/usr/bin/env python3
"""Records several hosts from the page of `whyso serve`, and asks for their newest readings as the page does.

    page.py URL TOKEN_FILE NAME HOSTS SECONDS

Times of a recording are this machine's CLOCK_MONOTONIC, which is also the clock here.
"""

import json
import statistics
import sys
import time
import urllib.request

# As in web/src/serve/RunPage.svelte: LIVE_EVERY_MS.
EVERY_S = 0.7
# Until every host has readings.
BEGIN_S = 60
SOURCE, METRIC, INSTANCE = "cpu", "idle_ns", "all"


class Page:
    def __init__(self, url, token):
        self.url, self.headers = f"{url}/api/v1", {"Authorization": f"Bearer {token}"}

    def ask(self, path, method="GET"):
        request = urllib.request.Request(self.url + path, method=method, headers=self.headers)
        with urllib.request.urlopen(request, timeout=30) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def begin(self, name):
        """Begins the recording. Returns its run."""
        self.ask(f"/live/{name}/start", "POST")
        by = time.monotonic() + BEGIN_S
        while time.monotonic() < by:
            server = next(one for one in self.ask("/live")["servers"] if one["name"] == name)
            if server["run"]:
                return server["run"]
            if server["phase"] == "failed":
                sys.exit(server["words"])
            time.sleep(0.2)
        sys.exit("no recording begins")

    def slots(self, run, hosts):
        """The number of one series of each host."""
        by = time.monotonic() + BEGIN_S
        while time.monotonic() < by:
            head = self.ask(f"/runs/{run}")
            found = {
                one["host"]: one["slot"]
                for one in head["series"]
                if (one["source"], one["metric"], one["instance"]) == (SOURCE, METRIC, INSTANCE)
                and one["host"].startswith("host-")
            }
            if len(found) == hosts:
                return head["origin_ns"], found
            time.sleep(0.5)
        sys.exit(f"{len(found)} of {hosts} hosts have readings")


def quantile(values, share):
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def main():
    url, token_file, name, hosts, seconds = sys.argv[1:]
    with open(token_file) as file:
        page = Page(url, file.read().strip())
    run = page.begin(name)
    origin_ns, slots = page.slots(run, int(hosts))
    numbers = ",".join(str(slot) for slot in slots.values())
    seen, behind, arrived, took = {}, [], [], []
    time.sleep(5)
    by = time.monotonic() + float(seconds)
    while time.monotonic() < by:
        began = time.monotonic()
        end_s = (page.ask(f"/runs/{run}/events")["end_ns"] - origin_ns) / 1e9
        window = f"from_s={max(0, end_s - 60)}&to_s={end_s}&px=1000&mode=raw&json=true"
        answer = page.ask(f"/runs/{run}/series?numbers={numbers}&{window}")
        now = time.monotonic()
        took.append(now - began)
        columns = iter(answer["columns"])
        for line in answer["lines"]:
            times, _, *_ = [next(columns) for _ in range(6 if line["band"] else 2)]
            newest = times[-1] + origin_ns / 1e9
            behind.append(now - newest)
            if seen.get(line["number"], newest) != newest:
                arrived.append(now - newest)
            seen[line["number"]] = newest
        time.sleep(max(0, EVERY_S - (time.monotonic() - began)))
    page.ask(f"/live/{name}/stop", "POST")
    for what, values in (("behind now", behind), ("behind when first shown", arrived), ("two requests took", took)):
        line = f"median {statistics.median(values):.3f} s, 99 % {quantile(values, 0.99):.3f} s, most {max(values):.3f} s"
        print(f"{what}: {line} ({len(values)} times)")


main()
