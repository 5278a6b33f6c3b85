# SPDX-License-Identifier: GPL-3.0-or-later

"""Stage operators: is there one SR-IOV network operator, does it serve, and can it see the nodes. Check ids:
``operators.*``."""

from __future__ import annotations

import dataclasses
import typing

from ..._analysis.controllers.image_pull import Keys, concerns, explain
from ..._analysis.controllers.unread import describe_unread
from ..._analysis.fleet import machines
from ..._model.intent.intent import ClusterIntent, Intent
from ..._model.intent.mirror import MirrorFacts
from ..._model.intent.profiles import attachment_kind, definitions, find_traits
from ..._model.kubernetes.images import ImageFacts
from ..._model.kubernetes.objects import ClusterNode
from ..._model.kubernetes.rights import RightsFacts
from ..._model.node.hca import ObservedHcas
from ..._model.node.platform import ObservedPlatform
from ..._model.operators.olm import OlmFacts
from ..._model.operators.operators import OperatorsSeen
from ..._model.operators.sriov_operator import OperatorFacts, OperatorInstallation
from ..._model.run.findings import FAIL, UNKNOWN, WARN, Finding, ok
from ..mended import NO_OPERATOR
from . import drivers, images, mirror, needed, olm
from . import rbac as rights
from .node_label import check_label

_OWNERS = {
    "k8s.cni.cncf.io": "multus",
    "whereabouts.cni.cncf.io": "whereabouts",
    "nv-ipam.nvidia.com": "nv-ipam (of NVIDIA's network operator)",
    "mellanox.com": "NVIDIA's network operator",
}

#: pods with a warning of their own; the config daemon of a thousand nodes is one cause
_TROUBLES = 20


@dataclasses.dataclass(frozen=True)
class Facts:
    """The input of the check besides the intent.

    :ivar nodes: names of the nodes that must take part
    :ivar operators: answer of sriov_operator_info; None when there is none
    :ivar rights: answer of access_info; None when there is none
    :ivar images: from where images are pulled, as sriov_operator_info says; None when nobody asked
    :ivar mirror: what registries say of all that a run would pull (images_info); None when nobody asked
    :ivar olm: answer of the module olm; None when it was to install nothing
    :ivar needed: answer of operators_info: who is there of all that the intent and the job need; None when nobody asked
    :ivar hcas: answer of node_info of each node (stage discover), which tells why a label is absent; may be empty
    :ivar platforms: answer of node_info of each node, which tells whether its kernel takes an unsigned driver; may be
        empty
    """

    nodes: tuple[str, ...] = ()
    operators: typing.Optional[OperatorFacts] = None
    hcas: dict[str, ObservedHcas] = dataclasses.field(default_factory=dict)
    rights: typing.Optional[RightsFacts] = None
    images: typing.Optional[ImageFacts] = None
    mirror: typing.Optional[MirrorFacts] = None
    olm: typing.Optional[OlmFacts] = None
    needed: typing.Optional[OperatorsSeen] = None
    platforms: dict[str, ObservedPlatform] = dataclasses.field(default_factory=dict)


