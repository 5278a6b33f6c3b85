# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A fat tree in the lab's simulator, with a real opensm that computes its tables, and the diagnostics on this process'
PATH that reach it.

It has UDP ports of its own on the loopback, so it neither needs the lab to run nor disturbs one that does. The programs
are the lab's: its builds, kept in the user's cache, are made by the first run.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import os
import pathlib
import shlex
import socket
import subprocess
import sys
import tempfile
import time
import typing

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3]))

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.schedule.link_directions import End
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.schedule.paths import PathTable
from ansible_collections.linerate.rdma.plugins.module_utils._model.infiniband.fabric import Topology
from ansible_collections.linerate.rdma.plugins.module_utils._observe.process import command
from ansible_collections.linerate.rdma.plugins.module_utils._parse.infiniband import dump_fts, ibnetdiscover
from dev.steps import StepError
from lab.build import ibsim
from lab.fabric import topology as lab_topology
from lab.fabric.model import CLIENTS, Fabric
from lab.fabric.programs import Programs
from lab.fabric.subnet_manager import opensm_settings
from lab.processes import wait_until

ENGINES = ("ftree", "minhop")
#: of the host through which all is asked; opensm is at the one before
DEVICE = "mlx5_0"
TOOLS = ("ibnetdiscover", "iblinkinfo", "ibqueryerrors", "saquery", "sminfo", "smpquery", "dump_fts")
_ADDRESS = "127.0.0.1"
_LIMIT = 60.0
_LOOK = 0.02
_GUID = 0xB83FD203_00000000


class NotStarted(Exception):
    """Why there is no such fabric here, in a few words."""


@dataclasses.dataclass(frozen=True)
class Shape:
    """Two levels: as many HCAs on each leaf, each leaf with a link to each spine. HCA k of a host is on leaf k of a
    unit of leaves, which other units follow.

    :ivar on_leaf: HCAs on each leaf
    """

    leaves: int
    spines: int
    on_leaf: int
    rails: int = 1

    @property
    def hosts(self) -> int:
        return self.leaves * self.on_leaf // self.rails

    def __str__(self) -> str:
        return f"{self.hosts:,} hosts x {self.rails} rail{'s' if self.rails > 1 else ''}"


