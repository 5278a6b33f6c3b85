# SPDX-License-Identifier: GPL-3.0-or-later

"""Check that the user of the kubeconfig has the rights that the stages need. Check id: ``operators.rights``."""

from __future__ import annotations

import typing

from ..._model.kubernetes.powers import FOLDER, command
from ..._model.kubernetes.rights import RightsFacts
from ..._model.run.findings import FAIL, UNKNOWN, WARN, Finding, ok

#: what no stage needs: its subject, and what it is for
_BESIDE = {
    "jobs": ("training jobs", "Needed only to submit what render_job and render_nic_map write."),
    "namespaces": (
        "namespaces of the jobs",
        "Needed only where the namespace is not there, or is the collection's own.",
    ),
    "settle": ("bringing nodes to what is wanted", "Needed only with platform_settle: true."),
    "teardown": ("teardown", "Needed only to take everything back."),
}


def check(seen: typing.Optional[RightsFacts]) -> tuple[Finding, ...]:
    """Return a finding for each stage with missing rights, or a single pass. Return a single finding of status unknown
    if the API server was not queried.
    """
    expected = f"all rights of {FOLDER} that the intent needs"
    if seen is None or not seen.asked:
        why = "The API server was not asked what the user of the kubeconfig may do."
        return (Finding("operators.rights", "kubeconfig", UNKNOWN, "not asked", expected, why, "Run the stage again."),)
    findings = []
    for need in dict.fromkeys(denied.need for denied in seen.denied):
        lacking = [denied for denied in seen.denied if denied.need == need]
        texts, powers = [denied.text for denied in lacking], {denied.power for denied in lacking if denied.power}
        why = "The API server would refuse it half-way, so nothing is begun."
        status: typing.Literal["fail", "warn"] = FAIL
        subject, beside = _BESIDE.get(need, (f"stage {need}", ""))
        if beside:
            status, why = WARN, beside
        remedy = (
            f"Have an admin of the cluster apply it: {command(powers)}; kubectl auth can-i"
            f" {texts[0].replace(' in ', ' -n ')} shows whether it is enough."
        )
        findings.append(
            Finding("operators.rights", subject, status, f"may not: {'; '.join(texts)}", expected, why, remedy)
        )
    return tuple(findings) or (ok("operators.rights", "kubeconfig", f"{seen.asked} rights, all there", expected),)