def check(intent: Intent, facts: Facts) -> tuple[Finding, ...]:
    """Return findings on the cluster as a whole and on each image, then two at least for each node."""
    seen, cluster = facts.operators, intent.cluster
    if seen is None:
        why = "The API server was not asked, or gave no answer."
        return (
            Finding(
                "operators.read",
                "cluster",
                UNKNOWN,
                "nothing",
                "an answer of the API server",
                why,
                "Check the kubeconfig and whether the API server runs.",
            ),
        )
    sriov = any(find_traits(fabric).functions for fabric in intent.fabrics)
    findings = [
        *rights.check(facts.rights),
        _read(seen),
        *needed.check(intent, facts.needed, facts.nodes),
        *_check_definitions(intent, seen),
    ]
    findings += [*images.check(intent, facts.images), *mirror.check(intent, facts.mirror), *olm.check(facts.olm)]
    findings += drivers.check(
        intent, facts.needed, facts.platforms, facts.hcas, bool(facts.images and facts.images.rules)
    )
    findings += (
        [*_check_installation(cluster, seen), *_check_olm(seen), _check_config(seen), *_check_pods(seen)]
        if sriov
        else []
    )
    findings += [_check_multus(seen, facts.nodes)] if any(map(attachment_kind, intent.fabrics)) else []
    if not facts.nodes:
        why = "No node was named, so nothing is known of any."
        findings.append(
            Finding(
                "operators.node",
                "inventory",
                UNKNOWN,
                "no node",
                "at least 1",
                why,
                "Put the nodes into the inventory's group rdma_nodes.",
            )
        )
    known = {node.name: node for node in seen.nodes}
    for name in facts.nodes:
        findings += _check_node(cluster, seen, name, known, facts.hcas.get(name), sriov)
    answers = (
        machines.collect_answers("hcas", facts.hcas),
        machines.collect_answers("platform", facts.platforms),
    )
    findings += machines.check("operators.machine", facts.nodes, answers, seen.nodes)
    return tuple(findings)


def _read(seen: OperatorFacts) -> Finding:
    if not seen.errors:
        return ok("operators.read", "cluster", "everything was read", "everything")
    rights = "Give the user of the kubeconfig the rights of docs/rbac/look.yml."
    return describe_unread("operators.read", "cluster", seen.errors, rights)


def _check_definitions(intent: Intent, seen: OperatorFacts) -> list[Finding]:
    findings = []
    for name in sorted({name for fabric in intent.fabrics for name in definitions(fabric)}):
        if name in seen.crds:
            findings.append(ok("operators.definition", name, "established", "established"))
        else:
            owner = _OWNERS.get(name.partition(".")[2], "the SR-IOV network operator")
            why = f"The API server does not serve this kind: {owner} is not installed, or its definition was refused."
            remedy = f"Install {owner}." + (
                " With operators_install this stage does it by Helm." if "SR-IOV" in owner else ""
            )
            findings.append(Finding("operators.definition", name, FAIL, "absent", "established", why, remedy))
    return findings


def _check_installation(cluster: ClusterIntent, seen: OperatorFacts) -> list[Finding]:
    found = seen.installations
    expected = f"one, in namespace {cluster.operator_namespace or seen.namespace}"
    measured = (
        "; ".join(
            f"{item.deployment.namespace}/{item.deployment.name} ({item.origin}, {item.version or 'no version'})"
            for item in found
        )
        or NO_OPERATOR
    )
    if not found:
        why = "No Deployment in the cluster runs the SR-IOV network operator."
        why += " OLM has it in hand; see operators.olm." if seen.olm else ""
        remedy = "Install it: operators_install with operators_sriov_chart, or OLM on OpenShift."
        return [Finding("operators.single", "SR-IOV network operator", FAIL, measured, expected, why, remedy)]
    if len(found) > 1:
        why = (
            "Two operators change the same nodes, each undoing what the other did. NVIDIA's network operator brings one"
            " of its own."
        )
        remedy = "Remove one: helm uninstall, or sriovNetworkOperator.enabled=false in NVIDIA's chart."
        return [Finding("operators.single", "SR-IOV network operator", FAIL, measured, expected, why, remedy)]
    one = found[0]
    if one.deployment.namespace != (cluster.operator_namespace or seen.namespace):
        why = "The operator obeys only policies in its own namespace."
        remedy = f"Remove rdma_cluster.operator_namespace, or set it to {one.deployment.namespace}."
        return [Finding("operators.single", "SR-IOV network operator", FAIL, measured, expected, why, remedy)]
    return [
        ok("operators.single", "SR-IOV network operator", measured, expected),
        _parse_version(one, seen),
        _check_ready(one, seen),
        _check_prefix(cluster, one),
    ]


