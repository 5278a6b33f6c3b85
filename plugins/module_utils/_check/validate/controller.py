# SPDX-License-Identifier: GPL-3.0-or-later

"""Check that the controller meets the requirements of the stages that query the API server, before the first stage
reads a node.

Check ids: ``validate.library``, ``validate.api_server``, ``validate.rights``, ``validate.helm``. If no stage of the
invocation queries the API server, a missing requirement is a warning, since writing an intent needs no cluster.
"""

from __future__ import annotations

import dataclasses
import re
import typing

from ..._model.base.phrases import clause
from ..._model.base.tags import runs
from ..._model.intent.intent import Intent
from ..._model.kubernetes.controller import ControllerFacts, HelmFacts
from ..._model.kubernetes.powers import FOLDER
from ..._model.run.findings import FAIL, PASS, SKIPPED, UNKNOWN, WARN, Finding, ok
from ..operators import rbac

#: stages that ask the API server, whatever the intent is
ASKING = ("operators", "network", "virtual_functions", "host", "bandwidth")
#: [requirements.txt]; Helm's, since which it takes a chart by an OCI reference
LIBRARY, HELM = (24, 2), (3, 8)
_VERSION = "the version of the API server"


def asking(in_site: bool, tags: typing.Collection[str], skip_tags: typing.Collection[str]) -> tuple[str, ...]:
    """Return the stages of this invocation that query the API server and are selected by its tags.

    :param in_site: whether the invocation runs all stages in turn (site.yml). Otherwise one stage runs alone, and the
        result is empty
    """
    return tuple(stage for stage in ASKING if in_site and runs(stage, tags, skip_tags))


def find_cause(seen: typing.Optional[ControllerFacts], kind: str, where: str) -> str:
    """Return the check that says why the inventory got no nodes from the API server; empty where none does.

    :param kind: what the inventory lacked: ``library``, ``api_server``, or empty for something else
    :param where: what led it to the API server
    """
    if seen is None:
        return ""
    if not seen.library:
        return "validate.library" if kind == "library" else ""
    return "validate.api_server" if kind == "api_server" and not seen.server and seen.where == where else ""


def check(
    intent: Intent, seen: typing.Optional[ControllerFacts], kind: str = "", where: str = ""
) -> tuple[Finding, ...]:
    """One finding for each thing; none where nobody looked, since a stage that runs alone judges the intent only.

    :param kind: what the inventory lacked, so that it gave no nodes: it needs that, whatever the stages are
    :param where: what led it to the API server
    """
    if seen is None:
        return ()
    findings = [_check_library(seen)]
    if seen.library:
        unnamed = kind == "api_server" and _is_unnamed(seen, where)
        findings.append(_report_unnamed() if unnamed else _check_server(seen))
    if seen.server:
        findings += _check_rights(intent, seen)
    if not seen.stages:
        blamed = find_cause(seen, kind, where)
        findings = [finding if finding.check == blamed else _report_left_out(finding) for finding in findings]
    if seen.helm is not None:
        helm = _check_helm(seen.helm)
        findings.append(helm if "operators" in seen.stages else _report_left_out(helm))
    return tuple(findings)


def _report_left_out(finding: Finding) -> Finding:
    if finding.status in (PASS, WARN, SKIPPED):
        return finding
    why = (
        f"{finding.why} No stage of this invocation requires this, so the finding is only a warning. The stages"
        f" {', '.join(ASKING)} require it."
    )
    return dataclasses.replace(finding, status=WARN, why=why)


def _check_library(seen: ControllerFacts) -> Finding:
    expected = f"kubernetes {LIBRARY[0]}.{LIBRARY[1]} or newer"
    if _parse_version(seen.library) >= LIBRARY:
        return ok("validate.library", "controller", f"kubernetes {seen.library}", expected)
    measured = f"kubernetes {seen.library}" if seen.library else "no Python library kubernetes"
    why = f"Modules on localhost run with {seen.python}, "
    why += (
        "and the library of this Python is too old for these modules."
        if seen.library
        else (
            "and this Python does not have the library. Therefore the API server was not queried, and the"
            " rights of the user were not checked."
        )
    )
    remedy = (
        f"Run on the controller: {seen.python} -m pip install 'kubernetes>={LIBRARY[0]}.{LIBRARY[1]}'. Or set"
        " ansible_python_interpreter of localhost to a Python that has this library. Then run stage validate again."
    )
    return Finding("validate.library", "controller", FAIL, measured, expected, why, remedy)


