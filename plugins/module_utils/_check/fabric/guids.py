# SPDX-License-Identifier: GPL-3.0-or-later

"""Check that the GUIDs of a fabric are unique. Check id: ``fabric.guids``."""

from __future__ import annotations

import typing

from ..._analysis.fleet.hcas_of_fabric import Membership
from ..._model.base.phrases import count_of
from ..._model.infiniband.cables import ANY, take_cables
from ..._model.infiniband.fabric import Topology
from ..._model.intent.intent import Fabric
from ..._model.run.findings import FAIL, Finding, build_pass
from .names import Names, join_some

#: ports with several cables that have a finding each
_MOST_DOUBLED = 32


def _check_cables(fabric: Fabric, topology: Topology, names: Names, remedy: str) -> typing.Iterator[Finding]:
    """Yield a failed finding for each port that has several cables in the topology.

    All stages use the first cable that the topology lists for a port. If there are more than ``_MOST_DOUBLED`` such
    ports, one more finding has their number in place of the further findings.

    :param names: names of the switches and HCAs of the topology, for texts
    :param remedy: beginning of the remedy of the findings
    """
    # both names of a port tell of the same cables
    doubled = take_cables(topology).doubled
    by_cables: dict[typing.Hashable, tuple[str, int]] = {}
    for key, ends in doubled.items():
        by_cables.setdefault(tuple(map(id, ends)), key)
    remedy += (
        " If ibnetdiscover on another node shows one cable at this port, put that node first in the inventory. Then"
        " run stage fabric again."
    )
    for guid, number in list(by_cables.values())[:_MOST_DOUBLED]:
        places = [names.port(end.guid, end.port) for end in doubled[guid, number]]
        port, subject = (
            (f"the port {guid}", names.node(guid))
            if number == ANY
            else (f"port {number} of {guid}", names.port(guid, number))
        )
        why = (
            f"The ports {' and '.join(places) if len(places) == 2 else join_some(places)} each report {port} at the"
            " other end of their cable. Two devices have this GUID, or the node that reported the topology reports"
            " a cable that does not exist. The run uses the first of these cables."
        )
        yield Finding(
            "fabric.guids", subject, FAIL, f"{count_of(len(places), 'cable')} at this port", "1 cable", why, remedy
        )
    if len(by_cables) > _MOST_DOUBLED:
        why = (
            "So many duplicate GUIDs are not plausible: the node that reported the topology reports cables that do"
            f" not exist. Only {_MOST_DOUBLED} of these ports have a finding of their own."
        )
        yield Finding(
            "fabric.guids",
            f"{fabric.name} cables",
            FAIL,
            f"{count_of(len(by_cables), 'port')} with several cables",
            "1 cable at each port",
            why,
            remedy,
        )


def check_guids(fabric: Fabric, membership: Membership, topology: Topology, names: Names) -> list[Finding]:
    """Check that GUIDs are unique. Return a failed finding for each port GUID with several cables in the topology and
    for each node GUID that two HCAs have, or one pass.

    :param membership: HCAs that belong to the fabric, by node, with their rails
    :param names: names of the switches and HCAs of the topology, for texts
    """
    expected = "each GUID at one device"
    remedy = (
        "Drain the nodes of the two devices, and disconnect one device from the fabric. Give it its own GUID again"
        " (mstflint -d ADDRESS -guid 0x... sg on its host), or replace its board. Then connect it again."
    )
    findings = list(_check_cables(fabric, topology, names, remedy))
    remedy += " Then run stage fabric again."
    owners: dict[str, list[str]] = {}
    for name, members in membership.members.items():
        for member in members:
            if member.hca.node_guid:
                owners.setdefault(member.hca.node_guid, []).append(f"{name} {member.hca.name}")
    for guid, twins in owners.items():
        if len(twins) > 1:
            why = (
                "The subnet manager treats HCAs with the same node GUID as one device. A flashed image or a copied"
                " configuration may have duplicated the GUID."
            )
            measured = f"node GUID {guid} at {count_of(len(twins), 'HCA')}"
            findings.append(Finding("fabric.guids", join_some(twins), FAIL, measured, expected, why, remedy))
    return findings or [
        build_pass(
            "fabric.guids",
            fabric.name,
            f"{count_of(len(topology.nodes), 'node')} of the topology, {count_of(len(owners), 'HCA')}",
            expected,
        )
    ]
