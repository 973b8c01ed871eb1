#!/usr/bin/env python3
"""Tests that every bench README has the figures of its results.json, and that a difference is found."""

import json
import pathlib
import shutil
import subprocess
import tempfile
import unittest

BENCH = pathlib.Path(__file__).parent


def check(bench: pathlib.Path, *arguments: str) -> subprocess.CompletedProcess:
    command = [bench / "tables.py", *(arguments or ["--check"])]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


class Tables(unittest.TestCase):
    def test_every_readme_has_the_figures_of_its_results(self) -> None:
        ended = check(BENCH)
        self.assertEqual(ended.returncode, 0, ended.stderr)

    def test_a_figure_that_differs_is_found_and_written(self) -> None:
        with tempfile.TemporaryDirectory() as place:
            copy = pathlib.Path(place)
            shutil.copy(BENCH / "tables.py", copy)
            shutil.copytree(BENCH / "data", copy / "data")
            results = json.loads((copy / "data/results.json").read_text())
            results["tables"]["loading"]["rows"][0][1] = "9.99 s"
            (copy / "data/results.json").write_text(json.dumps(results))
            ended = check(copy)
            self.assertEqual(ended.returncode, 1)
            self.assertIn("make bench-data", ended.stderr)
            self.assertEqual(check(copy, "data").returncode, 0)
            self.assertIn("9.99 s", (copy / "data/README.md").read_text())
            self.assertEqual(check(copy).returncode, 0)

    def test_figures_whose_origin_is_missing_are_refused(self) -> None:
        with tempfile.TemporaryDirectory() as place:
            copy = pathlib.Path(place)
            shutil.copy(BENCH / "tables.py", copy)
            shutil.copytree(BENCH / "data", copy / "data")
            results = json.loads((copy / "data/results.json").read_text())
            del results["tables"]["loading"]["machine"]
            (copy / "data/results.json").write_text(json.dumps(results))
            ended = check(copy)
            self.assertEqual(ended.returncode, 1)
            self.assertIn("machine is missing", ended.stderr)


if __name__ == "__main__":
    unittest.main()
