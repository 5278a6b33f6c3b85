# SPDX-License-Identifier: GPL-3.0-or-later

"""Groups the HCAs of all nodes by fabric, and collects the HCAs that are left out with the reasons."""

from __future__ import annotations

import collections
import dataclasses
import typing

from ..._analysis.fleet.vendors import find_vendor_with
from ..._model.base.phrases import count_of
from ..._model.base.text import join_first
from ..._model.infiniband.fabric import ObservedSubnets, ObservedTopologies, SubnetManager
from ..._model.intent.proposal import LeftOut
from ..._model.node.hca import Hca
from .inputs import Nodes, ProposalInputs

#: PCI vendor of NVIDIA's network adapters, and its adapters with processors of their own: BlueField 1 to 4 (pci.ids)
NVIDIA = "15b3"
BLUEFIELDS = ("a2d2", "a2d6", "a2dc", "a2df")

#: names of nodes in one line
MOST_NAMES = 8


@dataclasses.dataclass(frozen=True)
class HcaGroup:
    """The HCAs of one fabric, as observed.

    :ivar infiniband: whether the link layer of the fabric is InfiniBand; otherwise it is Ethernet
    :ivar managers: GUIDs of the subnet managers of the fabric, the master first; empty on Ethernet
    :ivar members: HCAs by node
    :ivar why: observations that show that the HCAs are on one fabric
    """

    infiniband: bool
    managers: tuple[str, ...]
    members: typing.Mapping[str, tuple[Hca, ...]]
    why: str

    @property
    def all(self) -> tuple[Hca, ...]:
        return tuple(hca for hcas in self.members.values() for hca in hcas)

    @property
    def per_node(self) -> int:
        """Return the most common number of HCAs of a node on the fabric. If two numbers are equally common, return the
        larger one.
        """
        counts = collections.Counter(len(hcas) for hcas in self.members.values())
        return max(counts, key=lambda count: (counts[count], count))


class Out:
    """A collector of the HCAs that are not proposed, grouped by reason.

    :param nodes: names of all nodes
    """

    def __init__(self, nodes: typing.Collection[str]) -> None:
        self._nodes = nodes
        self._found: dict[tuple[str, str], dict[str, list[str]]] = {}

    def add(self, node: str, hca: Hca, why: str) -> None:
        self._found.setdefault((model_of(hca), why), {}).setdefault(node, []).append(hca.name)

    def told(self) -> typing.Iterator[LeftOut]:
        for (model, why), by_node in self._found.items():
            names = {tuple(hcas) for hcas in by_node.values()}
            if len(names) == 1 and len(by_node) > 1:
                nodes = f"all {len(by_node)} nodes" if len(by_node) == len(self._nodes) else ", ".join(by_node)
                (same,) = names
                yield LeftOut(f"{', '.join(same)} ({model}) of {nodes}", why)
            else:
                yield LeftOut(
                    "; ".join(f"{node} {', '.join(hcas)}" for node, hcas in by_node.items()) + f" ({model})", why
                )


def model_of(hca: Hca) -> str:
    return f"{hca.pci.vendor}:{hca.pci.device}" if hca.pci else "no PCI function"


def link_of(hca: Hca) -> str:
    return next((port.link_layer for port in hca.all_ports if port.link_layer), "")


def compute_rate(hca: Hca) -> float:
    return max((port.rate_gbps or 0.0 for port in hca.all_ports), default=0.0)


def list_proven(nodes: Nodes) -> frozenset[str]:
    """Return the HCA models for which at least one node has a virtual function with an RDMA device."""
    found = set()
    for hcas in nodes.values():
        with_rdma = {(hca.physical_function, hca.pci.vendor) for hca in hcas if hca.pci and hca.rdma_device}
        found |= {
            model_of(hca)
            for hca in hcas
            if hca.pci and not hca.is_virtual and (hca.pci.address, hca.pci.vendor) in with_rdma
        }
    return frozenset(found)


def explain_unfit(hca: Hca, proven: typing.Container[str] = ()) -> str:
    """Return the reason why the proposal must not create virtual functions on an HCA. Return an empty text if it may
    create them.

    :param proven: models whose virtual functions have RDMA devices on at least one node. Models of NVIDIA need no such
        proof
    """
    if hca.pci is None:
        return "it has no PCI function, so it cannot have virtual functions."
    if hca.pci.vendor != NVIDIA and model_of(hca) not in proven:
        vendor = find_vendor_with(hca.pci.vendor)
        if vendor is None:
            return (
                "this collection does not know its PCI vendor. Add a fabric to the intent manually: see docs/intent.md."
            )
        netdev = hca.netdevs[0].name if hca.netdevs else "INTERFACE"
        return (
            f"its vendor is {vendor.name}. Whether its virtual functions support RDMA depends on its model, firmware"
            f" and driver ({vendor.rdma}), and no node reports a virtual function with RDMA. Create a virtual"
            f" function on the node (echo 1 > /sys/class/net/{netdev}/device/sriov_numvfs). If rdma link then lists"
            " the function, run linerate.rdma.propose again. Otherwise add a fabric with the profile rdma_shared to"
            " the intent manually, because propose does not propose shared NICs: see docs/intent.md."
        )
    if hca.pci.device in BLUEFIELDS:
        return (
            "it is a BlueField, and the node does not report whether it is in DPU mode, in which its own processors"
            f" manage the ports. Check INTERNAL_CPU_OFFLOAD_ENGINE: run mlxconfig -d {hca.pci.address} query on the"
            " node. In NIC mode, add a fabric to the intent manually."
        )
    return ""


