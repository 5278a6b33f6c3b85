# SPDX-License-Identifier: GPL-3.0-or-later

"""The plane and its faults, against a stand-in for ibsim, opensm and the diagnostics that keeps to their words."""

from __future__ import annotations

import json
import os
import pathlib
import re
import signal
import subprocess
import typing

import pytest

from dev.steps import StepError
from lab.fabric import emulated, fault, plane, port, raise_counter, subnet_manager
from lab.fabric.fabric_faults import FABRIC_FAULTS
from lab.fabric.model import Fabrics
from lab.fabric.plane import FabricPlane
from lab.fabric.programs import Programs
from lab.fabric.subnet_manager import parse_sminfo
from lab.fabric.topology import SUBNET_MANAGERS, Node, Topology
from lab.fault import Target

FIXTURES = pathlib.Path(__file__).parents[1] / "fixtures"
PORT_INFO = bytes.fromhex(json.loads((FIXTURES / "ibsim/port_states.json").read_text())[0]["port_info"])
SMINFO = "sminfo: sm lid {lid} sm guid {guid:#x}, activity count 7 priority {priority} state {number} SMINFO_{state}\n"


class Manager:
    """lab.processes.Processes, without processes."""

    namespace = "nowhere"

    def __init__(self, folder: pathlib.Path) -> None:
        self.logs = folder / "log"
        self.running: dict[str, dict[str, typing.Any]] = {}
        self.stopped: set[str] = set()
        self.signals: list[tuple[str, signal.Signals]] = []

    def start(
        self,
        name: str,
        argv: typing.Sequence[typing.Union[str, pathlib.Path]],
        env: typing.Optional[typing.Mapping[str, str]] = None,
        cwd: typing.Optional[pathlib.Path] = None,
        stdin: typing.Optional[int] = None,
    ) -> int:
        words = list(map(str, argv))
        if raise_counter.__name__ in words:
            _console, command, first, _largest = words[words.index(raise_counter.__name__) + 1 :]
            with open(_console, "w") as end:
                end.write(f"{command}={int(first) + 6}\n")
        if name not in self.running:
            # as a child does, it keeps the console open
            self.running[name] = {"argv": words, "env": env or {}, "stdin": None if stdin is None else os.dup(stdin)}
        return 1

    def stop(self, name: str) -> None:
        gone = self.running.pop(name, None)
        self.stopped.discard(name)
        if gone and gone["stdin"] is not None:
            os.close(gone["stdin"])

    def alive(self, name: str) -> bool:
        return name in self.running

    def signal(self, name: str, number: signal.Signals) -> None:
        if name not in self.running:
            raise StepError(f"{name} does not run", "")
        self.signals.append((name, number))
        if number == signal.SIGSTOP:
            self.stopped.add(name)
        if number == signal.SIGCONT:
            self.stopped.discard(name)
        if number == signal.SIGKILL:
            self.stop(name)

    def log(self, name: str, lines: int = 15) -> str:
        return "its last words"


