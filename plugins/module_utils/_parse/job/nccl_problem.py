# SPDX-License-Identifier: GPL-3.0-or-later

"""Which known problem a warning of NCCL, or of PyTorch around it, is.

Texts: [src NVIDIA/nccl v2.8.4 to v2.30.7, WARN], [src pytorch ProcessGroupNCCL.cpp]. The order matters: the first match wins.
"""

from __future__ import annotations

import re
import typing

Kind = typing.Literal[
    "",
    "imex",
    "memlock",
    "peer_memory",
    "retry",
    "completion",
    "async_event",
    "queue_pair",
    "no_interface",
    "no_network",
    "connection",
    "shared_memory",
    "same_gpu",
    "versions",
    "driver",
    "peer_access",
    "hint",
    "timeout",
]

_PATTERNS: typing.Tuple[typing.Tuple[Kind, typing.Pattern[str]], ...] = tuple(
    (kind, re.compile(pattern))
    for kind, pattern in typing.cast(
        typing.Tuple[typing.Tuple[Kind, str], ...],
        (
            ("imex", r"\bMNNVL\b.{0,200}\bnot working\b|\bIMEX\b|\bnvidia-imex"),
            ("memlock", r"Call to ibv_\w+ failed with error Cannot allocate memory"),
            ("peer_memory", r"Call to ibv_reg_\w+ failed with error (?:Bad address|Invalid argument)"),
            ("retry", r"Got completion [^=]{0,200} (?:error |status=(?:[^()=]{0,60}\()?)12\b"),
            ("completion", r"Got completion [^=]{0,200} (?:error |status=)"),
            ("async_event", r"NET/IB : .{0,80}\basync .{0,80}\bevent"),
            ("queue_pair", r"Call to ibv_modify_qp failed"),
            ("no_interface", r"no socket interface found|No IP interface found|No usable listening interface found|no device found (?:match|after excl)"),
            ("no_network", r"Failed to initialize any NET plugin|Error: network \S+ not found"),
            (
                "connection",
                r"[Cc]onnect to \S+ (?:failed|returned)|Connection closed by remote peer|Call to (?:recv|send) .{0,200}failed|remote process has exited",
            ),
            ("shared_memory", r"shared memory (?:segment|file)|[Ff]ailed to extend \S+ to|Could not map \S+ size"),
            ("same_gpu", r"Duplicate GPU detected|Multiple Ranks are using the same GPU"),
            ("versions", r"Mismatched NCCL version|NCCL library (?:version )?is too old|compiled with too old version"),
            ("driver", r"CUDA Driver version found is|CUDA driver is older|Failed to find CUDA library|NVML failure|Cuda failure"),
            ("peer_access", r"P2P is disabled between NVLINK connected GPUs"),
            ("hint", r"is larger than #channels upper limit|User asked for a (?:maximum|minimum) of|falling back to|unknown value '.{0,200}', defaulting"),
            ("timeout", r"Watchdog caught collective operation timeout|Timeout at NCCL work"),
        ),
    )
)

#: how much of a text is looked at
_LONGEST = 1000


def classify(text: str) -> Kind:
    """The kind of a problem; empty when it is not known here."""
    text = text[:_LONGEST]
    return next((kind for kind, pattern in _PATTERNS if pattern.search(text)), "")
