# SPDX-License-Identifier: GPL-3.0-or-later

"""A row of the table of nccl-tests that is not complete yet, and the columns of the table."""

from __future__ import annotations

import dataclasses
import typing

from ...._model.job.nccl_tests import NcclTestFigure, NcclTestRow

#: words of the figures of one place, with option -I
WITH_ITERATIONS = 8
#: wrong values of a row: a message has no more values than 64 bits count
_MOST_WRONG = 2.0**63


@dataclasses.dataclass
class TableColumns:
    """The layout of the table of a run, which is derived from the names of its columns.

    :ivar keys: names of the columns between type and time: ``redop``, ``root``, both or none (empty)
    :ivar width: number of words of the figures out of place, which is also that of the figures in place
    :ivar places: 2 if each table line has figures both out of place and in place, otherwise 1
    :ivar largest_error: whether the fourth figure is the largest error instead of the number of wrong values
    """

    keys: tuple[str, ...]
    width: int
    places: int
    largest_error: bool


@dataclasses.dataclass
class OpenRow:
    """A table line that is not complete yet.

    :ivar size: message size in bytes
    :ivar count: number of elements
    :ivar type: data type of the elements
    :ivar keys: values of the columns between type and time, by the name of the column
    :ivar words: words of the figures that were read so far
    """

    size: int
    count: int
    type: str
    keys: dict[str, str]
    words: list[str] = dataclasses.field(default_factory=list)

    def build(self, columns: TableColumns) -> typing.Optional[NcclTestRow]:
        """Return the completed table line. Return None if the words are not the figures of a complete line.

        :param columns: layout of the table
        """
        width = columns.width
        if len(self.words) != width * columns.places:
            return None
        figures = [
            _parse_figure(self.words[start : start + width], columns.largest_error)
            for start in range(0, len(self.words), width)
        ]
        if None in figures:
            return None
        operation, root = self.keys.get("redop", "none"), int(self.keys.get("root", "-1"))
        return NcclTestRow(
            self.size,
            self.count,
            self.type,
            "" if operation == "none" else operation,
            root if root >= 0 else None,
            figures[0] if columns.places == 2 else None,
            figures[-1],
        )


def _parse_figure(words: typing.Sequence[str], largest_error: bool) -> typing.Optional[NcclTestFigure]:
    """Return the figures of a row. Return None if the test did not run, or if the count of wrong values is impossible.

    :param words: columns of the row, from the time on
    :param largest_error: whether the last column is the largest error, as in old versions, and not the count of wrong
        values
    """
    if "N/A" in words[:3]:
        return None
    time, algorithm, bus = (float(word) for word in words[:3])
    checked = None if words[3] == "N/A" else float(words[3])
    if checked is not None and not largest_error and checked > _MOST_WRONG:
        return None
    if largest_error:
        return NcclTestFigure(time, algorithm, bus, None, checked)
    # of option -I: the fastest and the slowest iteration, that of 99 %, and the variation
    p99 = float(words[6]) if len(words) == WITH_ITERATIONS and "N/A" not in words[4:] else None
    return NcclTestFigure(time, algorithm, bus, None if checked is None else int(checked), p99_us=p99)
