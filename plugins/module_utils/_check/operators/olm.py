# SPDX-License-Identifier: GPL-3.0-or-later

"""Check the progress of the operators that OLM installs. Check id: ``operators.olm``."""

from __future__ import annotations

import typing

from ..._model.base.phrases import format_clause
from ..._model.operators.olm import OlmFacts, OperatorStatus
from ..._model.run.findings import FAIL, UNKNOWN, WARN, Finding, build_pass


def check(seen: typing.Optional[OlmFacts]) -> tuple[Finding, ...]:
    """Check for each operator that OLM was asked to install that the requested version is installed. The result is
    empty if OLM was not used.

    :param seen: answer of the module olm; None if it did not run
    """
    return tuple(map(_check_operator, seen.operators)) if seen is not None else ()


def _check_operator(stand: OperatorStatus) -> Finding:
    subject, expected = f"package {stand.package}", f"{stand.wanted or 'its ClusterServiceVersion'} installed by OLM"
    measured = f"{stand.installed or 'nothing installed'}, {stand.phase}"
    if stand.phase == "planned":
        why = (
            f"In check mode, the run installs nothing. State of the operator: {format_clause(stand.detail, 'unknown')}."
        )
        return Finding(
            "operators.olm",
            subject,
            UNKNOWN,
            measured,
            expected,
            why,
            _complete(stand.remedy) or "Run stage operators without --check.",
        )
    if stand.phase != "ready":
        late = (
            "The installation did not finish within the time limit. Last state"
            if stand.phase == "waiting"
            else "The installation failed"
        )
        why = f"{late}: {format_clause(stand.detail, 'OLM reports no cause')}."
        return Finding(
            "operators.olm", subject, FAIL, measured, expected, why, _complete(stand.remedy) or _describe_remedy(stand)
        )
    if not stand.wanted or stand.installed != stand.wanted:
        why = (
            f"The operator is ready, but not in the requested version: {stand.installed or 'no version'} is"
            " installed, and"
            f" {stand.wanted or 'no version'} is requested."
        )
        remedy = (
            "Run kubectl get subscriptions,installplans -A -o yaml, and correct the cause in the conditions of"
            " these objects. Then run stage operators again."
        )
        return Finding("operators.olm", subject, UNKNOWN, measured, expected, why, remedy)
    if not stand.upgrade:
        return build_pass("operators.olm", subject, measured, expected)
    why = f"The newer version {stand.upgrade} is available. OLM does not install it automatically."
    if not stand.ours:
        return Finding(
            "operators.olm",
            subject,
            WARN,
            measured,
            expected,
            why,
            f"Ask the owner of Subscription {stand.subscription} to approve the upgrade, then run stage"
            " operators again. Or waive this finding.",
        )
    return Finding(
        "operators.olm",
        subject,
        WARN,
        measured,
        f"{expected}, no newer version",
        why,
        f"To install this version, set version of {stand.package} to {stand.upgrade}, then run stage operators again.",
    )


def _complete(remedy: str) -> str:
    """Return a remedy of the module olm as sentences that end with the stage to run again; empty if the remedy is
    empty.
    """
    text = f"Run {remedy}" if remedy.startswith("kubectl") else remedy
    return text if not text or "run stage" in text else f"{text.rstrip('.')}. Then run stage operators again."


def _describe_remedy(stand: OperatorStatus) -> str:
    """Return the remedy for an operator whose status has no remedy, by the phase of its installation.

    :param stand: status of the operator, as the module olm reports it
    """
    if stand.phase == "waiting":
        return "Wait until kubectl get clusterserviceversions -A reports Succeeded, then run stage operators again."
    return (
        "Read the conditions of the Subscription and the InstallPlan (kubectl get subscriptions,installplans -A -o"
        " yaml). Correct the cause, then run stage operators again."
    )