class Fabric(FabricPlane):
    """What the tools would answer on a sound fabric, and with the console commands that were given."""

    processes: Manager
    commands: list[str]
    slow = False
    #: what each place was told by the console: its last word for each command
    state: dict[str, dict[str, str]]
    widths: dict[int, int]

    def _read_consoles(self) -> None:
        for item in self.topologies.values():
            process = self.processes.running.get(self.simulator_process(item))
            if process is None:
                continue
            os.set_blocking(process["stdin"], False)
            try:
                text = os.read(process["stdin"], 4096).decode()
            except BlockingIOError:
                continue
            for line in text.splitlines():
                self.commands.append(line)
                command = re.fullmatch(r'(\w+) "([^"]+)"(\[\d+\])? ?(.*)', line)
                assert command is not None, line
                name, node, _port, rest = command.groups()
                place = f"{node}{_port}" if node.startswith("S-") else node
                self.state.setdefault(place, {})[name] = rest
                if name in ("Link", "ReLink"):
                    self.state[place].pop("Unlink", None)

    def _cut(self, item: Topology, node: Node) -> bool:
        """Is the HCA's own cable pulled, or are all uplinks of its leaf?"""
        leaf = self._leaf(item, node)
        uplinks = [link for link in item.links if link.switch == leaf and link.peer.kind == "switch"]
        down = all("Unlink" in self.state.get(f"{leaf.id}[{link.port}]", {}) for link in uplinks)
        return "Unlink" in self.state.get(node.id, {}) or down

    def _leaf(self, item: Topology, node: Node) -> Node:
        """Where its cable is by now."""
        link = re.match(r'"([^"]+)"', self.state.get(node.id, {}).get("Link", ""))
        return next(each.switch for each in item.links if (each.switch.id == link[1] if link else each.peer == node))

    def _answering(self, item: Topology) -> dict[int, tuple[str, str]]:
        """LID of each manager that answers -> its host and state."""
        found: dict[int, tuple[str, str]] = {}
        for host, node in zip(SUBNET_MANAGERS, item.managers):
            name = self.manager_process(item, host)
            if name in self.processes.running and name not in self.processes.stopped:
                found[node.lid] = (
                    host,
                    "STANDBY" if any(state == "MASTER" for _host, state in found.values()) else "MASTER",
                )
        for worker in self.fabrics.workers:
            process = self.processes.running.get(self.manager_process(item, worker))
            if process is not None and "ignore_other_sm TRUE" in pathlib.Path(process["argv"][-1]).read_text():
                node = next(node for node in item.hcas if node.id == process["env"]["SIM_HOST"])
                found[node.lid] = (worker, "MASTER")
        return found

    def _port_row(self, item: Topology, word: str) -> dict[str, typing.Any]:
        name, _sign, lid = word.partition("@")
        node = next(node for node in item.hcas if node.id == name)
        state = self.state.get(node.id, {})
        masters = [lid for lid, (_host, kind) in self._answering(item).items() if kind == "MASTER"]
        info = bytearray(PORT_INFO)
        info[16:18] = node.lid.to_bytes(2, "big")
        info[18:20] = (masters[-1] if masters else 0).to_bytes(2, "big")
        cut = "Unlink" in state
        info[31] = self.widths.get(node.lid, 2)
        info[32:34] = bytes((0x71, 0x22)) if cut else bytes((0x74, 0x52))
        target = next((other for other in item.hcas if lid and other.lid == int(lid)), node)
        lost = lid and self.state.get(target.id, {}).get("Error", "0") != "0"
        counters = bytearray(64)
        counted = re.fullmatch(r"PortCounters.SymbolErrorCounter=(\d+)", state.get("PerformanceSet", ""))
        counters[4:6] = int(counted[1] if counted else 0).to_bytes(2, "big")
        return {"port_info": info.hex(), "counters": None if lost else counters.hex()}

    def _inside(
        self, argv: typing.Sequence[str], env: typing.Mapping[str, str], cwd: pathlib.Path, limit: float
    ) -> subprocess.CompletedProcess[str]:
        self._read_consoles()
        words = list(argv)
        if port.__name__ in words:
            _address, number, *nodes = words[words.index(port.__name__) + 1 :]
            item = next(item for item in self.topologies.values() if str(item.fabric.port) == number)
            return subprocess.CompletedProcess(words, 0, json.dumps([self._port_row(item, word) for word in nodes]), "")
        item = next(item for item in self.topologies.values() if str(item.fabric.port) == env["IBSIM_SERVER_PORT"])
        tool = words[words.index("--argv0") + 1]
        if tool == "sminfo":
            host, state = self._answering(item).get(int(words[-1]), (None, None))
            if host is None or self.slow:
                return subprocess.CompletedProcess(words, 255, "sminfo: iberror: failed: query\n", "")
            return subprocess.CompletedProcess(
                words, 0, SMINFO.format(lid=words[-1], guid=1, priority=15, number=3, state=state), ""
            )
        if tool == "saquery" and words[-1] == "SMIR":
            return subprocess.CompletedProcess(words, 0, "SMInfoRecord dump:\n" * len(self._answering(item)), "")
        if tool == "saquery":
            node = next(node for node in item.hcas if node.lid == int(words[-1]))
            return subprocess.CompletedProcess(
                words, 0, "" if self._cut(item, node) else f"\t\tNodeDescription.........{node.description}\n", ""
            )
        if tool == "smpquery":
            node = next(node for node in item.hcas if node.id == env["SIM_HOST"])
            return subprocess.CompletedProcess(
                words,
                0,
                f"PortGuid:....0x1\nGuid:............................{self._leaf(item, node).guid:#018x}\n",
                "",
            )
        if tool == "ibportstate":
            lid, _port, _width, enabled = words[-4:]
            # of the lanes that are allowed, the most
            self.widths[int(lid)] = 2 if enabled == "3" else int(enabled)
            return subprocess.CompletedProcess(words, 0, "", "")
        assert tool == "ibqueryerrors"
        return subprocess.CompletedProcess(words, 0, "", "")


