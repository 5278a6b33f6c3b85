# SPDX-License-Identifier: GPL-3.0-or-later

"""The linter of stage network for networks without virtual functions: the conditions that must hold before their
objects are applied. Check ids: ``network.lint_*``.

The rules for policies of the SR-IOV operator are in sriov_policy.py.
"""

from __future__ import annotations

import dataclasses
import typing

from ...._analysis.fleet.bonds import explain_parts, find_bond
from ...._analysis.fleet.hcas_of_fabric import find_candidates
from ...._analysis.fleet.vendors import load_rdma
from ...._model.intent.intent import Fabric
from ...._model.intent.profiles import NIC_POLICY, needs_nic_policy
from ...._model.node.hca import Hca, Netdev
from ...._model.run.findings import FAIL, UNKNOWN, WARN, Finding, build_pass
from .moved_interfaces import check_moved_interfaces
from .policy_context import LINK, OPERATOR, RDMA, SELECT, ClusterBefore

Rule = typing.Callable[[Fabric, ClusterBefore, typing.Sequence[str]], typing.Iterator[Finding]]
#: what NVIDIA's operator hands to a device plugin is one text with one owner
_CONFIGS = {"rdma_shared": "rdmaSharedDevicePlugin", "host_device": "sriovDevicePlugin"}


def lint(fabric: Fabric, cluster_before: ClusterBefore, nodes: typing.Sequence[str]) -> tuple[Finding, ...]:
    """Return the findings of all rules for the profile of the fabric, which compare the objects to be applied with the
    nodes and the cluster.

    :param cluster_before: state of the cluster before the objects are applied
    :param nodes: names of the nodes that must take part
    """
    return tuple(finding for rule in RULES[fabric.profile] for finding in rule(fabric, cluster_before, nodes))


def _check_interface(
    fabric: Fabric, cluster_before: ClusterBefore, nodes: typing.Sequence[str]
) -> typing.Iterator[Finding]:
    """Compare the number of interfaces on each node that the fabric selects with ``hcas_per_node`` of the intent.

    :param cluster_before: state of the cluster before the objects are applied
    :param nodes: names of the nodes that must take part
    """
    count = fabric.select.hcas_per_node
    for name in nodes:
        subject, expected = (
            f"{fabric.name} {name}",
            f"{count} {'interface' if count == 1 else 'interfaces'} for profile {fabric.profile}",
        )
        if name not in cluster_before.hcas:
            why = "The HCAs of the node were not read, so it is unknown whether it has the interfaces for the pods."
            yield Finding(
                SELECT,
                subject,
                UNKNOWN,
                "interfaces not read",
                expected,
                why,
                f"Follow the remedy of the finding discover.node of {name}, which contains the cause. Then run stages"
                " discover and network again.",
            )
            continue
        chosen = find_candidates(fabric, cluster_before.hcas[name])
        measured = (
            ", ".join(f"{hca.name} at {hca.pci.address if hca.pci else 'no PCI address'}" for hca in chosen)
            or "0 interfaces"
        )
        if len(chosen) == count:
            yield build_pass(SELECT, subject, measured, expected)
            continue
        part = explain_parts(fabric, cluster_before.hcas[name])
        if part is not None:
            why, remedy = part
            yield Finding(SELECT, subject, FAIL, measured, expected, why, f"{remedy} Then run stage network again.")
            continue
        others = (
            ", ".join(
                netdev.name for hca in cluster_before.hcas[name].hcas if not hca.is_virtual for netdev in hca.netdevs
            )
            or "none"
        )
        why = (
            "Pods on the node could not be attached to the network. The node has these interfaces of physical"
            f" functions: {others}."
        )
        yield Finding(
            SELECT,
            subject,
            FAIL,
            measured,
            expected,
            why,
            "Correct select of the fabric, or give the interface the same name on all nodes (with udev or NMState)."
            " Then run stage network again.",
        )


