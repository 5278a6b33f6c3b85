# SPDX-License-Identifier: GPL-3.0-or-later

"""The linter of stage network. It judges the policies of each fabric before they are applied, and decides which fabrics
are held back. Check ids: ``network.lint_*``.

A fabric with a failure that no waiver covers is not applied at all, so that an invalid intent changes nothing. An
unknown result, such as a node without a report yet, does not hold a fabric back, since the webhook of the API server
judges the objects after the linter.
"""

from __future__ import annotations

import dataclasses
import typing

from ...._model.base.phrases import count_of
from ...._model.intent.intent import Fabric
from ...._model.intent.profiles import find_traits, is_infiniband, isolates_rdma
from ...._model.operators.sriov_operator import Policy
from ...._model.run.findings import FAIL, UNKNOWN, WARN, Finding, Waiver, build_pass, judge
from . import plain_network
from .policy_context import FUNCTIONS, LINK, OVERLAP, POLICY, RDMA, SELECT, ClusterBefore, Objection
from .policy_selection import explain_not_selected, select_functions
from .sriov_policy import find_objections

#: what a fabric that breaks no rule is told
_RULES = {
    POLICY: "a policy that the operator's webhook accepts, for NICs that the operator supports",
    FUNCTIONS: "at most as many virtual functions as each physical function supports",
    OVERLAP: "virtual functions that no other policy requests",
    LINK: "a link layer and an MTU that the ports support",
    RDMA: "RDMA devices for the pods, and the RDMA mode that the CNI plugins of the network need",
}


def lint_all(
    fabrics: typing.Iterable[Fabric],
    policies: typing.Sequence[tuple[str, Policy]],
    cluster_before: ClusterBefore,
    nodes: typing.Sequence[str],
) -> dict[str, tuple[Finding, ...]]:
    """Return the findings of the linter on each fabric, by its name. A fabric with virtual functions has no findings if
    it has no policies.

    :param policies: all policies that would be applied, each with the name of its fabric
    :param cluster_before: state of the cluster before the policies are applied
    :param nodes: names of the nodes that must take part
    """
    others = dataclasses.replace(
        cluster_before, policies={**cluster_before.policies, **{policy.name: policy for _fabric, policy in policies}}
    )
    return {
        fabric.name: (
            lint(fabric, [policy for name, policy in policies if name == fabric.name], others, nodes)
            if find_traits(fabric).functions
            else plain_network.lint(fabric, others, nodes)
        )
        for fabric in fabrics
    }


def lint(
    fabric: Fabric, policies: typing.Sequence[Policy], cluster_before: ClusterBefore, nodes: typing.Sequence[str]
) -> tuple[Finding, ...]:
    """Return the findings on a fabric: one for each node on the physical functions that the policies select, one for
    each objection (violated rule), and one for each rule without an objection. A fabric without policies has no
    findings.

    :param policies: policies of the fabric, as they would be applied
    :param cluster_before: state of the cluster, with the policies of the other fabrics
    :param nodes: names of the nodes that must take part
    """
    if not policies:
        return ()
    found = [
        _make_objection_finding(fabric, item) for policy in policies for item in find_objections(policy, cluster_before)
    ]
    modes = {
        name: cluster_before.rdma_mode or cluster_before.states[name].rdma_mode
        for name in nodes
        if name in cluster_before.states
    }
    found += [_check_rdma_mode(fabric, name, mode) for name, mode in modes.items() if _wrong_mode(fabric, mode)]
    broken = {finding.check for finding in found}
    rest = [_report_unbroken(fabric, check, cluster_before, nodes) for check in _RULES if check not in broken]
    mine = {node.name: policy for policy in policies for node in cluster_before.nodes_selected_by(policy)}
    return (
        *(_check_selects(fabric, mine.get(name), policies[0], name, cluster_before) for name in nodes),
        *found,
        *rest,
    )


def read_held(
    findings: typing.Mapping[str, typing.Sequence[Finding]], waivers: typing.Sequence[Waiver]
) -> dict[str, str]:
    """Return the fabrics whose objects must not be applied, by name, each with the reason: a failure that no waiver
    covers.

    :param findings: findings of the linter, by fabric
    :param waivers: waivers of the intent
    """
    failed = {
        name: [item for item in judge(mine, waivers).closing() if item.status == FAIL]
        for name, mine in findings.items()
    }
    return {
        name: f"{count_of(len(items), 'finding')} network.lint_* failed, the first on {items[0].subject}:"
        f" {items[0].measured}"
        for name, items in failed.items()
        if items
    }


