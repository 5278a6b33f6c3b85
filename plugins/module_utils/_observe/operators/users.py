# SPDX-License-Identifier: GPL-3.0-or-later

"""Find the custom resources of other users and of other intents that an operator serves, and the objects of other
intents. A teardown keeps an operator that has some.
"""

from __future__ import annotations

import typing

from ..._model.base.marks import SELECTOR
from ..._model.kubernetes.host import HOST_KINDS
from ..._model.kubernetes.nic_policy import NEEDING_KINDS
from ..._model.kubernetes.own_kinds import OF_FABRICS, RUNNING_JOBS
from ..._model.kubernetes.scope import Scope
from ..._model.operators.olm import IN_USE, NEEDED, RetainedObject
from ..._parse.kubernetes.foreign import is_copied
from ..._parse.kubernetes.resource import mapping_at, name_of
from ..kubernetes.client import Cluster
from ..kubernetes.copies import keep_other
from ..kubernetes.errors import ApiError
from ..kubernetes.kinds import Resource
from ..kubernetes.outcome import Outcome, has_our_label

#: kinds of the SR-IOV network operator by which a user asks for something
SRIOV_KINDS = ("SriovNetworkNodePolicy", "SriovNetwork", "SriovIBNetwork", "SriovNetworkPoolConfig")
#: kinds of objects that a run makes for its intent
_OF_INTENTS = (
    *dict.fromkeys((*SRIOV_KINDS, *OF_FABRICS)),
    "NicConfigurationTemplate",
    "Tuned",
    *HOST_KINDS,
    *RUNNING_JOBS,
)
#: kinds of the GPU operator and of the network operator, whose objects need the labels of node feature discovery
_NEEDING_LABELS = ("ClusterPolicy", "NicClusterPolicy")
_NIC_POLICY = "NicClusterPolicy"
#: kinds whose objects operators and their daemons make
_MADE_BY_OPERATORS = ("NicDevice", "NodeFeature", "SriovNetworkNodeState")
#: names of objects that the SR-IOV network operator makes
_DEFAULT = (("SriovNetworkNodePolicy", "default"), ("SriovOperatorConfig", "default"))
#: objects that are named
_NAMED = 20


def name_users(kind: str, items: typing.Iterable[Resource], scope: typing.Optional[Scope] = None) -> list[str]:
    """Return the ``kind namespace/name`` of each object of a kind that a user or another intent made, and that neither
    this intent nor an operator made.

    :param scope: objects of the intent; None: all objects of the collection
    :raises ResourceError: an object has another form
    """
    found = []
    for item in items:
        metadata, name = mapping_at(item, "metadata"), name_of(item)
        made = kind in _MADE_BY_OPERATORS or (kind, name) in _DEFAULT or metadata.get("ownerReferences")
        ours = has_our_label(item) and not is_copied(item)
        ours = ours and (scope is None or not scope.explain_foreign(kind, item))
        if not made and not ours and "deletionTimestamp" not in metadata:
            space = str(metadata.get("namespace") or "")
            found.append(f"{kind} {space}/{name}" if space else f"{kind} {name}")
    return found


def find_sriov_users(cluster: Cluster, scope: typing.Optional[Scope] = None) -> tuple[str, ...]:
    """Return the objects of other users and intents that the SR-IOV network operator serves; of many, some and the
    number of the others.

    :param scope: objects of the intent; None: all objects of the collection
    :raises ApiError: the API server refuses, or cannot be reached
    """
    return tuple(fold_users(_find_users(cluster, SRIOV_KINDS, scope)))


def find_label_users(cluster: Cluster, scope: typing.Optional[Scope] = None) -> list[str]:
    """Return the objects of other users and intents that may need the labels of node feature discovery: of the SR-IOV
    network operator, the GPU operator and the network operator.

    :param scope: objects of the intent; None: all objects of the collection
    :raises ApiError: the API server refuses, or cannot be reached
    """
    return _find_users(cluster, (*SRIOV_KINDS, *_NEEDING_LABELS), scope)


def split_needed(
    cluster: Cluster, kind: str, items: tuple[Resource, ...], scope: typing.Optional[Scope]
) -> tuple[tuple[Resource, ...], list[Outcome]]:
    """Return the objects of a kind that a removal may take, and the outcomes of those that networks or pools of other
    users and intents need. Only a NicClusterPolicy can be needed: its components and drivers serve all networks.

    :param items: objects of the kind that belong to the intent
    :param scope: objects of the intent; None: nothing is needed by others
    :raises ApiError: the API server refuses, or cannot be reached
    """
    if kind != _NIC_POLICY or scope is None or not items:
        return items, []
    users = [
        user
        for needing in NEEDING_KINDS
        for user in name_users(needing.partition(".")[0], _list_objects(cluster, needing), scope)
    ]
    if not users:
        return items, []
    why = f"networks or pools that are not of this intent need it: {', '.join(fold_users(users))}"
    return (), [keep_other(item, why) for item in items]


def find_other_intents(cluster: Cluster, scope: Scope) -> list[str]:
    """Return the objects that a run made for another intent, or that may belong to another one. What an operator made
    of an object is left out.

    :param scope: objects of the intent
    :raises ApiError: the API server refuses, or cannot be reached
    """
    found: list[str] = []
    for kind in _OF_INTENTS:
        items = _list_objects(cluster, kind, SELECTOR)
        found += name_users(kind.partition(".")[0], [item for item in items if not is_copied(item)], scope)
    return found


def _find_users(cluster: Cluster, kinds: typing.Iterable[str], scope: typing.Optional[Scope]) -> list[str]:
    return [user for kind in kinds for user in name_users(kind, _list_objects(cluster, kind), scope)]


def _list_objects(cluster: Cluster, kind: str, selector: str = "") -> tuple[Resource, ...]:
    """Return the objects of a kind; none if the API server does not serve it."""
    try:
        return cluster.list(kind, selector=selector).items
    except ApiError as error:
        if not error.absent:
            raise
        return ()


def fold_users(users: typing.Sequence[str]) -> list[str]:
    """Return the first ``_NAMED`` names, and a text with the number of the remaining ones if there are more.

    :param users: names of objects
    """
    more = len(users) - _NAMED
    return [*users[:_NAMED], *([f"{more} more"] if more > 0 else [])]


def keep_operator(subject: str, users: typing.Sequence[str]) -> RetainedObject:
    """Return an operator, or its Helm release, as retained by the teardown, with the objects that keep it.

    :param subject: operator or release, as subject of the finding
    :param users: objects that :func:`fold_users` returned
    """
    remedy = (
        "If they are no longer needed, delete these objects, then run the teardown again with teardown_operator: true."
        " If they are needed, set teardown_operator: false"
    )
    return RetainedObject(subject, f"{IN_USE}: {', '.join(users)}", remedy)


def keep_needed(subject: str, others: typing.Sequence[str]) -> RetainedObject:
    """Return an operator as retained by the teardown, because other intents or other operators may need it.

    :param subject: operator, as subject of the finding
    :param others: objects that :func:`fold_users` returned
    """
    remedy = (
        "If another intent needs them, set teardown_operator: false, and remove the operator with the teardown of the"
        " last intent. If they are no longer needed, delete these objects, then run the teardown again with"
        " teardown_operator: true"
    )
    return RetainedObject(subject, f"{NEEDED}: {', '.join(others)}", remedy)
