"""What a set-up is: a load, a server and its surroundings, once with a cause planted and once without it."""

from dataclasses import dataclass, field, replace
from typing import Callable

BUILDS = ("mariadb-10.2", "mariadb-10.11", "mariadb-11.4", "mysql-5.5", "mysql-sid")
MARIADB = tuple(build for build in BUILDS if build.startswith("mariadb"))

STRENGTHS = ("medium", "strong")

# A commit that waits for no disk: what a set-up changes is then the only thing that waits for it.
NO_SYNC = {"innodb_flush_log_at_trx_commit": "0", "sync_binlog": "0"}


# Settings that a build calls by another name, with what it takes at least.
RENAMED = {"mysql-sid": {"innodb_log_file_size": ("innodb_redo_log_capacity", 8)}}


@dataclass(frozen=True)
class Run:
    """One run of `whyso run`: everything that decides what it measures."""

    sql: str
    """The file that is sent, as docs/reference/sql-files.md describes it."""
    users: int = 8
    """Users of the second level, which the cause is looked for at. The first level has one user."""
    tables: int = 2
    rows: int = 10_000
    settings: dict[str, str] = field(default_factory=dict)
    flags: tuple[str, ...] = ()
    own_cpus: bool = True
    """The server has CPU 0 and the generator CPU 1; otherwise they share both."""
    writes_per_s: int = 0
    """How many writes per second the disk takes; 0: no limit."""
    reads_per_s: int = 0
    quota_cpus: float = 0.0
    """How many CPUs a cgroup leaves to the server and the generator; 0: no limit."""
    neighbours: int = 0
    """Busy programs on the server's CPU."""
    stacks: str = "full"
    """How many stacks are sampled: "full" or "none"; empty with --no-trace, which takes none."""

    def but(self, **changes) -> "Run":
        """Returns this run with other values; settings are added."""
        settings = {**self.settings, **changes.pop("settings", {})}
        return replace(self, settings=settings, **changes)

    def on(self, build: str) -> "Run":
        """Returns this run with the settings' names of a build."""
        settings = dict(self.settings)
        for name, (renamed, megabytes_min) in RENAMED.get(build, {}).items():
            if name in settings:
                megabytes = int(settings.pop(name).removesuffix("M"))
                settings[renamed] = f"{max(megabytes, megabytes_min)}M"
        return replace(self, settings=settings)


@dataclass(frozen=True)
class Background:
    """What each transaction does besides: ordinary work."""

    name: str
    sql: str
    settings: dict[str, str] = field(default_factory=dict)


BACKGROUNDS = (
    Background("points", "-- \\repeat 5\n-- \\set b random(1, 10000)\nSELECT c FROM sbtest2 WHERE id = :b;\n-- \\endrepeat\n"),
    Background(
        "ranges",
        "-- \\set b random(1, 9800)\nSELECT SUM(k) FROM sbtest2 WHERE id BETWEEN :b AND :b + 199;\n",
    ),
    Background(
        "writes",
        "-- \\set b :client_id * 500 + 1\n-- \\set u random(1, 400)\n"
        "SELECT c FROM sbtest2 WHERE id = :b;\nUPDATE sbtest2 SET pad = 'x' WHERE id = :b + :u;\n",
        settings=NO_SYNC,
    ),
)


@dataclass(frozen=True)
class Family:
    """One mechanism that keeps a server from going faster, in any strength and with any background."""

    name: str
    cause: str
    """The id that whyso gives to what it plants."""
    how: str
    make: Callable[[str, Background], tuple[Run, Run]]
    """Strength and background to the run with the cause and the run without it."""
    builds: tuple[str, ...] = BUILDS


def pick(strength: str, medium, strong):
    """Returns the value of this strength."""
    return {"medium": medium, "strong": strong}[strength]
