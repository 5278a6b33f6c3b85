# SPDX-License-Identifier: GPL-3.0-or-later

"""Check that a node has the label by which policies select it. If not, find the layer that prevents the label, from the
hardware up. Check id: ``operators.label``.

The conditions under which node feature discovery creates a label are taken from its source. ``network-sriov.capable``
comes from the network interfaces [source/network/network.go]. ``pci-<fields>.present`` and ``.sriov.capable`` come from
the PCI classes of a list [source/pci/pci.go].
"""

from __future__ import annotations

import typing

from ..._analysis.fleet import vendors
from ..._analysis.fleet.unreachable_nodes import NOT_QUERIED
from ..._model.base.phrases import format_clause
from ..._model.intent.intent import ClusterIntent
from ..._model.kubernetes.objects import ClusterNode
from ..._model.node.hca import Hca, ObservedHcas
from ..._model.operators.feature_discovery import FeatureDiscovery, WorkerConfig
from ..._model.run.findings import FAIL, Finding, build_pass

PREFIX = "feature.node.kubernetes.io/"
_Cause = typing.Optional[tuple[str, str]]


def check_label(
    cluster: ClusterIntent,
    node: ClusterNode,
    observed: typing.Optional[ObservedHcas],
    discovery: typing.Optional[tuple[FeatureDiscovery, ...]],
) -> Finding:
    """Check that a node has the labels that ``node_selector`` of the intent requires, and explain a missing label by
    the configuration of node feature discovery.

    :param cluster: settings of the intent
    :param observed: HCAs that the node itself reports; None if it was not queried
    :param discovery: workers of node feature discovery; None if they were not read
    """
    expected = ", ".join(f"{key}={value}" for key, value in sorted(cluster.node_selector.items()))
    missing = [key for key, value in sorted(cluster.node_selector.items()) if node.labels.get(key) != value]
    if not missing:
        return build_pass("operators.label", node.name, expected, expected)
    measured = ", ".join(f"{key}={node.labels[key]}" if key in node.labels else f"{key} is absent" for key in missing)
    why, remedy = _explain_missing_label(node, missing, observed, discovery, cluster.node_selector)
    return Finding("operators.label", node.name, FAIL, measured, expected, why, remedy)


def _explain_missing_label(
    node: ClusterNode,
    missing: typing.Sequence[str],
    observed: typing.Optional[ObservedHcas],
    discovery: typing.Optional[tuple[FeatureDiscovery, ...]],
    wanted: typing.Mapping[str, str],
) -> tuple[str, str]:
    key = next((key for key in missing if key.startswith(PREFIX)), None)
    if key is None:
        return (
            "No operator sets this label automatically, and no admin has set it to this value.",
            f"Run kubectl label node {node.name} --overwrite {missing[0]}={wanted.get(missing[0], 'VALUE')}, or correct"
            " rdma_cluster.node_selector. Then run"
            " stage operators again.",
        )
    value = observed.value if observed is not None else None
    hcas = [hca for hca in value.hcas if not hca.is_virtual and hca.pci is not None] if value is not None else []
    found = (_find_hardware_cause(hcas) if value is not None else None) or _find_worker_cause(node, discovery)
    config = next(
        (item.config for item in discovery or () if node.name in item.worker.nodes and item.config is not None), None
    )
    if found is None and config is not None:
        found = _find_configuration_cause(
            key[len(PREFIX) :], [hca for hca in hcas if _is_sriov_capable(hca)], config, discovery or ()
        )
    if found is None:
        unread = "; ".join(item.unread for item in discovery or () if item.unread)
        why = "Node feature discovery runs on the node, but has not set the label to this value" + (
            f"; its configuration could not be read: {unread}." if unread else "."
        )
        found = (
            why,
            (
                f"Run kubectl get pods -A -o wide --field-selector spec.nodeName={node.name} to find the worker pod"
                " of node feature discovery on the node, and kubectl logs for its log. The worker checks the node"
                " once a minute. Correct the error in the log, then run stage operators again."
            ),
        )
    why, remedy = found
    if value is None:
        why += (
            " The HCAs of the node were not read, so they are not part of this explanation:"
            f" {format_clause(observed.error if observed is not None else None, NOT_QUERIED)}."
        )
    return why, remedy


def _is_sriov_capable(hca: Hca) -> bool:
    return hca.sriov is not None and bool(hca.sriov.total)


def _find_hardware_cause(hcas: typing.Sequence[Hca]) -> _Cause:
    """Search the PCI devices of a node and their SR-IOV capability for the reason why a label is missing.

    Return cause and remedy, or None if at least one HCA is capable of SR-IOV.

    :param hcas: physical HCAs of the node
    """
    if not hcas:
        why = (
            "The node reports no network function on PCI: the card is absent, defective, or passed through to another"
            " system."
        )
        return why, (
            "If lspci on the node does not list the card, reseat it, and enable its slot in the BIOS. Then run stage"
            " operators again."
        )
    if any(map(_is_sriov_capable, hcas)):
        return None
    seen = ", ".join(
        f"{hca.name} {'absent' if hca.sriov is None or hca.sriov.total is None else hca.sriov.total}"
        for hca in hcas[:8]
    )
    why = (
        "No physical function of the node offers VFs, so node feature discovery does not set the label. VFs"
        f" offered (sriov_totalvfs): {seen}."
    )
    firmware = " ".join(dict.fromkeys(vendors.enable_functions(hca) for hca in hcas[:8]))
    return (
        why,
        f"Drain the node and enable SR-IOV in its BIOS. {firmware} Then run stages discover and operators again.",
    )


