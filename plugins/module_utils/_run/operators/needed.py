# SPDX-License-Identifier: GPL-3.0-or-later

"""Finds what may need an operator of OLM, so that a teardown keeps it: objects of other intents, and operators that
stay. The custom resources of an operator do not tell this: node feature discovery gives labels to all of them.
"""

from __future__ import annotations

import typing

from ..._model.intent.intent import Disruption
from ..._model.kubernetes.scope import Scope
from ..._model.operators.olm import ORIGINALS, RetainedObject
from ..._model.operators.operators import CERTIFICATES, GPU, JOBSET, KUEUE, NETWORK, NFD, SRIOV, TABLE
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
from ..._parse.kubernetes.resource import items_of, mapping_at, name_of
from ..._parse.operators import olm

_PACKAGES = {operator.name: operator.package for operator in TABLE if operator.package is not None}
#: packages, each with the prefixes of the ClusterServiceVersions of operators that need it: the labels of node feature
#: discovery, and the certificates of cert-manager
NEEDED_BY = {
    _PACKAGES[name].name: tuple(_PACKAGES[other].csv for other in others)
    for name, others in ((NFD, (SRIOV, NETWORK, GPU)), (CERTIFICATES, (JOBSET, KUEUE)))
}
#: packages, each with the API groups of the kinds that users create for the software of the operator, if its
#: ClusterServiceVersion does not own them. A TrainJob becomes a JobSet
_OPERAND_GROUPS = {
    _PACKAGES[name].name: groups
    for name, groups in (
        (NETWORK, ("nv-ipam.nvidia.com", "configuration.net.nvidia.com")),
        (CERTIFICATES, ("cert-manager.io",)),
        (JOBSET, ("jobset.x-k8s.io", "trainer.kubeflow.org")),
        (KUEUE, ("kueue.x-k8s.io",)),
    )
}


class Needs:
    """A reader of the objects and operators that need an operator. It reads the objects of other intents once.

    :param scope: objects of the intent; None: all objects of the collection, so that there is no other intent
    :param permitted: worst permitted effect on a node
    :raises ApiError: an object cannot be read
    """

    def __init__(self, cluster: Cluster, scope: typing.Optional[Scope], permitted: Disruption) -> None:
        self._cluster, self._scope, self._permitted = cluster, scope, permitted
        self._others = find_other_intents(cluster, scope) if scope is not None else []

    def explain_stay(
        self, package: str, gone: typing.Container[tuple[str, str, str]]
    ) -> typing.Optional[RetainedObject]:
        """Return the operator of a package as an object that stays, because another intent or an operator that stays
        may need it; None if neither does. The custom resources of the SR-IOV network operator tell which intents need
        it, so objects of other kinds do not keep it.

        :param package: name of the package
        :param gone: kind, namespace and name of each object that was removed, in check mode of each that would be
        :raises ApiError: an object cannot be read
        """
        users = list(self._others) if package != _PACKAGES[SRIOV].name else []
        users += self._list_needing_operators(NEEDED_BY.get(package, ()), gone)
        if package == _PACKAGES[NFD].name:
            users += find_label_users(self._cluster, self._scope)
        if users:
            return keep_needed(f"operator {package}", fold_users(list(dict.fromkeys(users))))
        return self._explain_driver(package) if package == _PACKAGES[GPU].name else None

    def _explain_driver(self, package: str) -> typing.Optional[RetainedObject]:
        """Return the GPU operator as an object that stays, because its driver goes from all nodes with it, and pods use
        GPUs or the intent permits no drain; None if it may be removed.

        :raises ApiError: the pods cannot be read
        """
        if self._permitted == "none":
            return keep_driver(f"operator {package}")
        pods = find_gpu_pods(self._cluster)
        return keep_driver(f"operator {package}", fold_users(pods)) if pods else None

    def _list_needing_operators(
        self, prefixes: tuple[str, ...], gone: typing.Container[tuple[str, str, str]]
    ) -> list[str]:
        """Return the ClusterServiceVersions that stay and whose names have one of the prefixes."""
        if not prefixes:
            return []
        versions = map(olm.service_version, self._cluster.list("ClusterServiceVersion", selector=ORIGINALS).items)
        return [
            f"ClusterServiceVersion {version.namespace}/{version.name}"
            for version in versions
            if version.name.startswith(prefixes)
            and ("ClusterServiceVersion", version.namespace, version.name) not in gone
        ]


def list_operands(cluster: Cluster, package: str, definitions: typing.Sequence[Resource]) -> list[Resource]:
    """Return the CustomResourceDefinitions of the software that an operator runs. The ClusterServiceVersion of an
    operator can own only the kind that configures this software, as those of Kueue and JobSet on OpenShift do.

    :param package: name of the package of the operator
    :param definitions: CustomResourceDefinitions of the operator; they are left out
    :raises ApiError: the definitions cannot be read
    """
    own, kinds = {name_of(item) for item in definitions}, {_read_kind(item) for item in definitions}
    groups = _OPERAND_GROUPS.get(package, ())
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
