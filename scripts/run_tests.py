#!/usr/bin/env python3
"""Runs the Rust tests, and once more each test that failed; and scripts next to them.

usage: run_tests.py [--script COMMAND]... [ARGUMENT...]
    ARGUMENT   arguments of cargo test, such as --workspace or -p whyso-trace
    COMMAND    a script that runs next to the test programs, in one word of the shell; where it fails, the run fails

AT_ONCE programs run at a time. A program whose tests judge times, rates or the whole machine runs alone, after the others: its source
has a line that begins with "// Runs alone: " and gives the reason. The documentation's tests are one program.

The programs that took longest are listed at the end, so that a log shows where the time goes.

A test that passes the second time is a flake. Flakes are listed at the end; more than FLAKES_MAX fail the run, and so does
a test that fails twice, and a program that ends without naming the test that failed.
"""

import json
import os
import re
import shlex
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

FLAKES_MAX = 2
AT_ONCE = 3
# Bounds, in seconds: on all tests, on one program, and on one test that is run once more.
ALL_S = 3000
PROGRAM_S = 900
ONE_S = 300

CARGO = ["cargo", "test", "--release"]

RUNS_ALONE = "// Runs alone: "
SLOWEST = 15
TEST_FAILED = re.compile(r"^test (.+?)(?: - should panic)? \.\.\. FAILED\s*$")
NAME_OF_ARTIFACT = re.compile("-[0-9a-f]{16}$")


class Program:
    """A test program, as cargo built it."""

    def __init__(self, path, folder, arguments, runs_alone):
        self.command = [path]
        self.arguments = arguments
        self.runs_alone = runs_alone
        self.name = NAME_OF_ARTIFACT.sub("", os.path.basename(path))
        # The working folder and the environment that cargo gives to a test program.
        self.options = {"cwd": folder, "env": {**os.environ, "CARGO_MANIFEST_DIR": folder}}

    def passes_again(self, name):
        status, lines = run([*self.command, "--exact", name], ONE_S, **self.options)
        # A name that no test has would pass by running nothing.
        return status == 0 and any(line.startswith("test result: ok. 1 passed") for line in lines), lines


class Documentation:
    """The tests in the documentation, as one program."""

    name = "documentation"
    arguments = "--doc"
    runs_alone = False
    options = {}

    def __init__(self, arguments):
        self.command = [*CARGO, "--doc", "--no-fail-fast", *arguments]

    def passes_again(self, name):
        # rustdoc takes no name with spaces, as its tests have: all of them run again.
        _, lines = run(self.command, ONE_S)
        return f"test {name} ... ok" in lines, lines


class Script:
    """A script that tests something else."""

    arguments = "script"
    runs_alone = False
    options = {}

    def __init__(self, command):
        self.name = command
        self.command = shlex.split(command)


class Outcome:
    """How a program ended: its exit status (None where it took too long), its time in seconds, and the names of the tests that failed."""

    def __init__(self, program, status, took_s, lines):
        self.program = program
        self.status = status
        self.took_s = took_s
        self.failed = [] if isinstance(program, Script) else failed_tests(lines)


def failed_tests(lines):
    """The names of the tests that failed. What a test prints may part its name from its result: the list of failures has it in any case."""
    failed, listed, in_list = [], [], False
    for line in lines:
        if found := TEST_FAILED.match(line):
            failed.append(found[1])
        if line == "failures:":
            # The last of these lines begins the list; before it, tests may print anything.
            listed, in_list = [], True
        elif in_list and line.startswith("    "):
            listed.append(line.strip())
        else:
            in_list = False
    return list(dict.fromkeys(failed + listed))


def run(command, most_s, **options):
    """Runs a command; returns its exit status, None where it took too long, and the lines that it printed."""
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
        text = process.stdout.read().decode(errors="replace")
        status = process.wait()
    finally:
        timer.cancel()
    return None if is_late.is_set() else status, text.splitlines()