def group_infiniband(nodes: Nodes, seen: ProposalInputs, out: Out) -> list[HcaGroup]:
    """Return a group for each InfiniBand fabric. HCAs are on one fabric if their ports see the same subnet manager, or
    subnet managers that see each other.

    :param nodes: HCAs of each node
    :param seen: facts from which the intent is proposed, with the subnet managers and topologies
    :param out: receives the HCAs that are left out, each with the reason
    """
    alias = _same_fabric(seen.topologies)
    groups: dict[str, dict[str, list[Hca]]] = {}
    for name, hcas in nodes.items():
        answers = seen.subnets.get(name, ObservedSubnets())
        masters: dict[str, SubnetManager] = {}
        for item in answers.value or ():
            if item.master:
                masters.setdefault(item.rdma_device, item.master)
        for hca in hcas:
            if hca.is_virtual or link_of(hca) != "InfiniBand":
                continue
            master = masters.get(hca.rdma_device or "")
            why = explain_unfit(hca)
            if why:
                out.add(name, hca, why)
            elif master is None:
                states = ", ".join(sorted({f"{port.state} and {port.physical_state}" for port in hca.all_ports}))
                asked = f" ({answers.error})" if answers.error else ""
                out.add(
                    name,
                    hca,
                    f"no subnet manager responds on its ports, which are {states}{asked}, so its fabric is unknown."
                    " Bring up the ports.",
                )
            else:
                groups.setdefault(alias.get(master.guid, (master.guid,))[0], {}).setdefault(name, []).append(hca)
    result = []
    for guid, members in groups.items():
        managers = alias.get(guid, (guid,))
        result.append(
            HcaGroup(
                True,
                managers,
                {name: tuple(hcas) for name, hcas in members.items()},
                f"the ports report the subnet manager {guid}",
            )
        )
    return result


def _same_fabric(topologies: typing.Mapping[str, ObservedTopologies]) -> dict[str, tuple[str, ...]]:
    """Return the GUIDs of all subnet managers of a fabric, the master first, by the GUID of each of these managers.

    :param topologies: topologies that fabric_info read, or the error, by node
    """
    found: dict[str, tuple[str, ...]] = {}
    for observed in topologies.values():
        for seen in observed.value or ():
            if seen.managers is None or seen.managers.master is None:
                continue
            others = {port.manager.guid for port in seen.managers.ports if port.manager} - {seen.managers.master}
            known = (seen.managers.master, *sorted(others))
            known = next((found[guid] for guid in known if guid in found), known)
            for guid in (seen.managers.master, *others):
                found.setdefault(guid, known)
    return found


def odd_nodes(fabric: str, group: HcaGroup) -> typing.Iterator[LeftOut]:
    """Yield the nodes whose number of HCAs on a fabric differs from that of most nodes."""
    found = (
        (
            name,
            f"{count_of(len(hcas), 'HCA')} on {fabric} ({', '.join(hca.name for hca in hcas)}), but most nodes have"
            f" {group.per_node}",
        )
        for name, hcas in group.members.items()
        if len(hcas) != group.per_node
    )
    return leave_out_nodes(found, "Repair {nodes}, or remove {nodes} from the group rdma_nodes.")


def leave_out_nodes(found: typing.Iterable[tuple[str, str]], remedy: str) -> typing.Iterator[LeftOut]:
    """Yield one item for all nodes that are left out for the same reason.

    :param found: pairs of the name of a node and the reason why it is left out
    :param remedy: instruction for the user; ``{nodes}`` is replaced by "the node" or "these nodes"
    """
    by_reason: dict[str, list[str]] = {}
    for node, why in found:
        by_reason.setdefault(why, []).append(node)
    for why, nodes in by_reason.items():
        one = len(nodes) == 1
        what = f"node {nodes[0]}" if one else f"{len(nodes)} nodes ({join_first(nodes, MOST_NAMES)})"
        yield LeftOut(what, f"{why}. {remedy.replace('{nodes}', 'the node' if one else 'these nodes')}")
