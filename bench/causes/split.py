"""Which families are sealed. The seed was committed before any rule that the sealed part judges; it never changes."""

import random

from families import FAMILIES

SEED = "whyso sealed causes 2026-11-23"
SEALED_SHARE = 1 / 3


def sealed() -> set[str]:
    """Returns the names of the sealed families: no rule is written or changed by what is seen in them."""
    names = [family.name for family in FAMILIES]
    return set(random.Random(SEED).sample(names, round(SEALED_SHARE * len(names))))


if __name__ == "__main__":
    for family in FAMILIES:
        print(f"{'sealed' if family.name in sealed() else 'tune':8}{family.cause:20}{family.name}")
