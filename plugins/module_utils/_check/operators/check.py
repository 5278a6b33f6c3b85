# SPDX-License-Identifier: GPL-3.0-or-later

"""The check of stage operators: the operators that the intent needs are installed and ready, and so are the nodes.
Check ids: ``operators.*``.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._analysis.controllers.unread import describe_unread
from ..._analysis.fleet import machines
from ..._model.base.phrases import count_of, format_clause
from ..._model.base.text import join_first
from ..._model.intent.intent import ClusterIntent, Intent
from ..._model.intent.mirror import MirrorFacts
from ..._model.intent.profiles import attachment_kind, find_traits, list_definitions
from ..._model.kubernetes.images.pull_rules import ImageFacts
from ..._model.kubernetes.objects import ClusterNode
from ..._model.kubernetes.rights import RightsFacts
from ..._model.node.hca import ObservedHcas
from ..._model.node.platform import ObservedPlatform
from ..._model.operators.olm import OlmFacts
from ..._model.operators.operators import OperatorsSeen
from ..._model.operators.sriov_operator import OperatorFacts
from ..._model.run.findings import FAIL, UNKNOWN, WARN, Finding, build_pass
from . import drivers, images, mirror, needed, olm
from . import rbac as rights
from .config_daemon import check_daemon, check_rollout
from .node_label import check_label
from .sriov_operator import check_config, check_installation, check_olm, check_pods

_OWNERS = {
    "k8s.cni.cncf.io": ("multus", "Install multus with its manifest deployments/multus-daemonset-thick.yml."),
    "whereabouts.cni.cncf.io": ("whereabouts", "Install whereabouts with its manifests in doc/crds."),
    "nv-ipam.nvidia.com": (
        "NVIDIA's network operator",
        "Install NVIDIA's network operator as the finding operators.needed describes. If it is installed, set"
        " nvIpam in the NicClusterPolicy.",
    ),
    "mellanox.com": (
        "NVIDIA's network operator",
        "Install NVIDIA's network operator as the finding operators.needed describes.",
    ),
}
#: owner of all other definitions, and how to install it
_SRIOV = (
    "the SR-IOV network operator",
    "Install the SR-IOV network operator as the finding operators.needed describes.",
)
#: annotation of a pod whose interfaces multus created
_STATUS = "k8s.v1.cni.cncf.io/network-status"


@dataclasses.dataclass(frozen=True)
class Facts:
    """The facts by which stage operators is judged, besides the intent.

    :ivar nodes: names of the nodes that must take part
    :ivar operators: answer of sriov_operator_info: the SR-IOV operator and its objects; None if it did not run
    :ivar rights: answer of access_info: missing rights on the API server; None if it did not run
    :ivar images: mirror rules and registry lists of the cluster, and images of the run, as sriov_operator_info reports
        them; None if they were not read
    :ivar mirror: answers of registries about all images of a run (images_info); None if they were not read
    :ivar olm: answer of the module olm; None if it installs nothing
    :ivar needed: answer of operators_info: the installed operators among those that the intent and the job need; None
        if it did not run
    :ivar hcas: HCAs of each node (node_info, stage discover), which explain an absent label; may be empty
    :ivar platforms: kernel and driver state of each node (node_info), which shows whether its kernel loads an unsigned
        driver; may be empty
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
    """Return the findings of stage operators: on the cluster, the images, the operators, the driver containers and the
    nodes. If the API server was not queried, return a single finding of status unknown.
    """
    seen, cluster = facts.operators, intent.cluster
    if seen is None:
        why = (
            "The module sriov_operator_info, which reads the objects of the operators from the API server,"
            " returned no result, so their state is unknown."
        )
        return (
            Finding(
                "operators.read",
                "cluster",
                UNKNOWN,
                "objects not read",
                "the objects of the operators read from the API server",
                why,
                "Run kubectl cluster-info with the kubeconfig of the run. If it fails, correct the variable"
                " rdma_kubeconfig or the API server. Then run stage operators again.",
            ),
        )
    sriov = any(find_traits(fabric).functions for fabric in intent.fabrics)
    findings = [
        *rights.check(facts.rights),
        _check_read_errors(seen),
        *needed.check(intent, facts.needed, facts.nodes),
        *_check_definitions(intent, seen),
    ]
    findings += [*images.check(intent, facts.images), *mirror.check(intent, facts.mirror), *olm.check(facts.olm)]
    findings += drivers.check(
        intent, facts.needed, facts.platforms, facts.hcas, bool(facts.images and facts.images.rules)
    )
    findings += (
        [
            *check_installation(cluster, seen),
            *check_olm(seen),
            check_config(seen),
            *check_rollout(seen, facts.nodes),
            *check_pods(seen),
        ]
        if sriov
        else []
    )
    findings += [_check_multus(seen, facts.nodes)] if any(map(attachment_kind, intent.fabrics)) else []
    if not facts.nodes:
        why = "The group rdma_nodes of the inventory is empty, so no node was checked."
        findings.append(
            Finding(
                "operators.node",
                "inventory",
                UNKNOWN,
                "0 nodes",
                "at least 1 node",
                why,
                "Put the nodes into the group rdma_nodes of the inventory, then run stage operators again.",
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


def _check_read_errors(seen: OperatorFacts) -> Finding:
    if not seen.errors:
        return build_pass("operators.read", "cluster", "all objects read", "all objects read")
    rights = (
        "As an admin of the cluster, give the user of the kubeconfig the rights in docs/rbac/look.yml: kubectl apply -f"
        " docs/rbac/look.yml, in the folder of the collection linerate.rdma."
    )
    return describe_unread("operators.read", "cluster", seen.errors, rights)


def _check_definitions(intent: Intent, seen: OperatorFacts) -> list[Finding]:
    findings = []
    for name in sorted({name for fabric in intent.fabrics for name in list_definitions(fabric)}):
        if name in seen.crds:
            findings.append(build_pass("operators.definition", name, "established", "established"))
        else:
            owner, install = _OWNERS.get(name.partition(".")[2], _SRIOV)
            why = (
                f"The API server does not serve this kind, so it rejects objects of the kind. The installation of"
                f" {owner} creates the definition."
            )
            remedy = (
                f"Run kubectl get crd {name} -o yaml. If it exists, correct the cause in its conditions."
                f" If it does not exist: {install[0].lower()}{install[1:]} Then run stage operators again."
            )
            measured = "no established CustomResourceDefinition"
            findings.append(
                Finding(
                    "operators.definition", name, FAIL, measured, "an established CustomResourceDefinition", why, remedy
                )
            )
    return findings


def _check_multus(seen: OperatorFacts, nodes: typing.Sequence[str]) -> Finding:
    """Check that multus runs on each node of the inventory. The counts in the status of its DaemonSet are not used,
    since they include other nodes.

    :param seen: result of the module sriov_operator_info: the operator and its objects
    """
    expected = "a ready pod of multus on each node of the inventory"
    if seen.multus:
        served = {node for work in seen.multus for node in work.nodes}
        missing = [name for name in nodes if name not in served]
        names = ", ".join(f"{work.namespace}/{work.name}" for work in seen.multus)
        measured = f"{names}: ready on {len(nodes) - len(missing)} of {count_of(len(nodes), 'node')}"
        if not missing and served:
            return build_pass("operators.multus", "multus", measured, expected)
        if seen.errors and not served:
            why = (
                f"The API server did not return the pods of multus: {format_clause('; '.join(seen.errors[:5]))}. So"
                " it is unknown on which nodes they run."
            )
            return Finding(
                "operators.multus",
                "multus",
                UNKNOWN,
                f"{names}: nodes unknown",
                expected,
                why,
                "Correct the causes in the finding operators.read, then run stage operators again.",
            )
        why = (
            "No pod of multus is ready on the nodes under 'measured'. On a node without multus, pods start without"
            " an interface on the fabric, and without an error."
        )
        remedy = (
            f"List the pods of multus with their nodes: kubectl -n {seen.multus[0].namespace} get pods -o wide. Run"
            f" kubectl -n {seen.multus[0].namespace} describe pod POD for those that are not ready, and correct the"
            " cause in their events. Then run stage operators again."
        )
        measured += f", not on: {join_first(missing, 20)}" if missing else ", and on no other node"
        return Finding("operators.multus", "multus", FAIL, measured, expected, why, remedy)
    if seen.multus_pods:
        return build_pass(
            "operators.multus",
            "multus",
            f"{count_of(seen.multus_pods, 'pod')} with the annotation {_STATUS}, which multus writes",
            f"{expected}, or pods with the annotation {_STATUS}",
        )
    why = (
        "Without multus, pods get no interface on the fabrics. multus can also be installed directly on the nodes,"
        " without a DaemonSet."
    )
    return Finding(
        "operators.multus",
        "multus",
        WARN,
        f"no DaemonSet of multus, no pod with the annotation {_STATUS}",
        f"{expected}, or pods with the annotation {_STATUS}",
        why,
        "Run ls /etc/cni/net.d on a node. If no file name contains multus, install multus with its manifest"
        " deployments/multus-daemonset-thick.yml. Then run stage operators again.",
    )


def _check_node(
    cluster: ClusterIntent,
    seen: OperatorFacts,
    name: str,
    known: typing.Mapping[str, ClusterNode],
    hcas: typing.Optional[ObservedHcas],
    sriov: bool,
) -> list[Finding]:
    """Check that the cluster has the node, that the node has the labels of ``node_selector``, and that the pod of the
    operator's config daemon on it is ready.

    :param cluster: settings of the intent that all fabrics share
    :param seen: result of the module sriov_operator_info: the operator and its objects
    :param name: name of the node
    :param known: nodes of the cluster, by name
    :param hcas: HCAs that the node itself reports; None if it was not queried
    :param sriov: whether a fabric needs the SR-IOV network operator on the node
    """
    node = known.get(name)
    if node is None:
        why = (
            "The cluster has no Node with the name that the inventory uses for this machine, so the run cannot"
            " check it."
        )
        remedy = (
            f"If kubectl get nodes lists the machine under another name, change {name} in the inventory to that name."
            " If it does not list the machine, join the machine to the cluster or remove it from the group rdma_nodes."
            " Then run stage operators again."
        )
        return [
            Finding(
                "operators.node",
                name,
                FAIL,
                f"no Node {name} in the cluster; its Nodes: {join_first(sorted(filter(None, known))) or 'none'}",
                f"Node {name} in the cluster",
                why,
                remedy,
            )
        ]
    findings = []
    if node.ready and not node.unschedulable:
        findings.append(build_pass("operators.node", name, "Ready", "Ready, not cordoned"))
    else:
        measured, why = (
            (
                "cordoned",
                "No new pod starts on a cordoned node, so the run cannot measure the node. An admin, a drain or the"
                " machine config operator cordoned it.",
            )
            if node.ready
            else (
                "NotReady",
                "No pod starts on a node that is NotReady. Its condition Ready contains the reason: False with the"
                " message of the kubelet, or Unknown if the kubelet does not report.",
            )
        )
        steps = f"Run kubectl describe node {name}, and correct the cause in its condition Ready."
        if node.ready:
            steps = f"If no drain or update of the node is in progress, run kubectl uncordon {name}."
        elif node.unschedulable:
            steps += f" When the kubelet reports Ready, run kubectl uncordon {name}."
        else:
            steps += (
                f" If the condition is Unknown, run systemctl status kubelet on {name}, and correct the error"
                " that it shows."
            )
        findings.append(
            Finding(
                "operators.node",
                name,
                FAIL,
                measured,
                "Ready, not cordoned",
                why,
                f"{steps} Then run stage operators again.",
            )
        )
    return (
        [*findings, check_label(cluster, node, hcas, seen.discovery), check_daemon(seen, node)] if sriov else findings
    )
