"""A disk that takes few writes: a cgroup whose processes are held to so many a second."""

import os
from contextlib import contextmanager
from pathlib import Path
from typing import Callable, Iterator

CGROUPS = Path("/sys/fs/cgroup")


def disk_of(folder: Path) -> str:
    """The whole disk that the folder lies on, as MAJOR:MINOR: limits are not taken for a partition."""
    number = os.stat(folder).st_dev
    place = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}").resolve(strict=True)
    if (place / "partition").exists():
        place = place.parent
    return (place / "dev").read_text().strip()


@contextmanager
def slow_disk(folder: Path, writes_per_second: int) -> Iterator[Callable[[], None]]:
    """Gives what a child process calls before it executes a program; 0: nothing is limited.

    Raises OSError where the kernel has no such limit, or does not let us set it.
    """
    if not writes_per_second:
        yield lambda: None
        return
    disk = disk_of(folder)
    first = (CGROUPS / "blkio").exists()
    group = CGROUPS / ("blkio" if first else "") / f"whyso-causes-{os.getpid()}"
    group.mkdir()
    try:
        if first:
            (group / "blkio.throttle.write_iops_device").write_text(f"{disk} {writes_per_second}")
        else:
            (group / "io.max").write_text(f"{disk} wiops={writes_per_second}")
        yield lambda: (group / "cgroup.procs").write_text(str(os.getpid())) and None
    finally:
        group.rmdir()
