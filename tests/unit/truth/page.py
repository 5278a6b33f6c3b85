# SPDX-License-Identifier: GPL-3.0-or-later

"""docs/truth.md, made from the table: ``python -m tests.unit.truth.page > docs/truth.md``."""

from __future__ import annotations

import pathlib
import sys
import typing

sys.path.insert(0, str(pathlib.Path(__file__).parents[3] / "build/collections"))

from ansible_collections.linerate.rdma.tests.unit.truth.site_table import SITE, TEARDOWN
from ansible_collections.linerate.rdma.tests.unit.truth.table import GAPS, ROWS, Row

HEAD = """# What a green run does not depend on

Each fact that a run is judged by is broken in turn, in healthy fleets of several sizes: made wrong, larger, smaller, or
that of another node; unread; left out. The run must not be green then. Where it may be, a row of this page says why.
Each row is a test (`tests/unit/truth`): a fact that is noticed after all has no row, and one that is not noticed has
one. The page is made from these tests (`python -m tests.unit.truth.page > docs/truth.md`). `*` stands for any text.

Facts are named as they lie in the folder of the report, `facts/<kind>/<node>.json` (see [facts](facts.md)); `(PF)`,
`(leaf)` or `(node)` says of what.

"""
SILENT_HEAD = "## Facts that do not count\n\n"
WARNED_HEAD = "\n## Facts that are warned of\n\nA finding warns, and the gate stays open.\n\n"
GAPS_HEAD = "\n## Facts that should count, and do not yet\n\n"
COLUMNS = "| kind | fact | when it is | on | why |\n|---|---|---|---|---|\n"


def page() -> str:
    silent, warned = ([row for row in (*ROWS, *SITE, *TEARDOWN) if row.warns is warns] for warns in (False, True))
    text = HEAD + SILENT_HEAD + _table(silent) + WARNED_HEAD + _table(warned)
    return text + GAPS_HEAD + _table(GAPS) if GAPS else text


def _table(rows: typing.Iterable[Row]) -> str:
    return COLUMNS + "".join(map(_row, rows))


def _row(row: Row) -> str:
    kinds, facts = (
        ", ".join(f"`{name}`" if name else "all of it" for name in names) for names in (row.kinds, row.facts)
    )
    return f"| {kinds} | {facts} | {', '.join(row.hows) or 'anything'} | {row.on or 'both'} | {row.why} |\n"


if __name__ == "__main__":
    print(page(), end="")
