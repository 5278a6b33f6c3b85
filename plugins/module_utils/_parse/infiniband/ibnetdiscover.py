# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse the output of ibnetdiscover (infiniband-diags/ibnetdiscover.c), the topology as text.

A node description is free text, which may contain quotes, commas and brackets. A line is therefore matched from both
ends and never split. A fabric of 10,000 hosts has 700,000 lines. One regular expression scans the whole text, so that
Python code runs only for the lines of nodes and ports.
"""

from __future__ import annotations

import contextlib
import gc
import re
import typing

from ..._model.base.errors import ParseError
from ..._model.infiniband.fabric import FabricNode, Link, LinkEnd, Topology

_KINDS = {"S": "Switch", "H": "Ca", "R": "Router"}
#: a line goes from one \n to the next: a description may hold what Unicode takes for the end of a line
_SPACE = r"[^\S\n]"
#: lines that carry nothing for us: empty ones, comments, identities that the node's own line repeats, chassis of
#: --group
_NOTHING = rf"(?:\n|(?:vendid|devid|sysimgguid|switchguid|caguid|rtguid)=.*\n|(?:#|Chassis ).*\n|{_SPACE}+\n)*"
_SWITCH = (
    rf'Switch{_SPACE}+([0-9]{{1,3}}) "S-([0-9a-f]{{16}})"{_SPACE}*# "(.*)" (?:enhanced|base) port 0 lid ([0-9]{{1,6}})'
    r" lmc [0-9]{1,3}.{0,200}\n"
)
_OTHER_NODE = rf'(?:Ca|Rt){_SPACE}+([0-9]{{1,3}}) "([HR])-([0-9a-f]{{16}})"{_SPACE}*# "(.*)"{_SPACE}*\n'
#: '(?:x|)' is what '(?:x)?' says, and takes less time
_PORT = (
    rf"\[([0-9]{{1,3}})\](?:\[ext [0-9]+\]|)(?:\(([0-9a-f]{{1,16}})\)|){_SPACE}+"
    rf'"([SHR])-([0-9a-f]{{16}})"\[([0-9]{{1,3}})\](?:\[ext [0-9]+\]|)(?: ?\(([0-9a-f]{{1,16}})\)|){_SPACE}*'
    r'# (?:lid ([0-9]{1,6}) lmc ([0-7]) |)".*" lid ([0-9]{1,6}) (?:([0-9]{1,2})x|\?\?)(\S+)'
    r"(?: s=[0-9]+ w=[0-9]+ v=[0-9]+(?: e=[0-9]+)?|)(?: slot [0-9]+| \(scp\)|)"
    rf"{_SPACE}*\n"
)
#: whatever the text, one of these is there; none of the groups means its end. Empty lines alone may be of what Unicode
#: takes for space
_LINES = re.compile(rf"{_NOTHING}(?a:{_PORT}|{_OTHER_NODE}|{_SWITCH}|(.+)(?:\n|\Z)|\Z)")
#: the last group of each
_PORT_END, _OTHER_NODE_END, _SWITCH_END = 11, 15, 19


@contextlib.contextmanager
def _no_garbage_collection() -> typing.Iterator[None]:
    """Provide a context in which the garbage collector is disabled. No object of a topology becomes garbage, so
    repeated collections would only take time, a third of that of parsing.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            if not gc.get_freeze_count():
                # makes all objects old without a look at them; as young ones they would be gone over at once
                gc.freeze()
                gc.unfreeze()
            gc.enable()


