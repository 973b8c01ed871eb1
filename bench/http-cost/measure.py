#!/usr/bin/env python3
"""What a request costs the client: `whyso load --url` against wrk and oha, and the p99 of an open loop against blocking threads.

    measure.py [PART…] [--whyso PATH] [--oha PATH] [--rounds N] [--seconds S] [--write]

Parts are `file` (nginx with a small file), `app` (the sample application) and `latency` (an open loop on nginx's file); without any, all of
them. Clients run one after the other as processes of their own, in rounds; each round begins with another client. Servers and clients are on
CPUs of their own (--server-cpus, --client-cpus). One JSON comes on standard output, as bench/tables.py takes it. --write keeps it as
results.json and writes the README's tables. Progress and single rounds come on standard error.
"""

import argparse
import contextlib
import datetime
import json
import os
import pathlib
import platform
import re
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

FOLDER = pathlib.Path(__file__).resolve().parent
REPOSITORY = FOLDER.parent.parent
PARTS = ("file", "app", "latency")
CPU_RATIO_MAX = 0.8
THROUGHPUT_RATIO_MIN = 1.0
P99_RATIO_MAX = 1.05
# Share of requests that may fail: a server may close a connection that it has kept open just as a request is sent.
ERRORS_SHARE_MAX = 0.01
# The longest that a program may take to start or to end, in addition to its time of load.
START_S = 60.0
FILE_BYTES = 612
NGINX = """
worker_processes {workers};
worker_rlimit_nofile 16384;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
daemon off;
events {{ worker_connections 8192; }}
http {{
    access_log off;
    sendfile on;
    tcp_nopush on;
    keepalive_requests 1000000000;
    keepalive_timeout 600;
    open_file_cache max=16 inactive=600s;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    default_type text/html;
    server {{
        listen 127.0.0.1:{port} backlog=4096;
        root {folder}/www;
    }}
}}
"""


class Failure(Exception):
    """One sentence for the user."""


def note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def cpu_list(text: str) -> set[int]:
    cpus = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        cpus.update(range(int(first), int(last or first) + 1))
    return cpus


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def run(command: list[str], cpus: set[int], bound_s: float) -> tuple[str, float, float]:
    """What a program printed, its CPU seconds, and the megabytes of memory that it had at most."""

    def on_cpus() -> None:
        os.sched_setaffinity(0, cpus)
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))

    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as errors:
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=errors, preexec_fn=on_cpus)
        deadline = time.monotonic() + bound_s
        while True:
            pid, status, usage = os.wait4(child.pid, os.WNOHANG)
            if pid:
                break
            if time.monotonic() > deadline:
                child.kill()
                os.wait4(child.pid, 0)
                child.returncode = -9
                raise Failure(f"{command[0]} did not end within {bound_s:.0f} s")
            time.sleep(0.01)
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        errors.seek(0)
        if child.returncode != 0:
            raise Failure(f"{' '.join(command)} failed: {errors.read()[-500:].strip()}")
        return out.read(), usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


@contextlib.contextmanager
def nginx(cpus: set[int]):
    """A server of its own with one small file; yields the file's address."""
    program = shutil.which("nginx") or "/usr/sbin/nginx"
    if not os.access(program, os.X_OK):
        raise Failure("nginx is needed: apt-get install nginx-light")
    with tempfile.TemporaryDirectory(prefix="whyso-http-cost-") as folder:
        port = free_port()
        www = pathlib.Path(folder, "www")
        www.mkdir()
        (www / "small.html").write_text("x" * FILE_BYTES)
        os.chmod(folder, 0o755)
        conf = pathlib.Path(folder, "nginx.conf")
        conf.write_text(NGINX.format(folder=folder, port=port, workers=len(cpus)))
        server = subprocess.Popen(
            [program, "-p", folder, "-c", str(conf), "-e", f"{folder}/error.log"],
            preexec_fn=lambda: os.sched_setaffinity(0, cpus),
        )
        url = f"http://127.0.0.1:{port}/small.html"
        try:
            wait_for(url)
            yield url
        finally:
            server.terminate()
            try:
                server.wait(20)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait(20)


def wait_for(url: str) -> None:
    deadline = time.monotonic() + START_S
    while True:
        try:
            with urllib.request.urlopen(url, timeout=20) as answer:
                answer.read()
                return
        except OSError as error:
            if time.monotonic() > deadline:
                raise Failure(f"{url} does not answer: {error}") from error
            time.sleep(0.1)


