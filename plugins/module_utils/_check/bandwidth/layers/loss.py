# SPDX-License-Identifier: GPL-3.0-or-later

"""The layers over which a pair is measured, and the layers at which bandwidth is lost."""

from __future__ import annotations

import math
import typing

from ...._model.measurement.bandwidth import LayerName, LayerStep
from ...._model.node.hca import ObservedHcas

#: of the figure of the step before it. Two measurements of one link differ by a few per cent
TOLERANCE = 0.9
#: how a step is called
STEPS: dict[LayerName, str] = {
    "pf_host": "PF on the host",
    "vf_host": "VF on the host",
    "vf_pod": "VF in the pod",
    "gpu_pod": "GPU memory in the pod",
}
#: what it adds to the step before, and so what loses where the figure falls there
ADDS: dict[LayerName, str] = {
    "pf_host": "the cable, the fabric or the HCA itself",
    "vf_host": "SR-IOV or its rate limits",
    "vf_pod": "the pod: the settings of its VF, its NUMA node or its CPUs",
    "gpu_pod": "the PCIe path to the GPU",
}
IN_PODS: tuple[LayerName, ...] = ("vf_pod", "gpu_pod")
Hcas = typing.Mapping[str, ObservedHcas]
#: layers of which one loses, from which figure in Gb/s, and the step at which that shows
Loss = tuple[list[LayerName], typing.Optional[float], typing.Optional[LayerStep]]


def find_loss(least: typing.Optional[float], steps: typing.Iterable[LayerStep], wanted: float = math.inf) -> Loss:
    """Find the first step at which the bandwidth drops.

    Return the layers that may cause the drop, the rate in Gb/s with which the step was compared, and the step. If there
    is no drop, return an empty list and twice None.

    If steps before it have no figure, their layers may cause the drop too. Steps of a layer that does not exist on the
    nodes are skipped.

    :param least: rate in Gb/s that the first step must reach; None if unknown
    :param steps: steps in the order of the layers
    :param wanted: highest rate in Gb/s that pods may send
    """
    before, first, since = least, True, typing.cast(list[LayerName], [])
    for step in steps:
        if step.absent:
            continue
        since.append(step.layer)
        if step.average_gbps is None:
            continue
        most = min(before, wanted) if before is not None and step.layer in IN_PODS else before
        # the floor is a fraction of the link already
        if most is not None and step.average_gbps < (1.0 if first else TOLERANCE) * most:
            return since, before, step
        before, first, since = step.average_gbps, False, []
    return [], None, None
