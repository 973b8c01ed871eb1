"""Checks what a running whyso answers at its OpenMetrics address.

openmetrics.py METRICS-URL PROMETHEUS-URL PROMTOOL BOARD: promtool finds nothing wrong with the text, Prometheus takes it
as it comes, and every expression of the Grafana board has values there.
"""

import json
import re
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

# A server starts and is loaded with data before its load begins.
READY_S = 90
# Prometheus needs two samples for a rate, and some series are read each ten seconds.
VALUES_S = 45


def get(url, accept="*/*"):
    """Text of an answer; nothing where there is none yet."""
    try:
        request = urllib.request.Request(url, headers={"Accept": accept})
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.read().decode()
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return ""


def wait_for(what, seconds, attempt):
    """What `attempt` returns as soon as that is something."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = attempt()
        if found:
            return found
        time.sleep(0.5)
    sys.exit(f"openmetrics: no {what} within {seconds} s")


def lints(text, promtool):
    """What promtool reports about the text, except for what follows from OpenMetrics itself."""
    done = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, text=True, timeout=60)
    families = set(re.findall(r"^# HELP (\S+)", text, re.MULTILINE))
    left = []
    for line in (done.stdout + done.stderr).splitlines():
        name, _, complaint = line.partition(" ")
        # In OpenMetrics a counter's family has no _total; promtool looks for the help under the sample's name.
        if complaint == "no help text" and name.removesuffix("_total") in families:
            continue
        # Such a name looks like a histogram's count. Nothing here is a histogram: the server names it so.
        if complaint.endswith('should not have "_count" suffix'):
            continue
        left.append(line)
    return left


def query(api, expression):
    """Values of an expression now, or an error as text."""
    answer = get(f"{api}/api/v1/query?" + urllib.parse.urlencode({"query": expression}))
    if not answer:
        return "Prometheus refuses it"
    return json.loads(answer)["data"]["result"]


def main():
    metrics, api, promtool, board = sys.argv[1:]
    text = wait_for("answer of whyso's load", READY_S, lambda: (lambda page: page if "whyso_load_executions" in page else "")(get(metrics)))
    broken = lints(text.replace("# TYPE whyso_cpu_running gauge", "# TYPE whyso_cpu_running nonsense"), promtool)
    if not broken:
        sys.exit("openmetrics: promtool finds nothing wrong with a text that is wrong")
    wrong = lints(text, promtool)
    if wrong:
        sys.exit("openmetrics: promtool complains:\n" + "\n".join(wrong))
    up = lambda: [sample for sample in query(api, "up") if not isinstance(sample, str) and sample["value"][1] == "1"]
    wait_for("scrape that Prometheus takes", READY_S, up)

    panels = json.load(open(board))["panels"]
    numbers = [panel["id"] for panel in panels]
    if len(numbers) != len(set(numbers)):
        sys.exit("openmetrics: two panels of the board have one number")
    places = [panel["gridPos"] for panel in panels]
    for at, place in enumerate(places):
        for other in places[:at]:
            is_next_to = place["x"] + place["w"] <= other["x"] or other["x"] + other["w"] <= place["x"]
            is_above = place["y"] + place["h"] <= other["y"] or other["y"] + other["h"] <= place["y"]
            if not is_next_to and not is_above:
                sys.exit(f"openmetrics: two panels of the board lie over each other at {place}")
    missing = {}
    for panel in panels:
        if panel["type"] != "row" and not (panel.get("title") and panel.get("description")):
            sys.exit(f"openmetrics: panel {panel['id']} of the board has no title or no description")
        for target in panel.get("targets", []):
            expression = target["expr"].replace("$instance", ".*").replace("$__rate_interval", "15s")
            missing[expression] = panel["title"]
    count = len(missing)
    end = time.monotonic() + VALUES_S
    while missing and time.monotonic() < end:
        found = {expression: query(api, expression) for expression in missing}
        missing = {expression: title for expression, title in missing.items() if not found[expression] or isinstance(found[expression], str)}
        time.sleep(1)
    if missing:
        sys.exit("openmetrics: nothing is found for\n" + "\n".join(f"{title}: {expression}" for expression, title in missing.items()))
    print(f"openmetrics: {len(text.splitlines())} lines checked, {count} expressions of {len(panels)} panels have values")


if __name__ == "__main__":
    main()
