# SPDX-License-Identifier: GPL-3.0-or-later

"""Prove while objects are planned that a fabric in the cluster is that of the intent."""

from __future__ import annotations

import dataclasses
import typing

from ..._model.kubernetes.apply import OTHER_INTENT, AppliedObject
from ..._model.kubernetes.host import HOST_KINDS
from ..._model.kubernetes.scope import Scope, explain_other_intent
from ..._model.kubernetes.scope_fields import find_selector
from .kinds import Resource
from .outcome import Outcome

Explain = typing.Callable[[Resource], str]


def explain_nothing(_there: Resource) -> str:
    """Return an empty text: no other intent is known to need the object. This is the default of ``explain_unrecorded``
    in ``apply_all``.
    """
    return ""


class Owners:
    """The evidence whether a fabric in the cluster is of this intent, from the planned outcomes of those objects of the
    fabric that select nodes. Such evidence is needed because two intents with the default name may have fabrics of the
    same name, and a network selects no nodes.
    """

    def __init__(
        self,
        wanted: typing.Iterable[tuple[str, Resource]],
        scope: typing.Optional[Scope] = None,
        explain_unrecorded: Explain = explain_nothing,
    ) -> None:
        """Create the evidence before any object is planned.

        :param wanted: pairs of the name of the fabric and the object. Objects that select nodes come before networks
        :param scope: objects of the intent, as learnt from the cluster; None if not learnt: the name of the intent then
            proves that an object is of this intent, unless it is the default name
        :param explain_unrecorded: function that gets an existing MachineConfig or KubeletConfig that no intent has
            recorded, and returns why another intent may need it; empty if no intent may
        """
        self.scope, self._explain_unrecorded = scope, explain_unrecorded
        self._selecting = {fabric for fabric, item in wanted if find_selector(item["kind"], item) is not None}
        self._accepted: set[str] = set()
        self._refused: dict[str, AppliedObject] = {}

    def add(self, definition: Resource, outcome: Outcome) -> None:
        """Add the planned outcome of an object to the evidence. An object that selects no nodes is ignored.

        :param definition: the rendered object
        """
        applied = outcome.applied
        if find_selector(definition["kind"], definition) is None:
            return
        if applied.reason == OTHER_INTENT:
            self._refused.setdefault(applied.fabric, applied)
        elif outcome.before is not None and applied.action != "refused":
            self._accepted.add(applied.fabric)

    def explain(self, definition: Resource, there: Resource, proven: bool) -> str:
        """Return why an existing object may belong to another intent; empty if nothing indicates this.

        :param definition: the rendered object of the same kind and name
        :param there: the existing object
        :param proven: whether the fabric of the object is proven to be of this intent
        """
        why = explain_other_intent(definition, there, proven, self.scope)
        if why or definition["kind"] not in HOST_KINDS or definition.get("spec") == there.get("spec"):
            return why
        # its nodes reboot, and another intent that needs it could lose a setting
        return self._explain_unrecorded(there)

    def is_proven(self, fabric: str) -> bool:
        """Return whether a fabric is proven to be of this intent: an existing object of it that selects nodes was
        accepted, and none was refused as that of another intent. For a fabric without objects that select nodes, the
        objects of all other fabrics count.

        :param fabric: name of the fabric
        """
        if fabric in self._selecting:
            return fabric in self._accepted and fabric not in self._refused
        return bool(self._accepted) and not self._refused

    def refuse(self, outcome: Outcome) -> Outcome:
        """Return the planned outcome of an object. It becomes a refusal if it would change the object while another
        object of its fabric was refused as that of another intent.
        """
        applied = outcome.applied
        other = self._refused.get(applied.fabric) if applied.fabric else None
        if other is None or not outcome.changed:
            return outcome
        where = f"{other.namespace}/" if other.namespace else ""
        why = (
            f"{other.kind} {where}{other.name} of the same fabric may belong to another intent and was refused, so no"
            f" object of fabric {applied.fabric} is changed. Follow the message about this {other.kind}"
        )
        return Outcome(
            dataclasses.replace(applied, action="refused", reason=OTHER_INTENT, refusal=why),
            outcome.before,
            outcome.before,
        )
