#!/usr/bin/env python3
"""What watching costs a server with many connections and many tables: `whyso record --no-trace`, every source each second.

    watching.py WHYSO [PAIRS] [--everything] [--tables N] [--connections N] [--settle S]     about ten minutes

Starts a MariaDB of its own in /var/tmp, which is removed at the end, with its Performance Schema on as it is by default, or with every
instrument and consumer (--everything); makes the tables, opens the connections, and loads 32 of them (16 with point selects, 16 with reads and
writes). It never waits for the disk to be written, so that its CPUs are what it is bound by. Then pairs of windows of 10 s, one watched and one not, in random order. Printed are the ratio of the throughputs with its interval by
bootstrap over the pairs, and, as a machine's noise is greater than what is looked for, the CPU time of the server's threads that serve the watcher:
of all that the server used, and of what the machine has.
"""
import argparse
import csv
import io
import os
import random
import resource
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

WINDOW_S = 10.0
USERS = 16
TABLES_OF_LOAD = 4
WATCHER = "watcher"
NS = 1e9


class Connection:
    """A connection by the server's socket, of a user without a password."""

    def __init__(self, path, user="root"):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(120)
        for attempt in range(50):
            try:
                self.socket.connect(path)
                break
            except BlockingIOError:
                time.sleep(0.05)
        self.packet()
        # LONG_PASSWORD, PROTOCOL_41, TRANSACTIONS, SECURE_CONNECTION
        flags = 0x1 | 0x200 | 0x2000 | 0x8000
        self.send(struct.pack("<IIB23x", flags, 1 << 24, 45) + user.encode() + b"\0\0", 1)
        answer = self.packet()
        if answer[0] != 0:
            sys.exit(f"watching.py: no connection: {answer[3:]!r}")

    def send(self, body, number=0):
        self.socket.sendall(struct.pack("<I", len(body))[:3] + bytes([number]) + body)

    def exactly(self, count):
        parts = []
        while count:
            part = self.socket.recv(min(count, 1 << 20))
            if not part:
                sys.exit("watching.py: the server closed a connection")
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    def packet(self):
        length = struct.unpack("<I", self.exactly(4)[:3] + b"\0")[0]
        return self.exactly(length)

    def query(self, sql):
        """Rows of text, None for NULL."""
        self.send(b"\3" + sql.encode())
        first = self.packet()
        if first[0] == 0xFF:
            sys.exit(f"watching.py: {sql[:80]}: {first[9:].decode()}")
        if first[0] == 0:
            return []
        while self.packet()[0] != 0xFE:
            pass
        rows = []
        while True:
            packet = self.packet()
            if packet[0] == 0xFE and len(packet) < 9:
                return rows
            rows.append(cells(packet))


def cells(packet):
    row, at = [], 0
    while at < len(packet):
        length, at = packet[at], at + 1
        if length == 0xFB:
            row.append(None)
            continue
        width = {0xFC: 2, 0xFD: 3, 0xFE: 8}.get(length, 0)
        if width:
            length, at = int.from_bytes(packet[at : at + width], "little"), at + width
        row.append(packet[at : at + length].decode(errors="replace"))
        at += length
    return row


