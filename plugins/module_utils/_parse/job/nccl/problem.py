# SPDX-License-Identifier: GPL-3.0-or-later

"""Classify the problems in the log of a job, and parse its failed completions."""

from __future__ import annotations

import functools
import ipaddress
import re
import typing

from ...._model.base.vocabulary import find_kind
from ...pods import libibverbs
from .. import transports
from .kinds import Kind
from .vocabulary import VOCABULARY

#: characters of a text that are searched
_LONGEST = 1000


def classify(text: str) -> Kind:
    """Return the kind of a problem from its text in the log. Return an empty string if the kind is unknown. Only the
    first 1000 characters of the text are used.
    """
    return _classify_cut_text(text[:_LONGEST])


# many ranks write the same text
@functools.lru_cache(maxsize=1024)
def _classify_cut_text(text: str) -> Kind:
    provider = libibverbs.parse(text).kind
    if provider is not None:
        return provider
    return find_kind(VOCABULARY, text) or ""


_COMPLETION = re.compile(
    r"Got completion (?:from peer (\S{1,128}?)(?:<[0-9]{1,9}>)? )?with (?:error"
    r" |status=(?:[^()=]{0,60}\()?)([0-9]{1,3})\b"
    r"(?:.{0,300}? localGid ?([0-9A-Fa-f:.]{2,45}))?(?:.{0,100}? remoteGids? ?([0-9A-Fa-f:.]{2,45}))?(?:.{0,100}? hca"
    r" ([\w.-]{1,64}))?"
)
#: bits of an address that are equal in one subnet, as networks of hosts commonly have it. The upper half of a GID is
#: its subnet prefix
_SUBNET_BITS = {4: 24, 6: 64}


class Completion(typing.NamedTuple):
    """A failed completion, as UCX or NCCL reports it. NCCL adds the peer from version 2.12 on, the GIDs of RoCE from
    2.14 on, and the HCA from 2.22 on. Data that the line does not contain are empty.

    :ivar status: status number of the work completion (``ibv_wc_status``)
    :ivar peer: address of the other process, without its port
    :ivar local_gid: GID of this end
    :ivar remote_gid: GID of the other end
    :ivar device: RDMA device of this end
    :ivar link: link layer of this end, which only UCX writes
    """

    status: int
    peer: str = ""
    local_gid: str = ""
    remote_gid: str = ""
    device: str = ""
    link: typing.Literal["", "InfiniBand", "Ethernet"] = ""

    @property
    def crosses_subnets(self) -> bool:
        """Return whether the two GIDs are in different subnets, so that packets between them need a router. Return
        False if a GID is missing or invalid.
        """
        ends = [_parse_gid(self.local_gid), _parse_gid(self.remote_gid)]
        if ends[0] is None or ends[1] is None:
            return False
        networks = [
            ipaddress.ip_network((str(end), _SUBNET_BITS[end.version]), strict=False) for end in ends if end is not None
        ]
        return networks[0] != networks[1]


def parse_completion(text: str) -> typing.Optional[Completion]:
    """Parse a warning of NCCL or UCX about a failed completion. Return None for any other text. Only the first 1000
    characters of the text are used.
    """
    found = _COMPLETION.search(text[:_LONGEST])
    if found is None:
        failed = transports.parse_failed(text[:_LONGEST])
        return None if failed is None else Completion(failed.status, device=failed.device, link=failed.link)
    peer, status, local, remote, device = found.groups()
    return Completion(int(status), peer or "", local or "", remote or "", device or "")


def _parse_gid(text: str) -> typing.Optional[typing.Union[ipaddress.IPv4Address, ipaddress.IPv6Address]]:
    """Return a GID as an IPv6 address, or as the IPv4 address that is mapped in it. Return None if the text is not a
    GID.
    """
    try:
        found = ipaddress.IPv6Address(text)
    except ValueError:
        return None
    return found.ipv4_mapped or found
