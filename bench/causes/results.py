"""What was measured, on disk: results.json, live.json, and sealed.log, in which each opening of the sealed part is noted."""

import datetime
import hashlib
import json
import os
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results.json"
LIVE = HERE / "live.json"
SEALED_LOG = HERE / "sealed.log"

# What decides which causes are named in a recording: the rules, and what reads the recording for them.
READERS = ("agreement", "evidence", "file_waits", "level_series", "locks", "pauses", "pfs", "pfs_setup", "profile", "wait_classes")
PATHS = [":/crates/explain", ":/crates/inference", ":/crates/profile", *(f":/crates/query/src/{name}.rs" for name in READERS)]


def git(*typed: str) -> str:
    return subprocess.run(["git", "-C", str(HERE), *typed], capture_output=True, text=True, check=True).stdout


def rules() -> str:
    """Returns the commit that last changed what names causes, with a mark of changes that are not committed."""
    commit = git("log", "-1", "--format=%h", "--", *PATHS).strip()
    changes = git("diff", "HEAD", "--", *PATHS)
    return f"{commit}+{hashlib.sha256(changes.encode()).hexdigest()[:6]}" if changes else commit


def today() -> str:
    return datetime.date.today().isoformat()


def load(path: Path) -> dict:
    return json.loads(path.read_text()) if path.exists() else {}


def store(path: Path, results: dict) -> None:
    temporary = path.with_suffix(".new")
    temporary.write_text(json.dumps(dict(sorted(results.items())), indent=1) + "\n")
    os.replace(temporary, path)


def log_opening(now: str, count: int, log: Path = SEALED_LOG) -> None:
    """Notes that causes are asked for in sealed set-ups, before it is done: an opening that is broken off counts, too."""
    with log.open("a") as lines:
        lines.write(f"{today()} rules {now}: {count} sealed set-ups\n")


def log_score(score: str, log: Path = SEALED_LOG) -> None:
    """Appends the score to the last opening."""
    lines = log.read_text().splitlines()
    lines[-1] += f"; {score}"
    log.write_text("\n".join(lines) + "\n")
