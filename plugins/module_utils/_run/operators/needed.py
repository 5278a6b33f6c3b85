# SPDX-License-Identifier: GPL-3.0-or-later

"""Finds what may need an operator of OLM, so that a teardown keeps it: objects of other intents, and operators that
stay. The custom resources of an operator do not tell this: node feature discovery gives labels to all of them.
"""

from __future__ import annotations

import typing

from ..._model.intent.intent import Disruption
from ..._model.kubernetes.scope import Scope
from ..._model.operators.olm import ORIGINALS, RetainedObject, ServiceVersion, Subscription
from ..._model.operators.operators import CERTIFICATES, GPU, JOBSET, KUEUE, NETWORK, NFD, SRIOV
from ..._model.operators.recognition import name_operator, recognize_operators
from ..._observe.kubernetes.client import Cluster
from ..._observe.kubernetes.kinds import Resource
from ..._observe.operators.users import (
    find_gpu_pods,
    find_label_users,
    find_other_intents,
    fold_users,
    keep_driver,
    keep_needed,
)
from ..._parse.kubernetes.resource import items_of, labels_of, mapping_at, name_of
from ..._parse.operators import olm

#: operators, each with those that need it: the labels of node feature discovery, and the certificates of cert-manager
NEEDED_BY = {NFD: frozenset((SRIOV, NETWORK, GPU)), CERTIFICATES: frozenset((JOBSET, KUEUE))}
#: operators, each with the API groups of the kinds that users create for the software of the operator, if its
#: ClusterServiceVersion does not own them. A TrainJob becomes a JobSet
_OPERAND_GROUPS = {
    NETWORK: ("nv-ipam.nvidia.com", "configuration.net.nvidia.com"),
    CERTIFICATES: ("cert-manager.io",),
    JOBSET: ("jobset.x-k8s.io", "trainer.kubeflow.org"),
    KUEUE: ("kueue.x-k8s.io",),
}


class Needs:
    """A reader of the objects and operators that need an operator. It reads the objects of other intents, the
    ClusterServiceVersions and the names of the CustomResourceDefinitions once.

    :param scope: objects of the intent; None: all objects of the collection, so that there is no other intent
    :param permitted: worst permitted effect on a node
    :param packages: name of the package of each operator in the settings, by operator
    :raises ApiError: an object cannot be read
    """

    def __init__(
        self,
        cluster: Cluster,
        scope: typing.Optional[Scope],
        permitted: Disruption,
        packages: typing.Optional[typing.Mapping[str, str]] = None,
    ) -> None:
        self._cluster, self._scope, self._permitted, self._packages = cluster, scope, permitted, dict(packages or {})
        self._others = find_other_intents(cluster, scope) if scope is not None else []
        self._versions = self._list_versions()
        self._labels = {name_of(item): set(labels_of(item)) for item in cluster.list("CustomResourceDefinition").items}

    def _list_versions(self) -> list[ServiceVersion]:
        return [
            olm.service_version(item) for item in self._cluster.list("ClusterServiceVersion", selector=ORIGINALS).items
        ]

    def recognize(self, subscription: Subscription) -> frozenset[str]:
        """Return the operators of the table that a Subscription may have installed. The name of its package is a
        setting, so its ClusterServiceVersions and its CustomResourceDefinitions count too, and those that OLM labelled
        for the package if an interrupted removal has deleted the ClusterServiceVersion.
        """
        names = [name for name in (subscription.installed, subscription.current) if name]
        label = _compute_label(subscription)
        definitions = [name for name, labels in self._labels.items() if label in labels]
        for version in self._versions:
            if version.namespace == subscription.namespace and version.name in names:
                definitions += version.definitions
        return recognize_operators(subscription.package, names, definitions, self._packages)

    def explain_stay(
        self,
        package: str,
        operators: typing.AbstractSet[str],
        gone: typing.Container[tuple[str, str, str]],
    ) -> typing.Optional[RetainedObject]:
        """Return the operator of a package as an object that stays, because another intent or an operator that stays
        may need it; None if neither does. The custom resources of the SR-IOV network operator tell which intents need
        it, so objects of other kinds do not keep it.

        :param package: name of the package
        :param operators: operators of the table that it may be
        :param gone: kind, namespace and name of each object that was removed, in check mode of each that would be
        :raises ApiError: an object cannot be read
        """
        subject = name_operator(package, operators)
        users = list(self._others) if operators != {SRIOV} else []
        users += self._list_needing_operators(frozenset().union(*(NEEDED_BY.get(name, ()) for name in operators)), gone)
        if NFD in operators:
            users += find_label_users(self._cluster, self._scope)
        if users:
            return keep_needed(subject, fold_users(list(dict.fromkeys(users))))
        return self._explain_driver(subject) if GPU in operators else None

    def _explain_driver(self, subject: str) -> typing.Optional[RetainedObject]:
        """Return the GPU operator as an object that stays, because its driver goes from all nodes with it, and pods use
        GPUs or the intent permits no drain; None if it may be removed.

        :raises ApiError: the pods cannot be read
        """
        if self._permitted == "none":
            return keep_driver(subject)
        pods = find_gpu_pods(self._cluster)
        return keep_driver(subject, fold_users(pods)) if pods else None

    def _list_needing_operators(
        self, needing: frozenset[str], gone: typing.Container[tuple[str, str, str]]
    ) -> list[str]:
        """Return the ClusterServiceVersions that stay and that are one of the operators, or may be."""
        if not needing:
            return []
        return [
            f"ClusterServiceVersion {version.namespace}/{version.name}"
            for version in self._list_versions()
            if ("ClusterServiceVersion", version.namespace, version.name) not in gone
            and needing & recognize_operators("", [version.name], version.definitions, self._packages)
        ]


