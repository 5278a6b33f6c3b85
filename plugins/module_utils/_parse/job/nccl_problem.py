# SPDX-License-Identifier: GPL-3.0-or-later

"""Which known problem a warning of NCCL, or of PyTorch around it, is, and what a failed completion names.

Texts: [src NVIDIA/nccl v2.8.4 to v2.30.7, WARN], [src pytorch ProcessGroupNCCL.cpp]. The order matters: the first match
wins.
"""

from __future__ import annotations

import ipaddress
import re
import typing

from ..pods import libibverbs

Kind = typing.Literal[
    "",
    "provider_abi",
    "provider_missing",
    "uverbs_abi",
    "imex",
    "memlock",
    "peer_memory",
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
    "iommu",
    "hint",
    "timeout",
]

_PATTERNS: tuple[tuple[Kind, typing.Pattern[str]], ...] = tuple(
    (kind, re.compile(pattern))
    for kind, pattern in typing.cast(
        tuple[tuple[Kind, str], ...],
        (
            ("imex", r"\bMNNVL\b.{0,200}\bnot working\b|\bIMEX\b|\bnvidia-imex"),
            ("memlock", r"Call to ibv_\w+ failed with error Cannot allocate memory"),
            ("peer_memory", r"Call to ibv_reg_\w+ failed with error (?:Bad address|Invalid argument)"),
            ("completion", r"Got completion [^=]{0,200} (?:error |status=)"),
            ("async_event", r"NET/IB : .{0,80}\basync .{0,80}\bevent"),
            ("queue_pair", r"Call to ibv_modify_qp failed"),
            (
                "no_interface",
                (
                    r"no socket interface found|No IP interface found|No usable listening interface found|no device"
                    r" found (?:match|after excl)"
                ),
            ),
            ("no_network", r"Failed to initialize any NET plugin|Error: network \S+ not found"),
            (
                "connection",
                (
                    r"[Cc]onnect to \S+ (?:failed|returned)|Connection closed by remote peer|Call to (?:recv|send)"
                    r" .{0,200}failed|remote process has exited"
                ),
            ),
            ("shared_memory", r"shared memory (?:segment|file)|[Ff]ailed to extend \S+ to|Could not map \S+ size"),
            ("same_gpu", r"Duplicate GPU detected|Multiple Ranks are using the same GPU"),
            ("versions", r"Mismatched NCCL version|NCCL library (?:version )?is too old|compiled with too old version"),
            (
                "driver",
                (
                    r"CUDA Driver version found is|CUDA driver is older|Failed to find CUDA library|NVML failure|Cuda"
                    r" failure"
                ),
            ),
            ("peer_access", r"P2P is disabled between NVLINK connected GPUs"),
            ("iommu", r"Missing \"iommu=pt\" from kernel command line"),
            (
                "hint",
                (
                    r"is larger than #channels upper limit|User asked for a (?:maximum|minimum) of|falling back"
                    r" to|unknown value '.{0,200}', defaulting"
                ),
            ),
            ("timeout", r"Watchdog caught collective operation timeout|Timeout at NCCL work"),
        ),
    )
)

#: how much of a text is looked at
_LONGEST = 1000


def classify(text: str) -> Kind:
    """Return the kind of a problem; empty when it is not known here."""
    text = text[:_LONGEST]
    provider = libibverbs.parse(text).kind
    if provider is not None:
        return provider
    return next((kind for kind, pattern in _PATTERNS if pattern.search(text)), "")


_COMPLETION = re.compile(
    r"Got completion (?:from peer (\S{1,128}?)(?:<[0-9]{1,9}>)? )?with (?:error"
    r" |status=(?:[^()=]{0,60}\()?)([0-9]{1,3})\b"
    r"(?:.{0,300}? localGid ?([0-9A-Fa-f:.]{2,45}))?(?:.{0,100}? remoteGids? ?([0-9A-Fa-f:.]{2,45}))?(?:.{0,100}? hca"
    r" ([\w.-]{1,64}))?"
)
#: bits of an address that are alike in one subnet, as networks of hosts commonly have it; the upper half of a GID is
#: its subnet prefix
_SUBNET_BITS = {4: 24, 6: 64}


class Completion(typing.NamedTuple):
    """A failed completion, as NCCL reports it: from 2.12 on with the peer, from 2.14 on with the GIDs of RoCE, from
    2.22 on with the HCA.

    :ivar status: of the work completion
    :ivar peer: address of the other process, without its port; empty where the line has none, as the next three
    :ivar local_gid: of this end
    :ivar remote_gid: of the other end
    :ivar device: RDMA device of this end
    """

    status: int
    peer: str = ""
    local_gid: str = ""
    remote_gid: str = ""
    device: str = ""

    @property
    def crosses_subnets(self) -> bool:
        """Return whether the two GIDs are of two subnets, so that packets between them need a route."""
        ends = [_parse_gid(self.local_gid), _parse_gid(self.remote_gid)]
        if ends[0] is None or ends[1] is None:
            return False
        networks = [
            ipaddress.ip_network((str(end), _SUBNET_BITS[end.version]), strict=False) for end in ends if end is not None
        ]
        return networks[0] != networks[1]


def parse_completion(text: str) -> typing.Optional[Completion]:
    """Return what a warning says of a failed completion; None where it is about something else."""
    found = _COMPLETION.search(text[:_LONGEST])
    if found is None:
        return None
    peer, status, local, remote, device = found.groups()
    return Completion(int(status), peer or "", local or "", remote or "", device or "")


def _parse_gid(text: str) -> typing.Optional[typing.Union[ipaddress.IPv4Address, ipaddress.IPv6Address]]:
    """Return a GID as an address, that of IPv4 where it has one; None of a text that is none."""
    try:
        found = ipaddress.IPv6Address(text)
    except ValueError:
        return None
    return found.ipv4_mapped or found
