# SPDX-License-Identifier: GPL-3.0-or-later

"""Check which physical functions a SriovNetworkNodePolicy selects."""

from __future__ import annotations

import dataclasses
import typing

from ...._analysis.controllers.sriov.policies import nearest_match, policy_selects
from ...._model.kubernetes.objects import ClusterNode
from ...._model.node.hca import Hca, PciFunction
from ...._model.operators.sriov_operator import NodeState, Policy, StateInterface, SupportedNic
from .policy_context import LIST, SELECT, ClusterBefore, Objection

# What it selects


def select_functions(
    policy: Policy, state: typing.Optional[NodeState], cluster_before: ClusterBefore
) -> tuple[StateInterface, ...]:
    interfaces = state.interfaces if state is not None else ()
    return tuple(
        interface
        for interface in interfaces
        if policy_selects(policy, interface)
        and _is_supported(interface.vendor, interface.device, cluster_before.supported)
    )


def _is_supported(vendor: str, device: str, supported: typing.Optional[tuple[SupportedNic, ...]]) -> bool:
    return supported is None or any((nic.vendor, nic.device) == (vendor, device) for nic in supported)


def check_selection(
    policy: Policy, nodes: typing.Sequence[ClusterNode], cluster_before: ClusterBefore
) -> typing.Iterator[Objection]:
    if not nodes:
        labels = ", ".join(f"{key}={value}" for key, value in sorted(policy.node_selector.items()))
        noun = "label" if len(policy.node_selector) == 1 else "labels"
        why = f"No node of the cluster carries the {noun} {labels}."
        text = f"no matched node is selected by the nodeSelector in CR {policy.name}"
        yield Objection(
            SELECT,
            "webhook",
            text,
            "at least one node",
            why,
            "Follow the remedies of the findings operators.label, which contain the cause. Then run stage network"
            " again.",
        )
        return
    # where no node has reported anything yet, the webhook refuses every policy; that is no fault of this one
    reported = [
        cluster_before.states[node.name]
        for node in nodes
        if node.name in cluster_before.states and cluster_before.states[node.name].interfaces
    ]
    if reported and not any(select_functions(policy, state, cluster_before) for state in reported):
        why = (
            "No node reports a physical function that the policy selects. The findings network.lint_select on the nodes"
            " name the nearest match."
        )
        text = f"no supported NIC is selected by the nicSelector in CR {policy.name}"
        yield Objection(
            SELECT,
            "webhook",
            text,
            "at least one physical function",
            why,
            "Correct select of the fabric, then run stage network again.",
        )


def explain_not_selected(policy: Policy, state: NodeState, cluster_before: ClusterBefore) -> str:
    """Return why a policy selects no further physical functions of a node: the function that comes nearest, and HCAs of
    the node that the operator does not report.

    :param state: state of the node, as the operator reports it
    :param cluster_before: state of the cluster before the objects are applied
    """
    chosen = select_functions(policy, state, cluster_before)
    rest = tuple(interface for interface in state.interfaces if interface not in chosen)
    lines = [
        f"{item.name} at {item.address} is not in the ConfigMap {LIST}" for item in rest if policy_selects(policy, item)
    ]
    if rest and not lines:
        lines = [nearest_match(policy, dataclasses.replace(state, interfaces=rest))]
    reported = {interface.address for interface in state.interfaces}
    hcas = cluster_before.hcas.get(state.node)
    unseen: dict[str, list[str]] = {}
    for hca in hcas.hcas if hcas is not None else ():
        if (
            hca.pci is not None
            and not hca.is_virtual
            and hca.pci.address not in reported
            and _may_select_hca(policy, hca, hca.pci)
        ):
            unseen.setdefault(_explain_unreported(hca, hca.pci, cluster_before), []).append(
                f"{hca.name} at {hca.pci.address} ({hca.pci.vendor}:{hca.pci.device})"
            )
    lines += [
        f"the operator does not report {', '.join(names)} of the node: {why}" for why, names in sorted(unseen.items())
    ]
    return "; ".join(lines) or "the operator reports no other interface of the node"


def _may_select_hca(policy: Policy, hca: Hca, pci: PciFunction) -> bool:
    """Return whether the policy would select this HCA if the operator reported it."""
    names = [netdev.name for netdev in hca.netdevs] or [""]
    return any(policy_selects(policy, StateInterface(name, pci.address, pci.vendor, pci.device)) for name in names)


def _explain_unreported(hca: Hca, pci: PciFunction, cluster_before: ClusterBefore) -> str:
    """Return why the config daemon does not report an HCA. The conditions are tested in the order of the daemon.
    [pkg/host/internal/sriov/sriov.go, DiscoverSriovDevices]

    :param cluster_before: state of the cluster before the objects are applied
    """
    if not _is_supported(pci.vendor, pci.device, cluster_before.supported):
        return f"not in the ConfigMap {LIST}"
    if pci.driver is None:
        return "no driver bound"
    if not hca.netdevs:
        return "no network interface"
    return "see the log of the config daemon on the node"
