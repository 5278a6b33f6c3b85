# SPDX-License-Identifier: GPL-3.0-or-later

"""The table of owners in docs/security.md, made of the table that the tests play. ``python -m tests.unit.owners.page``
prints it."""

from __future__ import annotations

from tests.unit.owners.table import KEEP, OWNERS, REFUSE, ROWS, TAKE

_RUN = {TAKE: "changes", KEEP: "uses", REFUSE: "refuses"}
_TEARDOWN = {TAKE: "removes", KEEP: "keeps", REFUSE: "refuses"}


def render() -> str:
    """Return the lines of the table: a row for each owner, a column for each group of kinds with the same cells."""
    groups: dict[str, list[str]] = {}
    for kind, row in ROWS.items():
        groups.setdefault(repr(row), []).append(kind)
    columns = [
        (", ".join(f"`{kind.partition('.')[0]}`" for kind in kinds), ROWS[kinds[0]]) for kinds in groups.values()
    ]
    lines = ["| owner | " + " | ".join(title for title, _row in columns) + " |", "|---|" + "---|" * len(columns)]
    for owner, text in OWNERS.items():
        cells = [
            f"{_RUN[row[owner].apply]} / {_TEARDOWN[row[owner].teardown]}" if owner in row else "-"
            for _title, row in columns
        ]
        lines.append(f"| {text} | {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(render())
