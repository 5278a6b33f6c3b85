# SPDX-License-Identifier: GPL-3.0-or-later

"""Check that the user of the kubeconfig has the rights that the stages need. Check id: ``operators.rights``."""

from __future__ import annotations

import typing

from ..._model.kubernetes.powers import FOLDER, describe_grant
from ..._model.kubernetes.rights import RightsFacts
from ..._model.run.findings import FAIL, UNKNOWN, WARN, Finding, build_pass

#: what no stage needs: its subject, and what it is for
_BESIDE = {
    "jobs": ("training jobs", "These rights are needed only to submit the output of render_job and render_nic_map."),
    "namespaces": (
        "namespaces of the jobs",
        "These rights are needed only if the namespace does not exist, or if linerate.rdma created it.",
    ),
    "settle": ("changes of the nodes", "These rights are needed only with platform_settle: true."),
    "teardown": ("teardown", "These rights are needed only for a teardown."),
}


def _describe_grant(powers: typing.Collection[str]) -> str:
    """Return the instruction that grants these sets of rights, without a period.

    If no set is named, as in facts of an older release, return a command with a placeholder for the file.

    :param powers: names of the sets of rights
    """
    if powers:
        return describe_grant(powers)
    return (
        "As an admin of the cluster, run kubectl apply -f docs/rbac/FILE with the file that docs/rbac/README.md names"
        " for this right"
    )


def check(seen: typing.Optional[RightsFacts]) -> tuple[Finding, ...]:
    """Return a finding for each stage with missing rights, or a single pass. Return a single finding of status unknown
    if the API server was not queried.

    :param seen: answer of access_info; None if the API server was not queried
    """
    expected = f"all rights of {FOLDER} that the intent needs"
    if seen is None or not seen.asked:
        why = "The run ended before it asked the API server for the rights of the user of the kubeconfig."
        return (
            Finding(
                "operators.rights",
                "kubeconfig",
                UNKNOWN,
                "rights not read",
                expected,
                why,
                "Run kubectl auth whoami. If it fails, correct the variable rdma_kubeconfig. Then run stage operators"
                " again.",
            ),
        )
    findings = []
    for need in dict.fromkeys(denied.need for denied in seen.denied):
        lacking = [denied for denied in seen.denied if denied.need == need]
        texts, powers = [denied.text for denied in lacking], {denied.power for denied in lacking if denied.power}
        why = (
            "The API server would reject requests in the middle of the run, so the run stops before it changes"
            " anything."
        )
        status: typing.Literal["fail", "warn"] = FAIL
        subject, beside = _BESIDE.get(need, (f"stage {need}", ""))
        if beside:
            status, why = WARN, beside
        remedy = (
            f"{_describe_grant(powers)}. To check the result, run kubectl auth can-i"
            f" {texts[0].replace(' in ', ' -n ')} with the kubeconfig of the run. Then run stage operators again."
        )
        findings.append(
            Finding("operators.rights", subject, status, f"missing rights: {'; '.join(texts)}", expected, why, remedy)
        )
    return tuple(findings) or (
        build_pass("operators.rights", "kubeconfig", f"all {seen.asked} rights present", expected),
    )
