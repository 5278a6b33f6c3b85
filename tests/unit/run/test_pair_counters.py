# SPDX-License-Identifier: GPL-3.0-or-later

"""Error counters of HCAs before and after the measurement of each pair on RoCE. The API server and the pods are
played."""

from __future__ import annotations

import pathlib
import subprocess
import typing

from ansible_collections.linerate.rdma.plugins.module_utils._check.bandwidth.facts import Facts
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.objects import CommandResult
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.observers import Observer, ObserversFacts
from ansible_collections.linerate.rdma.plugins.module_utils._model.measurement.bandwidth import BandwidthFacts
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.hca import (
    Hca,
    NodeHcas,
    ObservedHcas,
    PciFunction,
)
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.errors import ApiError
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._parse.pods.rdma_counters import parse_counters
from ansible_collections.linerate.rdma.plugins.module_utils._render.measurement.hca_counters import read_counters
from ansible_collections.linerate.rdma.plugins.module_utils._run.measurement.measure_pairs import BandwidthRun
from ansible_collections.linerate.rdma.plugins.module_utils._run.measurement.measuring_plan import Plan

from .test_pairs import CRASHED, FABRIC, Api, Clock, Shell, run

FUNCTION, PHYSICAL = "0000:3c:00.2", "0000:3c:00.0"
PROBE = (
    f"env PCIDEVICE_OPENSHIFT_IO_IGB={FUNCTION}\npci {FUNCTION} mlx5_4\nphysfn {FUNCTION} {PHYSICAL}\n"
    "rate mlx5_4 2.5 Gb/sec\n"
)
OBSERVED = ObserversFacts(
    "linerate-observers",
    "image",
    tuple(Observer(node, "ready", pod=f"observer-{node}", container="o") for node in "ab"),
)


class Counting(Api):
    """Pods and observers whose counters rise between two readings.

    :ivar rises: by how much, by node, device and name of the counter
    :ivar silent: nodes whose pods do not report counters
    :ivar readings: number of readings, by node and device
    """

    def __init__(self) -> None:
        super().__init__()
        self.rises: dict[tuple[str, str, str], int] = {}
        self.silent: set[str] = set()
        self.dead: set[str] = set()
        self.readings: dict[tuple[str, str], int] = {}
        self.opened: list[str] = []

    def greeting(self, pod: str, node: str) -> CommandResult:
        return CommandResult("shell", 0, PROBE)

    def count(self, node: str, devices: tuple[str, ...]) -> CommandResult:
        if node in self.silent:
            return CommandResult("counters", None, "", True)
        lines = ""
        for device in devices:
            number = self.readings.get((node, device), 0)
            self.readings[node, device] = number + 1
            for name in ("packet_seq_err", "rx_discards_phy", "np_cnp_sent"):
                lines += f"count {device} {name} {3 + number * self.rises.get((node, device, name), 0)}\n"
        return CommandResult("counters", 0, lines)

    def shell(self, namespace: str, pod: str, container: str, command: tuple[str, ...], clock: Clock) -> Shell:
        if namespace != "linerate-observers":
            return super().shell(namespace, pod, container, command, clock)
        node = pod.rpartition("-")[2]
        self.opened.append(node)
        if node in self.dead:
            raise ApiError(500, "InternalError", "container not found", "GET")
        return Shell(CommandResult("shell", 0, ""), lambda line: self.count(node, line[4:]))


def observed(api: Api, observers: typing.Optional[ObserversFacts] = OBSERVED) -> BandwidthFacts:
    intent = parse_intent([FABRIC])
    rails = {FABRIC["name"]: {node: {PHYSICAL: 0} for node in "ab"}}
    plan = Plan(intent.fabrics, intent.cluster, ("a", "b"), rails, parallel=2, pod_seconds=60.0)
    physical = Hca("mlx5_0", rdma_device="mlx5_0", pci=PciFunction(PHYSICAL, "15b3", "1021", "0207"))
    seen = Facts(("a", "b"), hcas={node: ObservedHcas(NodeHcas((physical,))) for node in "ab"})
    return BandwidthRun(
        typing.cast(Cluster, api), plan, Clock(), lambda seconds: None, lambda line: None, seen, observers
    ).run()


def test_counters_of_both_pods_are_compared_for_each_pair() -> None:
    api = Counting()
    api.rises = {("a", "mlx5_4", "packet_seq_err"): 5, ("b", "mlx5_4", "np_cnp_sent"): 9}
    facts, _lines = run(api)
    for pair in facts.pairs:
        errors = {item.node: item for item in pair.errors}
        assert errors["a"].device == "mlx5_4" and errors["a"].grown == {"packet_seq_err": 5}
        assert (errors["b"].grown, errors["b"].congestion) == ({}, {"np_cnp_sent": 9})
        assert all(item.read == 2 and item.seconds > 0 for item in pair.errors)
    assert api.readings == {("a", "mlx5_4"): 4, ("b", "mlx5_4"): 4}


