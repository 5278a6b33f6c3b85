# SPDX-License-Identifier: GPL-3.0-or-later

"""The reason why the objects of the SR-IOV operator were not read, and its remedy. Part of stage virtual_functions."""

from __future__ import annotations

import typing

from ..._model.base.phrases import describe_rerun, format_clause
from ..._model.operators.sriov_operator import OperatorFacts
from ..._model.run.findings import UNKNOWN, Finding

_NOT_RUN = "the run ended before the module sriov_operator_info ran"
_CORRECT = (
    "Run stage validate: it checks the kubeconfig and the rights of its user, and names what is missing. Correct that,"
    " then run stage virtual_functions again."
)
#: errors that a finding shows
_SHOWN = 3


def join_errors(operators: typing.Optional[OperatorFacts]) -> str:
    """Return the reason why objects were not read, as the last part of a sentence.

    :param operators: answer of sriov_operator_info; None when it did not run
    """
    if operators is None:
        return _NOT_RUN
    return format_clause("; ".join(operators.errors[:_SHOWN]))


def choose_remedy(reason: str) -> str:
    """Return the remedy for objects that were not read.

    :param reason: reason of :func:`join_errors`
    """
    return describe_rerun("virtual_functions") if reason == _NOT_RUN else _CORRECT


def report_unread(check: str, subject: str, reason: str, measured: str, expected: str) -> Finding:
    """Return the finding of status ``unknown`` on a function whose SriovNetworkNodeState was not read.

    :param reason: reason of :func:`join_errors`
    :param measured: what was measured without the SriovNetworkNodeState, as text
    """
    why = f"The SriovNetworkNodeState of the node could not be read: {reason}."
    return Finding(check, subject, UNKNOWN, measured, expected, why, choose_remedy(reason))
