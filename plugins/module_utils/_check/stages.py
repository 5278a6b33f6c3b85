# SPDX-License-Identifier: GPL-3.0-or-later

"""The table of the stages: the class of their facts and their check.

The imports are static on purpose: Ansible packs a module by reading its imports.
"""

from __future__ import annotations

import functools
import typing

from .._model.base.load_exactly import read_hints
from .._model.intent.intent import Intent
from .._model.run.findings import Finding
from .bandwidth import check as bandwidth
from .bandwidth import facts as bandwidth_facts
from .collectives import check as collectives
from .compare import check as compare
from .discover import check as discover
from .fabric import check as fabric
from .host import check as host
from .network import check as network
from .network import facts as network_facts
from .operators import check as operators
from .platform import check as platform
from .reachability import check as reachability
from .sources import SOURCES, OfListedNodes, OfNodes
from .training import check as training
from .tuning import check as tuning
from .validate import check as validate
from .virtual_functions import check as virtual_functions

Check = typing.Callable[[Intent, typing.Any], tuple[Finding, ...]]

#: stage: (class of its facts, its check)
TABLE: dict[str, tuple[typing.Any, Check]] = {
    "validate": (validate.Facts, validate.check),
    "discover": (discover.Facts, discover.check),
    "fabric": (fabric.Facts, fabric.check),
    "reachability": (reachability.Facts, reachability.check),
    "platform": (platform.Facts, platform.check),
    "tuning": (tuning.Facts, tuning.check),
    "operators": (operators.Facts, operators.check),
    "network": (network_facts.Facts, network.check),
    "virtual_functions": (virtual_functions.Facts, virtual_functions.check),
    "host": (host.Facts, host.check),
    "bandwidth": (bandwidth_facts.Facts, bandwidth.check),
    "collectives": (collectives.Facts, collectives.check),
    "compare": (compare.Facts, compare.check),
    "training": (training.Facts, training.check),
}


@functools.cache
def find_form(kind: str) -> typing.Any:
    """Return the type to load for a kind of node fact, such as ``Observed[NodeHcas]``. Return None if no stage uses the
    whole fact.

    :param kind: kind of the fact, such as ``hcas``
    """
    for stage, (facts, _check) in TABLE.items():
        for field, source in SOURCES[stage].items():
            if isinstance(source, (OfNodes, OfListedNodes)) and source.kind == kind and not getattr(source, "key", ""):
                return typing.get_args(read_hints(facts)[field])[1]
    return None
