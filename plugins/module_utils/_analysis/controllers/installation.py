# SPDX-License-Identifier: GPL-3.0-or-later

"""Describe for findings and remedies how an operator is installed: by OLM, by Helm or by hand."""

from __future__ import annotations

import typing

from ..._model.job.stack import Controller
from ..._model.operators.operators import (
    GPU,
    JOBSET,
    KUEUE,
    NETWORK,
    NFD,
    NFD_LABELS,
    TRAINER,
    Needed,
    Operator,
    OperatorChart,
    OperatorsSeen,
)

_BY = {
    "olm": "by OLM",
    "nvidia-network-operator": "as a part of NVIDIA's network operator",
    "helm": "by Helm",
    "gitops": "by a GitOps tool",
}
#: API groups of the definitions that charts bring
_GROUPS = {
    NFD: ("nfd.k8s-sigs.io",),
    NETWORK: ("mellanox.com", "nv-ipam.nvidia.com"),
    GPU: ("nvidia.com",),
    JOBSET: ("jobset.x-k8s.io",),
    TRAINER: ("trainer.kubeflow.org",),
    KUEUE: ("kueue.x-k8s.io",),
}


def describe_installation_step(
    operator: Operator, olm: bool = False, install: bool = False, leave: typing.Collection[str] = ()
) -> str:
    """Return an instruction for the user that leads to the installation of a missing operator: the settings that make
    the run install it, or a command for an installation by hand.

    :param olm: whether operators are installed by OLM in this cluster
    :param install: whether ``operators_install`` is already true
    :param leave: names of operators that the run does not install (``operators_leave``)
    """
    if olm and operator.package is not None:
        package = operator.package
        by_hand = f"subscribe to package {package.name} of {package.source} in namespace {package.namespace}"
    elif operator.chart is not None and not (olm and operator.by_hand):
        by_hand = f"run {helm_install(operator.chart)}"
    else:
        return operator.by_hand
    return f"{_have_run_install(operator, install, leave)}, or {by_hand}."


def _have_run_install(operator: Operator, install: bool, leave: typing.Collection[str]) -> str:
    """Return the instruction that makes the run install the operator: the settings to change, or the findings to
    correct first.

    :param install: whether ``operators_install`` is already true
    :param leave: names of operators that the run does not install (``operators_leave``)
    """
    first = "" if install else "set operators_install to true"
    if operator.name in leave:
        taken = f"remove {operator.name} from operators_leave"
        return f"{first} and {taken}".capitalize() if first else taken.capitalize()
    if first:
        return first.capitalize()
    return (
        "Correct the other findings of stage operators and run it without --check, so that the run installs the"
        " operator (operators_install is true)"
    )


def helm_install(chart: OperatorChart) -> str:
    repository = f" --repo {chart.repository}" if chart.repository else ""
    return (
        f"helm install --create-namespace -n {chart.namespace}{repository} --version {chart.version} {chart.release}"
        f" {chart.reference}"
    )


def describe_half_installed(namespace: str, install: bool = False) -> str:
    """Return an instruction for a namespace in which the installation of a Helm release may be incomplete
    (pending-install, pending-upgrade) or have failed. Helm refuses to continue such a release by itself.

    :param namespace: namespace of the release
    :param install: whether ``operators_install`` is already true
    """
    resume = "stage operators resumes" if install else "set operators_install to true, so that stage operators resumes"
    return (
        f"Run helm list -n {namespace} --all. If it shows the release as incomplete (pending-install) or failed,"
        f" {resume} its installation."
    )


def name_way_to_trust(namespace: str) -> str:
    """Return an instruction for a namespace that a run does not use because a tenant may have created it or has rights
    in it: how to find its owner, and how to make it usable.

    :param namespace: name of the namespace
    """
    look = f"kubectl get namespace {namespace} -o yaml; kubectl get rolebindings,secrets -n {namespace} -o wide"
    broken_off = "helm uninstall for a release whose first installation failed"
    ends = (
        f"remove the objects that do not belong to the operator ({broken_off}); or delete the namespace; or, if the"
        " namespace is yours, add it to operators_trusted_namespaces"
    )
    return f"Find the owner of the namespace: {look}. Then {ends}."


def describe_helm_removal(operator: Operator, release: str, namespace: str) -> str:
    """Return the commands that remove an operator, in this order: its objects, while the operator runs, because only
    the operator removes their finalizers; then the Helm release, the custom resource definitions, and the namespace.

    :param release: name of the Helm release; empty if it no longer exists
    :param namespace: namespace of the operator
    """
    groups = " and ".join(
        f"kubectl api-resources --api-group={group} -o name" for group in _GROUPS.get(operator.name, ())
    )
    steps = (
        [f"delete the objects of all kinds that {groups} lists (kubectl delete KIND --all -A)"]
        if groups and release
        else []
    )
    steps += [f"helm uninstall --wait -n {namespace} {release}"] if release else []
    steps += [f"delete the CRDs that {groups} lists (kubectl delete crd NAME)"] if groups else []
    return "; then ".join([*steps, f"kubectl delete namespace {namespace}"])


def describe_installer(found: Controller) -> str:
    """Return the installer of an operator as text, as far as the operator's Deployment shows it.

    :param found: installation of the operator in the cluster
    """
    release = f" (release {found.release})" if found.origin == "helm" and found.release else ""
    return f"{_BY.get(found.origin, 'by hand')}{release}"


def describe_installation(found: Controller) -> str:
    """Return the name, version and installer of an installation, and the number of its ready pods, as text.

    :param found: installation of the operator in the cluster
    """
    return (
        f"{found.name} {found.version or '(version unknown)'}, {describe_installer(found)}, {found.ready} of"
        f" {found.wanted} pods ready"
    )


def served_by_labels(row: Needed, seen: OperatorsSeen, nodes: typing.Collection[str]) -> bool:
    """Return whether node feature discovery need not be installed: it is required only for its labels, and each node
    already has them, from whatever source.

    :param row: requirement of node feature discovery, with its reasons
    :param seen: operators and labelled nodes of the cluster
    :param nodes: names of the nodes that take part
    """
    return (
        all(reason.startswith(f"label {NFD_LABELS}") for reason in row.why)
        and bool(nodes)
        and set(nodes) <= set(seen.labelled)
    )
