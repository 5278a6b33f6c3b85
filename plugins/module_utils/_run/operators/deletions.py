# SPDX-License-Identifier: GPL-3.0-or-later

"""Deletes single objects of the cluster, waits until they are gone, and collects the outcomes."""

from __future__ import annotations

import dataclasses
import typing

from ..._model.kubernetes.apply import AppliedObject
from ..._model.operators.olm import RetainedObject
from ..._observe.kubernetes.client import Cluster
from ..._observe.kubernetes.errors import ApiError
from ..._observe.kubernetes.kinds import Kind, Resource
from ..._observe.kubernetes.outcome import Outcome, strip_volatile
from ..._observe.kubernetes.removal.remove import Waits
from ..._observe.kubernetes.shell import Clock
from ..._parse.kubernetes.resource import mapping_at, name_of


class Deletions:
    """A client that deletes objects, and collects what became of them.

    :param cluster: client of the API server
    :param check_mode: whether to only let the API server check the deletions
    :param limit: longest duration of one wait, in seconds. All waits together may take twice as long
    :param clock: function that returns the time of a monotonic clock, in seconds
    :param pause: function that sleeps for a number of seconds

    :ivar outcomes: outcome of each object that was removed, or whose removal was refused
    :ivar stays: objects that remain, each with the reason
    """

    def __init__(
        self, cluster: Cluster, check_mode: bool, limit: float, clock: Clock, pause: typing.Callable[[float], None]
    ) -> None:
        self._cluster, self._check_mode = cluster, check_mode
        self.outcomes: list[Outcome] = []
        self.stays: list[RetainedObject] = []
        self._waits = Waits(limit, clock, pause)

    def list_changed(self) -> set[tuple[str, str, str]]:
        """Return the kind, namespace and name of each object that was removed or, in check mode, would be removed."""
        return {
            (outcome.applied.kind, outcome.applied.namespace, outcome.applied.name)
            for outcome in self.outcomes
            if outcome.changed
        }

    def delete(self, kind: Kind, namespace: str, name: str, uid: str, shown: str = "", stays: bool = False) -> bool:
        """Delete an object, wait until it is gone, and record the outcome. Return False if the API server refused the
        deletion or the object still exists after the wait. A missing object counts as gone.

        :param kind: name of the kind, or its API path, plural and scope
        :param namespace: namespace of the object; empty for a cluster-scoped object
        :param uid: uid of the object, as read when its owner was judged. Another object of its name counts as absent
        :param shown: name of the kind for the outcome, if ``kind`` is not a name
        :param stays: whether an object that cannot be deleted is reported as remaining instead of as refused
        """
        applied = AppliedObject(shown or str(kind), name, namespace)
        before: typing.Optional[Resource] = None
        try:
            before = self.find(kind, namespace, name, uid)
            there = before is not None and self._cluster.delete(
                kind, namespace, name, dry_run=self._check_mode, only={"uid": uid}
            )
            left = self.await_deletion(kind, namespace, name, uid) if there else None
        except ApiError as error:
            if error.status == 0:
                raise
            left, applied = (
                None,
                dataclasses.replace(applied, action="refused", reason=error.reason, refusal=error.text),
            )
            if stays:
                self.stays.append(
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
                refusal=f"still exists after its deletion; finalizers: {held}",
            )
        self.outcomes.append(Outcome(applied, strip_volatile(before) if before is not None else None))
        return applied.action != "refused"

    def find(self, kind: Kind, namespace: str, name: str, uid: str = "") -> typing.Optional[Resource]:
        """Return an object as it is now. Return None if it does not exist, or if it has another uid than ``uid``.

        :param namespace: namespace of the object; empty for a cluster-scoped object
        :param uid: uid of the object; empty for any
        """
        found = (item for item in self._cluster.list(kind, namespace, fields=f"metadata.name={name}").items)
        return next((item for item in found if name_of(item) == name and uid in ("", read_uid(item))), None)

    def await_deletion(self, kind: Kind, namespace: str, name: str, uid: str) -> typing.Optional[Resource]:
        """Wait until an object is gone. Return None if it is gone, otherwise the object as it is after the wait. In
        check mode, return None at once.

        :param namespace: namespace of the object; empty for a cluster-scoped object
        :param uid: uid of the object. Another object of this name counts as gone
        """
        if self._check_mode:
            return None
        return self._waits.await_gone(lambda: self.find(kind, namespace, name, uid))


def read_uid(item: Resource) -> str:
    """Return the uid of an object; empty if it has none."""
    return str(mapping_at(item, "metadata").get("uid", ""))
