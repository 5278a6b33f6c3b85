# SPDX-License-Identifier: GPL-3.0-or-later

"""Statuses of work completions: how a queue pair reports that a transfer failed. perftest, rping and NCCL print the number, newer ones its text as well.

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

#: by number
STATUSES: typing.Mapping[int, typing.Tuple[Kind, str]] = dict(
    enumerate(
        (
            ("success_reported", "success"),
            ("local_length", "local length error"),
            ("local_qp_operation", "local QP operation error"),
            ("local_eec_operation", "local EE context operation error"),
            ("local_protection", "local protection error"),
            ("flushed", "Work Request Flushed Error"),
            ("memory_window", "memory management operation error"),
            ("bad_response", "bad response error"),
            ("local_access", "local access error"),
            ("remote_invalid_request", "remote invalid request error"),
            ("remote_access", "remote access error"),
            ("remote_operation", "remote operation error"),
            ("transport_retry", "transport retry counter exceeded"),
            ("receiver_not_ready", "RNR retry counter exceeded"),
            ("local_rdd_violation", "local RDD violation error"),
            ("remote_invalid_rd_request", "remote invalid RD request"),
            ("remote_abort", "aborted error"),
            ("eec_number", "invalid EE context number"),
            ("eec_state", "invalid EE context state"),
            ("device_fatal", "fatal error"),
            ("response_timeout", "response timeout error"),
            ("general_error", "general error"),
            ("tag_matching", "TM error"),
            ("tag_matching_rendezvous", "TM software rendezvous"),
        )
    )
)
#: by which an end reports an error of its peer, and those by which a peer reports its own
REMOTE: typing.FrozenSet[str] = frozenset(("remote_invalid_request", "remote_access", "remote_operation", "remote_abort"))
LOCAL: typing.FrozenSet[str] = frozenset(("local_length", "local_qp_operation", "local_protection", "memory_window", "local_access", "device_fatal"))
#: of a queue pair that failed before: a consequence
FLUSHED = 5


def first_cause(statuses: typing.Iterable[int]) -> typing.Optional[int]:
    """Return the first status that is not a consequence of another one; None without a known one."""
    return next((status for status in statuses if status in STATUSES and status != FLUSHED), None)
