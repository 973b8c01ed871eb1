#!/usr/bin/env python3
"""Is everything put back when an experiment is killed?

    bench/proof/kills.py [--count 50]     # as root; appends to kills.jsonl

Each time, `whyso ab` switches two settings of a server that runs already, and pauses a busy program. It is killed with SIGKILL at a random moment. Then the
program must run again within two seconds, and the next command of whyso on that server must put the settings back.
"""

import argparse
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "kills.jsonl"
SETTINGS = ("innodb_io_capacity", "innodb_max_dirty_pages_pct")
START_SECONDS_MAX = 60
RESUME_SECONDS_MAX = 2.0


def mysql(socket, sql):
    typed = ["mariadb", "--no-defaults", "--user=root", f"--socket={socket}", "--batch", "--skip-column-names", f"--execute={sql}"]
    return subprocess.run(typed, capture_output=True, text=True, timeout=20)


def values(socket):
    return [mysql(socket, f"SELECT @@GLOBAL.{name}").stdout.strip() for name in SETTINGS]


def state_of(pid):
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]


def one(number, whyso, folder, socket, before, spinner, draw):
    dsn = f"mysql://root@localhost/?socket={socket}"
    typed = [whyso, "ab", "oltp-point-select", "--dsn", dsn, "--users", "2", "--tables", "1", "--rows", "1000", "--seconds", "60", "--window", "200ms"]
    typed += [word for name, value in zip(SETTINGS, ("301", "81")) for word in ("--set", f"{name}={value}")]
    typed += ["--versus", "--set", f"{SETTINGS[0]}=402", "--set", f"{SETTINGS[1]}=82", "--pause", str(spinner.pid)]
    victim = subprocess.Popen(typed, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after_s = draw.uniform(0.3, 9.0)
    time.sleep(after_s)
    was_running = victim.poll() is None
    at_kill, paused = values(socket), state_of(spinner.pid) == "T"
    victim.send_signal(signal.SIGKILL)
    victim.wait()
    began = time.monotonic()
    while state_of(spinner.pid) == "T" and time.monotonic() - began < 10:
        time.sleep(0.01)
    resumed_s = time.monotonic() - began
    back = subprocess.run(
        [whyso, "ab", "oltp-point-select", "--dsn", dsn, "--users", "1", "--tables", "1", "--rows", "1000", "--seconds", "10", "--versus", "--users", "2"],
        cwd=folder, capture_output=True, text=True, timeout=120,
    )
    now = values(socket)
    return {
        "number": number, "after_s": round(after_s, 2), "was_running": was_running, "at_kill": at_kill, "changed_at_kill": at_kill != before, "paused_at_kill": paused,
        "resumed_s": round(resumed_s, 3), "resumed": state_of(spinner.pid) != "T" and resumed_s <= RESUME_SECONDS_MAX, "put_back": now == before,
        "next_command": back.returncode, "date": time.strftime("%Y-%m-%d"),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--whyso", default="whyso")
    options = parser.parse_args()
    found = [json.loads(line) for line in RESULTS.read_text().splitlines()] if RESULTS.exists() else []
    draw = random.Random(len(found) + 1)
    with tempfile.TemporaryDirectory(prefix="whyso-kills-", dir="/var/tmp") as name:
        folder = Path(name)
        data, socket = folder / "data", folder / "s"
        install = ["mariadb-install-db", "--no-defaults", f"--datadir={data}", "--auth-root-authentication-method=normal", "--skip-test-db", "--user=root"]
        subprocess.run(install, capture_output=True, check=True, timeout=120)
        server = subprocess.Popen(
            ["mariadbd", "--no-defaults", "--user=root", f"--datadir={data}", f"--socket={socket}", "--skip-networking", f"--pid-file={folder}/pid",
             "--innodb-buffer-pool-size=64M"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        spinner = subprocess.Popen([sys.executable, "-c", "while True: pass"])
        try:
            begin = time.monotonic()
            while mysql(socket, "SELECT 1").returncode != 0:
                if time.monotonic() - begin > START_SECONDS_MAX:
                    sys.exit("the server did not start")
                time.sleep(0.2)
            mysql(socket, "CREATE DATABASE IF NOT EXISTS whyso")
            before = values(socket)
            for number in range(options.count):
                result = one(number, options.whyso, folder, socket, before, spinner, draw)
                with RESULTS.open("a") as out:
                    out.write(json.dumps(result) + "\n")
                found.append(result)
                print(result, flush=True)
        finally:
            for process in (spinner, server):
                process.kill()
                process.wait()
    running = [result for result in found if result["was_running"]]
    changed, paused = (sum(result[name] for result in running) for name in ("changed_at_kill", "paused_at_kill"))
    right = sum(result["put_back"] and result["resumed"] for result in running)
    print(f"{len(running)} kills of a running experiment; settings were changed at {changed} of them, a program was paused at {paused}. All as before: {right}.")


if __name__ == "__main__":
    main()
