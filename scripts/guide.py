#!/usr/bin/env python3
"""Runs the commands of the book's pages, page by page in the order of SUMMARY.md, in one folder, against a server of its own.

The first word after ``` says what a block is, the words after it how its commands are tested:

    ```sh                 each command runs in a shell, and must end with status 0
    ```sh status=1        … or with this status (status=0,1: with one of these)
    ```sh prints=WORD     … and print this word
    ```sh stopped         each command runs until it gets Ctrl-C after some seconds
    ```sh terminal        each command runs on a terminal, on which q is typed after some seconds
    ```sh traced          each command runs where the kernel lets whyso trace, and is checked elsewhere
    ```sh checked         the commands are not run (they need root, the network, another machine or hours): their options must exist
    ```sql file=NAME      the block is written to this file of the folder; likewise for every other language

With --lessons only the tutorial's commands run; those of the other pages are checked.

Options in the text, such as `whyso run --users`, must exist too. A command runs as it stands in the page, with two exceptions: `addressed`
replaces addresses and the names of runs, and the program on the PATH is one that `shortened` gives shorter times, less data and, outside of the lessons, a server that runs already.
"""

import argparse
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

BLOCK = re.compile(r"^([ ]*)```(\w+)?[ \t]*([^\n`]*)\n(.*?)^[ ]*```[ \t]*$", re.S | re.M)
ADDRESS = re.compile(r"mysql://\w+@(?:localhost|db\d)(?::\d+)?/(\w*)(?:\?socket=[^\s'\"]*)?")
COMMAND_SECONDS_MAX = 300
SOCKETS = re.compile(r"/tmp/lesson/mysql\.sock|/run/mysqld/mysqld\.sock")
# Recordings that a page finds at most: DuckDB reads all of them at once.
KEPT = 6
# Until a page or a terminal is drawn.
BEFORE_STOP_S = 6


def pages(book):
    """The pages in the order of the contents."""
    summary = (book / "SUMMARY.md").read_text()
    return [book / path for path in re.findall(r"\]\(([^)#]+\.md)\)", summary)]


def is_lesson(page):
    return page.parent.name == "tutorial"


def commands(block):
    """The commands of a block: lines, joined where one ends in a backslash; comments and empty lines are left out."""
    joined = block.replace("\\\n", " ")
    return [line for line in joined.splitlines() if line.strip() and not line.lstrip().startswith("#")]


class Help:
    """The options that each subcommand has."""

    def __init__(self, whyso):
        self.whyso = whyso
        self.options = {}
        self.is_command = {}

    def text(self, names):
        return subprocess.run([self.whyso, *names, "--help" if names else "--help-all"], capture_output=True, text=True).stdout

    def subcommands(self, names):
        if names not in self.is_command:
            lines = self.text(names).partition("Commands:\n")[2].split("\n\n")[0]
            self.is_command[names] = set(re.findall(r"^  ([a-z][a-z-]*)", lines, re.M))
        return self.is_command[names]

    def unknown(self, words):
        """The options among the words of a command that its subcommand does not have."""
        names = ()
        for word in words:
            if word in self.subcommands(names) and word != "help":
                names += (word,)
            elif not word.startswith("-"):
                break
        if not names:
            return [] if not words or words[0].startswith(("-", "…")) else [words[0]]
        if names not in self.options:
            self.options[names] = set(re.findall(r"--[a-z][a-z0-9-]*", self.text(names))) | {"--help", "--version"}
        typed = []
        for word in words:
            # What follows is the command's own, and what differs on the other side of a comparison.
            if word == "--" or word == "--versus" and names[0] in ("ab", "prove"):
                break
            found = re.match(r"--[a-z][a-z0-9-]*", word)
            if found and names[0] != "sysbench":
                typed.append(found.group())
        return [option for option in typed if option not in self.options[names]]

    def every_option(self):
        return {"--help", "--version"}.union(*(self.options_below((name,)) for name in self.subcommands(())))

    def options_below(self, names):
        """The options of a command and of all its subcommands."""
        found = set(re.findall(r"--[a-z][a-z0-9-]*", self.text(names)))
        below = self.subcommands(names) - {"help"} if names[0] not in ("sysbench", "help") else set()
        return found.union(*(self.options_below((*names, name)) for name in below))


