# SPDX-License-Identifier: GPL-3.0-or-later

"""The state of OLM from its objects: a look at all of them, and the update with a change that a watch reports."""

from __future__ import annotations

import dataclasses
import typing

from ..._analysis.controllers.olm.state import OlmState, Place
from ..._model.operators.olm import ORIGINALS, DesiredOperator
from ..._observe.kubernetes.client import Cluster
from ..._observe.operators import olm as observe
from ..._parse.kubernetes.resource import Resource, mapping_at, name_of
from ..._parse.operators import olm
from ..cluster.watch import KindUpdate

#: kind: where it goes in OlmState, and its parser. Those that tell which Subscriptions count come before these
KINDS: dict[str, tuple[str, typing.Callable[[Resource], typing.Any]]] = {
    "CatalogSource": ("catalogs", olm.parse_catalog),
    "OperatorGroup": ("groups", olm.operator_group),
    "ClusterServiceVersion": ("versions", olm.service_version),
    "Subscription": ("subscriptions", olm.parse_subscription),
    "InstallPlan": ("plans", olm.install_plan),
}
SELECTORS = {"ClusterServiceVersion": ORIGINALS}


def read_olm(cluster: Cluster, wishes: typing.Iterable[DesiredOperator]) -> OlmState:
    """Return the state of OLM, read once: the catalogs with the requested packages, OperatorGroups, installed versions,
    Subscriptions and InstallPlans.

    :param wishes: requested operators
    :raises ApiError: an object cannot be read
    :raises ResourceError: an object is malformed
    """
    wishes, seen = tuple(wishes), OlmState()
    for kind in KINDS:
        only = observe.of_namespaces(list_subscription_namespaces(wishes, seen)) if kind == "Subscription" else None
        listed = cluster.list(kind, selector=SELECTORS.get(kind, ""), only=only)
        seen = take(seen, KindUpdate(kind, "replace", listed.items))
    return dataclasses.replace(seen, packages=observe.read_packages(cluster, [wish.package for wish in wishes]))


def list_subscription_namespaces(wishes: typing.Iterable[DesiredOperator], seen: OlmState) -> frozenset[str]:
    """Return the namespaces whose Subscriptions are considered: those of the requested operators, and those with an
    OperatorGroup or a ClusterServiceVersion. A tenant can create a Subscription in its namespace, but neither of these
    two kinds.

    :param wishes: requested operators
    :param seen: objects of OLM in the cluster, as last read
    """
    return frozenset({wish.namespace for wish in wishes} | {space for space, _name in (*seen.groups, *seen.versions)})


def _get_namespaced_name(item: Resource) -> Place:
    return str(mapping_at(item, "metadata").get("namespace", "")), name_of(item)


def take(seen: OlmState, change: KindUpdate) -> OlmState:
    """Return the state of OLM after a change of the objects of one kind.

    :param seen: state of OLM before the change
    :param change: changed objects of the kind; not an error of its watch
    :raises ResourceError: an object is malformed
    """
    field, parse = KINDS[change.kind]
    after = {} if change.action == "replace" else dict(getattr(seen, field))
    for item in change.items:
        if change.action == "drop":
            after.pop(_get_namespaced_name(item), None)
        else:
            after[_get_namespaced_name(item)] = parse(item)
    return dataclasses.replace(seen, **{field: after})
