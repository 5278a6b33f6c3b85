# SPDX-License-Identifier: GPL-3.0-or-later

"""The rights of the user of the kubeconfig. Made by rights_needed.py, asked by _observe/kubernetes/rights.py."""

from __future__ import annotations

import dataclasses

#: the kind of a right to all kinds
ANYTHING = "*"


@dataclasses.dataclass(frozen=True)
class Right:
    """One thing that the collection does to the API server.

    :ivar need: the stage that does it; ``teardown``, ``namespaces`` where the collection has to make one, or ``jobs``
        where it submits one
    :ivar kind: as _observe/kubernetes/client.py names it
    :ivar namespace: empty for all of them, and for what has none
    :ivar name: of the one object; empty for all
    :ivar power: the row of powers.py that it belongs to
    """

    need: str
    verb: str
    kind: str
    namespace: str = ""
    subresource: str = ""
    name: str = ""
    power: str = ""


@dataclasses.dataclass(frozen=True)
class Denied:
    """:ivar text: the right as RBAC names it: ``patch sriovnetworks.sriovnetwork.openshift.io in
    sriov-network-operator``
    :ivar power: of the right; empty in facts of an older release
    """

    need: str
    text: str
    power: str = ""


@dataclasses.dataclass(frozen=True)
class RightsFacts:
    """Answer of access_info.

    :ivar asked: how many rights the API server was asked about
    """

    asked: int
    denied: tuple[Denied, ...] = ()
