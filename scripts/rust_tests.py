#!/usr/bin/env python3
"""Runs the Rust tests, and once more each test that failed.

usage: rust_tests.py [ARGUMENT...]     arguments of cargo test, such as --workspace or -p whyso-trace

The programs that took longest are listed at the end, so that a log shows where the time goes.

A test that passes the second time is a flake. Flakes are listed at the end; more than FLAKES_MAX fail the run, and so does
a test that fails twice, and a target that ends without naming the test that failed.
"""

import json
import os
import re
import subprocess
import sys
import threading

FLAKES_MAX = 2
# Bounds, in seconds: on all tests, and on one that is run once more.
ALL_S = 3000
ONE_S = 300

CARGO = ["cargo", "test", "--release"]

TARGET_BEGINS = re.compile(r"^\s+Running .* \((.+)\)$|^\s+(Doc)-tests ")
TARGET_TOOK = re.compile(r"^test result: .* finished in ([0-9.]+)s$")
SLOWEST = 15
TEST_FAILED = re.compile(r"^test (.+?)(?: - should panic)? \.\.\. FAILED\s*$")
TARGET_FAILED = re.compile(r"^error: (?:doctest|test) failed, to rerun pass `(.+)`")


class Target:
    """A test program, or the documentation's tests of a crate, and its tests that failed."""

    def __init__(self, program):
        self.program = program
        self.arguments = ""
        self.failed = []


class Output:
    """Reads the output of cargo test line by line; `failed` holds the targets that failed, `took_s` the time of each program."""

    def __init__(self):
        self.failed = []
        self.took_s = []
        self.target = Target(None)
        self.listed = []
        self.in_list = False

    def read(self, line):
        if found := TARGET_BEGINS.match(line):
            self.target, self.listed = Target(found[1]), []
        elif found := TARGET_TOOK.match(line):
            name = os.path.basename(self.target.program or "documentation")
            self.took_s.append((float(found[1]), re.sub("-[0-9a-f]{16}$", "", name)))
        elif found := TEST_FAILED.match(line):
            self.target.failed.append(found[1])
        elif line == "failures:":
            # The last of these lines begins the list; before it, tests may print anything.
            self.listed, self.in_list = [], True
            return
        elif self.in_list and line.startswith("    "):
            self.listed.append(line.strip())
            return
        elif found := TARGET_FAILED.match(line):
            self.target.arguments = found[1]
            # What a test prints may part its name from its result. The list has it in any case.
            self.target.failed = list(dict.fromkeys(self.target.failed + self.listed))
            self.failed.append(self.target)
            self.target, self.listed = Target(None), []
        self.in_list = False


def run(command, most_s, read=lambda line: None, **options):
    """Runs a command, prints what it prints, and returns its exit status; None where it took too long."""
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options
    )
    is_late = threading.Event()

    def stop():
        is_late.set()
        process.terminate()

    timer = threading.Timer(most_s, stop)
    timer.start()
    try:
        for raw in process.stdout:
            sys.stdout.buffer.write(raw)
            sys.stdout.buffer.flush()
            read(raw.decode(errors="replace").rstrip("\n"))
        status = process.wait()
    finally:
        timer.cancel()
    return None if is_late.is_set() else status


def folders():
    """The folder of each package, by its name."""
    command = ["cargo", "metadata", "--no-deps", "--format-version", "1"]
    packages = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)["packages"]
    return {package["name"]: os.path.dirname(package["manifest_path"]) for package in packages}


def passes_again(target, name, folder_of):
    """Whether a test passes when it is run alone."""
    passed = []

    def read(line):
        # A name that no test has would pass by running nothing.
        passed.extend(re.findall(r"^test result: ok\. 1 passed", line))

    print(f"\nonce more: {name} ({target.arguments})", flush=True)
    if target.program is None:
        return run([*CARGO, "--workspace", "--doc", "--", "--exact", name], ONE_S, read) == 0 and bool(passed)
    # The program itself: cargo would build the dependencies again, with the features that one package needs.
    package = re.search(r"-p (\S+)", target.arguments)
    folder = folder_of[package[1]] if package else os.getcwd()
    environment = {**os.environ, "CARGO_MANIFEST_DIR": folder}
    return run([target.program, "--exact", name], ONE_S, read, cwd=folder, env=environment) == 0 and bool(passed)


def main(arguments):
    output = Output()
    status = run([*CARGO, "--no-fail-fast", *arguments], ALL_S, output.read)
    print("\nprograms that took longest:")
    for took_s, name in sorted(output.took_s, reverse=True)[:SLOWEST]:
        print(f"{took_s:8.1f} s  {name}")
    if status == 0:
        print("\nno test failed")
        return 0
    if status is None:
        print(f"\nthe tests took longer than {ALL_S} s")
        return 1
    if not output.failed:
        return status  # it was no test that failed
    unnamed = [target.arguments for target in output.failed if not target.failed]
    flakes, failed = [], []
    folder_of = folders()
    for target in output.failed:
        for name in target.failed:
            result = flakes if passes_again(target, name, folder_of) else failed
            result.append(f"{name} ({target.arguments})")
    print()
    for one in unnamed:
        print(f"ended without naming the test that failed: {one}")
    for one in failed:
        print(f"failed twice: {one}")
    print(f"flakes, which failed and passed when run once more: {len(flakes)}; {FLAKES_MAX} are allowed")
    for one in flakes:
        print(f"  {one}")
    return 1 if unnamed or failed or len(flakes) > FLAKES_MAX else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
