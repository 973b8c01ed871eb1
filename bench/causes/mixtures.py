"""Set-ups that plant two causes at once, from a seed.

The truth is measured: the cause whose removal gains more is the first. Only families of the same part are mixed, whose runs differ in SQL and
settings alone, so that one run can have both.
"""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass

from families import FAMILIES
from setups import BACKGROUNDS, STRENGTHS, Background, Family, Run
from split import sealed

SEED = "whyso mixtures 1"
COUNT_EACH_PART = 12

# Blocks of a file that can't be followed by another file's statements.
BLOCKS = ("\\setup", "\\session", "\\transaction")


@dataclass(frozen=True)
class Mixture:
    first: Family
    second: Family
    strengths: tuple[str, str]
    background: str
    build: str
    both: Run
    without_first: Run
    without_second: Run

    @property
    def name(self) -> str:
        return f"{self.first.name}+{self.second.name}/{'+'.join(self.strengths)}/{self.background}/{self.build}"

    @property
    def families(self) -> tuple[Family, ...]:
        return (self.first, self.second)

    @property
    def is_sealed(self) -> bool:
        return self.first.name in sealed()

    @property
    def runs(self) -> dict[str, Run]:
        return {"both": self.both, "without-first": self.without_first, "without-second": self.without_second}


def is_composable(family: Family) -> bool:
    """Whether the family plants its cause by SQL and settings only, in statements that others can follow."""
    runs = [run for strength in STRENGTHS for run in family.make(strength, BACKGROUNDS[0])]
    is_plain = [not (run.flags or run.writes_per_s or run.reads_per_s or run.quota_cpus or run.neighbours) for run in runs]
    return all(is_plain) and not any(block in run.sql for run in runs for block in BLOCKS)


def composed(one: Run, other: Run) -> Run | None:
    """Returns a run that does what both do, one after the other; None where they contradict each other."""
    contradicts = any(other.settings.get(knob, value) != value for knob, value in one.settings.items())
    if contradicts or one.rows != other.rows or one.own_cpus != other.own_cpus:
        return None
    return one.but(
        sql=one.sql + other.sql,
        users=max(one.users, other.users),
        tables=max(one.tables, other.tables),
        settings=other.settings,
    )


def mixture(first: Family, second: Family, strengths: tuple[str, str], background: Background, build: str) -> Mixture | None:
    """Returns the set-up of two causes; None where they can't be composed."""
    quiet = Background(background.name, "", background.settings)
    planted, without = first.make(strengths[0], quiet)
    other_planted, other_without = second.make(strengths[1], background)
    runs = composed(planted, other_planted), composed(without, other_planted), composed(planted, other_without)
    if None in runs:
        return None
    return Mixture(first, second, strengths, background.name, build, *(run.on(build) for run in runs))


def of_part(families: list[Family], draw: random.Random) -> list[Mixture]:
    """Returns mixtures of these families, each family about as often as the others."""
    pairs = [pair for pair in itertools.combinations(families, 2) if pair[0].cause != pair[1].cause]
    draw.shuffle(pairs)
    used = {family.name: 0 for family in families}
    made: list[Mixture] = []
    while pairs and len(made) < COUNT_EACH_PART:
        pair = min(pairs, key=lambda pair: used[pair[0].name] + used[pair[1].name])
        pairs.remove(pair)
        builds = [build for build in pair[0].builds if build in pair[1].builds]
        strengths = (draw.choice(STRENGTHS), draw.choice(STRENGTHS))
        background = draw.choice(BACKGROUNDS)
        found = mixture(*pair, strengths, background, draw.choice(builds)) if builds else None
        if found:
            made.append(found)
            used[pair[0].name] += 1
            used[pair[1].name] += 1
    return made


def mixtures() -> list[Mixture]:
    """Returns all mixtures: those to tune on first, then those of sealed families."""
    draw = random.Random(SEED)
    composable = [family for family in FAMILIES if is_composable(family)]
    tune = [family for family in composable if family.name not in sealed()]
    return of_part(tune, draw) + of_part([family for family in composable if family.name in sealed()], draw)