def _check_olm(seen: OperatorFacts) -> list[Finding]:
    """Check the progress of OLM, where it installs the operator. Only a ClusterServiceVersion that has succeeded is an
    installation."""
    findings = []
    if not seen.olm and any(one.origin == "olm" for one in seen.installations):
        why = "The operator's Deployment belongs to OLM, and its ClusterServiceVersion was not seen in its namespace."
        findings.append(
            Finding(
                "operators.olm",
                "OLM",
                UNKNOWN,
                "not seen",
                "Succeeded",
                why,
                "Correct the namespace, or give the user the right to list them.",
            )
        )
    for item in seen.olm:
        subject, expected = (
            f"{item.kind} {item.namespace}/{item.name}",
            "Succeeded" if item.kind == "ClusterServiceVersion" else "installed, no condition",
        )
        measured = ", ".join(part for part in (item.phase or "no state yet", item.version) if part)
        good = item.phase == "Succeeded" if item.kind == "ClusterServiceVersion" else bool(item.version)
        why = f"OLM says: {item.message or 'nothing yet'}."
        remedy = (
            f"kubectl -n {item.namespace} describe {item.kind.lower()} {item.name}; approve its InstallPlan where"
            " approval is manual."
        )
        if good and (item.kind == "ClusterServiceVersion" or not item.message):
            findings.append(ok("operators.olm", subject, measured, expected))
        else:
            findings.append(Finding("operators.olm", subject, WARN if good else FAIL, measured, expected, why, remedy))
    return findings


def _parse_version(one: OperatorInstallation, seen: OperatorFacts) -> Finding:
    version = one.version or next(
        (item.version for item in seen.olm if item.kind == "ClusterServiceVersion" and item.phase == "Succeeded"), ""
    )
    if version:
        return ok("operators.version", "SR-IOV network operator", version, "known")
    why = "Neither its labels, nor RELEASE_VERSION, nor the image's tag say which version it is."
    return Finding(
        "operators.version",
        "SR-IOV network operator",
        WARN,
        ", ".join(one.deployment.images),
        "known",
        why,
        "Use an image with a version tag.",
    )


def _check_ready(one: OperatorInstallation, seen: OperatorFacts) -> Finding:
    work = one.deployment
    measured, expected = (
        f"{work.ready} of {work.wanted} pods available",
        f"{max(1, work.wanted)} of {max(1, work.wanted)} pods available",
    )
    if work.ready >= work.wanted > 0:
        return ok("operators.ready", f"Deployment {work.namespace}/{work.name}", measured, expected)
    remedy = f"kubectl -n {work.namespace} describe deployment {work.name}; its pods' events name the cause."
    if work.wanted and work.ready:
        # one leads and the others wait for it to go, on whatever node they are
        why = f"One pod is enough to act on policies, and the others would replace it.{_because(seen, work.name)}"
        return Finding(
            "operators.ready", f"Deployment {work.namespace}/{work.name}", WARN, measured, expected, why, remedy
        )
    why = "The operator does not run, so nobody acts on a policy." if work.wanted else "The operator is scaled to 0."
    why += _because(seen, work.name)
    return Finding("operators.ready", f"Deployment {work.namespace}/{work.name}", FAIL, measured, expected, why, remedy)


def _check_pods(seen: OperatorFacts) -> typing.Iterator[Finding]:
    """Pods of the operator that are not ready, whatever they are for and whatever node they are on.

    A warning: what the intent needs of the operator (its Deployment, the config daemon of each node) has findings of
    its own, and webhooks and device plugins are proven by what they let through and offer.
    """
    expected = "each pod is ready"
    for trouble in seen.troubles[:_TROUBLES]:
        name, _colon, detail = trouble.partition(": ")
        why = "A part of the operator fails or is still starting. It need not be one that your nodes depend on."
        remedy = f"kubectl -n {seen.namespace} describe pod {name}"
        if concerns(detail):
            owner = f"what owns pod {name}"
            keys = Keys(
                f"the image of {owner}", f"imagePullPolicy of {owner}", "its imagePullSecrets", seen.namespace, remedy
            )
            cause, remedy = explain(detail, keys)
            why = f"{cause} {why}"
        yield Finding("operators.pods", f"Pod {name}", WARN, detail, expected, why, remedy)
    if not seen.troubles:
        yield ok("operators.pods", f"namespace {seen.namespace}", expected, expected)
    elif len(seen.troubles) > _TROUBLES:
        measured = f"{len(seen.troubles) - _TROUBLES} more are not ready"
        remedy = f"kubectl -n {seen.namespace} get pods"
        yield Finding(
            "operators.pods", f"namespace {seen.namespace}", WARN, measured, expected, "See the first ones.", remedy
        )