def list_definitions(
    cluster: Cluster,
    subscription: Subscription,
    mine: typing.Sequence[ServiceVersion],
    versions: typing.Sequence[ServiceVersion],
) -> list[Resource]:
    """Return the CustomResourceDefinitions of an operator, even if its ClusterServiceVersion is already gone, without
    those that another operator owns.

    :param subscription: Subscription of the operator
    :param mine: ClusterServiceVersions of the operator
    :param versions: ClusterServiceVersions of all namespaces
    :raises ApiError: the definitions cannot be read
    """
    label = _compute_label(subscription)
    owned = {name for version in mine for name in version.definitions}
    others = {name for version in versions if version not in mine for name in version.definitions}
    return [
        item
        for item in cluster.list("CustomResourceDefinition").items
        if (name_of(item) in owned or label in labels_of(item)) and name_of(item) not in others
    ]


def _compute_label(subscription: Subscription) -> str:
    """Return the key of the label that OLM writes on each object of an operator."""
    return f"operators.coreos.com/{subscription.package}.{subscription.namespace}"


def list_operands(
    cluster: Cluster, operators: typing.Collection[str], definitions: typing.Sequence[Resource]
) -> list[Resource]:
    """Return the CustomResourceDefinitions of the software that an operator runs. The ClusterServiceVersion of an
    operator can own only the kind that configures this software, as those of Kueue and JobSet on OpenShift do.

    :param operators: operators of the table that the operator may be
    :param definitions: CustomResourceDefinitions of the operator; they are left out
    :raises ApiError: the definitions cannot be read
    """
    own, kinds = {name_of(item) for item in definitions}, {_read_kind(item) for item in definitions}
    groups = {group for name in operators for group in _OPERAND_GROUPS.get(name, ())}
    return [
        item
        for item in cluster.list("CustomResourceDefinition").items
        if name_of(item) not in own and (_read_kind(item)[0] in groups or not kinds.isdisjoint(_read_owners(item)))
    ]


def _read_kind(definition: Resource) -> tuple[str, str]:
    """Return the API group and the kind of a CustomResourceDefinition."""
    spec = mapping_at(definition, "spec")
    return str(spec.get("group")), str(mapping_at(spec, "names").get("kind"))


def _read_owners(item: Resource) -> set[tuple[str, str]]:
    """Return the API group and the kind of each owner of an object."""
    owners = items_of(mapping_at(item, "metadata"), "ownerReferences", name_of(item))
    return {(str(owner.get("apiVersion")).partition("/")[0], str(owner.get("kind"))) for owner in owners}
