# SPDX-License-Identifier: GPL-3.0-or-later

"""The software and API access of the controller for the stages that use the API server. Created by
_ansible/controller.py, judged by _check/validate/controller.py.
"""

from __future__ import annotations

import dataclasses
import typing

from ..boundary.kubernetes import Subdomain
from ..boundary.numbers import Bytes, Counter
from .rights import RightsFacts


@dataclasses.dataclass(frozen=True)
class NodeRoom:
    """The CPU and the memory of a node, and how much of them pods request.

    :ivar node: name of the node
    :ivar cpu: allocatable CPU in thousandths of a CPU; None if the node reports no valid value
    :ivar memory: allocatable memory in bytes; None if the node reports no valid value
    :ivar cpu_kept: CPU that pods of DaemonSets and static pods request, which stay on the node
    :ivar memory_kept: memory that these pods request
    :ivar cpu_moving: CPU that all other pods request, which may end or move to another node
    :ivar memory_moving: memory that these pods request
    """

    ONCE = ("node",)

    node: Subdomain
    cpu: typing.Optional[Counter] = None
    memory: typing.Optional[Bytes] = None
    cpu_kept: Counter = 0
    memory_kept: Bytes = 0
    cpu_moving: Counter = 0
    memory_moving: Bytes = 0


@dataclasses.dataclass(frozen=True)
class HelmFacts:
    """The Helm binary of the controller, with its version or the reason why the version is not known.

    :ivar binary: name or path as configured
    :ivar version: version of the binary, without the v; empty if it was not printed
    :ivar error: why it was not printed
    """

    binary: str
    version: str = ""
    error: str = ""


@dataclasses.dataclass(frozen=True)
class ControllerFacts:
    """The software and the API access of the controller, as the module controller_info found them.

    :ivar python: interpreter of modules on localhost
    :ivar stages: stages of this invocation that use the API server, in order
    :ivar library: version of the Python library kubernetes; empty if it is not installed
    :ivar where: origin of the API server's address and credentials, without a secret
    :ivar named: whether an API server is configured: by the environment, a variable, or an existing kubeconfig
    :ivar server: version of the API server; empty if it did not answer
    :ivar error: why the API server did not answer; empty if it did
    :ivar remedy: instruction that resolves ``error``
    :ivar rights: rights of the user; None if they could not be queried
    :ivar rights_error: why the rights could not be queried; empty if they could
    :ivar helm: Helm on the controller; None if Helm is not needed
    :ivar room: CPU and memory of each node; None if they could not be read
    :ivar room_error: why they could not be read; empty if they could
    """

    python: str
    stages: tuple[str, ...] = ()
    library: str = ""
    where: str = ""
    named: bool = False
    server: str = ""
    error: str = ""
    remedy: str = ""
    rights: typing.Optional[RightsFacts] = None
    rights_error: str = ""
    helm: typing.Optional[HelmFacts] = None
    room: typing.Optional[tuple[NodeRoom, ...]] = None
    room_error: str = ""