def _because(seen: OperatorFacts, name: str) -> str:
    """Describe the messages of the pods of a workload."""
    found = [trouble for trouble in seen.troubles if trouble.startswith(name)]
    return f" Its pods: {'; '.join(found[:3])}." if found else ""


def serving(cluster: ClusterIntent, seen: OperatorFacts, nodes: typing.Iterable[str]) -> tuple[str, ...]:
    """Return the reasons why the operator does not serve these nodes yet; empty when it does.

    Labels are left out: nothing that this stage waits for sets them.
    """
    labelled = [
        node
        for node in seen.nodes
        if node.name in set(nodes)
        and all(node.labels.get(key) == value for key, value in cluster.node_selector.items())
    ]
    findings = [
        *_check_installation(cluster, seen),
        _check_config(seen),
        *(_check_daemon(seen, node) for node in labelled),
    ]
    lines = [f"{finding.subject}: {finding.measured}" for finding in findings if finding.status == FAIL]
    return (*lines, *seen.troubles) if lines else ()


def _check_prefix(cluster: ClusterIntent, one: OperatorInstallation) -> Finding:
    subject, expected = "resource prefix", cluster.resource_prefix
    if one.resource_prefix == expected:
        return ok("operators.resource_prefix", subject, one.resource_prefix, expected)
    if not one.resource_prefix:
        why = "The operator's Deployment names no RESOURCE_PREFIX."
        return Finding(
            "operators.resource_prefix",
            subject,
            WARN,
            "not said",
            expected,
            why,
            "Compare with the resources in kubectl describe node.",
        )
    why = "Pods would ask for a resource that no node offers."
    return Finding(
        "operators.resource_prefix",
        subject,
        FAIL,
        one.resource_prefix,
        expected,
        why,
        f"Set rdma_cluster.resource_prefix to {one.resource_prefix}.",
    )


def _check_config(seen: OperatorFacts) -> Finding:
    subject, expected = "SriovOperatorConfig default", f"in namespace {seen.namespace}"
    if seen.namespace in seen.configs:
        return ok("operators.config", subject, ", ".join(seen.configs), expected)
    why = (
        "Without it the operator starts no config daemon. Only the name 'default' in the operator's own namespace"
        " counts."
    )
    remedy = "Create it, or set sriovOperatorConfig.deploy=true in the chart's values."
    return Finding("operators.config", subject, FAIL, ", ".join(seen.configs) or "absent", expected, why, remedy)


def _check_multus(seen: OperatorFacts, nodes: typing.Sequence[str]) -> Finding:
    """Check that it runs on each of our nodes; a DaemonSet's own numbers take in those of others."""
    expected = "ready on each node of the inventory, or at work on pods"
    if seen.multus:
        served = {node for work in seen.multus for node in work.nodes}
        missing = [name for name in nodes if name not in served]
        names = ", ".join(f"{work.namespace}/{work.name}" for work in seen.multus)
        measured = f"{names}: ready on {len(nodes) - len(missing)} of {len(nodes)} nodes"
        if not missing and served:
            return ok("operators.multus", "multus", measured, expected)
        if seen.errors and not served:
            why = f"Where its pods are could not be read: {'; '.join(seen.errors[:5])}."
            return Finding(
                "operators.multus", "multus", UNKNOWN, f"{names}: not known where", expected, why, "See operators.read."
            )
        why = "Where multus does not run, pods get no secondary interface, and say nothing of it."
        remedy = (
            f"kubectl -n {seen.multus[0].namespace} get pods -o wide; see the events of its pods on these nodes, and"
            " what keeps them away."
        )
        measured += f", not on: {', '.join(missing[:20])}" if missing else ", and on no other"
        return Finding("operators.multus", "multus", FAIL, measured, expected, why, remedy)
    if seen.multus_pods:
        return ok("operators.multus", "multus", f"{seen.multus_pods} pods carry its network-status", expected)
    why = (
        "There is no DaemonSet of that name and no pod with its annotation. It may be installed on the nodes"
        " themselves; the stage bandwidth will show."
    )
    return Finding(
        "operators.multus", "multus", WARN, "no evidence", expected, why, "Make sure that multus is the nodes' CNI."
    )


