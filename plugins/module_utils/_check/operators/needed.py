# SPDX-License-Identifier: GPL-3.0-or-later

"""Check that each operator that the intent and the job need is installed exactly once and ready. Check id:
``operators.needed``.
"""

from __future__ import annotations

import typing

from ..._analysis.controllers.installation import (
    describe_half_installed,
    describe_installation,
    describe_installation_step,
    name_way_to_trust,
    served_by_labels,
)
from ..._model.intent.intent import Intent
from ..._model.job.stack import Controller
from ..._model.operators.operators import Needed, Operator, OperatorsSeen, needed
from ..._model.operators.sriov_operator import OlmObject
from ..._model.run.findings import FAIL, UNKNOWN, WARN, Finding, ok

CHECK = "operators.needed"
_EXPECTED = "one that serves"


def check(
    intent: Intent, seen: typing.Optional[OperatorsSeen], nodes: typing.Sequence[str]
) -> typing.Iterator[Finding]:
    """Yield a finding for each operator that is needed, in the order of the table of operators.

    :param nodes: names of the nodes that take part
    """
    if seen is None:
        for row in needed(intent):
            why = "Nobody looked whether it is there."
            yield Finding(
                CHECK,
                row.operator.name,
                UNKNOWN,
                "not asked",
                _describe_expected_operator(row),
                why,
                "Run the stage again.",
            )
        return
    for row in needed(intent, seen.job, seen.olm):
        if seen.errors:
            why = f"The API server did not let us read: {'; '.join(seen.errors[:5])}."
            yield Finding(
                CHECK,
                row.operator.name,
                UNKNOWN,
                "not all was read",
                _describe_expected_operator(row),
                why,
                "Give the user of the kubeconfig the rights of docs/rbac/look.yml.",
            )
        else:
            yield _check_operator(row, seen, nodes)


def _describe_expected_operator(row: Needed) -> str:
    return f"{_EXPECTED}, for {', '.join(row.why)}"


def _check_operator(row: Needed, seen: OperatorsSeen, nodes: typing.Sequence[str]) -> Finding:
    operator, expected = row.operator, _describe_expected_operator(row)
    found = [item for item in seen.controllers if item.operator == operator.name]
    if len(found) > 1:
        names = "; ".join(describe_installation(item) for item in found)
        why = "Two of one kind change the same objects, each undoing what the other did."
        remedy = (
            "Remove all but one: helm uninstall, the Subscription of OLM, or the part of NVIDIA's chart that brings it."
        )
        return Finding(CHECK, operator.name, FAIL, names, expected, why, remedy)
    if not found:
        return _report_absent(row, seen, nodes)
    return _check_present_operator(row, seen, found[0])


def _describe_step(operator: Operator, seen: OperatorsSeen) -> str:
    return describe_installation_step(operator, seen.olm, seen.install, seen.leave)


def _report_absent(row: Needed, seen: OperatorsSeen, nodes: typing.Sequence[str]) -> Finding:
    operator, expected = row.operator, _describe_expected_operator(row)
    if served_by_labels(row, seen, nodes):
        return ok(CHECK, operator.name, f"none, and all {len(nodes)} nodes carry the labels", expected)
    untrusted = seen.untrusted.get(operator.name)
    if untrusted is not None:
        why = f"The run installed nothing in namespace {untrusted.namespace}: {untrusted.why}. {operator.lack}"
        return Finding(
            CHECK,
            operator.name,
            FAIL,
            "not installed: its namespace may belong to others",
            expected,
            why,
            name_way_to_trust(untrusted.namespace),
        )
    objects = seen.held_by_olm(operator)
    if objects and _has_succeeded_version(objects) and operator.configuration and not _has_configuration(row, seen):
        package = operator.package.namespace if operator.package else ""
        why = f"OLM has installed it, and it does nothing without a {operator.configuration}. {operator.lack}"
        create = f"reate a {operator.configuration} (namespace {package})."
        remedy = f"C{create}" if seen.install else f"Set operators_install to true, or c{create}"
        return Finding(CHECK, operator.name, FAIL, f"installed, no {operator.configuration}", expected, why, remedy)
    if objects:
        told = "; ".join(
            f"{item.kind} {item.namespace}/{item.name} {item.phase or 'without a state'} {item.message}".strip()
            for item in objects
        )
        why = f"OLM has it in hand, and it does not run yet. {operator.lack}"
        remedy = (
            f"kubectl -n {objects[0].namespace} describe subscription,clusterserviceversion; approve its InstallPlan"
            " where approval is manual."
        )
        return Finding(CHECK, operator.name, FAIL, told, expected, why, remedy)
    if operator.name in seen.made and operator.chart is not None:
        why = f"A run began to install it, and its Helm release is half there, or was removed since. {operator.lack}"
        remedy = f"{describe_half_installed(operator.chart.namespace, seen.install)}."
        remedy += "" if seen.install else f" {_describe_step(operator, seen)}"
        return Finding(
            CHECK, operator.name, FAIL, "its namespace is there, and no Deployment runs it", expected, why, remedy
        )
    return Finding(
        CHECK,
        operator.name,
        FAIL,
        "no Deployment runs it",
        expected,
        operator.lack,
        _describe_step(operator, seen),
    )