class Server:
    def __init__(self, folder, everything, tables, connections):
        self.folder, self.path = folder, f"{folder}/s"
        data = f"{folder}/data"
        environment = dict(os.environ, TMPDIR=folder)
        install = ["mariadb-install-db", "--no-defaults", "--user=root", "--skip-test-db", f"--datadir={data}"]
        install += ["--auth-root-authentication-method=normal"]
        subprocess.run(install, env=environment, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        words = ["mariadbd", "--no-defaults", "--user=root", "--skip-networking", f"--datadir={data}", f"--socket={self.path}"]
        words += [f"--max-connections={connections + 200}", f"--table-open-cache={tables * 2}"]
        words += [f"--table-definition-cache={tables * 2}", "--open-files-limit=20000", "--innodb-buffer-pool-size=512M"]
        words += ["--innodb-flush-log-at-trx-commit=2", "--innodb-flush-method=nosync", "--performance-schema=ON", "--back-log=1000"]
        if everything:
            words += ["--performance-schema-instrument=%=ON"]
            levels = [f"{kind}-{much}" for kind in ("events-stages", "events-statements", "events-transactions", "events-waits") for much in ("current", "history", "history-long")]
            words += [f"--performance-schema-consumer-{one}=ON" for one in levels]
        log = open(f"{folder}/log", "w")
        self.process = subprocess.Popen(words, env=environment, stdout=log, stderr=log)
        until = time.monotonic() + 60
        while not os.path.exists(self.path):
            if time.monotonic() > until or self.process.poll() is not None:
                sys.exit(f"watching.py: the server did not start:\n{open(f'{folder}/log').read()[-2000:]}")
            time.sleep(0.1)
        self.control = Connection(self.path)

    def make_tables(self, count):
        """Each with a line, and opened once, so that every cache and counter of the server knows it."""
        self.control.query("CREATE DATABASE many")
        for number in range(count):
            self.control.query(f"CREATE TABLE many.t{number} (id INT PRIMARY KEY, k INT, KEY (k)) ENGINE=InnoDB")
            self.control.query(f"INSERT INTO many.t{number} VALUES (1, 1)")

    def thread_ids(self, user):
        return [int(tid) for tid, in self.control.query(f"SELECT TID FROM information_schema.PROCESSLIST WHERE USER = '{user}'")]

    def executed(self):
        """Statements that the load executed: the watcher prepares none."""
        return int(self.control.query("SHOW GLOBAL STATUS LIKE 'Com_stmt_execute'")[0][1])

    def dsn(self, user, schema):
        return f"mysql://{user}@localhost/{schema}?socket={self.path}"

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(10)


def cpu_s(pid):
    """User and system time of a process, with its ended threads."""
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def threads_s(pid, tids):
    """Time on a CPU by thread, to the nanosecond."""
    run_s = {}
    for tid in tids:
        try:
            with open(f"/proc/{pid}/task/{tid}/schedstat") as schedstat:
                run_s[tid] = int(schedstat.read().split()[0]) / NS
        except FileNotFoundError:
            pass
    return run_s


def machine_s():
    """Time that all CPUs were at work; what others took from this machine is in none."""
    with open("/proc/stat") as stat:
        fields = [int(field) for field in stat.readline().split()[1:9]]
    return (sum(fields) - fields[3] - fields[4] - fields[7]) / os.sysconf("SC_CLK_TCK")


class Threads:
    """The server's threads that serve the watcher, of which some may come and go."""

    def __init__(self, server):
        self.server, self.first, self.last = server, {}, {}
        self.sample()

    def sample(self):
        tids = set(self.server.thread_ids(WATCHER)) | set(self.last)
        for tid, run_s in threads_s(self.server.process.pid, tids).items():
            self.first.setdefault(tid, run_s)
            self.last[tid] = run_s

    def grown_s(self):
        return sum(self.last[tid] - self.first[tid] for tid in self.last)


def window(server, whyso, folder, watched, settle):
    """One window: what was executed, and CPU times in seconds."""
    watcher = None
    if watched:
        words = [whyso, "record", "--dsn", server.dsn(WATCHER, ""), "--no-trace", "--json", "--out", folder]
        watcher = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    time.sleep(settle)
    own = Threads(server)
    begin, executed, of_server, of_machine = time.monotonic(), server.executed(), cpu_s(server.process.pid), machine_s()
    of_whyso = cpu_s(watcher.pid) if watcher else 0.0
    while time.monotonic() - begin < WINDOW_S:
        time.sleep(1)
        own.sample()
    took = time.monotonic() - begin
    rates = {
        "rate": (server.executed() - executed) / took,
        "server": (cpu_s(server.process.pid) - of_server) / took,
        "machine": (machine_s() - of_machine) / took,
        "watcher": own.grown_s() / took,
        "whyso": (cpu_s(watcher.pid) - of_whyso) / took if watcher else 0.0,
        "connections": len(own.first),
    }
    if watcher:
        watcher.send_signal(signal.SIGINT)
        try:
            messages = watcher.communicate(timeout=60)[1]
        except subprocess.TimeoutExpired:
            watcher.kill()
            sys.exit("watching.py: whyso record did not end")
        if watcher.returncode != 0 or not own.first:
            sys.exit(f"watching.py: whyso record did not watch: {messages.decode()[-1000:]}")
    return rates


def interval(ratios):
    """Of the median, by bootstrap."""
    medians = sorted(median(random.choices(ratios, k=len(ratios))) for _ in range(4000))
    return medians[100], medians[3899]


def median(values):
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def samplers(whyso, folder):
    """By sampler: readings, put off or missed, their time and CPU time in ms, of all recordings."""
    sums = {}
    for run in sorted(os.listdir(folder)):
        out = subprocess.run([whyso, "export", f"{folder}/{run}", "--source", "watch"], capture_output=True, text=True)
        last = {}
        for line in csv.DictReader(io.StringIO(out.stdout)):
            last[(line["instance"], line["metric"])] = float(line["value"])
        for (sampler, metric), value in last.items():
            of_sampler = sums.setdefault(sampler, {})
            of_sampler[metric] = of_sampler.get(metric, 0.0) + value
    return sums


def main():
    arguments = argparse.ArgumentParser(usage=__doc__)
    arguments.add_argument("whyso")
    arguments.add_argument("pairs", nargs="?", type=int, default=8)
    arguments.add_argument("--everything", action="store_true")
    arguments.add_argument("--tables", type=int, default=10_000)
    arguments.add_argument("--connections", type=int, default=1_000)
    arguments.add_argument("--settle", type=float, default=3.0)
    options = arguments.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("watching.py: was asked to end"))
    folder = tempfile.mkdtemp(prefix="whyso-watching-", dir="/var/tmp")
    server, loads = None, []
    try:
        server = Server(folder, options.everything, options.tables, options.connections)
        server.control.query(f"CREATE USER {WATCHER}@localhost")
        server.control.query(f"GRANT ALL ON *.* TO {WATCHER}@localhost")
        begun = time.monotonic()
        server.make_tables(options.tables)
        print(f"{options.tables} tables in {time.monotonic() - begun:.0f} s", file=sys.stderr, flush=True)
        idle = [Connection(server.path) for _ in range(options.connections - 2 * USERS)]
        seconds = int(options.pairs * 2 * (WINDOW_S + options.settle + 4) + 120)
        for workload in ("oltp-point-select", "oltp-read-write"):
            server.control.query(f"CREATE DATABASE {workload.replace('-', '_')}")
            words = [options.whyso, "load", workload, "--dsn", server.dsn("root", workload.replace("-", "_"))]
            words += ["--users", str(USERS), "--tables", str(TABLES_OF_LOAD), "--rows", "10000", "--warmup", "1", "--seconds", str(seconds), "--json"]
            loads.append(subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        until = time.monotonic() + 90
        while len(server.thread_ids("root")) < options.connections and time.monotonic() < until:
            time.sleep(1)
        time.sleep(5)
        print(f"{len(server.thread_ids('root'))} connections, {server.control.query('SHOW GLOBAL STATUS LIKE %r' % 'Open_tables')[0][1]} open tables", file=sys.stderr, flush=True)
        pairs = []
        for _ in range(options.pairs):
            order = random.sample([True, False], 2)
            pair = {watched: window(server, options.whyso, f"{folder}/runs", watched, options.settle) for watched in order}
            pairs.append(pair)
            if any(load.poll() is not None for load in loads):
                sys.exit("watching.py: a load ended before the windows did")
            with_, without = pair[True], pair[False]
            print(f"{without['rate']:,.0f} → {with_['rate']:,.0f} statements/s, {with_['watcher'] * 1000:.1f} ms/s of {with_['connections']} connections", file=sys.stderr, flush=True)
        print_table(pairs, samplers(options.whyso, f"{folder}/runs"), len(idle), options)
    finally:
        for load in loads:
            if load.poll() is None:
                load.send_signal(signal.SIGINT)
                try:
                    load.wait(30)
                except subprocess.TimeoutExpired:
                    load.kill()
        if server:
            server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def print_table(pairs, sums, idle, options):
    ratios = [pair[True]["rate"] / pair[False]["rate"] for pair in pairs]
    low, high = interval(ratios)
    mean = lambda key: sum(pair[True][key] for pair in pairs) / len(pairs)
    cpus = os.cpu_count()
    setup = "every instrument and consumer on" if options.everything else "its Performance Schema as it is by default"
    print(f"\n{idle} idle connections and {2 * USERS} loaded ones, {options.tables} tables, {setup}; {len(pairs)} pairs.\n")
    print("| | |\n| --- | ---: |")
    print(f"| statements/s without | {median([pair[False]['rate'] for pair in pairs]):,.0f} |")
    print(f"| throughput with the watcher, median of the pairs | {100 * (median(ratios) - 1):+.1f} % ({100 * (low - 1):+.1f} to {100 * (high - 1):+.1f}) |")
    print(f"| CPU of the server's threads that serve the watcher | {1000 * mean('watcher'):.1f} ms/s |")
    print(f"| of the CPU time that the server used | {100 * mean('watcher') / mean('server'):.2f} % |")
    print(f"| of the machine's {cpus} CPUs | {100 * mean('watcher') / cpus:.2f} % |")
    print(f"| whyso's own CPU | {1000 * mean('whyso'):.1f} ms/s, {100 * mean('whyso') / cpus:.2f} % of the machine |")
    print("\n| sampler | readings | ms a reading | ms of its own CPU | put off or missed | failed |\n| --- | ---: | ---: | ---: | ---: | ---: |")
    for sampler, of in sorted(sums.items(), key=lambda one: -one[1].get("duration_ns", 0)):
        readings = of.get("readings", 0)
        attempts = readings + of.get("failed", 0)
        each = lambda metric: f"{of.get(metric, 0) / attempts / 1e6:.2f}" if attempts else "–"
        print(f"| {sampler} | {readings:.0f} | {each('duration_ns')} | {each('cpu_ns')} | {of.get('missed', 0):.0f} | {of.get('failed', 0):.0f} |")


if __name__ == "__main__":
    main()
