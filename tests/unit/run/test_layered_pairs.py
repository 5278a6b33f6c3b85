# SPDX-License-Identifier: GPL-3.0-or-later

"""Suspects layer by layer: what runs in observers and pods, what keeps a step from its figure, and that nothing stays.
All of the cluster is played."""

from __future__ import annotations

import dataclasses
import json
import pathlib
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._ansible.fact_modules import read_observers as observers_of
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import to_data
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.objects import CommandResult
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.observers import Observer, ObserversFacts
from ansible_collections.linerate.rdma.plugins.module_utils._model.measurement.bandwidth import (
    BandwidthFacts,
    LayerStep,
)
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.cluster_reader import Listing
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.errors import ApiError
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._run.measurement.layers import FIRST_PORT
from ansible_collections.linerate.rdma.plugins.module_utils._run.measurement.measure_pairs import BandwidthRun
from ansible_collections.linerate.rdma.plugins.module_utils._run.measurement.measuring_plan import Plan
from ansible_collections.linerate.rdma.plugins.module_utils._store.facts import FactFolder

from .test_pairs import FABRIC, TABLE, Api, Clock, Shell

PF, IN_POD, FREE = "0000:01:00.0", "0000:01:10.0", "0000:01:10.2"
#: below and above the floor of the intent, in Gb/s
SLOW, GOOD = TABLE.format("0.004000"), TABLE.format("0.080000")
OBSERVERS = ObserversFacts(
    "linerate-observers",
    "registry.example/tools",
    tuple(Observer(node, "ready", pod=f"observer-{node}", container="observer") for node in "ab"),
)
SETTINGS = json.dumps(
    [
        {
            "ifname": "eth1",
            "vfinfo_list": [
                {"vf": 0, "rate": {"max_tx": 4, "min_tx": 0}},
                {"vf": 1, "rate": {"max_tx": 0, "min_tx": 0}},
            ],
        }
    ]
)
HOST = "\n".join(
    (
        f"vf 0 {IN_POD}",
        f"vf 1 {FREE}",
        f"net {PF} eth1",
        f"net {FREE} eth1v1",
        f"pci {PF} mlx5_0",
        f"pci {FREE} mlx5_2",
        "active mlx5_2",
        f"settings {SETTINGS}",
        "addresses []",
    )
)


class Cloud(Api):
    """With an observer on each node.

    :ivar figures: what ib_write_bw prints, by its device
    :ivar host: what an observer's shell says first
    """

    def __init__(self, host: str = HOST, **figures: str) -> None:
        super().__init__(probe=f"env PCIDEVICE_X={IN_POD}\nphysfn {IN_POD} {PF}\n")
        self.host, self.figures = host, {"siw": SLOW, "mlx5_0": GOOD, "mlx5_2": GOOD, **figures}
        self.opened: list[Shell] = []
        self.interrupted = ""
        self.looks: dict[str, list[str]] = {"cpu.stat": ["nr_throttled 2"], "use_cuda": [""]}

    def list(
        self,
        kind: str,
        namespace: str = "",
        selector: str = "",
        fields: str = "",
        most: int = 0,
        only: typing.Any = None,
    ) -> Listing:
        found = super().list(kind, namespace, selector)
        for item in found.items if kind == "Node" else ():
            name = item["metadata"]["name"]
            item["status"]["addresses"] = [
                {"type": "Hostname", "address": name},
                {"type": "InternalIP", "address": f"10.1.0.{ord(name)}"},
            ]
        return found

    def shell(self, namespace: str, pod: str, container: str, command: tuple[str, ...], clock: typing.Any) -> Shell:
        if namespace != "linerate-observers":
            return super().shell(namespace, pod, container, command, clock)
        assert command[-1] == PF and container == "observer"
        made = Shell(CommandResult("shell", 0, self.host), lambda line: self.ran_by(pod, line))
        self.opened.append(made)
        return made

    def ran_by(self, node: str, command: tuple[str, ...]) -> CommandResult:
        if command[0] == "sh":
            answers = self.looks["cpu.stat" if "cpu.stat" in command[2] else "use_cuda"]
            return CommandResult("sh", 0, answers.pop(0) if len(answers) > 1 else answers[0])
        if "ib_write_bw" not in command:
            return super().ran_by(node, command)
        device = command[command.index("-d") + 1]
        client = command[-1].startswith("10.")
        self.ran.append((device, "client" if client else "server", node, command))
        if device == self.interrupted:
            raise KeyboardInterrupt
        figure = self.figures["gpu" if "--use_cuda=0" in command else "siw" if device.startswith("siw") else device]
        return CommandResult(
            " ".join(command),
            0 if figure else 1,
            (figure or "Port number 1 state is Down") if client or not figure else "",
        )


def run(
    api: typing.Any, observers: typing.Optional[ObserversFacts] = OBSERVERS, **changes: typing.Any
) -> BandwidthFacts:
    fabric = {**FABRIC, "bandwidth": {"directions": "one"}, **changes}
    intent = parse_intent([fabric])
    plan = Plan(intent.fabrics, intent.cluster, ("a", "b"), {}, parallel=2, pod_seconds=60.0)
    return BandwidthRun(
        typing.cast(Cluster, api), plan, Clock(), lambda seconds: None, lambda line: None, observers=observers
    ).run()


