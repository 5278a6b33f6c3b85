# SPDX-License-Identifier: GPL-3.0-or-later

"""The port of a simulated HCA, as ibsim answers for it, and what the emulated HCA is told of it."""

from __future__ import annotations

import json
import pathlib
import socket
import threading
import typing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dev.steps import StepError
from lab.fabric import emulated, port, sysfs
from lab.fabric.model import Fabrics
from lab.fabric.topology import Node, Topology

# captured from a running fabric: worker-1 mlx5_0 with an error counter, mlx5_1 with its cable pulled, sm-1
CAPTURE = (pathlib.Path(__file__).parents[1] / "fixtures/ibsim/port_states.json").read_text()
ACTIVE, CUT, MANAGER = port.parse_answer(CAPTURE, 3)
States = typing.Mapping[Node, port.PortState]


def test_an_active_port() -> None:
    assert (ACTIVE.lid, ACTIVE.sm_lid, ACTIVE.state, ACTIVE.phys_state) == (9, 7, 4, 5)
    assert (ACTIVE.rate, ACTIVE.speed, ACTIVE.active) == ("400 Gb/sec (4X NDR)", "NDR", True)
    assert ACTIVE.counters["symbol_error"] == 123
    assert ACTIVE.counters["port_xmit_packets"] == 0x105A
    assert ACTIVE.counters["port_rcv_errors"] == 0


def test_a_port_whose_cable_is_pulled() -> None:
    assert (CUT.state, CUT.phys_state, CUT.active) == (1, 2, False)


def test_the_subnet_managers_port_has_is_sm_set() -> None:
    assert MANAGER.capabilities & 2
    assert not ACTIVE.capabilities & 2


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[]",
        "[1]",
        '[{"port_info": "zz", "counters": null}]',
        '[{"port_info": "00", "counters": null}]',
        CAPTURE[:200],
    ],
)
def test_what_is_no_answer_is_refused(text: str) -> None:
    with pytest.raises(StepError):
        port.parse_answer(text, 1)


@given(st.binary(max_size=80), st.none() | st.binary(max_size=70))
def test_any_bytes_are_a_port_state_or_refused(port_info: bytes, counters: typing.Optional[bytes]) -> None:
    try:
        state = port.parse(port_info, counters)
    except StepError:
        return
    assert 0 <= state.state <= 15
    assert all(0 <= value < 1 << port.COUNTERS[name][1] for name, value in state.counters.items())


