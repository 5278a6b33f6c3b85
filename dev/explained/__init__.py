# SPDX-License-Identifier: GPL-3.0-or-later

"""Explanations of all findings, by the name of their page: a file for each stage. ``python -m dev.findings`` generates
docs/findings from them. They are no part of the collection: no plugin imports them.
"""

from __future__ import annotations

from . import (
    bandwidth,
    collectives,
    compare,
    discover,
    fabric,
    frame,
    host,
    job,
    network,
    operators,
    platform,
    reachability,
    training,
    tuning,
    validate,
    virtual_functions,
)
from .explanation import Explanation

EXPLAINED: dict[str, Explanation] = {
    **validate.EXPLAINED,
    **discover.EXPLAINED,
    **fabric.EXPLAINED,
    **reachability.EXPLAINED,
    **platform.EXPLAINED,
    **tuning.EXPLAINED,
    **operators.EXPLAINED,
    **network.EXPLAINED,
    **virtual_functions.EXPLAINED,
    **host.EXPLAINED,
    **bandwidth.EXPLAINED,
    **collectives.EXPLAINED,
    **compare.EXPLAINED,
    **training.EXPLAINED,
    **job.EXPLAINED,
    **frame.EXPLAINED,
}