def whyso_commands(line):
    """The words of each call of whyso in a line."""
    calls = []
    for part in re.split(r"[|;&](?![^']*'(?:[^']*'[^']*')*[^']*$)|\$\(", line.split(" #")[0]):
        words = part.replace("`", " ").split()
        while words and (words[0] in ("sudo", "nice", "exec") or re.match(r"\w+=", words[0])):
            words.pop(0)
        if words and words[0] in ("whyso", "whyso-traced"):
            calls.append(words[1:])
    return calls


# Options with which whyso starts a throw-away server of its own, or with which the server is another one already.
STARTS_A_SERVER = ("--dsn", "--server", "--set", "--pfs", "--cold", "--at", "--defaults-file")


def shortened(words, dsn=""):
    """The words of a call of whyso, with shorter times and less data: what is tested is that they work, not what they measure. Where they would start
    a throw-away server and `dsn` is not empty, they load this server: starting one takes longer than the rest."""
    words = list(words)
    command = words[0] if words else ""
    if command not in ("run", "load", "record", "threads", "pfs", "timeline", "functions", "locks", "plot"):
        return words

    def capped(option, most):
        for at, word in enumerate(words[:-1]):
            if word == option and "--" not in words[:at]:
                number = re.match(r"[\d.]+", words[at + 1])
                if number and float(number.group()) > most:
                    words[at + 1] = str(most) + words[at + 1][number.end() :]

    if command == "record":
        capped("--for", 4)
    if command not in ("run", "load"):
        return words
    if "--at" in words:
        for at, word in enumerate(words):
            if word == "--at":
                words[at + 1] = f"{float(words[at + 1].rstrip('s')) / 20}s"
        capped("--seconds", 9)
    else:
        levels = len(words[words.index("--users") + 1].split(",")) if "--users" in words[:-1] else 7
        capped("--seconds", SECONDS_MAX if levels < 3 else 1)
    if "--find-capacity" in words:
        # Some thirty probes.
        capped("--seconds", 0.5)
        words += ["--warmup", "0.2"]
    capped("--warmup", 1)
    capped("--rows", 1000)
    capped("--tables", 2)
    capped("--rounds", 2)
    if "--stages" in words:
        at = words.index("--stages") + 1
        words[at] = re.sub(r"(\d+)s\b", "1s", words[at]).replace("500", "50")
    added = []
    if "--describe" not in words and "--dry-run" not in words:
        if not {"--stages", "--transactions"} & set(words):
            added += [] if "--seconds" in words else ["--seconds", "1"]
            added += [] if "--warmup" in words else ["--warmup", "1"]
        if command == "run" and "--no-repeat" not in words:
            added += ["--no-repeat"]
        if command == "load" and "--rounds" not in words:
            added += ["--rounds", "2"]
        if dsn and not any(word.startswith(STARTS_A_SERVER) for word in words):
            added += ["--dsn", dsn]
        added += [] if "--rows" in words else ["--rows", "1000"]
        added += [] if "--tables" in words else ["--tables", "2"]
    return words + added


# Longest level, in seconds, where there are one or two: windows of other commands have to lie in it.
SECONDS_MAX = 3

# Stands for the program on the PATH.
STAND_IN = """#!{python}
import os, sys
sys.path.insert(0, {scripts!r})
from guide import shortened
os.execv({whyso!r}, [{whyso!r}, *shortened(sys.argv[1:], os.environ["GUIDE_DSN"])])
"""


