# SPDX-License-Identifier: GPL-3.0-or-later

"""Rows as they are read: equal values together, and what failed by its row, since an unread file is no absent one."""

from __future__ import annotations

import os
import typing

from ...._model.base.errors import ParseError
from ...._model.base.text import ranges
from ...._model.node.tuning import NodeTuning, RowReading
from ..sysfs import SysfsReader, natural

#: CPUs by number, all else by name
Where = typing.Union[int, str, None]
Parser = typing.Callable[[str], typing.Any]


class Rows:
    """Collects what a node shows. A row that is given neither a value nor a reason stands for what the node has not."""

    def __init__(self) -> None:
        self._found: dict[str, dict[str, list[Where]]] = {}
        self._unread: dict[str, list[str]] = {}

    def add(self, row: str, value: typing.Any, where: Where = None) -> None:
        self._found.setdefault(row, {}).setdefault(str(value), []).append(where)

    def absent(self, *rows: str) -> None:
        for row in rows:
            self._found.setdefault(row, {})

    def unread(self, why: str, *rows: str) -> None:
        for row in rows:
            self._unread.setdefault(row, []).append(why)

    def file(self, row: str, reader: SysfsReader, name: str, parser: Parser, where: Where = None) -> None:
        """A row out of one file: its value, or why it can't be read, or absent."""
        before = len(reader.errors)
        value = reader.value(name, parser)
        if len(reader.errors) > before:
            self.unread(reader.errors[-1], row)
        elif value is None:
            self.absent(row)
        else:
            self.add(row, value, where)

    def parsed(self, row: str, parser: Parser, text: str, where: Where = None) -> None:
        """A row out of what a tool said."""
        try:
            self.add(row, parser(text), where)
        except ParseError as error:
            self.unread(str(error), row)

    def result(self) -> NodeTuning:
        rows = {
            row: tuple(RowReading(value, _summarize_locations(where)) for value, where in sorted(values.items()))
            for row, values in self._found.items()
        }
        return NodeTuning(
            dict(sorted(rows.items())),
            {
                row: whys[0] if len(whys) == 1 else f"{whys[0]}; and {len(whys) - 1} more"
                for row, whys in sorted(self._unread.items())
            },
        )


def _summarize_locations(where: typing.Sequence[Where]) -> tuple[str, ...]:
    cpus = [item for item in where if isinstance(item, int)]
    names = sorted({item for item in where if isinstance(item, str)}, key=natural)
    return (*([ranges(cpus)] if cpus else []), *names)


def reader_of(readers: typing.Sequence[SysfsReader], name: str) -> SysfsReader:
    """Return the first of several sysfs that has a file or folder; else the first."""
    return next((reader for reader in readers if os.path.lexists(os.path.join(reader.folder, name))), readers[0])