def _find_master(fabric: Fabric, cluster_before: ClusterBefore, name: str) -> typing.Optional[tuple[Hca, Netdev]]:
    """Return two objects: the HCA, and its host interface to which pods on the node are attached. For a bond, return
    the member that represents it, with the name of the bond. Return None if the node has no such interface.

    :param cluster_before: state of the cluster before the objects are applied
    :param name: name of the node
    """
    if name not in cluster_before.hcas:
        return None
    for hca in find_candidates(fabric, cluster_before.hcas[name]):
        for netdev in hca.netdevs:
            part = find_bond(cluster_before.hcas[name], netdev.bond) if netdev.bond in fabric.select.netdev else None
            if netdev.bond is not None and part is not None:
                return hca, dataclasses.replace(part, name=netdev.bond)
            if netdev.name in fabric.select.netdev:
                return hca, netdev
    return None


def _check_mtu(fabric: Fabric, cluster_before: ClusterBefore, nodes: typing.Sequence[str]) -> typing.Iterator[Finding]:
    """Check that the host interfaces are up, and that their MTU is not below that of the fabric. The CNI plugin refuses
    a larger MTU, and a pod interface carries no packets while its host interface is down.

    :param cluster_before: state of the cluster before the objects are applied
    :param nodes: names of the nodes to check
    """
    found = False
    for name in nodes:
        master = _find_master(fabric, cluster_before, name)
        if master is None:
            continue
        hca, netdev = master
        subject = f"{fabric.name} {name} {netdev.name}"
        if fabric.mtu is not None and netdev.mtu is not None and fabric.mtu > netdev.mtu:
            found = True
            why = (
                f"The CNI plugin rejects an MTU above the MTU of the host interface: invalid MTU {fabric.mtu}, must be"
                f" [0, master MTU({netdev.mtu})]."
            )
            yield Finding(
                LINK,
                subject,
                FAIL,
                f"MTU {fabric.mtu} bytes",
                f"MTU of at most {netdev.mtu} bytes",
                why,
                f"Lower mtu of fabric {fabric.name} to at most {netdev.mtu}, or raise the MTU of"
                f" {netdev.name} on {name} first: ip link set dev {netdev.name} mtu {fabric.mtu}, and in its"
                " network configuration. Then run stage network again.",
            )
        if netdev.state != "up":
            found = True
            why = "Pods start, but the interface is not up, so it carries no packets."
            yield Finding(
                LINK,
                subject,
                WARN,
                f"interface {netdev.state or 'in an unknown state'}",
                "interface up",
                why,
                f"On {name}, run ip link set dev {netdev.name} up, and check the cable of {hca.name}. Then run stage"
                " network again.",
            )
    if not found:
        known = sum(_find_master(fabric, cluster_before, name) is not None for name in nodes)
        expected = "an interface that is up, with at least the MTU of the fabric"
        if known:
            yield build_pass(LINK, fabric.name, f"satisfied on {known} of {len(nodes)} nodes", expected)
        else:
            why = "No interface of the nodes matches select of the fabric, so state and MTU were not checked."
            yield Finding(
                LINK,
                fabric.name,
                UNKNOWN,
                f"interface found on 0 of {len(nodes)} nodes",
                expected,
                why,
                "Follow the remedies of the findings network.lint_select of the fabric, then run stage network again.",
            )


