# SPDX-License-Identifier: GPL-3.0-or-later

"""Decide which findings the changes of a run can resolve. In check mode nothing is changed: findings that the changes
would resolve are pending, and all remaining findings count as in any run.
"""

from __future__ import annotations

import typing

from .._model.operators.sriov_operator import NO_OPERATOR
from .._model.run.findings import FAIL, UNKNOWN, Finding

_MADE = ("platform", "operators", "network", "virtual_functions")
_ALL = ("platform", "tuning", "operators", "network", "virtual_functions", "host", "bandwidth")

#: by stage of the finding, the stages whose changes may be what it lacks
_BY: typing.Mapping[str, tuple[str, ...]] = {
    "platform": ("platform",),
    "tuning": ("platform", "tuning"),
    "operators": ("operators",),
    "network": ("platform", "operators", "network"),
    "virtual_functions": _MADE,
    "host": (*_MADE, "host"),
    "bandwidth": _ALL,
    "collectives": _ALL,
    "compare": _ALL,
    "training": _ALL,
}
#: stages that measure by pods of their own, which check mode does not start
_MEASURED = ("bandwidth", "collectives", "compare")
#: nothing that a run makes mends these: rights, machines, cables, what others own
NEVER = (
    "platform.bmc_identity",
    "platform.driver",
    "platform.node",
    "platform.scope",
    "tuning.kubelet",
    "tuning.node",
    "operators.machine",
    "operators.mirror",
    "operators.node",
    "operators.read",
    "operators.rights",
    "operators.single",
    "virtual_functions.machine",
    "virtual_functions.node",
    "bandwidth.cleanup",
    "bandwidth.link",
    "collectives.cleanup",
)
#: where they fail, what is there contradicts the intent, or the API server has said no; unknown, they may wait for what
#: would be made
KNOWN = (
    "network.address_overlap",
    "network.attachment_accepted",
    "network.disruption",
    "network.drain",
    "network.lint_overlap",
    "network.lint_policy",
    "network.lint_select",
    "network.namespace_accepted",
    "network.object_accepted",
    "network.policy_accepted",
)


def is_left_unmeasured(finding: Finding) -> bool:
    """Return whether a finding of a run in check mode is unknown because check mode starts no measuring pods.

    A run without check mode decides such a finding, whether or not that run changes anything else.
    """
    return finding.status == UNKNOWN and finding.check.partition(".")[0] in _MEASURED and finding.check not in NEVER


def may_resolve(finding: Finding, changed: typing.Collection[str]) -> bool:
    """Return whether the changes that some stages would make may resolve a finding.

    Any change may resolve the finding that a stage did not run.

    :param changed: stages that would change something
    """
    stage, _dot, what = finding.check.partition(".")
    if what == "run":
        return bool(changed)
    never = finding.check in NEVER and (finding.check, finding.measured) != ("operators.single", NO_OPERATOR)
    if what == "intent" or never or (finding.check in KNOWN and finding.status == FAIL):
        return False
    return not set(_BY.get(stage, ())).isdisjoint(changed)
