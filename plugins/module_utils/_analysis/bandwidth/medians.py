# SPDX-License-Identifier: GPL-3.0-or-later

"""The medians of the figures that kept runs measured. Pure."""

from __future__ import annotations

import statistics
import typing

#: runs that a median needs
FEWEST_RUNS = 3

Key_co = typing.TypeVar("Key_co", covariant=True)


class KeptFigures(typing.Protocol[Key_co]):
    """The figures that kept runs measured of one pair or one step."""

    @property
    def key(self) -> Key_co:
        """The key of the pair or the step in a run."""

    @property
    def figures(self) -> tuple[float, ...]:
        """One figure for each run."""


def compute_medians(kept: typing.Iterable[KeptFigures[Key_co]]) -> dict[Key_co, tuple[float, int]]:
    """Compute the median of each pair or step that ``FEWEST_RUNS`` runs have measured, in the unit of its figures, and
    count these runs."""
    return {
        item.key: (statistics.median(item.figures), len(item.figures))
        for item in kept
        if len(item.figures) >= FEWEST_RUNS
    }
