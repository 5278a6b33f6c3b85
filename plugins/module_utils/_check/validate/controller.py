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

from ..._model.base.phrases import format_clause
from ..._model.base.tags import is_selected
from ..._model.intent.intent import Intent
from ..._model.kubernetes.controller import ControllerFacts, HelmFacts
from ..._model.kubernetes.powers import FOLDER
from ..._model.run.findings import FAIL, PASS, SKIPPED, UNKNOWN, WARN, Finding, build_pass
from ..operators import rbac

#: stages that ask the API server, whatever the intent is
ASKING = ("operators", "network", "virtual_functions", "host", "bandwidth")
#: [requirements.txt]; Helm's, since which it takes a chart by an OCI reference
LIBRARY, HELM = (24, 2), (3, 8)
_VERSION = "the version of the API server"
#: a kubeconfig as words: its file name, its folder, and what sets it
_KUBECONFIG = re.compile(r"kubeconfig (\S+) in (/\S*)( \(.*\))?")


def list_asking_stages(
    in_site: bool, tags: typing.Collection[str], skip_tags: typing.Collection[str]
) -> tuple[str, ...]:
    """Return the stages of this invocation that query the API server and are selected by its tags.

    :param in_site: whether the invocation runs all stages in turn (site.yml). Otherwise one stage runs alone, and the
        result is empty
    :param tags: tags of ``--tags``
    :param skip_tags: tags of ``--skip-tags``
    """
    return tuple(stage for stage in ASKING if in_site and is_selected(stage, tags, skip_tags))


def find_cause(seen: typing.Optional[ControllerFacts], kind: str, where: str) -> str:
    """Return the id of the check whose finding explains why the inventory got no nodes from the API server:
    ``validate.library`` or ``validate.api_server``. Return an empty text if neither does.

    :param seen: answer of controller_info; None if it did not run
    :param kind: cause of the inventory's error: ``library``, ``api_server``, or empty for any other
    :param where: origin of the API server's address that the inventory used
    """
    if seen is None:
        return ""
    if not seen.library:
        return "validate.library" if kind == "library" else ""
    return "validate.api_server" if kind == "api_server" and not seen.server and seen.where == where else ""


