# SPDX-License-Identifier: GPL-3.0-or-later

"""Compare a policy with the SriovNetworkNodeState of a node: find the settings that the operator has not written into
it yet, and those that the config daemon has not applied yet.
"""

from __future__ import annotations

import typing

from ..._model.operators.sriov_operator import NodeState, Policy, WantedInterface
from ..controllers.sriov.changes import list_changes
from ..controllers.sriov.policies import find_wanted_by


def describe_unwritten(policy: Policy, state: NodeState, addresses: typing.Iterable[str]) -> str:
    """Return the first difference between the policy and the desired state in the SriovNetworkNodeState, as text; empty
    if the operator has written the complete policy into it.

    :param state: SriovNetworkNodeState of the node
    :param addresses: PCI addresses of the physical functions that the policy selects
    """
    wanted = {item.address: item for item in state.wanted}
    functions = {item.address: item for item in state.interfaces}
    for address in addresses:
        if address not in wanted:
            return f"it does not contain {address}"
        said = _describe_difference(find_wanted_by(policy, functions[address]), wanted[address])
        if said:
            return f"{address} {said}"
    return ""


def _describe_difference(asked: WantedInterface, wanted: WantedInterface) -> str:
    """Return the differences between the desired state of a physical function and its policy, in words. Return an empty
    text if there are none. If several policies configure the function, a larger number of virtual functions or a larger
    MTU is no difference.

    :param asked: the function as the policy requires it
    :param wanted: the function as the operator has written it into the desired state
    """
    (group,) = asked.groups
    mine = next((item for item in wanted.groups if item.policy == group.policy), None)
    if mine is None:
        return f"is configured by {', '.join(wanted.policies) or 'no policy'} instead"
    # where several policies want one function, the larger number and the larger MTU count
    pairs: tuple[tuple[str, typing.Any, typing.Any, bool], ...] = (
        (
            "numVfs",
            wanted.vfs_count,
            asked.vfs_count,
            wanted.vfs_count < asked.vfs_count or (len(wanted.groups) == 1 and wanted.vfs_count > asked.vfs_count),
        ),
        ("mtu", wanted.mtu, asked.mtu, wanted.mtu < asked.mtu or (len(wanted.groups) == 1 and wanted.mtu > asked.mtu)),
        (
            "linkType",
            wanted.link_type,
            asked.link_type,
            len(wanted.groups) == 1 and wanted.link_type.upper() != asked.link_type.upper(),
        ),
        ("resourceName", mine.resource, group.resource, mine.resource != group.resource),
        ("deviceType", mine.device_type, group.device_type, mine.device_type != group.device_type),
        ("isRdma", mine.rdma, group.rdma, mine.rdma != group.rdma),
        ("mtu of the virtual functions", mine.mtu, group.mtu, mine.mtu != group.mtu),
        (
            "vfRange",
            f"{mine.first}-{mine.last}",
            f"{group.first}-{group.last}",
            (mine.first, mine.last) != (group.first, group.last),
        ),
    )
    return "; ".join(
        f"{what} is {seen}, and the policy requires {asked_for}" for what, seen, asked_for, other in pairs if other
    )


def describe_unmade(state: NodeState, addresses: typing.Iterable[str]) -> str:
    """Return the first part of the desired state in the SriovNetworkNodeState that the config daemon does not report as
    applied, as text; empty if it reports all of it.

    :param state: SriovNetworkNodeState of the node
    :param addresses: PCI addresses of the physical functions to compare
    """
    wanted = {item.address: item for item in state.wanted}
    made = {interface.address: interface for interface in state.interfaces}
    if state.wanted_rdma_mode and state.rdma_mode and state.wanted_rdma_mode != state.rdma_mode:
        return f"RDMA mode {state.rdma_mode} -> {state.wanted_rdma_mode}"
    for address in addresses:
        missing = list(list_changes(wanted[address], made[address]))
        if len(made[address].vfs) < wanted[address].vfs_count:
            missing.append(f"{len(made[address].vfs)} of {wanted[address].vfs_count} virtual functions are reported")
        if missing:
            return f"{address} {'; '.join(missing)}"
    return ""
