#!/usr/bin/env python3
"""Tests rust_tests.py on a small package of its own, whose tests fail as they are told to."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).with_name("rust_tests.py")

# A test fails as often as the file FAILURES/NAME says.
LIBRARY = """
#[cfg(test)]
fn fails(name: &str) {
    let file = std::path::Path::new(&std::env::var("FAILURES").unwrap()).join(name);
    let Ok(left) = std::fs::read_to_string(&file) else { return };
    let left: u32 = left.parse().unwrap();
    std::fs::write(&file, left.saturating_sub(1).to_string()).unwrap();
    println!("failures:\\n    noise");
    assert_eq!(left, 0, "{name}");
}

#[cfg(test)]
mod tests {
    #[test] fn one() { super::fails("one") }
    #[test] fn two() { super::fails("two") }
    #[test] fn three() { super::fails("three") }
    #[test] fn aborts() { if std::env::var("ABORT").is_ok() { std::process::abort() } }
}
"""


class RustTests(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.place = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.place.name)
        (cls.folder / "src").mkdir()
        (cls.folder / "src/lib.rs").write_text(LIBRARY)
        (cls.folder / "Cargo.toml").write_text('[package]\nname = "sample"\nedition = "2024"\n[workspace]\n')

    @classmethod
    def tearDownClass(cls):
        cls.place.cleanup()

    def run_with(self, failures, **more):
        with tempfile.TemporaryDirectory() as folder:
            for name, count in failures.items():
                pathlib.Path(folder, name).write_text(str(count))
            environment = {**os.environ, "FAILURES": folder, "CARGO_TARGET_DIR": str(self.folder / "target"), **more}
            command = [sys.executable, str(SCRIPT), "-p", "sample"]
            done = subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=300)
            return done.returncode, done.stdout

    def test_all_pass(self):
        status, output = self.run_with({})
        self.assertEqual((status, "no test failed" in output), (0, True), output)
        self.assertRegex(output, r"programs that took longest:\n +[0-9.]+ s  sample\n")

    def test_flakes_are_listed_and_two_are_allowed(self):
        status, output = self.run_with({"one": 1, "two": 1})
        self.assertEqual(status, 0, output)
        self.assertIn("run once more: 2; 2 are allowed\n  tests::", output)

    def test_three_flakes_fail(self):
        status, output = self.run_with({"one": 1, "two": 1, "three": 1})
        self.assertEqual(status, 1, output)
        self.assertIn("tests::three (-p sample --lib)", output)

    def test_what_fails_twice_fails(self):
        status, output = self.run_with({"one": 2})
        self.assertEqual(status, 1, output)
        self.assertIn("failed twice: tests::one (-p sample --lib)", output)
        self.assertEqual(output.count("\nonce more: "), 1, "only the test that failed is run again, and once")

    def test_a_program_that_dies_fails(self):
        status, output = self.run_with({}, ABORT="1")
        self.assertEqual(status, 1, output)
        self.assertIn("ended without naming the test that failed: -p sample --lib", output)

    def test_what_does_not_build_fails(self):
        status, output = self.run_with({}, RUSTFLAGS="--no-such-flag")
        self.assertNotEqual(status, 0, output)


if __name__ == "__main__":
    unittest.main()
