#!/usr/bin/env python3
"""Writes the tables of figures in bench/NAME/README.md from bench/NAME/results.json.

    bench/tables.py NAME…       writes the tables of these benches
    bench/tables.py --check     fails where a README differs from its results.json

A README has a pair of comments for each table, `<!-- results: TABLE -->` and `<!-- results: end -->`; what is between them is generated.
results.json holds each table's cells as the bench printed them, and where they come from: `date` and `machine` of the measurement, `commit` of
whyso that was measured, and `entered`, the commit by which the figures came into this repository. "not recorded" is a value like any other.
"""

import json
import pathlib
import re
import sys

BENCH = pathlib.Path(__file__).parent
BLOCK = re.compile(r"<!-- results: (?!end)(\S+) -->\n.*?<!-- results: end -->\n", re.DOTALL)
ORIGIN = ("date", "machine", "commit", "entered")


def table_text(table: dict) -> str:
    """One table with the line on where its figures come from."""
    missing = [key for key in ORIGIN if not table.get(key)]
    if missing:
        raise ValueError(f"{', '.join(missing)} is missing")
    columns = len(table["columns"])
    lines = [table["columns"], [{"left": "---", "right": "---:"}[side] for side in table["align"]], *table["rows"]]
    if any(len(line) != columns for line in lines):
        raise ValueError(f"a row has not {columns} cells")
    commit = table["commit"] if table["commit"] == "not recorded" else f"`{table['commit']}`"
    origin = f"Date: {table['date']}. Machine: {table['machine']}. Commit measured: {commit}; entered by `{table['entered']}`."
    rows = ["|" + "".join(f" {cell} |" if cell else " |" for cell in line) for line in lines]
    return "\n".join([origin, "", *rows]) + "\n"


def readme_text(folder: pathlib.Path) -> tuple[str, str]:
    """The README as it is, and as it should be."""
    tables = json.loads((folder / "results.json").read_text())["tables"]
    before = (folder / "README.md").read_text()
    shown = []

    def block(found: re.Match) -> str:
        name = found[1]
        if name not in tables:
            raise ValueError(f"results.json has no table {name}")
        shown.append(name)
        return f"<!-- results: {name} -->\n{table_text(tables[name])}<!-- results: end -->\n"

    after = BLOCK.sub(block, before)
    absent = sorted(set(tables) - set(shown))
    if absent:
        raise ValueError(f"README.md does not show {', '.join(absent)}")
    return before, after


def folders(names: list[str]) -> list[pathlib.Path]:
    if names:
        return [BENCH / name for name in names]
    return sorted(path.parent for path in BENCH.glob("*/README.md") if "<!-- results: " in path.read_text())


def main(arguments: list[str]) -> int:
    is_check = arguments[:1] == ["--check"]
    names = arguments[1:] if is_check else arguments
    if not (is_check or names):
        print(__doc__, file=sys.stderr)
        return 2
    status = 0
    for folder in folders(names):
        try:
            before, after = readme_text(folder)
        except (OSError, ValueError) as error:
            print(f"bench/{folder.name}: {error}", file=sys.stderr)
            status = 1
            continue
        if not is_check:
            (folder / "README.md").write_text(after)
        elif before != after:
            print(f"bench/{folder.name}/README.md differs from its results.json: type 'make bench-{folder.name}'", file=sys.stderr)
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
