# SPDX-License-Identifier: GPL-3.0-or-later

"""Collect the tuning settings of a node as rows. A row is one setting, with its values and the devices that have each
value. Errors are stored by row, because an unreadable file does not mean that the setting is absent.
"""

from __future__ import annotations

import os
import typing

from ...._model.base.errors import ParseError
from ...._model.base.text import format_ranges
from ...._model.node.tuning import NodeTuning, RowReading
from ..sysfs_reader import SysfsReader, make_natural_sort_key

#: CPUs by number, all else by name
Where = typing.Union[int, str, None]
Parser = typing.Callable[[str], typing.Any]


class Rows:
    """A collector of the tuning rows of a node. Each row is one observable property, with a value for each device that
    has the property. A row with neither a value nor an error shows that the node does not have the property.
    """

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
        """Add the contents of one file to a tuning row: the parsed value, or the reason why the file cannot be read. If
        the file is absent, the row gets no value.

        :param row: name of the tuning row
        :param reader: reader of the folder with the file
        :param name: path of the file, relative to the folder of the reader
        :param parser: function that gets the text of the file and returns the value
        :param where: device or CPU to which the value belongs; None for the whole node
        """
        before = len(reader.errors)
        value = reader.value(name, parser)
        if len(reader.errors) > before:
            self.unread(reader.errors[-1], row)
        elif value is None:
            self.absent(row)
        else:
            self.add(row, value, where)

    def parsed(self, row: str, parser: Parser, text: str, where: Where = None) -> None:
        """Add a value from the output of a program to a tuning row, or the error if the output cannot be parsed.

        :param row: name of the tuning row
        :param parser: function that gets the text and returns the value
        :param text: output of the program, or a part of it
        :param where: device or CPU to which the value belongs; None for the whole node
        """
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
                row: whys[0] if len(whys) == 1 else f"{whys[0]} (the first of {len(whys)} errors)"
                for row, whys in sorted(self._unread.items())
            },
        )


def _summarize_locations(where: typing.Sequence[Where]) -> tuple[str, ...]:
    cpus = [item for item in where if isinstance(item, int)]
    names = sorted({item for item in where if isinstance(item, str)}, key=make_natural_sort_key)
    return (*([format_ranges(cpus)] if cpus else []), *names)


def reader_of(readers: typing.Sequence[SysfsReader], name: str) -> SysfsReader:
    """Return the first of several sysfs readers whose folder contains a file or folder. If none contains it, return the
    first reader.

    :param readers: readers of the sysfs roots, at least one
    :param name: path of the file or folder, relative to a root
    """
    return next((reader for reader in readers if os.path.lexists(os.path.join(reader.folder, name))), readers[0])
