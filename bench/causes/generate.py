"""The list of set-ups, from a seed: each family in each strength with each background, on a server build drawn for it."""

import random
from dataclasses import dataclass

from families import FAMILIES
from setups import BACKGROUNDS, STRENGTHS, Family, Run
from split import sealed

SEED = "whyso causes 1"


@dataclass(frozen=True)
class Setup:
    family: Family
    strength: str
    background: str
    build: str
    planted: Run
    without: Run

    @property
    def name(self) -> str:
        return f"{self.family.name}/{self.strength}/{self.background}/{self.build}"

    @property
    def is_sealed(self) -> bool:
        return self.family.name in sealed()


def setups() -> list[Setup]:
    """Returns all set-ups. Those of one family use its builds in turn, from one that is drawn."""
    draw = random.Random(SEED)
    made = []
    for family in FAMILIES:
        builds = list(family.builds)
        draw.shuffle(builds)
        for strength in STRENGTHS:
            for background in BACKGROUNDS:
                planted, without = family.make(strength, background)
                build = builds[len(made) % len(builds)]
                made.append(Setup(family, strength, background.name, build, planted, without))
    return made


def quick(count: int) -> list[Setup]:
    """Returns a part of those to tune on, each family as often as the others."""
    tune = [setup for setup in setups() if not setup.is_sealed]
    random.Random(SEED).shuffle(tune)
    seen: dict[str, int] = {}
    ranked = []
    for setup in tune:
        seen[setup.family.name] = seen.get(setup.family.name, 0) + 1
        ranked.append((seen[setup.family.name], setup))
    return [setup for _, setup in sorted(ranked, key=lambda pair: pair[0])[:count]]
