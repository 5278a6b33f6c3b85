# SPDX-License-Identifier: GPL-3.0-or-later

"""Removes the operators whose Subscription the collection created: the collection's objects of the operator's kinds,
the ClusterServiceVersion, the Subscription, and then CustomResourceDefinitions without objects.

The objects of the operator's kinds are removed first, while the operator runs, because only the operator removes their
finalizers. The Subscription is removed after the ClusterServiceVersion, because its label identifies the operator after
an interrupted removal. An operator with objects of other users remains, with its configuration, and so does one that
another intent or another operator may need. The Operator object, which OLM never removes itself, is removed last.

A tenant can give its own Subscription the label of the collection, and a finalizer that is never removed. Therefore the
default namespaces of the collection come first, and all waits together have a limit.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._model.base.marks import is_ours
from ..._model.base.text import join_first
from ..._model.intent.intent import Disruption
from ..._model.kubernetes.apply import MOST_OF_KIND
from ..._model.kubernetes.owner_marks import explain_owner, find_owner_mark
from ..._model.kubernetes.scope import Scope
from ..._model.operators.olm import GROUP, ORIGINALS, RetainedObject, Subscription
from ..._model.operators.operators import SRIOV, TABLE
from ..._model.operators.recognition import name_operator
from ..._observe.kubernetes.client import Cluster
from ..._observe.kubernetes.errors import ApiError
from ..._observe.kubernetes.kinds import Kind, Resource
from ..._observe.kubernetes.outcome import Outcome, has_our_label
from ..._observe.kubernetes.removal.remove import fold_outcomes
from ..._observe.kubernetes.shell import Clock
from ..._observe.operators.busy_nodes import find_busy_nodes, keep_busy_operator
from ..._observe.operators.olm import kind_of_definition, of_namespaces
from ..._observe.operators.users import fold_users, keep_operator, name_users
from ..._parse.kubernetes.foreign import is_copied
from ..._parse.kubernetes.resource import labels_of, mapping_at, name_of
from ..._parse.operators import olm
from ..._plan.operator_requests import PackageWish
from .deletions import Deletions, read_uid
from .needed import NEEDED_BY, Needs, list_definitions, list_operands

#: of a definition that OLM has made
_MADE_BY_OLM = ("olm.managed", "true")
#: of the objects that stay, those that are named
_NAMED = 5
#: namespaces into which the collection installs by default
_USUAL = frozenset(operator.package.namespace for operator in TABLE if operator.package is not None)


@dataclasses.dataclass(frozen=True)
class Removed:
    """The result of the removal of operators.

    :ivar outcomes: outcome of each object that was removed, or whose removal was refused
    :ivar namespaces: namespaces in which an operator of the collection remains
    :ivar stays: objects that remain, each with the reason
    """

    outcomes: tuple[Outcome, ...] = ()
    stays: tuple[RetainedObject, ...] = ()
    namespaces: tuple[str, ...] = ()


class Remover:
    """A client that removes the operators that the collection installed through OLM.

    :param cluster: client of the API server
    :param check_mode: whether to only let the API server check the deletions
    :param limit: longest duration of one wait, in seconds. All waits together may take twice as long
    :param clock: function that returns the time of a monotonic clock, in seconds
    :param pause: function that sleeps for a number of seconds
    :param scope: objects of the intent; an operator that another intent uses stays. None: all objects of the collection
        count as those of this intent
    :param permitted: worst permitted effect on a node: none, drain or reboot
    :param packages: package of each operator in the settings (operators_packages), by operator; None for the defaults
    """

    def __init__(
        self,
        cluster: Cluster,
        check_mode: bool,
        limit: float,
        clock: Clock,
        pause: typing.Callable[[float], None],
        scope: typing.Optional[Scope] = None,
        permitted: Disruption = "drain",
        packages: typing.Optional[typing.Mapping[str, PackageWish]] = None,
    ) -> None:
        self._scope, self._permitted = scope, permitted
        wishes = packages or {}
        self._packages = {name: wish.package for name, wish in wishes.items() if wish.package}
        self._usual = _USUAL | {wish.namespace for wish in wishes.values() if wish.namespace}
        self._cluster, self._check_mode = cluster, check_mode
        self._deletions = Deletions(cluster, check_mode, limit, clock, pause)

    def show(self) -> Removed:
        """Return the Subscriptions that the collection created, as objects that remain because no removal is requested.
        Nothing is removed.

        :raises ApiError: an object cannot be read
        """
        found = [item for item, _uid in self._list_own_subscriptions()] if self._cluster.serves(GROUP) else []
        why = "the operator is removed only if teardown_operator is set"
        stays = tuple(RetainedObject(f"Subscription {item.place}", why) for item in found)
        return Removed((), stays, tuple(sorted({item.namespace for item in found})))

    def run(self) -> Removed:
        """Remove all operators of the collection, and return the outcomes. If the API server refuses a deletion, this
        is recorded as an outcome, and the objects that depend on it remain. On a cluster without OLM the result is
        empty.

        :raises ApiError: an object cannot be read
        """
        if not self._cluster.serves(GROUP):
            return Removed()
        needs = Needs(self._cluster, self._scope, self._permitted, self._packages)
        left: list[Subscription] = []
        own = [(item, uid, needs.recognize(item)) for item, uid in self._list_own_subscriptions()]
        # those that other operators need come after these operators
        own.sort(key=lambda row: (row[0].namespace not in self._usual, not row[2].isdisjoint(NEEDED_BY)))
        for item, uid, operators in own:
            stay = needs.explain_stay(item.package, operators, self._deletions.list_changed())
            busy = find_busy_nodes(self._cluster, item.namespace) if stay is None and SRIOV in operators else ()
            if busy:
                stay = keep_busy_operator(name_operator(item.package, operators), item.namespace, busy)
            if stay is not None:
                self._deletions.stays.append(stay)
            if stay is not None or not self._remove_operator(item, uid, operators):
                left.append(item)
        self._delete_operator_groups()
        for kind in ("Subscription", "OperatorGroup"):
            for found in self._list_olm_objects(kind):
                if is_ours(labels_of(found)) and find_owner_mark(found):
                    where = f"{mapping_at(found, 'metadata').get('namespace', '')}/{name_of(found)}"
                    self._deletions.stays.append(RetainedObject(f"{kind} {where}", explain_owner(found)))
        stays = self._deletions.stays[:MOST_OF_KIND]
        if len(self._deletions.stays) > len(stays):
            why = "a client gave the label of the collection to many objects of OLM"
            stays.append(RetainedObject(f"{len(self._deletions.stays) - len(stays)} more objects", why))
        return Removed(
            tuple(fold_outcomes(self._deletions.outcomes)),
            tuple(stays),
            tuple(sorted({item.namespace for item in left})),
        )

    def _list_olm_objects(self, kind: str) -> tuple[Resource, ...]:
        """Return all objects of a kind of OLM. Subscriptions in namespaces where OLM installs nothing are left out,
        because tenants can create any number of them.

        :param kind: Subscription, OperatorGroup or ClusterServiceVersion
        :raises ApiError: the objects cannot be read
        """
        if kind != "Subscription":
            return self._cluster.list(kind, selector=ORIGINALS if kind == "ClusterServiceVersion" else "").items
        others = (*self._list_olm_objects("OperatorGroup"), *self._list_olm_objects("ClusterServiceVersion"))
        spaces = {str(mapping_at(item, "metadata").get("namespace", "")) for item in others}
        return self._cluster.list(kind, only=of_namespaces(self._usual | spaces)).items

    def _list_own_subscriptions(self) -> list[tuple[Subscription, str]]:
        """Return the Subscriptions of the collection, each with its uid, sorted by namespace and name. Those in the
        default namespaces of the collection come first.

        :raises ApiError: the objects cannot be read
        """
        found = [(olm.parse_subscription(item), read_uid(item)) for item in self._list_olm_objects("Subscription")]
        return sorted(
            ((item, uid) for item, uid in found if item.ours),
            key=lambda pair: (pair[0].namespace not in self._usual, pair[0].place),
        )

    def _remove_operator(self, subscription: Subscription, uid: str, operators: typing.Collection[str]) -> bool:
        """Remove one operator with its objects. Return whether it was removed. If not, the reasons are recorded as
        objects that remain or as refused outcomes.

        :param subscription: Subscription of the operator
        :param uid: uid of the Subscription
        :param operators: names of the supported operators that it may be
        """
        space, subject = subscription.namespace, name_operator(subscription.package, operators)
        uids: dict[str, str] = {}
        versions, mine = [], []
        for item in self._list_olm_objects("ClusterServiceVersion"):
            version = olm.service_version(item)
            versions.append(version)
            if version.namespace == space and version.name in (subscription.installed, subscription.current):
                mine.append(version)
                uids[version.name] = read_uid(item)
        definitions = list_definitions(self._cluster, subscription, mine, versions)
        operands = list_operands(self._cluster, operators, definitions)
        users = [user for definition in (*definitions, *operands) for user in self._list_users(definition)]
        if users:
            # before its configuration is deleted, which they need as well
            self._deletions.stays.append(keep_operator(subject, fold_users(users)))
            return False
        for definition in definitions:
            if not self._objects(definition):
                self._deletions.stays.append(
                    RetainedObject(
                        subject,
                        "objects of this collection that the operator must release still exist; rerun the teardown",
                    )
                )
                return False
        for version in mine:
            running = {name: self._deletions.find("Deployment", space, name) for name in version.deployments}
            if not self._deletions.delete("ClusterServiceVersion", space, version.name, uids[version.name]):
                return False
            # what runs goes with it, a moment later
            for name, found in running.items():
                if found is not None:
                    self._deletions.await_deletion("Deployment", space, name, read_uid(found))
        if not self._deletions.delete("Subscription", space, subscription.name, uid):
            return False
        kept = [name_of(definition) for definition in definitions if not self._delete_definition(definition)]
        self._remove_operator_record(f"{subscription.package}.{space}", kept)
        return True

    def _remove_operator_record(self, name: str, kept: typing.Sequence[str]) -> None:
        """Remove the Operator object, in which OLM lists the objects of an operator. OLM does not remove it, and
        creates it again while objects of the operator exist. If such objects remain, it is recorded as an object that
        remains.

        :param name: name of the Operator object
        :param kept: names of the CustomResourceDefinitions that remain
        """
        try:
            there = self._deletions.find("Operator", "", name)
        except ApiError as error:
            if not error.absent:
                self._deletions.stays.append(
                    RetainedObject(
                        f"Operator {name}",
                        f"the object could not be read, so it is unknown whether OLM left it behind: {error.text}",
                    )
                )
            return
        if there is not None and kept:
            self._deletions.stays.append(
                RetainedObject(
                    f"Operator {name}",
                    f"OLM keeps it while an object of the operator exists: CustomResourceDefinition {kept[0]}",
                )
            )
        elif there is not None:
            self._deletions.delete("Operator", "", name, read_uid(there), stays=True)

    def _list_instances(self, definition: Resource) -> tuple[Kind, tuple[Resource, ...]]:
        kind = kind_of_definition(definition)
        try:
            return kind, self._cluster.list(kind).items
        except ApiError as error:
            if error.absent:
                return kind, ()
            raise

    def _list_users(self, definition: Resource) -> list[str]:
        """Return the objects of a kind that other users or intents made, as ``kind namespace/name``.

        :param definition: CustomResourceDefinition of the kind
        """
        kind = str(mapping_at(definition, "spec", "names").get("kind"))
        return name_users(kind, self._list_instances(definition)[1], self._scope)

    def _objects(self, definition: Resource) -> bool:
        """Delete the collection's objects of a kind. Return whether all of them are gone. Objects with an owner are
        skipped, because they are deleted with their owner.

        :param definition: CustomResourceDefinition of the kind
        """
        kind, items = self._list_instances(definition)
        gone = True
        for item in items:
            # what an operator made of one of ours goes with its owner
            if _is_own(item) and not mapping_at(item, "metadata").get("ownerReferences"):
                gone = (
                    self._deletions.delete(
                        kind,
                        str(item["metadata"].get("namespace", "")),
                        name_of(item),
                        read_uid(item),
                        str(item.get("kind")),
                    )
                    and gone
                )
        return gone

    def _delete_definition(self, definition: Resource) -> bool:
        """Delete a CustomResourceDefinition if it has no objects and OLM has created it. Return whether it was removed.
        If not, the reason is recorded as that of an object that remains.
        """
        name = name_of(definition)
        subject = f"CustomResourceDefinition {name}"
        try:
            _kind, items = self._list_instances(definition)
        except ApiError as error:
            self._deletions.stays.append(RetainedObject(subject, f"its objects could not be read: {error.text}"))
            return False
        left = [item for item in items if not self._check_mode or not _is_own(item)]
        if left:
            names = join_first([name_of(item) for item in left], _NAMED)
            self._deletions.stays.append(
                RetainedObject(subject, f"{len(left)} of its objects do not belong to this collection: {names}")
            )
        elif _MADE_BY_OLM not in labels_of(definition).items() and not any(
            key.startswith("operators.coreos.com/") for key in labels_of(definition)
        ):
            self._deletions.stays.append(RetainedObject(subject, "it existed before OLM installed the operator"))
        else:
            return self._deletions.delete("CustomResourceDefinition", "", name, read_uid(definition), stays=True)
        return False

    def _delete_operator_groups(self) -> None:
        """Delete the OperatorGroups of the collection. An OperatorGroup in a namespace with other operators is recorded
        as an object that remains.
        """
        gone = self._deletions.list_changed()
        left = [*self._list_olm_objects("Subscription"), *self._list_olm_objects("ClusterServiceVersion")]
        used = {
            str(item["metadata"].get("namespace", ""))
            for item in left
            if (item["kind"], item["metadata"].get("namespace", ""), name_of(item)) not in gone
        }
        for found in self._list_olm_objects("OperatorGroup"):
            group = olm.operator_group(found)
            if group.ours and group.namespace in used:
                self._deletions.stays.append(
                    RetainedObject(
                        f"OperatorGroup {group.namespace}/{group.name}", "its namespace contains other operators"
                    )
                )
            elif group.ours:
                self._deletions.delete("OperatorGroup", group.namespace, group.name, read_uid(found))


def _is_own(item: Resource) -> bool:
    return has_our_label(item) and not is_copied(item) and not find_owner_mark(item)
