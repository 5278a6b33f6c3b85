# SPDX-License-Identifier: GPL-3.0-or-later

"""Decide which findings the changes of a run can resolve. In check mode nothing is changed: findings that the changes
would resolve are pending, and all remaining findings count as in any run.
"""

from __future__ import annotations

import typing

from .._model.node.tuning_rows.row import TuningRow
from .._model.node.tuning_rows.table import ROWS
from .._model.operators.drivers import LABEL_ABSENT
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
#: checks that only changes of these stages may resolve, whatever the other stages of ``_BY`` change
BY_CHECK: typing.Mapping[str, tuple[str, ...]] = {
    # each value of PCI is set by the kernel, the BIOS or the firmware
    "tuning.pci": ("platform",),
    # virtual functions and link types of the firmware; what an operator of another release accepts
    "network.lint_functions": ("platform", "operators"),
    "network.lint_link": ("platform", "operators"),
    "network.lint_operator": ("operators",),
    "network.lint_rdma": ("platform", "operators"),
    "network.lint_read": ("operators",),
    "host.gpudirect": ("operators", "host"),
}
#: tuning rows that kernel arguments, the BIOS or the firmware of HCAs decide, which stage platform sets
BY_PLATFORM = (
    *("acs", "cpu_driver", "hugepages", "idle_arguments", "iommu", "isolated", "max_payload", "nohz_full"),
    *("numa_cpus", "pci_realloc", "rdma_shared", "relaxed_ordering", "relaxed_ordering_root", "smt", "turbo"),
)
#: the row that has the profile of TuneD, which a Tuned of stage tuning replaces
_PROFILE = "tuned"
#: begin of a line of changes: kind and name of a Tuned
_TUNED = "Tuned "
#: stages that measure by pods of their own, which check mode does not start
_MEASURED = ("bandwidth", "collectives", "compare")
#: nothing that a run makes mends these: rights, machines, cables, what others own
NEVER = (
    "platform.bmc_identity",
    "platform.driver",
    "platform.node",
    "platform.scope",
    "tuning.gpu",
    "tuning.kubelet",
    "tuning.node",
    "tuning.nvlink_domain",
    "tuning.roce",
    "operators.image",
    "operators.machine",
    "operators.mirror",
    "operators.node",
    "operators.read",
    "operators.resource_prefix",
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
    "operators.driver",
    "operators.driver_kernels",
    "network.address_overlap",
    "network.address_pool",
    "network.addresses",
    "network.attachment_accepted",
    "network.disruption",
    "network.drain",
    "network.lint_overlap",
    "network.lint_policy",
    "network.lint_select",
    "network.lint_uplink",
    "network.namespace_accepted",
    "network.object_accepted",
    "network.policy_accepted",
)


def is_left_unmeasured(finding: Finding) -> bool:
    """Return whether a finding of a run in check mode is unknown because check mode starts no measuring pods.

    A run without check mode decides such a finding, whether or not that run changes anything else.
    """
    return finding.status == UNKNOWN and finding.check.partition(".")[0] in _MEASURED and finding.check not in NEVER


def may_resolve(
    finding: Finding, changed: typing.Collection[str], lines: typing.Optional[typing.Sequence[str]] = None
) -> bool:
    """Return whether the changes that some stages would make may resolve a finding.

    Any change may resolve the finding that a stage did not run.

    :param changed: stages that would change something
    :param lines: changes of the stage of the finding, one text each; None if they are not known
    """
    stage, _dot, what = finding.check.partition(".")
    if what == "run":
        return bool(changed)
    if what == "intent" or _is_never_resolved(finding):
        return False
    able = set(BY_CHECK.get(finding.check, _BY.get(stage, ()))).intersection(changed)
    rows = [row for row in ROWS if stage == "tuning" and row.check == what and row.name in finding.subject.split()]
    return any(all(_may_set(row, one, lines) for row in rows) for one in able)


def _is_never_resolved(finding: Finding) -> bool:
    """Return whether no change of a run resolves a finding."""
    if finding.check == "operators.single":
        return finding.measured != NO_OPERATOR
    if finding.check == "operators.driver" and finding.measured.startswith(LABEL_ABSENT):
        return False  # node feature discovery writes the labels, and stage operators installs it
    return finding.check in NEVER or (finding.check in KNOWN and finding.status == FAIL)


def _may_set(row: TuningRow, stage: str, lines: typing.Optional[typing.Sequence[str]]) -> bool:
    """Return whether the changes of a stage may bring a tuning row to its expected value.

    :param stage: platform or tuning
    :param lines: changes of stage tuning, one text each; None if they are not known
    """
    if stage == "platform":
        return row.name in BY_PLATFORM
    if lines is None or any(_TUNED in line for line in lines):
        return row.setting is not None or row.name == _PROFILE
    if row.setting is None:
        return False
    if row.setting.section == "sysctl":
        return any(line.startswith(f"sysctl {row.setting.key}:") for line in lines)
    return any(not line.startswith("sysctl ") for line in lines)
