# SPDX-License-Identifier: GPL-3.0-or-later

"""Describe why a measuring pod that was ready is not ready any more."""

from __future__ import annotations

from ...._model.base.errors import wrap_unforeseen
from ...._model.measurement.bandwidth import RdmaPod
from ...._observe.kubernetes.kinds import Resource
from ...._parse.kubernetes.pod_state import state_of_pod
from ...._parse.pods.failure import Failure
from .readiness import explain_unready

#: reason of a pod that the kubelet ended after its activeDeadlineSeconds
_OVERDUE = "DeadlineExceeded"
#: of a pod that is not there
DELETED = "was deleted"


def explain_loss(item: Resource, dropped: bool) -> str:
    """Return the reason why a pod that was ready is lost. Return an empty text if it is still ready.

    :param item: last known object of the pod
    :param dropped: whether the API server reported the deletion of the pod
    """
    try:
        return DELETED if dropped else explain_unready(state_of_pod(item))
    except Exception as error:
        # one thread hears of all pods, and the kubelet of one node wrote this
        return str(wrap_unforeseen(error, "the status of the pod"))


def make_failure(item: RdmaPod, detail: str) -> Failure:
    """Return the failure of a pair whose pod is lost.

    :param item: the lost pod
    :param detail: reason why the pod is lost, as ``explain_loss`` returns it
    """
    joint = " " if detail == DELETED else ": "
    return Failure(
        "deadline" if _OVERDUE in detail else "pod_gone", f"the pod {item.name} on {item.node}{joint}{detail}"[:300]
    )