def test_physical_functions_are_read_by_observers_through_one_connection_each() -> None:
    api = Counting()
    api.rises = {("a", "mlx5_0", "rx_discards_phy"): 2}
    for pair in observed(api).pairs:
        grown = {(item.node, item.device): item.grown for item in pair.errors}
        assert grown == {
            ("a", "mlx5_4"): {},
            ("b", "mlx5_4"): {},
            ("a", "mlx5_0"): {"rx_discards_phy": 2},
            ("b", "mlx5_0"): {},
        }
    assert sorted(api.opened) == ["a", "b"]


def test_a_pod_or_an_observer_that_does_not_respond_is_asked_once() -> None:
    api = Counting()
    api.silent, api.dead = {"b"}, {"a"}
    facts = observed(api)
    assert [pair.average_gbps for pair in facts.pairs] == [0.034819] * 2
    for pair in facts.pairs:
        why = {(item.node, item.device): item.why for item in pair.errors}
        assert "did not report its counters within 10 s" in why["b", "mlx5_4"]
        assert "the observer of a did not respond: " in why["a", "mlx5_0"]
        assert why["a", "mlx5_4"] == ""
    assert api.opened.count("a") == 1


def test_no_counter_is_read_where_nothing_was_measured_and_without_rdma() -> None:
    api = Counting()
    api.answers = {("ib_write_bw", "client"): CRASHED}
    assert all(pair.errors == () and pair.failure for pair in run(api)[0].pairs)
    api = Counting()
    assert all(pair.errors == () for pair in run(api, rdma=False)[0].pairs) and api.readings == {}


def test_drops_and_pauses_of_the_driver_are_read_of_the_port_and_not_of_its_queues(tmp_path: pathlib.Path) -> None:
    (tmp_path / "mlx5_0/ports/1").mkdir(parents=True)
    (tmp_path / "mlx5_0/ports/1/link_layer").write_text("Ethernet\n", encoding="utf-8")
    (tmp_path / "mlx5_0/device/net/eth2").mkdir(parents=True)
    tool = tmp_path / "bin" / "ethtool"
    tool.parent.mkdir()
    tool.write_text(
        "#!/bin/sh\n[ \"$1 $2\" = '-S eth2' ] && cat <<'END'\nNIC statistics:\n     rx_packets: 5\n"
        "     rx3_xdp_drop: 4\n"
        "     rx_discards_phy: 7\n     rx_prio3_pause: 12\n     rx_dropped.nic: 2\n     [1]: rx_discards: 9\nEND\n",
        encoding="utf-8",
    )
    tool.chmod(0o755)
    command = [word.replace("/sys/class/infiniband", str(tmp_path)) for word in read_counters(("mlx5_0",), True)]
    printed = subprocess.run(
        command, check=True, capture_output=True, text=True, env={"PATH": f"{tool.parent}:/usr/bin:/bin"}
    ).stdout
    assert parse_counters(printed) == {"mlx5_0": {"rx_discards_phy": 7, "rx_prio3_pause": 12, "rx_dropped_nic": 2}}


def test_the_counters_of_all_ports_of_a_device_are_added_up(tmp_path: pathlib.Path) -> None:
    for number, kinds in ((1, "InfiniBand"), (2, "Ethernet"), (12, "Ethernet")):
        port = tmp_path / f"mlx5_0/ports/{number}"
        (port / "counters").mkdir(parents=True)
        (port / "hw_counters").mkdir()
        (port / "link_layer").write_text(f"{kinds}\n", encoding="utf-8")
        (port / "counters/symbol_error").write_text(f"{number}\n", encoding="utf-8")
        (port / "hw_counters/out_of_buffer").write_text("100\n", encoding="utf-8")
    (tmp_path / "mlx5_0/device/net/eth2").mkdir(parents=True)
    (tmp_path / "mlx5_0/device/net/eth2/carrier_down_count").write_text("3\n", encoding="utf-8")
    command = [word.replace("/sys/class/infiniband", str(tmp_path)) for word in read_counters(("mlx5_0",), True)]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert parse_counters(printed) == {"mlx5_0": {"symbol_error": 15, "out_of_buffer": 300, "carrier_down_count": 3}}


def test_a_sum_of_counters_stays_in_the_range_of_one() -> None:
    most = 2**64 - 1
    assert parse_counters(f"count mlx5_0 a {most}\ncount mlx5_0 a 1\n") == {"mlx5_0": {"a": most}}
