# SPDX-License-Identifier: GPL-3.0-or-later

"""All faults of the lab by name: those of the cluster plane, and those of the fabrics, after which the workers' sysfs says the same."""

from __future__ import annotations

import typing

from .cluster_faults import CLUSTER_FAULTS, Action, Fault
from .fabric.fabric_faults import FABRIC_FAULTS, Target
from .planes import Lab


def _of_fabric(name: str) -> Fault:
    fault = FABRIC_FAULTS[name]

    def act(action: typing.Callable[..., str]) -> Action:
        def both(lab: Lab, target: Target) -> str:
            said = action(lab.fabric, target)
            lab.refresh()
            return said

        return both

    return Fault(name, fault.what, fault.uses, act(fault.on), act(fault.off))


FAULTS: typing.Mapping[str, Fault] = {fault.name: fault for fault in (*CLUSTER_FAULTS, *map(_of_fabric, FABRIC_FAULTS))}
