# SPDX-License-Identifier: GPL-3.0-or-later

"""What became of the objects that were to be applied, and what an earlier intent left."""

from __future__ import annotations

import dataclasses

#: reasons for which a namespace of the collection stays: objects of others are in it, or nobody knows
FOREIGN, UNREAD = "Foreign", "Unread"
#: actions of an object that the API server took
TAKEN = ("created", "changed", "unchanged")


@dataclasses.dataclass(frozen=True)
class AppliedObject:
    """The outcome of one object that was to be applied.

    :ivar fabric: which the object belongs to; empty for what fabrics share
    :ivar action: created, changed, unchanged, deleted, absent or refused; unjudged in check mode, when what the object
        needs would be made first
    :ivar refusal: text of the API server or its webhook
    :ivar reason: of the API's Status: Forbidden, Invalid, NotFound..., or one of the collection's own
    :ivar warnings: that the API server sent along
    """

    kind: str
    name: str
    namespace: str = ""
    fabric: str = ""
    action: str = ""
    refusal: str = ""
    reason: str = ""
    warnings: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Leftovers:
    """Objects with the collection's label that are not among those which were to be applied.

    :ivar errors: what could not be listed, and why
    """

    objects: tuple[AppliedObject, ...] = ()
    errors: tuple[str, ...] = ()