@contextlib.contextmanager
def sample_application(whyso: str, cpus: set[int], clients: int):
    """The sample application; yields the address of one of its pages."""
    printed = subprocess.run(
        [whyso, "server", "app", "start", "--php", "fpm", "--workers", "8", "--max-clients", str(clients)],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600,
        preexec_fn=lambda: os.sched_setaffinity(0, cpus),
    )
    if printed.returncode != 0:
        raise Failure(f"the sample application did not start: {printed.stderr.strip()[-500:]}")
    folder = re.search(r"^ *folder *(\S+)", printed.stdout, re.MULTILINE)
    if folder is None:
        raise Failure("the sample application does not say where its folder is")
    try:
        yield printed.stdout.splitlines()[0].rstrip("/") + "/event.php?id=7"
    finally:
        subprocess.run([whyso, "server", "app", "stop", folder[1]], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, timeout=120, check=False)


class Whyso:
    name = "whyso"

    def __init__(self, path: str, engine: str):
        self.path, self.engine = path, engine

    def command(self, url: str, connections: int, seconds: float) -> list[str]:
        return [self.path, "load", "--url", url, "--users", str(connections), "--seconds", str(seconds), "--warmup", "0",
                "--engine", self.engine, "--json"]

    @staticmethod
    def rate(printed: str, _seconds: float) -> tuple[int, float]:
        level = json.loads(printed)["levels"][0]
        if level["errors"] > level["transactions"] * ERRORS_SHARE_MAX:
            raise Failure(f"whyso counted errors: {level['errors_by_code']}")
        return level["transactions"], level["transactions_per_s"]


class Wrk:
    name = "wrk"

    def __init__(self, path: str):
        self.path = path

    def command(self, url: str, connections: int, seconds: float) -> list[str]:
        return [self.path, "-t1", f"-c{connections}", f"-d{max(1, round(seconds))}s", "--timeout", "30s", url]

    @staticmethod
    def rate(printed: str, _seconds: float) -> tuple[int, float]:
        done = re.search(r"(\d+) requests in ", printed)
        per_s = re.search(r"Requests/sec: +([\d.]+)", printed)
        bad = re.search(r"Non-2xx or 3xx responses: (\d+)", printed)
        broken = re.search(r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)", printed)
        errors = sum(int(count) for found in (bad, broken) if found for count in found.groups())
        if done is None or per_s is None or errors > int(done[1]) * ERRORS_SHARE_MAX:
            raise Failure(f"wrk had errors: {printed[-300:].strip()}")
        return int(done[1]), float(per_s[1])


class Oha:
    name = "oha"

    def __init__(self, path: str):
        self.path = path

    def command(self, url: str, connections: int, seconds: float) -> list[str]:
        shown = subprocess.run([self.path, "--help"], capture_output=True, text=True, timeout=20, check=True).stdout
        as_json = ["--output-format", "json"] if "--output-format" in shown else ["--json"]
        return [self.path, "--no-tui", *as_json, "-z", f"{max(1, round(seconds))}s", "-c", str(connections), url]

    @staticmethod
    def rate(printed: str, _seconds: float) -> tuple[int, float]:
        answer = json.loads(printed)
        codes = answer["statusCodeDistribution"]
        done = codes.get("200", 0)
        others = sum(count for name, count in answer["errorDistribution"].items() if "deadline" not in name)
        if set(codes) - {"200"} or others > done * ERRORS_SHARE_MAX:
            raise Failure(f"oha had errors: {codes} {others}")
        return done, done / answer["summary"]["total"]


def rounds_of(clients: list, url: str, connections: int, asked: argparse.Namespace) -> dict:
    """By client: requests per second, CPU microseconds per request, and megabytes, of each round."""
    figures = {client.name: [] for client in clients}
    bound_s = asked.seconds + START_S
    for client in clients:
        run(client.command(url, connections, 1), asked.client_cpus, bound_s)
    for number in range(asked.rounds):
        first = number % len(clients)
        for client in clients[first:] + clients[:first]:
            printed, cpu_s, megabytes = run(client.command(url, connections, asked.seconds), asked.client_cpus, bound_s)
            done, per_s = client.rate(printed, asked.seconds)
            if not done:
                raise Failure(f"{client.name} has no request that counts")
            figures[client.name].append((per_s, cpu_s / done * 1e6, megabytes))
            note(f"  round {number + 1}, {connections} connections, {client.name}: {per_s:.0f}/s, {cpu_s / done * 1e6:.2f} µs, {megabytes:.0f} MB")
    return figures