class Simulator(threading.Thread):
    """Answers as ibsim does: for the control socket, and for the data socket of client 3."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.control = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.control.bind(("127.0.0.1", 0))
        self.port = self.control.getsockname()[1]
        self.data = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.data.bind(("127.0.0.1", self.port + 4))
        self.kinds: list[int] = []
        self.asked = b""
        row = json.loads(CAPTURE)[0]
        self.port_info, self.counters = bytes.fromhex(row["port_info"]), bytes.fromhex(row["counters"])

    def run(self) -> None:
        while 2 not in self.kinds:
            message, client = self.control.recvfrom(200)
            magic, _client, kind, length, data = port._CONTROL.unpack(message)
            self.kinds.append(kind)
            if kind == 1 and b"unknown" in data:
                self.control.sendto(port._CONTROL.pack(magic, 0, 0, length, data), client)
                return
            answer = {1: b"\3\0\0\0", 8: self.port_info}.get(kind, b"")
            self.control.sendto(port._CONTROL.pack(magic, 0, kind, length, answer), client)
            if kind == 8:
                self.asked, client = self.data.recvfrom(400)
                self.data.sendto(b"", client)
                mad = bytes(64) + self.counters
                self.data.sendto(port._PACKET.pack(0, 0, 0, 0, 0, 256) + mad.ljust(256, b"\0"), client)


@pytest.fixture
def simulator() -> typing.Iterator[Simulator]:
    server = Simulator()
    server.start()
    yield server
    server.join(5)
    server.control.close()
    server.data.close()


def test_the_client_asks_and_says_good_bye(simulator: Simulator, capsys: pytest.CaptureFixture[str]) -> None:
    assert port.main(["127.0.0.1", str(simulator.port), "H-1"]) == 0
    assert port.parse_answer(capsys.readouterr().out, 1) == (ACTIVE,)
    assert simulator.kinds == [1, 8, 2]
    # PortCounters of the own LID: performance class, method Get, attribute 0x12, port 1
    assert int.from_bytes(simulator.asked[:2], "big") == ACTIVE.lid
    mad = simulator.asked[32:]
    assert (mad[1], mad[3], mad[16:18], mad[65]) == (4, 1, b"\0\x12", 1)


def test_the_counters_of_another_port_are_asked_over_the_fabric(
    simulator: Simulator, capsys: pytest.CaptureFixture[str]
) -> None:
    assert port.main(["127.0.0.1", str(simulator.port), "H-1@13"]) == 0
    assert int.from_bytes(simulator.asked[:2], "big") == 13
    assert capsys.readouterr().err == ""


def test_an_unknown_node_is_an_error_that_names_it(simulator: Simulator, capsys: pytest.CaptureFixture[str]) -> None:
    assert port.main(["127.0.0.1", str(simulator.port), "unknown"]) == 1
    assert "unknown" in capsys.readouterr().err


def test_no_simulator_is_an_error_that_names_its_place(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as closed:
        closed.bind(("127.0.0.1", 0))
        free = closed.getsockname()[1]
    assert port.main(["127.0.0.1", str(free), "H-1"]) == 1
    assert f"127.0.0.1 port {free}" in capsys.readouterr().err


@pytest.fixture
def states(fabrics: Fabrics, topologies: dict[str, Topology]) -> States:
    nodes = [node for item in topologies.values() for (host, _device), node in item.hosts.items() if host == "worker-1"]
    return {node: CUT if node.description == "worker-1 mlx5_1" else ACTIVE for node in nodes}


def test_the_module_is_told_where_each_hca_is_and_what_it_is_called(
    fabrics: Fabrics, topologies: dict[str, Topology]
) -> None:
    words = dict(word.split("=") for word in emulated.parameters(fabrics, topologies, "worker-1", 7).split())
    assert (words["hcas"], words["fabrics"], words["host"]) == ("3c,4d,5e,9c,bc,dc", "0,0,1,1,0,0", "7")
    guids = [int(guid, 16) for guid in words["guids"].split(",")]
    assert guids == [topologies[hca.fabric].hca("worker-1", hca.name).guid for hca in fabrics.hcas]
    assert [int(guid, 16) for guid in words["port_guids"].split(",")] == [guid + 1 for guid in guids]
    assert emulated.table(fabrics, "worker-1").splitlines()[0] == "3c mlx5_0 ibp60s0 worker-1 mlx5_0"


def test_the_module_is_told_all_that_ibsim_says_of_a_port(
    fabrics: Fabrics, topologies: dict[str, Topology], states: States
) -> None:
    first, second = emulated.ports(
        fabrics, topologies, "worker-1", states, {"mlx5_1": emulated.WITHOUT_ROOM}
    ).splitlines()[:2]
    assert first.startswith("3c there room=1 state=4 phys_state=5 lid=9 sm_lid=7 ") and " speed=128 width=2 " in first
    assert {word.partition("=")[0] for word in first.split()[12:]} == set(port.COUNTERS)
    assert " symbol_error=123 " in first
    assert second.startswith("4d there room=0 state=1 phys_state=2 ")
    # the module has a name for each of them (lab/hca/port.c)
    module = (pathlib.Path(emulated.__file__).parents[1] / "hca/port.c").read_text()
    assert all(f'"{word.partition("=")[0]}"' in module for word in first.split()[2:])


def test_only_what_changed_of_sysfs_is_written_again(tmp_path: pathlib.Path, fabrics: Fabrics) -> None:
    assert sysfs.write(tmp_path, sysfs.tree(fabrics, {})) == 25
    assert sysfs.write(tmp_path, sysfs.tree(fabrics, {})) == 0
    assert sysfs.write(tmp_path, sysfs.tree(fabrics, {"mlx5_0": emulated.MISSING})) == 4
    assert not list(tmp_path.rglob("umad0"))
    assert (tmp_path / "class/infiniband_mad/umad1/ibdev").read_text() == "mlx5_1\n"
