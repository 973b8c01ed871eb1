"""Which families are sealed: no rule is written or changed by what is seen in them.

The first draw was committed before any rule that the sealed part judges. A family that is added later is drawn by its name alone, so that it
changes nothing of what was drawn before.
"""

import hashlib

from families import FAMILIES

SEED = "whyso sealed causes 2026-11-23"
SEALED_SHARE = 1 / 3

# The families of the first draw, 2026-11-23.
SEALED_FIRST = frozenset(
    """distinct-rows group-in-temporary-table query-cache queue-of-jobs reconnect scan-for-text shared-then-exclusive
    small-buffer-pool table-cache temporary-tables-on-disk tickets""".split()
)
OPEN_FIRST = frozenset(
    """binary-log-is-flushed busy-neighbour change-behind-a-reader gap generator-that-computes global-read-lock hot-row
    join-without-index log-is-flushed named-lock numbers-of-rows old-versions opposite-orders parent-row quota scan-without-index
    small-redo-log sort-rows statement-that-sleeps table-of-myisam table-that-is-rebuilt users-that-pause""".split()
)


def is_sealed(name: str) -> bool:
    """Returns whether the family of this name is sealed."""
    if name in SEALED_FIRST or name in OPEN_FIRST:
        return name in SEALED_FIRST
    drawn = int.from_bytes(hashlib.sha256(f"{SEED} {name}".encode()).digest()[:8], "big")
    return drawn / 2**64 < SEALED_SHARE


def sealed() -> set[str]:
    """Returns the names of the sealed families."""
    return {family.name for family in FAMILIES if is_sealed(family.name)}


if __name__ == "__main__":
    for family in FAMILIES:
        print(f"{'sealed' if family.name in sealed() else 'tune':8}{family.cause:20}{family.name}")
