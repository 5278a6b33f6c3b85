# SPDX-License-Identifier: GPL-3.0-or-later

"""The rights on the API server that the kubeconfig's user needs or lacks. The list of needed rights is created by
rights_needed.py and queried by _observe/kubernetes/rights.py.
"""

from __future__ import annotations

import dataclasses

#: the kind of a right to all kinds
ANYTHING = "*"


@dataclasses.dataclass(frozen=True)
class Right:
    """A permission for one kind of request to the API server: a verb on a kind of object.

    :ivar need: stage that needs it; ``teardown``, ``namespaces`` if the collection creates one, or ``jobs`` if it
        submits one
    :ivar verb: get, list, watch, create, patch, update or delete
    :ivar kind: kind of the object: ``Node``, or with its API group ``IPPool.nv-ipam.nvidia.com`` if several groups have
        the kind
    :ivar namespace: namespace of the objects; empty for all namespaces, and for kinds without one
    :ivar subresource: subresource such as ``status``; empty for the object itself
    :ivar name: name of the object; empty for all
    :ivar power: name of its set of rights in powers.py
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
    """A right that the user needs and does not have.

    :ivar need: stage or action that needs the right
    :ivar text: the right in RBAC terms: ``patch sriovnetworks.sriovnetwork.openshift.io in sriov-network-operator``
    :ivar power: set of rights that contains it; empty in facts of an older release
    """

    need: str
    text: str
    power: str = ""


@dataclasses.dataclass(frozen=True)
class RightsFacts:
    """The needed rights that the user of the kubeconfig lacks (access_info).

    :ivar asked: number of rights that were queried
    :ivar denied: the missing rights
    """

    asked: int
    denied: tuple[Denied, ...] = ()
