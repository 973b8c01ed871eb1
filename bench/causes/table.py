#!/usr/bin/env python3
"""Prints the tables of README.md from results.json and live.json. What counts how is documented in scores.py.

Results of other rules than the newest are stale: they are listed, and scored only with --stale.
"""

import argparse
from collections import Counter

import results as stored
import scores
from attempt import VIEWS
from split import sealed


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stale", action="store_true", help="score results of all rules together")
    parser.add_argument("--view", default="full", choices=VIEWS, help="of the tables by cause and by strength [default: full]")
    return parser.parse_args()


def table(heads: list[str], rows: list[list]) -> None:
    print("\n| " + " | ".join(heads) + " |\n|" + " --- |" * len(heads))
    for row in rows:
        print("| " + " | ".join(map(str, row)) + " |")


def print_scores(results: list[dict]) -> None:
    """One column per view."""
    some = scores.counted(results)
    single = [one for one in results if not scores.is_mixture(one)]
    questions = {
        "first suspect right": (some, lambda one, view: scores.is_named(one, view, 1)),
        "among the first two": (some, lambda one, view: scores.is_named(one, view, 2)),
        "first, or possible while `unknown` is first": (some, scores.is_first_or_possible),
        "confidently wrong: not among the first three, and the first is not `unknown`": (some, scores.is_confidently_wrong),
        "nothing planted: nothing but ordinary work holds 20 %": (single, scores.is_quiet),
    }
    rows = [[text, *(scores.rate(tried, lambda one: holds(one, view)) for view in VIEWS)] for text, (tried, holds) in questions.items()]
    table(["what was asked", *VIEWS], rows)
    estimated = [one for one in single if scores.has_estimate(one, "full")]
    held = scores.rate(estimated, lambda one: scores.holds_gain(one, "full"))
    print(f"\nThe measured gain lies within the predicted bounds, widened by 10 %: {held}. Plants that cost little are counted here, too.")
    weak, failed = sum(map(scores.is_weak, single)), sum(map(scores.has_failed, single))
    print(f"\nOf {len(single)} set-ups {weak} cost too little to be counted above, and {failed} failed, which are counted as not right.")


def print_by_strength(results: list[dict], view: str) -> None:
    rows = [[name, *scores.by_strength(results, name, view)] for name in scores.STRENGTHS]
    table(["truth", "recall: first suspect right", "precision of first suspects but `unknown`"], rows)


def print_by_cause(results: list[dict], view: str) -> None:
    matrix = scores.confusion(results, view)
    firsts = {name for names in matrix.values() for name in names}
    causes = sorted(matrix.keys() | {name for name in firsts if not name.startswith("(")})
    rows = []
    for cause in causes:
        precision = "–" if cause in scores.ORDINARY - matrix.keys() else scores.precision(results, cause, view)
        rows.append([cause, scores.recall(results, cause, view), precision])
    table(["cause", "recall", "precision"], rows)
    columns = sorted(firsts)
    table(["planted ↓, named first →", *columns], [[cause, *(matrix[cause][name] or "" for name in columns)] for cause in sorted(matrix)])


def print_mixtures(results: list[dict], view: str) -> None:
    mixtures = {name: one for name, one in results.items() if scores.is_mixture(one)}
    if not mixtures:
        return
    strong = [one for one in mixtures.values() if not scores.is_mixture_weak(one)]
    two = [one for one in strong if scores.cost_both(one)]
    rows = [
        ["two planted: the larger gain is named first", *(scores.rate(strong, lambda one: scores.is_first_right(one, view)) for view in VIEWS)],
        ["both among the first two", *(scores.rate(two, lambda one: scores.has_both(one, view, 2)) for view in VIEWS)],
        ["both among the first three", *(scores.rate(two, lambda one: scores.has_both(one, view, 3)) for view in VIEWS)],
    ]
    table(["what was asked", *VIEWS], rows)
    rows = []
    for name, one in mixtures.items():
        if scores.has_failed(one):
            rows.append([name, "failed", "", ""])
            continue
        truth = ", ".join(f"{cause} {gain}" for cause, gain in zip(one["causes"], one["true_gains"]))
        suspects = ", ".join(f"{cause} {share:.0%}" for cause, share in one["both"]["named"][view]["suspects"][:3])
        verdict = "weak" if scores.is_mixture_weak(one) else "right" if scores.is_first_right(one, view) else "wrong"
        rows.append([name, truth, suspects, verdict])
    table(["two planted", "gain of each one's removal", "named", ""], rows)


def print_live(live: dict) -> None:
    if not live:
        return
    print("\n### A source that is absent, and one that is hidden\n")
    rows, same = [], 0
    for name, one in live.items():
        if scores.has_failed(one):
            rows.append([name.split()[0], one["view"], one["cause"], "failed", "", ""])
            continue
        absent = (scores.named(one["live"]) or ["–"])[0]
        hidden = (scores.named(one["hidden"], one["view"]) or ["–"])[0]
        same += absent == hidden
        rows.append([name.split()[0], one["view"], one["cause"], absent, hidden, "same" if absent == hidden else "differs"])
    print(f"First suspect the same: {scores.Rate(same, len(rows))}.")
    table(["set-up", "view", "planted", "first, absent", "first, hidden", ""], rows)


def of_newest_rules(results: dict, keeps_stale: bool) -> dict:
    """Returns the results that are scored, and prints which are stale: the rules of now are the newest, or else those measured last."""
    known = {one["rules"] for one in results.values()}
    now = stored.rules()
    newest = now if now in known else max(results.values(), key=lambda one: one["date"])["rules"]
    stale = Counter(one["rules"] for one in results.values() if one["rules"] != newest)
    if newest != now:
        print(f"The rules are {now} by now; these are results of {newest}.")
    if stale:
        names = ", ".join(f"{rules} ({count})" for rules, count in stale.items())
        print(f"{sum(stale.values())} results are stale, of the rules {names}: {'scored, too' if keeps_stale else 'not scored'}.")
    return {name: one for name, one in results.items() if keeps_stale or one["rules"] == newest}


def main() -> None:
    given = arguments()
    results = stored.load(stored.RESULTS)
    if results:
        results = of_newest_rules(results, given.stale)
    for title, is_part in (("Sealed", True), ("To tune on", False)):
        part = {name: one for name, one in results.items() if (name.split("/")[0].split("+")[0] in sealed()) == is_part}
        if not part:
            continue
        rules = ", ".join(sorted({one["rules"] for one in part.values()}))
        print(f"\n### {title}\n\n{len(part)} set-ups, each with and without what it plants. Commit of the rules: {rules}.")
        values = list(part.values())
        print_scores(values)
        print(f"\nView {given.view}:")
        print_by_strength(values, given.view)
        print_by_cause(values, given.view)
        print_mixtures(part, given.view)
    live = stored.load(stored.LIVE)
    print_live(of_newest_rules(live, given.stale) if live else {})
    openings = stored.SEALED_LOG.read_text().splitlines() if stored.SEALED_LOG.exists() else []
    print(f"\nThe sealed part was opened {len(openings)} times.")
    for opening in openings:
        print(f"- {opening}")


if __name__ == "__main__":
    main()