def _check_node(
    cluster: ClusterIntent,
    seen: OperatorFacts,
    name: str,
    known: typing.Mapping[str, ClusterNode],
    hcas: typing.Optional[ObservedHcas],
    sriov: bool,
) -> list[Finding]:
    """:param sriov: a fabric needs the SR-IOV network operator on it"""
    node = known.get(name)
    if node is None:
        why = "The cluster knows no node of this name."
        remedy = "Name the inventory's hosts as the cluster names its nodes (kubectl get nodes)."
        return [
            Finding(
                "operators.node",
                name,
                FAIL,
                f"nodes: {', '.join(sorted(known)) or 'none'}",
                "a node of this name",
                why,
                remedy,
            )
        ]
    findings = []
    if node.ready and not node.unschedulable:
        findings.append(ok("operators.node", name, "Ready", "Ready"))
    else:
        measured, why = (
            ("cordoned", "No pod may start on it.")
            if node.ready
            else ("NotReady", "Its kubelet does not report, or reports a problem.")
        )
        findings.append(
            Finding(
                "operators.node",
                name,
                FAIL,
                measured,
                "Ready",
                why,
                f"kubectl describe node {name}; kubectl uncordon {name} when it is fit.",
            )
        )
    return (
        [*findings, check_label(cluster, node, hcas, seen.discovery), _check_daemon(seen, node)] if sriov else findings
    )


def _check_daemon(seen: OperatorFacts, node: ClusterNode) -> Finding:
    daemon = seen.daemon
    if daemon is None:
        why = (
            "The operator has not made the DaemonSet sriov-network-config-daemon: it waits for a SriovOperatorConfig,"
            " or does not run."
        )
        measured, remedy = "no DaemonSet", "See the findings on the operator above."
        if seen.says:
            measured = f"no DaemonSet; the operator says: {seen.says}"
            why = (
                "The operator runs, and its sync of the SriovOperatorConfig fails, so it makes no DaemonSet"
                " sriov-network-config-daemon."
            )
            remedy = (
                f"Correct what it names, mostly a key of the SriovOperatorConfig; its log: kubectl -n {seen.namespace}"
                " logs deployment/<operator>."
            )
        return Finding("operators.daemon", node.name, FAIL, measured, "config daemon ready", why, remedy)
    expected = "config daemon ready, with a report of the node's functions"
    if node.name in daemon.nodes:
        # a policy that comes before the first report is refused by the webhook: no NIC is known yet
        if any(state.node == node.name and state.sync_status for state in seen.states):
            return ok("operators.daemon", node.name, expected, expected)
        why = (
            "The config daemon runs, and its SriovNetworkNodeState has no status yet: it has not looked at the node, or"
            " cannot write."
        )
        remedy = (
            f"kubectl -n {daemon.namespace} get sriovnetworknodestates {node.name} -o yaml, and the log of the config"
            " daemon on the node."
        )
        return Finding("operators.daemon", node.name, FAIL, "config daemon ready, no report", expected, why, remedy)
    why = (
        "The config daemon makes the virtual functions, and it is not ready on the node: configDaemonNodeSelector"
        " leaves the node out, or its pod fails."
    )
    why += _because(seen, daemon.name)
    remedy = f"kubectl -n {daemon.namespace} get pods -o wide; compare configDaemonNodeSelector with the node's labels."
    return Finding(
        "operators.daemon", node.name, FAIL, f"ready on: {', '.join(daemon.nodes) or 'no node'}", expected, why, remedy
    )
