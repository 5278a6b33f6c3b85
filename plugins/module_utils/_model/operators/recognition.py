# SPDX-License-Identifier: GPL-3.0-or-later

"""Recognize which operators of the table a package of OLM is. The name of a package is a setting, and catalogs have the
same operator under several names (gpu-operator-certified, gpu-operator-certified-rhmp). So the names of its
ClusterServiceVersions and its CustomResourceDefinitions count too.

[src NVIDIA/gpu-operator v26.3.3 and Mellanox/network-operator v26.4.1 bundle/manifests; openshift/cluster-nfd-operator
and kubernetes-sigs/node-feature-discovery-operator config/crd; k8snetworkplumbingwg/sriov-network-operator v1.6.0
bundle/manifests; openshift/cert-manager-operator, jobset-operator and kueue-operator manifests; jobset v0.12.0, kueue
v0.19.2, kubeflow/trainer v2.3.0]
"""

from __future__ import annotations

import typing

from .operators import CERTIFICATES, GPU, JOBSET, KUEUE, NETWORK, NFD, OPERATORS, SRIOV, TABLE, TRAINER

#: API groups and definitions that only one operator brings, by operator. OpenShift's operators share the group
#: operator.openshift.io
_DEFINITIONS: dict[str, tuple[str, ...]] = {
    NFD: ("nfd.openshift.io", "nfd.kubernetes.io", "nfd.k8s-sigs.io"),
    SRIOV: ("sriovnetwork.openshift.io",),
    NETWORK: ("mellanox.com", "nv-ipam.nvidia.com", "configuration.net.nvidia.com"),
    GPU: ("nvidia.com",),
    CERTIFICATES: ("cert-manager.io", "acme.cert-manager.io", "certmanagers.operator.openshift.io"),
    JOBSET: ("jobset.x-k8s.io", "jobsetoperators.operator.openshift.io"),
    TRAINER: ("trainer.kubeflow.org",),
    KUEUE: ("kueue.x-k8s.io", "kueue.openshift.io"),
}
_OPERATOR = "operator"


def recognize_operators(
    package: str,
    versions: typing.Iterable[str] = (),
    definitions: typing.Iterable[str] = (),
    packages: typing.Optional[typing.Mapping[str, str]] = None,
) -> frozenset[str]:
    """Return the names of the operators of the table that a package may be. A rule that protects one of them applies
    to the package. A name that begins with that of an operator counts, because catalogs add words to it.

    :param package: name of the package; empty if it is not known
    :param versions: names of its ClusterServiceVersions
    :param definitions: names of its CustomResourceDefinitions
    :param packages: name of the package of each operator in the settings (operators_packages), by operator
    """
    versions, definitions, found = tuple(versions), tuple(definitions), set()
    for operator in TABLE:
        asked = (packages or {}).get(operator.name, "")
        heads = [operator.name, *filter(None, [asked])]
        prefixes: tuple[str, ...] = ()
        if operator.package is not None:
            heads.append(operator.package.name)
            prefixes = (operator.package.csv,)
        if (
            any(_begins_with(name, head) for name in (package, *versions) for head in heads)
            or any(version.startswith(prefixes) for version in versions)
            or any(_is_of_operator(name, operator.name) for name in definitions)
        ):
            found.add(operator.name)
    return frozenset(found)


def _begins_with(name: str, head: str) -> bool:
    """Return whether a name begins with the words of another one: gpu-operator-certified-rhmp with gpu-operator."""
    return name == head or name.startswith((f"{head}-", f"{head}."))


def _is_of_operator(definition: str, operator: str) -> bool:
    """Return whether a CustomResourceDefinition, or its API group, is one that only this operator installs.

    :param definition: name of the CustomResourceDefinition
    :param operator: name of the operator in the table
    """
    known = _DEFINITIONS.get(operator, ())
    return definition in known or definition.partition(".")[2] in known


def name_operator(package: str, operators: typing.Collection[str]) -> str:
    """Return the name of a package as subject of a finding. If the package has another name than that of the table, the
    text contains the operators that it may be.

    :param operators: operators that :func:`recognize_operators` returned
    """
    usual = {found.name for name in operators if (found := OPERATORS[name].package) is not None}
    if not operators or package in usual:
        return f"{_OPERATOR} {package}"
    return f"{_OPERATOR} {' or '.join(sorted(operators))} (package {package})"


def is_named(subject: str, operator: str) -> bool:
    """Return whether a subject that :func:`name_operator` returned contains an operator or its usual package.

    :param subject: subject of a finding
    :param operator: name of the operator
    """
    package = OPERATORS[operator].package
    head, _bracket, other = subject.partition(" (package ")
    names = head.removeprefix(f"{_OPERATOR} ")
    return operator in names.split(" or ") if other else package is not None and names == package.name
