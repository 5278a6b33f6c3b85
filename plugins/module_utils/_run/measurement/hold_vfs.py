# SPDX-License-Identifier: GPL-3.0-or-later

"""Pods that take a virtual function of each HCA and keep it, while somebody looks at what the CNI plugin has set for
it."""

from __future__ import annotations

from ..._model.measurement.bandwidth import RdmaPod
from .measuring_plan import Plan, workers
from .pods import MeasuringPods


def hold(pods: MeasuringPods, plan: Plan) -> tuple[RdmaPod, ...]:
    """Return a pod for each rail of each node and fabric, or why there is none. They stay; a run that is stopped
    meanwhile leaves none.

    :raises ApiError: the server cannot be reached
    """
    try:
        with workers(plan.parallel) as pool:
            started = tuple(item for fabric in plan.fabrics for item in pods.start(pool, fabric))
    except BaseException:
        pods.end()
        raise
    pods.leave()
    return started
