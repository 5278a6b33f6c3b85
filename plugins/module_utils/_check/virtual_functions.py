# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection linerate.rdma: no other code may import this.

"""Stage virtual_functions: do the node's own sysfs, the operator's report and the kubelet's offer agree with the intent, and if not, which layer
is the one that is wrong. Check ids: ``virtual_functions.*``."""

from __future__ import annotations

import dataclasses
import typing

from .._model.cluster import ClusterNode, NodeState, OperatorFacts
from .._model.facts import Hca, NodeHcas, ObservedHcas, ObservedSubnets
from .._model.findings import FAIL, UNKNOWN, Finding, ok
from .._model.intent import Fabric, Intent
from .membership import Membership, is_infiniband, resolve


@dataclasses.dataclass(frozen=True)
class Facts:
    """What the check needs besides the intent.

    :ivar nodes: answer of hca_info of each node, taken after the stage network
    :ivar subnets: answer of subnet_manager_info of each node (stage fabric); says which InfiniBand HCA is on which fabric
    :ivar operators: answer of sriov_operator_info; None when there is none
    """

    nodes: typing.Dict[str, ObservedHcas] = dataclasses.field(default_factory=dict)
    subnets: typing.Dict[str, ObservedSubnets] = dataclasses.field(default_factory=dict)
    operators: typing.Optional[OperatorFacts] = None


@dataclasses.dataclass(frozen=True)
class _Layers:
    """What each layer says of one physical function.

    :ivar vfs: virtual functions in sysfs
    :ivar state: of the node; None when the operator has none
    """

    fabric: Fabric
    node: str
    hca: Hca
    vfs: typing.Tuple[Hca, ...]
    state: typing.Optional[NodeState]

    @property
    def address(self) -> str:
        return self.hca.pci.address if self.hca.pci else ""

    @property
    def subject(self) -> str:
        return f"{self.fabric.name} {self.node} {self.hca.name} {self.address}".strip()


def check(intent: Intent, facts: Facts) -> typing.Tuple[Finding, ...]:
    """Findings for each node; for each physical function that a fabric has on it; and for each fabric on each node."""
    findings: typing.List[Finding] = []
    if not facts.nodes:
        why = "No node was asked, so nothing is known of any."
        findings.append(
            Finding("virtual_functions.node", "inventory", UNKNOWN, "no node", "at least 1", why, "Put the nodes into the inventory's group rdma_nodes.")
        )
    read: typing.Dict[str, NodeHcas] = {}
    for name, observed in facts.nodes.items():
        if observed.value is None or observed.error is not None:
            why = f"hca_info gave no answer: {observed.error or 'its answer is empty'}."
            findings.append(
                Finding("virtual_functions.node", name, UNKNOWN, "no answer", "an answer of hca_info", why, f"Make {name} answer, and run the stage again.")
            )
        else:
            read[name] = observed.value
    states = {state.node: state for state in facts.operators.states} if facts.operators else {}
    cluster_nodes = {node.name: node for node in facts.operators.nodes} if facts.operators else {}
    subnets = {name: seen.value for name, seen in facts.subnets.items() if seen.value is not None}
    for fabric in intent.fabrics:
        membership = resolve(fabric, read, subnets)
        if not membership.resolved:
            findings.append(_unresolved(membership))
            continue
        for name, node in read.items():
            findings += _node(intent, fabric, membership, name, node, states.get(name))
            findings.append(_offer(intent, fabric, name, membership, cluster_nodes.get(name), facts.operators))
    return tuple(findings)


def _unresolved(membership: Membership) -> Finding:
    why = f"It is not known which physical functions belong to the fabric: {membership.why}."
    return Finding(
        "virtual_functions.members",
        membership.fabric,
        UNKNOWN,
        "not known",
        "physical functions of each node",
        why,
        membership.remedy or "See the stage fabric.",
    )


def _node(intent: Intent, fabric: Fabric, membership: Membership, name: str, node: NodeHcas, state: typing.Optional[NodeState]) -> typing.List[Finding]:
    members = membership.members.get(name, ())
    expected = f"{fabric.select.hcas_per_node} physical functions"
    if len(members) != fabric.select.hcas_per_node:
        why = "The fabric has another number of physical functions on this node than the intent says."
        measured = ", ".join(member.hca.name for member in members) or "none"
        return [Finding("virtual_functions.members", f"{fabric.name} {name}", FAIL, measured, expected, why, "See the stages discover and fabric.")]
    findings = [ok("virtual_functions.members", f"{fabric.name} {name}", ", ".join(member.hca.name for member in members), expected)]
    for member in members:
        address = member.hca.pci.address if member.hca.pci else ""
        vfs = tuple(hca for hca in node.hcas if hca.physical_function == address)
        layers = _Layers(fabric, name, member.hca, vfs, state)
        findings.append(_count(layers))
        if vfs:
            findings.append(_driver(layers))
            findings.append(_report(layers))
            if is_infiniband(fabric) or fabric.rdma:
                findings.append(_rdma(layers))
    return findings


def _count(layers: _Layers) -> Finding:
    wanted, made = layers.fabric.virtual_functions, len(layers.vfs)
    told = next((item for item in layers.state.wanted if item.address == layers.address), None) if layers.state else None
    said = next((item for item in layers.state.interfaces if item.address == layers.address), None) if layers.state else None
    measured = f"sysfs {made}, operator reports {said.vfs_count if said else 'nothing'}, operator wants {told.vfs_count if told else 'nothing'}"
    expected = f"{wanted} in each"
    if made == wanted and said is not None and said.vfs_count == wanted:
        return ok("virtual_functions.count", layers.subject, measured, expected)
    why, remedy = _wrong_layer(layers, made, told.vfs_count if told else None, said.vfs_count if said else None)
    return Finding("virtual_functions.count", layers.subject, FAIL, measured, expected, why, remedy)


