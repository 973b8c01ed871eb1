#!/usr/bin/env python3
"""Tests setup.sh: `make build` on a machine that lacks a compiler."""

import os
import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).parent.parent


def path_without(place: pathlib.Path, missing: str) -> str:
    """A folder for PATH: the programs of this machine but one, and a cargo and an npm that note that they were started."""
    for folder in ["/usr/bin", "/bin", *os.environ["PATH"].split(":")]:
        for program in pathlib.Path(folder).glob("*"):
            link = place / program.name
            if program.name != missing and not link.is_symlink():
                link.symlink_to(program)
    for name in ["cargo", "node", "npm"]:
        (place / name).unlink(missing_ok=True)
        (place / name).write_text(f"#!/bin/sh\ntouch {place}/started-{name}\n")
        (place / name).chmod(0o755)
    return str(place)


class MakeBuild(unittest.TestCase):
    def build(self, missing: str) -> tuple[subprocess.CompletedProcess, bool]:
        with tempfile.TemporaryDirectory() as folder:
            place = pathlib.Path(folder)
            path = path_without(place, missing)
            environment = os.environ | {"PATH": path, "HOME": folder}
            command = ["make", "--no-print-directory", "-C", str(ROOT), "build"]
            ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
            return ended, (place / "started-cargo").exists()

    def test_a_missing_compiler_is_one_sentence_with_the_command_and_cargo_does_not_start(self) -> None:
        ended, has_cargo_started = self.build("clang")
        self.assertNotEqual(ended.returncode, 0)
        messages = [line for line in ended.stderr.splitlines() if not line.startswith("make")]
        self.assertEqual(len(messages), 1, ended.stderr)
        self.assertIn("apt-get install --no-install-recommends clang'", messages[0])
        self.assertFalse(has_cargo_started)

    def test_where_the_compiler_is_there_nothing_is_printed(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            environment = os.environ | {"PATH": path_without(pathlib.Path(folder), "no-such-program")}
            ended = subprocess.run([ROOT / "scripts/setup.sh", "build"], env=environment, capture_output=True, text=True, timeout=60)
        self.assertEqual((ended.returncode, ended.stdout, ended.stderr), (0, "", ""))


if __name__ == "__main__":
    unittest.main()