def _check_present_operator(row: Needed, seen: OperatorsSeen, found: Controller) -> Finding:
    operator, expected, measured = row.operator, _describe_expected_operator(row), describe_installation(found)
    namespace, _slash, name = found.name.partition("/")
    remedy = f"kubectl -n {namespace} describe deployment {name}; its pods' events name the cause."
    if found.ready < 1 or found.wanted < 1:
        no_pod = "has no available pod of its Deployment's present template"
        why = f"It {no_pod if found.wanted else 'is scaled to 0'}. {operator.lack}"
        if found.origin == "helm":
            remedy += f" {describe_half_installed(namespace, seen.install)}."
        return Finding(CHECK, operator.name, FAIL, measured, expected, why, remedy)
    if operator.configuration and (operator.configured == "always" or found.origin == "olm"):
        states = [item for item in seen.configurations if item.kind == operator.configuration]
        measured = (
            f"{measured}; {operator.configuration}:"
            f" {', '.join(f'{item.name} {item.state}'.strip() for item in states) or 'none'}"
        )
        if not states:
            why = f"It does nothing without a {operator.configuration}. {operator.lack}"
            return Finding(
                CHECK,
                operator.name,
                FAIL,
                measured,
                expected,
                why,
                f"Create a {operator.configuration}, as the guide of the operator shows it.",
            )
        late = [item for item in states if operator.configured == "always" and item.state != "ready"]
        if late:
            why = (
                "It has not done yet what its configuration asks for, or can't. To build a driver takes it minutes on"
                " each node."
            )
            return Finding(
                CHECK,
                operator.name,
                FAIL,
                measured,
                expected,
                why,
                f"kubectl describe {operator.configuration.lower()} {late[0].name}",
            )
    if found.ready < found.wanted:
        return Finding(
            CHECK,
            operator.name,
            WARN,
            measured,
            expected,
            "One pod is enough to act, and the others would replace it.",
            remedy,
        )
    untrusted = seen.untrusted.get(operator.name)
    if untrusted is not None:
        why = (
            "It serves, and the run did not look whether it is to be upgraded, because of its namespace"
            f" {untrusted.namespace}: {untrusted.why}."
        )
        return Finding(CHECK, operator.name, WARN, measured, expected, why, name_way_to_trust(untrusted.namespace))
    return ok(CHECK, operator.name, measured, expected)


def _has_succeeded_version(objects: typing.Iterable[OlmObject]) -> bool:
    return any(item.kind == "ClusterServiceVersion" and item.phase == "Succeeded" for item in objects)


def _has_configuration(row: Needed, seen: OperatorsSeen) -> bool:
    return any(item.kind == row.operator.configuration for item in seen.configurations)


def missing(intent: Intent, seen: OperatorsSeen, nodes: typing.Sequence[str]) -> tuple[str, ...]:
    """Return the operators that are not ready yet, one line each, with their state; the stage waits for them. An
    operator that the run does not install, since its namespace is not trusted, is left out: waiting does not help.
    """
    late = [
        finding
        for finding in check(intent, seen, nodes)
        if finding.status in (FAIL, UNKNOWN) and finding.subject not in seen.untrusted
    ]
    return tuple(f"{finding.subject}: {finding.measured}" for finding in late)
