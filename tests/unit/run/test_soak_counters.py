# SPDX-License-Identifier: GPL-3.0-or-later

"""The counters of a soak in pods with virtual functions: errors of the cable are counted by the physical functions."""

from __future__ import annotations

import dataclasses
import pathlib
import subprocess
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._check.collectives.check import Facts, check
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import load, to_data
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.objects import CommandResult
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.observers import Observer, ObserversFacts
from ansible_collections.linerate.rdma.plugins.module_utils._model.measurement.collectives import CollectivesFacts
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.hca import (
    Hca,
    NodeHcas,
    ObservedHcas,
    PciFunction,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import (
    FAIL,
    PASS,
    UNKNOWN,
    WARN,
    Finding,
)
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.errors import ApiError
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._parse.pods.rdma_counters import parse_counters
from ansible_collections.linerate.rdma.plugins.module_utils._render.measurement.hca_counters import read_counters
from ansible_collections.linerate.rdma.plugins.module_utils._run.measurement.collectives import CollectivesRun
from ansible_collections.linerate.rdma.plugins.module_utils._run.measurement.measuring_plan import Plan

from ..collectives_world import CLUSTER, COLLECTIVES, FABRIC, NcclApi, functions_of
from .test_collectives import measured
from .test_pairs import Clock

NODES = ("a", "b", "c", "d")
#: RDMA devices of the physical functions of the two rails
PHYSICAL = ("mlx5_0", "mlx5_1")
READY = tuple(Observer(node, "ready", pod=f"observer-{node}", container="o") for node in NODES)
OBSERVED = ObserversFacts("linerate-observers", "image", READY)


class ObserverShell:
    """A shell in an observer, which shows the physical functions of its node."""

    open = running = True

    def __init__(self, api: HostApi, node: str) -> None:
        self.api, self.node = api, node
        self.result = CommandResult("shell", 0, "")

    def start(self, command: typing.Sequence[str]) -> None:
        number = self.api.looks.get(self.node, 0)
        self.api.looks[self.node] = number + 1
        rises = self.api.on_host.get(self.node, {}) if number else {}
        lines = [
            f"count {device} {name} {7 + rises.get((device, name), 0)}"
            for device in command[4:]
            for name in ("symbol_error", "link_downed", "carrier_down_count")
        ]
        self.result = CommandResult("counters", 0, "\n".join(lines) + "\n")

    def wait(self, seconds: float, lost: typing.Callable[[], str] = str) -> CommandResult:
        return self.result

    def close(self) -> None:
        pass


class HostApi(NcclApi):
    """A fleet whose nodes have observers.

    :ivar on_host: error counters of the physical functions that rise during a soak, by node
    :ivar visible: whether the pods show the physical functions too
    :ivar dead: nodes whose observer does not answer
    """

    def __init__(self) -> None:
        super().__init__(NODES)
        self.on_host: dict[str, dict[tuple[str, str], int]] = {}
        self.looks: dict[str, int] = {}
        self.visible = False
        self.dead: set[str] = set()

    def shell(
        self, namespace: str, pod: str, container: str, command: tuple[str, ...], clock: typing.Any
    ) -> typing.Any:
        if namespace != "linerate-observers":
            return super().shell(namespace, pod, container, command, clock)
        node = pod.rpartition("-")[2]
        if node in self.dead:
            raise ApiError(500, "InternalError", "container not found", "GET")
        return ObserverShell(self, node)

    def counters(self, pod: str, devices: typing.Sequence[str]) -> str:
        return super().counters(pod, [name for name in devices if self.visible or name not in PHYSICAL])


def soak(api: HostApi, observers: typing.Optional[ObserversFacts]) -> dict[str, Finding]:
    """Return the findings of the soak, by the end of their subject."""
    intent = parse_intent([FABRIC], None, {**CLUSTER, "collectives": {**COLLECTIVES, "soak_minutes": 30}})
    functions = [function for _address, function, _device in functions_of(0)]
    rails = {"compute": {node: {function: rail for rail, function in enumerate(functions)} for node in NODES}}
    plan = Plan(intent.fabrics, intent.cluster, NODES, rails, parallel=8, pod_seconds=60.0, run="run-1")
    hcas = tuple(
        Hca(name, rdma_device=name, pci=PciFunction(function, "15b3", "1021", "0207"))
        for name, function in zip(PHYSICAL, functions)
    )
    seen = Facts(NODES, bandwidth=measured(NODES), hcas={node: ObservedHcas(NodeHcas(hcas)) for node in NODES})
    assert intent.cluster.collectives is not None
    api.clock = Clock()
    bench = CollectivesRun(
        typing.cast(Cluster, api),
        plan,
        intent.cluster.collectives,
        api.clock,
        lambda seconds: None,
        lambda text: None,
        seen,
        observers,
    )
    facts = load(CollectivesFacts, to_data(bench.run()), "collectives")
    assert [hca.physical for pod in facts.pods for hca in pod.hcas] == [*PHYSICAL] * 4
    found = check(intent, dataclasses.replace(seen, collectives=facts))
    return {
        item.subject.rpartition(", soak")[2].strip(": "): item for item in found if item.check == "collectives.soak"
    }


def test_counters_of_the_physical_functions_are_read_before_and_after() -> None:
    api = HostApi()
    found = soak(api, OBSERVED)
    assert {name: item.status for name, item in found.items()} == {"": PASS}
    assert found[""].measured == "no error counter of 16 of 16 HCAs increased"
    assert api.looks == dict.fromkeys(NODES, 2)


@pytest.mark.parametrize(
    ("counter", "status"), [("symbol_error", WARN), ("link_downed", FAIL), ("carrier_down_count", FAIL)]
)
def test_errors_of_the_cable_behind_a_virtual_function_are_found(counter: str, status: str) -> None:
    api = HostApi()
    api.on_host = {"c": {("mlx5_1", counter): 2}}
    found = soak(api, OBSERVED)
    assert {name: item.status for name, item in found.items()} == {"c mlx5_1": status, "": PASS}
    assert found["c mlx5_1"].measured == f"{counter} +2"


def test_physical_functions_that_nothing_reads_are_a_warning() -> None:
    found = soak(HostApi(), None)
    assert {name: item.status for name, item in found.items()} == {"physical functions": WARN, "": PASS}
    told = found["physical functions"]
    assert told.measured.startswith("error counters not read: a mlx5_0, a mlx5_1") and "errors of the cable" in told.why
    assert "rdma_observers" in told.remedy and "perfquery" in told.remedy
    # some nodes by ssh
    found = soak(HostApi(), dataclasses.replace(OBSERVED, nodes=OBSERVED.nodes[:3]))
    assert found["physical functions"].measured == "error counters not read: d mlx5_0, d mlx5_1"
    assert found[""].measured == "no error counter of 14 of 14 HCAs increased"


def test_pods_that_show_the_physical_functions_need_no_observer() -> None:
    api = HostApi()
    api.visible, api.grows = True, {("b", "mlx5_0"): {"link_downed": 1}}
    found = soak(api, None)
    assert {name: item.status for name, item in found.items()} == {"b mlx5_0": FAIL, "": PASS}


def test_an_observer_that_does_not_answer_leaves_them_unknown() -> None:
    api = HostApi()
    api.dead = {"b"}
    found = soak(api, OBSERVED)
    assert {name: item.status for name, item in found.items()} == {"b mlx5_0": UNKNOWN, "b mlx5_1": UNKNOWN, "": PASS}
    assert "the pod that inspects the node did not respond" in found["b mlx5_0"].why
    lost = dataclasses.replace(OBSERVED.nodes[0], phase="failed", reason="ImagePullBackOff")
    found = soak(HostApi(), dataclasses.replace(OBSERVED, nodes=(lost, *OBSERVED.nodes[1:])))
    assert found["a mlx5_0"].status == UNKNOWN and "ImagePullBackOff" in found["a mlx5_0"].why
    # the pod shows what the observer does not
    api = HostApi()
    api.dead, api.visible = set(NODES), True
    assert {name: item.status for name, item in soak(api, OBSERVED).items()} == {"": PASS}


def test_errors_of_the_link_are_read_from_the_interface_of_an_ethernet_port_alone(tmp_path: pathlib.Path) -> None:
    def write(path: str, text: str) -> None:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")

    for device, layer in (("mlx5_0", "Ethernet"), ("mlx5_1", "InfiniBand")):
        write(f"{device}/ports/1/link_layer", f"{layer}\n")
        write(f"{device}/ports/1/counters/symbol_error", "3\n")
        for net, port, number in (("eth2", "p0", 1), ("eth2_0", "pf0vf0", 8)):
            write(f"{device}/device/net/{net}/phys_port_name", f"{port}\n")
            write(f"{device}/device/net/{net}/carrier_down_count", f"{number}\n")
            write(f"{device}/device/net/{net}/statistics/rx_crc_errors", f"{number}\n")
    command = [
        word.replace("/sys/class/infiniband", str(tmp_path)) for word in read_counters(("mlx5_0", "mlx5_1"), True)
    ]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert parse_counters(printed) == {
        "mlx5_0": {"symbol_error": 3, "carrier_down_count": 1, "rx_crc_errors": 1},
        "mlx5_1": {"symbol_error": 3},
    }
