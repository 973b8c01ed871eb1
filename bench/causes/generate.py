"""The list of set-ups, from a seed: each family in each strength with each background, on a server build drawn for it."""

import random
from dataclasses import dataclass

from families import FAMILIES
from setups import BACKGROUNDS, STRENGTHS, Background, Family, Run
from split import sealed

SEED = "whyso causes 1"

# The views that hide a source of a recording, with what `whyso why --without` calls it.
HIDING_VIEWS = {"without-tracer": "tracer", "without-stacks": "stacks", "without-waits": "waits", "without-pfs": "pfs"}


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
    def families(self) -> tuple[Family, ...]:
        return (self.family,)

    @property
    def is_sealed(self) -> bool:
        return self.family.name in sealed()

    @property
    def runs(self) -> dict[str, Run]:
        """Returns the runs that a result has."""
        return {"planted": self.planted, "without": self.without}

    @property
    def live_runs(self) -> dict[str, Run]:
        """Returns the planted run, recorded without a source, by the view that hides this source."""
        return {
            "without-tracer": self.planted.but(stacks="", flags=(*self.planted.flags, "--no-trace")),
            "without-stacks": self.planted.but(stacks="none"),
            "without-waits": self.planted.but(stacks="light"),
            "without-pfs": self.planted.but(settings={"performance_schema": "OFF"}),
        }


def setup(family: Family, strength: str, background: Background, build: str) -> Setup:
    planted, without = family.make(strength, background)
    return Setup(family, strength, background.name, build, planted.on(build), without.on(build))


def setups() -> list[Setup]:
    """Returns all set-ups. Those of one family use its builds in turn, from one that is drawn. Sealed families have one more, so that more than 60 are
    left without the weak ones."""
    draw = random.Random(SEED)
    made, more = [], []
    for family in FAMILIES:
        builds = list(family.builds)
        draw.shuffle(builds)
        for strength in STRENGTHS:
            for background in BACKGROUNDS:
                made.append(setup(family, strength, background, builds[len(made) % len(builds)]))
        if family.name in sealed() and len(builds) > 1:
            used = {one.build for one in made if one.family is family and (one.strength, one.background) == ("strong", "points")}
            build = next(one for one in builds if one not in used)
            more.append(setup(family, "strong", BACKGROUNDS[0], build))
    return made + more


def in_turn(some: list[Setup]) -> list[Setup]:
    """Returns them in an order that is drawn, each family as often as the others in any first part of it."""
    drawn = list(some)
    random.Random(SEED).shuffle(drawn)
    seen: dict[str, int] = {}
    ranked = []
    for setup in drawn:
        seen[setup.family.name] = seen.get(setup.family.name, 0) + 1
        ranked.append((seen[setup.family.name], setup))
    return [setup for _, setup in sorted(ranked, key=lambda pair: pair[0])]


def to_tune_on() -> list[Setup]:
    return in_turn([setup for setup in setups() if not setup.is_sealed])
