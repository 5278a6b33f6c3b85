# SPDX-License-Identifier: GPL-3.0-or-later

"""Compute the median of the figures that a pair of nodes, or a step of a collective, had in earlier runs whose results
were kept. Pure.
"""

from __future__ import annotations

import statistics
import typing

#: runs that a median needs
FEWEST_RUNS = 3

Key_co = typing.TypeVar("Key_co", covariant=True)


class KeptFigures(typing.Protocol[Key_co]):
    """The figures of one pair of nodes, or of one step of a collective, from the runs whose results are kept."""

    @property
    def key(self) -> Key_co:
        """The key that identifies the pair or the step in each run."""

    @property
    def figures(self) -> tuple[float, ...]:
        """One figure for each run, in Gb/s, GB/s or microseconds."""


def compute_medians(kept: typing.Iterable[KeptFigures[Key_co]]) -> dict[Key_co, tuple[float, int]]:
    """Return the median of each pair or step, in the unit of its figures, with the number of runs from which it is
    computed. Pairs and steps with figures from fewer than ``FEWEST_RUNS`` runs are left out.

    :param kept: figures of each pair or step
    """
    return {
        item.key: (statistics.median(item.figures), len(item.figures))
        for item in kept
        if len(item.figures) >= FEWEST_RUNS
    }
