# SPDX-License-Identifier: GPL-3.0-or-later

"""Stage bandwidth: select pairs that are too slow, so that they are measured again with more queue pairs before any HCA
is accused.
"""

from __future__ import annotations

import collections
import dataclasses
import typing

from ..._analysis.bandwidth.floors import Best, PairLimits
from ..._analysis.schedule.layers import Role, find_roles
from ..._analysis.schedule.wider import ENOUGH, Amount, widen_amount
from ..._model.base.phrases import count_of
from ..._model.measurement.pairs import PairResult, Wider
from ..._model.run.findings import FAIL
from .pairs import OF_FIGURE, check_pair


class TooSlow:
    """A filter that selects, round by round, the pairs to measure again with more queue pairs. It stores the best pair
    of each group of comparable pairs, and the ends whose pairs stayed too slow in the second measurement.
    """

    def __init__(self, ground: PairLimits) -> None:
        self._ground = ground
        self._best: dict[typing.Any, Best] = {}
        #: by end and what it does there: how many of its pairs stayed too slow, or gave no second figure
        self._stayed: dict[Role, int] = collections.Counter()

    def choose(self, pairs: typing.Sequence[PairResult]) -> list[tuple[PairResult, typing.Optional[Amount]]]:
        """Return each pair with the queue pairs and message size of its second measurement, or with None if it is not
        measured again.

        A pair that is too slow is measured again, unless ``ENOUGH`` other pairs of one of its ends, in the same role,
        stayed too slow: more queue pairs would show nothing new. The returned pair then contains this reason.

        :param pairs: measurements of one round
        """
        for kind, best in self._ground.best(pairs).items():
            if kind not in self._best or best.average > self._best[kind].average:
                self._best[kind] = best
        return [self._to_be_measured(pair) for pair in pairs]

    def is_too_slow(self, pair: PairResult) -> bool:
        """Return whether the RDMA bandwidth of a pair is below its floor, or too far below the best comparable pair."""
        return pair.is_comparable and any(
            item.status == FAIL and item.check in OF_FIGURE for item in check_pair(self._ground, pair, self._best)
        )

    def note(self, pairs: typing.Iterable[PairResult]) -> None:
        """Count, for each end in its role as client or server, the pairs that stayed too slow or gave no second figure.

        Without this count, an end whose pairs always fail would cost the time of a second measurement for each pair.

        :param pairs: pairs after their second measurement
        """
        for pair in pairs:
            if pair.wider is not None and (pair.wider.average_gbps is None or self.is_too_slow(pair)):
                for role in find_roles(pair):
                    self._stayed[role] += 1

    def _to_be_measured(self, pair: PairResult) -> tuple[PairResult, typing.Optional[Amount]]:
        amount = widen_amount(self._ground.fabric, pair.queue_pairs) if self.is_too_slow(pair) else None
        if amount is None:
            return pair, None
        stayed = [role for role in find_roles(pair) if self._stayed[role] >= ENOUGH]
        if not stayed:
            return pair, amount
        _rail, node, what = stayed[0]
        why = (
            f"{count_of(self._stayed[stayed[0]], 'other pair')} with {node} as the {what} were measured with"
            " more queue pairs, and"
            " were still too slow or failed"
        )
        return dataclasses.replace(pair, wider=Wider(amount.queue_pairs, amount.message_bytes, why=why)), None
