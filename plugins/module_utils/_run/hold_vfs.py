# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection linerate.rdma: no other code may import this.

"""Pods that take a virtual function of each HCA and keep it, while somebody looks at what the CNI plugin has set for it."""

from __future__ import annotations

import typing

from .._model.bandwidth import RdmaPod
from .pods import Plan, Pods, workers


def hold(pods: Pods, plan: Plan) -> typing.Tuple[RdmaPod, ...]:
    """A pod for each rail of each node and fabric, or why there is none. They stay; a run that is stopped meanwhile leaves none.

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
