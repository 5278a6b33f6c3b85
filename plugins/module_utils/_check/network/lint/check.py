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

from ...._model.intent.intent import Fabric
from ...._model.intent.profiles import find_traits, is_infiniband, isolates_rdma
from ...._model.operators.sriov_operator import Policy
from ...._model.run.findings import FAIL, UNKNOWN, WARN, Finding, Waiver, judge, ok
from . import plain_network
from .policy_context import FUNCTIONS, LINK, OVERLAP, POLICY, RDMA, SELECT, ClusterBefore, Objection
from .policy_selection import explain_not_selected, select_functions
from .sriov_policy import find_objections

#: what a fabric that breaks no rule is told
_RULES = {
    POLICY: "a policy that the operator can read, for NICs that it supports",
    FUNCTIONS: "no more virtual functions than each physical one has",
    OVERLAP: "functions that no other policy has",
    LINK: "link layer and MTU that the ports can do",
    RDMA: "RDMA devices for the pods, in the mode that the network's plugins need",
}


def lint_all(
    fabrics: typing.Iterable[Fabric],
    policies: typing.Sequence[tuple[str, Policy]],
    world: ClusterBefore,
    nodes: typing.Sequence[str],
) -> dict[str, tuple[Finding, ...]]:
    """Return the findings of the linter on each fabric, by its name. A fabric with virtual functions has no findings if
    it has no policies.

    :param policies: all policies that would be applied, each with the name of its fabric
    :param world: state of the cluster before the policies are applied
    :param nodes: names of the nodes that must take part
    """
    others = dataclasses.replace(
        world, policies={**world.policies, **{policy.name: policy for _fabric, policy in policies}}
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
    fabric: Fabric, policies: typing.Sequence[Policy], world: ClusterBefore, nodes: typing.Sequence[str]
) -> tuple[Finding, ...]:
    """Return the findings on a fabric: one for each node on the physical functions that the policies select, one for
    each objection (violated rule), and one for each rule without an objection. A fabric without policies has no
    findings.

    :param policies: policies of the fabric, as they would be applied
    :param world: state of the cluster, with the policies of the other fabrics
    :param nodes: names of the nodes that must take part
    """
    if not policies:
        return ()
    found = [_make_objection_finding(fabric, item) for policy in policies for item in find_objections(policy, world)]
    modes = {name: world.rdma_mode or world.states[name].rdma_mode for name in nodes if name in world.states}
    found += [_check_rdma_mode(fabric, name, mode) for name, mode in modes.items() if _wrong_mode(fabric, mode)]
    broken = {finding.check for finding in found}
    rest = [_report_unbroken(fabric, check, world, nodes) for check in _RULES if check not in broken]
    mine = {node.name: policy for policy in policies for node in world.nodes_selected_by(policy)}
    return (*(_check_selects(fabric, mine.get(name), policies[0], name, world) for name in nodes), *found, *rest)


def read_held(
    findings: typing.Mapping[str, typing.Sequence[Finding]], waivers: typing.Sequence[Waiver]
) -> dict[str, str]:
    """Return the fabrics whose objects must not be applied, each with the reason: a failure that no waiver covers.

    :param findings: findings of the linter, by fabric
    """
    failed = {
        name: [item for item in judge(mine, waivers).closing() if item.status == FAIL]
        for name, mine in findings.items()
    }
    return {
        name: f"{len(items)} findings of the linter, the first: {items[0].subject}: {items[0].measured}"
        for name, items in failed.items()
        if items
    }


def remaining(
    objects: typing.Sequence[dict[str, typing.Any]], stopped: typing.Container[str]
) -> list[dict[str, typing.Any]]:
    """Return the objects to apply: those of fabrics that are not held back. Objects that fabrics share are kept only if
    an object of at least one fabric is kept.

    :param objects: all objects, each with the name of its fabric; empty for a shared one
    :param stopped: names of the fabrics that are held back
    """
    kept = [item for item in objects if item["fabric"] not in stopped]
    return kept if any(item["fabric"] for item in kept) else []


def _make_objection_finding(fabric: Fabric, item: Objection) -> Finding:
    subject = " ".join(part for part in (fabric.name, item.node, item.function) if part)
    outcome = {
        "webhook": "The operator's webhook refuses it. ",
        "node": "The API server would take it, and it fails on the node. ",
        "nowhere": "Nothing stops it. ",
    }[item.where]
    status: typing.Literal["fail", "warn"] = WARN if item.where == "nowhere" else FAIL
    return Finding(item.check, subject, status, item.measured, item.expected, outcome + item.why, item.remedy)