@pytest.fixture
def sound(tmp_path: pathlib.Path, fabrics: Fabrics, monkeypatch: pytest.MonkeyPatch) -> typing.Iterator[Fabric]:
    monkeypatch.setattr(plane, "READY_LIMIT", 0.2)
    monkeypatch.setattr(fault, "SEEN_LIMIT", 0.2)
    programs = Programs(pathlib.Path("/bin/ibsim"), pathlib.Path("/lib/umad2sim.so"), pathlib.Path("/root-of-workers"))
    lab = Fabric(fabrics, tmp_path, Manager(tmp_path), programs)
    lab.state, lab.commands, lab.widths = {}, [], {}
    lab.start()
    yield lab
    lab.stop()


def test_start_runs_one_simulator_and_two_managers_on_each_fabric(sound: Fabric) -> None:
    assert sorted(sound.processes.running) == [
        "ibsim-fabric-1",
        "ibsim-fabric-2",
        "opensm-fabric-1-sm-1",
        "opensm-fabric-1-sm-2",
        "opensm-fabric-2-sm-1",
        "opensm-fabric-2-sm-2",
    ]
    argv = sound.processes.running["ibsim-fabric-2"]["argv"]
    assert argv[:4] == ["/bin/ibsim", "-r", "-l", "7300"]
    assert "MF0;fabric-2-leaf-1:MQM9700/U1" in pathlib.Path(argv[-1]).read_text()


def test_each_manager_has_its_own_place_priority_and_lids(sound: Fabric) -> None:
    first, second = (sound.processes.running[f"opensm-fabric-1-sm-{number}"] for number in (1, 2))
    settings = [pathlib.Path(process["argv"][-1]) for process in (first, second)]
    values = [dict(line.split(" ", 1) for line in path.read_text().splitlines()) for path in settings]
    assert [value["sm_priority"] for value in values] == ["15", "14"]
    assert values[0]["guid"] != values[1]["guid"]
    for process, path in zip((first, second), settings):
        assert process["env"]["OSM_CACHE_DIR"] == str(path.parent)
        assert process["env"]["IBSIM_SERVER_NAME"] == sound.fabrics.address
        assert (path.parent / "guid2lid").read_text().startswith("0x")
    assert first["env"]["SIM_HOST"] == sound.topologies["fabric-1"].managers[0].id


def test_start_again_starts_nothing_and_lets_the_master_look_again(sound: Fabric) -> None:
    before = dict(sound.processes.running)
    sound.start()
    assert sound.processes.running == before
    assert ("opensm-fabric-1-sm-1", signal.SIGHUP) in sound.processes.signals


def test_stop_leaves_no_process_and_no_file(sound: Fabric) -> None:
    sound.stop()
    assert sound.processes.running == {}
    assert not sound.folder.exists()
    assert [str(status) for status in sound.status()] == ["fabric-1: down", "fabric-2: down"]


def test_status_says_who_is_what(sound: Fabric) -> None:
    first, second = sound.status()
    assert str(first) == "fabric-1: sm-1 MASTER, sm-2 STANDBY; 10 of 10 HCA ports active"
    assert (second.hcas, second.active) == (6, 6)


def test_a_fabric_that_does_not_get_ready_says_what_it_lacks(sound: Fabric) -> None:
    sound.processes.stop("opensm-fabric-2-sm-2")
    with pytest.raises(StepError, match=r"opensm-fabric-2-sm-2 has ended; its last output:\nits last words"):
        sound.wait_ready(sound.topologies["fabric-2"])
    sound.slow = True
    with pytest.raises(StepError, match=r"fabric-1 is not ready .* sm-1 is silent, not MASTER"):
        sound.wait_ready(sound.topologies["fabric-1"])


def told(sound: Fabric, worker: str = "worker-1") -> tuple[str, ...]:
    """What the first HCA of a worker is told."""
    return tuple(sound.refresh()[worker].splitlines()[0].split())


def test_refresh_tells_what_a_fault_changed(sound: Fabric) -> None:
    assert told(sound)[:5] == ("3c", "there", "room=1", "state=4", "phys_state=5")
    FABRIC_FAULTS["link-cut"].on(sound, Target())
    assert told(sound)[3:5] == ("state=1", "phys_state=2")
    assert told(sound, "worker-2")[3] == "state=4"


