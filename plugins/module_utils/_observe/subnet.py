# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection linerate.rdma: no other code may import this.

"""What the ports of a node say of their subnets, by sminfo, saquery and ibnetdiscover (package infiniband-diags; root, or access to /dev/infiniband/umad*)."""

from __future__ import annotations

import dataclasses
import time
import typing

from .._model.errors import ParseError, RdmaError
from .._model.facts import NodeHcas, PortName, SeenSubnet, SeenTopology, SubnetManager
from .._parse import ibnetdiscover, saquery, sminfo
from . import command

PACKAGE = "infiniband-diags"
#: the tools retry by themselves: a query that nobody answers takes some seconds
_QUERY_SECONDS = 30.0
#: what sminfo says, on its standard output, when its question stayed without an answer
_SILENT = "iberror: failed: query"
#: tools at once: they share the node's one management queue pair a port, and a fabric simulator has few places
_PARALLEL = 3
#: between two looks at the activity count
_LOOK_SECONDS = 2.0


def arguments(name: PortName) -> typing.Tuple[str, ...]:
    """Options of infiniband-diags that choose a port."""
    return ("-C", name.device, "-P", str(name.port))


def infiniband_ports(node: NodeHcas) -> typing.Tuple[typing.Tuple[PortName, str], ...]:
    """The InfiniBand ports of the physical functions, each with why it can't be asked; empty when it can.

    A port without a link has no way to a subnet manager: asking it only costs the tool's time.
    """
    result = []
    for hca in node.hcas:
        for port in hca.ports:
            if hca.rdma_device and not hca.is_virtual and port.link_layer == "InfiniBand":
                linked = port.physical_state in (None, "LinkUp")
                why = "" if linked else f"the port is {port.state}, its link is {port.physical_state}: no subnet manager can be asked through it"
                result.append((PortName(hca.rdma_device, port.number), why))
    return tuple(result)


def read_subnets(ports: typing.Sequence[typing.Tuple[PortName, str]], interval_seconds: float) -> typing.Tuple[SeenSubnet, ...]:
    """Ask through every port for its subnet manager, then once for each manager for all the others and whether its activity rises.

    Ports of one subnet give the same records: one of them is asked and all of them carry the answer.

    :param ports: and why one is not to be asked
    :param interval_seconds: how long the activity count may take to rise; ends as soon as it has. A sweep of opensm comes every 10 s
    :raises ToolMissing: no sminfo or no saquery
    """
    asked = [name for name, why in ports if not why]
    if asked:
        command.require("sminfo", PACKAGE)
        command.require("saquery", PACKAGE)
    answers = dict(zip(asked, command.each(_ask, asked, _PARALLEL)))
    first_port: typing.Dict[str, PortName] = {}
    for name in asked:
        master = answers[name].master
        if master:
            first_port.setdefault(master.guid, name)
    managers = list(first_port)
    records = dict(zip(managers, command.each(lambda guid: _read_records(guid, first_port[guid], interval_seconds), managers, _PARALLEL)))
    result = []
    for name, why in ports:
        seen = answers.get(name, SeenSubnet(name.device, name.port, error=why))
        result.append(dataclasses.replace(seen, **records[seen.master.guid]) if seen.master else seen)
    return tuple(result)


def _ask(name: PortName) -> SeenSubnet:
    finished = command.run((command.require("sminfo", PACKAGE), *arguments(name)), _QUERY_SECONDS)
    try:
        # the output counts only with exit code 0
        manager = sminfo.parse(finished.stdout) if not finished.failure else None
    except ParseError as error:
        return SeenSubnet(name.device, name.port, error=str(error))
    return SeenSubnet(name.device, name.port, master=manager, error=finished.failure or None, silent=_SILENT in finished.stdout)


def _read_records(guid: str, name: PortName, interval_seconds: float) -> typing.Dict[str, typing.Any]:
    """The fields of SeenSubnet that come from SMInfo records."""
    started = time.monotonic()
    try:
        managers = _query_records(name)
        first = _activity(managers, guid)
        others = tuple(manager for manager in managers if manager.guid != guid)
        known = {manager.guid: manager.activity for manager in others}
        later: typing.Optional[int] = None
        refreshed = False if others else None
        while time.monotonic() - started < interval_seconds and (later is None or later == first or refreshed is False):
            time.sleep(min(_LOOK_SECONDS, interval_seconds))
            again = _query_records(name)
            later = _activity(again, guid)
            if any(known.get(manager.guid, manager.activity) != manager.activity for manager in again if manager.guid != guid):
                refreshed = True
    except RdmaError as error:
        return {"records_error": str(error)}
    return {
        "others": others,
        "activity_first": first,
        "activity_later": later,
        "activity_seconds": round(time.monotonic() - started, 1),
        "others_refreshed": refreshed,
    }


def _query_records(name: PortName) -> typing.Tuple[SubnetManager, ...]:
    finished = command.run((command.require("saquery", PACKAGE), *arguments(name), "SMIR"), _QUERY_SECONDS)
    if finished.failure:
        raise RdmaError(finished.failure)
    return saquery.parse_sm_records(finished.stdout)


def _activity(managers: typing.Sequence[SubnetManager], guid: str) -> int:
    for manager in managers:
        if manager.guid == guid:
            return manager.activity
    raise RdmaError(f"the subnet administration has no SMInfo record of the manager {guid} that sminfo shows")


def read_topology(name: PortName, limit_seconds: float) -> SeenTopology:
    """The topology as seen from one port.

    :raises ToolMissing: no ibnetdiscover
    """
    finished = command.run((command.require("ibnetdiscover", PACKAGE), *arguments(name)), limit_seconds)
    if finished.failure:
        return SeenTopology(name.device, name.port, error=finished.failure)
    try:
        return SeenTopology(name.device, name.port, topology=ibnetdiscover.parse(finished.stdout))
    except ParseError as error:
        return SeenTopology(name.device, name.port, error=str(error))
