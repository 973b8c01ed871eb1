"""What results say about whyso's answers. Arithmetic only: no files, no servers.

A set-up counts by what its plant costs in truth, which its run without the cause measures: it is weak where throughput without the cause is less
than 1.25 times what it is with it, medium up to 2, strong from there on. A set-up that failed has no truth, and is not right.
"""

import math
from collections import Counter
from dataclasses import dataclass

MEDIUM_GAIN_MIN = 1.25
STRONG_GAIN_MIN = 2.0
STRENGTHS = ("weak", "medium", "strong")
# What is true of a server that simply works.
ORDINARY = {"cpu", "runqueue", "wakeup-latency", "unknown", "unsaturated"}
ORDINARY_SHARE_MAX = 0.2
# From here on the load generator is the limit, by its loops' own CPU time.
GENERATOR_CPU_FULL = 0.85
# Two causes of a mixture whose gains are closer than this are both the first.
EQUAL_GAINS_RATIO = 1.1
# Throughput of two runs of the same set-up differs by as much as this without a reason.
RUNS_DIFFER = 1.1
Z_95 = 1.959964


@dataclass(frozen=True)
class Rate:
    """A number of hits among a number of tries."""

    hits: int
    count: int

    @property
    def interval(self) -> tuple[float, float]:
        """Returns the 95 % interval of the share (E. B. Wilson, 1927)."""
        if not self.count:
            return 0.0, 1.0
        share, z2 = self.hits / self.count, Z_95**2 / self.count
        middle = (share + z2 / 2) / (1 + z2)
        half = Z_95 / (1 + z2) * math.sqrt(share * (1 - share) / self.count + z2 / (4 * self.count))
        return max(middle - half, 0.0), min(middle + half, 1.0)

    def __str__(self) -> str:
        if not self.count:
            return "–"
        low, high = self.interval
        return f"{self.hits} of {self.count}: {self.hits / self.count:.0%} ({low:.0%}–{high:.0%})"


def rate(some: list, holds) -> Rate:
    return Rate(sum(bool(holds(one)) for one in some), len(some))


def is_mixture(result: dict) -> bool:
    return "causes" in result


def has_failed(result: dict) -> bool:
    return "failed" in result


def strength(result: dict) -> str:
    gain = result["true_gain"]
    return "weak" if gain < MEDIUM_GAIN_MIN else "medium" if gain < STRONG_GAIN_MIN else "strong"


def is_weak(result: dict) -> bool:
    return not has_failed(result) and strength(result) == "weak"


def named(run: dict, view: str = "full", count: int = 1) -> list[str]:
    """Returns the first suspects of a run."""
    return [name for name, _ in run["named"][view]["suspects"][:count]]


def is_named(result: dict, view: str, count: int) -> bool:
    """Whether the planted cause is among the first suspects."""
    return not has_failed(result) and result["cause"] in named(result["planted"], view, count)


def is_first_or_possible(result: dict, view: str) -> bool:
    """Whether the planted cause is first, or listed as possible while nothing else is: nothing measures the time of some causes."""
    if has_failed(result):
        return False
    first = named(result["planted"], view)
    is_possible = result["cause"] in result["planted"]["named"][view]["possible"]
    return first == [result["cause"]] or (first == ["unknown"] and is_possible)


def is_confidently_wrong(result: dict, view: str) -> bool:
    is_unknown = not has_failed(result) and named(result["planted"], view) in ([], ["unknown"])
    return not has_failed(result) and not is_unknown and not is_named(result, view, 3)


def false_alarms(result: dict, view: str) -> list[str]:
    """Returns the causes that are named where none was planted: all but ordinary work that hold 20 % or more. The generator is ordinary where its own
    CPU time shows that it was the limit."""
    run = result["without"]
    ordinary = ORDINARY | ({"generator"} if run["generator_cpu"] >= GENERATOR_CPU_FULL else set())
    suspects = run["named"][view]["suspects"]
    return [name for name, share in suspects if name not in ordinary and share >= ORDINARY_SHARE_MAX]


def is_quiet(result: dict, view: str) -> bool:
    return not has_failed(result) and not false_alarms(result, view)


