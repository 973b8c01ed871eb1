#!/usr/bin/env python3
"""wheel.py WHYSO SHARED DIR: writes the Python wheel, which contains the program as it is: `pip install whyso-….whl` puts it on the path."""

import base64
import hashlib
import os
import sys
import time
import zipfile
from pathlib import Path

TAG = "py3-none-manylinux_2_28_x86_64"
METADATA = """\
Metadata-Version: 2.1
Name: whyso
Version: {version}
Summary: Finds out why a database does not go faster
License: MIT OR Apache-2.0
Keywords: mysql,mariadb,performance,benchmark,profiler
Classifier: Environment :: Console
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: Rust
Classifier: Topic :: Database
Classifier: Topic :: System :: Benchmark
Requires-Python: >=3.8
Description-Content-Type: text/markdown

whyso is a performance lab for MySQL-compatible servers. It loads a server or watches it under its own load, and records it on one clock.
Then it reports where throughput peaks, what stops it, and how much of the response time each cause holds.

This package contains the program `whyso` for Linux on x86_64, and no Python code.
"""
WHEEL = f"Wheel-Version: 1.0\nGenerator: whyso packaging/wheel.py\nRoot-Is-Purelib: false\nTag: {TAG}\n"


class Wheel:
    """A zip archive with a line in RECORD for each file."""

    def __init__(self, path: Path, date: tuple) -> None:
        self.archive = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9)
        self.date = date
        self.record = ""

    def add(self, name: str, content: bytes, mode: int = 0o644) -> None:
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        self.record += f"{name},sha256={digest},{len(content)}\n"
        self.write(name, content, mode)

    def write(self, name: str, content: bytes, mode: int) -> None:
        entry = zipfile.ZipInfo(name, self.date)
        entry.compress_type = zipfile.ZIP_DEFLATED
        entry.create_system = 3
        entry.external_attr = (0o100000 | mode) << 16
        self.archive.writestr(entry, content)

    def close(self, record_name: str) -> None:
        self.write(record_name, (self.record + f"{record_name},,\n").encode(), 0o644)
        self.archive.close()


def main(whyso: Path, shared: Path, folder: Path) -> None:
    version = os.environ["VERSION"]
    date = time.gmtime(int(os.environ["SOURCE_DATE_EPOCH"]))[:6]
    wheel = Wheel(folder / f"whyso-{version}-{TAG}.whl", date)
    data, info = f"whyso-{version}.data", f"whyso-{version}.dist-info"
    wheel.add(f"{data}/scripts/whyso", whyso.read_bytes(), 0o755)
    pages = {f"man/man1/{page.name}": page for page in (shared / "man").iterdir()}
    completions = {
        "bash-completion/completions/whyso": shared / "completions/whyso.bash",
        "zsh/site-functions/_whyso": shared / "completions/_whyso",
        "fish/vendor_completions.d/whyso.fish": shared / "completions/whyso.fish",
    }
    for name, path in sorted((pages | completions).items()):
        wheel.add(f"{data}/data/share/{name}", path.read_bytes())
    for name in ["LIBRARIES.txt", "LICENSE-APACHE", "LICENSE-MIT"]:
        wheel.add(f"{info}/licenses/{name}", (shared / name).read_bytes())
    wheel.add(f"{info}/METADATA", METADATA.format(version=version).encode())
    wheel.add(f"{info}/WHEEL", WHEEL.encode())
    wheel.close(f"{info}/RECORD")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:4]))
