#!/usr/bin/env python3
"""Tests the writers of the wheel and of the image with a small program in place of whyso."""

import base64
import csv
import hashlib
import io
import os
import stat
import subprocess
import sys
import tarfile
import tempfile
import unittest
import zipfile
from pathlib import Path

HERE = Path(__file__).parent
ENVIRONMENT = os.environ | {"VERSION": "1.2.3", "SOURCE_DATE_EPOCH": "1700000000"}
PROGRAM = "#!/bin/sh\necho whyso 1.2.3\n"


class Packages(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.place = Path(folder.name)
        self.whyso = self.place / "whyso"
        self.whyso.write_text(PROGRAM)
        self.whyso.chmod(0o755)
        self.shared = self.place / "shared"
        names = ["man/whyso.1", "man/whyso-run.1", "completions/whyso.bash", "completions/_whyso", "completions/whyso.fish"]
        for name in [*names, "LIBRARIES.txt", "LICENSE-APACHE", "LICENSE-MIT"]:
            (self.shared / name).parent.mkdir(parents=True, exist_ok=True)
            (self.shared / name).write_text(f"text of {name}\n")

    def run_script(self, name: str, *arguments: Path | str) -> subprocess.CompletedProcess:
        command = [sys.executable, HERE / name, *arguments]
        return subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=60)

    def wheel(self, name: str) -> Path:
        folder = self.place / name
        folder.mkdir()
        ended = self.run_script("wheel.py", self.whyso, self.shared, folder)
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        return folder / "whyso-1.2.3-py3-none-manylinux_2_28_x86_64.whl"

    def test_the_record_of_the_wheel_lists_each_file_with_its_digest(self) -> None:
        with zipfile.ZipFile(self.wheel("dist")) as wheel:
            record = wheel.read("whyso-1.2.3.dist-info/RECORD").decode()
            rows = {name: digest for name, digest, _ in csv.reader(io.StringIO(record))}
            self.assertEqual(sorted(rows), sorted(wheel.namelist()))
            for name in rows.keys() - {"whyso-1.2.3.dist-info/RECORD"}:
                digest = base64.urlsafe_b64encode(hashlib.sha256(wheel.read(name)).digest()).decode().rstrip("=")
                self.assertEqual(rows[name], f"sha256={digest}")
            script = wheel.getinfo("whyso-1.2.3.data/scripts/whyso")
            self.assertEqual(stat.filemode(script.external_attr >> 16), "-rwxr-xr-x")
            self.assertIn("whyso-1.2.3.data/data/share/man/man1/whyso-run.1", rows)

    def test_two_wheels_of_one_program_are_the_same(self) -> None:
        self.assertEqual(self.wheel("one").read_bytes(), self.wheel("other").read_bytes())

    def image(self, name: str) -> Path:
        layer = self.place / "layer.tar"
        with tarfile.open(layer, "w") as archive:
            archive.add(self.whyso, "usr/bin/whyso")
        ended = self.run_script("oci.py", layer, self.place / name, "libc6 2.36")
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        return self.place / name

    def test_the_image_unpacks_to_the_program(self) -> None:
        ended = self.run_script("unpack_image.py", self.image("image.tar"), self.place / "root")
        self.assertEqual((ended.stdout, ended.stderr), ("/usr/bin/whyso\n", ""))
        program = self.place / "root/usr/bin/whyso"
        self.assertEqual((program.read_text(), program.stat().st_mode & 0o777), (PROGRAM, 0o755))

    def test_two_images_of_one_program_are_the_same(self) -> None:
        self.assertEqual(self.image("one.tar").read_bytes(), self.image("other.tar").read_bytes())

    def test_a_damaged_image_is_not_unpacked(self) -> None:
        image = self.image("image.tar")
        content = image.read_bytes()
        at = content.index(b"\x1f\x8b") + 20
        image.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
        ended = self.run_script("unpack_image.py", image, self.place / "root")
        self.assertNotEqual(ended.returncode, 0)
        self.assertIn("is damaged", ended.stderr)
        self.assertFalse((self.place / "root").exists())


if __name__ == "__main__":
    unittest.main()