def _wrong_layer(layers: _Layers, made: int, told: typing.Optional[int], said: typing.Optional[int]) -> typing.Tuple[str, str]:
    """The first layer, from the intent down to the kernel, that does not pass on what it was told."""
    wanted, total = layers.fabric.virtual_functions, layers.hca.sriov.total if layers.hca.sriov else None
    if total is None:
        return (
            "Firmware or BIOS: the function has no SR-IOV (sriov_totalvfs is absent).",
            "Switch SR-IOV on in the BIOS and in the card's firmware, then reboot.",
        )
    if total < wanted:
        return f"Firmware: the function has {total} virtual functions at most.", f"Raise NUM_OF_VFS in the firmware, or lower virtual_functions to {total}."
    if layers.state is None:
        return "Operator: it has no SriovNetworkNodeState for the node.", "See the findings operators.daemon and operators.label."
    if said is None:
        return (
            "Config daemon: it does not report this function, which the kernel shows.",
            "Is the NIC in the operator's list of supported NICs? See the config daemon's log.",
        )
    if told is None:
        return "Operator: no policy reaches this function.", "See the stage network: was the policy taken, and does it select this function?"
    if told != wanted:
        return (
            f"Operator: it wants {told} on this function, so another policy decides, or ours is not seen yet.",
            "Compare the policies' priority and nicSelector.",
        )
    if made != wanted and said == wanted:
        return (
            "Config daemon: its report is not what the kernel shows; something changed the functions since.",
            "Delete the config daemon's pod on the node, so that it looks again.",
        )
    if made != wanted:
        return (
            f"Config daemon: it was told {told} and has not made them.",
            f"Last error: {layers.state.last_sync_error or 'none'}. See the config daemon's log.",
        )
    return "Config daemon: the kernel has them, its report is old.", "Run the stage again; if it stays, see the config daemon's log."


def _driver(layers: _Layers) -> Finding:
    drivers = sorted({(vf.pci.driver if vf.pci else None) or "none" for vf in layers.vfs})
    expected = "one network driver"
    if len(drivers) == 1 and drivers[0] not in ("none", "vfio-pci"):
        return ok("virtual_functions.driver", layers.subject, drivers[0], expected)
    bare = [vf.name for vf in layers.vfs if vf.pci is None or vf.pci.driver in (None, "vfio-pci")]
    why = f"Kernel: these functions have no network driver: {', '.join(bare)}." if bare else "Kernel: the functions of one card have several drivers."
    remedy = "Load the driver of the functions (modprobe), or see dmesg for why it refuses them."
    return Finding("virtual_functions.driver", layers.subject, FAIL, ", ".join(drivers), expected, why, remedy)


def _report(layers: _Layers) -> Finding:
    """Whether kernel and operator mean the same functions."""
    kernel = {vf.pci.address for vf in layers.vfs if vf.pci}
    said = {vf.address for item in (layers.state.interfaces if layers.state else ()) if item.address == layers.address for vf in item.vfs}
    measured = f"sysfs {len(kernel)}, operator {len(said)}, both {len(kernel & said)}"
    if kernel == said:
        return ok("virtual_functions.report", layers.subject, measured, "the same PCI addresses")
    differing = ", ".join(sorted(kernel ^ said)[:8])
    why = f"Config daemon: its report and the kernel differ in: {differing}."
    return Finding(
        "virtual_functions.report",
        layers.subject,
        FAIL,
        measured,
        "the same PCI addresses",
        why,
        "Run the stage again; if it stays, see the config daemon's log.",
    )


def _rdma(layers: _Layers) -> Finding:
    without = [vf.name for vf in layers.vfs if not vf.rdma_device]
    measured, expected = f"{len(layers.vfs) - len(without)} of {len(layers.vfs)}", f"{len(layers.vfs)} of {len(layers.vfs)} with an RDMA device"
    if not without:
        return ok("virtual_functions.rdma_device", layers.subject, measured, expected)
    why = f"Driver: these functions have no RDMA device in the node's view: {', '.join(without[:8])}."
    remedy = "Load the RDMA driver (mlx5_ib), or say rdma: false in the fabric where they have none. A function that a pod holds in exclusive mode is not seen."
    return Finding("virtual_functions.rdma_device", layers.subject, FAIL, measured, expected, why, remedy)


def _offer(
    intent: Intent, fabric: Fabric, name: str, membership: Membership, node: typing.Optional[ClusterNode], operators: typing.Optional[OperatorFacts]
) -> Finding:
    resource = f"{intent.cluster.resource_prefix}/{fabric.resource_name}"
    subject, expected = f"{fabric.name} {name}", f"{fabric.virtual_functions * fabric.select.hcas_per_node} {resource}"
    if operators is None or node is None:
        why = "The API server was not asked." if operators is None else "The cluster knows no node of this name."
        return Finding("virtual_functions.allocatable", subject, UNKNOWN, "not known", expected, why, "Check the kubeconfig and the node's name.")
    offered = node.allocatable.get(resource)
    measured = f"{offered if offered is not None else 'no'} {resource}"
    if offered == fabric.virtual_functions * fabric.select.hcas_per_node:
        return ok("virtual_functions.allocatable", subject, measured, expected)
    why = (
        "Device plugin or kubelet: this is not what the intent asks for."
        if membership.members.get(name)
        else "No physical function of the node is on this fabric."
    )
    remedy = "Where the findings on the node's functions do not pass, start there. Else see the log of the pod sriov-device-plugin on the node."
    return Finding("virtual_functions.allocatable", subject, FAIL, measured, expected, why, remedy)
