# SPDX-License-Identifier: GPL-3.0-or-later

"""The software and API access of the controller for the stages that use the API server. Created by
_ansible/controller.py, judged by _check/validate/controller.py.
"""

from __future__ import annotations

import dataclasses
import typing

from .rights import RightsFacts


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