@_no_garbage_collection()
def parse(text: str) -> Topology:
    """Parse the nodes and links of a topology, in the order of the text. Each link is listed once.

    :raises ParseError: there is no node, a line has an unexpected form or is cut off, a link leads to a node that is
        not described, or a node has no link
    """
    if text and not text.endswith("\n"):
        raise ParseError(
            "ibnetdiscover",
            text[text.rfind("\n") + 1 :],
            "complete output; the last line is not terminated, so the output was cut off",
        )
    nodes: dict[str, FabricNode] = {}
    # by the ports at both ends, as the first of its two lines names them
    links: dict[tuple[str, int, str, int], Link] = {}
    linked: set[str] = set()
    kind, guid, lid, lmc = "", "", None, 0
    for match in _LINES.finditer(text):
        last = match.lastindex
        if last == _PORT_END and guid:
            port_text, far_digits, far_port_text = match.group(1, 4, 5)
            port, far_guid, far_port = int(port_text), "0x" + far_digits, int(far_port_text)
            # each link is printed at both of its ends, so that a node which is not described yet has no line of it
            if far_guid not in nodes or (far_guid, far_port, guid, port) not in links:
                port_guid, letter, far_port_guid, near_lid, mask, far_lid, width, speed = match.group(
                    2, 3, 6, 7, 8, 9, 10, 11
                )
                near = LinkEnd(
                    kind,
                    guid,
                    port,
                    int(near_lid) if near_lid else lid,
                    "0x" + port_guid.zfill(16) if port_guid else None,
                )
                far = LinkEnd(
                    _KINDS[letter],
                    far_guid,
                    far_port,
                    int(far_lid),
                    "0x" + far_port_guid.zfill(16) if far_port_guid else None,
                )
                # 44.0 knows no XDR and prints question marks: not known is not SDR
                link = Link(near, far, int(width) if width else None, None if "?" in speed else speed)
                links.setdefault((guid, port, far_guid, far_port), link)
                linked.add(guid)
                linked.add(far_guid)
            else:
                mask = match.group(8)
            if mask and mask != "0":
                lmc = max(lmc, int(mask))
        elif last == _OTHER_NODE_END:
            ports, letter, digits, description = match.group(12, 13, 14, 15)
            kind, guid, lid = _KINDS[letter], "0x" + digits, None
            nodes[guid] = FabricNode(
                kind, guid, description, int(ports), None, "Aggregation Node" in description and letter == "H"
            )
        elif last == _SWITCH_END:
            ports, digits, description, lid_text = match.group(16, 17, 18, 19)
            kind, guid, lid = "Switch", "0x" + digits, int(lid_text)
            nodes[guid] = FabricNode(kind, guid, description, int(ports), lid)
        elif last:
            raise _not_understood(match, bool(guid))
    if not nodes:
        raise ParseError("ibnetdiscover", text.strip(), "a topology with at least one node")
    topology = Topology(tuple(nodes.values()), tuple(links.values()), lmc)
    if nodes.keys() != linked:
        _refuse_cut(topology, nodes.keys(), linked)
    return topology


def _not_understood(match: typing.Match[str], in_node: bool) -> ParseError:
    """Return the ParseError for a line of an unknown form, with its line number and the form that was expected.

    :param match: a match in the whole text, whose last line is the line of an unknown form
    :param in_node: whether the line follows the line of a node, so that it may be the line of a port
    """
    end = match.end() - 1
    line = match.string[match.string.rfind("\n", 0, end) + 1 : end]
    if line.startswith("["):
        expected = "the line of a port" if in_node else "the line of a port after the line of its node"
    elif line.startswith(("Switch", "Ca", "Rt")):
        expected = "the line of a switch with its LID, or of a CA or router without one"
    else:
        expected = "the line of a node or a port"
    return ParseError(f"ibnetdiscover, line {match.string.count(chr(10), 0, end) + 1}", line, expected)


def _refuse_cut(topology: Topology, described: typing.AbstractSet[str], linked: typing.AbstractSet[str]) -> None:
    """Raise an error if the output was cut off. In complete output, the nodes at both ends of each link are described,
    and each node has a link, except an HCA that is the only node.

    :param described: GUIDs of the nodes that are described
    :param linked: GUIDs of the nodes that have a link
    :raises ParseError: a node at the end of a link is not described, or a node has no link and is not a single HCA
    """
    for link in topology.links:
        if link.b.guid not in described:
            raise ParseError(
                "ibnetdiscover",
                f"a link to {link.b.kind} {link.b.guid}",
                "complete output; that node is not described, so the output was cut off",
            )
    for node in topology.nodes:
        # only an HCA without a link may stand alone: everything else was found through a link
        if node.guid not in linked and (len(described) > 1 or node.kind == "Switch"):
            raise ParseError(
                "ibnetdiscover",
                f"{node.kind} {node.guid} without a link",
                "complete output; a node is discovered through a link, so the output was cut off",
            )