def steps(facts: BandwidthFacts) -> dict[str, LayerStep]:
    (found,) = facts.layers
    assert (found.client, found.server) == ("a", "b") and list(found.steps)
    return {step.layer: step for step in found.steps}


def test_a_suspect_is_measured_from_the_cable_up_and_nothing_stays() -> None:
    api = Cloud()
    found = steps(run(api))
    assert {layer: step.average_gbps for layer, step in found.items()} == {
        "pf_host": 0.08,
        "vf_host": 0.08,
        "vf_pod": 0.004,
        "gpu_pod": None,
    }
    assert [(step.client.function, step.server.device) for step in found.values()][:3] == [
        (PF, "mlx5_0"),
        (FREE, "mlx5_2"),
        (IN_POD, "siw-b"),
    ]
    assert found["gpu_pod"].absent and "no GPU" in found["gpu_pod"].why
    assert api.pods == {} and len(api.opened) == 2 and not any(shell.open for shell in api.opened)


def test_on_the_host_both_ends_meet_at_the_node_s_own_address_by_the_same_command() -> None:
    api = Cloud()
    run(api)
    (server,), (client,) = (
        [item for item in api.ran if item[0] == "mlx5_0" and item[1] == role] for role in ("server", "client")
    )
    assert (client[2], server[2]) == ("observer-a", "observer-b") and client[3][-1] == f"10.1.0.{ord('b')}"
    # no address on these functions is needed, whatever pods need
    assert (
        "-R" not in client[3]
        and client[3][:-1] == server[3]
        and "timeout" in server[3]
        and str(FIRST_PORT) in server[3]
    )


def test_each_layer_of_a_pair_that_was_measured_once_more_has_as_many_queue_pairs() -> None:
    api = Cloud()
    (found,) = run(api).layers
    assert found.more_than == 1
    of_host = [item[3] for item in api.ran if item[0] in ("mlx5_0", "mlx5_2")]
    of_pods = [item[3] for item in api.ran if item[0] == "siw-a" and item[1] == "client"]
    # in pods first as the intent has it, then once more, then as a layer
    assert [("-q", "16") in zip(command, command[1:]) for command in of_pods] == [False, True, True]
    assert len(of_host) == 4 and all(
        {("-q", "16"), ("-s", "65536"), ("-n", "6")} <= set(zip(command, command[1:])) for command in of_host
    )


@pytest.mark.parametrize(
    ("amount", "messages", "why"),
    [
        ({"iterations": 100}, 99, "no_measurement: 99 messages of 65536 bytes were measured; 100 were requested"),
        ({"seconds": 10}, 5, "no_measurement: 5 messages of 65536 bytes at 0.08 Gb/s take"),
    ],
    ids=["by number", "by time"],
)
def test_a_layer_of_few_messages_is_not_measured(amount: dict[str, int], messages: int, why: str) -> None:
    pods = {**{key: value for key, value in FABRIC["pods"].items() if key != "iterations"}, **amount}
    few, enough = (GOOD.replace(" 100 ", f" {number} ") for number in (messages, 1000))
    cloud = Cloud(siw=enough, mlx5_0=few, mlx5_2=few)
    (found,) = run(cloud, pods=pods, bandwidth={"directions": "one", "layers": "all"}).layers
    assert [step.average_gbps for step in found.steps] == [None, None, 0.08, None]
    assert [step.why.startswith(why) for step in found.steps] == [True, True, False, False]


def test_where_so_many_queue_pairs_do_not_work_the_layers_have_as_many_as_the_intent() -> None:
    class Few(Cloud):
        def ran_by(self, node: str, command: tuple[str, ...]) -> CommandResult:
            if ("-q", "16") in zip(command, command[1:]):
                return CommandResult(" ".join(command), 1, "Couldn't allocate MR")
            return super().ran_by(node, command)

    (found,) = run(Few()).layers
    assert found.more_than is None and [step.average_gbps for step in found.steps] == [0.08, 0.08, 0.004, None]


def test_what_is_set_for_the_functions_is_read_while_the_pods_have_them() -> None:
    api = Cloud()
    api.looks["cpu.stat"] = ["nr_throttled 2", "nr_throttled 2", "nr_throttled 9", "nr_throttled 2"]
    found = steps(run(api))
    assert (found["vf_host"].client.max_tx_rate, found["vf_pod"].client.max_tx_rate) == (0, 4)
    assert (found["vf_pod"].client.throttled, found["vf_pod"].server.throttled) == (7, 0)


def test_who_is_fast_enough_starts_nothing() -> None:
    api = Cloud(siw=GOOD)
    assert run(api).layers == () and api.opened == []


@pytest.mark.parametrize(("wanted", "number"), [("none", 0), ("suspects", 0), ("all", 1)])
def test_the_intent_says_who_is_looked_at(wanted: str, number: int) -> None:
    assert len(run(Cloud(siw=GOOD), bandwidth={"directions": "one", "layers": wanted}).layers) == number


