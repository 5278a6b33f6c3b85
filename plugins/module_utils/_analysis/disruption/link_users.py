# SPDX-License-Identifier: GPL-3.0-or-later

"""Find the uses of a physical function that the SR-IOV operator changes in place: pods that use the function itself,
and networks of the node on it. Pure.

The operator writes ``sriov_numvfs`` and raises the MTU. It sets no link down; it sets a link up that is down. If a step
fails, it removes the virtual functions and sets the earlier MTU.
[k8snetworkplumbingwg/sriov-network-operator pkg/host/internal/sriov/sriov.go configSriovPFDevice, createVFs,
configSriovDevice, ResetSriovDevice] What it does to a physical function that no policy selects any longer is in
_analysis/controllers/sriov/function_reset.py.

The driver mlx5_core takes the carrier off while it sets an MTU. For another eSwitch mode it disables the eSwitch, and
makes network interface and RDMA device again. Virtual functions in legacy mode leave the link of the physical function;
the driver only suspends hardware bonding.
[Linux drivers/net/ethernet/mellanox/mlx5/core/en_main.c mlx5e_switch_priv_channels; eswitch_offloads.c
mlx5_devlink_eswitch_mode_set, mlx5_rescan_drivers; eswitch.c mlx5_eswitch_enable, mlx5_lag_disable_change]
"""

from __future__ import annotations

import dataclasses
import typing

from ..._model.kubernetes.disruption import FunctionHolder, NodePlan, SharedResource
from ..._model.operators.sriov_operator import NodeState, StateInterface, WantedInterface
from ..controllers.drains.drain import explain_link_users
from ..controllers.sriov.function_reset import find_function_change
from ..fleet.nics_in_use import describe_use, find_upper, is_network, is_unread


@dataclasses.dataclass(frozen=True)
class LinkUsers:
    """The uses of physical functions that the operator changes in place.

    :ivar reasons: changes that interrupt a physical function in use, as text
    :ivar pods: pods that use a physical function which is interrupted
    :ivar lost: the pods in ``pods`` that lose their devices, because the network interface and the RDMA device are
        removed and created again
    :ivar doubts: uses that the change may disturb, without proof, as text
    """

    reasons: tuple[str, ...] = ()
    pods: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()


def find_link_users(
    wanted: typing.Iterable[WantedInterface],
    state: NodeState,
    in_use: typing.Mapping[str, str],
    holders: typing.Optional[typing.Sequence[FunctionHolder]],
    uppers: typing.Optional[typing.Mapping[str, typing.Sequence[str]]] = None,
) -> LinkUsers:
    """Return the pods and networks that use physical functions which the operator changes in place, or resets because
    no policy selects them any longer.

    :param wanted: desired state of the interfaces
    :param state: SriovNetworkNodeState of the node
    :param in_use: use of the physical functions that the node itself uses, by interface or PCI address
    :param holders: running pods of the node that may use its functions; None if they were not read
    :param uppers: names of the interfaces above the physical functions, by PCI address; None if they were not read
    """
    wishes = {item.address: item for item in wanted}
    reasons: list[str] = []
    pods: dict[str, None] = {}
    lost: dict[str, None] = {}
    doubts: dict[str, None] = {}
    for interface in state.interfaces:
        changes, interrupted, remade = find_function_change(wishes.get(interface.address), interface, state)
        if not changes:
            continue
        name, text = f"{interface.name} {interface.address}".strip(), ", ".join(changes)
        network = in_use.get(interface.address) or in_use.get(interface.name) or ""
        if is_network(network):
            # an address of IPoIB is often left from the installation, so it is no proof of a use
            if interrupted and not is_unread(network) and (interface.link_type or "").upper() != "IB":
                reasons.append(f"{name} {describe_use(network)} and is interrupted: {text}")
            else:
                doubts[f"{name} {describe_use(network)}; {text}"] = None
        above = tuple(filter(None, (find_upper(network), *(uppers or {}).get(interface.address, ()))))
        users = [holder.pod for holder in holders or () if uses_function(holder, interface, above)]
        if users and interrupted:
            reasons.append(f"{name} is used by pods and is interrupted: {text}")
            pods.update(dict.fromkeys(users))
            lost.update(dict.fromkeys(users if remade else ()))
        elif users:
            doubts.update((f"pod {pod} uses {name}; {text}", None) for pod in users)
        for holder in holders or ():
            doubt = "" if holder.pod in users else _explain_doubt(holder, interface)
            doubts.update({f"{doubt}; {text}": None} if doubt else {})
    return LinkUsers(tuple(reasons), tuple(pods), tuple(lost), tuple(doubts))


