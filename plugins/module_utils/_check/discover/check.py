# SPDX-License-Identifier: GPL-3.0-or-later

"""The check of stage discover: the nodes have the HCAs and NICs that the intent requires, and their ports are usable.
Check ids: ``discover.*``.

This stage does not know which InfiniBand HCA is on which fabric, since only the subnet manager reports that (stage
fabric). HCAs are therefore counted against all InfiniBand fabrics of the intent together. An unusable HCA is a failure
only if too few usable ones remain.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._analysis.fleet import unreachable_nodes
from ..._model.base.load_error import Hints
from ..._model.base.phrases import count_of, format_clause
from ..._model.base.text import join_first
from ..._model.intent.intent import Intent
from ..._model.intent.profiles import find_traits, is_infiniband
from ..._model.node.clock import ObservedClock
from ..._model.node.hca import NodeHcas, ObservedHcas
from ..._model.run.findings import FAIL, UNKNOWN, WARN, Finding, build_pass
from . import clock, numa
from .ethernet import check_ethernet, check_listed, compare_mtus
from .fleet import check_descriptions, check_fleet, check_guids, check_hardware_addresses
from .hcas import list_fitting
from .infiniband import check_infiniband
from .models import check_models


@dataclasses.dataclass(frozen=True)
class Facts:
    """The input of the check besides the intent.

    :ivar nodes: HCAs of each node, from the answer of node_info
    :ivar clocks: clock of each node, from the same answer
    :ivar by_pods: names of the nodes that are reached by observers
    """

    nodes: dict[str, ObservedHcas] = dataclasses.field(default_factory=dict)
    clocks: dict[str, ObservedClock] = dataclasses.field(default_factory=dict)
    by_pods: tuple[str, ...] = ()


def check(intent: Intent, facts: Facts) -> tuple[Finding, ...]:
    """Check the HCAs of each node: what could be read, drivers, links, NUMA nodes and clocks. Return at least one
    finding for each node, for each fabric on each node, and for each port that a fabric may use.
    """
    findings: list[Finding] = []
    if not facts.nodes:
        findings.append(
            Finding(
                "discover.node",
                "inventory",
                UNKNOWN,
                "0 nodes",
                "at least 1 node",
                "The group rdma_nodes of the inventory is empty or does not exist.",
                "Add the nodes to the group rdma_nodes of the inventory, then run stage discover again.",
            )
        )
    if intent.cluster.nodes_expected is not None:
        findings.append(_count_nodes(len(facts.nodes), intent.cluster.nodes_expected))
    read: dict[str, NodeHcas] = {}
    for name, observed in facts.nodes.items():
        findings += _check_node(name, observed, facts.by_pods)
        if observed.value is not None and observed.error is None:
            read[name] = observed.value
    hints = Hints()
    for name, node in read.items():
        findings += check_infiniband(intent, name, node)
        for fabric in intent.fabrics:
            if find_traits(fabric).members and not is_infiniband(fabric):
                findings += check_ethernet(fabric, name, node)
            findings += check_listed(fabric, name, node, hints)
        findings += _check_pcie(intent, name, node)
    findings += compare_mtus(intent, read)
    findings += check_fleet(intent, read)
    findings += check_models(intent, read)
    findings += check_guids(read)
    findings += check_hardware_addresses(intent, read)
    findings += check_descriptions(read)
    findings += numa.check(read)
    findings += clock.check({name: facts.clocks.get(name, ObservedClock()) for name in facts.nodes})
    return tuple(findings)


def _count_nodes(seen: int, expected: int) -> Finding:
    """Return the finding that compares the number of nodes in the inventory with the intent.

    No other finding reports a node that is missing from the inventory.

    :param seen: number of nodes in the inventory
    :param expected: number of nodes in the intent
    """
    measured, wanted = count_of(seen, "node"), count_of(expected, "node")
    if seen < expected:
        why = (
            "The missing nodes are not in the inventory, so no stage checks them. Their Node objects were deleted, or"
            " the nodes lost a label by which the inventory selects nodes. A kubelet can remove most labels from its"
            " own node."
        )
        remedy = (
            "Compare your list of machines with the output of kubectl get nodes --show-labels, and with the group"
            " rdma_nodes of the inventory (ansible-inventory --graph rdma_nodes). If the nodes were removed on"
            " purpose, correct rdma_cluster.nodes_expected. Then run stage discover again."
        )
        return Finding("discover.nodes", "inventory", FAIL, measured, wanted, why, remedy)
    if seen > expected:
        why = (
            "The inventory has more nodes than the intent expects. An additional node can hide that another node is"
            " missing."
        )
        remedy = (
            "Check that all nodes of ansible-inventory --graph rdma_nodes belong to this cluster, and correct"
            " rdma_cluster.nodes_expected. Then run stage discover again."
        )
        return Finding("discover.nodes", "inventory", WARN, measured, wanted, why, remedy)
    return build_pass("discover.nodes", "inventory", measured, wanted)


def _check_node(name: str, observed: ObservedHcas, by_pods: typing.Container[str]) -> list[Finding]:
    expected = "the HCAs and NICs of the node"
    if observed.value is None or observed.error is not None:
        why = (
            f"The module node_info failed on {name}, so its HCAs and NICs are unknown: {format_clause(observed.error)}."
            if observed.error
            else f"The module node_info returned nothing from {name}, so its HCAs and NICs are unknown."
        )
        # the report shows the same remedy of several stages once
        remedy = unreachable_nodes.get_remedy(name, by_pods, "Python 3.9 or later", "node_info")
        return [Finding("discover.node", name, UNKNOWN, "not read", expected, why, remedy)]
    node = observed.value
    virtual = sum(hca.is_virtual for hca in node.hcas)
    findings = [
        build_pass(
            "discover.node",
            name,
            f"{len(node.hcas) - virtual} physical and {count_of(virtual, 'virtual function')}",
            expected,
        )
    ]
    if node.errors:
        why = f"Reading these files failed: {format_clause(join_first(node.errors, 10, '; '))}."
        remedy = (
            f"Run cat on these files as root on {name}, and correct the error that it prints. If it prints none,"
            " virtual functions were created or removed during the stage. Then run stage discover again."
        )
        findings.append(
            Finding("discover.read", name, WARN, count_of(len(node.errors), "read error"), "0 read errors", why, remedy)
        )
    else:
        findings.append(build_pass("discover.read", name, "0 read errors", "0 read errors"))
    return findings


def _check_pcie(intent: Intent, name: str, node: NodeHcas) -> list[Finding]:
    """Check that the PCIe link of each HCA that a fabric of the intent may use runs at the maximum of the card.

    A card in a narrow slot, or with a link that trained down, cannot reach the rate of its port.

    The finding is a warning if the link is slower, or if one of the values was not read. HCAs without a PCIe link, such
    as virtio devices, are left out.

    :param name: name of the node
    :param node: HCAs of the node
    """
    findings = []
    for hca in list_fitting(intent.fabrics, node):
        # a virtio NIC is memory of the hypervisor: it has no link
        if hca.pci is None or hca.pci.driver == "virtio-pci":
            continue
        link, subject = hca.pci.link, f"{name} {hca.name}"
        if link.current_speed is None or link.current_width is None or link.max_speed is None or link.max_width is None:
            files = [
                name
                for name, value in (
                    ("current_link_speed", link.current_speed),
                    ("current_link_width", link.current_width),
                    ("max_link_speed", link.max_speed),
                    ("max_link_width", link.max_width),
                )
                if value is None
            ]
            why = (
                f"sysfs reports no value in {' and '.join(files)} of {hca.pci.address}. This is normal in some virtual"
                " machines."
            )
            remedy = (
                f"Run lspci -vv -s {hca.pci.address} as root on the node. If LnkSta shows the same speed and width"
                " as LnkCap, waive this finding. Otherwise drain the node, power it off, and reseat the card or"
                " move it to another slot. Then run stage discover again."
            )
            measured, expected = (
                _describe_link(link.current_speed, link.current_width),
                _describe_link(link.max_speed, link.max_width),
            )
            findings.append(
                Finding(
                    "discover.pcie",
                    subject,
                    WARN,
                    f"link {measured}; maximum of the card {expected}",
                    "speed and width of the link read, and equal to the maximum of the card",
                    why,
                    remedy,
                )
            )
            continue
        measured, expected = (
            _describe_link(link.current_speed, link.current_width),
            _describe_link(link.max_speed, link.max_width),
        )
        if link.current_speed < link.max_speed or link.current_width < link.max_width:
            why = (
                "The slot has fewer lanes or an older PCIe generation than the card, a riser limits the link, or the"
                " link trained down. This limits the bandwidth of the card."
            )
            findings.append(
                Finding(
                    "discover.pcie",
                    subject,
                    WARN,
                    f"PCIe link {measured}",
                    f"PCIe link {expected}",
                    why,
                    "Drain the node and check the settings of the slot in its BIOS. If they are right, power the"
                    f" node off and reseat the card at {hca.pci.address}, or move it to a slot that offers the"
                    " expected speed and width. Then run stage discover again.",
                )
            )
        else:
            findings.append(build_pass("discover.pcie", subject, measured, expected))
    return findings


def _describe_link(speed: typing.Optional[float], width: typing.Optional[int]) -> str:
    """Return the speed in GT/s and the width of a PCIe link as text, such as ``32 GT/s x16``.

    A missing speed or width reads ``speed not read`` or ``width not read``; if both are missing, the text is ``not
    read``.
    """
    if speed is None and width is None:
        return "not read"
    rate = "speed not read" if speed is None else f"{speed:g} GT/s"
    lanes = "width not read" if width is None else f"x{width}"
    return f"{rate}{' ' if None not in (speed, width) else ', '}{lanes}"
