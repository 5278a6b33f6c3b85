# SPDX-License-Identifier: GPL-3.0-or-later

"""Find the changes of a node that the SR-IOV operator makes without a drain although they disturb it: those that take
the link of a NIC that the node itself uses, and other resource names of virtual functions that pods use. Find also the
pods that lose virtual functions although the operator does not evict them. Pure.
"""

from __future__ import annotations

import dataclasses
import itertools
import typing

from ..._model.kubernetes.disruption import FunctionHolder, NodePlan
from ..._model.operators.sriov_operator import NodeState, StateInterface, WantedInterface
from ..controllers.drains.drain import explain_rename_users
from ..controllers.sriov.changes import list_changes
from ..controllers.sriov.function_reset import find_function_change
from ..fleet.nics_in_use import is_network


@dataclasses.dataclass(frozen=True)
class Rename:
    """Existing virtual functions of a physical function that get another resource name.

    :ivar text: the change, as text
    :ivar resource: present name of the resource, without its prefix
    :ivar addresses: PCI addresses of the virtual functions
    """

    text: str
    resource: str
    addresses: frozenset[str]


def list_renames(wanted: typing.Iterable[WantedInterface], state: NodeState) -> tuple[Rename, ...]:
    """Return the existing virtual functions that get another resource name. The operator neither drains the node for
    that nor waits for other nodes: the device plugin offers the functions under the other name, also those in use.

    :param wanted: desired state of the interfaces
    :param state: SriovNetworkNodeState of the node
    """
    new, old = ({item.address: item.groups for item in items} for items in (wanted, state.wanted))
    found = []
    for interface in state.interfaces:
        pairs = [
            (_find_resource(old, interface, vf.index), _find_resource(new, interface, vf.index), vf)
            for vf in interface.vfs
        ]
        changed = sorted((item for item in pairs if item[0] and item[1] and item[0] != item[1]), key=lambda it: it[:2])
        for (before, after), items in itertools.groupby(changed, key=lambda it: it[:2]):
            vfs = [vf for _before, _after, vf in items]
            text = f"{interface.name} {interface.address}".strip()
            numbers = f"{min(vf.index for vf in vfs)} to {max(vf.index for vf in vfs)}"
            found.append(
                Rename(
                    f"{text} virtual functions {numbers}: resource {before} -> {after}",
                    before,
                    frozenset(vf.address for vf in vfs),
                )
            )
    return tuple(found)


def _find_resource(groups: typing.Mapping[str, typing.Any], interface: StateInterface, index: int) -> str:
    mine = groups.get(interface.address, ())
    return next((group.resource for group in mine if group.first <= index <= group.last), "")


def list_link_losses(
    wanted: typing.Iterable[WantedInterface], state: NodeState, in_use: typing.Mapping[str, str]
) -> tuple[str, ...]:
    """Return a text for each physical function that loses its link although the node itself uses it: the use, and the
    changes of the function.

    :param wanted: desired state of the interfaces
    :param state: SriovNetworkNodeState of the node
    :param in_use: what the node itself uses a physical function for, by interface or PCI address
    """
    wishes, found = {item.address: item for item in wanted}, []
    for interface in state.interfaces:
        use = in_use.get(interface.address) or in_use.get(interface.name) or ""
        changes = find_function_change(wishes.get(interface.address), interface, state).texts
        if use and not is_network(use) and changes:
            name = f"{interface.name} {interface.address}".strip()
            found.append(f"{name} carries {use} and may have no link during the change: {', '.join(changes)}")
    return tuple(found)


def describe_configuration(
    wanted: typing.Iterable[WantedInterface], state: NodeState, renames: typing.Sequence[Rename]
) -> tuple[str, ...]:
    """Return the changes of a node without a drain or reboot, as text.

    :param wanted: desired state of the interfaces
    :param state: SriovNetworkNodeState of the node
    :param renames: existing virtual functions that get another resource name
    """
    known, found, created = {item.address: item for item in state.interfaces}, [], False
    for item in wanted:
        interface = known.get(item.address)
        if interface is not None and not interface.vfs_count:
            created = True
            if item.mtu > (interface.mtu or 0):
                name = f"{interface.name} {interface.address}".strip()
                found.append(f"{name} MTU {interface.mtu or 0} -> {item.mtu}")
    texts = (*(["virtual functions are created where none exist"] if created else []), *found)
    texts += tuple(f"{rename.text}, and no running pod uses them" for rename in renames)
    return texts or ("other settings of the existing virtual functions change",)


def list_disturbed_functions(wanted: typing.Iterable[WantedInterface], state: NodeState) -> frozenset[str]:
    """Return the PCI addresses of the virtual functions that the operator removes or resets.

    :param wanted: desired state of the interfaces
    :param state: SriovNetworkNodeState of the node
    """
    wishes, ours = {item.address: item for item in wanted}, {item.address for item in state.wanted}
    return frozenset(
        vf.address
        for interface in state.interfaces
        if (
            list_changes(wishes[interface.address], interface)
            if interface.address in wishes
            else interface.address in ours
        )
        for vf in interface.vfs
    )


def list_users(
    holders: typing.Iterable[FunctionHolder], addresses: typing.Container[str], resources: typing.Container[str] = ()
) -> tuple[FunctionHolder, ...]:
    """Return the pods that use at least one of the given virtual functions. A pod with a ResourceClaim always counts,
    because a claim does not name its functions.

    :param holders: pods of the node that may use virtual functions
    :param addresses: PCI addresses of the virtual functions
    :param resources: names of resources, with their prefix. A pod that requests one of them counts too
    """
    return tuple(
        holder
        for holder in holders
        if holder.claims
        or any(address in addresses for address in holder.addresses)
        or any(name in resources for name in holder.resources)
    )


#: what a drain evicts: all pods, those that request a resource of virtual functions, or nothing
Evicts = typing.Literal["all", "functions", "none"]


def list_left_users(
    holders: typing.Iterable[FunctionHolder],
    addresses: typing.Container[str],
    evicts: Evicts,
    reboots: bool,
    resources: typing.Container[str] = (),
) -> tuple[str, ...]:
    """Return the names of the pods that lose virtual functions while they run, because no drain evicts them. Pods of
    DaemonSets do not count before a reboot, which starts them again.

    :param holders: pods of the node that may use virtual functions
    :param addresses: PCI addresses of the virtual functions that the operator removes or resets
    :param evicts: pods that the operator evicts before the change: all, only those with virtual functions, or none
    :param reboots: whether the operator reboots the node
    :param resources: names of resources whose pods count too, with their prefix
    """
    return tuple(
        holder.pod
        for holder in list_users(holders, addresses, resources)
        if not (reboots if holder.stays else evicts == "all" or (evicts == "functions" and holder.resources))
    )


def add_undrained_users(
    planned: NodePlan, renames: typing.Sequence[Rename], users: typing.Optional[typing.Sequence[FunctionHolder]]
) -> NodePlan:
    """Return the plan of a node that changes without a drain, with the pods that use renamed virtual functions as a
    reason against the change. The plan is returned unchanged if no virtual function is renamed.

    :param renames: existing virtual functions that get another resource name
    :param users: pods that use these functions, at least one if there are renames; None if the pods could not be read
    """
    if not renames:
        return planned
    if users is None:
        return dataclasses.replace(planned, blockers=(explain_rename_users(None),))
    pods = tuple(holder.pod for holder in users)
    return dataclasses.replace(planned, pods=pods, blockers=(explain_rename_users(pods),))