def add_link_users(planned: NodePlan, links: LinkUsers) -> NodePlan:
    """Return the plan of a node with the pods that use physical functions which change. Pods that lose their devices
    become a reason against the change. Other pods whose link is interrupted are added to the doubts if the drain does
    not evict them.

    :param links: uses of the physical functions
    """
    why = explain_link_users(links.lost)
    left = () if planned.undrained else tuple(pod for pod in links.pods if pod not in (*planned.pods, *links.lost))
    return dataclasses.replace(
        planned,
        pods=tuple(dict.fromkeys((*planned.pods, *links.pods))) if planned.undrained else planned.pods,
        doubts=(*planned.doubts, *(f"pod {pod} uses a NIC that is interrupted" for pod in left)),
        blockers=(*planned.blockers, *filter(None, (why,))),
    )


def changes_functions(wanted: typing.Iterable[WantedInterface], state: NodeState) -> bool:
    """Return whether the operator changes or resets a physical function of a node.

    :param wanted: desired state of the interfaces
    :param state: SriovNetworkNodeState of the node
    """
    wishes = {item.address: item for item in wanted}
    return any(
        find_function_change(wishes.get(interface.address), interface, state).texts for interface in state.interfaces
    )


def list_claims(holders: typing.Iterable[FunctionHolder], addresses: typing.Container[str]) -> tuple[str, ...]:
    """Return a text for each doubtful use: the annotation of a pod names a virtual function that changes, but the pod
    has the function neither by a resource nor by a network.

    :param holders: running pods of the node that may use its functions
    :param addresses: PCI addresses of the virtual functions that change
    """
    return tuple(
        _explain_claim(holder, address)
        for holder in holders
        for address in holder.claimed
        if address in addresses and address not in holder.addresses
    )


def uses_function(holder: FunctionHolder, interface: StateInterface, uppers: typing.Iterable[str] = ()) -> bool:
    """Return whether a pod uses a physical function itself: by its PCI address, as the master of a network, by a
    network on an interface above the function (a VLAN, bond or bridge), or by a resource of the shared RDMA device
    plugin that selects the function.

    :param interface: physical function as the config daemon reports it
    :param uppers: names of the interfaces above the function
    """
    on = {*holder.interfaces, *(name.partition(".")[0] for name in holder.interfaces)}
    return (
        interface.address in holder.addresses
        or not on.isdisjoint((*filter(None, (interface.name,)), *uppers))
        or any(shared.known and _selects(shared, interface) for shared in holder.shared)
    )


def _selects(shared: SharedResource, interface: StateInterface) -> bool:
    return all(
        not wanted or value in wanted
        for wanted, value in (
            (shared.interfaces, interface.name),
            (shared.vendors, interface.vendor),
            (shared.devices, interface.device),
        )
    )


def _explain_doubt(holder: FunctionHolder, interface: StateInterface) -> str:
    name = f"{interface.name} {interface.address}".strip()
    unknown = next((shared.name for shared in holder.shared if not shared.known), "")
    if unknown:
        return f"pod {holder.pod} requests {unknown} and may use {name}"
    if holder.on_host:
        return f"pod {holder.pod} is on the host network with {', '.join(holder.on_host)} and may use {name}"
    return _explain_claim(holder, interface.address) if interface.address in holder.claimed else ""


def _explain_claim(holder: FunctionHolder, address: str) -> str:
    return (
        f"the annotation of pod {holder.pod} names {address}, but the pod requests no network device and its network"
        " does not exist"
    )