def test_an_hca_that_is_gone_leaves_nothing_behind(sound: Fabric) -> None:
    whole = told(sound)
    umads = sound.sysfs("worker-1") / "class/infiniband_mad"
    assert (umads / "umad0/ibdev").read_text() == "mlx5_0\n"
    FABRIC_FAULTS["hca-missing"].on(sound, Target())
    assert told(sound)[1] == "missing" and told(sound, "worker-2")[1] == "there"
    assert not [path for path in umads.rglob("*") if path.name in ("umad0", "issm0")]
    assert (umads / "umad1/ibdev").exists() and (sound.sysfs("worker-2") / "class/infiniband_mad/umad0").exists()
    FABRIC_FAULTS["hca-missing"].off(sound, Target())
    assert told(sound) == whole and (umads / "umad0/ibdev").exists()


def test_a_function_without_addresses_for_vfs_is_told_so(sound: Fabric) -> None:
    whole = told(sound)
    sound.set_flaw("worker-1", "mlx5_0", emulated.WITHOUT_ROOM)
    assert told(sound) == (*whole[:2], "room=0", *whole[3:])
    sound.set_flaw("worker-1", "mlx5_0", None)
    assert told(sound) == whole


@pytest.mark.parametrize("name", sorted(FABRIC_FAULTS))
def test_each_fault_can_be_injected_and_taken_back_twice(sound: Fabric, name: str) -> None:
    before = set(sound.processes.running)
    for _time in range(2):
        assert FABRIC_FAULTS[name].on(sound, Target())
    for _time in range(2):
        assert FABRIC_FAULTS[name].off(sound, Target())
    assert set(sound.processes.running) == before
    assert (
        next(str(status) for status in sound.status())
        == "fabric-1: sm-1 MASTER, sm-2 STANDBY; 10 of 10 HCA ports active"
    )


def test_killed_managers_are_gone_and_the_other_fabric_keeps_its_own(sound: Fabric) -> None:
    FABRIC_FAULTS["sm-killed"].on(sound, Target(fabric="fabric-2"))
    assert dict(sound.status()[1].managers) == {"sm-1": "no answer", "sm-2": "no answer"}
    assert dict(sound.status()[0].managers) == {"sm-1": "MASTER", "sm-2": "STANDBY"}
    assert ("opensm-fabric-2-sm-1", signal.SIGKILL) in sound.processes.signals


def test_the_standby_takes_over(sound: Fabric) -> None:
    FABRIC_FAULTS["sm-master-killed"].on(sound, Target())
    assert dict(sound.status()[0].managers) == {"sm-1": "no answer", "sm-2": "MASTER"}


def test_hanging_managers_still_run(sound: Fabric) -> None:
    FABRIC_FAULTS["sm-stopped"].on(sound, Target())
    assert "opensm-fabric-1-sm-1" in sound.processes.running
    assert dict(sound.status()[0].managers) == {"sm-1": "no answer", "sm-2": "no answer"}


def test_the_second_master_minds_no_other(sound: Fabric) -> None:
    said = FABRIC_FAULTS["second-master"].on(sound, Target(worker="worker-2", device="mlx5_4"))
    lid = sound.topologies["fabric-1"].hca("worker-2", "mlx5_4").lid
    assert f"worker-2 mlx5_4 (LID {lid})" in said
    second = sound.subnet_manager(sound.topologies["fabric-1"], lid)
    assert second is not None and second.state == "MASTER"


@pytest.mark.parametrize(
    ("name", "target", "command"),
    [
        ("link-cut", Target(device="mlx5_2"), 'Unlink "{id}"[1]'),
        ("mad-loss", Target(percent=30), 'Error "{id}"[1] 30'),
        ("ibping-unreachable", Target(worker="worker-2"), 'Error "{id}"[1] 100 0 0x32'),
        ("error-counters", Target(value=7), 'PerformanceSet "{id}"[1] PortCounters.SymbolErrorCounter=7'),
        ("errors-growing", Target(worker="worker-2"), 'PerformanceSet "{id}"[1] PortCounters.SymbolErrorCounter=6'),
    ],
)
def test_the_simulator_is_told(sound: Fabric, name: str, target: Target, command: str) -> None:
    FABRIC_FAULTS[name].on(sound, target)
    item = sound.topologies[sound.fabrics.hca(target.device).fabric]
    assert sound.commands == [command.format(id=item.hca(target.worker, target.device).id)]


