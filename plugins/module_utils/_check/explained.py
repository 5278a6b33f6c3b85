# SPDX-License-Identifier: GPL-3.0-or-later

"""Explanations of all findings, by the name of their page. docs/findings is generated from them (``python -m
dev.findings``); no check reads them.
"""

from __future__ import annotations

from .._model.run.explanation import Explanation
from . import explained_frame as frame
from .bandwidth import explained as bandwidth
from .collectives import explained as collectives
from .compare import explained as compare
from .discover import explained as discover
from .fabric import explained as fabric
from .host import explained as host
from .job import explained as job
from .network import explained as network
from .operators import explained as operators
from .platform import explained as platform
from .reachability import explained as reachability
from .training import explained as training
from .tuning import explained as tuning
from .validate import explained as validate
from .virtual_functions import explained as virtual_functions

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
