"""All families, in the order of their names."""

from . import clients, cpu, locks, storage, surroundings

FAMILIES = sorted(
    [*cpu.FAMILIES, *locks.FAMILIES, *storage.FAMILIES, *surroundings.FAMILIES, *clients.FAMILIES],
    key=lambda family: family.name,
)
BY_NAME = {family.name: family for family in FAMILIES}
assert len(BY_NAME) == len(FAMILIES), "a name is used twice"