def built(shape: Shape) -> lab_topology.Topology:
    """As the lab's own fabrics, without servers for the subnet manager: it runs on a host."""
    guids = (_GUID + 16 * number for number in range(1, 1 << 20))
    # dump_fts leaves out the last LID where that is a multiple of 64, as it would be here with those from 1 on
    lids = itertools.count(2)
    switches = [
        lab_topology.Node("switch", next(guids), f"MF0;{kind}{number:02}:MQM9700/U1", next(lids))
        for kind, count in (("leaf", shape.leaves), ("spine", shape.spines))
        for number in range(count)
    ]
    leaves, spines = switches[: shape.leaves], switches[shape.leaves :]
    links = [
        lab_topology.Link(leaf, shape.on_leaf + 1 + place, spine, number + 1)
        for number, leaf in enumerate(leaves)
        for place, spine in enumerate(spines)
    ]
    hosts = {}
    for host in range(shape.hosts):
        for rail in range(shape.rails):
            node = lab_topology.Node("hca", next(guids), f"node-{host + 1:04} mlx5_{rail}", next(lids))
            hosts[f"node-{host + 1:04}", f"mlx5_{rail}"] = node
            leaf = leaves[host // shape.on_leaf * shape.rails + rail]
            links.append(lab_topology.Link(leaf, host % shape.on_leaf + 1, node, 1))
    return lab_topology.Topology(
        Fabric("simulated", 0, shape.leaves, shape.spines), tuple(switches), (), hosts, tuple(links)
    )


def ends_of(topology: Topology) -> list[End]:
    """The ends that a topology shows: node and rail from the description of each HCA."""
    named = {node.guid: node.description.split() for node in topology.nodes if node.kind == "Ca"}
    ends = []
    for link in topology.links:
        for end in (link.a, link.b):
            if end.kind != "Switch" and end.lid and end.port_guid:
                node, device = named[end.guid]
                ends.append(End(node, int(device.rpartition("_")[2]), end.port_guid, end.lid))
    return sorted(ends, key=lambda end: (end.node, end.rail))


@dataclasses.dataclass(frozen=True)
class Read:
    """What the tools printed of a fabric, with the seconds that they took.

    :ivar sweep: seconds from the start of opensm until it said that the subnet was up
    """

    sweep: float
    topology: str
    topology_seconds: float
    tables: str
    tables_seconds: float

    def ways(self) -> PathTable:
        topology = ibnetdiscover.parse(self.topology)
        return PathTable(topology, dump_fts.parse(self.tables), ends_of(topology), across=True)


def read(shape: Shape, engine: str) -> Read:
    """Start the fabric, let opensm sweep it, and read topology and tables of the switches as an observer does.

    :raises NotStarted: it did not come to that
    """
    with tempfile.TemporaryDirectory(prefix="fabric-") as folder, running(shape, engine, pathlib.Path(folder)) as sweep:
        return read_now(sweep)


def read_now(sweep: float) -> Read:
    """The same of the fabric that runs.

    :raises NotStarted: a tool failed
    """
    topology, topology_seconds = _run("ibnetdiscover")
    return Read(sweep, topology, topology_seconds, *_run("dump_fts", "-n"))


def _run(tool: str, *more: str) -> tuple[str, float]:
    start = time.monotonic()
    finished = command.run((command.require_tool(tool, "infiniband-diags"), "-C", DEVICE, "-P", "1", *more), _LIMIT)
    if finished.failure:
        raise NotStarted(finished.failure)
    return finished.stdout, time.monotonic() - start


@contextlib.contextmanager
def running(shape: Shape, engine: str, folder: pathlib.Path) -> typing.Iterator[float]:
    """The fabric, as long as the context is open, swept once. Answers the seconds of that.

    :param folder: empty, for its files
    :raises NotStarted: the lab's programs can't be built, or did not come up
    """
    programs, item, port = _programs(), built(shape), _free_ports()
    netfile = folder / "netfile"
    netfile.write_text(lab_topology.netfile(item))
    switches = len(item.switches)
    size = [
        "-N",
        str(switches + len(item.hcas)),
        "-S",
        str(switches),
        "-P",
        str(switches * (lab_topology.SWITCH_ALL_PORTS + 1) + 2 * len(item.hcas)),
    ]
    first, (second, *_others) = (
        item.hcas[0],
        [node for (_host, device), node in list(item.hosts.items())[1:] if device == DEVICE],
    )
    with contextlib.ExitStack() as stack:
        log = stack.enter_context(open(folder / "ibsim.log", "wb"))
        simulator = stack.enter_context(
            _process([str(programs.ibsim), "-r", "-l", str(port), *size, "-s", str(netfile)], folder, log, {})
        )
        (folder / "guid2lid").write_text(lab_topology.lid_file(item))
        settings = folder / "opensm.conf"
        more = {"routing_engine": engine, "sweep_interval": "10", "force_log_flush": "TRUE"}
        settings.write_text(opensm_settings(first.port_guid, 15, folder, more))
        env = {**_client(port, first, folder), "OSM_CACHE_DIR": str(folder), "OSM_TMP_DIR": str(folder)}
        _wait(simulator, lambda: _serves(port), "ibsim", folder / "ibsim.log")
        output = stack.enter_context(open(folder / "opensm.out", "wb"))
        start = time.monotonic()
        manager = stack.enter_context(_process([*_tool(programs, "opensm"), "-F", str(settings)], folder, output, env))
        told = folder / "opensm.log"
        _wait(manager, lambda: told.exists() and "SUBNET UP" in told.read_text(errors="replace"), "opensm", told)
        sweep = time.monotonic() - start
        if f"{engine} tables configured on all switches" not in told.read_text(errors="replace"):
            raise NotStarted(f"opensm did not route by {engine}: {_end(told)}")
        tools = folder / "tools"
        tools.mkdir()
        for name in TOOLS:
            words = " ".join(f"{key}={shlex.quote(value)}" for key, value in _client(port, second, folder).items())
            (tools / name).write_text(f'#!/bin/sh\nexec env {words} {shlex.join(_tool(programs, name))} "$@"\n')
            (tools / name).chmod(0o755)
        before = os.environ.get("PATH", "")
        stack.callback(os.environ.__setitem__, "PATH", before)
        os.environ["PATH"] = f"{tools}{os.pathsep}{before}"
        yield sweep


def _programs() -> Programs:
    """:raises NotStarted: they can't be built here"""
    try:
        return ibsim.programs()
    except (StepError, OSError) as error:
        raise NotStarted(str(error)) from error


def _free_ports() -> int:
    """First of the UDP ports of an ibsim: one for control, one for each client."""
    for first in range(20000, 60000, CLIENTS + 2):
        with contextlib.ExitStack() as stack:
            try:
                for port in range(first, first + CLIENTS + 1):
                    stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)).bind(("", port))
            except OSError:
                continue
            return first
    raise NotStarted(f"no {CLIENTS + 1} UDP ports that follow each other are free")


def _serves(port: int) -> bool:
    """Whether the control port is taken."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
        try:
            end.bind(("", port))
        except OSError:
            return True
    return False


@contextlib.contextmanager
def _process(
    argv: typing.Sequence[str], folder: pathlib.Path, output: typing.BinaryIO, env: typing.Mapping[str, str]
) -> typing.Iterator[subprocess.Popen[bytes]]:
    # a console that stays open: ibsim ends with it
    with subprocess.Popen(
        argv, cwd=folder, stdin=subprocess.PIPE, stdout=output, stderr=output, env={**os.environ, **env}
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def _wait(process: subprocess.Popen[bytes], ready: typing.Callable[[], bool], name: str, log: pathlib.Path) -> None:
    def up() -> bool:
        if ready():
            return True
        if process.poll() is not None:
            raise NotStarted(f"{name} ended with {process.returncode}: {_end(log)}")
        return False

    if not wait_until(up, _LIMIT, _LOOK):
        raise NotStarted(f"{name} was not ready within {_LIMIT:.0f} s: {_end(log)}")


def _end(log: pathlib.Path) -> str:
    return " ".join(log.read_text(errors="replace").split())[-300:] if log.exists() else "no output"


def _tool(programs: Programs, name: str) -> list[str]:
    """With the loader and the libraries of the file system that it is from."""
    root = programs.root
    loader = [str(root / "usr/lib64/ld-linux-x86-64.so.2"), "--library-path", str(root / "usr/lib/x86_64-linux-gnu")]
    return [*loader, "--preload", str(programs.umad2sim), "--argv0", name, str(root / "usr/sbin" / name)]


def _client(port: int, node: lab_topology.Node, folder: pathlib.Path) -> dict[str, str]:
    clients = folder / "clients"
    clients.mkdir(exist_ok=True)
    return {
        "IBSIM_SERVER_NAME": _ADDRESS,
        "IBSIM_SERVER_PORT": str(port),
        "SIM_HOST": node.id,
        "SIM_CA_NAME": DEVICE,
        "SIM_SYSFS_DIR": str(clients),
    }
