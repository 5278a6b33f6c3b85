# SPDX-License-Identifier: GPL-3.0-or-later

"""The means of the controller for the stages that ask the API server. Filled by _ansible/controller.py, judged by
_check/validate/controller.py."""

from __future__ import annotations

import dataclasses
import typing

from .rights import RightsFacts


@dataclasses.dataclass(frozen=True)
class HelmFacts:
    """:ivar binary: as it was named
    :ivar version: as it says, without the v; empty where it says none
    :ivar error: why it says none
    """

    binary: str
    version: str = ""
    error: str = ""


@dataclasses.dataclass(frozen=True)
class ControllerFacts:
    """Answer of controller_info.

    :ivar python: that modules on localhost run with
    :ivar stages: of this invocation that ask the API server, in their order
    :ivar library: version of the Python library kubernetes; empty where it is not there
    :ivar where: what leads to the API server, without a secret
    :ivar named: whether anything names an API server: the environment, a variable, a kubeconfig that is there
    :ivar server: version of the API server; empty where it gave no answer
    :ivar error: why it gave none, and ``remedy``, what to do
    :ivar rights: what the user may do; None where nobody could ask
    :ivar rights_error: why nobody could
    :ivar helm: None where it is not needed
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