def _find_worker_cause(node: ClusterNode, discovery: typing.Optional[typing.Sequence[FeatureDiscovery]]) -> _Cause:
    """Search the workers of node feature discovery for the reason why a label is missing. Return cause and remedy; None
    if a worker runs on the node and labels are written.

    :param discovery: workers of node feature discovery; None if they were not read
    """
    if discovery is None:
        return (
            "Whether node feature discovery runs is unknown, because its workers could not be read.",
            "Follow the remedy of the finding operators.read, which contains the error of the API server. Then"
            " run stage operators again.",
        )
    if not discovery:
        return (
            "Node feature discovery does not run: the cluster has no DaemonSet of nfd-worker.",
            "Install node feature discovery with its worker on this node, then run stage operators again.",
        )
    names = ", ".join(f"{item.worker.namespace}/{item.worker.name}" for item in discovery)
    if not any(node.name in item.worker.nodes for item in discovery):
        waiting = [item.pods[node.name] for item in discovery if node.name in item.pods]
        if waiting:
            why = f"The worker of node feature discovery on the node is not ready: {waiting[0]}."
            return why, (
                f"Run kubectl get pods -A -o wide --field-selector spec.nodeName={node.name} to find the worker's"
                f" pod (DaemonSet {names}), and kubectl describe pod and kubectl logs for it. Correct the cause that"
                " they show. Then run stage operators again."
            )
        why = (
            f"No worker of node feature discovery ({names}) runs on the node: the nodeSelector of the worker or a taint"
            " excludes the node."
        )
        return why, (
            f"Compare nodeSelector and tolerations of the DaemonSet {names} with the node's labels and taints, and"
            " correct them. Then run stage operators again."
        )
    if not any(key.startswith(PREFIX) for key in node.labels):
        why = (
            f"The worker of node feature discovery ({names}) is ready on the node, but the node has no label {PREFIX}*:"
            " nfd-master does not write the labels."
        )
        namespace = discovery[0].worker.namespace
        return why, (
            f"Read the log of nfd-master: kubectl -n {namespace} logs deployment/nfd-master. Check that kubectl get"
            f" nodefeatures -A lists {node.name}. Correct the cause, then run stage operators again."
        )
    return None


def _find_configuration_cause(
    label: str, hcas: typing.Sequence[Hca], config: WorkerConfig, discovery: typing.Sequence[FeatureDiscovery]
) -> _Cause:
    """Search the configuration of node feature discovery's worker for the reason why a label is missing. Return the
    cause and the remedy as two texts; None if the configuration is not the reason. Labels of custom rules
    (NodeFeatureRule) are not checked.

    :param label: label that the node lacks
    :param hcas: HCAs of the node
    :param config: configuration of the worker
    :param discovery: workers of node feature discovery
    """
    where = ", ".join(f"{item.worker.namespace}/{item.worker.name}" for item in discovery)
    source = label.partition("-")[0]
    if source in ("network", "pci") and (f"-{source}" in config.sources or not {"all", source} & set(config.sources)):
        why = (
            f"The worker creates no labels of its source {source}, because core.labelSources is"
            f" {', '.join(config.sources)}."
        )
        return why, (
            f"Add {source} to core.labelSources in the configuration of {where}. Then run stage operators again."
        )
    if label.startswith("network-sriov.") and hcas and not any(hca.netdevs for hca in hcas):
        why = (
            "Node feature discovery sets the label for network interfaces, and no function with SR-IOV has a network"
            f" interface: {', '.join(hca.name for hca in hcas)}."
        )
        infiniband = any(hca.pci is not None and hca.pci.device_class == "0207" for hca in hcas)
        more = " On InfiniBand, also run modprobe ib_ipoib." if infiniband else ""
        return why, f"{vendors.load_driver(hcas)}{more} Then run stage operators again."
    if source != "pci" or not hcas:
        return None
    classes = sorted({hca.pci.device_class for hca in hcas if hca.pci})
    taken = [hca for hca in hcas if hca.pci and hca.pci.device_class.startswith(config.classes)]
    if not taken:
        why = (
            f"The functions have PCI class {', '.join(classes)}, but the worker creates labels only for the classes"
            f" {', '.join(config.classes)}."
        )
        return (
            why,
            (
                f"Add {', '.join(classes)} to sources.pci.deviceClassWhitelist of {where} (OpenShift: workerConfig of"
                " the NodeFeatureDiscovery). Then run stage operators again."
            ),
        )
    names = sorted({_pci_label(hca, config) for hca in taken})
    if not any(label.startswith(f"{name}.") for name in names):
        why = f"With deviceLabelFields {', '.join(config.fields)}, the worker names the label {', '.join(names)}."
        return why, (
            f"Set deviceLabelFields of {where} to [vendor], or correct rdma_cluster.node_selector. Then run stage"
            " operators again."
        )
    return None


def _pci_label(hca: Hca, config: WorkerConfig) -> str:
    """Return the prefix of the labels that node feature discovery creates for the PCI class of an HCA, such as
    ``pci-0207_15b3``. Class, vendor and device are in this order, whatever the order in the configuration. Subsystem
    ids are left out, since they are not known.

    :param config: configuration of node feature discovery's worker
    """
    values = {"class": hca.pci.device_class, "vendor": hca.pci.vendor, "device": hca.pci.device} if hca.pci else {}
    known = [values[field] for field in ("class", "vendor", "device") if field in config.fields]
    return "pci-" + "_".join(known or [values.get("class", ""), values.get("vendor", "")])
