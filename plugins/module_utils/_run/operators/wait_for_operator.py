# SPDX-License-Identifier: GPL-3.0-or-later

"""The wait until the SR-IOV network operator is ready on all nodes."""

from __future__ import annotations

import typing

from ..._check.operators.sriov_operator import list_missing
from ..._model.intent.intent import ClusterIntent
from ..._model.operators.sriov_operator import OperatorFacts
from ..._observe.kubernetes.client import Cluster
from ..._observe.kubernetes.shell import Clock
from ..._observe.operators.sriov_operator import namespace_of_operator, observe
from ..cluster.poll import poll

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
    """Wait until the SR-IOV network operator is ready on some nodes, at most ``limit`` seconds. Return the last facts
    about it, whether it is ready or not.

    :param intent: settings of the intent that all fabrics share
    :param nodes: names of the nodes
    :param limit: maximum duration of the wait, in seconds
    :param clock: function that returns the time of a monotonic clock, in seconds
    :param pause: function that sleeps for a number of seconds
    :param say: function that shows a line of progress to the user
    :raises ApiError: the API server cannot be reached
    """
    namespace = namespace_of_operator(cluster, intent.operator_namespace)

    def lacking(facts: OperatorFacts) -> tuple[str, ...]:
        return list_missing(intent, facts, nodes)

    return poll(
        lambda: observe(cluster, namespace), lacking, "the operator is ready", limit, PAUSE_SECONDS, clock, pause, say
    )
