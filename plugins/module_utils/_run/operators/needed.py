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
    """A reader of the objects and operators that need a given operator. The objects of other intents, the
    ClusterServiceVersions and the names of the CustomResourceDefinitions are read once, at its creation.

    :param cluster: client of the API server
    :param scope: objects of the intent; None: all objects of the collection count as those of this intent
    :param permitted: worst permitted effect on a node: none, drain or reboot
    :param packages: name of the package of each operator in the settings, by operator; None for the default names
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
        """Return the names of the supported operators that a Subscription may have installed; empty if it installed
        another one.

        The name of the package is not sufficient, because it is a setting. So the ClusterServiceVersions of the
        Subscription and their CustomResourceDefinitions count too, and CustomResourceDefinitions that OLM has labelled
        for the package. The label remains if an interrupted removal has deleted the ClusterServiceVersion.
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
        """Return the entry by which a teardown retains the operator of a package, because another intent or an operator
        that stays may need it. Return None if the operator may be removed.

        The SR-IOV network operator is not retained for objects of other intents here, because its own custom resources
        show which intents need it.

        :param package: name of the package
        :param operators: names of the supported operators that the package may be
        :param gone: kind, namespace and name of each object that was removed or, in check mode, would be removed
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
        """Return the entry by which a teardown retains the GPU operator, because its removal takes the GPU driver off
        all nodes, and pods use GPUs or the intent permits no drain. Return None if the operator may be removed.

        :param subject: name of the operator as subject of the finding
        :raises ApiError: the pods cannot be read
        """
        if self._permitted == "none":
            return keep_driver(subject)
        pods = find_gpu_pods(self._cluster)
        return keep_driver(subject, fold_users(pods)) if pods else None

    def _list_needing_operators(
        self, needing: frozenset[str], gone: typing.Container[tuple[str, str, str]]
    ) -> list[str]:
        """Return the ClusterServiceVersions that stay in the cluster and may be one of the operators, as ``kind
        namespace/name``.

        :param needing: names of supported operators
        :param gone: kind, namespace and name of each object that was removed or, in check mode, would be removed
        """
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
    """Return the CustomResourceDefinitions of an operator, without those that another operator owns. They are also
    found if the ClusterServiceVersion of the operator is already deleted, by the label that OLM has written on them.

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
    """Return the key of the label that OLM writes on each object of an operator, such as
    ``operators.coreos.com/nfd.openshift-nfd``.
    """
    return f"operators.coreos.com/{subscription.package}.{subscription.namespace}"


def list_operands(
    cluster: Cluster, operators: typing.Collection[str], definitions: typing.Sequence[Resource]
) -> list[Resource]:
    """Return the CustomResourceDefinitions of the software that an operator runs. They are needed in addition to those
    of the operator, because the ClusterServiceVersion of an operator may own only the kind that configures this
    software, as for Kueue and JobSet on OpenShift.

    :param operators: names of the supported operators that the operator may be
    :param definitions: CustomResourceDefinitions of the operator itself, which are left out
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
    """Return the API group and the kind of the objects of a CustomResourceDefinition."""
    spec = mapping_at(definition, "spec")
    return str(spec.get("group")), str(mapping_at(spec, "names").get("kind"))


def _read_owners(item: Resource) -> set[tuple[str, str]]:
    """Return the API group and the kind of each owner (ownerReferences) of an object."""
    owners = items_of(mapping_at(item, "metadata"), "ownerReferences", name_of(item))
    return {(str(owner.get("apiVersion")).partition("/")[0], str(owner.get("kind"))) for owner in owners}
