# SPDX-License-Identifier: GPL-3.0-or-later

"""Check that the SR-IOV operator has finished its work on a node. Until then it may remove or change VFs. Check id:
``virtual_functions.sync``.
"""

from __future__ import annotations

from ..._analysis.controllers.sriov.sync_errors import add_cause
from ..._model.base.phrases import format_clause
from ..._model.intent.intent import Fabric, Intent
from ..._model.operators.sriov_operator import NodeState
from ..._model.run.findings import FAIL, UNKNOWN, Finding, build_pass
from .desired import find_other_rdma_mode

_CHECK = "virtual_functions.sync"
_AGAIN = "then run stage virtual_functions again."


def check_sync(intent: Intent, fabric: Fabric, state: NodeState) -> Finding:
    """Check that the SR-IOV operator has applied its policies on a node: syncStatus is Succeeded, the drain state is
    Idle, and the RDMA mode is that of the intent.

    :param state: SriovNetworkNodeState of the node
    """
    subject, expected = f"{fabric.name} {state.node}", "syncStatus Succeeded, drain state Idle"
    steps = [step for step in (state.desired_state, state.current_state) if step not in ("", "Idle")]
    measured = f"syncStatus {state.sync_status or 'not set'}, drain state {', '.join(steps) or 'Idle'}"
    if state.sync_status == "Succeeded" and not steps:
        pool = intent.cluster.node_pool
        other = find_other_rdma_mode(state, (pool.rdma_mode if pool else None) or "")
        if other is None:
            return build_pass(_CHECK, subject, measured, expected)
        return Finding(_CHECK, subject, FAIL, *other)
    if state.sync_status == "Failed":
        why, remedy = _explain_failure(state)
        return Finding(_CHECK, subject, FAIL, measured, expected, why, remedy)
    why, remedy = _explain_delay(state, steps)
    return Finding(_CHECK, subject, UNKNOWN, measured, expected, why, remedy)


def _explain_failure(state: NodeState) -> tuple[str, str]:
    log = f"{_read_log(state)} It contains the error. Correct the error, {_AGAIN}"
    if not state.last_sync_error:
        return "The config daemon could not configure the node, and reports no error text.", log
    error, remedy = add_cause(state.last_sync_error)
    return (
        f"The config daemon could not configure the node: {format_clause(error)}.",
        f"{remedy} Then run stages network and virtual_functions again." if remedy else log,
    )


def _explain_delay(state: NodeState, steps: list[str]) -> tuple[str, str]:
    """Return the cause and the remedy for a node on which the operator has not finished.

    :param steps: requested and current state of the drain, without Idle
    """
    if steps:
        return (
            "The operator drains or reboots this node before it changes the virtual functions. It has not finished.",
            f"Wait until kubectl get sriovnetworknodestates -A -o wide shows Idle for {state.node}. If the drain"
            " does not end, run kubectl get poddisruptionbudgets -A, and change the one with 0 ALLOWED"
            f" DISRUPTIONS whose pods run on {state.node}. Then run stage virtual_functions again.",
        )
    if not state.sync_status:
        return (
            "The config daemon writes syncStatus after its start, and it has not done so on this node.",
            "Run kubectl get pods -A -o wide -l app=sriov-network-config-daemon --field-selector"
            f" spec.nodeName={state.node}. If the pod does not run, correct the reason that kubectl describe pod"
            " shows. If no pod is listed, follow the remedy of the finding operators.daemon. Then run stage"
            " virtual_functions again.",
        )
    return (
        "The config daemon is still changing the virtual functions of this node.",
        f"Wait until kubectl get sriovnetworknodestates -A shows Succeeded for {state.node}. If the status does"
        f" not change, {_read_log(state, start='r')} Correct the error that it shows, {_AGAIN}",
    )


def _read_log(state: NodeState, start: str = "R") -> str:
    return (
        f"{start}ead the log of the config daemon on {state.node} (kubectl get pods -A -l"
        f" app=sriov-network-config-daemon --field-selector spec.nodeName={state.node} lists its pod for kubectl"
        " logs)."
    )
