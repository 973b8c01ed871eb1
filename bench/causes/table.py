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
    single = [result for result in results if not scores.is_mixture(result)]
    questions = {
        "first suspect right": (some, lambda result, view: scores.is_named(result, view, 1)),
        "among the first two": (some, lambda result, view: scores.is_named(result, view, 2)),
        "first, or possible while `unknown` is first": (some, scores.is_first_or_possible),
        "confidently wrong: not among the first three, and the first is not `unknown`": (some, scores.is_confidently_wrong),
        "nothing planted: nothing but ordinary work holds 20 %": (single, scores.is_quiet),
    }
    rows = [[text, *(scores.rate(tried, lambda result: holds(result, view)) for view in VIEWS)] for text, (tried, holds) in questions.items()]
    table(["what was asked", *VIEWS], rows)
    estimated = [result for result in single if scores.has_estimate(result, "full")]
    held = scores.rate(estimated, lambda result: scores.holds_gain(result, "full"))
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
    mixtures = {name: result for name, result in results.items() if scores.is_mixture(result)}
    if not mixtures:
        return
    strong = [result for result in mixtures.values() if not scores.is_mixture_weak(result)]
    two = [result for result in strong if scores.cost_both(result)]
    rows = [
        ["two planted: the larger gain is named first", *(scores.rate(strong, lambda result: scores.is_first_right(result, view)) for view in VIEWS)],
        ["both among the first two", *(scores.rate(two, lambda result: scores.has_both(result, view, 2)) for view in VIEWS)],
        ["both among the first three", *(scores.rate(two, lambda result: scores.has_both(result, view, 3)) for view in VIEWS)],
    ]
    table(["what was asked", *VIEWS], rows)
    rows = []
    for name, result in mixtures.items():
        if scores.has_failed(result):
            rows.append([name, "failed", "", ""])
            continue
        truth = ", ".join(f"{cause} {gain}" for cause, gain in zip(result["causes"], result["true_gains"]))
        suspects = ", ".join(f"{cause} {share:.0%}" for cause, share in result["both"]["named"][view]["suspects"][:3])
        verdict = "weak" if scores.is_mixture_weak(result) else "right" if scores.is_first_right(result, view) else "wrong"
        rows.append([name, truth, suspects, verdict])
    table(["two planted", "gain of each one's removal", "named", ""], rows)


def print_live(live: dict) -> None:
    if not live:
        return
    print("\n### A source that is absent, and one that is hidden\n")
    rows, same = [], 0
    for name, result in live.items():
        if scores.has_failed(result):
            rows.append([name.split()[0], result["view"], result["cause"], "failed", "", ""])
            continue
        absent = (scores.named(result["live"]) or ["–"])[0]
        hidden = (scores.named(result["hidden"], result["view"]) or ["–"])[0]
        same += absent == hidden
        rows.append([name.split()[0], result["view"], result["cause"], absent, hidden, "same" if absent == hidden else "differs"])
    print(f"First suspect the same: {scores.Rate(same, len(rows))}.")
    table(["set-up", "view", "planted", "first, absent", "first, hidden", ""], rows)


def of_newest_rules(results: dict, keeps_stale: bool) -> dict:
    """Returns the results that are scored, and prints which are stale: the rules of now are the newest, or else those measured last."""
    all_rules = {result["rules"] for result in results.values()}
    now = stored.rules()
    newest = now if now in all_rules else max(results.values(), key=lambda result: result["date"])["rules"]
    stale = Counter(result["rules"] for result in results.values() if result["rules"] != newest)
    if newest != now:
        print(f"The rules are {now} by now; these are results of {newest}.")
    if stale:
        names = ", ".join(f"{rules} ({count})" for rules, count in stale.items())
        print(f"{sum(stale.values())} results are stale, of the rules {names}: {'scored, too' if keeps_stale else 'not scored'}.")
    return {name: result for name, result in results.items() if keeps_stale or result["rules"] == newest}


def main() -> None:
    options = arguments()
    results = stored.load(stored.RESULTS)
    if results:
        results = of_newest_rules(results, options.stale)
    for title, is_part in (("Sealed", True), ("To tune on", False)):
        part = {name: result for name, result in results.items() if (name.split("/")[0].split("+")[0] in sealed()) == is_part}
        if not part:
            continue
        rules = ", ".join(sorted({result["rules"] for result in part.values()}))
        print(f"\n### {title}\n\n{len(part)} set-ups, each with and without what it plants. Commit of the rules: {rules}.")
        values = list(part.values())
        print_scores(values)
        print(f"\nView {options.view}:")
        print_by_strength(values, options.view)
        print_by_cause(values, options.view)
        print_mixtures(part, options.view)
    live = stored.load(stored.LIVE)
    print_live(of_newest_rules(live, options.stale) if live else {})
    openings = stored.SEALED_LOG.read_text().splitlines() if stored.SEALED_LOG.exists() else []
    print(f"\nThe sealed part was opened {len(openings)} times.")
    for opening in openings:
        print(f"- {opening}")


if __name__ == "__main__":
    main()