def check(
    intent: Intent, seen: typing.Optional[ControllerFacts], kind: str = "", where: str = ""
) -> tuple[Finding, ...]:
    """Return a finding on each requirement of the controller: the Python library, the API server, the rights of the
    user, and Helm. The result is empty if ``seen`` is None, as for a stage that runs alone.

    :param seen: answer of controller_info; None if it did not run
    :param kind: cause of an empty inventory: ``library``, ``api_server``, or empty for any other. A requirement that
        caused it is a failure even if no stage of the invocation needs it
    :param where: origin of the API server's address that the inventory used
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
        f"{finding.why} The selected stages of this run do not need it, so this is a warning. The stages"
        f" {', '.join(ASKING)} need it."
    )
    return dataclasses.replace(finding, status=WARN, why=why)


def _check_library(seen: ControllerFacts) -> Finding:
    expected = f"kubernetes {LIBRARY[0]}.{LIBRARY[1]} or newer"
    if _parse_version(seen.library) >= LIBRARY:
        return build_pass("validate.library", "controller", f"kubernetes {seen.library}", expected)
    measured = f"kubernetes {seen.library}" if seen.library else "no Python library kubernetes"
    why = (
        f"Ansible runs modules on the controller with {seen.python}, whose Python library kubernetes is too"
        " old. Without a newer one, the run cannot query the API server."
        if seen.library
        else f"Ansible runs modules on the controller with {seen.python}, which does not have the Python library"
        " kubernetes. Without it, the run cannot query the API server."
    )
    remedy = (
        f"Run on the controller: {seen.python} -m pip install 'kubernetes>={LIBRARY[0]}.{LIBRARY[1]}'. Or set"
        " ansible_python_interpreter of localhost to a Python that has this library. Then run stage validate again."
    )
    return Finding("validate.library", "controller", FAIL, measured, expected, why, remedy)


def _parse_version(text: str) -> tuple[int, int]:
    """Return the major and minor version number; (0, 0) if the text has none.

    :param text: version such as ``v1.31.2``
    """
    match = re.match(r"v?(\d{1,6})\.(\d{1,6})", text, re.ASCII)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def _is_unnamed(seen: ControllerFacts, where: str) -> bool:
    """Return whether only the inventory specifies an API server: neither the environment, a variable nor a kubeconfig
    of the controller does.

    :param seen: answer of controller_info
    :param where: origin of the API server's address that the inventory used
    """
    return not seen.named and not seen.server and seen.where != where


def _report_unnamed() -> Finding:
    """Return the finding that the API server was not queried, because only the inventory specifies a kubeconfig and the
    inventory failed.
    """
    why = (
        "Only the inventory file names a kubeconfig, and the inventory plugin failed for the reason in the finding"
        " validate.nodes. So the run queried no API server."
    )
    remedy = "Follow the remedy of the finding validate.nodes, then run stage validate again."
    return Finding("validate.api_server", "API server", SKIPPED, "not queried", _VERSION, why, remedy)


def _join_path(where: str) -> str:
    """Return the words of an unnamed kubeconfig with its path. Other words are returned unchanged.

    :param where: origin of the credentials, such as ``kubeconfig config in /root/.kube``
    """
    found = _KUBECONFIG.fullmatch(where)
    return f"the kubeconfig {found[2].rstrip('/')}/{found[1]}{found[3] or ''}" if found else where


def _check_server(seen: ControllerFacts) -> Finding:
    expected = _VERSION
    if seen.server:
        return build_pass("validate.api_server", "API server", f"{seen.server}, by {seen.where}", expected)
    if not seen.named:
        why = (
            "No API server is configured: the environment has no variable K8S_AUTH_*, rdma_kubeconfig is not set, and"
            f" {_join_path(seen.where)} does not exist."
        )
        remedy = (
            "Specify a kubeconfig with export KUBECONFIG=FILE or -e rdma_kubeconfig=FILE, or set K8S_AUTH_HOST and"
            " K8S_AUTH_API_KEY. Then run stage validate again."
        )
        return Finding("validate.api_server", "API server", FAIL, "not queried", expected, why, remedy)
    why = f"{format_clause(seen.error, 'The API server did not respond')}."
    return Finding(
        "validate.api_server",
        "API server",
        FAIL,
        # it may have answered that it lets nobody in
        "not read",
        expected,
        why,
        seen.remedy
        or "Run kubectl version with the same kubeconfig, and correct the error that it shows. Then run stage validate"
        " again.",
    )


def _check_rights(intent: Intent, seen: ControllerFacts) -> typing.Iterator[Finding]:
    if seen.rights is None:
        why = (
            "The API server rejected the query for the rights of the user, or did not answer it:"
            f" {format_clause(seen.rights_error, 'it returned no error text')}."
        )
        remedy = (
            "If the error contains 'forbidden', run kubectl describe clusterrolebinding system:basic-user as an admin"
            " of the cluster, and add the group system:authenticated to it. Otherwise run kubectl version with"
            f" {seen.where}, and correct the error that it shows. Then run stage validate again."
        )
        yield Finding(
            "validate.rights",
            "kubeconfig",
            UNKNOWN,
            "rights not read",
            f"all rights of {FOLDER} that the intent needs",
            why,
            remedy,
        )
        return
    for finding in rbac.check(seen.rights):
        remedy = finding.remedy.replace("run stage operators again", "run stage validate again")
        renamed = dataclasses.replace(finding, check="validate.rights", remedy=remedy)
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
        return build_pass("validate.helm", helm.binary, f"Helm {helm.version}", expected)
    why = "operators_install is set, so stage operators uses Helm to install the operators."
    measured = f"Helm {helm.version}" if helm.version else "Helm version not read"
    if not helm.version:
        why += f" {helm.binary} could not run on the controller: {format_clause(helm.error, 'no error text')}."
    remedy = (
        f"Install Helm {HELM[0]}.{HELM[1]} or newer on the controller, or set operators_helm_binary to its path. Or set"
        " operators_install to false and install the operators yourself. Then run stage validate again."
    )
    return Finding("validate.helm", helm.binary, FAIL, measured, expected, why, remedy)
