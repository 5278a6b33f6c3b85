# SPDX-License-Identifier: GPL-3.0-or-later

"""The results of applying objects, and objects that an earlier intent left."""

from __future__ import annotations

import dataclasses
import typing

from ..boundary.form import Bound
from ..boundary.numbers import MOST_KINDS, Count

#: reasons for which a namespace of the collection stays: objects of others are in it, or nobody knows
FOREIGN, UNREAD = "Foreign", "Unread"
#: beginning of the steps in the message about a foreign object that differs from the rendered one
FOREIGN_STEPS = " Use another name, delete it, or"
#: action of an object that a removal leaves on purpose, and its reason: a user copied it with the label
KEPT, COPIED = "kept", "Copied"
#: reason of an object with the label that is not proven to belong to the intent
OTHER_INTENT = "OtherIntent"
#: reason of a policy that is not applied, because the SriovNetworkPoolConfig in the cluster is not that of the plan
OTHER_POOL = "OtherPool"
#: reason of a leftover NicConfigurationTemplate of the intent that selects HCAs by model and PCI address
BY_ADDRESS = "ByAddress"
#: actions of an object that the API server took
TAKEN = ("created", "changed", "unchanged")
#: objects of a kind whose removal is reported one by one, and of all kinds; a site has some hundred
MOST_OF_KIND, MOST_REMOVED = 4096, 131_072
#: leftovers of a kind in a namespace that are kept, and of all; a tenant may label any number of objects
MOST_LEFT_ALIKE, MOST_LEFT = 128, 16_384


@dataclasses.dataclass(frozen=True)
class AppliedObject:
    """The result of applying or deleting one Kubernetes object.

    :ivar fabric: fabric to which the object belongs; empty for an object that fabrics share
    :ivar action: created, changed, unchanged, deleted, absent, kept or refused; unjudged in check mode, if it depends
        on an object that would be created first
    :ivar refusal: text of the API server or its webhook
    :ivar reason: reason of the API's Status: Forbidden, Invalid, NotFound..., or one of the collection's own
    :ivar warnings: warnings of the API server
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
    """Objects with the collection's label that the current intent does not contain.

    :ivar objects: the objects, which are still in the cluster
    :ivar errors: kinds that could not be listed, with the reason
    :ivar more: number of further objects, which are not in ``objects``
    """

    objects: typing.Annotated[tuple[AppliedObject, ...], Bound("objects", MOST_LEFT)] = ()
    errors: typing.Annotated[tuple[str, ...], Bound("kinds", MOST_KINDS)] = ()
    more: Count = 0
