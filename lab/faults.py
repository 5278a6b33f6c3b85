# SPDX-License-Identifier: GPL-3.0-or-later

"""All faults of the lab by name: those of the machines, the storage NIC, the cluster and the HCAs, and those of the
fabrics, after which the kernels of the workers report the same."""

from __future__ import annotations

import typing

from .cluster_faults import CLUSTER_FAULTS
from .fabric.fabric_faults import FABRIC_FAULTS
from .fault import Action, Fault, Target
from .hca_faults import HCA_FAULTS
from .machine_faults import MACHINE_FAULTS
from .nic_faults import NIC_FAULTS
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


_ALL = (*MACHINE_FAULTS, *NIC_FAULTS, *CLUSTER_FAULTS, *HCA_FAULTS, *map(_of_fabric, FABRIC_FAULTS))
FAULTS: typing.Mapping[str, Fault] = {fault.name: fault for fault in _ALL}
