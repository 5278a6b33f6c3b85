# SPDX-License-Identifier: GPL-3.0-or-later

"""Which pairs are measured layer by layer in stage bandwidth: all, or as few of the suspects as name each end that is
at fault once."""

from __future__ import annotations

import typing

from ..._model.measurement.bandwidth import PairResult

#: suspects of a fabric that are looked at; where more than these are slow, their cause is not in one layer of one node
MOST_PAIRS = 8
#: measurements of a pair, at most: one for each layer
STEPS = 4

#: an end of a pair and what it does there, since a limit is mostly one of sending
_Role = tuple[int, str, str]


def chosen(
    pairs: typing.Sequence[PairResult], passed: typing.Sequence[typing.Optional[bool]]
) -> tuple[PairResult, ...]:
    """Of the pairs that failed, the slowest one for each end that never passed in its role; and each one whose ends
    both passed elsewhere, since its cause lies between them. The slowest come first. Pairs without a figure have no
    layer that is slow, and are left out.

    :param passed: of each pair; None: nothing is known of it
    """
    good: set[_Role] = set()
    failed: dict[typing.Any, PairResult] = {}
    for pair, verdict in zip(pairs, passed):
        if verdict:
            good.update(_find_roles(pair))
        if verdict is False and pair.is_comparable:
            known = failed.get(pair.key)
            # one that was looked at again has several figures
            if known is None or (pair.average_gbps or 0.0) < (known.average_gbps or 0.0):
                failed[pair.key] = pair
    told: set[_Role] = set()
    result: list[PairResult] = []
    for pair in sorted(failed.values(), key=lambda item: (item.average_gbps or 0.0, item.key)):
        guilty = {role for role in _find_roles(pair) if role not in good}
        if guilty and guilty & told:
            continue
        told |= guilty
        result.append(pair)
    return tuple(result)


def every(pairs: typing.Sequence[PairResult]) -> tuple[PairResult, ...]:
    """Each ordered pair with a figure of RDMA once."""
    return tuple({pair.key: pair for pair in pairs if pair.is_comparable}.values())


def _find_roles(pair: PairResult) -> tuple[_Role, _Role]:
    return (*pair.client_end, "client"), (*pair.server_end, "server")