def _report_unbroken(fabric: Fabric, check: str, world: ClusterBefore, nodes: typing.Sequence[str]) -> Finding:
    """Return the finding on a rule that no policy of the fabric violates. It passes for the nodes whose interfaces the
    operator has reported. Its status is unknown if the rule needs them and no node has reported any.

    :param check: id of the rule's findings
    """
    reported = sum(bool(world.states[name].interfaces) for name in nodes if name in world.states)
    if check == POLICY:
        return ok(
            check,
            fabric.name,
            "nothing speaks against it" if world.supported is not None else "supported-nic-ids is not known",
            _RULES[check],
        )
    if reported:
        return ok(check, fabric.name, f"holds on {reported} of {len(nodes)} nodes", _RULES[check])
    why = "The operator has not reported the interfaces of any node, so there is nothing to judge by."
    return Finding(
        check,
        fabric.name,
        UNKNOWN,
        f"0 of {len(nodes)} nodes reported",
        _RULES[check],
        why,
        "See the stage operators: the config daemon must run.",
    )


def _check_selects(
    fabric: Fabric, policy: typing.Optional[Policy], example: Policy, name: str, world: ClusterBefore
) -> Finding:
    """Return the finding on the number of physical functions that the fabric selects on a node.

    :param policy: policy of the fabric that selects the node; None if there is none. A node has at most one
    :param example: any policy of the fabric, to name the labels that the node lacks
    :param name: name of the node
    """
    subject, count = f"{fabric.name} {name}", fabric.select.hcas_per_node
    expected = f"{count} physical functions"
    node, state = world.nodes.get(name), world.states.get(name)
    if node is None:
        why = "The cluster knows no node of this name."
        return Finding(
            SELECT,
            subject,
            UNKNOWN,
            "no such node",
            expected,
            why,
            "Name the inventory's hosts as the cluster names its nodes.",
        )
    if policy is None:
        missing = sorted(
            f"{key}={value}" for key, value in example.node_selector.items() if node.labels.get(key) != value
        )
        why = f"No policy of the fabric takes the node: it does not carry {', '.join(missing)}."
        return Finding(
            SELECT,
            subject,
            FAIL,
            "no policy",
            expected,
            why,
            "See the stage operators: it says why the label is absent.",
        )
    if state is None or not state.interfaces:
        why = (
            "The operator's config daemon has not reported the node's interfaces, so nobody can tell what would be"
            " selected."
        )
        return Finding(
            SELECT,
            subject,
            UNKNOWN,
            "no report of the node",
            expected,
            why,
            "See the stage operators: the config daemon must run on the node.",
        )
    chosen = select_functions(policy, state, world)
    measured = (
        ", ".join(
            f"{interface.name} at {interface.address}" for interface in sorted(chosen, key=lambda item: item.address)
        )
        or "none"
    )
    if len(chosen) == count:
        return ok(SELECT, subject, measured, expected)
    if len(chosen) > count:
        why = "The policy would also turn functions into virtual ones that the intent does not count."
        return Finding(
            SELECT,
            subject,
            FAIL,
            measured,
            expected,
            why,
            "Name the right ones in select.pci or select.netdev, or correct hcas_per_node.",
        )
    why = (
        f"Of the {len(state.interfaces)} interfaces that the operator reports:"
        f" {explain_not_selected(policy, state, world)}."
    )
    return Finding(
        SELECT,
        subject,
        FAIL,
        measured,
        expected,
        why,
        "Correct select of the fabric, or make the operator see the NIC as named beside 'why'.",
    )


def _wrong_mode(fabric: Fabric, mode: str) -> bool:
    """Return whether the RDMA mode of a node contradicts the fabric: a network whose CNI plugins move RDMA devices into
    pods needs the mode exclusive, any other RDMA network the mode shared. An unknown mode does not contradict.
    """
    if not (fabric.rdma or isolates_rdma(fabric)):
        return False
    return mode == ("shared" if isolates_rdma(fabric) else "exclusive")


def _check_rdma_mode(fabric: Fabric, name: str, mode: str) -> Finding:
    status: typing.Literal["fail", "warn"] = FAIL
    if isolates_rdma(fabric):
        why = (
            "The plugin rdma in meta_plugins moves RDMA devices into pods, and refuses a node whose devices are shared:"
            " pods would not start."
        )
        remedy = (
            "Set the nodes' RDMA mode to exclusive (rdma_cluster.node_pool.rdma_mode; it reboots them), or remove the"
            " plugin."
        )
    else:
        why = (
            "In the exclusive mode only the plugin rdma brings RDMA devices into pods, and the network names none: pods"
            " would find no device."
        )
        if is_infiniband(fabric):
            # releases of ib-sriov can do it themselves (rdmaIsolation), which the operator's SriovIBNetwork does not
            # ask for
            status, why = WARN, why + " Some releases of ib-sriov bring them as well."
        remedy = "Add {type: rdma} to network.meta_plugins, or set the nodes' RDMA mode to shared (it reboots them)."
    wanted = "exclusive" if isolates_rdma(fabric) else "shared"
    return Finding(RDMA, f"{fabric.name} {name}", status, f"mode {mode}", f"mode {wanted}", why, remedy)
