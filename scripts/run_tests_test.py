#!/usr/bin/env python3
"""Tests run_tests.py on a small package of its own, whose tests fail on demand."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).with_name("run_tests.py")

# A test fails as often as the file FAILURES/NAME states.
LIBRARY = """
/// ```
/// let file = std::path::Path::new(&std::env::var("FAILURES").unwrap()).join("example");
/// if file.exists() { std::fs::remove_file(file).unwrap(); panic!() }
/// ```
pub fn example() {}

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

# Writes when it begins and when it ends into the file FAILURES/times.
TIMED = """
#[test] fn NAME() {
    use std::io::Write;
    let path = std::path::Path::new(&std::env::var("FAILURES").unwrap()).join("times");
    let mut file = std::fs::File::options().create(true).append(true).open(path).unwrap();
    writeln!(file, "NAME begins").unwrap();
    std::thread::sleep(std::time::Duration::from_millis(500));
    writeln!(file, "NAME ends").unwrap();
}
"""


class RustTests(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.place = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.place.name)
        (cls.folder / "src").mkdir()
        (cls.folder / "src/lib.rs").write_text(LIBRARY)
        (cls.folder / "tests").mkdir()
        (cls.folder / "tests/a_quiet.rs").write_text("// Runs alone: a test.\n" + TIMED.replace("NAME", "quiet"))
        for name in ("b_first", "c_second"):
            (cls.folder / f"tests/{name}.rs").write_text(TIMED.replace("NAME", name[2:]))
        (cls.folder / "Cargo.toml").write_text('[package]\nname = "sample"\nedition = "2024"\n[workspace]\n')

    @classmethod
    def tearDownClass(cls):
        cls.place.cleanup()

    def run_with(self, failures, *arguments, **more):
        done = self.call(failures, ["-p", "sample", *arguments], **more)
        return done.returncode, done.stdout

    def call(self, failures, arguments, **more):
        with tempfile.TemporaryDirectory() as folder:
            for name, count in failures.items():
                pathlib.Path(folder, name).write_text(str(count))
            environment = {**os.environ, "FAILURES": folder, "CARGO_TARGET_DIR": str(self.folder / "target"), **more}
            command = [sys.executable, str(SCRIPT), *arguments]
            done = subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=300)
            times = pathlib.Path(folder, "times")
            self.times = times.read_text().splitlines() if times.exists() else []
            return done

    def test_all_pass(self):
        status, output = self.run_with({})
        self.assertEqual((status, "no test failed" in output), (0, True), output)
        self.assertRegex(output, r"programs that took longest:\n +[0-9.]+ s  ")
        self.assertRegex(output, r" +[0-9.]+ s  a_quiet \(alone\)\n")

    def test_a_script_runs_next_to_the_programs_and_fails_the_run_where_it_fails(self):
        with tempfile.TemporaryDirectory() as folder:
            script = pathlib.Path(folder, "script")
            script.write_text('echo "asked for $1"; exit $1\n')
            for wanted in (0, 3):
                done = self.call({}, ["--script", f"sh {script} {wanted}", "-p", "sample", "--lib"])
                self.assertIn(f"\nasked for {wanted}\n", done.stdout)
                self.assertEqual(done.returncode, 0 if wanted == 0 else 1, done.stdout)
            self.assertIn(f"failed: sh {script} 3\n", done.stdout)

    def test_programs_run_next_to_each_other_and_what_asks_for_it_runs_alone_afterwards(self):
        self.run_with({}, "--tests")
        self.assertEqual(self.times[-2:], ["quiet begins", "quiet ends"])
        self.assertEqual({line.split()[1] for line in self.times[:2]}, {"begins"}, self.times)

    def test_an_example_of_the_documentation_is_run_once_more(self):
        status, output = self.run_with({"example": 1})
        self.assertEqual(status, 0, output)
        self.assertRegex(output, r"run once more: 1; 2 are allowed\n  src/lib.rs - example")

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