def spread(ratios: list[float]) -> str:
    return f"**{statistics.median(ratios):.2f}** ({min(ratios):.2f} to {max(ratios):.2f})"


def verdict(holds: bool) -> str:
    return "" if holds else " ✗"


def cost_rows(part: str, url: str, clients: list, asked: argparse.Namespace) -> list[list[str]]:
    rows = []
    for connections in asked.connections:
        figures = rounds_of(clients, url, connections, asked)
        ours = figures["whyso"]
        for other in clients[1:]:
            theirs = figures[other.name]
            per_s = [mine[0] / its[0] for mine, its in zip(ours, theirs, strict=True)]
            cpu = [mine[1] / its[1] for mine, its in zip(ours, theirs, strict=True)]
            is_target = other.name == "wrk"
            median = lambda of, place: statistics.median(figure[place] for figure in of)
            rows.append([
                {"file": "nginx, small file", "app": "sample application"}[part], str(connections), other.name,
                f"{median(ours, 0):.0f}", f"{median(theirs, 0):.0f}",
                spread(per_s) + verdict(not is_target or statistics.median(per_s) >= THROUGHPUT_RATIO_MIN),
                f"{median(ours, 1):.2f}", f"{median(theirs, 1):.2f}",
                spread(cpu) + verdict(not is_target or statistics.median(cpu) <= CPU_RATIO_MAX),
                f"{median(ours, 2):.0f}", f"{median(theirs, 2):.0f}",
            ])
    return rows


def latency_rows(url: str, whyso: str, asked: argparse.Namespace) -> list[list[str]]:
    """An open loop at half of what blocking threads reach in a closed one, over threads and over event loops."""
    rows = []
    bound_s = asked.seconds + START_S
    for connections in asked.connections:
        closed = Whyso(whyso, "threads")
        printed, _, _ = run(closed.command(url, connections, asked.seconds), asked.client_cpus, bound_s)
        rate = round(closed.rate(printed, asked.seconds)[1] * 0.5)
        engines = ["threads", *asked.loops]
        found = {engine: [] for engine in engines}
        for number in range(asked.rounds):
            first = number % len(engines)
            for engine in engines[first:] + engines[:first]:
                command = [whyso, "load", "--url", url, "--users", str(connections), "--rate", str(rate), "--engine", engine,
                           "--seconds", str(asked.seconds), "--warmup", "1", "--percentiles", "50,99", "--json"]
                printed, _, _ = run(command, asked.client_cpus, bound_s)
                level = json.loads(printed)["levels"][0]
                times = level["latency_ms"]
                found[engine].append((times["p50"] * 1e3, times["p99"] * 1e3))
                note(f"  round {number + 1}, {rate}/s, {connections} connections, {engine}: p50 {times['p50'] * 1e3:.0f} µs, p99 {times['p99'] * 1e3:.0f} µs")
        for engine in asked.loops:
            pairs = list(zip(found[engine], found["threads"], strict=True))
            median = lambda of, place: statistics.median(times[place] for times in of)
            p99 = [ours[1] / theirs[1] for ours, theirs in pairs]
            rows.append([
                str(connections), str(rate), engine,
                f"{median(found['threads'], 0):.0f}", f"{median(found[engine], 0):.0f}", spread([ours[0] / theirs[0] for ours, theirs in pairs]),
                f"{median(found['threads'], 1):.0f}", f"{median(found[engine], 1):.0f}", spread(p99) + verdict(statistics.median(p99) <= P99_RATIO_MAX),
            ])
    return rows


def table(columns: list[str], align: list[str], rows: list[list[str]], asked: argparse.Namespace) -> dict:
    commit = subprocess.run(["git", "describe", "--always", "--dirty", "--exclude=*"], cwd=REPOSITORY, capture_output=True, text=True, check=False).stdout.strip()
    load = os.getloadavg()[0]
    cpus = f"server on CPU {asked.server_cpus_text}, client on CPU {asked.client_cpus_text}"
    machine = f"{os.cpu_count()} CPUs, {cpu_model()}, Linux {platform.release()}, load average {load:.1f} at the end, {cpus}, {asked.rounds} rounds of {asked.seconds:g} s"
    return {"date": datetime.date.today().isoformat(), "machine": machine, "commit": commit or "not recorded",
            "entered": asked.entered, "columns": columns, "align": align, "rows": rows}


