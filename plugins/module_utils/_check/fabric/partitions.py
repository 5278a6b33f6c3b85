# SPDX-License-Identifier: GPL-3.0-or-later

"""Check that the HCAs of an InfiniBand fabric are in one partition, from the partition keys of their ports. Check id:
``fabric.partitions``.
"""

from __future__ import annotations

import itertools
import typing

from ..._analysis.fleet.hcas_of_fabric import Membership
from ..._analysis.fleet.paths.partitions import JOIN_SENTENCE, is_limited, list_shared_keys
from ..._model.intent.intent import Fabric
from ..._model.run.findings import FAIL, Finding

_CHECK, _EXPECTED = "fabric.partitions", "one partition in which all ports of the fabric can exchange packets"
_MOST = 8
#: groups of ports with equal keys that are compared with each other, beside the usual one. A subnet manager makes few
_MOST_GROUPS = 64


class _Port(typing.NamedTuple):
    node: str
    name: str
    guid: str


def check_partitions(fabric: Fabric, membership: Membership) -> list[Finding]:
    """Check that all HCAs of the fabric have at least one partition in common.

    Return one failed finding on the HCAs that share no partition with all others, or an empty list. Ports whose
    partition keys are unknown are ignored.

    :param membership: HCAs that belong to the fabric, by node, with their rails
    """
    groups: dict[tuple[str, ...], list[_Port]] = {}
    for node, members in membership.members.items():
        for member in members:
            if member.port is not None and member.port.pkeys:
                port = _Port(node, f"{node} {member.hca.name}", member.port.guid or "unknown GUID")
                groups.setdefault(tuple(sorted(set(member.port.pkeys))), []).append(port)
    if not groups:
        return []
    count = sum(map(len, groups.values()))
    # each node has one voice: one that tells more ports than all others decides nothing
    usual = max(groups, key=lambda keys: (len({port.node for port in groups[keys]}), len(groups[keys]), keys))
    if len(groups[usual]) > 1 and not list_shared_keys(usual, usual):
        why = (
            f"The subnet manager gave these ports the P_Keys {_format_pkeys(usual)}, and limited members drop each"
            " other's packets."
        )
        remedy = f"Make these ports full members: {_describe_partition_remedy(groups[usual])}"
        return [
            Finding(
                _CHECK,
                fabric.name,
                FAIL,
                f"{len(groups[usual])} of {count} ports are only limited members",
                _EXPECTED,
                why,
                remedy,
            )
        ]
    apart = {
        keys: ports
        for keys, ports in groups.items()
        if not list_shared_keys(usual, keys) or (len(ports) > 1 and not list_shared_keys(keys, keys))
    }
    apart.update(_find_limited_pairs({keys: ports for keys, ports in groups.items() if keys not in (usual, *apart)}))
    if not apart:
        return []
    ports = [port for found in apart.values() for port in found]
    told = "; ".join(
        [f"{port.name} has {_format_pkeys(keys)}" for keys, found in apart.items() for port in found[:_MOST]][:_MOST]
    )
    why = (
        f"The subnet manager gave these ports different P_Keys: {told}. The most frequent keys are"
        f" {_format_pkeys(usual)}. Packets between ports without a common partition are dropped."
    )
    remedy = f"Make these ports full members of the partition of the other ports: {_describe_partition_remedy(ports)}"
    return [
        Finding(
            _CHECK,
            fabric.name,
            FAIL,
            f"{len(ports)} of {count} ports do not share a partition with all others",
            _EXPECTED,
            why,
            remedy,
        )
    ]


def _find_limited_pairs(groups: typing.Mapping[tuple[str, ...], list[_Port]]) -> dict[tuple[str, ...], list[_Port]]:
    """Return the groups of ports that do not share a partition with another group on another node, although each group
    shares one with most ports. In that partition, both groups are limited members, which cannot talk to each other.

    :param groups: ports by their partition keys, without the most frequent keys
    """
    found: dict[tuple[str, ...], list[_Port]] = {}
    some = list(itertools.islice(groups.items(), _MOST_GROUPS))
    for (keys, ports), (others, further) in itertools.combinations(some, 2):
        together = {port.node for port in (*ports, *further)}
        if len(together) > 1 and not list_shared_keys(keys, others):
            found.update({keys: ports, others: further})
    return found


def _format_pkeys(keys: typing.Sequence[str]) -> str:
    """Return the first partition keys as text, such as ``0x7fff (limited)``. At most ``_MOST`` keys are shown.

    :param keys: partition keys, such as ``0x7fff``
    """
    return ", ".join(f"{key} (limited)" if is_limited(key) else key for key in keys[:_MOST])


def _describe_partition_remedy(ports: typing.Sequence[_Port]) -> str:
    guids = ", ".join(port.guid for port in ports[:_MOST])
    return f"{guids}. {JOIN_SENTENCE} Then run stage fabric again."
