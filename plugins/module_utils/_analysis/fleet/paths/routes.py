# SPDX-License-Identifier: GPL-3.0-or-later

"""Build the paths between the ports of a fabric from its topology and its forwarding tables, as far as both were
read.
"""

from __future__ import annotations

import typing

from ...._model.base.text import format_percent
from ...._model.infiniband.fabric import ObservedTopologies
from ...._model.intent.intent import Fabric
from ...._model.intent.profiles import carries_rdma, is_infiniband
from ...._model.run.findings import UNKNOWN, Finding, build_pass
from ...schedule.coverage import Coverage
from ...schedule.link_directions import End
from ...schedule.paths import PathTable
from ..hca_locations import find_topology_or_first_view
from ..hcas_of_fabric import Membership
from .ethernet_routes import Neighbours, find_ethernet_paths

#: names in one finding, at most
MOST_NAMES = 20
#: rail and node
Port = tuple[int, str]


def find_paths(
    fabric: Fabric,
    membership: Membership,
    topologies: typing.Mapping[str, ObservedTopologies],
    only: typing.Optional[typing.Container[Port]] = None,
    neighbours: typing.Optional[Neighbours] = None,
    across: bool = False,
) -> tuple[typing.Optional[PathTable], str]:
    """Return the paths and an empty text, or None and the reason why the paths are unknown. If switches may choose
    among several paths, ``PathTable.spread`` is set.

    :param membership: HCAs that belong to the fabric, by node, with their rails
    :param topologies: topologies that fabric_info read, or the error, by node
    :param only: rail and node of each port that takes part; None for all ports
    :param neighbours: switches that each node observed by LLDP, which identifies the leaves of Ethernet
    :param across: whether ports of different rails may be measured with each other, if the tables lead from one to the
        other
    """
    if not is_infiniband(fabric):
        if carries_rdma(fabric):
            return find_ethernet_paths(membership, neighbours or {}, only)
        return None, "Ethernet switches choose paths by their own hash, and their topology was not read"
    seen, why = find_topology_or_first_view(membership, topologies)
    if seen is None or seen.topology is None:
        return None, why
    ends = [
        End(node, member.rail, member.port.guid, member.port.lid)
        for node, members in membership.members.items()
        for member in members
        if member.port is not None
        and member.port.guid is not None
        and member.port.lid
        and (only is None or (member.rail, node) in only)
    ]
    if len(ends) < 2:
        return None, "fewer than two of its ports have a LID"
    tables = seen.forwarding.tables if seen.forwarding is not None else ()
    if fabric.routing == "adaptive":
        spread = "the switches route adaptively according to the intent (routing)"
    elif fabric.routing is None:
        spread = "it is unknown whether the switches route adaptively (the intent does not set routing)"
    elif not tables:
        spread = (
            "the forwarding tables were not read:"
            f" {(seen.forwarding.error if seen.forwarding is not None else None) or 'they were not requested'}"
        )
    else:
        spread = ""
    return PathTable(seen.topology, tables, ends, spread, across=across), ""


def report_coverage(
    check: str, fabric: Fabric, ways: PathTable, used: Coverage, remedy: str, note: str = ""
) -> Finding:
    """Return the finding on the links that the measurements used. The state of a link that no measurement used is
    unknown.

    :param check: check id of the finding
    :param ways: paths between the ports
    :param used: links that were and were not used
    :param remedy: remedy if a link was not used
    :param note: further information on the paths, for the text
    """
    text = f"measurements used {format_percent(len(used.covered), used.usable)} % of {used.usable} link directions"
    if ways.spread:
        text += f" between nodes and leaves; links between switches are not counted, because {ways.spread}"
    if used.unused and not ways.spread:
        text += f"; {len(used.unused)} more link directions are on no path between these nodes"
    text += f"; {note}" if note else ""
    expected = "100 %: each link that these nodes use, in both directions"
    if not used.missing:
        return build_pass(check, fabric.name, text, expected)
    unused = join_names([ways.name(number) for number in used.missing], "; ")
    why = f"No measurement used these link directions: {unused}."
    return Finding(
        check, fabric.name, UNKNOWN, text, expected, why, f"{remedy} Then run stage {check.partition('.')[0]} again."
    )


def join_names(names: typing.Sequence[str], between: str) -> str:
    """Join the first ``MOST_NAMES`` names as text, and add how many more there are.

    :param between: text between two names
    """
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return between.join(names[:MOST_NAMES]) + more
