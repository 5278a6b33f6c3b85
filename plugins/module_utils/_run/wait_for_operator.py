# SPDX-License-Identifier: GPL-3.0-or-later

"""The wait until the operator serves. A poll: it is short, and what it looks at is spread over many kinds."""

from __future__ import annotations

import typing

from .._check.operators.check import serving
from .._model.intent import ClusterIntent
from .._model.sriov_operator import OperatorFacts
from .._observe.kubernetes import Clock, Cluster
from .._observe.sriov_operator import namespace_of_operator, observe

PAUSE_SECONDS = 2.0


def wait_until_serving(
    cluster: Cluster,
    intent: ClusterIntent,
    nodes: typing.Sequence[str],
    limit: float,
    clock: Clock,
    pause: typing.Callable[[float], None],
    say: typing.Callable[[str], None],
) -> OperatorFacts:
    """The facts once nothing keeps the operator from serving, or those at the end of the time.

    :param pause: sleeps; given in, so that a test needs no time
    :raises ApiError: the server cannot be reached
    """
    start, told = clock(), typing.cast(typing.Tuple[str, ...], ())
    namespace = namespace_of_operator(cluster, intent.operator_namespace)
    while True:
        facts = observe(cluster, namespace)
        missing = serving(intent, facts, nodes)
        if missing != told:
            for line in missing or ("the operator serves",):
                say(f"{clock() - start:.0f} s  {line}")
            told = missing
        if not missing or clock() - start >= limit:
            return facts
        pause(PAUSE_SECONDS)