def select_remaining(
    objects: typing.Sequence[dict[str, typing.Any]], stopped: typing.Container[str]
) -> list[dict[str, typing.Any]]:
    """Return the objects to apply: those of fabrics that are not held back.

    Objects that fabrics share are kept only if an object of at least one fabric is kept.

    :param objects: all objects, each with the name of its fabric under the key ``fabric``; empty for a shared object
    :param stopped: names of the fabrics that are held back
    """
    kept = [item for item in objects if item["fabric"] not in stopped]
    return kept if any(item["fabric"] for item in kept) else []


def _make_objection_finding(fabric: Fabric, item: Objection) -> Finding:
    subject = " ".join(part for part in (fabric.name, item.node, item.function) if part)
    outcome = {
        "webhook": "The operator's webhook rejects the policy with the message under 'measured'. ",
        "node": "The API server would accept the policy, but the operator would not configure the node by it. ",
        "effect": "The operator accepts the policy. ",
        "nowhere": "The operator accepts the policy. ",
    }[item.where]
    status: typing.Literal["fail", "warn"] = WARN if item.where == "nowhere" else FAIL
    return Finding(item.check, subject, status, item.measured, item.expected, outcome + item.why, item.remedy)


def _report_unbroken(fabric: Fabric, check: str, cluster_before: ClusterBefore, nodes: typing.Sequence[str]) -> Finding:
    """Return the finding on a rule that no policy of the fabric violates. It passes for the nodes whose interfaces the
    operator has reported. Its status is unknown if the rule needs them and no node has reported any.

    :param check: id of the rule's findings
    :param cluster_before: state of the cluster before the objects are applied
    """
    reported = sum(bool(cluster_before.states[name].interfaces) for name in nodes if name in cluster_before.states)
    if check == POLICY:
        return build_pass(
            check,
            fabric.name,
            "no rule violated"
            if cluster_before.supported is not None
            else "no rule violated; content of supported-nic-ids unknown",
            _RULES[check],
        )
    if reported:
        return build_pass(
            check, fabric.name, f"satisfied on {reported} of {count_of(len(nodes), 'node')}", _RULES[check]
        )
    why = "The operator has not reported the interfaces of any node, so this rule is unchecked."
    return Finding(
        check,
        fabric.name,
        UNKNOWN,
        f"interfaces reported for 0 of {count_of(len(nodes), 'node')}",
        _RULES[check],
        why,
        "Follow the remedies of the findings operators.daemon, so that the config daemon reports the interfaces. Then"
        " run stage network again.",
    )


