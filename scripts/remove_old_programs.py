#!/usr/bin/env python3
"""Removes test programs that earlier versions of the source left in cargo's target folder, where its disk is nearly full.

usage: remove_old_programs.py TARGET_FOLDER

Cargo never removes a program whose name it has changed, and each has up to 200 MB. The newest of each name stays; what was built with other features
is compiled again when it is needed.
"""

import os
import re
import shutil
import sys
from pathlib import Path

FREE_BYTES_MIN = 25_000_000_000
NAME = re.compile(r"(?P<name>.+)-[0-9a-f]{16}")


def old_programs(folder):
    """Returns all programs of a folder but the newest of each name."""
    programs = {}
    for entry in os.scandir(folder):
        match = NAME.fullmatch(entry.name)
        if match and entry.is_file(follow_symlinks=False) and os.access(entry.path, os.X_OK):
            programs.setdefault(match["name"], []).append((entry.stat().st_mtime, entry.path))
    return [path for found in programs.values() for _, path in sorted(found)[:-1]]


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    release = Path(sys.argv[1]) / "release"
    if not release.is_dir() or shutil.disk_usage(release).free >= FREE_BYTES_MIN:
        return
    old = [path for name in ("deps", "examples") if (release / name).is_dir() for path in old_programs(release / name)]
    for path in old:
        os.remove(path)
    print(f"removed {len(old)} old programs below {release}: less than {FREE_BYTES_MIN // 10**9} GB were free")


if __name__ == "__main__":
    main()