def cpu_model() -> str:
    found = re.search(r"^model name\s*: (.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return found[1] if found else platform.machine()


def clients(whyso: str, asked: argparse.Namespace) -> list:
    wrk = shutil.which(asked.wrk)
    if wrk is None:
        raise Failure("wrk is needed: apt-get install wrk")
    found = [Whyso(whyso, asked.engine), Wrk(wrk)]
    oha = shutil.which(asked.oha)
    if oha is None and not asked.without_oha:
        raise Failure("oha is needed: cargo install oha --locked, then --oha PATH; or --without-oha")
    return found if asked.without_oha else [*found, Oha(oha)]


def measure(asked: argparse.Namespace) -> dict:
    whyso = shutil.which(asked.whyso)
    if whyso is None:
        raise Failure(f"{asked.whyso} is not there: build it, and name it by --whyso")
    tables = {}
    costs = []
    if "file" in asked.parts or "latency" in asked.parts:
        with nginx(asked.server_cpus) as url:
            if "file" in asked.parts:
                note(f"nginx, a file of {FILE_BYTES} bytes")
                costs += cost_rows("file", url, clients(whyso, asked), asked)
            if "latency" in asked.parts:
                note("an open loop on the same file")
                tables["latency"] = table(
                    ["connections", "requests/s", "engine", "p50 µs threads", "engine", "ratio", "p99 µs threads", "engine", "ratio"],
                    ["right", "right", "left", "right", "right", "left", "right", "right", "left"],
                    latency_rows(url, whyso, asked), asked)
    if "app" in asked.parts:
        with sample_application(whyso, asked.server_cpus, max(asked.connections) + 32) as url:
            note(f"the sample application, {url}")
            costs += cost_rows("app", url, clients(whyso, asked), asked)
    if costs:
        tables["cost"] = table(
            ["server", "connections", "against", "requests/s whyso", "the other", "ratio", "CPU µs/request whyso", "the other", "ratio", "peak MB whyso", "the other"],
            ["left", "right", "left", "right", "right", "left", "right", "right", "left", "right", "right"], costs, asked)
    return {"tables": tables}


def write(results: dict) -> None:
    """Keeps the results next to the README, which gets a place for each table that it does not show yet."""
    kept = FOLDER / "results.json"
    if kept.exists():
        before = json.loads(kept.read_text())
        results = {"tables": {**before["tables"], **results["tables"]}}
    kept.write_text(json.dumps(results, indent=2, ensure_ascii=False) + "\n")
    readme = FOLDER / "README.md"
    text = readme.read_text()
    for name in results["tables"]:
        if f"<!-- results: {name} -->\n" not in text:
            text = text.rstrip("\n") + f"\n\n<!-- results: {name} -->\n<!-- results: end -->\n"
    readme.write_text(text)
    subprocess.run([REPOSITORY / "bench" / "tables.py", FOLDER.name], check=True)


def arguments() -> argparse.Namespace:
    last = (os.cpu_count() or 1) - 1
    apart = (str(last), f"0-{last - 1}" if last > 1 else "0")
    options = argparse.ArgumentParser(usage=__doc__)
    options.add_argument("parts", nargs="*", choices=[*PARTS, []], metavar="PART")
    options.add_argument("--whyso", default="whyso")
    options.add_argument("--wrk", default="wrk")
    options.add_argument("--oha", default="oha")
    options.add_argument("--without-oha", action="store_true")
    options.add_argument("--engine", default="auto", help="of whyso in the closed loop")
    options.add_argument("--loops", default="epoll,io-uring", help="engines that the open loop compares to threads")
    options.add_argument("--connections", default="32,256")
    options.add_argument("--rounds", type=int, default=7)
    options.add_argument("--seconds", type=float, default=5.0)
    options.add_argument("--server-cpus", default=apart[0])
    options.add_argument("--client-cpus", default=apart[1])
    options.add_argument("--entered", default="not recorded", help="commit by which the figures enter the repository")
    options.add_argument("--write", action="store_true")
    asked = options.parse_args()
    asked.parts = asked.parts or list(PARTS)
    asked.connections = [int(number) for number in asked.connections.split(",")]
    asked.loops = asked.loops.split(",")
    asked.server_cpus_text, asked.client_cpus_text = asked.server_cpus, asked.client_cpus
    asked.server_cpus, asked.client_cpus = cpu_list(asked.server_cpus), cpu_list(asked.client_cpus)
    if asked.rounds < 1 or asked.seconds < 1:
        options.error("give at least one round and one second")
    return asked


def main() -> int:
    asked = arguments()
    try:
        results = measure(asked)
    except Failure as failure:
        note(f"measure.py: {failure}")
        return 1
    print(json.dumps(results, indent=2, ensure_ascii=False))
    if asked.write:
        write(results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