def build(arguments):
    """Builds the test programs; returns the exit status and the programs."""
    command = [*CARGO, "--no-run", "--message-format=json-render-diagnostics", *arguments]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    programs = []
    for raw in process.stdout:
        message = json.loads(raw) if raw.startswith(b"{") else {}
        if message.get("executable") and message["profile"]["test"]:
            programs.append(program_of(message))
    return process.wait(), programs


def program_of(artifact):
    folder = os.path.dirname(artifact["manifest_path"])
    target = artifact["target"]
    kind = target["kind"][0]
    of_target = f"--{kind} {target['name']}" if kind in ("test", "bin", "example", "bench") else "--lib"
    with open(target["src_path"], encoding="utf-8") as source:
        runs_alone = any(line.startswith(RUNS_ALONE) for line in source)
    return Program(artifact["executable"], folder, f"-p {package_of(artifact)} {of_target}", runs_alone)


def package_of(artifact):
    """The package's name: the part of its id between `#` and `@`, or the folder's name where the id has only a version there."""
    place, _, version = artifact["package_id"].partition("#")
    return version.split("@")[0] if "@" in version else os.path.basename(place)


class Runs:
    """Runs programs and keeps how they ended."""

    def __init__(self):
        self.ends_at = time.monotonic() + ALL_S
        self.printing = threading.Lock()
        self.outcomes = []

    def run(self, program):
        begin = time.monotonic()
        most_s = max(1, min(PROGRAM_S, self.ends_at - begin))
        status, lines = run(program.command, most_s, **program.options)
        outcome = Outcome(program, status, time.monotonic() - begin, lines)
        with self.printing:
            print(f"\n-- {program.name} ({program.arguments}): {outcome.took_s:.1f} s", *lines, sep="\n", flush=True)
            if status is None:
                print(f"stopped: it took longer than {most_s:.0f} s", flush=True)
            self.outcomes.append(outcome)

    def run_all(self, programs):
        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(self.run, [program for program in programs if not program.runs_alone]))
        for program in programs:
            if program.runs_alone:
                self.run(program)


def passes_again(program, name):
    """Whether a test passes when it is run once more."""
    print(f"\nonce more: {name} ({program.arguments})", flush=True)
    passes, lines = program.passes_again(name)
    print(*lines, sep="\n", flush=True)
    return passes


def main(arguments):
    scripts = []
    while arguments[:1] == ["--script"]:
        scripts.append(Script(arguments[1]))
        arguments = arguments[2:]
    status, programs = build(arguments)
    if status != 0:
        return status  # it was no test that failed
    has_library = not any(argument in ("--tests", "--test", "--bin", "--lib") for argument in arguments)
    documentation = [Documentation(arguments)] if has_library else []
    runs = Runs()
    runs.run_all(scripts + documentation + programs)
    print("\nprograms that took longest:")
    for outcome in sorted(runs.outcomes, key=lambda outcome: -outcome.took_s)[:SLOWEST]:
        print(f"{outcome.took_s:8.1f} s  {outcome.program.name}{' (alone)' if outcome.program.runs_alone else ''}")
    return judge([outcome for outcome in runs.outcomes if outcome.status != 0])


def judge(ended_badly):
    """Runs the tests that failed once more; returns the exit status."""
    if not ended_badly:
        print("\nno test failed")
        return 0
    unnamed = [outcome.program for outcome in ended_badly if not outcome.failed or outcome.status is None]
    flakes, failed = [], []
    for outcome in ended_badly:
        for name in outcome.failed:
            result = flakes if passes_again(outcome.program, name) else failed
            result.append(f"{name} ({outcome.program.arguments})")
    print()
    for program in unnamed:
        what = f"failed: {program.name}" if isinstance(program, Script) else f"ended without naming the test that failed: {program.arguments}"
        print(what)
    for test in failed:
        print(f"failed twice: {test}")
    print(f"flakes, which failed and passed when run once more: {len(flakes)}; {FLAKES_MAX} are allowed")
    for test in flakes:
        print(f"  {test}")
    return 1 if unnamed or failed or len(flakes) > FLAKES_MAX else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