def _check_selects(
    fabric: Fabric, policy: typing.Optional[Policy], example: Policy, name: str, cluster_before: ClusterBefore
) -> Finding:
    """Compare the number of physical functions that a fabric selects on a node with ``hcas_per_node`` of the intent.

    :param policy: policy of the fabric that selects the node; None if no policy does. A node has at most one
    :param example: any policy of the fabric, to name the labels that the node lacks
    :param name: name of the node
    :param cluster_before: state of the cluster before the objects are applied
    """
    subject, count = f"{fabric.name} {name}", fabric.select.hcas_per_node
    expected = count_of(count, "physical function")
    node, state = cluster_before.nodes.get(name), cluster_before.states.get(name)
    if node is None:
        why = "The inventory uses another name than the cluster, or the node has left the cluster."
        return Finding(
            SELECT,
            subject,
            UNKNOWN,
            "node not in the cluster",
            expected,
            why,
            f"Run kubectl get nodes. If it lists the machine under another name, change {name} in the inventory to that"
            " name. If it does not list the machine, join the machine to the cluster, or remove it from the group"
            " rdma_nodes. Then run stage network again.",
        )
    if policy is None:
        missing = sorted(
            f"{key}={value}" for key, value in example.node_selector.items() if node.labels.get(key) != value
        )
        why = f"No policy of the fabric selects the node, because the node does not carry {', '.join(missing)}."
        remedy = f"Follow the remedy of the finding operators.label of {name}, then run stage network again."
        if all(label.startswith("kubernetes.io/hostname=") for label in missing):
            why = (
                "Each policy of the fabric is for a single node, and no policy is for this node, because the PCI"
                " addresses of its HCAs on the fabric are unknown."
            )
            remedy = (
                f"Follow the remedies of the findings of stages discover and fabric on {name}, then run stages"
                " discover, fabric and network again. If the HCAs of all nodes have the same addresses, you can list"
                f" them in select.pci of {fabric.name} instead."
            )
        return Finding(SELECT, subject, FAIL, "0 physical functions: no policy selects the node", expected, why, remedy)
    if state is None or not state.interfaces:
        why = (
            "The operator's config daemon has not reported the interfaces of the node, so the physical functions that"
            " the policy selects are unknown."
        )
        return Finding(
            SELECT,
            subject,
            UNKNOWN,
            "interfaces of the node not reported",
            expected,
            why,
            f"Follow the remedy of the finding operators.daemon of {name}, so that the config daemon reports the"
            " interfaces. Then run stage network again.",
        )
    chosen = select_functions(policy, state, cluster_before)
    measured = (
        ", ".join(
            f"{interface.name} at {interface.address}" for interface in sorted(chosen, key=lambda item: item.address)
        )
        or "0 physical functions"
    )
    if len(chosen) == count:
        return build_pass(SELECT, subject, measured, expected)
    if len(chosen) > count:
        why = "The policy would also create virtual functions on physical functions that the intent does not count."
        return Finding(
            SELECT,
            subject,
            FAIL,
            measured,
            expected,
            why,
            "Name only the intended physical functions in select.pci or select.netdev, or correct hcas_per_node. Then"
            " run stage network again.",
        )
    why = (
        f"The operator reports {count_of(len(state.interfaces), 'interface')} of the node, and the policy"
        " selects too few of them:"
        f" {explain_not_selected(policy, state, cluster_before)}."
    )
    return Finding(
        SELECT,
        subject,
        FAIL,
        measured,
        expected,
        why,
        f"Correct select of fabric {fabric.name}, or correct the reason under 'why' for which the policy does not"
        " select the NIC. Then run stage network again.",
    )


def _wrong_mode(fabric: Fabric, mode: str) -> bool:
    """Return whether the RDMA mode of a node contradicts the fabric: a network whose CNI plugins move RDMA devices into
    pods needs the mode exclusive, any other RDMA network the mode shared. An unknown mode does not contradict.

    :param mode: RDMA mode: shared, exclusive, or empty if unknown
    """
    if not (fabric.rdma or isolates_rdma(fabric)):
        return False
    return mode == ("shared" if isolates_rdma(fabric) else "exclusive")


def _check_rdma_mode(fabric: Fabric, name: str, mode: str) -> Finding:
    status: typing.Literal["fail", "warn"] = FAIL
    if isolates_rdma(fabric):
        why = (
            "The CNI plugin rdma in network.meta_plugins moves RDMA devices into pods. It fails on a node in RDMA mode"
            " shared, so pods would not start."
        )
        remedy = (
            "Set rdma_cluster.node_pool.rdma_mode to exclusive (this reboots the nodes), or remove the plugin rdma from"
            " network.meta_plugins. Then run stage network again."
        )
    else:
        why = (
            "In RDMA mode exclusive, only the CNI plugin rdma moves RDMA devices into pods. network.meta_plugins does"
            " not contain this plugin, so pods would find no RDMA device."
        )
        if is_infiniband(fabric):
            # releases of ib-sriov can do it themselves (rdmaIsolation), which the operator's SriovIBNetwork does not
            # ask for
            status, why = WARN, why + " Some releases of the CNI plugin ib-sriov also move RDMA devices into pods."
        remedy = (
            "Add {type: rdma} to network.meta_plugins, or set rdma_cluster.node_pool.rdma_mode to shared (this reboots"
            " the nodes). Then run stage network again."
        )
    wanted = "exclusive" if isolates_rdma(fabric) else "shared"
    return Finding(RDMA, f"{fabric.name} {name}", status, f"RDMA mode {mode}", f"RDMA mode {wanted}", why, remedy)