def test_without_observers_nothing_more_is_started_unless_it_is_asked_for() -> None:
    assert run(Cloud(), None).layers == ()
    found = steps(run(Cloud(), None, bandwidth={"directions": "one", "layers": "suspects"}))
    assert (
        "no pod inspects the nodes" in found["pf_host"].why
        and "no pod inspects the nodes" in found["vf_host"].why
        and found["vf_pod"].average_gbps == 0.004
    )


def test_a_node_by_ssh_and_one_whose_observer_did_not_start_say_so() -> None:
    half = dataclasses.replace(OBSERVERS, nodes=(OBSERVERS.nodes[0],))
    assert "is accessed through SSH" in steps(run(Cloud(), half))["pf_host"].why
    late = dataclasses.replace(OBSERVERS, nodes=(OBSERVERS.nodes[0], Observer("b", "failed", "image", "cannot pull")))
    assert "cannot pull" in steps(run(Cloud(), late))["pf_host"].why


def test_without_a_free_function_the_step_has_that_reason_and_the_others_go_on() -> None:
    found = steps(run(Cloud(HOST.replace(f"net {FREE} eth1v1\n", ""))))
    assert "none of the 2 virtual functions" in found["vf_host"].why and not found["vf_host"].absent
    assert (found["pf_host"].average_gbps, found["vf_pod"].average_gbps) == (0.08, 0.004)


def test_a_step_that_fails_has_the_words_of_the_tool() -> None:
    found = steps(run(Cloud(mlx5_2="")))
    assert (
        "state is Down" in found["vf_host"].why
        and found["vf_host"].average_gbps is None
        and found["vf_pod"].average_gbps == 0.004
    )


def test_an_image_without_the_tool_is_the_reason() -> None:
    assert "ib_write_bw" in steps(run(Cloud(f"{HOST}\nmissing ib_write_bw")))["pf_host"].why


def test_an_observer_that_is_gone_is_the_reason() -> None:
    class Gone(Cloud):
        def shell(self, namespace: str, *rest: typing.Any) -> Shell:
            if namespace == "linerate-observers":
                raise ApiError(404, "NotFound", "pods observer-a not found", "exec")
            return super().shell(namespace, *rest)

    found = steps(run(Gone()))
    assert "observer-a not found" in found["pf_host"].why and found["vf_pod"].average_gbps == 0.004


def test_iwarp_needs_an_address_on_the_host_by_which_the_function_is_reached() -> None:
    iwarp = f"{HOST}\nrnic mlx5_0\nrnic mlx5_2"
    assert (
        "iWARP connects over rdma_cm, which requires an address on the interface of"
        in steps(run(Cloud(iwarp)))["pf_host"].why
    )
    own = [{"ifname": "eth1", "addr_info": [{"local": "10.9.0.1", "prefixlen": 24}]}]
    api = Cloud(iwarp.replace("addresses []", f"addresses {json.dumps(own)}"))
    found = steps(run(api))
    assert (
        found["pf_host"].average_gbps == 0.08
        and "iWARP connects over rdma_cm, which requires an address on the interface of" in found["vf_host"].why
    )
    assert next(item[3][-1] for item in api.ran if item[0] == "mlx5_0" and item[1] == "client") == "10.9.0.1"
    twice = [*own, {"ifname": "eth0", "addr_info": [{"local": "10.9.0.7", "prefixlen": 24}]}]
    assert (
        "this is not the case"
        in steps(run(Cloud(iwarp.replace("addresses []", f"addresses {json.dumps(twice)}"))))["pf_host"].why
    )


def test_the_memory_of_a_gpu_is_measured_where_there_is_one_and_the_tool_can() -> None:
    api = Cloud(gpu=SLOW, siw=SLOW)
    api.looks["use_cuda"] = ["gpu tool"]
    assert steps(run(api))["gpu_pod"].average_gbps == 0.004
    assert [item[3] for item in api.ran if "--use_cuda=0" in item[3]]
    api = Cloud()
    api.looks["use_cuda"] = ["gpu"]
    found = steps(run(api))["gpu_pod"]
    assert "--use_cuda" in found.why and not found.absent


def test_an_interrupt_leaves_neither_a_pod_nor_a_connection() -> None:
    api = Cloud()
    api.interrupted = "mlx5_0"
    with pytest.raises(KeyboardInterrupt):
        run(api)
    assert api.pods == {} and api.opened and not any(shell.open for shell in api.opened)


def test_the_observers_of_the_run_are_taken_from_its_facts(tmp_path: pathlib.Path) -> None:
    folder = FactFolder(str(tmp_path), "20260102T030405Z-a1b2c3")
    assert observers_of(None) is None and observers_of(folder) is None
    # the fact is the whole answer of the module
    folder.write("observers", value={**to_data(OBSERVERS), "changed": True, "applied": []})
    assert observers_of(folder) == OBSERVERS
    folder.write("observers", error="failed: the API server rejected the observers")
    assert observers_of(folder) is None
