# SPDX-License-Identifier: GPL-3.0-or-later

"""Check whether pods would take an interface that the node itself uses. A pod of profile ``host_device`` gets the whole
interface, and a macvlan in mode ``passthru`` receives all of its packets. The pods that measure run on all nodes of the
fabric at the same time, so each node would lose the interface at once, without a drain.

[CNI plugins/main/host-device/host-device.go moveLinkIn; Linux drivers/net/macvlan.c macvlan_handle_frame]
"""

from __future__ import annotations

import typing

from ...._analysis.fleet.bonds import may_use_bonds
from ...._analysis.fleet.hcas_of_fabric import find_candidates
from ...._analysis.fleet.nics_in_use import describe_use, is_needed, is_network
from ...._model.intent.intent import Fabric
from ...._model.intent.profiles import is_interface_moved
from ...._model.node.hca import Hca
from ...._model.run.findings import FAIL, WARN, Finding
from .policy_context import UPLINK, ClusterBefore

_EXPECTED = "interfaces that the node does not use itself"
_REMEDY = (
    "Name other interfaces in select.netdev or select.pci of the fabric, use profile sriov_ethernet or macvlan in"
    " mode bridge, or move {use} to another interface. If the node does not need it, add a waiver for {check}"
    " with this subject to rdma_waivers. If ip addr and ip route on {node} do not show {use} on this interface,"
    " remove {node} from the group rdma_nodes, and remove the label in rdma_cluster.node_selector from it: the fabric"
    " is then set up without this node. Then run stage network again."
)


def check_moved_interfaces(
    fabric: Fabric, cluster_before: ClusterBefore, nodes: typing.Sequence[str]
) -> typing.Iterator[Finding]:
    """Yield a finding for each interface that pods of the fabric take and that the node itself uses.

    It is a failure if the interface carries the default route or an address of the node, or is a part of a bond, and a
    warning if it carries another network.

    Yield a warning for each node whose default route is unknown. Yield nothing if pods of the fabric do not take
    interfaces, or if no use of interfaces was read.

    :param cluster_before: state of the cluster before the objects are applied
    :param nodes: names of the nodes that must take part
    """
    passes_through = fabric.network.mode == "passthru"
    if cluster_before.in_use is None or not (passes_through or is_interface_moved(fabric)):
        return
    effect = (
        "A pod with a macvlan in mode passthru receives all packets of the interface"
        if passes_through
        else "A pod with profile host_device gets the interface, and the node does not have it while the pod runs"
    )
    for name in nodes:
        chosen = find_candidates(fabric, cluster_before.hcas[name]) if name in cluster_before.hcas else ()
        used = cluster_before.in_use.get(name)
        if chosen and used is None:
            yield Finding(
                UPLINK,
                f"{fabric.name} {name}",
                WARN,
                f"unknown whether {name} uses a selected interface itself, because its default route was not read",
                _EXPECTED,
                f"{effect}. If this interface carries the default route of the node, the node is unreachable until the"
                " pod ends.",
                f"Run ip route show default on {name}. If the fabric selects the interface after 'dev', exclude it in"
                " select of the fabric. Then run stages platform and network again: stage platform reads the route.",
            )
            continue
        for hca in chosen:
            taken = _list_taken(fabric, hca)
            use = max(((used or {}).get(key, "") for key in taken), key=_rank, default="")
            if not use:
                continue
            at = taken[0]
            yield Finding(
                UPLINK,
                f"{fabric.name} {name} {at}",
                WARN if is_network(use) else FAIL,
                f"the interface {at} of {name} {describe_use(use)}"
                if not use.startswith("the bond")
                else f"the interface {at} of {name} is in {use}",
                _EXPECTED,
                f"{effect}. Neither an operator nor a CNI plugin refuses this. The measuring pods would take the"
                " selected interfaces on all nodes of the fabric at the same time, without a drain"
                + (
                    f", and the kubelet could not end the pod on {name}, because the node would be unreachable."
                    if is_needed(use)
                    else f". {name} would then work without {use}."
                ),
                _REMEDY.format(check=UPLINK, use=use, node=name),
            )


def _list_taken(fabric: Fabric, hca: Hca) -> list[str]:
    """Return the keys of a selected HCA in the uses of its node: the interfaces that pods take, and the PCI address, by
    which also the uses of its virtual functions are known. The address is left out if the HCA has several interfaces
    and the fabric names some of them, and for a bond that the fabric selects.
    """
    shares_bonds = may_use_bonds(fabric)
    names = [netdev.bond if netdev.bond is not None and shares_bonds else netdev.name for netdev in hca.netdevs]
    taken = [name for name in names if not fabric.select.netdev or name in fabric.select.netdev]
    joined = shares_bonds and any(netdev.bond is not None for netdev in hca.netdevs)
    address = hca.pci.address if hca.pci is not None and len(taken) == len(names) and not joined else ""
    return [*taken, *([address] if address else [])]


def _rank(use: str) -> int:
    return 0 if not use else 1 if is_network(use) else 2 if not is_needed(use) else 3
