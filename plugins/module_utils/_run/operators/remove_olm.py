# SPDX-License-Identifier: GPL-3.0-or-later

"""Takes back the operators whose Subscription the collection made: its objects, ClusterServiceVersion, Subscription,
and then definitions without objects.

Our own objects of an operator's kinds go first, while it runs: it alone takes its finalizers off. The Subscription goes
after the ClusterServiceVersion: it bears our label, so that a removal that was interrupted is found again. Definitions
that still have objects stay, as do the objects of others in them. Last goes what OLM never takes away itself: its own
record of the operator.

A tenant's Subscription may bear our label as well, with a finalizer that never goes. So the namespaces into which the
collection installs by default come first, and the waits of all together have a limit.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._model.base.text import folded
from ..._model.kubernetes.apply import AppliedObject
from ..._model.operators.olm import GROUP, ORIGINALS, RetainedObject, ServiceVersion, Subscription
from ..._model.operators.operators import TABLE
from ..._observe.kubernetes.client import Cluster
from ..._observe.kubernetes.errors import ApiError
from ..._observe.kubernetes.kinds import Kind, Resource
from ..._observe.kubernetes.outcome import Outcome, ours, stable
from ..._observe.kubernetes.remove import Waits
from ..._observe.kubernetes.shell import Clock
from ..._observe.operators.olm import kind_of_definition, of_namespaces
from ..._parse.kubernetes.resource import labels_of, mapping_at, name_of
from ..._parse.operators import olm

#: of a definition that OLM has made
_MADE_BY_OLM = ("olm.managed", "true")
#: of the objects that stay, those that are named
_NAMED = 5
#: namespaces into which the collection installs by default
_USUAL = frozenset(operator.package.namespace for operator in TABLE if operator.package is not None)


@dataclasses.dataclass(frozen=True)
class Removed:
    """:ivar namespaces: in which an operator of ours is left
    :ivar stays: what is left, and why
    """

    outcomes: tuple[Outcome, ...] = ()
    stays: tuple[RetainedObject, ...] = ()
    namespaces: tuple[str, ...] = ()


class Remover:
    """:param pause: sleeps; given in, as ``clock``, so that a test needs no time
    :param limit: seconds for each kind of object to go
    """

    def __init__(
        self, cluster: Cluster, check_mode: bool, limit: float, clock: Clock, pause: typing.Callable[[float], None]
    ) -> None:
        self._cluster, self._check_mode = cluster, check_mode
        self._outcomes: list[Outcome] = []
        self._stays: list[RetainedObject] = []
        self._waits = Waits(limit, clock, pause)

    def show(self) -> Removed:
        """Return the objects of ours that stay.

        :raises ApiError: it cannot be read
        """
        found = self._subscriptions() if self._cluster.serves(GROUP) else []
        why = "the operator is not taken back, unless teardown_operator is set"
        return Removed(
            (),
            tuple(RetainedObject(f"Subscription {item.place}", why) for item in found),
            tuple(sorted({item.namespace for item in found})),
        )

    def run(self) -> Removed:
        """Take all of it back. A refusal is an outcome, and keeps what depends on it.

        :raises ApiError: it cannot be read
        """
        if not self._cluster.serves(GROUP):
            return Removed()
        left = [item for item in self._subscriptions() if not self._operator(item)]
        self._groups()
        return Removed(tuple(self._outcomes), tuple(self._stays), tuple(sorted({item.namespace for item in left})))

    def _installed(self, kind: str) -> tuple[Resource, ...]:
        """All of a kind of OLM, but for Subscriptions by which OLM installs nothing: a tenant makes any number of them.

        :raises ApiError: they cannot be read
        """
        if kind != "Subscription":
            return self._cluster.list(kind, selector=ORIGINALS if kind == "ClusterServiceVersion" else "").items
        others = (*self._installed("OperatorGroup"), *self._installed("ClusterServiceVersion"))
        spaces = {str(mapping_at(item, "metadata").get("namespace", "")) for item in others}
        return self._cluster.list(kind, only=of_namespaces(_USUAL | spaces)).items

    def _subscriptions(self) -> list[Subscription]:
        found = map(olm.subscription, self._installed("Subscription"))
        return sorted(
            (item for item in found if item.ours), key=lambda item: (item.namespace not in _USUAL, item.place)
        )

    def _operator(self, subscription: Subscription) -> bool:
        """Return whether an operator is gone."""
        space = subscription.namespace
        versions = list(map(olm.service_version, self._installed("ClusterServiceVersion")))
        mine = [
            item
            for item in versions
            if item.namespace == space and item.name in (subscription.installed, subscription.current)
        ]
        definitions = self._definitions(subscription, mine, versions)
        for definition in definitions:
            if not self._objects(definition):
                self._stays.append(
                    RetainedObject(
                        f"operator {subscription.package}",
                        "objects of ours that it has to let go of are left; run the teardown again",
                    )
                )
                return False
        for version in mine:
            if not self._delete("ClusterServiceVersion", space, version.name):
                return False
            # what runs goes with it, a moment later
            for name in version.deployments:
                self._await("Deployment", space, name)
        if not self._delete("Subscription", space, subscription.name):
            return False
        kept = [name_of(definition) for definition in definitions if not self._definition(definition)]
        self._record(f"{subscription.package}.{space}", kept)
        return True

    def _record(self, name: str, kept: typing.Sequence[str]) -> None:
        """OLM lists what belongs to an operator in an object Operator, leaves it behind, and makes it anew while there
        is anything to list."""
        try:
            there = self._find("Operator", "", name) is not None
        except ApiError as error:
            if not error.absent:
                self._stays.append(
                    RetainedObject(
                        f"Operator {name}", f"whether OLM has left it behind could not be read: {error.text}"
                    )
                )
            return
        if there and kept:
            self._stays.append(
                RetainedObject(
                    f"Operator {name}",
                    f"OLM keeps it while something of the operator is there: CustomResourceDefinition {kept[0]}",
                )
            )
        elif there:
            self._delete("Operator", "", name, stays=True)

    def _definitions(
        self,
        subscription: Subscription,
        mine: typing.Sequence[ServiceVersion],
        versions: typing.Sequence[ServiceVersion],
    ) -> list[Resource]:
        """Return those that the operator brought, also where its ClusterServiceVersion is gone already, and that no
        other one owns."""
        label = f"operators.coreos.com/{subscription.package}.{subscription.namespace}"
        owned = {name for version in mine for name in version.definitions}
        others = {name for version in versions if version not in mine for name in version.definitions}
        found = self._cluster.list("CustomResourceDefinition").items
        return [
            item
            for item in found
            if (name_of(item) in owned or label in labels_of(item)) and name_of(item) not in others
        ]

    def _instances(self, definition: Resource) -> tuple[Kind, tuple[Resource, ...]]:
        kind = kind_of_definition(definition)
        try:
            return kind, self._cluster.list(kind).items
        except ApiError as error:
            if error.absent:
                return kind, ()
            raise

    def _objects(self, definition: Resource) -> bool:
        """Take back our objects of a kind; whether none of them is left."""
        kind, items = self._instances(definition)
        gone = True
        for item in items:
            # what an operator made of one of ours goes with its owner
            if ours(item) and not mapping_at(item, "metadata").get("ownerReferences"):
                gone = (
                    self._delete(kind, str(item["metadata"].get("namespace", "")), name_of(item), str(item.get("kind")))
                    and gone
                )
        return gone

    def _definition(self, definition: Resource) -> bool:
        """Delete one without objects; whether it is gone."""
        name = name_of(definition)
        subject = f"CustomResourceDefinition {name}"
        try:
            _kind, items = self._instances(definition)
        except ApiError as error:
            self._stays.append(
                RetainedObject(subject, f"whether there are objects of it could not be read: {error.text}")
            )
            return False
        left = [item for item in items if not self._check_mode or not ours(item)]
        if left:
            names = folded([name_of(item) for item in left], _NAMED)
            self._stays.append(RetainedObject(subject, f"{len(left)} objects of it are not the collection's: {names}"))
        elif _MADE_BY_OLM not in labels_of(definition).items() and not any(
            key.startswith("operators.coreos.com/") for key in labels_of(definition)
        ):
            self._stays.append(RetainedObject(subject, "it was there before OLM installed the operator"))
        else:
            return self._delete("CustomResourceDefinition", "", name, stays=True)
        return False

    def _groups(self) -> None:
        """Those of ours in which nothing is left that needs one."""
        gone = {
            (outcome.applied.kind, outcome.applied.namespace, outcome.applied.name)
            for outcome in self._outcomes
            if outcome.changed
        }
        left = [*self._installed("Subscription"), *self._installed("ClusterServiceVersion")]
        used = {
            str(item["metadata"].get("namespace", ""))
            for item in left
            if (item["kind"], item["metadata"].get("namespace", ""), name_of(item)) not in gone
        }
        for group in map(olm.operator_group, self._installed("OperatorGroup")):
            if group.ours and group.namespace in used:
                self._stays.append(
                    RetainedObject(
                        f"OperatorGroup {group.namespace}/{group.name}", "other operators are in its namespace"
                    )
                )
            elif group.ours:
                self._delete("OperatorGroup", group.namespace, group.name)

    def _delete(self, kind: Kind, namespace: str, name: str, shown: str = "", stays: bool = False) -> bool:
        """Delete an object and wait until it is gone; whether it is.

        :param shown: name of the kind, where ``kind`` is none
        :param stays: what cannot be deleted is told, and is no failure
        """
        applied = AppliedObject(shown or str(kind), name, namespace)
        before: typing.Optional[Resource] = None
        try:
            before = self._find(kind, namespace, name)
            only = {"uid": before["metadata"]["uid"]} if before is not None else None
            there = before is not None and self._cluster.delete(
                kind, namespace, name, dry_run=self._check_mode, only=only
            )
            left = self._await(kind, namespace, name) if there else None
        except ApiError as error:
            if error.status == 0:
                raise
            left, applied = (
                None,
                dataclasses.replace(applied, action="refused", reason=error.reason, refusal=error.text),
            )
            if stays:
                self._stays.append(
                    RetainedObject(f"{applied.kind} {name}", f"the API server refuses to delete it: {error.text}")
                )
                return False
        else:
            applied = dataclasses.replace(applied, action="deleted" if there else "absent")
        if left is not None:
            held = ", ".join(left["metadata"].get("finalizers") or []) or "none"
            applied = dataclasses.replace(
                applied,
                action="refused",
                reason="Remains",
                refusal=f"still there after its deletion; finalizers: {held}",
            )
        self._outcomes.append(Outcome(applied, stable(before) if before is not None else None))
        return applied.action != "refused"

    def _find(self, kind: Kind, namespace: str, name: str) -> typing.Optional[Resource]:
        found = (item for item in self._cluster.list(kind, namespace, fields=f"metadata.name={name}").items)
        return next((item for item in found if name_of(item) == name), None)

    def _await(self, kind: Kind, namespace: str, name: str) -> typing.Optional[Resource]:
        """None once it is gone; in check mode nothing goes."""
        return None if self._check_mode else self._waits.await_gone(lambda: self._find(kind, namespace, name))
