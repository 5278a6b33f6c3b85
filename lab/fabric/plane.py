# SPDX-License-Identifier: GPL-3.0-or-later

"""The fabric plane, running: one ibsim for each fabric, and on each a real opensm as master and another as standby."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time
import typing

from dev.steps import StepError

from ..processes import wait_until
from . import emulated, port, raise_counter, sysfs, topology
from .model import Fabrics
from .programs import ProcessManager, Programs
from .subnet_manager import PRIORITIES, SubnetManager, opensm_settings, parse_sminfo
from .topology import SUBNET_MANAGERS, Node, Topology

TOOL_LIMIT = 20.0
READY_LIMIT = 30.0
#: least seconds between two orders to sweep
SWEEP_LIMIT = 6.0

_LIBRARIES = "usr/lib/x86_64-linux-gnu"


@dataclasses.dataclass(frozen=True)
class FabricStatus:
    """:param managers: host of a subnet manager -> MASTER, STANDBY, ... or 'no answer'"""

    fabric: str
    simulator: bool
    managers: typing.Mapping[str, str]
    hcas: int
    active: int

    def __str__(self) -> str:
        if not self.simulator:
            return f"{self.fabric}: down"
        managers = ", ".join(f"{host} {state}" for host, state in self.managers.items())
        return f"{self.fabric}: {managers}; {self.active} of {self.hcas} HCA ports active"


class FabricPlane:
    """The plane of one lab.

    :param folder: the lab's folder; the plane's files go to fabric/ in it
    """

    def __init__(self, fabrics: Fabrics, folder: pathlib.Path, processes: ProcessManager, programs: Programs) -> None:
        self.fabrics = fabrics
        self.folder = folder / "fabric"
        self.processes = processes
        self.programs = programs
        self.topologies = {fabric.name: topology.build(fabrics, fabric.name) for fabric in fabrics.fabrics}

    # start and stop

    def start(self) -> None:
        """Start what does not run, and wait until both subnet managers of each fabric have found their place and all
        HCA ports are active.

        :raises StepError: it did not come to that in time; with what was seen
        """
        for item in self.topologies.values():
            self._start_simulator(item)
        for item in self.topologies.values():
            self._wait_simulator(item)
            if self.processes.alive(self.manager_process(item, SUBNET_MANAGERS[0])):
                self.sweep(item)
            for host in SUBNET_MANAGERS:
                self.start_manager(item, host)
        for item in self.topologies.values():
            self.wait_ready(item)

    def stop(self) -> None:
        """End all of it, also what a fault started, and remove its files."""
        for item in self.topologies.values():
            for host in (*SUBNET_MANAGERS, *self.fabrics.workers):
                self.processes.stop(self.manager_process(item, host))
            self.processes.stop(self.rising_process(item))
            self.processes.stop(self.simulator_process(item))
        shutil.rmtree(self.folder, ignore_errors=True)

    def status(self) -> tuple[FabricStatus, ...]:
        return tuple(self._status(item) for item in self.topologies.values())

    def _status(self, item: Topology) -> FabricStatus:
        running = self.processes.alive(self.simulator_process(item))
        if not running:
            return FabricStatus(item.fabric.name, False, {}, len(item.hcas), 0)
        seen = {manager.description.split()[0]: self.subnet_manager(item, manager.lid) for manager in item.managers}
        states = {host: found.state if found else "no answer" for host, found in seen.items()}
        ports = self.ports(item)
        return FabricStatus(item.fabric.name, True, states, len(ports), sum(state.active for state in ports.values()))

    def simulator_process(self, item: Topology) -> str:
        return f"ibsim-{item.fabric.name}"

    def manager_process(self, item: Topology, host: str) -> str:
        return f"opensm-{item.fabric.name}-{host}"

    def rising_process(self, item: Topology) -> str:
        """Of :meth:`raise_counter`; one a fabric."""
        return f"rising-{item.fabric.name}"

    def raise_counter(self, item: Topology, command: str, first: int, largest: int) -> None:
        """Start a process that gives ibsim a command again and again, with a rising value."""
        arguments = (str(self._console(item)), command, str(first), str(largest))
        argv = [sys.executable, "-m", raise_counter.__name__, *arguments]
        self.processes.start(self.rising_process(item), argv, cwd=pathlib.Path(__file__).parents[2])

    def _start_simulator(self, item: Topology) -> None:
        if self.processes.alive(self.simulator_process(item)):
            return
        folder = self.folder / item.fabric.name
        folder.mkdir(parents=True, exist_ok=True)
        netfile = folder / "netfile"
        netfile.write_text(topology.netfile(item))
        console = self._console(item)
        console.unlink(missing_ok=True)
        os.mkfifo(console)
        # ibsim holds its own console open for writing too: it never sees the end of it
        end = os.open(console, os.O_RDWR)
        try:
            nodes, switches = len(item.switches) + len(item.hcas), len(item.switches)
            size = [
                "-N",
                str(nodes),
                "-S",
                str(switches),
                "-P",
                str(switches * (topology.SWITCH_ALL_PORTS + 1) + len(item.hcas)),
            ]
            argv = [str(self.programs.ibsim), "-r", "-l", str(item.fabric.port), *size, "-s", str(netfile)]
            self.processes.start(self.simulator_process(item), argv, cwd=folder, stdin=end)
        finally:
            os.close(end)

    def _wait_simulator(self, item: Topology) -> None:
        name = self.simulator_process(item)
        if not wait_until(
            lambda: not self.processes.alive(name) or self._answers(item), READY_LIMIT
        ) or not self.processes.alive(name):
            raise StepError(
                f"{name} does not serve; its last output:\n{self.processes.log(name)}",
                f"its log is {self.processes.logs / name}.log",
            )

    def _answers(self, item: Topology) -> bool:
        return self._ask(item, [item.managers[0].id]).returncode == 0

    def start_manager(self, item: Topology, host: str, node: typing.Optional[Node] = None, **more: str) -> None:
        """Start opensm, unless it runs.

        :param host: of the subnet managers, or a worker
        :param node: HCA that it uses, where the host is no server for it
        :param more: settings of opensm.conf that differ
        """
        folder = self.folder / item.fabric.name / host
        folder.mkdir(parents=True, exist_ok=True)
        place = SUBNET_MANAGERS.index(host) if host in SUBNET_MANAGERS else None
        node = node or item.managers[place or 0]
        priority = 0 if place is None else PRIORITIES[place]
        # opensm rewrites it: each has its own
        (folder / "guid2lid").write_text(topology.lid_file(item))
        settings = folder / "opensm.conf"
        settings.write_text(opensm_settings(node.port_guid, priority, folder, more))
        env = {**self._client(item, node), "OSM_CACHE_DIR": str(folder), "OSM_TMP_DIR": str(folder)}
        self.processes.start(
            self.manager_process(item, host), [*self._tool("opensm"), "-F", str(settings)], env=env, cwd=folder
        )

    def sweep(self, item: Topology) -> None:
        """Make the first manager set all ports anew, also where it sees no change: SIGHUP is opensm's order for it."""
        self.processes.signal(self.manager_process(item, SUBNET_MANAGERS[0]), signal.SIGHUP)

    def clear_errors(self, item: Topology) -> None:
        """Set the error counters of all ports to 0, as an admin does when the cause is gone."""
        self.run(item, item.managers[-1], "ibqueryerrors", "--clear-errors")

    # what is asked

    def wait_ready(
        self, item: Topology, master: str = SUBNET_MANAGERS[0], standby: typing.Optional[str] = SUBNET_MANAGERS[1]
    ) -> None:
        """Wait until one manager is master, the other standby, all ports know it and are active, and the master knows
        the other.

        :param standby: None: there is none
        :raises StepError: it did not come to that within 30 s
        """
        wanted = {master: "MASTER", **({standby: "STANDBY"} if standby else {})}
        managers = dict(zip(SUBNET_MANAGERS, item.managers))
        names = [self.simulator_process(item), *(self.manager_process(item, host) for host in wanted)]
        seen: list[str] = []

        def missing() -> list[str]:
            for name in names:
                if not self.processes.alive(name):
                    raise StepError(
                        f"{name} has ended; its last output:\n{self.processes.log(name)}",
                        f"its log is {self.processes.logs / name}.log",
                    )
            lacks = []
            for host, state in wanted.items():
                found = self.subnet_manager(item, managers[host].lid)
                if found is None or found.state != state:
                    lacks.append(f"the subnet manager of {host} is {found.state if found else 'silent'}, not {state}")
            if not lacks:
                for node, seen_port in self.ports(item).items():
                    if not (
                        seen_port.active and seen_port.lid == node.lid and seen_port.sm_lid == managers[master].lid
                    ):
                        lacks.append(
                            f"{node.description}: state {seen_port.state}, LID {seen_port.lid}, LID of its subnet"
                            f" manager {seen_port.sm_lid}"
                        )
            # a master that swept before the other was up learns of it by a trap alone, and a trap may be lost
            if not lacks and self._listed_managers(item) < len(wanted):
                lacks.append("the subnet administration does not list the other manager")
                if time.monotonic() - asked[0] > SWEEP_LIMIT:
                    asked[0] = time.monotonic()
                    self.processes.signal(self.manager_process(item, master), signal.SIGHUP)
            return lacks

        asked = [0.0]

        def ready() -> bool:
            seen[:] = missing()
            return not seen

        if not wait_until(ready, READY_LIMIT):
            raise StepError(
                f"{item.fabric.name} is not ready after {READY_LIMIT:.0f} s: {'; '.join(seen[:4])}",
                f"read the logs {self.processes.logs}/opensm-{item.fabric.name}-*.log; 'make lab-down' and start again",
            )

    def _listed_managers(self, item: Topology) -> int:
        """How many managers the subnet administration has a record of."""
        return self.run(item, item.managers[-1], "saquery", "SMIR").stdout.count("SMInfoRecord dump")

    def ports(self, item: Topology) -> dict[Node, port.PortState]:
        """State of the port of each HCA, also of those that no MAD reaches.

        :raises StepError: ibsim does not answer
        """
        return self.port_states(item, item.hcas)

    def port_states(self, item: Topology, nodes: typing.Sequence[Node]) -> dict[Node, port.PortState]:
        """As :meth:`ports`, of some HCAs."""
        return dict(zip(nodes, self._answer(item, [node.id for node in nodes])))

    def lost(self, item: Topology, node: Node, times: int) -> int:
        """How many of so many messages to a port, from the second manager's server, are not answered."""
        return sum(not state.counters for state in self._answer(item, [f"{item.managers[-1].id}@{node.lid}"] * times))

    def _answer(self, item: Topology, nodes: typing.Sequence[str]) -> tuple[port.PortState, ...]:
        done = self._ask(item, nodes)
        if done.returncode:
            raise StepError(
                f"{item.fabric.name}: {done.stderr.strip()}",
                f"see {self.processes.logs / self.simulator_process(item)}.log; start the lab again",
            )
        return port.parse_answer(done.stdout, len(nodes))

    def _ask(self, item: Topology, nodes: typing.Sequence[str]) -> subprocess.CompletedProcess[str]:
        argv = [sys.executable, "-m", port.__name__, self.fabrics.address, str(item.fabric.port), *nodes]
        return self._inside(argv, {}, pathlib.Path(__file__).parents[2], TOOL_LIMIT + len(nodes) / 20)

    def subnet_manager(self, item: Topology, lid: int) -> typing.Optional[SubnetManager]:
        """What ``sminfo <lid>`` says, asked from the second manager's server; None: no answer."""
        return parse_sminfo(self.run(item, item.managers[-1], "sminfo", str(lid)).stdout)

    def run(self, item: Topology, node: Node, tool: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a diagnostic at an HCA of the fabric, to its end.

        :raises StepError: it did not end in time
        """
        return self._inside([*self._tool(tool), *arguments], self._client(item, node), self.folder, TOOL_LIMIT)

    def console(self, item: Topology, command: str) -> None:
        """Give ibsim a command, and wait until it has carried it out.

        :raises StepError: ibsim does not run
        """
        if not self.processes.alive(self.simulator_process(item)):
            raise StepError(f"{self.simulator_process(item)} does not run", "start the lab")
        end = os.open(self._console(item), os.O_WRONLY | os.O_NONBLOCK)
        try:
            os.write(end, command.encode() + b"\n")
        finally:
            os.close(end)
        # ibsim takes turns: whoever is answered twice after it, is answered by a simulator that has read the console
        self.port_states(item, item.managers[:1])

    def refresh(self) -> dict[str, str]:
        """What the emulated HCAs of each worker are to be told now, after a start or a fault: see ``emulated.ports``.
        Their part of sysfs is written."""
        states: dict[Node, port.PortState] = {}
        for item in self.topologies.values():
            states.update(
                self.port_states(
                    item, [node for (host, _device), node in item.hosts.items() if host in self.fabrics.workers]
                )
            )
        flaws = {worker: self._flaws(worker) for worker in self.fabrics.workers}
        for worker, found in flaws.items():
            sysfs.write(self.sysfs(worker), sysfs.tree(self.fabrics, found))
        return {
            worker: emulated.ports(self.fabrics, self.topologies, worker, states, found)
            for worker, found in flaws.items()
        }

    def set_flaw(self, worker: str, device: str, flaw: typing.Optional[str]) -> None:
        """Say what is wrong with an HCA, beside its port, until it is taken back; shown from the next refresh on.

        :param flaw: one of emulated.MISSING and emulated.WITHOUT_ROOM; None takes it back
        """
        path = self.folder / "flaws" / worker / device
        path.unlink(missing_ok=True)
        if flaw is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(flaw)

    def _flaws(self, worker: str) -> dict[str, str]:
        return {path.name: path.read_text() for path in (self.folder / "flaws" / worker).glob("*")}

    def sysfs(self, worker: str) -> pathlib.Path:
        """Root of a worker's tree of ``sysfs``."""
        return self.folder / "sysfs" / worker

    # how it is run

    def _console(self, item: Topology) -> pathlib.Path:
        return self.folder / item.fabric.name / "console"

    def _tool(self, name: str) -> list[str]:
        root = self.programs.root
        loader = [str(root / "usr/lib64/ld-linux-x86-64.so.2"), "--library-path", str(root / _LIBRARIES)]
        # their own name, not the loader's, in what they print
        return [*loader, "--preload", str(self.programs.umad2sim), "--argv0", name, str(root / "usr/sbin" / name)]

    def _client(self, item: Topology, node: Node) -> dict[str, str]:
        return {
            "IBSIM_SERVER_NAME": self.fabrics.address,
            "IBSIM_SERVER_PORT": str(item.fabric.port),
            "SIM_HOST": node.id,
            "SIM_CA_NAME": node.description.split()[-1],
            "SIM_SYSFS_DIR": str(self.folder / "clients"),
        }

    def _inside(
        self, argv: typing.Sequence[str], env: typing.Mapping[str, str], cwd: pathlib.Path, limit: float
    ) -> subprocess.CompletedProcess[str]:
        words = ["ip", "netns", "exec", self.processes.namespace, *argv]
        try:
            return subprocess.run(
                words,
                env={**os.environ, **env},
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=limit,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise StepError(
                f"'{' '.join(argv[-3:])}' did not end within {limit:.0f} s",
                "see 'make lab-status'; start the lab again",
            ) from error
