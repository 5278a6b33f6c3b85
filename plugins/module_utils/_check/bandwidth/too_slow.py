# SPDX-License-Identifier: GPL-3.0-or-later

"""Stage bandwidth, which pairs are measured once more with more queue pairs: those that are too slow, before anything
is told from them."""

from __future__ import annotations

import collections
import dataclasses
import typing

from ..._analysis.bandwidth.floors import Best, PairLimits
from ..._analysis.schedule.wider import ENOUGH, Amount, wider
from ..._model.measurement.bandwidth import PairResult, Wider
from ..._model.run.findings import FAIL
from .pairs import OF_FIGURE, check_pair


class TooSlow:
    """Tells, step by step, which pairs are to be measured once more. It keeps what others of their kind reach, and
    whose pairs no second figure helped."""

    def __init__(self, ground: PairLimits) -> None:
        self._ground = ground
        self._best: dict[typing.Any, Best] = {}
        #: by end and what it does there: how many of its pairs stayed too slow, or gave no second figure
        self._stayed: dict[tuple[int, str, str], int] = collections.Counter()

    def choose(self, pairs: typing.Sequence[PairResult]) -> list[tuple[PairResult, typing.Optional[Amount]]]:
        """Return each pair with what it is measured with once more; None for those that are not.

        A pair one of whose ends has had ``ENOUGH`` others that stayed too slow says so itself: more queue pairs would
        tell nothing new.
        """
        for kind, best in self._ground.best(pairs).items():
            if kind not in self._best or best.average > self._best[kind].average:
                self._best[kind] = best
        return [self._to_be_measured(pair) for pair in pairs]

    def is_too_slow(self, pair: PairResult) -> bool:
        """Return whether a floor, or what others reach, speaks against a figure of RDMA."""
        return pair.is_comparable and any(
            item.status == FAIL and item.check in OF_FIGURE for item in check_pair(self._ground, pair, self._best)
        )

    def note(self, pairs: typing.Iterable[PairResult]) -> None:
        """Count the pairs that stayed too slow, and those that gave no second figure: an end that fails each time takes
        the time of each."""
        for pair in pairs:
            if pair.wider is not None and (pair.wider.average_gbps is None or self.is_too_slow(pair)):
                for role in _find_roles(pair):
                    self._stayed[role] += 1

    def _to_be_measured(self, pair: PairResult) -> tuple[PairResult, typing.Optional[Amount]]:
        amount = wider(self._ground.fabric, pair.queue_pairs) if self.is_too_slow(pair) else None
        if amount is None:
            return pair, None
        stayed = [role for role in _find_roles(pair) if self._stayed[role] >= ENOUGH]
        if not stayed:
            return pair, amount
        _rail, node, what = stayed[0]
        why = (
            f"{self._stayed[stayed[0]]} other pairs with {node} as the {what} were measured so, and stayed too slow or"
            " failed"
        )
        return dataclasses.replace(pair, wider=Wider(amount.queue_pairs, amount.message_bytes, why=why)), None


def _find_roles(pair: PairResult) -> tuple[tuple[int, str, str], ...]:
    """Return its ends with what each does, since one direction alone may be slow."""
    return (*pair.client_end, "client"), (*pair.server_end, "server")
