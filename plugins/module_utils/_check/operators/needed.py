# SPDX-License-Identifier: GPL-3.0-or-later

"""Check that each operator that the intent and the job need is installed exactly once and ready. Check id:
``operators.needed``.
"""

from __future__ import annotations

import re
import typing

from ..._analysis.controllers.installation import (
    describe_half_installed,
    describe_installation,
    describe_installation_step,
    describe_installer,
    name_way_to_trust,
    served_by_labels,
)
from ..._model.base.phrases import describe_read_remedy, describe_rerun, format_clause
from ..._model.intent.intent import Intent
from ..._model.intent.profiles import needs_nic_policy
from ..._model.job.stack import Controller
from ..._model.operators.operators import NETWORK, SRIOV, Needed, Operator, OperatorsSeen, list_needed_operators
from ..._model.operators.sriov_operator import OlmObject
from ..._model.run.findings import FAIL, PASS, UNKNOWN, WARN, Finding, build_pass

CHECK = "operators.needed"
_AGAIN = "Then run stage operators again."
_EXPECTED = "one installation that is ready"
_RELEASE = re.compile(r"\Av?[0-9]{1,4}\.[0-9]{1,4}\.[0-9]{1,4}(?![0-9])")
#: the same, also behind the name of an operator, as in the name of a ClusterServiceVersion
_VERSION = re.compile(r"(?:\A|\.)v?([0-9]{1,4})\.([0-9]{1,4})\.([0-9]{1,4})(?![0-9])")
#: first number of the releases of OpenShift, by which its catalog numbers operators
_OPENSHIFT = 4


def check(
    intent: Intent, seen: typing.Optional[OperatorsSeen], nodes: typing.Sequence[str]
) -> typing.Iterator[Finding]:
    """Check that each operator that the intent needs is installed in a supported version and that its pods are ready.
    Yield one finding for each operator, in the order of the table of operators.

    :param seen: answer of operators_info; None if it did not run
    :param nodes: names of the nodes that take part
    """
    if seen is None:
        for row in list_needed_operators(intent):
            why = "The run ended before it looked for the operator in the cluster."
            yield Finding(
                CHECK,
                row.operator.name,
                UNKNOWN,
                "installations not read",
                _describe_expected_operator(row),
                why,
                describe_rerun("operators"),
            )
        return
    for row in list_needed_operators(intent, seen.job, seen.olm):
        if seen.errors:
            why = f"The API server did not return all objects: {format_clause('; '.join(seen.errors[:5]))}."
            yield Finding(
                CHECK,
                row.operator.name,
                UNKNOWN,
                "not all objects read",
                _describe_expected_operator(row),
                why,
                describe_read_remedy(_AGAIN),
            )
        else:
            finding = _check_operator(row, seen, nodes)
            other = (
                _report_other_release(intent, row, seen) or _report_foreign_version(row, seen)
                if finding.status == PASS
                else None
            )
            yield other or finding


def _describe_expected_operator(row: Needed) -> str:
    return f"{_EXPECTED}, for {', '.join(row.why)}"


