# SPDX-License-Identifier: GPL-3.0-or-later

"""The check of stage network: the API server accepted the Kubernetes objects of the fabrics, and the operators created
the resources that these objects request. Check ids: ``network.*``.
"""

from __future__ import annotations

import typing

from ..._analysis.addresses import in_use as ipam
from ..._analysis.controllers.unread import count_unread
from ..._analysis.disruption import judge_kubelet, judge_plan, judge_rolls
from ..._model.base.phrases import describe_rerun, format_clause
from ..._model.intent.intent import Fabric, Intent
from ..._model.intent.profiles import attachment_kind, find_traits
from ..._model.kubernetes.apply import AppliedObject
from ..._model.run.findings import FAIL, SKIPPED, UNKNOWN, Finding
from .applied_objects import ATTACHMENT, POLICY, find_check, judge_applied_object, report_leftovers
from .facts import Facts, LintFacts
from .readiness import check_allocatable, check_ready
from .wished import ENDED_EARLY, find_unapplied


def check(intent: Intent, facts: Facts) -> tuple[Finding, ...]:
    """Return the findings of stage network: on addresses, the linter, the disruption of the nodes, the applied objects,
    the MachineConfigPools, each fabric on each node, and leftovers.
    """
    findings = [
        *ipam.check(intent, facts.nodes, facts.ipam, facts.hosts),
        *_check_lint_read(facts.lint),
        *facts.linted.findings,
    ]
    findings += judge_plan.check_plan(intent.cluster, facts.plan, facts.nodes)
    fabrics = {fabric.name for fabric in intent.fabrics}
    # what was refused counts, even where the intent has no such fabric any more
    findings += [_check_shared(item) for item in facts.applied if item.fabric not in fabrics]
    findings += find_unapplied(intent, facts.applied, {*facts.linted.held, *facts.unmade})
    findings += judge_rolls.check_rolls(facts.rolls, facts.roll_error)
    findings += (
        judge_rolls.report_not_rolled(facts.plan, facts.rolls) if not facts.unwritten and not facts.roll_error else ()
    )
    findings += (
        judge_kubelet.check_kubelet(facts.kubelet, facts.unwritten) if intent.cluster.host.kubelet is not None else ()
    )
    for fabric in intent.fabrics:
        findings += _check_objects(fabric, facts)
        nodes = facts.nodes or ("inventory",)
        findings += [
            check_allocatable(fabric, name, facts)
            if find_traits(fabric).functions
            else check_ready(fabric, name, facts)
            for name in nodes
        ]
    return (*findings, *report_leftovers(intent, facts))


def _check_lint_read(lint: typing.Optional[LintFacts]) -> list[Finding]:
    if lint is None:
        why = (
            "The run ended before it checked the objects against the nodes, so it is unknown whether the nodes"
            " can use them."
        )
        return [
            Finding(
                "network.lint_read",
                "cluster",
                UNKNOWN,
                "objects not checked",
                "objects checked against the nodes before they are applied",
                why,
                describe_rerun("network"),
            )
        ]
    if not lint.errors:
        return []
    why = (
        f"The API server did not return all kinds: {format_clause('; '.join(lint.errors[:5]))}. The objects were"
        " applied without a check against these kinds."
    )
    remedy = (
        "If the user of the kubeconfig has no right to read these kinds (kubectl auth can-i list KIND prints no), set"
        " the groups in docs/rbac/look.yml to groups of this user, and run kubectl apply -f docs/rbac/look.yml as an"
        " admin of the cluster, in the folder of the collection linerate.rdma. Otherwise correct the error in the"
        " message. Then run stage network again."
    )
    return [
        Finding(
            "network.lint_read",
            "cluster",
            UNKNOWN,
            count_unread(lint.errors, "kind"),
            "all kinds read that the check of the objects needs",
            why,
            remedy,
        )
    ]


def _check_shared(item: AppliedObject) -> Finding:
    check_id = "network.namespace_accepted" if item.kind == "Namespace" else "network.object_accepted"
    return judge_applied_object(item, check_id, f"{item.kind} {item.name}")


def _check_objects(fabric: Fabric, facts: Facts) -> list[Finding]:
    mine = [item for item in facts.applied if item.fabric == fabric.name]
    expected = [(POLICY, "SriovNetworkNodePolicy", "")] if find_traits(fabric).functions else []
    expected += [(ATTACHMENT, attachment_kind(fabric), fabric.network.name)] if attachment_kind(fabric) else []
    if fabric.name in facts.linted.held:
        why = f"No object of the fabric was applied: {facts.linted.held[fabric.name]}."
        remedy = (
            "Correct the causes in the findings network.lint_*, or cover the findings with a waiver, so that the API"
            " server decides about the objects. Then run stage network again."
        )
        return [
            Finding(
                check_id,
                fabric.name,
                SKIPPED,
                "not applied: the fabric has failed findings network.lint_*",
                "accepted by the API server",
                why,
                remedy,
            )
            for check_id, _kind, _name in expected
        ]
    findings = [
        judge_applied_object(item, find_check(item.kind), f"{fabric.name} {item.kind} {item.name}") for item in mine
    ]
    for check_id, what, name in expected:
        if not any(item.kind == what and name in ("", item.name) for item in mine):
            unmade = facts.unmade.get(fabric.name)
            why = (f"No object was made for the fabric: {format_clause(unmade)}." if unmade else "") or (
                f"The fabric requires an object of kind {what}. The run sent other objects, but not this object: the"
                " fabric was changed in the intent after the run started."
                if facts.applied
                else f"The fabric requires an object of kind {what}. The run ended before it sent any object to"
                " the API server."
            )
            findings.append(
                Finding(
                    check_id,
                    fabric.name,
                    FAIL,
                    f"no {what} {name}".rstrip(),
                    f"{what} accepted by the API server",
                    why,
                    "Correct the cause under 'why', then run stage network again."
                    if unmade
                    else "Run stage network again with the current intent."
                    if facts.applied
                    else ENDED_EARLY,
                )
            )
    return findings
