# SPDX-License-Identifier: GPL-3.0-or-later

"""Pods that take and hold a virtual function of each HCA while its settings by the CNI plugin are examined."""

from __future__ import annotations

from ..._model.measurement.bandwidth import RdmaPod
from .measuring_plan import Plan, workers
from .pods import MeasuringPods


def hold(pods: MeasuringPods, plan: Plan) -> tuple[RdmaPod, ...]:
    """Start a pod for each rail of each node and fabric, and return each pod or the reason why it does not run. The
    pods remain. If the run is stopped meanwhile, they are removed.

    :raises ApiError: the API server cannot be reached
    """
    try:
        with workers(plan.parallel) as pool:
            started = tuple(item for fabric in plan.fabrics for item in pods.start(pool, fabric))
    except BaseException:
        pods.end()
        raise
    pods.leave()
    return started