def _check_operator(row: Needed, seen: OperatorsSeen, nodes: typing.Sequence[str]) -> Finding:
    operator, expected = row.operator, _describe_expected_operator(row)
    found = [item for item in seen.controllers if item.operator == operator.name]
    if len(found) > 1:
        names = "; ".join(describe_installation(item) for item in found)
        why = (
            "Two installations of the same operator change the same objects, and each reverts the changes of the other."
        )
        remedy = (
            "Remove all installations but one: run helm uninstall, delete the Subscription of OLM, or disable the part"
            " of NVIDIA's chart that installs the operator. Then run stage operators again."
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
        return build_pass(CHECK, operator.name, f"not installed, and all {len(nodes)} nodes carry the labels", expected)
    untrusted = seen.untrusted.get(operator.name)
    if untrusted is not None:
        why = (
            f"The run installed nothing in namespace {untrusted.namespace}, because it does not trust the"
            f" namespace: {format_clause(untrusted.why)}. {operator.lack}"
        )
        return Finding(
            CHECK,
            operator.name,
            FAIL,
            "not installed, namespace not trusted",
            expected,
            why,
            f"{name_way_to_trust(untrusted.namespace)} {_AGAIN}",
        )
    objects = seen.held_by_olm(operator)
    if objects and _has_succeeded_version(objects) and operator.configuration and not _has_configuration(row, seen):
        namespace = next(item.namespace for item in objects if item.kind == "ClusterServiceVersion")
        why = (
            f"OLM has installed the operator, but the operator has no effect without a {operator.configuration}."
            f" {operator.lack}"
        )
        if operator.name in seen.left:
            return _report_left(row, seen, f"installed, no {operator.configuration}")
        create = f"reate a {operator.configuration} (namespace {namespace}), then run stage operators again."
        remedy = f"C{create}" if seen.install else f"Set operators_install to true, or c{create}"
        return Finding(CHECK, operator.name, FAIL, f"installed, no {operator.configuration}", expected, why, remedy)
    if objects:
        told = "; ".join(
            f"{item.kind} {item.namespace}/{item.name} {item.phase or 'without a state'} {item.message}".strip()
            for item in objects
        )
        why = f"OLM has objects for the operator, but the operator does not run yet. {operator.lack}"
        remedy = (
            f"Run kubectl -n {objects[0].namespace} describe subscription,clusterserviceversion, and correct the cause"
            " in the conditions. If approval is manual, approve the InstallPlan. Then run stage operators again."
        )
        return Finding(CHECK, operator.name, FAIL, told, expected, why, remedy)
    if operator.name in seen.made and operator.chart is not None:
        why = (
            "An earlier run began to install the operator. Its Helm release is incomplete, or it was removed later."
            f" {operator.lack}"
        )
        remedy = f"{describe_half_installed(operator.chart.namespace, seen.install)} {_AGAIN}"
        return Finding(
            CHECK, operator.name, FAIL, "namespace exists, no Deployment runs the operator", expected, why, remedy
        )
    return Finding(
        CHECK,
        operator.name,
        FAIL,
        "no Deployment runs the operator",
        expected,
        operator.lack,
        f"{_describe_step(operator, seen).rstrip('.')}. {_AGAIN}",
    )


def _check_present_operator(row: Needed, seen: OperatorsSeen, found: Controller) -> Finding:
    operator, expected, measured = row.operator, _describe_expected_operator(row), describe_installation(found)
    namespace, _slash, name = found.name.partition("/")
    remedy = (
        f"Run kubectl -n {namespace} get pods, then kubectl -n {namespace} describe pod POD for each pod of {name} that"
        " is not ready, and correct the cause that its events show. If a pod is missing, the events of kubectl -n"
        f" {namespace} describe replicaset show the cause. {_AGAIN}"
    )
    if not found.wanted:
        remedy = f"Run kubectl -n {namespace} scale deployment {name} --replicas=1. {_AGAIN}"
    if found.ready < 1 or found.wanted < 1:
        no_pod = "has no available pod in its current version"
        why = f"The operator {no_pod if found.wanted else 'is scaled to 0'}. {operator.lack}"
        if found.origin == "helm" and found.wanted:
            release = describe_half_installed(namespace, seen.install)
            remedy = remedy.replace(_AGAIN, f"If the pods have no error, check the Helm release. {release} {_AGAIN}")
        return Finding(CHECK, operator.name, FAIL, measured, expected, why, remedy)
    if operator.configuration and (operator.configured == "always" or found.origin == "olm"):
        states = [item for item in seen.configurations if item.kind == operator.configuration]
        measured = (
            f"{measured}; {operator.configuration}:"
            f" {', '.join(f'{item.name} {item.state}'.strip() for item in states) or 'none'}"
        )
        if not states and operator.name in seen.left:
            return _report_left(row, seen, measured)
        if not states:
            effect = operator.lack.partition(", ")[2]
            why = f"Without a {operator.configuration} the operator does nothing: {effect}"
            return Finding(
                CHECK,
                operator.name,
                FAIL,
                measured,
                f"one installation that is ready, with a {operator.configuration}, for {', '.join(row.why)}",
                why,
                f"Create a {operator.configuration}: helm upgrade with the chart and the values of the installation"
                " creates it. Without Helm, create it from the example in the documentation of the operator. Then run"
                " stage operators again.",
            )
        late = [item for item in states if operator.configured == "always" and item.state != "ready"]
        if late:
            why = (
                f"{operator.configuration} {late[0].name} reports {late[0].state or 'no state'}. The operator has not"
                " applied it yet, or cannot apply it. Building a driver takes minutes on each node."
            )
            return Finding(
                CHECK,
                operator.name,
                FAIL,
                measured,
                expected,
                why,
                f"Run kubectl describe {operator.configuration.lower()} {late[0].name}, and correct the cause in its"
                " conditions. When its state is ready, run stage operators again.",
            )
    if found.ready < found.wanted:
        return Finding(
            CHECK,
            operator.name,
            WARN,
            measured,
            expected,
            "One pod is enough for the operator to work, but"
            f" {'no other pod' if found.ready == 1 else 'fewer pods than intended'} can take over if it fails.",
            remedy,
        )
    untrusted = seen.untrusted.get(operator.name)
    if untrusted is not None:
        why = (
            "The operator is ready. The run did not check whether an upgrade is needed, because it does"
            f" not trust the namespace {untrusted.namespace}: {format_clause(untrusted.why)}."
        )
        return Finding(
            CHECK, operator.name, WARN, measured, expected, why, f"{name_way_to_trust(untrusted.namespace)} {_AGAIN}"
        )
    return build_pass(CHECK, operator.name, measured, expected)


def _report_left(row: Needed, seen: OperatorsSeen, measured: str) -> Finding:
    """Return the finding about an operator whose configuration object the run does not create.

    :param row: the required operator
    """
    operator, left = row.operator, seen.left[row.operator.name]
    expected = f"one installation that is ready, with a {operator.configuration}, for {', '.join(row.why)}"
    why = f"{left.why} The operator has no effect without it. {operator.lack}"
    remedy = f"Review these fields, change them as your cluster requires, and run {left.command}. {_AGAIN}"
    return Finding(CHECK, operator.name, FAIL, measured, expected, why, remedy)


def _report_other_release(intent: Intent, row: Needed, seen: OperatorsSeen) -> typing.Optional[Finding]:
    """Return a warning if the release of NVIDIA's network operator differs from the release of the images that stage
    network writes into its NicClusterPolicy. Return None if the releases are equal, or if the release of the operator
    is unknown.

    :param row: the required operator
    :param seen: operators of the cluster
    """
    if row.operator.name != NETWORK or not any(map(needs_nic_policy, intent.fabrics)):
        return None
    wanted = intent.cluster.network_operator.version
    found = next((item for item in seen.controllers if item.operator == NETWORK), None)
    # another version is the tag of an image, such as latest
    if found is None or not _RELEASE.match(found.version) or found.version.lstrip("v") == wanted.lstrip("v"):
        return None
    why = (
        f"Stage network writes images of release {wanted} into the NicClusterPolicy, and the operator that applies it"
        f" is of release {found.version}. NVIDIA tests the parts of one release together."
    )
    remedy = (
        f"Set rdma_cluster.network_operator.version: v{found.version.lstrip('v')}, or upgrade the operator to"
        f" {wanted}. Then run stage operators again."
    )
    expected = f"{_describe_expected_operator(row)}, of release {wanted}"
    return Finding(CHECK, row.operator.name, WARN, describe_installation(found), expected, why, remedy)


def _report_foreign_version(row: Needed, seen: OperatorsSeen) -> typing.Optional[Finding]:
    """Return a warning if the SR-IOV network operator was not installed by a run and has another version than a run
    would install. Return None if the versions are equal, if one of them is unknown, or if only one of them is numbered
    as OpenShift numbers its releases.

    :param row: the required operator
    :param seen: operators of the cluster
    """
    if row.operator.name != SRIOV:
        return None
    found = next((item for item in seen.controllers if item.operator == SRIOV), None)
    wanted = seen.versions.get(SRIOV, "")
    if found is None or (found.origin == "helm" and SRIOV in seen.made):
        return None
    numbers, expected = _read_numbers(found.version), _read_numbers(wanted)
    if numbers == expected or not numbers or not expected:
        return None
    if (numbers[0] < _OPENSHIFT) != (expected[0] < _OPENSHIFT):
        return None
    here, there = (".".join(map(str, one)) for one in (numbers, expected))
    variable = (
        f"operators_packages: {{{SRIOV}: {{version: {found.version.rpartition('.v')[2]}}}}}"
        if found.origin == "olm"
        else f"operators_sriov_chart_version: {here}"
    )
    why = (
        f"The operator was installed {describe_installer(found)} and not by linerate.rdma, so the run does not"
        f" upgrade it. It has version {here}. The objects of stage network are written for version {there}, and"
        " another version can ignore or refuse fields of them."
    )
    remedy = (
        f"Upgrade the operator to {there} in the way in which it was installed. Or, if you have tested {here} with"
        f" these fabrics, set {variable}. Then run stage operators again."
    )
    return Finding(
        CHECK,
        row.operator.name,
        WARN,
        describe_installation(found),
        f"{_describe_expected_operator(row)}, of version {there}",
        why,
        remedy,
    )


def _read_numbers(version: str) -> tuple[int, ...]:
    """Return the three numbers of a version; an empty tuple if it has another form, such as the tag ``latest``."""
    found = _VERSION.search(version)
    return tuple(map(int, found.groups())) if found else ()


def _has_succeeded_version(objects: typing.Iterable[OlmObject]) -> bool:
    return any(item.kind == "ClusterServiceVersion" and item.phase == "Succeeded" for item in objects)


def _has_configuration(row: Needed, seen: OperatorsSeen) -> bool:
    return any(item.kind == row.operator.configuration for item in seen.configurations)


def list_missing(intent: Intent, seen: OperatorsSeen, nodes: typing.Sequence[str]) -> tuple[str, ...]:
    """Return one line for each required operator that is not ready yet, with its state.

    The stage waits until no line is left. An operator that the run does not install because its namespace is not
    trusted, or does not configure, is left out, since a wait would not help.

    :param seen: operators that the cluster has
    :param nodes: names of the nodes that take part
    """
    late = [
        finding
        for finding in check(intent, seen, nodes)
        if finding.status in (FAIL, UNKNOWN) and finding.subject not in {*seen.untrusted, *seen.left}
    ]
    return tuple(f"{finding.subject}: {finding.measured}" for finding in late)
