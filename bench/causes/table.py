#!/usr/bin/env python3
"""Prints the tables of README.md from results.json.

A set-up counts by what its plant costs in truth, which its run without the cause measures: it is weak where throughput without the cause is less
than 1.25 times what it is with it, medium up to 2, strong from there on.
"""

import json
import math
from collections import Counter
from pathlib import Path

from split import sealed

HERE = Path(__file__).resolve().parent
MEDIUM_GAIN_MIN = 1.25
STRONG_GAIN_MIN = 2.0
# What is true of a server that simply works.
ORDINARY = {"cpu", "runqueue", "wakeup-latency", "unknown", "unsaturated"}
ORDINARY_SHARE_MAX = 0.2
Z_95 = 1.959964


def wilson(hits: int, count: int) -> str:
    """Returns a share with its 95 % interval (E. B. Wilson, 1927)."""
    if not count:
        return "–"
    share = hits / count
    middle = (share + Z_95**2 / (2 * count)) / (1 + Z_95**2 / count)
    half = Z_95 / (1 + Z_95**2 / count) * math.sqrt(share * (1 - share) / count + Z_95**2 / (4 * count**2))
    return f"{hits} of {count}: {share:.0%} ({max(middle - half, 0):.0%}–{min(middle + half, 1):.0%})"


def strength(result: dict) -> str:
    gain = result["true_gain"]
    return "weak" if gain < MEDIUM_GAIN_MIN else "medium" if gain < STRONG_GAIN_MIN else "strong"


def first(result: dict, count: int = 1) -> list[str]:
    return [name for name, _ in result["planted"]["named"]["suspects"][:count]]


def is_quiet(result: dict) -> bool:
    """Whether nothing but ordinary work was named where nothing was planted."""
    suspects = result["without"]["named"]["suspects"]
    return all(name in ORDINARY or share < ORDINARY_SHARE_MAX for name, share in suspects)


def scores(results: list[dict]) -> None:
    planted = [result for result in results if strength(result) != "weak"]
    rows = {
        "first suspect right": lambda one: one["cause"] in first(one),
        "among the first two": lambda one: one["cause"] in first(one, 2),
        "confidently wrong: not among the first three": lambda one: one["cause"] not in first(one, 3) and first(one) != ["unknown"],
    }
    print("| what was asked | |\n| --- | --- |")
    for text, holds in rows.items():
        print(f"| {text} | {wilson(sum(map(holds, planted)), len(planted))} |")
    print(f"| nothing planted: nothing but ordinary work named | {wilson(sum(map(is_quiet, results)), len(results))} |")


def by_strength(results: list[dict]) -> None:
    print("\n| truth | first suspect right |\n| --- | --- |")
    for name in ("weak", "medium", "strong"):
        some = [one for one in results if strength(one) == name]
        print(f"| {name} | {wilson(sum(one['cause'] in first(one) for one in some), len(some))} |")


def confusion(results: list[dict]) -> None:
    """Causes against first suspects, with recall; then each first suspect's precision."""
    planted = [result for result in results if strength(result) != "weak"]
    print("\n| planted | recall | named first |\n| --- | --- | --- |")
    for cause in sorted({one["cause"] for one in planted}):
        some = [one for one in planted if one["cause"] == cause]
        names = Counter((first(one) or ["–"])[0] for one in some)
        text = ", ".join(f"{name} {count}" for name, count in names.most_common())
        print(f"| {cause} | {wilson(names[cause], len(some))} | {text} |")
    print("\n| named first | precision |\n| --- | --- |")
    names = Counter((first(one) or ["–"])[0] for one in planted)
    for name, count in sorted(names.items()):
        right = sum(one["cause"] == name for one in planted if first(one) == [name])
        print(f"| {name} | {wilson(right, count)} |")


def main() -> None:
    results = json.loads((HERE / "results.json").read_text())
    done = {name: one for name, one in results.items() if "failed" not in one}
    rules = Counter(one["rules"] for one in done.values())
    for title, is_part in (("Sealed", True), ("To tune on", False)):
        part = [one for name, one in done.items() if (name.split("/")[0] in sealed()) == is_part]
        if not part:
            continue
        print(f"\n### {title}\n\n{len(part)} set-ups, each with and without its cause. Commits of the rules: {', '.join(sorted(rules))}.\n")
        scores(part)
        by_strength(part)
        confusion(part)
    opened = (HERE / "sealed.log").read_text().splitlines() if (HERE / "sealed.log").exists() else []
    print(f"\nThe sealed part was opened {len(opened)} times.")


if __name__ == "__main__":
    main()
