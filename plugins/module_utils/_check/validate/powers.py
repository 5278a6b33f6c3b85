# SPDX-License-Identifier: GPL-3.0-or-later

"""List the files of docs/rbac whose rights the intent needs, so that a user can request them in advance. Check id:
``validate.powers``.
"""

from __future__ import annotations

import typing

from ..._model.intent.intent import Intent
from ..._model.kubernetes import powers
from ..._model.kubernetes.rights_needed import needed_powers
from ..._model.run.findings import Finding, build_pass

#: what variables, the inventory or the cluster decide on, and the intent does not
_ELSEWHERE = (
    powers.OBSERVERS,
    powers.ADMISSION,
    powers.NAMESPACES,
    powers.JOBS,
    powers.OLM,
    powers.OLM_REMOVAL,
    powers.HELM,
)


def check(intent: Intent) -> typing.Iterator[Finding]:
    """Yield a pass for each file of docs/rbac that may be needed, with the rights that it grants and the reason. Files
    that the intent needs come first, then those that only variables, the inventory or the cluster may require.
    """
    for power in needed_powers(intent):
        yield _make_power_finding(power, "required by the current intent")
    for power in powers.get_powers(_ELSEWHERE):
        yield _make_power_finding(power, f"only for: {power.when}")


def _make_power_finding(power: powers.Power, when: str) -> Finding:
    equals = f"equals {power.equals}: {power.why}" if power.equals else f"less than root: {power.why}"
    return build_pass("validate.powers", power.path, when, equals)