def has_estimate(result: dict, view: str) -> bool:
    """Whether a gain was predicted for the planted cause."""
    return not has_failed(result) and result["cause"] in result["planted"]["named"][view].get("gains", {})


def holds_gain(result: dict, view: str) -> bool:
    """Whether the measured gain lies within the bounds that were predicted. Two runs of the same differ, too: the bounds are widened by that."""
    low, high = result["planted"]["named"][view]["gains"][result["cause"]]
    return low / RUNS_DIFFER <= result["true_gain"] <= high * RUNS_DIFFER


def counted(results: list[dict]) -> list[dict]:
    """Returns the results of single causes that are scored: those that cost something, and those that failed."""
    return [result for result in results if not is_mixture(result) and not is_weak(result)]


def confusion(results: list[dict], view: str) -> dict[str, Counter]:
    """Returns by planted cause how often each cause was named first; "(failed)" and "(none)" included."""
    matrix: dict[str, Counter] = {}
    for result in counted(results):
        first = "(failed)" if has_failed(result) else (named(result["planted"], view) or ["(none)"])[0]
        matrix.setdefault(result["cause"], Counter())[first] += 1
    return matrix


def recall(results: list[dict], cause: str, view: str) -> Rate:
    return rate([one for one in counted(results) if one["cause"] == cause], lambda one: is_named(one, view, 1))


def precision(results: list[dict], cause: str, view: str) -> Rate:
    """Of the runs in which this cause was named first, those in which it was planted. A run without a plant counts where this is a false alarm."""
    matrix = confusion(results, view)
    named_first = sum(names[cause] for names in matrix.values())
    measured = [one for one in results if not is_mixture(one) and not has_failed(one)]
    alarms = sum(named(one["without"], view) == [cause] and cause in false_alarms(one, view) for one in measured)
    return Rate(matrix.get(cause, Counter())[cause], named_first + alarms)


def by_strength(results: list[dict], which: str, view: str) -> tuple[Rate, Rate]:
    """Returns recall, and the precision of all first suspects but `unknown`, over plants of a strength."""
    some = [one for one in results if not is_mixture(one) and not has_failed(one) and strength(one) == which]
    answers = [one for one in some if named(one["planted"], view) not in ([], ["unknown"])]
    return rate(some, lambda one: is_named(one, view, 1)), rate(answers, lambda one: is_named(one, view, 1))


def first_causes(mixture: dict) -> set[str]:
    """Returns the cause whose removal gains more; both where the gains are about the same."""
    most = max(mixture["true_gains"])
    pairs = zip(mixture["causes"], mixture["true_gains"])
    return {cause for cause, gain in pairs if gain * EQUAL_GAINS_RATIO >= most}


def is_mixture_weak(mixture: dict) -> bool:
    """Whether neither cause costs anything on its own: each hides behind the other, or is weak."""
    return not has_failed(mixture) and max(mixture["true_gains"]) < MEDIUM_GAIN_MIN


def is_first_right(mixture: dict, view: str) -> bool:
    return not has_failed(mixture) and bool(first_causes(mixture).intersection(named(mixture["both"], view)))


def has_both(mixture: dict, view: str, count: int) -> bool:
    return not has_failed(mixture) and set(mixture["causes"]) <= set(named(mixture["both"], view, count))


def cost_both(mixture: dict) -> bool:
    return has_failed(mixture) or min(mixture["true_gains"]) >= MEDIUM_GAIN_MIN


def summary(results: list[dict]) -> str:
    """Returns the score in one line, for the log of the sealed part."""
    some = counted(results)
    two = [one for one in results if is_mixture(one) and not is_mixture_weak(one)]
    parts = [
        f"first right {rate(some, lambda one: is_named(one, 'full', 1))}",
        f"among the first two {rate(some, lambda one: is_named(one, 'full', 2))}",
        f"confidently wrong {rate(some, lambda one: is_confidently_wrong(one, 'full'))}",
        f"mixtures first right {rate(two, lambda one: is_first_right(one, 'full'))}",
        f"failed {sum(map(has_failed, results))}",
    ]
    return ", ".join(parts)
