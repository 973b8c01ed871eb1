"""Limits of a disk and of CPU time, for the programs that a set-up starts: control groups, of version 1 or 2."""

import os
from contextlib import contextmanager
from pathlib import Path
from typing import Callable, Iterator

CGROUPS = Path("/sys/fs/cgroup")
PERIOD_US = 100_000


def disk_of(folder: Path) -> str:
    """Returns the whole disk that the folder lies on, as MAJOR:MINOR: a partition takes no limit."""
    number = os.stat(folder).st_dev
    place = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}").resolve(strict=True)
    if (place / "partition").exists():
        place = place.parent
    return (place / "dev").read_text().strip()


def settings(folder: Path, writes_per_s: int, reads_per_s: int, quota_cpus: float, is_version_1: bool) -> list[tuple[str, str, str]]:
    """Returns what is written: (controller, file, text)."""
    wanted = []
    for count, name in ((writes_per_s, "write"), (reads_per_s, "read")):
        if count and is_version_1:
            wanted.append(("blkio", f"blkio.throttle.{name}_iops_device", f"{disk_of(folder)} {count}"))
        elif count:
            wanted.append(("", "io.max", f"{disk_of(folder)} {name[0]}iops={count}"))
    if quota_cpus:
        quota_us = round(quota_cpus * PERIOD_US)
        if is_version_1:
            wanted += [("cpu", "cpu.cfs_period_us", str(PERIOD_US)), ("cpu", "cpu.cfs_quota_us", str(quota_us))]
        else:
            wanted.append(("", "cpu.max", f"{quota_us} {PERIOD_US}"))
    return wanted


@contextmanager
def limited(folder: Path, writes_per_s: int = 0, reads_per_s: int = 0, quota_cpus: float = 0.0) -> Iterator[Callable[[], None]]:
    """Yields what a child process calls before it executes a program. Zeros limit nothing.

    Raises OSError where the kernel has no such limit, or refuses it.
    """
    is_version_1 = (CGROUPS / "blkio").exists()
    wanted = settings(folder, writes_per_s, reads_per_s, quota_cpus, is_version_1)
    groups = {controller: CGROUPS / controller / f"whyso-causes-{os.getpid()}" for controller, _, _ in wanted}
    made = []
    try:
        for group in groups.values():
            group.mkdir()
            made.append(group)
        for controller, name, text in wanted:
            (groups[controller] / name).write_text(text)

        def enter() -> None:
            for group in made:
                (group / "cgroup.procs").write_text(str(os.getpid()))

        yield enter
    finally:
        for group in made:
            group.rmdir()