def _parse_version(text: str) -> tuple[int, int]:
    """Return the major and minor version number; (0, 0) if the text has none."""
    match = re.match(r"v?(\d{1,6})\.(\d{1,6})", text, re.ASCII)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def _is_unnamed(seen: ControllerFacts, where: str) -> bool:
    """Return whether nothing names an API server but the inventory."""
    return not seen.named and not seen.server and seen.where != where


def _report_unnamed() -> Finding:
    """Report that the inventory, which gives its kubeconfig to the playbooks, could not be read."""
    why = (
        "Only the inventory specifies a kubeconfig, and the playbooks did not get it because the inventory failed. The"
        " finding validate.nodes reports the cause."
    )
    remedy = "Correct the cause that the finding validate.nodes reports, then run stage validate again."
    return Finding("validate.api_server", "API server", SKIPPED, "not queried", _VERSION, why, remedy)


def _check_server(seen: ControllerFacts) -> Finding:
    expected = _VERSION
    if seen.server:
        return ok("validate.api_server", "API server", f"{seen.server}, by {seen.where}", expected)
    if not seen.named:
        why = (
            "No API server is configured: the environment has no variable K8S_AUTH_*, rdma_kubeconfig is not set, and"
            f" {seen.where} does not exist."
        )
        why += " Therefore the rights of the user were not checked."
        remedy = (
            "Specify a kubeconfig with export KUBECONFIG=FILE or -e rdma_kubeconfig=FILE, or set K8S_AUTH_HOST and"
            " K8S_AUTH_API_KEY. Then run stage validate again."
        )
        return Finding("validate.api_server", "API server", FAIL, "not queried", expected, why, remedy)
    why = f"{clause(seen.error, 'The API server did not respond')}. Therefore the rights of the user were not checked."
    return Finding(
        "validate.api_server",
        "API server",
        FAIL,
        # it may have answered that it lets nobody in
        "no version",
        expected,
        why,
        seen.remedy or "Correct the error under 'why', then run stage validate again.",
    )


def _check_rights(intent: Intent, seen: ControllerFacts) -> typing.Iterator[Finding]:
    if seen.rights is None:
        why = (
            "The rights of the user could not be checked:"
            f" {clause(seen.rights_error, 'the API server did not respond')}."
        )
        remedy = (
            f"Run kubectl auth can-i --list to check whether the user ({seen.where}) may create"
            " SelfSubjectAccessReviews."
        )
        yield Finding(
            "validate.rights",
            "credentials",
            UNKNOWN,
            "not queried",
            f"all rights of {FOLDER} that the intent needs",
            why,
            remedy,
        )
        return
    for finding in rbac.check(seen.rights):
        renamed = dataclasses.replace(finding, check="validate.rights")
        # stage operators judges the same, and there it can be waived
        waiver = (
            next((waiver for waiver in intent.waivers if waiver.covers(finding)), None)
            if finding.status != PASS
            else None
        )
        if waiver is not None and finding.status != WARN:
            renamed = dataclasses.replace(
                renamed,
                status=WARN,
                why=f"{finding.why} The waiver for {waiver.check} covers this finding, because: {waiver.reason}.",
            )
        yield renamed


def _check_helm(helm: HelmFacts) -> Finding:
    expected = f"Helm {HELM[0]}.{HELM[1]} or newer"
    if _parse_version(helm.version) >= HELM:
        return ok("validate.helm", helm.binary, f"Helm {helm.version}", expected)
    why = "operators_install is set, so stage operators uses Helm to install the operators."
    measured = f"Helm {helm.version}" if helm.version else helm.error or "no version"
    remedy = (
        "Install Helm on the controller, or set operators_helm_binary to its path, or set operators_install to false"
        " and install the operators yourself. Then run stage validate again."
    )
    return Finding("validate.helm", helm.binary, FAIL, measured, expected, why, remedy)
