# SPDX-License-Identifier: GPL-3.0-or-later

"""Report the outcome of the roll that brings nodes to the desired settings. Check id: ``platform.roll``."""

from __future__ import annotations

import collections
import dataclasses
import typing

from ..._model.base.phrases import count_of, format_clause
from ..._model.base.text import join_first
from ..._model.kubernetes.node_roll import NodeOutcome, RollPlan
from ..._model.node.firmware import BY_ADDRESS
from ..._model.run.findings import FAIL, UNKNOWN, WARN, Finding, build_pass

_CHECK = "platform.roll"
#: expected value for the cluster, and for a node
_EXPECTED, _EXPECTED_OF_NODE = (
    "settings of the intent active on all nodes",
    "settings of the intent active on the node",
)
_CONTINUE = "Run stage platform again. It continues with the node at which it stopped."
#: measured value by the state of a node
_STATES = {
    "failed": "change of the settings failed",
    "blocked": "change of the settings blocked",
    "left": "settings not changed: the run ended before it reached this node",
    "unknown": "state of the node unknown",
    "unproven": "settings not read again after the reset",
}
#: cause by the state of a node for which the run stored no reason
_WITHOUT_REASON = {
    "failed": "The run stored no reason for the failure",
    "blocked": (
        "The node could not be drained, or a condition for its change was not met. The run stored no further reason"
    ),
    "left": "The run stored no reason for its end",
    "unproven": "The run ended after the reset, before it compared the settings with the desired ones",
}
_AGAIN = (
    "Run the playbook with -v to see the whole error of the task node_roll, and correct its cause. Then run stage"
    " platform again, which continues with the node at which it stopped."
)


def check(
    planned: typing.Optional[RollPlan], outcomes: typing.Optional[tuple[NodeOutcome, ...]], error: str
) -> typing.Iterator[Finding]:
    """Yield a finding for each node of the roll. Yield a single finding if the roll was refused, has no nodes or has no
    complete result. Yield nothing if no roll was requested.

    :param planned: plan of the roll; None if no roll was requested
    :param outcomes: outcome of each node; None if they are not known
    :param error: reason for which the outcomes are not known; empty if they are
    """
    if error:
        yield Finding(
            _CHECK,
            "cluster",
            UNKNOWN,
            "changes of the nodes not finished",
            _EXPECTED,
            f"The change of the nodes ended early: {format_clause(error)}.",
            _AGAIN,
        )
        return
    if planned is None and outcomes is None:
        return
    if planned is None or outcomes is None:
        yield Finding(
            _CHECK,
            "cluster",
            UNKNOWN,
            "result incomplete",
            _EXPECTED,
            "The run stored results of changes, but not the list of nodes that it was to change."
            if planned is None
            else "The run stored the list of nodes that it was to change, but no results: it ended before the first"
            " one.",
            _CONTINUE,
        )
        return
    if planned.refusal:
        yield Finding(
            _CHECK,
            "cluster",
            FAIL,
            "changes of the nodes refused",
            _EXPECTED,
            f"No node was changed: {format_clause(planned.refusal)}.",
            "Follow the instruction under 'why', then run stage platform again.",
        )
        return
    told: dict[str, list[NodeOutcome]] = {step.node: [] for step in planned.steps}
    for outcome in outcomes:
        told.setdefault(outcome.node, []).append(outcome)
    steps = collections.Counter(step.node for step in planned.steps)
    missing = {step.node: step.differences for step in planned.steps}
    for node, of_node in told.items():
        finding = _check_one(node, steps[node], of_node)
        names = [f"{item.source} {item.key} {item.wanted}" for item in missing.get(node, ())]
        if finding.expected == _EXPECTED_OF_NODE and finding.status in (FAIL, UNKNOWN) and names:
            finding = dataclasses.replace(finding, expected=f"{_EXPECTED_OF_NODE}: {join_first(names, 4)}")
        yield finding
    yield from _check_templates(planned)
    if not told:
        yield build_pass(_CHECK, "cluster", "no node needs a change", _EXPECTED)


