# SPDX-License-Identifier: GPL-3.0-or-later

"""Choose the pairs that stage bandwidth measures layer by layer, from the PF on the host up to the GPU memory in the
pod: either all pairs, or the fewest failed pairs that include each faulty end once.
"""

from __future__ import annotations

import typing

from ..._model.measurement.pairs import PairResult

#: suspects of a fabric that are looked at; where more than these are slow, their cause is not in one layer of one node
MOST_PAIRS = 8
#: measurements of a pair, at most: one for each layer
STEPS = 4

#: an end of a pair with its role there, since a limit is mostly one of sending
Role = tuple[int, str, str]


def choose_pairs(
    pairs: typing.Sequence[PairResult], passed: typing.Sequence[typing.Optional[bool]]
) -> tuple[PairResult, ...]:
    """Return the failed pairs to measure layer by layer, the slowest first.

    A pair is left out if a slower chosen pair contains the same suspect end, which is an end that never passed as
    client or as server. A pair whose ends both passed elsewhere is always included, since its cause is between them.
    Pairs without a figure are left out, because they show no slow layer.

    :param passed: verdict for each pair; None if unknown
    """
    good: set[Role] = set()
    failed: dict[typing.Any, PairResult] = {}
    for pair, verdict in zip(pairs, passed):
        if verdict:
            good.update(find_roles(pair))
        if verdict is False and pair.is_comparable:
            known = failed.get(pair.key)
            # one that was looked at again has several figures
            if known is None or (pair.average_gbps or 0.0) < (known.average_gbps or 0.0):
                failed[pair.key] = pair
    told: set[Role] = set()
    result: list[PairResult] = []
    for pair in sorted(failed.values(), key=lambda item: (item.average_gbps or 0.0, item.key)):
        guilty = {role for role in find_roles(pair) if role not in good}
        if guilty and guilty & told:
            continue
        told |= guilty
        result.append(pair)
    return tuple(result)


def list_pairs(pairs: typing.Sequence[PairResult]) -> tuple[PairResult, ...]:
    """Return the pairs with an RDMA figure that can be compared. The two directions between two ends are separate
    pairs. Of several results of one pair, the last one is returned.
    """
    return tuple({pair.key: pair for pair in pairs if pair.is_comparable}.values())


def find_roles(pair: PairResult) -> tuple[Role, Role]:
    """Return the two ends of a pair, each as rail, node and role (``client`` or ``server``). The roles are
    distinguished because one direction alone may be slow.
    """
    return (*pair.client_end, "client"), (*pair.server_end, "server")
