# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the subnets of the InfiniBand ports of a node with the tools of the package infiniband-diags. This needs root or
access to /dev/infiniband/umad*.
"""

from __future__ import annotations

import dataclasses
import os
import tempfile
import time
import typing

from ..._model.base.errors import ParseError, RdmaError
from ..._model.base.operand import require_operand
from ..._model.infiniband.error_counters import ErrorReport, SeenErrors
from ..._model.infiniband.fabric import (
    LostManager,
    ManagerPort,
    SeenCapabilities,
    SeenManagers,
    SeenSubnet,
    SeenTopology,
    SubnetManager,
)
from ..._model.infiniband.forwarding import SeenForwarding
from ..._model.measurement.reachability import PortName
from ..._model.node.hca import NodeHcas
from ..._parse.infiniband import dump_fts, iblinkinfo, ibnetdiscover, ibqueryerrors, saquery, sminfo, smpquery
from ..._parse.limits import MIB
from ..process import command
from . import umad

PACKAGE = "infiniband-diags"
#: the tools retry by themselves: a query that nobody answers takes some seconds
_QUERY_SECONDS = 30.0
#: bytes that a tool prints of a whole fabric. dump_fts has 12 of them for each LID on each switch: 90 MB for 600
#: switches and 12,000 LIDs
_MOST_OUTPUT = 512 * MIB
#: what sminfo says, on its standard output, when its question stayed without an answer
_SILENT = "iberror: failed: query"
#: tools at once: they share the node's one management queue pair a port, and a fabric simulator has few places
_PARALLEL = 3
#: between two looks at the activity count
_LOOK_SECONDS = 2.0


@dataclasses.dataclass(frozen=True)
class PortQuery:
    """An InfiniBand port of this node through which the subnet manager is to be queried.

    :ivar name: RDMA device and number of the port
    :ivar why_not: reason why the port cannot send a query; empty if it can
    :ivar sm_lid: LID of the subnet manager that the port has stored; None if unknown
    """

    name: PortName
    why_not: str = ""
    sm_lid: typing.Optional[int] = None


@dataclasses.dataclass(frozen=True)
class SubnetLimits:
    """The time limits for reading one fabric, in seconds.

    :ivar discovery: limit for one discovery of the whole fabric
    :ivar activity: longest wait for the activity count of the subnet manager to rise. opensm sweeps every 10 s
    :ivar errors: minimum time between two readings of the error counters
    """

    discovery: float
    activity: float
    errors: float


def build_arguments(name: PortName) -> tuple[str, ...]:
    """Return the command-line options that make a tool of infiniband-diags use a port: ``-C`` and ``-P``.

    :param name: local port that the tool is to use
    :raises OperandError: the name of the RDMA device begins with a hyphen, so that the tool would read it as an option
    """
    return ("-C", require_operand(name.device, "the RDMA device"), "-P", str(name.port))


def list_infiniband_ports(node: NodeHcas) -> tuple[PortQuery, ...]:
    """Return the InfiniBand ports of the physical functions. A port without a link is returned with the reason in
    ``why_not``, because it cannot reach a subnet manager.

    :param node: HCAs of this node
    """
    result = []
    for hca in node.hcas:
        for port in hca.ports:
            if hca.rdma_device and not hca.is_virtual and port.link_layer == "InfiniBand":
                why = (
                    ""
                    if port.linked
                    else (
                        f"the port is {port.state}, its link is {port.physical_state}: the subnet manager could not"
                        " be queried through it"
                    )
                )
                result.append(PortQuery(PortName(hca.rdma_device, port.number), why, port.sm_lid))
    return tuple(result)


def read_subnets(
    questions: typing.Sequence[PortQuery], sysfs: typing.Sequence[str] = ("/sys",)
) -> tuple[SeenSubnet, ...]:
    """Query the subnet manager through each port, and return one result for each port, in the same order. A failed
    query is stored as the error of its result, and so is the reason of a port that cannot send a query.

    :param questions: ports through which the queries are sent
    :param sysfs: sysfs roots that are searched for the cause of a failed query
    :raises ToolMissing: sminfo or smpquery is not installed
    """
    asked = [question for question in questions if not question.why_not]
    if asked:
        command.require_tool("sminfo", PACKAGE)
        command.require_tool("smpquery", PACKAGE)
    answers = {
        question: (
            dataclasses.replace(seen, barrier=umad.find_barrier(question.name, sysfs))
            if seen.error and not seen.silent
            else seen
        )
        for question, seen in zip(asked, command.call_each(_ask_subnet_manager, asked, _PARALLEL))
    }
    return tuple(
        answers.get(item) or SeenSubnet(item.name.device, item.name.port, error=item.why_not, linked=False)
        for item in questions
    )


def _ask_subnet_manager(question: PortQuery) -> SeenSubnet:
    seen = _ask_once(question.name)
    if seen.silent:
        # datagrams get lost, and a manager that is busy answers late: silence counts when it lasts
        seen = _ask_once(question.name)
    if seen.silent and question.sm_lid:
        return dataclasses.replace(seen, lost=_read_lost_manager(question.name, question.sm_lid))
    return seen


def _ask_once(name: PortName) -> SeenSubnet:
    finished = command.run((command.require_tool("sminfo", PACKAGE), *build_arguments(name)), _QUERY_SECONDS)
    try:
        # the output counts only with exit code 0
        manager = sminfo.parse(finished.stdout) if not finished.failure else None
    except ParseError as error:
        return SeenSubnet(name.device, name.port, error=str(error))
    if manager is not None:
        return SeenSubnet(name.device, name.port, master=manager)
    return SeenSubnet(name.device, name.port, error=finished.failure or None, silent=_SILENT in finished.stdout)


def _read_lost_manager(name: PortName, lid: int) -> LostManager:
    """Query the port at the LID of the subnet manager that no longer answers. Switches still have a route to this LID.
    If the port does not answer, return a LostManager with only the LID.

    :param name: local port through which the query is sent
    :param lid: LID of the lost subnet manager
    """
    try:
        is_manager = smpquery.parse_is_manager(_run_port_query("smpquery", name, "portinfo", str(lid)))
        description = smpquery.parse_description(_run_port_query("smpquery", name, "nodedesc", str(lid)))
    except RdmaError:
        # that it does not answer is the answer
        return LostManager(lid)
    return LostManager(lid, description, is_manager)


def _run_port_query(tool: str, name: PortName, *more: str) -> str:
    """Run a tool that sends a query through a port, and return its output.

    :param tool: name of the program
    :param name: local port through which the query is sent
    :param more: further command-line arguments
    :raises RdmaError: the tool failed, or did not end within 30 seconds
    :raises ToolMissing: the tool is not installed
    """
    finished = command.run((command.require_tool(tool, PACKAGE), *build_arguments(name), *more), _QUERY_SECONDS)
    if finished.failure:
        raise RdmaError(finished.failure)
    return finished.stdout


def read_fabrics(names: typing.Sequence[PortName], limits: SubnetLimits) -> tuple[SeenTopology, ...]:
    """Read the fabric of each port as ``read_fabric`` does, several ports at the same time. Return one topology for
    each port, in the same order.

    :param names: local ports through which the fabrics are read
    :param limits: time limits for each port
    :raises ToolMissing: a tool is not installed
    """
    return command.call_each(lambda name: read_fabric(name, limits), names, _PARALLEL)


def read_fabric(name: PortName, limits: SubnetLimits) -> SeenTopology:
    """Return topology, links, forwarding tables, subnet managers and error counters of the fabric of one port. If a
    tool fails, its part of the result has the error, and without a topology the other tools are not run.

    The fabric is discovered once, and the other tools load the cached discovery. Only dump_fts cannot do that. If no
    subnet manager answers, only the topology is read. The error counters are read twice, at least ``limits.errors``
    seconds apart.

    :param name: local port through which the fabric is read
    :param limits: time limits of the tools, in seconds
    :raises ToolMissing: a tool is not installed
    """
    for tool in ("ibnetdiscover", "iblinkinfo", "ibqueryerrors", "saquery", "sminfo", "dump_fts"):
        command.require_tool(tool, PACKAGE)
    with tempfile.TemporaryDirectory(prefix="linerate-") as folder:
        # the tool refuses to write to a file that exists
        walked = os.path.join(folder, "fabric")
        seen = _read_topology(name, walked, limits.discovery)
        if seen.topology is None or _ask_subnet_manager(PortQuery(name)).silent:
            # without a manager there is no administration to ask, and no way by LID to the counters
            return seen
        started = time.monotonic()
        first = _read_errors(name, walked, limits.discovery)
        capabilities = _read_capabilities(name, walked, limits.discovery)
        forwarding = _read_forwarding(name, limits.discovery)
        managers = _read_managers(name, limits.activity)
        time.sleep(max(0.0, limits.errors - (time.monotonic() - started)))
        seconds = round(time.monotonic() - started, 1)
        later = _read_errors(name, walked, limits.discovery)
    error = next((report for report in (first, later) if isinstance(report, str)), None)
    errors = SeenErrors(
        first if isinstance(first, ErrorReport) else None,
        later if isinstance(later, ErrorReport) else None,
        seconds,
        error,
    )
    return dataclasses.replace(seen, managers=managers, capabilities=capabilities, errors=errors, forwarding=forwarding)


def _read_topology(name: PortName, walked: str, limit_seconds: float) -> SeenTopology:
    finished = command.run(
        (command.require_tool("ibnetdiscover", PACKAGE), *build_arguments(name), "--cache", walked),
        limit_seconds,
        most_bytes=_MOST_OUTPUT,
    )
    if finished.failure:
        return SeenTopology(name.device, name.port, error=finished.failure)
    try:
        return SeenTopology(name.device, name.port, topology=ibnetdiscover.parse(finished.stdout))
    except ParseError as error:
        return SeenTopology(name.device, name.port, error=str(error))


def _read_capabilities(name: PortName, walked: str, limit_seconds: float) -> SeenCapabilities:
    finished = command.run(
        (command.require_tool("iblinkinfo", PACKAGE), *build_arguments(name), "--load-cache", walked, "--line"),
        limit_seconds,
        most_bytes=_MOST_OUTPUT,
    )
    if finished.failure:
        return SeenCapabilities(error=finished.failure)
    try:
        return iblinkinfo.parse(finished.stdout)
    except ParseError as error:
        return SeenCapabilities(error=str(error))


def _read_forwarding(name: PortName, limit_seconds: float) -> SeenForwarding:
    """Return the forwarding tables that dump_fts prints, or the error. Node names are omitted, because they are most of
    the output of a large fabric.

    :param name: local port through which the tables are read
    :param limit_seconds: time limit of the tool in seconds
    """
    finished = command.run(
        (command.require_tool("dump_fts", PACKAGE), *build_arguments(name), "-n"),
        limit_seconds,
        most_bytes=_MOST_OUTPUT,
    )
    if finished.failure:
        return SeenForwarding(error=finished.failure)
    try:
        return SeenForwarding(dump_fts.parse(finished.stdout, finished.stderr))
    except ParseError as error:
        return SeenForwarding(error=str(error))


def _read_errors(name: PortName, walked: str, limit_seconds: float) -> typing.Union[ErrorReport, str]:
    """Return the error counters of the fabric, or a text with the reason why they could not be read. The threshold file
    of this node is not used, because it would hide counters below its thresholds. PortXmitWait is omitted, because
    waiting to send is not an error.

    :param name: local port through which the fabric is read
    :param walked: file with the cached discovery of the fabric
    :param limit_seconds: time limit of the tool in seconds
    """
    options = ("--load-cache", walked, "--threshold-file", os.devnull, "--suppress", "PortXmitWait")
    finished = command.run(
        (command.require_tool("ibqueryerrors", PACKAGE), *build_arguments(name), *options),
        limit_seconds,
        most_bytes=_MOST_OUTPUT,
    )
    # 1: errors were found
    if finished.rc not in (0, 1):
        return finished.failure
    try:
        return ibqueryerrors.parse(finished.stdout, finished.stderr)
    except ParseError as error:
        words = finished.stderr.strip()
        return f"{error}; {words[:300]}" if words else str(error)


def _read_managers(name: PortName, interval_seconds: float) -> SeenManagers:
    """Return the answer of each subnet manager that the subnet administration knows, and whether the activity count of
    the master rises. The SMInfo records are read until it has risen, or the time limit is reached. A failure is stored
    in the field ``error`` of the result.

    :param name: local port through which the queries are sent
    :param interval_seconds: time limit in seconds for the activity count to rise
    """
    managers = SeenManagers()
    try:
        lids = saquery.parse_manager_ports(_run_port_query("saquery", name, "-s"))
        managers = dataclasses.replace(
            managers, ports=command.call_each(lambda lid: _ask_manager(name, lid), lids, _PARALLEL)
        )
        master = sminfo.parse(_run_port_query("sminfo", name)).guid
        return dataclasses.replace(managers, master=master, **_watch_activity(master, name, interval_seconds))
    except RdmaError as error:
        return dataclasses.replace(managers, error=str(error))


def _ask_manager(name: PortName, lid: int) -> ManagerPort:
    try:
        return ManagerPort(lid, sminfo.parse(_run_port_query("sminfo", name, str(lid))))
    except RdmaError as error:
        return ManagerPort(lid, error=str(error))


def _watch_activity(master: str, name: PortName, interval_seconds: float) -> dict[str, typing.Any]:
    """Return the values of the fields of SeenManagers that come from SMInfo records, by name of the field. The query is
    repeated until the activity count of the master has risen and another manager's count has changed, if there is one,
    or until the limit is reached.

    :param master: GUID of the master subnet manager
    :param name: local port through which the queries are sent
    :param interval_seconds: limit in seconds
    :raises RdmaError: a query fails, or the master has no record
    """
    started = time.monotonic()
    managers = saquery.parse_sm_records(_run_port_query("saquery", name, "SMIR"))
    first = _read_activity(managers, master)
    known = {manager.guid: manager.activity for manager in managers if manager.guid != master}
    later: typing.Optional[int] = None
    refreshed = False if known else None
    while time.monotonic() - started < interval_seconds and (later is None or later == first or refreshed is False):
        time.sleep(min(_LOOK_SECONDS, interval_seconds))
        again = saquery.parse_sm_records(_run_port_query("saquery", name, "SMIR"))
        later = _read_activity(again, master)
        if any(
            known.get(manager.guid, manager.activity) != manager.activity for manager in again if manager.guid != master
        ):
            refreshed = True
    return {
        "activity_first": first,
        "activity_later": later,
        "activity_seconds": round(time.monotonic() - started, 1),
        "others_refreshed": refreshed,
    }


def _read_activity(managers: typing.Sequence[SubnetManager], guid: str) -> int:
    for manager in managers:
        if manager.guid == guid:
            return manager.activity
    raise RdmaError(f"the subnet administration has no SMInfo record of the manager {guid} that sminfo reports")