def _check_templates(planned: RollPlan) -> typing.Iterator[Finding]:
    """Warn about templates for NVIDIA's operator that do not select HCAs by serial number."""
    nodes = [step.node for step in planned.steps if any(BY_ADDRESS in note for note in step.notes)]
    if nodes:
        why = (
            "A NicConfigurationTemplate of linerate.rdma stays in the cluster and selects HCAs by model and PCI"
            f" address only, because the NicDevices of {join_first(nodes, 4)} report no serial number. NVIDIA's NIC"
            " configuration operator will also drain and reboot a node of this kind that joins the cluster later,"
            " without a run."
        )
        remedy = (
            "Correct the conditions of the NicDevices without a serial number (kubectl get nicdevices -A -o yaml),"
            " then run stage platform again. Or delete the template before nodes join the cluster: kubectl delete"
            " nicconfigurationtemplates -A -l app.kubernetes.io/managed-by=linerate.rdma."
        )
        yield Finding(
            _CHECK,
            "NicConfigurationTemplate",
            WARN,
            "HCAs selected by model and PCI address",
            "HCAs selected by serial number",
            why,
            remedy,
        )


def _check_one(node: str, steps: int, outcomes: typing.Sequence[NodeOutcome]) -> Finding:
    """Return the finding on a node of the roll, which should have one step in the plan and one outcome.

    If the node has more or fewer of them, return the finding on a failed outcome if there is one, else a finding of
    status ``unknown``.

    :param node: name of the node
    :param steps: number of steps that the plan has for the node
    :param outcomes: outcomes of the node
    """
    if (steps, len(outcomes)) == (1, 1):
        return _check_node(outcomes[0])
    if not outcomes:
        return _check_node(
            NodeOutcome(node, "unknown", "The run ended before it stored a result for this node", remedy=_CONTINUE)
        )
    failed = next((found for found in map(_check_node, outcomes) if found.status == FAIL), None)
    if failed is not None:
        return failed
    states = ", ".join(outcome.state for outcome in outcomes)
    why = (
        f"The plan of the run has {count_of(steps, 'change')} of the node, but the run stored"
        f" {count_of(len(outcomes), 'result')} for it, so the state of the node is unknown."
    )
    measured = f"{count_of(len(outcomes), 'result')} stored ({states}), {count_of(steps, 'change')} to make"
    expected = f"1 result for each change of the node, so {count_of(steps, 'result')}"
    remedy = "Run stage platform again, which changes only the settings that differ from the intent."
    return Finding(_CHECK, node, UNKNOWN, measured, expected, why, remedy)


def _check_node(outcome: NodeOutcome) -> Finding:
    node = outcome.node or "node without a name"
    if outcome.state in ("done", "nothing"):
        return build_pass(_CHECK, node, "; ".join(outcome.did) or "no change needed", _EXPECTED_OF_NODE)
    if outcome.state == "planned":
        # check mode: what is not done yet
        return Finding(
            _CHECK,
            node,
            UNKNOWN,
            "not changed (check mode)",
            _EXPECTED_OF_NODE,
            "In check mode, stage platform changes no node.",
            "Run stage platform again without --check.",
        )
    did = f"; done so far: {'; '.join(outcome.did)}" if outcome.did else ""
    status: typing.Literal["fail", "unknown"] = UNKNOWN if outcome.state in ("unknown", "unproven") else FAIL
    without = _WITHOUT_REASON.get(outcome.state, "The run ended during the work on this node")
    return Finding(
        _CHECK,
        node,
        status,
        f"{_STATES.get(outcome.state, outcome.state)}{did}",
        _EXPECTED_OF_NODE,
        f"{format_clause(outcome.why, without)}.",
        f"{(outcome.remedy or (_AGAIN if outcome.why else _choose_next_step(outcome))).rstrip('.')}.",
    )


def _choose_next_step(outcome: NodeOutcome) -> str:
    """Return the remedy for a node whose outcome has neither a reason nor a remedy."""
    if outcome.state != "blocked":
        return _CONTINUE
    return (
        "Run stage platform again. It tries the change of the node again, and reports the reason if it may not make it."
    )
