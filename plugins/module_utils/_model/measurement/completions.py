# SPDX-License-Identifier: GPL-3.0-or-later

"""Statuses of work completions, by which a queue pair reports a failed transfer. perftest, rping and NCCL print the
number, newer versions also the text.

Numbers and texts: ``enum ibv_wc_status`` and ``ibv_wc_status_str`` of libibverbs (rdma-core, verbs.h and verbs.c).
"""

from __future__ import annotations

import typing

#: of one status
Kind = typing.Literal[
    "success_reported",
    "local_length",
    "local_qp_operation",
    "local_eec_operation",
    "local_protection",
    "flushed",
    "memory_window",
    "bad_response",
    "local_access",
    "remote_invalid_request",
    "remote_access",
    "remote_operation",
    "transport_retry",
    "receiver_not_ready",
    "local_rdd_violation",
    "remote_invalid_rd_request",
    "remote_abort",
    "eec_number",
    "eec_state",
    "device_fatal",
    "response_timeout",
    "general_error",
    "tag_matching",
    "tag_matching_rendezvous",
]

#: where the fault is: at the end that prints the status, at its peer, between them, in an HCA or its driver, or earlier
#: in the same output
Side = typing.Literal["local", "remote", "path", "device", "earlier"]


class CompletionStatus(typing.NamedTuple):
    """A work completion status of libibverbs (``ibv_wc_status``).

    :ivar kind: identifier of the status in this collection, such as ``transport_retry``
    :ivar text: text of the status by ``ibv_wc_status_str``
    :ivar side: location of the fault: ``local`` is the end that prints the status, ``remote`` its peer, ``path``
        between them, ``device`` an HCA or its driver, ``earlier`` an earlier completion of the same output
    """

    kind: Kind
    text: str
    side: Side


#: by number
STATUSES: typing.Mapping[int, CompletionStatus] = dict(
    enumerate(
        (
            CompletionStatus("success_reported", "success", "device"),
            CompletionStatus("local_length", "local length error", "local"),
            CompletionStatus("local_qp_operation", "local QP operation error", "local"),
            CompletionStatus("local_eec_operation", "local EE context operation error", "device"),
            CompletionStatus("local_protection", "local protection error", "local"),
            CompletionStatus("flushed", "Work Request Flushed Error", "earlier"),
            CompletionStatus("memory_window", "memory management operation error", "local"),
            CompletionStatus("bad_response", "bad response error", "device"),
            CompletionStatus("local_access", "local access error", "local"),
            CompletionStatus("remote_invalid_request", "remote invalid request error", "remote"),
            CompletionStatus("remote_access", "remote access error", "remote"),
            CompletionStatus("remote_operation", "remote operation error", "remote"),
            CompletionStatus("transport_retry", "transport retry counter exceeded", "path"),
            CompletionStatus("receiver_not_ready", "RNR retry counter exceeded", "remote"),
            CompletionStatus("local_rdd_violation", "local RDD violation error", "device"),
            CompletionStatus("remote_invalid_rd_request", "remote invalid RD request", "device"),
            CompletionStatus("remote_abort", "aborted error", "remote"),
            CompletionStatus("eec_number", "invalid EE context number", "device"),
            CompletionStatus("eec_state", "invalid EE context state", "device"),
            CompletionStatus("device_fatal", "fatal error", "local"),
            CompletionStatus("response_timeout", "response timeout error", "path"),
            CompletionStatus("general_error", "general error", "device"),
            CompletionStatus("tag_matching", "TM error", "device"),
            CompletionStatus("tag_matching_rendezvous", "TM software rendezvous", "device"),
        )
    )
)
SIDES: typing.Mapping[str, Side] = {status.kind: status.side for status in STATUSES.values()}
#: of a queue pair that failed before: a consequence
FLUSHED = 5


def find_first_cause(statuses: typing.Iterable[int]) -> typing.Optional[int]:
    """Return the first known status in the given order that is not FLUSHED, or None. FLUSHED only follows another
    failure.

    :param statuses: status numbers in the order of the output
    """
    return next((status for status in statuses if status in STATUSES and status != FLUSHED), None)
