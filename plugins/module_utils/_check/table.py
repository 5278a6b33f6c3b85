# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection linerate.rdma: no other code may import this.

"""Which facts and which check belong to which stage.

The imports are static on purpose: Ansible packs a module by reading its imports.
"""

from __future__ import annotations

import typing

from .._model.findings import Finding
from .._model.intent import Intent
from . import validate

Check = typing.Callable[[Intent, typing.Any], typing.Tuple[Finding, ...]]

#: stage: (class of its facts, its check)
TABLE: typing.Dict[str, typing.Tuple[typing.Any, Check]] = {
    "validate": (validate.Facts, validate.check),
}

# until all stages are written: take those that are there
try:
    from . import discover

    TABLE["discover"] = (discover.Facts, discover.check)
except ImportError:
    pass
try:
    from . import fabric

    TABLE["fabric"] = (fabric.Facts, fabric.check)
except ImportError:
    pass
try:
    from . import reachability

    TABLE["reachability"] = (reachability.Facts, reachability.check)
except ImportError:
    pass
try:
    from . import platform

    TABLE["platform"] = (platform.Facts, platform.check)
except ImportError:
    pass
try:
    from . import operators

    TABLE["operators"] = (operators.Facts, operators.check)
except ImportError:
    pass
try:
    from . import network

    TABLE["network"] = (network.Facts, network.check)
except ImportError:
    pass
try:
    from . import virtual_functions

    TABLE["virtual_functions"] = (virtual_functions.Facts, virtual_functions.check)
except ImportError:
    pass
try:
    from . import bandwidth

    TABLE["bandwidth"] = (bandwidth.Facts, bandwidth.check)
except ImportError:
    pass
