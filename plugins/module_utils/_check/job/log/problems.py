# SPDX-License-Identifier: GPL-3.0-or-later

"""Explain the problems in the log of a job. The explanation of a failed work completion depends on its status and its
endpoints.
"""

from __future__ import annotations

from ...._analysis.fleet.cause import Link
from ...._analysis.measurement.completions import find_completion
from ...._model.job.nccl import NcclLog, NcclProblem, NcclProcess
from ...._model.measurement.completions import FLUSHED
from ...._model.run.findings import FAIL, WARN, Finding, Status
from ...._parse.job.nccl.problem import Completion, parse_completion
from .nccl_causes import NCCL_CAUSES
from .transport_causes import TRANSPORT_CAUSES

#: kind of a problem (_parse/job/nccl/problem.py, transports.py): status, cause and remedy
CAUSES: dict[str, tuple[Status, str, str]] = {**NCCL_CAUSES, **TRANSPORT_CAUSES}

#: kinds of failed completions; earlier versions had one of its own for status 12
_COMPLETIONS = ("completion", "retry")
#: statuses of packets that were lost
_LOSSES = (12, 20)
_FIRST = "Follow the remedy of the finding training.problem with the lowest line number first."


def check_problem(problem: NcclProblem, log: NcclLog) -> Finding:
    """Return the finding on a warning or error that a log contains, with the cause and remedy of its kind.

    :param problem: message with its kind, hosts and number of occurrences
    """
    # a fact of another version may have a kind that is not in the table
    status, why, remedy = CAUSES.get(problem.kind, CAUSES[""])
    failed = parse_completion(problem.text) if problem.kind in _COMPLETIONS else None
    if failed is not None:
        status, why, remedy = _check_failed_completion(failed, problem, log)
    where = f"{', '.join(problem.hosts[:3]) or 'job'} line {problem.line}"
    measured = problem.text + (f" ({problem.count} times)" if problem.count > 1 else "")
    return Finding("training.problem", where, status, measured, "no such message in the log", why, remedy)


def _check_failed_completion(failed: Completion, problem: NcclProblem, log: NcclLog) -> tuple[Status, str, str]:
    """Return the status, the cause and the remedy for a work completion that failed.

    :param failed: work completion, as parsed from ``problem``
    :param problem: warning or error of the log
    """
    known = find_completion(failed.status)
    if known is None:
        return CAUSES["completion"]
    if failed.status == FLUSHED and _has_cause(log):
        return WARN, *known.on("")
    if failed.status not in _LOSSES:
        return FAIL, *known.on(_find_link(failed, problem, log))
    ends = (
        f" ({failed.local_gid} to {failed.remote_gid}{f', {failed.device}' if failed.device else ''})"
        if failed.remote_gid
        else ""
    )
    if _is_in_one_pod(failed, problem, log):
        why = (
            f"Both ends of the connection are in one pod. Packets between two of its HCAs do not arrive{ends}, because"
            f" the node has no route between them (status {failed.status})."
        )
        remedy = (
            "Let the ranks of one pod use NVLink or shared memory: remove NCCL_P2P_DISABLE and NCCL_SHM_DISABLE from"
            " the job, and mount a memory volume at /dev/shm. Otherwise give each interface of the pod its own routing"
            " table (CNI plugin sbr), and check the route in the pod with ip route get ADDRESS from ADDRESS."
        )
        return FAIL, why, remedy
    if failed.crosses_subnets:
        why = (
            f"Packets were lost (status {failed.status}), and the two GIDs are in two subnets{ends}. Without a route"
            " between the subnets, packets do not arrive."
        )
        far = (failed.remote_gid or "ADDRESS").removeprefix("::ffff:")
        remedy = (
            "If each rail is a separate subnet without routes between the rails, set NCCL_CROSS_NIC=0 in the job, and"
            " give all pods their rails in the same order. If the subnets should be routed, run ip route get"
            f" {far} in the pod, and add the missing route on the gateway or in the NetworkAttachmentDefinition."
        )
        return FAIL, why, remedy
    why, remedy = known.on(_find_link(failed, problem, log))
    return (
        FAIL,
        f"{why}{f' From {failed.local_gid} to {failed.remote_gid}.' if failed.remote_gid else ''}",
        f"{_FIRST} {remedy}",
    )


def _has_cause(log: NcclLog) -> bool:
    """Return whether the log has a failed completion that is a cause: its status is not FLUSHED, which only follows
    another failure.
    """
    seen = (parse_completion(problem.text) for problem in log.problems if problem.kind in _COMPLETIONS)
    return any(failed is not None and failed.status != FLUSHED for failed in seen)


def _find_processes(problem: NcclProblem, log: NcclLog) -> list[NcclProcess]:
    return [process for process in log.processes if process.host in problem.hosts[:1]]


def _is_in_one_pod(failed: Completion, problem: NcclProblem, log: NcclLog) -> bool:
    return bool(failed.peer) and any(process.oob_address == failed.peer for process in _find_processes(problem, log))


def _find_link(failed: Completion, problem: NcclProblem, log: NcclLog) -> Link:
    """Return the link layer of the HCA of a failed completion. Return an empty text if the log does not name the HCA,
    or the host has HCAs of both link layers. NCCL writes GIDs for Ethernet only.

    :param problem: warning or error of the log
    """
    if failed.link:
        return failed.link
    if failed.local_gid:
        return "Ethernet"
    devices = [device for process in _find_processes(problem, log) for device in process.devices]
    links = {device.link for device in devices if failed.device in device.name.split("+")} or {
        device.link for device in devices
    }
    return "InfiniBand" if links == {"IB"} else "Ethernet" if links == {"RoCE"} else ""
