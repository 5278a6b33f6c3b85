# SPDX-License-Identifier: GPL-3.0-or-later

"""Starts pods that hold a virtual function of each HCA, so that the settings that the CNI plugin gives to these
functions can be examined.
"""

from __future__ import annotations

from ..._model.measurement.bandwidth import RdmaPod
from .measuring_plan import Plan, start_workers
from .pods.measuring_pods import MeasuringPods


def hold(pods: MeasuringPods, plan: Plan) -> tuple[RdmaPod, ...]:
    """Start a pod for each rail of each node and fabric, and return the pods. A pod that does not run has the reason as
    its error. The pods remain after the call. If the call is interrupted, they are removed.

    :param pods: client that creates and removes the pods
    :param plan: nodes, fabrics and settings of the run
    :raises ApiError: the API server cannot be reached
    """
    try:
        with start_workers(plan.parallel) as pool:
            started = tuple(item for fabric in plan.fabrics for item in pods.start(pool, fabric))
    except BaseException:
        pods.end()
        raise
    pods.leave()
    return started