def _check_shares(
    fabric: Fabric, cluster_before: ClusterBefore, nodes: typing.Sequence[str]
) -> typing.Iterator[Finding]:
    """Check that the shared RDMA device plugin finds an RDMA device on each node, and that the node is not in exclusive
    RDMA mode.

    :param cluster_before: state of the cluster before the objects are applied
    :param nodes: names of the nodes that must take part
    """
    expected = "RDMA device present, RDMA mode shared"
    for name in nodes:
        subject = f"{fabric.name} {name}"
        master = _find_master(fabric, cluster_before, name)
        mode = cluster_before.rdma_mode or (
            cluster_before.states[name].rdma_mode if name in cluster_before.states else ""
        )
        if mode == "exclusive":
            why = (
                "On a node in RDMA mode exclusive, the device plugin exits with 'incorrect RDMA subsystem network"
                " namespace'."
            )
            remedy = (
                "Set rdma_cluster.node_pool.rdma_mode to shared (this drains and reboots the nodes). Or, without"
                f" the SR-IOV operator, drain {name} and run rdma system set netns shared on it. Then run stage"
                " network again."
            )
            yield Finding(RDMA, subject, FAIL, "RDMA mode exclusive", expected, why, remedy)
        elif master is None:
            yield Finding(
                RDMA,
                subject,
                UNKNOWN,
                "interface not found",
                expected,
                "No interface of the node matches select of the fabric, so its RDMA device is unknown.",
                "Follow the remedies of the findings network.lint_select of the fabric, then run stage network again.",
            )
        elif master[1].bond is not None:
            why = (
                f"The device plugin searches for the interface of a PCI function by its name. {master[1].name} is a"
                " bond and not a PCI function, so the device plugin offers no resource."
            )
            remedy = (
                "Give pods virtual functions of the bond's HCAs (profile sriov_ethernet), or remove the bond and"
                " configure one fabric for each HCA. Then run stage network again."
            )
            yield Finding(RDMA, subject, FAIL, f"{master[1].name} is a bond", expected, why, remedy)
        elif not master[0].rdma_device:
            why = "The device plugin finds no RDMA device for the interface, so it offers no resource."
            yield Finding(
                RDMA,
                subject,
                FAIL,
                "no RDMA device",
                expected,
                why,
                f"{load_rdma([master[0]])} Then run stage network again.",
            )
        else:
            yield build_pass(RDMA, subject, f"{master[0].rdma_device}, RDMA mode {mode or 'not reported'}", expected)


def _check_nic_policy(
    fabric: Fabric, cluster_before: ClusterBefore, nodes: typing.Sequence[str]
) -> typing.Iterator[Finding]:
    """Check that the fabric can use the NicClusterPolicy, of which a cluster has only one.

    Yield a failed finding if the policy already has a device plugin configuration of another owner, since the run does
    not overwrite it. Yield nothing for a fabric that needs no NicClusterPolicy.

    :param cluster_before: state of the cluster before the objects are applied
    :param nodes: not used; all rules have the same parameters
    """
    if not needs_nic_policy(fabric):
        return
    expected = f"NicClusterPolicy {NIC_POLICY}, without configuration of another owner"
    others = sorted(policy.name for policy in cluster_before.nic_policies if policy.name != NIC_POLICY)
    one = next((policy for policy in cluster_before.nic_policies if policy.name == NIC_POLICY), None)
    part = _CONFIGS.get(fabric.profile, "")
    taken = one.configs.get(part, "") if one and not one.ours else ""
    if taken:
        owner = one.owners.get(part, "") if one else ""
        why = (
            f"The owner of this configuration is {owner or 'not reported'}. The NicClusterPolicy can hold only one"
            " such configuration. The configuration of the fabric would overwrite it, so the API server rejects the"
            " configuration of the fabric."
        )
        remedy = (
            f"Configure fabrics for the resources of this configuration and remove {part} from the NicClusterPolicy, or"
            " remove this fabric from the intent. Then run stage network again."
        )
        yield Finding(
            OPERATOR,
            fabric.name,
            FAIL,
            f"{part} is already set: {' '.join(taken.split())[:300]}",
            expected,
            why,
            remedy,
        )
    if others:
        why = (
            "The operator uses only the NicClusterPolicy of this name, and it reports the state 'ignore' for all"
            " others."
        )
        yield Finding(
            OPERATOR,
            fabric.name,
            WARN,
            f"additional policies: {', '.join(others)}",
            expected,
            why,
            "If no tool uses the additional NicClusterPolicies, delete them: kubectl delete"
            f" nicclusterpolicies.mellanox.com {' '.join(others)}. Otherwise waive this finding. Then run stage"
            " network again.",
        )
    if not taken and not others:
        yield build_pass(
            OPERATOR,
            fabric.name,
            f"{one.state or 'no state'}, {'created by linerate.rdma' if one.ours else 'created by another owner'}"
            if one
            else "does not exist yet",
            expected,
        )


#: what is asked of each profile before it is applied
RULES: dict[str, tuple[Rule, ...]] = {
    "macvlan": (_check_interface, check_moved_interfaces, _check_mtu),
    "host_device": (_check_interface, check_moved_interfaces, _check_nic_policy),
    "ipoib": (_check_interface, _check_mtu, _check_nic_policy),
    "rdma_shared": (_check_interface, check_moved_interfaces, _check_mtu, _check_shares, _check_nic_policy),
    "pod_network": (),
}
