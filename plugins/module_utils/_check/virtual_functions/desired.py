# SPDX-License-Identifier: GPL-3.0-or-later

"""Compare the settings that the operator requests for a physical function in its desired state of the node with those
of the intent. Part of stage virtual_functions.

The kernel shows the result of the last sync. The operator applies its present desired state at the next sync or at the
next boot of the node. So a different setting there is a failure even if the VFs are still correct.
"""

from __future__ import annotations

import typing

from ..._model.intent.intent import Fabric
from ..._model.intent.profiles import is_infiniband
from ..._model.operators.sriov_operator import NodeState, VfGroup, WantedInterface
from .function_reports import FunctionReports


def list_differences(layers: FunctionReports) -> tuple[str, ...]:
    """Return, as text, the settings that the operator requests for the function and that differ from the fabric. Return
    an empty tuple if it requests nothing for the function, which ``virtual_functions.count`` reports.

    :param layers: reports of kernel, operator and config daemon on the function
    """
    desired = layers.desired
    if desired is None:
        return ()
    found = _compare_function(layers.fabric, desired)
    mine = [group for group in desired.groups if group.resource == layers.fabric.resource_name]
    count = layers.fabric.virtual_functions
    given = {index for group in mine for index in range(max(group.first, -1), min(group.last, count) + 1)}
    if not mine:
        others = ", ".join(sorted({group.resource or "none" for group in desired.groups})) or "none"
        found.append(f"resource name of its VFs is {others}, not {layers.fabric.resource_name}")
    elif given != set(range(count)):
        ranges = ", ".join(f"{group.first}-{group.last}" for group in mine)
        found.append(f"VFs {ranges} belong to the resource {layers.fabric.resource_name}, not 0-{count - 1}")
    return (*found, *(text for group in mine for text in _compare_group(layers.fabric, group)))


def _compare_function(fabric: Fabric, desired: WantedInterface) -> list[str]:
    link_type = "IB" if is_infiniband(fabric) else "ETH"
    found = []
    if desired.link_type.upper() not in ("", link_type):
        found.append(f"linkType is {desired.link_type}, not {link_type}")
    if desired.eswitch_mode not in ("", "legacy"):
        found.append(f"eSwitchMode is {desired.eswitch_mode}, not legacy")
    if desired.external:
        found.append("externallyManaged is true, so the operator creates no VFs after a boot")
    return found


def _compare_group(fabric: Fabric, group: VfGroup) -> list[str]:
    rdma = is_infiniband(fabric) or fabric.rdma
    found = []
    if group.device_type not in ("", "netdevice"):
        found.append(f"deviceType of policy {group.policy} is {group.device_type}, not netdevice")
    if group.rdma != rdma:
        found.append(f"isRdma of policy {group.policy} is {str(group.rdma).lower()}, not {str(rdma).lower()}")
    if fabric.mtu is not None and group.mtu != fabric.mtu:
        found.append(f"mtu of policy {group.policy} is {group.mtu or 'not set'}, not {fabric.mtu}")
    return found


class OtherMode(typing.NamedTuple):
    """The texts of a finding on a node whose RDMA mode differs from that of the intent.

    :ivar measured: RDMA mode that was observed
    :ivar expected: RDMA mode that the intent requires
    :ivar why: cause of the difference
    :ivar remedy: instruction that resolves the cause
    """

    measured: str
    expected: str
    why: str
    remedy: str


def find_other_rdma_mode(state: NodeState, wanted: str) -> typing.Optional[OtherMode]:
    """Return the problem if the operator requests another RDMA mode for a node than the intent, or if the node does not
    have the requested mode yet, which it takes at its next boot. Return None otherwise.

    :param state: SriovNetworkNodeState of the node
    :param wanted: ``rdma_cluster.node_pool.rdma_mode``; empty if the intent sets none
    """
    if wanted and state.wanted_rdma_mode != wanted:
        requested = f"RDMA mode {state.wanted_rdma_mode}" if state.wanted_rdma_mode else "no RDMA mode"
        return OtherMode(
            f"the operator requests {requested} for the node",
            f"RDMA mode {wanted}, as in rdma_cluster.node_pool",
            "The operator takes the mode from the SriovNetworkPoolConfig that selects the node. Another"
            " SriovNetworkPoolConfig selects this node, or the one of the intent was changed.",
            "Compare rdmaMode and nodeSelector in kubectl get sriovnetworkpoolconfigs -A -o yaml. Correct"
            f" nodeSelector of the other SriovNetworkPoolConfig, so that it no longer selects {state.node}. Then"
            " run stages network and virtual_functions again.",
        )
    if state.wanted_rdma_mode and state.rdma_mode and state.rdma_mode != state.wanted_rdma_mode:
        return OtherMode(
            f"RDMA mode {state.rdma_mode} on the node",
            f"RDMA mode {state.wanted_rdma_mode}, which the operator requests",
            "The kernel takes a new RDMA mode at boot, and the node has not rebooted since the operator requested it.",
            f"Run kubectl drain {state.node} --ignore-daemonsets --delete-emptydir-data, reboot the node, and run"
            f" kubectl uncordon {state.node}. Then run stage virtual_functions again.",
        )
    return None
