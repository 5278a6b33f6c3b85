# SPDX-License-Identifier: GPL-3.0-or-later

"""Output of ibnetdiscover (infiniband-diags/ibnetdiscover.c): the topology as text.

A node description is free text: it may hold quotes, commas, brackets, anything. So lines are taken apart from both ends, never split.
"""

from __future__ import annotations

import re
import typing

from ..._model.errors import ParseError
from ..._model.fabric import FabricNode, Link, LinkEnd, Topology

_KINDS = {"S": "Switch", "H": "Ca", "R": "Router"}
#: lines that carry nothing for us: comments, identities that the node's own line repeats, chassis of --group
_SKIPPED = ("#", "vendid=", "devid=", "sysimgguid=", "switchguid=", "caguid=", "rtguid=", "Chassis ")

_NODE = re.compile(r'\A(?:Switch|Ca|Rt)\s+([0-9]{1,3}) "([SHR])-([0-9a-f]{1,16})"\s*# "(.*)"(.*)\Z', re.ASCII)
_SWITCH_LID = re.compile(r"\A (?:enhanced|base) port 0 lid ([0-9]{1,6}) lmc [0-9]+", re.ASCII)
_PORT = re.compile(
    r"\A\[([0-9]{1,3})\](?:\[ext [0-9]+\])?(?:\(([0-9a-f]{1,16})\))?\s+"
    r'"([SHR])-([0-9a-f]{1,16})"\[([0-9]{1,3})\](?:\[ext [0-9]+\])?(?:\(([0-9a-f]{1,16})\))?\s*'
    r'# (?:lid ([0-9]{1,6}) lmc [0-9]+ )?".*" lid ([0-9]{1,6}) ([0-9]{1,2}x|\?\?)(\S+)(?: s=[0-9]+ w=[0-9]+ v=[0-9]+ e=[0-9]+)?\s*\Z',
    re.ASCII,
)


def parse(text: str) -> Topology:
    """The nodes, and each link once, in the order of the text.

    :raises ParseError: no node at all; a line of another form, as where the output was cut off; a link to a node that is not described; a node without a link
    """
    nodes: typing.Dict[str, FabricNode] = {}
    links: typing.Dict[typing.Tuple[typing.Tuple[str, int], typing.Tuple[str, int]], Link] = {}
    current: typing.Optional[FabricNode] = None
    if text and not text.endswith("\n"):
        raise ParseError("ibnetdiscover", text[text.rfind("\n") + 1 :], "complete: the last line has no end, the output was cut off")
    # not splitlines(): a description may hold what Unicode takes for the end of a line
    for count, line in enumerate(text.split("\n"), 1):
        if line.startswith("[") and current is not None:
            match = _PORT.match(line)
            if not match:
                raise ParseError(f"ibnetdiscover, line {count}", line, "the line of a port")
            ends = (current.guid, int(match.group(1))), (_guid(match.group(4)), int(match.group(5)))
            key = (min(ends), max(ends))
            # each link is printed at both of its ends
            if key not in links:
                links[key] = _link(current, match)
        elif not line.strip() or line.startswith(_SKIPPED):
            continue
        else:
            current = _node(line, count)
            nodes[current.guid] = current
    if not nodes:
        raise ParseError("ibnetdiscover", text.strip(), "a topology with at least one node")
    for link in links.values():
        for end in (link.a, link.b):
            if end.guid not in nodes:
                raise ParseError("ibnetdiscover", f"a link to {end.kind} {end.guid}", "complete: that node is not described, the output was cut off")
    linked = {end.guid for link in links.values() for end in (link.a, link.b)}
    for node in nodes.values():
        # only an HCA without a link may stand alone: everything else was found through a link
        if node.guid not in linked and (len(nodes) > 1 or node.kind == "Switch"):
            raise ParseError("ibnetdiscover", f"{node.kind} {node.guid} without a link", "complete: a node is found through a link, the output was cut off")
    return Topology(tuple(nodes.values()), tuple(links.values()))


def _node(line: str, count: int) -> FabricNode:
    match = _NODE.match(line)
    if not match:
        raise ParseError(f"ibnetdiscover, line {count}", line, "the line of a node or a port")
    ports, letter, guid, description, rest = match.groups()
    lid = _SWITCH_LID.match(rest)
    if (letter == "S") != bool(lid) or (letter != "S" and rest.strip()):
        raise ParseError(f"ibnetdiscover, line {count}", line, "the line of a switch with its LID, or of a CA or router without one")
    return FabricNode(
        kind=_KINDS[letter],
        guid=_guid(guid),
        description=description,
        ports=int(ports),
        lid=int(lid.group(1)) if lid else None,
        aggregation=letter == "H" and "Aggregation Node" in description,
    )


def _link(node: FabricNode, match: typing.Match[str]) -> Link:
    port, port_guid, letter, guid, far_port, far_port_guid, lid, far_lid, width, speed = match.groups()
    near = LinkEnd(node.kind, node.guid, int(port), int(lid) if lid else node.lid, _guid(port_guid) if port_guid else None)
    far = LinkEnd(_KINDS[letter], _guid(guid), int(far_port), int(far_lid), _guid(far_port_guid) if far_port_guid else None)
    # 44.0 knows no XDR and prints question marks: not known is not SDR
    return Link(near, far, int(width[:-1]) if width != "??" else None, None if "?" in speed else speed)


def _guid(text: str) -> str:
    return f"0x{int(text, 16):016x}"