class Walk:
    def __init__(self, whyso, place, socket, can_trace):
        self.place = place
        self.socket = socket
        self.can_trace = can_trace
        self.help = Help(whyso)
        stand_in = place / "bin" / "whyso"
        stand_in.parent.mkdir(exist_ok=True)
        scripts = str(Path(__file__).resolve().parent)
        stand_in.write_text(STAND_IN.format(python=sys.executable, scripts=scripts, whyso=str(whyso.resolve())))
        stand_in.chmod(0o755)
        os.environ["PATH"] = f"{stand_in.parent}:{os.environ['PATH']}"
        self.failures = []
        self.counts = {"run": 0, "checked": 0}
        self.not_traced = 0

    def runs(self):
        """Recordings, the newest first."""
        found = [path.parent for path in (self.place / "runs").glob("*/run.json")]
        return sorted(found, key=lambda path: path.stat().st_ctime, reverse=True)

    def addressed(self, line):
        line = SOCKETS.sub(self.socket, line)
        line = ADDRESS.sub(lambda found: f"mysql://root@localhost/{found.group(1)}?socket={self.socket}", line)
        names = [path.name for path in self.runs()[:4]]
        for word, at in [("RUN", 0), ("OTHER", 1), ("THIRD", 2), ("FOURTH", 3)]:
            if re.search(rf"\b{word}\b", line) and len(names) > at:
                line = re.sub(rf"\b{word}\b", f"runs/{names[at]}", line)
        line = re.sub(r"\bNAME\b", names[-1] if names else "NAME", line)
        # Levels are shorter here.
        line = re.sub(r"@(\d+)s-(\d+)s", lambda found: f"@{int(found.group(1)) // 8}s-{int(found.group(2)) // 8}s", line)
        line = re.sub(r"(mysql://[^\s'\"]*\?[^\s'\";&|]*)(?=[\s;]|$)", r"'\1'", line)
        return line

    def fail(self, page, line, why):
        self.failures.append(f"{page}: {line}\n    {why}")
        print(f"FAILED {page}: {line}\n    {why}", flush=True)

    def check(self, page, line):
        for words in whyso_commands(line):
            self.counts["checked"] += 1
            for option in self.help.unknown(words):
                self.fail(page, line, f"whyso {words[0] if words else ''} has no {option}")

    def run(self, page, line, how):
        self.counts["run"] += 1
        shell = self.addressed(line)
        begin = time.monotonic()
        if "stopped" in how:
            status, output = self.stopped(shell)
        elif "terminal" in how:
            status, output = self.terminal(shell)
        else:
            status, output = self.plain(shell)
        wanted = [int(status) for word in how for status in word.removeprefix("status=").split(",") if word.startswith("status=")] or [0]
        if "stopped" in how:
            wanted.append(130)
        missing = [word for word in how if word.startswith("prints=") and word.removeprefix("prints=") not in output]
        if status not in wanted or missing:
            self.fail(page, line, " ".join([f"status {status}, run as {shell}", *missing]) + "\n" + output[-3000:])
        else:
            print(f"ok {time.monotonic() - begin:5.1f} s  {page}: {line.strip()}", flush=True)

    def plain(self, shell):
        # To a file: a command may leave something behind that runs on, and would hold a pipe.
        with open(self.place / ".output", "w+") as output:
            process = subprocess.Popen(
                ["bash", "-c", shell], cwd=self.place, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
            )
            try:
                status = process.wait(COMMAND_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                status = "none: it took too long"
            output.seek(0)
            return status, output.read()

    def stopped(self, shell):
        process = subprocess.Popen(
            ["bash", "-c", "exec " + shell], cwd=self.place, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        time.sleep(BEFORE_STOP_S)
        process.send_signal(signal.SIGINT)
        try:
            output, _ = process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            return "none: Ctrl-C does not end it", process.communicate()[0]
        return process.returncode, output

    def terminal(self, shell):
        pid, master = pty.fork()
        if pid == 0:
            os.chdir(self.place)
            os.environ["TERM"] = "xterm"
            os.execvp("bash", ["bash", "-c", "exec " + shell])
        output, is_typed, begin = b"", False, time.monotonic()
        while time.monotonic() - begin < 90:
            if not is_typed and time.monotonic() - begin > BEFORE_STOP_S:
                os.write(master, b"q")
                is_typed = True
            if select.select([master], [], [], 0.2)[0]:
                try:
                    chunk = os.read(master, 65536)
                except OSError:
                    break
                if not chunk:
                    break
                output += chunk
        else:
            os.kill(pid, signal.SIGKILL)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), output.decode(errors="replace")

    def page(self, book, page, is_checked_only=False):
        for old in self.runs()[KEPT:]:
            shutil.rmtree(old)
        text = page.read_text()
        # The lessons are followed to the letter.
        os.environ["GUIDE_DSN"] = "" if is_lesson(page) else f"mysql://root@localhost/?socket={self.socket}"
        name = str(page.relative_to(book))
        for indent, language, info, block in BLOCK.findall(text):
            block = re.sub(rf"^{indent}", "", block, flags=re.M)
            how = info.split()
            for word in how:
                if word.startswith("file="):
                    target = self.place / word.removeprefix("file=")
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_text(block)
            if language != "sh":
                continue
            for line in commands(block):
                self.check(name, line)
                if is_checked_only or "checked" in how:
                    continue
                if "traced" in how and not self.can_trace:
                    self.not_traced += 1
                    continue
                self.run(name, line, how)
        self.spans(name, BLOCK.sub("", text))

    def spans(self, name, text):
        """Options in the text: of the subcommand that stands before them, or else of any."""
        for span in re.findall(r"`([^`\n]+)`", text):
            if span.startswith("whyso "):
                self.check(name, span)
            elif re.match(r"--[a-z]", span):
                option = re.match(r"--[a-z0-9-]+", span).group()
                if option not in self.every and option not in NOT_OURS:
                    self.fail(name, span, f"no subcommand has {option}")

    def walk(self, book, only, is_lessons_only):
        self.every = self.help.every_option()
        for page in pages(book):
            if not only or str(page.relative_to(book)) in only:
                self.page(book, page, is_checked_only=is_lessons_only and not is_lesson(page))
        if not only:
            # Its commands are the book's, on servers that only its readers have.
            self.page(book.parent, book.parent / "README.md", is_checked_only=True)


# Options of sysbench (and of whyso sysbench), of servers and of other programs that the pages name.
NOT_OURS = set(
    """--mysql-db --mysql-socket --mysql-password --mysql-dry-run --threads --time --verbosity --forced-shutdown --rand-seed --turn-timeout
    --test --max-requests --report-interval --record --json --events --initialize-insecure --skip-networking --no-defaults""".split()
)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--whyso", type=Path, required=True, help="the program")
    parser.add_argument("--book", type=Path, required=True, help="folder of SUMMARY.md")
    parser.add_argument("--place", type=Path, required=True, help="folder in which commands run")
    parser.add_argument("--socket", required=True, help="socket of the server that stands for the servers of the pages")
    parser.add_argument("--can-trace", action="store_true", help="the kernel lets whyso trace here")
    parser.add_argument("--lessons", action="store_true", help="run the tutorial's commands, and only check those of the other pages")
    parser.add_argument("pages", nargs="*", help="only these pages, such as how-to/run.md")
    arguments = parser.parse_args()
    walk = Walk(arguments.whyso, arguments.place, arguments.socket, arguments.can_trace)
    walk.walk(arguments.book, arguments.pages, arguments.lessons)
    print(f"{walk.counts['run']} commands of the book ran, the options of {walk.counts['checked']} were checked, {len(walk.failures)} failed")
    if walk.not_traced and os.environ.get("WHYSO_NOT_TESTED"):
        with open(os.environ["WHYSO_NOT_TESTED"], "a") as lines:
            lines.write(f"not tested: {walk.not_traced} commands of the book that need the tracer\n")
    return 1 if walk.failures else 0


if __name__ == "__main__":
    sys.exit(main())