@pytest.mark.parametrize(
    ("name", "target", "why"),
    [
        ("link-cut", Target(device="mlx5_9"), "no simulated HCA 'mlx5_9'"),
        ("link-cut", Target(worker="worker-9"), "worker-9 has no HCA mlx5_0"),
        ("sm-killed", Target(fabric="fabric-9"), "no fabric 'fabric-9'"),
        ("mad-loss", Target(percent=0), "0 %"),
        ("error-counters", Target(counter="nothing"), "no error counter 'nothing'"),
        ("errors-growing", Target(counter="nothing"), "no error counter 'nothing'"),
        ("leaf-cut", Target(leaf=9), "no leaf 9"),
        ("leaf-cut", Target(leaf=1), "a subnet manager's server is at leaf 1"),
        ("error-counters", Target(value=70000), "holds 0 to 65535"),
    ],
)
def test_a_target_that_does_not_exist_is_refused(sound: Fabric, name: str, target: Target, why: str) -> None:
    with pytest.raises(StepError) as refused:
        FABRIC_FAULTS[name].on(sound, target)
    assert why in f"{refused.value} {refused.value.remedy}"


def test_swapped_cables_are_at_each_others_leaf(sound: Fabric) -> None:
    said = FABRIC_FAULTS["swapped-cables"].on(sound, Target(worker="worker-2", device="mlx5_5"))
    assert (
        said == "worker-2 mlx5_5 is at MF0;fabric-1-leaf-1:MQM9700/U1 port 5, worker-2 mlx5_0 at"
        " MF0;fabric-1-leaf-4:MQM9700/U1 port 5"
    )
    assert [command.split()[0] for command in sound.commands] == ["Unlink", "Unlink", "Link", "Link"]


def test_a_leaf_that_is_cut_off_takes_its_hcas_with_it(sound: Fabric) -> None:
    said = FABRIC_FAULTS["leaf-cut"].on(sound, Target(leaf=3))
    assert "fabric-1-leaf-3" in said and said.endswith("cut off are worker-1 mlx5_4, worker-2 mlx5_4")
    assert len(sound.commands) == 2 and all(command.startswith('Unlink "S-') for command in sound.commands)


def test_a_narrow_link_has_a_quarter_of_the_rate(sound: Fabric) -> None:
    assert "100 Gb/sec (1X NDR)" in FABRIC_FAULTS["link-narrow"].on(sound, Target())
    assert "400 Gb/sec (4X NDR)" in FABRIC_FAULTS["link-narrow"].off(sound, Target())


def test_a_rising_counter_ends_when_it_is_full(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    console = tmp_path / "console"
    console.touch()
    monkeypatch.setattr(raise_counter, "PERIOD_SECONDS", 0)
    monkeypatch.setattr(raise_counter, "STEPS", 3)
    lines: list[str] = []
    monkeypatch.setattr(os, "write", lambda _end, data: lines.append(data.decode()))
    assert raise_counter.main([str(console), "PerformanceSet x", "1", "15"]) == 0
    assert lines == ["PerformanceSet x=6\n", "PerformanceSet x=11\n"]


def test_a_fault_that_shows_no_effect_is_an_error(sound: Fabric, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Fabric, "_read_consoles", lambda self: None)
    with pytest.raises(StepError, match="still not so that the port of worker-1 mlx5_0 is down"):
        FABRIC_FAULTS["link-cut"].on(sound, Target())


def test_a_command_for_a_simulator_that_is_down_is_refused(sound: Fabric) -> None:
    item = sound.topologies["fabric-1"]
    sound.processes.stop("ibsim-fabric-1")
    with pytest.raises(StepError, match="ibsim-fabric-1 does not run"):
        sound.console(item, "Clear")


def test_sminfo_as_the_tools_print_it() -> None:
    folder = FIXTURES / "infiniband-diags"
    master = parse_sminfo((folder / "sminfo_master.txt").read_text())
    assert master is not None
    assert (master.lid, master.priority, master.state) == (4, 8, "MASTER")
    assert parse_sminfo((folder / "sminfo_no_sm.txt").read_text()) is None
    assert parse_sminfo(
        SMINFO.format(lid=7, guid=0xB8, priority=15, number=3, state="MASTER")
    ) == subnet_manager.SubnetManager(7, 0xB8, 15, "MASTER")
    assert parse_sminfo("") is None
