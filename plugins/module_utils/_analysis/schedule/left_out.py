# SPDX-License-Identifier: GPL-3.0-or-later

"""Find the ends (rail and node) that stage bandwidth leaves out of its later steps, because their pairs with several
partners used up the time of a step without giving a bandwidth.

Each step waits for its slowest pair, so one such node could make every round take its maximum time.
"""

from __future__ import annotations

import collections
import typing

from ..._model.measurement.pairs import End, PairResult

Pair = frozenset[End]
#: nodes in a row with which an end loses its pairs before it is left out
PARTNERS = 3
#: a partner speaks against an end where it has passed since then, and with so many times the others that it lost pairs
#: with: both ends of a path that is bad lose as much, and at the same time
_VOUCHES = 2


class LostPairs:
    """The failures of each end of a fabric during its measurement.

    :ivar out: ends that are left out, with the nodes of the partners in their failed pairs
    """

    def __init__(self) -> None:
        self.out: dict[End, tuple[str, ...]] = {}
        self._step = 0
        #: by end the partners that it lost pairs with since it has passed, and in which step; by end the step in which
        #: it passed last
        self._row: dict[End, dict[End, int]] = collections.defaultdict(dict)
        self._last: dict[End, int] = {}
        self._passed: dict[End, set[End]] = collections.defaultdict(set)
        self._lost: dict[End, set[End]] = collections.defaultdict(set)

    def note(self, results: typing.Iterable[PairResult], usual: float) -> tuple[End, ...]:
        """Evaluate the results of a step, and return the ends that are left out from now on.

        :param results: measurements of the step
        :param usual: seconds that a measurement takes without a failure. A failure that takes no longer delays no other
            pair and does not count
        """
        passed, lost = _separate_lost_pairs(results, usual)
        self._step += 1
        for pair in passed:
            for end in pair:
                self._row.pop(end, None)
                self._last[end] = self._step
                self._passed[end] |= pair - {end}
        for pair in lost:
            for end in pair:
                self._row[end] = {**dict.fromkeys(pair - {end}, self._step), **self._row[end]}
                self._lost[end] |= pair - {end}
        against = {
            end: self._list_accusing_partners(partners)
            for end, partners in sorted(self._row.items())
            if end not in self.out
        }
        found = {end: nodes for end, nodes in against.items() if len(nodes) >= PARTNERS}
        self.out.update(found)
        return tuple(found)

    def _list_accusing_partners(self, partners: typing.Mapping[End, int]) -> tuple[str, ...]:
        """Return the nodes of the partners whose failed pairs count against an end. A partner counts if it is reliable,
        and if it has passed with another end since its failure with this one.

        :param partners: step of the failure with each partner
        """
        return tuple(
            sorted(
                {
                    partner[1]
                    for partner, step in partners.items()
                    if self._last.get(partner, 0) > step and self._is_reliable_partner(partner)
                }
            )
        )

    def _is_reliable_partner(self, partner: End) -> bool:
        return partner not in self.out and len(self._passed[partner]) >= _VOUCHES * len(
            self._lost[partner] - set(self.out)
        )


def _separate_lost_pairs(results: typing.Iterable[PairResult], usual: float) -> tuple[set[Pair], set[Pair]]:
    """Return two sets of pairs: those without a failure in either direction, and those with a failure that took longer
    than usual.

    :param results: measurements of one step
    :param usual: seconds that a measurement takes without a failure
    """
    every = list(results)
    failed = {result.pair for result in every if result.failure}
    return {result.pair for result in every} - failed, {
        result.pair for result in every if result.failure and result.seconds > usual
    }
