# SPDX-License-Identifier: GPL-3.0-or-later

"""Measurements between pods: order, retries, failures, and that no pod stays. The API server and the pods are
played."""

from __future__ import annotations

import json
import queue
import re
import threading
import time
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.objects import CommandResult
from ansible_collections.linerate.rdma.plugins.module_utils._model.measurement.bandwidth import BandwidthFacts
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.cluster_reader import Listing
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.errors import ApiError
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._render.measurement.pods import (
    render_measuring_pod as render_pod,
)
from ansible_collections.linerate.rdma.plugins.module_utils._run.cluster.watch import KindUpdate
from ansible_collections.linerate.rdma.plugins.module_utils._run.measurement.measure_pairs import BandwidthRun
from ansible_collections.linerate.rdma.plugins.module_utils._run.measurement.measuring_plan import (
    GONE_SECONDS,
    Plan,
    start_workers,
)
from ansible_collections.linerate.rdma.plugins.module_utils._run.measurement.pods.measuring_pods import (
    MeasuringPods,
)
from ansible_collections.linerate.rdma.plugins.module_utils._run.measurement.pods.removal import remove_pods

FABRIC: dict[str, typing.Any] = {
    "name": "storage",
    "profile": "sriov_ethernet",
    "select": {"hcas_per_node": 1},
    "virtual_functions": 4,
    "resource_name": "igb",
    "network": {"name": "net", "namespace": "test"},
    "ipam": {"type": "whereabouts", "range": "10.0.0.0/24"},
    "line_rate": {"floor_gbps": 0.01, "reason": "software RDMA"},
    "pods": {"connection": "rdma_cm", "message_bytes": 65536, "iterations": 100},
}
PINGS = "".join(f"ping data: rdma-ping-{number}: ABC\n" for number in range(5))
TABLE = (
    " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n 65536      100          "
    " 0.084767            {}            0.000066\n"
)
GOOD = TABLE.format("0.034819")
HEADS = TABLE[: TABLE.index("\n") + 1]
TCP = '{\n"start": {"connected": [{}, {}, {}, {}]}, "end": {"sum_received": {"bits_per_second": 21.5e9}}}\n'
CRASHED = CommandResult("", 139, "timeout: the monitored command dumped core\n")
REFUSED = CommandResult("", 1, "Couldn't connect to 10.0.0.2:18603\n")


#: as perftest 24 and 25 print it: the form of REPORT_FMT_LAT, with what it says of clocks in between
LATE = (
    " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]"
    "   99% percentile[usec]   99.9% percentile[usec] \n"
    "Conflicting CPU frequency values detected: 1000.001000 != 3073.683000. CPU Frequency is not max.\n"
    " 8       10000          1.44           2.93         1.48     \t       1.49        \t0.02   \t\t1.56    \t\t2.93\n"
    "---------------------------------------------------------------------------------------\n"
)
#: of a command that ends only when nobody waits for it any more, and the seconds after which a test gives up
HANGS, DEADLINE = CommandResult("", None, "", True), 30.0


class Shell:
    """A pod's shell: the probe's answer at first, then ``answer`` for each command."""

    def __init__(self, greeting: CommandResult, answer: typing.Callable[..., typing.Any]) -> None:
        self.result = greeting
        self.answer = answer
        self.open = True

    def start(self, command: tuple[str, ...]) -> None:
        self.result = self.answer(command)

    @property
    def running(self) -> bool:
        return self.open and self.result.exit_code not in (1, 137)

    def wait_for(self, text: str, seconds: float) -> bool:
        return True

    def wait(self, seconds: int, lost: typing.Callable[[], str] = str) -> CommandResult:
        end = time.monotonic() + DEADLINE
        while self.result is HANGS and time.monotonic() < end:
            if lost():
                return CommandResult("", None, "", error=lost())
        return self.result

    def close(self) -> None:
        self.open = False


class Api:
    """One API server with a kubelet that starts every pod at once. ``answers``: what a tool's client and server do."""

    def __init__(
        self,
        nodes: tuple[str, ...] = ("a", "b"),
        offered: str = "4",
        answers: typing.Optional[dict[tuple[str, str], typing.Any]] = None,
        refuse: typing.Optional[ApiError] = None,
        probe: str = "",
        refused_shell: None = None,
        resource: str = "openshift.io/igb",
    ) -> None:
        self.nodes = nodes
        self.offered = offered
        self.resource = resource
        self.answers = answers or {}
        self.refuse = refuse
        self.pods: dict[str, dict[str, typing.Any]] = {}
        self.made: list[str] = []
        self.ran: list[typing.Any] = []
        self.probe = probe
        self.refused_shell = refused_shell
        self.shells: list[typing.Any] = []
        self.gone: set[str] = set()

    def list(
        self,
        kind: str,
        namespace: str = "",
        selector: str = "",
        fields: str = "",
        most: int = 0,
        only: typing.Any = None,
    ) -> Listing:
        if kind == "Node":
            return Listing(
                tuple(
                    {
                        "kind": "Node",
                        "metadata": {"name": name},
                        "status": {"allocatable": {self.resource: self.offered}},
                    }
                    for name in self.nodes
                ),
                "1",
            )
        if kind == "Pod":
            assert selector == "app.kubernetes.io/managed-by=linerate.rdma,linerate.rdma/fabric"
            return Listing(tuple(self.pods.values()), "1")
        return Listing((), "1")

    def watch(self, kind: str, version: str, namespace: str = "", selector: str = "") -> typing.Iterator[typing.Any]:
        # nothing more ever happens
        threading.Event().wait()
        yield {}

    def create(self, definition: dict[str, typing.Any], manager: str = "") -> dict[str, typing.Any]:
        if self.refuse:
            raise self.refuse
        name = definition["metadata"]["name"]
        number = len(self.made) + 1
        self.made.append(name)
        status = [{"name": "test/net", "interface": "net1", "ips": [f"10.0.0.{number}"]}]
        annotations = {**definition["metadata"]["annotations"], "k8s.v1.cni.cncf.io/network-status": json.dumps(status)}
        self.pods[name] = {
            "kind": "Pod",
            "metadata": {**definition["metadata"], "annotations": annotations, "uid": f"uid-{number}"},
            "node": definition["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
                "nodeSelectorTerms"
            ][0]["matchFields"][0]["values"][0],
            "status": {"conditions": [{"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": "True"}]},
        }
        return self.pods[name]

    def delete(
        self,
        kind: str,
        namespace: str,
        name: str,
        grace_seconds: typing.Optional[int] = None,
        dry_run: bool = False,
        only: typing.Optional[dict[str, str]] = None,
    ) -> bool:
        # a pod that somebody else made since under this name is another one
        if name not in self.pods or only != {"uid": self.pods[name]["metadata"]["uid"]}:
            return False
        return self.pods.pop(name) is not None

    def version(self) -> str:
        return "v1.34.4"

    def get(self, kind: str, namespace: str, name: str) -> dict[str, typing.Any]:
        if name not in self.pods or name in self.gone:
            raise ApiError(404, "NotFound", f"pods {name} not found", "GET")
        return self.pods[name]

    def shell(self, namespace: str, pod: str, container: str, command: tuple[str, ...], clock: Clock) -> Shell:
        self.shells.append(pod)
        if self.refused_shell:
            raise self.refused_shell
        node = self.pods[pod]["node"]
        return Shell(self.greeting(pod, node), lambda line: self.ran_by(node, line))

    def greeting(self, pod: str, node: str) -> CommandResult:
        text = f'rdma [{{"ifname":"siw-{node}","netdev":"net1"}}]\nrate siw-{node} 2.5 Gb/sec\n'
        return CommandResult("shell", 0, text + self.probe.format(number=self.made.index(pod)))

    def ran_by(self, node: str, command: tuple[str, ...]) -> CommandResult:
        if command[0] == "sh" and "hw_counters" in command[2]:
            return self.count(node, command[4:])
        tool = next(word for word in command if word in ("rping", "ib_write_bw", "ib_write_lat", "iperf3"))
        client = (
            command[-1].startswith(("10.", "fd00:"))
            or ("-c" in command[: command.index("-p")] and tool == "rping")
            or "-J" in command
        )
        self.ran.append((tool, "client" if client else "server", node, command))
        answer = self.answers.get((tool, "client" if client else "server"))
        if callable(answer):
            answer = answer(node, command)
        if isinstance(answer, list):
            answer = answer.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer or CommandResult(
            " ".join(command),
            0,
            {"rping": PINGS, "ib_write_bw": GOOD, "ib_write_lat": LATE, "iperf3": TCP}[tool]
            if client or tool == "rping"
            else "",
        )

    def count(self, node: str, devices: tuple[str, ...]) -> CommandResult:
        """Return the error counters of RDMA devices, none of which ever rises."""
        return CommandResult("counters", 0, "".join(f"count {device} packet_seq_err 3\n" for device in devices))


class Clock:
    now = 0.0

    def __call__(self) -> float:
        self.now += 0.01
        return self.now


def run(
    api: typing.Union[typing.Any, Api, Plain],
    nodes: tuple[str, ...] = ("a", "b"),
    rails: typing.Optional[dict[str, typing.Any]] = None,
    pod_seconds: float = 60.0,
    **changes: typing.Any,
) -> tuple[BandwidthFacts, list[str]]:
    lines: list[str] = []
    intent = parse_intent([{**FABRIC, **changes}])
    plan = Plan(intent.fabrics, intent.cluster, nodes, rails or {}, parallel=2, pod_seconds=pod_seconds)
    return BandwidthRun(typing.cast(Cluster, api), plan, Clock(), lambda seconds: None, lines.append).run(), lines


def test_each_ordered_pair_is_measured_once_and_no_pod_stays() -> None:
    api = Api()
    facts, lines = run(api)
    assert [(pair.client, pair.server, pair.pings, pair.average_gbps) for pair in facts.pairs] == [
        ("a", "b", 5, 0.034819),
        ("b", "a", 5, 0.034819),
    ]
    assert [(pod.node, pod.device, pod.interface, pod.rate_gbps) for pod in facts.pods] == [
        ("a", "siw-a", "net1", 2.5),
        ("b", "siw-b", "net1", 2.5),
    ]
    assert api.pods == {}
    assert (facts.leftovers, facts.remaining) == ((), ())
    assert "storage a -> b: 5 pings, 0.0348 Gb/s" in lines


class _Fast(Api):
    """Both ports have this rate."""

    def __init__(self, rate: str, nodes: tuple[str, ...] = ("a", "b")) -> None:
        super().__init__(nodes)
        self.rate = rate

    def greeting(self, pod: str, node: str) -> CommandResult:
        text = f'rdma [{{"ifname":"siw-{node}","netdev":"net1"}}]\nrate siw-{node} {self.rate}\n'
        return CommandResult("shell", 0, text + self.probe.format(number=self.made.index(pod)))


def test_latency_is_measured_after_the_rounds_with_each_port_in_a_pair() -> None:
    api = Api(nodes=("a", "b", "c"))
    facts, lines = run(api, nodes=("a", "b", "c"), bandwidth={"latency": True})
    assert {(pair.typical_us, pair.p99_us, pair.failure) for pair in facts.latencies} == {(1.48, 1.56, "")}
    assert {name for pair in facts.latencies for name in (pair.client, pair.server)} == {"a", "b", "c"}
    tools = [tool for tool, _end, _node, _command in api.ran]
    assert "ib_write_lat" not in tools[: max(place for place, tool in enumerate(tools) if tool == "ib_write_bw")]
    words = next(command for tool, end, _node, command in api.ran if (tool, end) == ("ib_write_lat", "client"))
    assert ("-s", "8") in zip(words, words[1:]) and ("-n", "10000") in zip(words, words[1:])
    assert any("latency: 1.48 us, p99 1.56 us" in line for line in lines) and api.pods == {}
    assert run(Api())[0].latencies == ()


SAID = " Dual-port       : OFF\t\tDevice         : {}\n Number of qps   : {}\t\tTransport type : IB\n"


def test_what_perftest_says_of_another_device_or_number_of_queue_pairs_is_no_figure() -> None:
    for device, many, failure, packet_bytes in (
        ("siw-{}", 1, "", 1024),
        ("mlx5_99", 1, "other_run", None),
        ("siw-{}", 4, "other_run", None),
    ):

        def say(node: str, _command: object, device: str = device, many: int = many) -> CommandResult:
            said = f"{SAID.format(device.format(node), many)} Mtu             : 1024[B]\n{GOOD}"
            return CommandResult("ib_write_bw", 0, said)

        facts, _lines = run(Api(answers={("ib_write_bw", "client"): say}))
        assert {(pair.failure, pair.packet_bytes) for pair in facts.pairs} == {(failure, packet_bytes)}
        asked = [f"requested were Device siw-{pair.client}, Number of qps 1" for pair in facts.pairs]
        assert not failure or all(text in pair.evidence for text, pair in zip(asked, facts.pairs))


def test_a_latency_that_fails_is_told_and_the_bandwidth_stays() -> None:
    missing = CommandResult("ib_write_lat", 127, "stdbuf: failed to run command 'ib_write_lat': No such file")
    facts, _lines = run(Api(answers={("ib_write_lat", "server"): missing}), bandwidth={"latency": True})
    (pair,) = facts.latencies
    assert pair.typical_us is None and pair.failure and "ib_write_lat" in pair.evidence
    assert all(item.average_gbps for item in facts.pairs)
    torn = CommandResult("ib_write_lat", 0, LATE.replace("1.56 ", "0.56 "))
    (pair,) = run(Api(answers={("ib_write_lat", "client"): torn}), bandwidth={"latency": True})[0].latencies
    assert (pair.typical_us, pair.failure) == (None, "no_measurement")


@pytest.mark.parametrize(
    ("rate", "asked", "pairs"),
    [
        ("2.5 Gb/sec", {}, 1),
        ("100 Gb/sec (4X EDR)", {}, 1),
        ("200 Gb/sec (4X HDR)", {}, 4),
        ("400 Gb/sec (4X NDR)", {}, 8),
        ("800 Gb/sec (4X XDR)", {}, 8),
        ("400 Gb/sec (4X NDR)", {"queue_pairs": 1}, 1),
        ("100 Gb/sec (4X EDR)", {"queue_pairs": 2}, 2),
    ],
)
def test_fast_ports_are_measured_with_several_queue_pairs_at_both_ends(
    rate: str, asked: dict[str, typing.Any], pairs: int
) -> None:
    api = _Fast(rate)
    facts, _lines = run(api, pods={"message_bytes": 65536, "iterations": 100, **asked})
    assert {pair.queue_pairs for pair in facts.pairs} == {pairs}
    of_tool = [command for tool, _end, _node, command in api.ran if tool == "ib_write_bw"]
    assert len(of_tool) == 4 and all(
        (("-q", str(pairs)) in zip(command, command[1:])) == (pairs > 1) for command in of_tool
    ), of_tool


def _of_queue_pairs(few: str, many: typing.Callable[[str, str], typing.Any]) -> typing.Callable[..., typing.Any]:
    """What the client of ib_write_bw says: ``few`` of 8 queue pairs, and of 16 what ``many`` says of its node and its
    server's address."""

    def answer(node: str, command: tuple[str, ...]) -> typing.Any:
        words = dict(zip(command, command[1:]))
        gbps = few if words["-q"] == "8" else many(node, command[-1])
        if isinstance(gbps, CommandResult):
            return gbps
        return CommandResult(
            " ".join(command), 0, f"{HEADS} {words['-s']} {words['-n']} {float(gbps) + 1} {gbps} 0.1\n"
        )

    return answer


@pytest.mark.parametrize("many", ["391.500000", "220.000000"])
def test_a_pair_below_its_floor_is_measured_once_more_with_more_queue_pairs(many: str) -> None:
    api = _Fast("400 Gb/sec (4X NDR)")
    api.answers = {("ib_write_bw", "client"): _of_queue_pairs("218.000000", lambda node, server: many)}
    facts, lines = run(api, line_rate={"floor_gbps": 368, "reason": "NDR"})
    for pair in facts.pairs:
        found = pair.wider
        assert (pair.average_gbps, pair.queue_pairs, pair.message_bytes, pair.iterations) == (218.0, 8, 65536, 100)
        assert found is not None and (found.queue_pairs, found.message_bytes, found.iterations) == (16, 262144, 12)
        assert (found.average_gbps, found.why, len(found.commands), len(pair.commands)) == (float(many), "", 1, 2)
    assert f"storage a -> b, repeated with 16 queue pairs: {float(many):.4f} Gb/s" in lines
    of_tool = [(end, command) for tool, end, _node, command in api.ran if tool == "ib_write_bw"]
    assert len(of_tool) == 8 and sum(("-q", "16") in zip(command, command[1:]) for _end, command in of_tool) == 4


def test_a_pair_that_reaches_its_floor_is_measured_once() -> None:
    api = _Fast("400 Gb/sec (4X NDR)")
    api.answers = {("ib_write_bw", "client"): _of_queue_pairs("391.500000", lambda node, server: "395.0")}
    facts, _lines = run(api, line_rate={"floor_gbps": 368, "reason": "NDR"})
    assert [pair.wider for pair in facts.pairs] == [None, None]
    assert sum(tool == "ib_write_bw" for tool, _end, _node, _command in api.ran) == 4


def test_a_second_measurement_without_a_figure_keeps_the_first_and_says_why() -> None:
    api = _Fast("400 Gb/sec (4X NDR)")
    api.answers = {
        ("ib_write_bw", "client"): _of_queue_pairs(
            "218.000000", lambda node, server: CommandResult("", 1, "Couldn't allocate MR\n")
        )
    }
    facts, _lines = run(api, line_rate={"floor_gbps": 368, "reason": "NDR"})
    for pair in facts.pairs:
        assert pair.average_gbps == 218.0 and not pair.failure
        assert pair.wider is not None and pair.wider.average_gbps is None and "Couldn't allocate MR" in pair.wider.why


def test_of_an_end_whose_pairs_stay_slow_two_are_measured_once_more() -> None:
    """A broken node costs four measurements more, two in each direction, whatever the number of others is."""
    nodes = ("a", "b", "c", "d", "e", "f")
    api = _Fast("400 Gb/sec (4X NDR)", nodes)

    def answer(node: str, command: tuple[str, ...]) -> typing.Any:
        to = next(
            pod["node"]
            for number, pod in enumerate(map(api.pods.get, api.made), 1)
            if pod and command[-1] == f"10.0.0.{number}"
        )
        return _of_queue_pairs("218.000000" if "f" in (node, to) else "391.500000", lambda node, server: "219.0")(
            node, command
        )

    api.answers = {("ib_write_bw", "client"): answer}
    facts, _lines = run(api, nodes, line_rate={"floor_gbps": 368, "reason": "NDR"})
    found = [pair for pair in facts.pairs if pair.wider is not None]
    assert all("f" in (pair.client, pair.server) for pair in found) and len(found) == 10
    assert sum(pair.wider is not None and pair.wider.average_gbps == 219.0 for pair in found) == 4
    told = {pair.wider.why for pair in found if pair.wider is not None and pair.wider.average_gbps is None}
    assert told == {
        f"2 other pairs with f as the {role} were measured with more queue pairs, and were still too slow or failed"
        for role in ("client", "server")
    }


def test_an_end_whose_second_measurement_fails_is_measured_no_more_than_one_that_stays_slow() -> None:
    nodes = ("a", "b", "c", "d", "e", "f")
    api = _Fast("400 Gb/sec (4X NDR)", nodes)

    def answer(node: str, command: tuple[str, ...]) -> typing.Any:
        to = next(
            pod["node"]
            for number, pod in enumerate(map(api.pods.get, api.made), 1)
            if pod and command[-1] == f"10.0.0.{number}"
        )
        failed = CommandResult("", 1, "Couldn't allocate MR\n")
        return _of_queue_pairs("218.000000" if "f" in (node, to) else "391.500000", lambda node, server: failed)(
            node, command
        )

    api.answers = {("ib_write_bw", "client"): answer}
    facts, _lines = run(api, nodes, line_rate={"floor_gbps": 368, "reason": "NDR"})
    said = [pair.wider.why for pair in facts.pairs if pair.wider is not None]
    assert len(said) == 10 and sum("Couldn't allocate MR" in why for why in said) == 4
    assert {why for why in said if "MR" not in why} == {
        f"2 other pairs with f as the {role} were measured with more queue pairs, and were still too slow or failed"
        for role in ("client", "server")
    }


def test_the_pods_of_one_fabric_go_before_those_of_the_next_come() -> None:
    most = []

    class Counting(Api):
        def create(self, definition: dict[str, typing.Any], manager: str = "") -> dict[str, typing.Any]:
            made = super().create(definition)
            most.append(len(self.pods))
            return made

    api = Counting()
    intent = parse_intent([FABRIC, {**FABRIC, "name": "other"}])
    facts = BandwidthRun(
        typing.cast(Cluster, api),
        Plan(intent.fabrics, intent.cluster, ("a", "b"), parallel=2, pod_seconds=60.0),
        Clock(),
        lambda seconds: None,
        lambda line: None,
    ).run()
    assert [(pair.fabric, pair.client) for pair in facts.pairs] == [
        ("storage", "a"),
        ("storage", "b"),
        ("other", "a"),
        ("other", "b"),
    ]
    assert [(pod.node, pod.fabric) for pod in facts.pods] == [
        ("a", "storage"),
        ("a", "other"),
        ("b", "storage"),
        ("b", "other"),
    ]
    assert len(api.made) == 4 and max(most) == 2 and api.pods == {}


class _Classed(Api):
    """perftest in the pods of some nodes can set a traffic class."""

    def __init__(self, help_of: typing.Mapping[str, str]) -> None:
        super().__init__()
        self.help_of = help_of

    def ran_by(self, node: str, command: tuple[str, ...]) -> CommandResult:
        if any("--help" in word for word in command):
            return CommandResult("", 0, self.help_of[node])
        return super().ran_by(node, command)


@pytest.mark.parametrize(
    ("connection", "help_of", "option"),
    [
        ("tcp", {"a": "tclass\ntos\n", "b": "tclass\n"}, "--tclass=106"),
        ("rdma_cm", {"a": "tclass\ntos\n", "b": "tos\n"}, "--tos=106"),
        ("tcp", {"a": "tclass\n", "b": "tos\n"}, ""),
        ("rdma_cm", {"a": "tclass\n", "b": ""}, ""),
    ],
)
def test_roce_is_measured_in_the_traffic_class_of_the_fabric(
    connection: str, help_of: typing.Mapping[str, str], option: str
) -> None:
    api = _Classed(help_of)
    pods = {**FABRIC.get("pods", {}), "connection": connection}
    facts, _lines = run(api, pods=pods, roce={"dscp": 26, "priority": 3}, bandwidth={"latency": True})
    assert {pair.traffic_class for pair in facts.pairs} == {106 if option else None}
    ran = [command for tool, _end, _node, command in api.ran if tool in ("ib_write_bw", "ib_write_lat")]
    assert len(ran) > 5
    assert {word for command in ran for word in command if re.match("--(tclass|tos)=", word)} == ({option} - {""})
    assert all((option in command) is bool(option) for command in ran)


def test_the_client_aims_at_the_server_s_address_with_its_own_device() -> None:
    api = Api()
    facts, _lines = run(api)
    addresses = {pod.node: pod.address for pod in facts.pods}
    for tool, side, node, command in api.ran:
        if tool == "ib_write_bw":
            assert command[command.index("-d") + 1] == f"siw-{node}"
            assert "-R" in command
        if side == "client":
            assert command[command.index("-a") + 1 if tool == "rping" else -1] == addresses["b" if node == "a" else "a"]
        assert command[:3] == ("timeout", "--kill-after=5", command[2])


def test_three_nodes_are_six_pairs() -> None:
    facts, _lines = run(Api(("a", "b", "c")), ("a", "b", "c"))
    assert len({(pair.client, pair.server) for pair in facts.pairs}) == len(facts.pairs) == 6


def test_no_two_runs_share_a_port() -> None:
    api = Api(("a", "b", "c"))
    run(api, ("a", "b", "c"))
    servers = [command[command.index("-p") + 1] for _tool, side, _node, command in api.ran if side == "server"]
    assert len(set(servers)) == len(servers)


def test_a_node_that_offers_nothing_gets_no_pod() -> None:
    api = Api(offered="0")
    facts, _lines = run(api)
    assert api.made == []
    assert [pod.error for pod in facts.pods] == ["the node does not offer openshift.io/igb"] * 2
    assert facts.pairs == ()


def test_a_node_that_the_cluster_does_not_know() -> None:
    facts, _lines = run(Api(("a",)))
    assert facts.pods[1].error == "the cluster has no node of this name"


def test_a_refused_pod_keeps_the_server_s_words() -> None:
    facts, _lines = run(Api(refuse=ApiError(403, "Forbidden", "violates PodSecurity baseline", "POST")))
    assert [(pod.error, pod.cause) for pod in facts.pods] == [("violates PodSecurity baseline", "refused")] * 2


def test_a_pod_that_will_not_go_is_told_from_one_that_is_refused() -> None:
    facts, _lines = run(
        Api(
            refuse=ApiError(
                409, "AlreadyExists", 'object is being deleted: pods "linerate-storage-a" already exists', "POST"
            )
        )
    )
    assert [pod.cause for pod in facts.pods] == ["stuck"] * 2


def test_a_client_that_came_too_early_is_tried_again() -> None:
    api = Api(answers={("ib_write_bw", "client"): [REFUSED, REFUSED, None, None]})
    facts, _lines = run(api)
    assert [pair.average_gbps for pair in facts.pairs] == [0.034819, 0.034819]
    assert [pair.retried for pair in facts.pairs] == [("not_listening", "not_listening"), ()]


def test_a_port_that_is_not_known_yet_is_tried_again() -> None:
    late = CommandResult("", 255, "cma event RDMA_CM_EVENT_ADDR_ERROR, error -110\n")
    facts, _lines = run(Api(answers={("rping", "client"): [late, late, None, None]}))
    assert [(pair.failure, pair.average_gbps) for pair in facts.pairs] == [("", 0.034819)] * 2
    assert [pair.retried for pair in facts.pairs] == [("no_address", "no_address"), ()]


def test_a_tool_that_crashed_once_is_asked_anew_and_the_crash_is_told() -> None:
    facts, lines = run(Api(answers={("ib_write_bw", "client"): [CRASHED, None, None]}))
    assert [(pair.failure, pair.average_gbps) for pair in facts.pairs] == [("", 0.034819)] * 2
    assert any("crash: ended by signal 11" in line and "the test is repeated" in line for line in lines)
    assert any("-> 139" in command for pair in facts.pairs for command in pair.commands)


def test_a_port_of_another_process_is_left_for_other_ports() -> None:
    taken = CommandResult(
        "", 1, "Couldn't listen to port 18601\n Unable to open file descriptor for socket connection\n"
    )
    api = Api(answers={("ib_write_bw", "server"): [taken, None, None]})
    facts, lines = run(api)
    assert [(pair.failure, pair.average_gbps) for pair in facts.pairs] == [("", 0.034819)] * 2
    assert any("port_in_use: Couldn't listen to port 18601; the test is repeated" in line for line in lines)
    ports = [
        command[command.index("-p") + 1]
        for tool, side, _node, command in api.ran
        if (tool, side) == ("ib_write_bw", "server")
    ]
    assert len(ports) == len(set(ports)) == 3


def test_the_retries_are_bounded() -> None:
    api = Api(answers={("ib_write_bw", "client"): REFUSED})
    facts, _lines = run(api)
    assert [pair.failure for pair in facts.pairs] == ["not_listening", "not_listening"]
    # the last attempt is the one that is told by itself
    assert [pair.retried for pair in facts.pairs] == [("not_listening",) * 4] * 2
    assert sum(tool == "ib_write_bw" and side == "client" for tool, side, _node, _command in api.ran) == 10


@pytest.mark.parametrize(
    ("side", "answer", "failure"),
    [
        # a perfect table beside a failure
        ("client", CommandResult("", 1, GOOD + "ethernet_read_keys: Couldn't read remote address\n"), "peer_gone"),
        ("client", CommandResult("", 0, TABLE.format("0.000000")), "no_measurement"),
        ("client", CommandResult("", 0, TABLE.format("inf")), "no_measurement"),
        ("client", CommandResult("", 0, ""), "no_measurement"),
        ("client", CommandResult("", 124, "", True), "hang"),
        ("client", CRASHED, "crash"),
        ("client", CommandResult("", None, GOOD, False, 1.0, "the connection to the pod broke"), "exec_lost"),
        ("client", ApiError(404, "NotFound", "pod not found", "exec"), "exec_lost"),
        ("server", CommandResult("", 1, "Couldn't allocate MR\n"), "memlock"),
    ],
)
def test_failures_are_no_measurements(side: str, answer: typing.Union[ApiError, CommandResult], failure: str) -> None:
    api = Api(answers={("ib_write_bw", side): answer})
    facts, _lines = run(api)
    assert [(pair.failure, pair.average_gbps) for pair in facts.pairs] == [(failure, None)] * 2
    assert api.pods == {}


def test_a_failed_ping_spares_the_bandwidth() -> None:
    api = Api(answers={("rping", "client"): CommandResult("", 255, "cma event RDMA_CM_EVENT_ADDR_ERROR, error -110\n")})
    facts, _lines = run(api)
    assert [(pair.ping_failure, pair.failure, pair.average_gbps) for pair in facts.pairs] == [
        ("no_address", "ping", None)
    ] * 2
    assert not any(tool == "ib_write_bw" for tool, _side, _node, _command in api.ran)


def test_rping_s_server_may_fail_after_a_good_run() -> None:
    api = Api(answers={("rping", "server"): CommandResult("", 255, "rping server failed: -1\n")})
    facts, _lines = run(api)
    assert all(pair.ping_failure == "" and pair.average_gbps for pair in facts.pairs)


def test_leftovers_are_removed_first_and_named() -> None:
    api = Api()
    api.pods["old"] = {"kind": "Pod", "metadata": {"name": "old", "namespace": "test", "uid": "uid-old"}}
    facts, lines = run(api)
    assert facts.leftovers == ("test/old",)
    assert "interrupted earlier run: test/old" in lines[0]


def test_pods_carry_their_run_and_those_of_others_under_their_names_are_left_alone() -> None:
    """While a run hangs, another one takes over, removes its pods and makes its own: what has the same names now is not
    the first one's to delete."""

    class TakenOver(Api):
        def ran_by(self, node: str, command: tuple[str, ...]) -> CommandResult:
            for name, pod in self.pods.items():
                pod["metadata"] = {
                    **pod["metadata"],
                    "uid": f"of-the-other-{name}",
                    "labels": {**pod["metadata"]["labels"], "linerate.rdma/run": "run-2"},
                }
            return super().ran_by(node, command)

        def list(
            self,
            kind: str,
            namespace: str = "",
            selector: str = "",
            fields: str = "",
            most: int = 0,
            only: typing.Any = None,
        ) -> Listing:
            # one that has lost the Lease gets no further than this; see test_lease.py
            return super().list(kind, namespace, selector) if kind != "Pod" or not self.ran else Listing((), "1")

    api = TakenOver()
    intent = parse_intent([FABRIC])
    plan = Plan(intent.fabrics, intent.cluster, ("a", "b"), parallel=2, pod_seconds=60.0, run="20260102T030405Z-a1b2c3")
    labels = [pod["metadata"]["labels"]["linerate.rdma/run"] for pod in made_by(api, plan)]
    assert labels == ["20260102T030405Z-a1b2c3"] * 2
    assert sorted(api.pods) == ["linerate-storage-a", "linerate-storage-b"]
    assert {pod["metadata"]["labels"]["linerate.rdma/run"] for pod in api.pods.values()} == {"run-2"}


def made_by(api: typing.Any, plan: Plan) -> list[dict[str, typing.Any]]:
    """Definitions of the pods of a whole run."""
    made: list[dict[str, typing.Any]] = []
    create = api.create

    def noted(definition: dict[str, typing.Any], _manager: str) -> typing.Any:
        made.append(definition)
        return create(definition)

    api.create = noted
    BandwidthRun(api, plan, Clock(), lambda seconds: None, lambda line: None).run()
    return made


def test_an_interrupt_leaves_no_pod() -> None:
    api = Api(answers={("rping", "server"): KeyboardInterrupt()})
    with pytest.raises(KeyboardInterrupt):
        run(api)
    assert api.made
    assert api.pods == {}


def test_an_api_server_that_is_away_at_the_end_does_not_hide_the_figures() -> None:
    api = Api()

    def away(*arguments: str, **options: typing.Union[dict[str, str], int]) -> None:
        raise ApiError(0, "Unreachable", "refused", "DELETE")

    api.delete = away  # type: ignore[assignment, method-assign]
    facts, _lines = run(api)
    assert len(facts.pairs) == 2
    assert "refused" in facts.remaining[0]


def test_an_api_server_that_comes_back_at_the_end_is_asked_again_for_the_pods() -> None:
    class Restarted(Api):
        refused = 0

        def delete(self, *arguments: typing.Any, **options: typing.Any) -> bool:
            if self.ran and self.refused < 5:
                self.refused += 1
                raise ApiError(0, "Unreachable", "no answer: Connection reset by peer", "DELETE")
            return super().delete(*arguments, **options)

    api = Restarted()
    facts, _lines = run(api)
    assert (api.refused, api.pods, facts.remaining) == (5, {}, ())


class Restarting(Api):
    """The API server goes away while the pods are made. ``arrived``: what it was asked for last before that is there
    all the same.

    :ivar down: requests, beginning with the second pod, that nobody answers
    """

    down = 3

    def __init__(self, arrived: bool, **options: typing.Any) -> None:
        super().__init__(**options)
        self.arrived = arrived
        self.asked: list[str] = []

    def _away(self) -> None:
        if self.made and self.down:
            self.down -= 1
            raise ApiError(0, "Unreachable", "the API server did not respond: Connection reset by peer", "POST")

    def version(self) -> str:
        self._away()
        return super().version()

    def create(self, definition: dict[str, typing.Any], manager: str = "") -> dict[str, typing.Any]:
        name = definition["metadata"]["name"]
        self.asked.append(name)
        if self.arrived and self.made and self.down == Restarting.down:
            self.there(super().create(definition))
        self._away()
        if name in self.pods:
            raise ApiError(409, "AlreadyExists", f'pods "{name}" already exists', "POST")
        return super().create(definition)

    def there(self, made: dict[str, typing.Any]) -> None:
        """What a request made whose answer got lost."""


def restarted(api: Api) -> BandwidthFacts:
    """One pod after the other, so that what is away is so for the second one."""
    intent = parse_intent([FABRIC])
    plan = Plan(intent.fabrics, intent.cluster, ("a", "b"), parallel=1, pod_seconds=60.0, run="run-1")
    return BandwidthRun(typing.cast(Cluster, api), plan, Clock(), lambda seconds: None, lambda line: None).run()


@pytest.mark.parametrize("arrived", [False, True])
def test_an_api_server_that_goes_away_while_pods_are_made_ends_no_run(arrived: bool) -> None:
    api = Restarting(arrived)
    facts = restarted(api)
    assert (api.down, len(api.made), len(api.asked)) == (0, 2, 3)
    assert [pod.error for pod in facts.pods] == ["", ""] and [pair.average_gbps for pair in facts.pairs] == [
        0.034819
    ] * 2
    # one that arrived is ours to remove
    assert (api.pods, facts.remaining) == ({}, ())


@pytest.mark.parametrize(
    "change",
    [
        {"labels": {"linerate.rdma/run": "run-2"}},
        {"labels": {}},
        # ours, of before, and on its way out
        {"labels": {"linerate.rdma/run": "run-1"}, "deletionTimestamp": "2026-01-02T03:04:05Z"},
    ],
)
def test_another_s_pod_of_the_same_name_stays_an_error_also_after_a_broken_request(
    change: dict[str, typing.Any],
) -> None:
    class Foreign(Restarting):
        def there(self, made: dict[str, typing.Any]) -> None:
            made["metadata"].update(change)

    facts = restarted(Foreign(True))
    assert [(pod.node, pod.cause) for pod in facts.pods] == [("a", ""), ("b", "stuck")]


def test_a_pod_of_this_run_that_no_request_was_lost_for_is_an_error() -> None:
    class There(Api):
        def create(self, definition: dict[str, typing.Any], manager: str = "") -> dict[str, typing.Any]:
            super().create(definition)
            raise ApiError(409, "AlreadyExists", "already exists", "POST")

    assert [pod.cause for pod in restarted(There()).pods] == ["stuck"] * 2


def test_an_api_server_that_does_not_come_back_ends_the_run_after_the_time_for_pods() -> None:
    class Gone(Restarting):
        down = 1_000_000

    api = Gone(False)
    with pytest.raises(ApiError, match="the API server did not respond"):
        restarted(api)
    assert 2 <= len(api.asked) < 10_000


def test_an_overloaded_api_server_that_stays_so_refuses_the_pod() -> None:
    facts = restarted(Api(refuse=ApiError(503, "ServiceUnavailable", "apiserver is shutting down", "POST")))
    assert [(pod.error, pod.cause) for pod in facts.pods] == [("apiserver is shutting down", "refused")] * 2


def test_an_api_server_that_goes_away_while_pods_are_looked_into_costs_no_pod() -> None:
    class Cut(Api):
        broken = 3

        def shell(self, namespace: str, pod: str, container: str, command: tuple[str, ...], clock: typing.Any) -> Shell:
            shell = super().shell(namespace, pod, container, command, clock)
            self.broken -= 1
            if self.broken == 2:
                raise ApiError(0, "Unreachable", "the connection broke", "exec")
            if self.broken == 1:
                shell.open, shell.result = False, CommandResult("shell", None, "")
            return shell

    facts = restarted(Cut())
    assert [pod.error for pod in facts.pods] == ["", ""] and len(facts.pairs) == 2


def test_a_pod_that_cannot_be_looked_into_is_not_asked_forever() -> None:
    class Cut(Api):
        def shell(self, namespace: str, pod: str, container: str, command: tuple[str, ...], clock: typing.Any) -> Shell:
            self.shells.append(pod)
            raise ApiError(0, "Unreachable", "the connection broke", "exec")

    api = Cut()
    facts = restarted(api)
    assert ["exec: the connection broke" in pod.error for pod in facts.pods] == [True] * 2
    assert len(api.shells) == 6


class Lossy(Api):
    """Nodes ``lost`` are not ready once something has run: no kubelet ends their pods."""

    def __init__(self, lost: tuple[str, ...]) -> None:
        super().__init__()
        self.lost = lost
        self.forced: list[str] = []

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
        if kind == "Node":
            for node in found.items:
                living = not self.ran or node["metadata"]["name"] not in self.lost
                node["status"]["conditions"] = [{"type": "Ready", "status": "True" if living else "Unknown"}]
        return found

    def create(self, definition: dict[str, typing.Any], manager: str = "") -> dict[str, typing.Any]:
        made = super().create(definition)
        made["spec"] = {"nodeName": made["node"]}
        return made

    def delete(
        self,
        kind: str,
        namespace: str,
        name: str,
        grace_seconds: typing.Optional[int] = None,
        dry_run: bool = False,
        only: typing.Optional[dict[str, str]] = None,
    ) -> bool:
        if name in self.pods and self.pods[name]["node"] == "b" and grace_seconds != 0:
            self.pods[name]["metadata"]["deletionTimestamp"] = "2026-01-02T03:04:05Z"
            return True
        if grace_seconds == 0:
            self.forced.append(name)
        return super().delete(kind, namespace, name, grace_seconds, dry_run, only=only)


def test_a_pod_of_a_lost_node_is_let_go() -> None:
    api = Lossy(("b",))
    facts, lines = run(api)
    assert (facts.remaining, api.forced) == ((), ["linerate-storage-b"])
    assert "b is lost: its pod linerate-storage-b is deleted without confirmation by the node" in lines


def test_a_living_node_that_never_ends_its_pod_is_named_and_holds_nobody_up() -> None:
    api = Lossy(())
    facts, lines = run(api)
    told = (
        "test/linerate-storage-b (deleted after 60 s without confirmation by its node b, where"
        " the pod may still run and hold its virtual function)"
    )
    assert (facts.remaining, api.forced, api.pods) == ((told,), ["linerate-storage-b"], {})
    assert told in lines


def test_what_a_living_node_kept_of_an_earlier_run_does_not_end_this_one() -> None:
    api = Lossy(())
    metadata = {
        "name": "old",
        "namespace": "linerate-measure",
        "uid": "uid-old",
        "deletionTimestamp": "2026-01-02T03:04:05Z",
    }
    api.pods["old"] = {"kind": "Pod", "node": "b", "metadata": metadata, "spec": {"nodeName": "b"}}
    swept = remove_pods(typing.cast(Cluster, api), 60.0, Clock(), lambda seconds: None)
    assert len(swept) == 1 and "without confirmation by its node b" in swept[0]
    assert (api.forced, api.pods) == (["old"], {})


def test_a_long_wait_for_images_gives_no_node_as_long_to_end_its_pod() -> None:
    """Stage collectives waits 900 s for its pods: at its start and at its end one kubelet could hold it for as long."""
    api, clock = Lossy(()), Clock()
    metadata = {"name": "old", "namespace": "linerate-measure", "uid": "uid-old"}
    api.pods["old"] = {"kind": "Pod", "node": "b", "metadata": metadata, "spec": {"nodeName": "b"}}

    def pause(seconds: float) -> None:
        clock.now += seconds

    swept = remove_pods(typing.cast(Cluster, api), 900.0, clock, pause)
    assert (
        api.forced == ["old"] and f"deleted after {GONE_SECONDS:.0f} s without confirmation by its node b" in swept[0]
    )
    assert GONE_SECONDS <= clock.now < GONE_SECONDS + 5


def test_a_wait_for_pods_names_the_nodes_whose_pods_are_late(monkeypatch: pytest.MonkeyPatch) -> None:
    class Late(Api):
        def create(self, definition: dict[str, typing.Any], manager: str = "") -> dict[str, typing.Any]:
            made = super().create(definition)
            made["status"]["conditions"][1]["status"] = str(made["node"] != "b")
            return made

    api, clock, lines = Late(), Clock(), typing.cast("list[str]", [])

    class News:
        """All pods at once, and then nothing more."""

        shown = False

        def start(self) -> None:
            pass

        stop = start

        def get(self, seconds: float) -> typing.Optional[KindUpdate]:
            if self.shown:
                clock.now += seconds
                return None
            self.shown = True
            return KindUpdate("Pod", "replace", tuple(api.pods.values()))

    intent = parse_intent([FABRIC])
    plan = Plan(intent.fabrics, intent.cluster, ("a", "b"), pod_seconds=150.0, run="run-1")
    pods = MeasuringPods(typing.cast(Cluster, api), plan, clock, lambda seconds: None, lines.append)
    monkeypatch.setattr(pods._readiness, "_open_feed", News)
    monkeypatch.setattr(pods, "_start_loss_watcher", lambda: None)
    with start_workers(2) as pool:
        started = pods.start_whole(
            pool,
            intent.fabrics[0],
            {node: render_pod(intent.fabrics[0], intent.cluster, node, 0, "run-1", 60) for node in ("a", "b")},
        )
    assert [bool(item.error) for item, _found in started] == [False, True] and clock.now < 151
    waits = [line for line in lines if "for the pods of b" in line]
    assert len(waits) == 2 and waits[0].startswith("storage: waiting at most ")


def test_no_attempt_is_spent_while_the_api_server_is_away() -> None:
    class Away(Api):
        down = 10

        def version(self) -> str:
            self.down -= 1
            if self.down:
                raise ApiError(0, "Unreachable", "no answer: Connection refused", "GET")
            return "v1.34.4"

    api = Away()
    first = iter([ApiError(0, "Unreachable", "the connection broke", "exec")])
    api.answers = {("rping", "server"): lambda node, command: next(first, None)}
    facts, _lines = run(api)
    assert api.down == 0 and all(pair.average_gbps == 0.034819 for pair in facts.pairs)


def test_one_connection_a_pod_is_enough() -> None:
    api = Api(("a", "b", "c"))
    run(api, ("a", "b", "c"))
    assert sorted(api.shells) == sorted(api.made)
    assert len(api.ran) == 6 * 4


def test_a_connection_that_is_lost_is_made_anew_once() -> None:
    lost = CommandResult("", None, GOOD, False, 1.0, "the connection to the pod broke")
    facts, _lines = run(Api(answers={("ib_write_bw", "client"): [lost, None, None]}))
    assert [(pair.failure, pair.average_gbps) for pair in facts.pairs] == [("", 0.034819)] * 2


def test_a_last_handshake_that_was_missed_is_measured_anew_and_told() -> None:
    words = (
        " Bad wc status 2\n Unable to write to socket/rdma_cm\nFailed to close connection between server and client\n"
    )
    missed = CommandResult("ib_write_bw", 1, GOOD + words, False, 4.4)
    facts, lines = run(Api(answers={("ib_write_bw", "client"): [missed, missed, None, None]}))
    assert [(pair.failure, pair.average_gbps) for pair in facts.pairs] == [("", 0.034819)] * 2
    assert [line.endswith("; the test is repeated") for line in lines if "a -> b" in line] == [True, True, False]
    # the report shows each of them
    assert [command.split(" -> ")[1] for command in facts.pairs[0].commands if "ib_write_bw" in command] == [
        "1 in 4.4 s",
        "1 in 4.4 s",
        "0 in 0.0 s",
    ]


def test_a_last_handshake_that_is_always_missed_is_a_failure() -> None:
    missed = CommandResult("ib_write_bw", 1, GOOD + "Failed to close connection between server and client\n")
    api = Api(answers={("ib_write_bw", "server"): missed})
    facts, lines = run(api)
    assert [(pair.failure, pair.average_gbps) for pair in facts.pairs] == [("not_closed", None)] * 2
    assert sum(tool == "ib_write_bw" and side == "client" for tool, side, _node, _command in api.ran) == 2 * 3
    assert not lines[-1].endswith("once more")


def test_a_figure_of_zero_at_exit_code_0_is_measured_anew_and_told() -> None:
    zero = CommandResult("ib_write_bw", 0, TABLE.format("0.000000"), False, 5.5)
    facts, lines = run(Api(answers={("ib_write_bw", "client"): [zero, None, None]}))
    assert [(pair.failure, pair.average_gbps) for pair in facts.pairs] == [("", 0.034819)] * 2
    assert [line.endswith("; the test is repeated") for line in lines if "a -> b" in line] == [
        True,
        False,
    ] and "0.000000" in str(lines)
    assert [command.split(" -> ")[1] for command in facts.pairs[0].commands if "ib_write_bw" in command] == [
        "0 in 5.5 s",
        "0 in 0.0 s",
    ]


LEFT = CommandResult("rping -c", 0, "client DISCONNECT EVENT...\nwait for RDMA_WRITE_ADV state 10\n", False, 0.2)


def test_a_server_of_rping_that_left_is_asked_anew_and_told() -> None:
    facts, lines = run(Api(answers={("rping", "client"): [LEFT, LEFT, None, None]}))
    assert [(pair.pings, pair.ping_failure, pair.average_gbps) for pair in facts.pairs] == [(5, "", 0.034819)] * 2
    assert [pair.retried for pair in facts.pairs] == [("disconnected", "disconnected"), ()]
    assert [line.endswith("; the test is repeated") for line in lines if "a -> b" in line] == [True, True, False]
    assert [command.split(" -> ")[1] for command in facts.pairs[0].commands if "rping" in command] == [
        "0 in 0.2 s",
        "0 in 0.2 s",
        "0 in 0.0 s",
    ]


def test_a_server_of_rping_that_always_leaves_is_a_failure_with_its_last_words() -> None:
    over = CommandResult(
        "rping -s", 137, "rdma_listen\ncq completion failed status 4\nrping server failed: -1\n", False, 30.0
    )
    facts, _lines = run(Api(answers={("rping", "client"): LEFT, ("rping", "server"): over}))
    assert [(pair.ping_failure, pair.failure, pair.average_gbps) for pair in facts.pairs] == [
        ("disconnected", "ping", None)
    ] * 2
    assert facts.pairs[0].ping_evidence.endswith(
        "; the server ended with exit code 137 after 30 s: rdma_listen | cq completion failed status 4 | rping server"
        " failed: -1"
    )


def test_a_pod_that_is_gone_is_named_and_not_what_its_absence_looks_like() -> None:
    api = Api(("a", "b", "c"))

    def evicted(node: str, command: tuple[str, ...]) -> typing.Optional[CommandResult]:
        if node != "c":
            return None
        api.gone.add("linerate-storage-c")
        return CommandResult("", 1, " Failed status 12: wr_id 0 syndrom 0x81\n")

    api.answers = {("ib_write_bw", "client"): evicted}
    facts, _lines = run(api, ("a", "b", "c"))
    failed = {
        (pair.client, pair.server): (pair.failure, pair.evidence)
        for pair in facts.pairs
        if pair.failure and not pair.again
    }
    assert ("pod_gone", "the pod linerate-storage-c on c was deleted") in failed.values()
    assert all("c" in pair for pair in failed)


def test_a_node_that_dies_is_heard_of_at_once_and_asked_no_more() -> None:
    class Dies(Api):
        watchers: typing.ClassVar[list[queue.Queue[typing.Any]]] = []

        def watch(
            self, kind: str, version: str, namespace: str = "", selector: str = ""
        ) -> typing.Iterator[typing.Any]:
            mine: queue.Queue[typing.Any] = queue.Queue()
            self.watchers.append(mine)
            # what came between its list and this
            yield from map(self.event, tuple(self.pods.values()))
            yield from iter(mine.get, None)

        @staticmethod
        def event(pod: dict[str, typing.Any]) -> dict[str, typing.Any]:
            return {"type": "MODIFIED", "object": {**pod, "metadata": {**pod["metadata"], "resourceVersion": "2"}}}

    api = Dies(("a", "b", "c"))

    def dies(node: str, command: tuple[str, ...]) -> typing.Optional[CommandResult]:
        lost = api.pods["linerate-storage-c"]
        alive = lost["status"]["conditions"][1]["status"] == "True"
        assert alive or node != "c"
        if alive and node == "c" and "ib_write_bw" in command:
            lost["status"]["conditions"][1] = {"type": "Ready", "status": "False", "reason": "NodeNotReady"}
            for watcher in api.watchers:
                watcher.put(api.event(lost))
            return HANGS
        return None

    api.answers = {(tool, end): dies for tool in ("rping", "ib_write_bw") for end in ("client", "server")}
    facts, _lines = run(api, ("a", "b", "c"))
    told = "the pod linerate-storage-c on c: it is no longer ready, for example because its node is lost"
    assert {(pair.client, pair.server): pair.evidence for pair in facts.pairs} == {
        ("a", "b"): "",
        ("b", "a"): "",
        **dict.fromkeys((("a", "c"), ("c", "a"), ("b", "c"), ("c", "b")), told),
    }


@pytest.mark.parametrize(("pod_seconds", "seconds"), [(60.0, 30), (900.0, 180)])
def test_a_pod_whose_shell_says_nothing_is_not_accused_of_dropped_packets(pod_seconds: float, seconds: int) -> None:
    class Silent(Api):
        def greeting(self, pod: str, node: str) -> CommandResult:
            return CommandResult("shell", None, "", True, 30.0) if node == "b" else super().greeting(pod, node)

    facts, _lines = run(Silent(), pod_seconds=pod_seconds)
    assert [(pod.cause, pod.error) for pod in facts.pods if pod.error] == [
        ("silent", f"the pod could not be inspected: the shell in the pod did not respond for {seconds} s")
    ]


def test_a_pod_that_goes_while_it_is_looked_into_is_named_as_gone() -> None:
    class Evicts(Api):
        def greeting(self, pod: str, node: str) -> CommandResult:
            if node != "b":
                return super().greeting(pod, node)
            self.gone.add(pod)
            return CommandResult("shell", 137, "", False, 0.1)

    facts, _lines = run(Evicts())
    assert [(pod.cause, pod.error) for pod in facts.pods if pod.error] == [
        ("pod_gone", "the pod could not be inspected: the pod linerate-storage-b on b was deleted")
    ]


def test_an_image_without_the_tools_is_told_before_anything_is_measured() -> None:
    facts, _lines = run(Api(probe="missing ib_write_bw\nmissing taskset\n"))
    assert [(pod.error.split(" does not contain ")[1], pod.cause) for pod in facts.pods] == [
        ("ib_write_bw", "no_tool")
    ] * 2
    assert facts.pairs == ()


def test_an_image_without_a_shell() -> None:
    class NoShell(Api):
        def greeting(self, pod: str, node: str) -> CommandResult:
            return CommandResult(
                "shell", None, "", False, 0.1, 'no exit code: exec: "sh": executable file not found in $PATH'
            )

    facts, _lines = run(NoShell())
    assert [pod.cause for pod in facts.pods] == ["no_tool"] * 2
    assert "executable file not found" in facts.pods[0].error


def test_tools_are_bound_to_the_numa_node_of_the_hca() -> None:
    probe = "env PCIDEVICE_X=0000:01:10.0\nnuma 0000:01:10.0 1\ncpus 0000:01:10.0 4-7\nallowed 2-5\n"
    api = Api(probe=probe)
    facts, _lines = run(api)
    assert [pod.binding for pod in facts.pods] == ["on CPUs 4-5 of NUMA node 1"] * 2
    assert all(
        command[5:8] == ("taskset", "-c", "4-5") for tool, _side, _node, command in api.ran if tool == "ib_write_bw"
    )


TWO_RAILS: dict[str, typing.Any] = {"select": {"hcas_per_node": 2}, "virtual_functions": 3}
RAILS = {"storage": {node: {"0000:01:00.0": 0, "0000:02:00.0": 1} for node in ("a", "b")}}


def rail_probe(numbers: tuple[int, ...]) -> type[Api]:
    """Which HCA the pod of each number gets a function of, as the device plugin would choose."""

    class Drawing(Api):
        def greeting(self, pod: str, node: str) -> CommandResult:
            mine = [name for name in self.made if self.pods.get(name, {}).get("node") == node]
            hca = numbers[mine.index(pod)]
            text = f"env PCIDEVICE_X=0000:0{hca}:10.0\nphysfn 0000:0{hca}:10.0 0000:0{hca}:00.0\n"
            return CommandResult("shell", 0, super().greeting(pod, node).output + text)

    return Drawing


def test_pods_are_drawn_until_each_rail_has_one() -> None:
    api = rail_probe((1, 1, 1, 2))(offered="6")
    facts, _lines = run(api, rails=RAILS, **TWO_RAILS)
    assert [(pod.node, pod.rail, pod.physical_function, pod.error) for pod in facts.pods] == [
        (node, rail, f"0000:0{rail + 1}:00.0", "") for node in ("a", "b") for rail in (0, 1)
    ]
    assert len(api.made) == 8
    assert [(pair.rail, pair.client, pair.server) for pair in facts.pairs] == [
        (0, "a", "b"),
        (0, "b", "a"),
        (1, "a", "b"),
        (1, "b", "a"),
    ]
    assert api.pods == {}


def test_a_rail_that_no_function_is_of_is_named() -> None:
    # 3 functions on each of 2 HCAs: 4 pods would have both; the node offers 3, all of the first
    api = rail_probe((1, 1, 1))(offered="3")
    facts, _lines = run(api, rails=RAILS, **TWO_RAILS)
    assert len(api.made) == 6
    assert [(pod.rail, pod.error) for pod in facts.pods if pod.node == "a"] == [
        (0, ""),
        (1, "none of the 3 virtual functions of the pods on this node belongs to rail 1, HCA 0000:02:00.0"),
    ]
    assert {pair.rail for pair in facts.pairs} == {0}


def test_rails_of_a_node_whose_hcas_are_not_known() -> None:
    facts, _lines = run(rail_probe((1, 2))(), rails={}, **TWO_RAILS)
    assert {pod.error for pod in facts.pods} == {
        "its virtual function 0000:01:10.0 belongs to 0000:01:00.0; HCAs of this fabric on the node: none known"
    }
    assert facts.pairs == ()


def test_a_function_of_another_fabric_s_hca_is_no_rail() -> None:
    facts, _lines = run(rail_probe((3,))(), rails={"storage": {"a": {"0000:01:00.0": 0}, "b": {"0000:01:00.0": 0}}})
    assert (
        facts.pods[0].error
        == "its virtual function 0000:03:10.0 belongs to 0000:03:00.0; HCAs of this fabric on the node: 0000:01:00.0"
    )


def test_quick_rounds_and_what_a_suspect_is_measured_with_afterwards() -> None:
    nodes = ("a", "b", "c", "d", "e", "f")

    def slow(node: str, command: tuple[str, ...]) -> typing.Optional[CommandResult]:
        to = api.address_of[command[-1]]
        return CommandResult("", 0, TABLE.format("0.001000")) if "f" in (node, to) else None

    class Known(Api):
        @property
        def address_of(self) -> dict[str, str]:
            return {f"10.0.0.{number}": self.pods[name]["node"] for number, name in enumerate(self.made, 1)}

    api = Known(nodes, answers={("ib_write_bw", "client"): slow})
    facts, lines = run(api, nodes, bandwidth={"rounds": 1})
    once = [pair for pair in facts.pairs if not pair.again]
    more = [pair for pair in facts.pairs if pair.again]
    assert len(once) == 6
    assert {frozenset((pair.client, pair.server)) for pair in once if "f" in (pair.client, pair.server)} == {
        frozenset("af")
    }
    # a is a suspect as well until it passes; f fails with two that pass with others
    assert {
        frozenset((pair.client, pair.server)): bool(typing.cast(float, pair.average_gbps) > 0.01) for pair in more
    } == {
        frozenset("ab"): True,
        frozenset("cf"): False,
    }
    assert any("repeated, to distinguish the ends" in line for line in lines)


def test_both_directions_at_once_are_one_measurement() -> None:
    api = Api()
    facts, _lines = run(api, bandwidth={"directions": "at_once"})
    assert len(facts.pairs) == 1
    assert all("-b" in command for tool, _side, _node, command in api.ran if tool == "ib_write_bw")


def test_a_sweep_is_kept_and_its_failure_spoils_nothing_else() -> None:
    rows = GOOD + " 131072     100           0.084767            0.044819            0.000066\n"
    facts, _lines = run(
        Api(
            answers={
                ("ib_write_bw", "client"): [None, CommandResult("", 0, rows), None, CommandResult("", 124, "", True)]
            }
        ),
        bandwidth={"sweep": True},
    )
    assert [[(row.message_bytes, row.average_gbps) for row in pair.sweep] for pair in facts.pairs] == [
        [(65536, 0.034819), (131072, 0.044819)],
        [],
    ]
    assert [pair.sweep_failure.split(":")[0] for pair in facts.pairs] == ["", "hang"]
    assert [pair.average_gbps for pair in facts.pairs] == [0.034819] * 2


def test_a_sweep_of_few_messages_is_no_sweep() -> None:
    answers = [None, CommandResult("", 0, GOOD.replace(" 100 ", " 99 "))]
    facts, _lines = run(Api(answers={("ib_write_bw", "client"): answers}), bandwidth={"sweep": True})
    assert facts.pairs[0].sweep == ()
    assert facts.pairs[0].sweep_failure == (
        "no_measurement: 99 messages of 65536 bytes were measured; 100 were requested"
    )
    assert facts.pairs[0].average_gbps == 0.034819


def test_a_server_that_was_killed_is_named_and_not_what_the_client_makes_of_it() -> None:
    answers = {
        ("ib_write_bw", "client"): CommandResult(
            "", 1, f"{GOOD} Completion with error at client\n Failed status 5: wr_id 0 syndrom 0x0\n"
        ),
        ("ib_write_bw", "server"): CommandResult("", 137, "Waiting for client to connect", True, 3.0),
    }
    facts, _lines = run(Api(answers=answers))
    assert [pair.failure for pair in facts.pairs] == ["peer_gone"] * 2
    assert facts.pairs[0].evidence.startswith("the server was killed (exit code 137); the client reported: ")


@pytest.mark.parametrize(
    ("server", "kind", "evidence"),
    [
        (
            "Failed status 4: wr_id 0 syndrom 0x51",
            "local_protection",
            "the server reported: Completion with error at server: Failed status 4: wr_id 0 syndrom 0x51",
        ),
        # flushed requests are a consequence there as well
        (
            "Failed status 5: wr_id 0 syndrom 0xf9",
            "remote_operation",
            "Completion with error at client: Failed status 11: wr_id 0 syndrom 0x89",
        ),
    ],
)
def test_an_error_of_the_peer_is_named_by_the_peer_s_own_status(server: str, kind: str, evidence: str) -> None:
    answers = {
        ("ib_write_bw", "client"): CommandResult(
            "", 1, " Completion with error at client\n Failed status 11: wr_id 0 syndrom 0x89\n"
        ),
        ("ib_write_bw", "server"): CommandResult(
            "", 1, f"Waiting for client to connect\n Completion with error at server\n {server}\n", False, 1.0
        ),
    }
    facts, _lines = run(Api(answers=answers))
    assert [pair.failure for pair in facts.pairs] == [kind] * 2
    assert facts.pairs[0].evidence.startswith(evidence)


def test_an_image_that_cannot_even_sleep() -> None:
    class Pause(Api):
        def create(self, definition: dict[str, typing.Any], manager: str = "") -> dict[str, typing.Any]:
            made = super().create(definition)
            text = 'exec: "sleep": executable file not found in $PATH: unknown'
            terminated = {"terminated": {"reason": "StartError", "message": text}}
            made["status"] = {"phase": "Failed", "containerStatuses": [{"state": terminated}]}
            return made

    facts, _lines = run(Pause())
    assert [pod.cause for pod in facts.pods] == ["no_tool"] * 2
    assert (
        facts.pods[0].error
        == 'the pod did not become ready: it ended: Failed; StartError: exec: "sleep": executable file not found in'
        " $PATH: unknown"
    )


def test_an_image_that_cannot_be_pulled_keeps_the_cause_and_not_what_the_kubelet_said_last() -> None:
    class NoImage(Api):
        def create(self, definition: dict[str, typing.Any], manager: str = "") -> dict[str, typing.Any]:
            made = super().create(definition)
            waiting = {"waiting": {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "x"'}}
            made["status"] = {"phase": "Pending", "containerStatuses": [{"state": waiting}]}
            return made

        def list(
            self,
            kind: str,
            namespace: str = "",
            selector: str = "",
            fields: str = "",
            most: int = 0,
            only: typing.Any = None,
        ) -> Listing:
            said = (
                "Failed to pull image: unauthorized: authentication required",
                "Error: ErrImagePull",
                "Error: ImagePullBackOff",
            )
            events: list[dict[str, typing.Any]] = [
                {
                    "type": "Warning",
                    "reason": "Failed",
                    "message": text,
                    "lastTimestamp": f"2026-01-02T03:04:0{second}Z",
                    "involvedObject": {"name": name, "uid": pod["metadata"]["uid"]},
                    "source": {"component": "kubelet", "host": pod["node"]},
                }
                for name, pod in self.pods.items()
                for second, text in enumerate(said)
            ]
            if kind != "Event":
                return super().list(kind, namespace, selector)
            # of thousands of pods each that fails is asked about
            assert 0 < most <= 500 and fields.startswith("involvedObject.kind=Pod,")
            mine = [
                event
                for event in events
                if all(
                    f"involvedObject.{key}={value}" in fields.split(",")
                    for key, value in event["involvedObject"].items()
                )
            ]
            return Listing(tuple(mine), "1")

    class Leaps(Clock):
        def __call__(self) -> float:
            self.now += 40.0
            return self.now

    intent = parse_intent([FABRIC])
    plan = Plan(intent.fabrics, intent.cluster, ("a", "b"), parallel=2, pod_seconds=60.0)
    facts = BandwidthRun(typing.cast(Cluster, NoImage()), plan, Leaps(), lambda seconds: None, lambda line: None).run()
    assert [pod.cause for pod in facts.pods] == ["image"] * 2
    words = (
        'ImagePullBackOff: Back-off pulling image "x"; Failed: Failed to pull image: unauthorized: authentication'
        " required"
    )
    assert facts.pods[0].error == f"the pod did not become ready: {words}"


def test_a_pod_waits_for_room_while_pods_of_ours_leave_its_node() -> None:
    """Those of an earlier fabric, which a busy kubelet takes its time to end: what they hold is free soon. Elsewhere
    nothing will change by itself."""

    class Full(Api):
        def create(self, definition: dict[str, typing.Any], manager: str = "") -> dict[str, typing.Any]:
            made = super().create(definition)
            condition = {
                "type": "PodScheduled",
                "status": "False",
                "reason": "Unschedulable",
                "message": "Insufficient cpu",
            }
            made["status"] = {"phase": "Pending", "conditions": [condition]}
            return made

        def watch(
            self, kind: str, version: str, namespace: str = "", selector: str = ""
        ) -> typing.Iterator[typing.Any]:
            old = {
                "name": "old",
                "namespace": namespace,
                "uid": "uid-old",
                "resourceVersion": "1",
                "deletionTimestamp": "2026-01-02T03:04:05Z",
            }
            while not ended.wait(0.01):
                yield {"type": "MODIFIED", "object": {"kind": "Pod", "metadata": old, "spec": {"nodeName": "a"}}}

    class Steps(Clock):
        def __call__(self) -> float:
            self.now += 5.0
            return self.now

    clock, told, ended = Steps(), typing.cast(dict[str, float], {}), threading.Event()

    def say(line: str) -> None:
        if "did not become ready" in line:
            told[line.split(":")[0]] = clock.now

    intent = parse_intent([FABRIC])
    plan = Plan(intent.fabrics, intent.cluster, ("a", "b"), parallel=2, pod_seconds=300.0)
    facts = BandwidthRun(typing.cast(Cluster, Full()), plan, clock, lambda seconds: None, say).run()
    ended.set()
    assert [pod.cause for pod in facts.pods] == ["unschedulable"] * 2
    assert 60 <= told["storage b"] < 150 and told["storage a"] >= 300


def profile(name: str, **changes: typing.Union[dict[str, typing.Any], str]) -> dict[str, typing.Any]:
    """Changes that make another profile of FABRIC."""
    return {"profile": name, "virtual_functions": 0, "resource_name": "", **changes}


def test_pods_that_ask_for_no_resource_start_where_none_is_offered() -> None:
    facts, _lines = run(Api(offered="0"), **profile("macvlan", select={"hcas_per_node": 1, "netdev": ["eth1"]}))
    assert [(pod.node, pod.interface, pod.error) for pod in facts.pods] == [("a", "net1", ""), ("b", "net1", "")]
    assert len(facts.pairs) == 2


def test_the_pod_network_is_measured_over_the_pods_own_interface() -> None:
    class Own(Api):
        def create(self, definition: dict[str, typing.Any], manager: str = "") -> dict[str, typing.Any]:
            assert definition["metadata"]["annotations"] == {}
            pod = super().create(definition)
            pod["metadata"]["annotations"] = {}
            pod["status"]["podIP"] = f"10.244.0.{len(self.made)}"
            return pod

        def greeting(self, pod: str, node: str) -> CommandResult:
            return CommandResult("shell", 0, f'rdma [{{"ifname":"siw-{node}","netdev":"eth0"}}]\n')

    data = {
        key: value
        for key, value in FABRIC.items()
        if key not in ("select", "ipam", "virtual_functions", "resource_name")
    }
    intent = parse_intent([{**data, "profile": "pod_network", "network": {"namespace": "test"}}])
    facts = BandwidthRun(
        typing.cast(Cluster, Own(offered="0")),
        Plan(intent.fabrics, intent.cluster, ("a", "b"), {}),
        Clock(),
        lambda seconds: None,
        lambda line: None,
    ).run()
    assert [(pod.device, pod.interface, pod.address) for pod in facts.pods] == [
        ("siw-a", "eth0", "10.244.0.1"),
        ("siw-b", "eth0", "10.244.0.2"),
    ]
    assert len(facts.pairs) == 2


def test_a_shared_device_is_that_of_the_function_which_the_fabric_selects() -> None:
    class Shared(Api):
        def greeting(self, pod: str, node: str) -> CommandResult:
            # no device is on the pod's own interface: all pods see those of the node
            return CommandResult(
                "shell",
                0,
                'rdma [{"ifname":"mlx5_0"},{"ifname":"mlx5_1"}]\npci 0000:3c:00.0 mlx5_0\npci 0000:4d:00.0 mlx5_1\n',
            )

    rails = {"storage": {node: {"0000:4d:00.0": 0} for node in ("a", "b")}}
    facts, _lines = run(
        Shared(resource="rdma/igb"),
        rails=rails,
        **profile("rdma_shared", resource_name="igb", select={"hcas_per_node": 1, "netdev": ["ens1"]}),
    )
    assert [(pod.device, pod.error) for pod in facts.pods] == [("mlx5_1", ""), ("mlx5_1", "")]


def test_a_whole_function_is_the_hca_of_its_rail() -> None:
    drawing = rail_probe((1, 2))

    class Whole(drawing):  # type: ignore[misc, valid-type]
        def greeting(self, pod: str, node: str) -> CommandResult:
            text = super().greeting(pod, node).output
            return CommandResult(
                "shell",
                0,
                "\n".join(line.replace(":10.0", ":00.0") for line in text.splitlines() if not line.startswith("physfn"))
                + "\n",
            )

    facts, _lines = run(
        Whole(offered="2", resource="nvidia.com/igb"),
        rails=RAILS,
        **profile("host_device", resource_name="igb", select={"hcas_per_node": 2}),
    )
    assert [(pod.node, pod.rail, pod.pci, pod.error) for pod in facts.pods if pod.node == "a"] == [
        ("a", 0, "0000:01:00.0", ""),
        ("a", 1, "0000:02:00.0", ""),
    ]


@pytest.mark.parametrize(
    ("known", "error"), [("0000:01:00.0", ""), ("0000:77:00.0", "HCAs of this fabric on the node")]
)
def test_the_only_whole_function_of_a_node_is_that_of_the_fabric(known: str, error: str) -> None:
    """A node may have other NICs, which a pod can get as well."""

    class Whole(rail_probe((1, 1))):  # type: ignore[misc]
        def greeting(self, pod: str, node: str) -> CommandResult:
            text = super().greeting(pod, node).output
            lines = (line.replace(":10.0", ":00.0") for line in text.splitlines() if not line.startswith("physfn"))
            return CommandResult("shell", 0, "\n".join(lines) + "\n")

    facts, _lines = run(
        Whole(offered="1", resource="nvidia.com/igb"),
        rails={"storage": {node: {known: 0} for node in ("a", "b")}},
        **profile("host_device", resource_name="igb"),
    )
    assert len(facts.pods) == 2
    assert all(bool(pod.error) is bool(error) and error in pod.error for pod in facts.pods), facts.pods


class Plain(Api):
    """Its pods have no RDMA device."""

    def greeting(self, pod: str, node: str) -> CommandResult:
        return CommandResult("shell", 0, "rdma []\n" + self.probe)


def test_where_pods_have_no_rdma_device_tcp_is_measured() -> None:
    api = Plain()
    facts, lines = run(api, rdma=False, pods={**FABRIC["pods"], "message_bytes": 1048576})
    assert [(pod.device, pod.interface, pod.error) for pod in facts.pods] == [(None, "net1", "")] * 2
    assert [(pair.transport, pair.average_gbps, pair.streams, pair.pings, pair.failure) for pair in facts.pairs] == [
        ("TCP", 21.5, 4, None, "")
    ] * 2
    assert "storage a -> b: TCP, 21.5000 Gb/s" in lines
    addresses = {pod.node: pod.address for pod in facts.pods}
    for tool, side, node, command in api.ran:
        other = addresses["b" if node == "a" else "a"]
        # both ends stay on the network
        assert (tool, command[command.index("-B") + 1]) == ("iperf3", addresses[node])
        assert command[:2] == ("timeout", "--kill-after=5")
        assert (other in command, "-n" in command and command[command.index("-n") + 1] == "104857600") == (
            (True, True) if side == "client" else (False, False)
        )
    assert api.pods == {}


def test_both_directions_of_tcp_at_once() -> None:
    api = Plain()
    facts, _lines = run(api, rdma=False, bandwidth={"directions": "at_once"}, pods={"seconds": 7})
    assert len(facts.pairs) == 1
    assert [command[-3:] for _tool, side, _node, command in api.ran if side == "client"] == [("-t", "7", "--bidir")]


def test_a_network_that_promises_rdma_is_never_measured_by_tcp() -> None:
    facts, _lines = run(Plain())
    assert [(pod.cause, pod.device) for pod in facts.pods] == [("no_device", None)] * 2
    assert facts.pairs == ()


@pytest.mark.parametrize(
    ("missing", "rdma", "lacks"),
    [("iperf3", False, "iperf3"), ("rping", False, ""), ("ib_write_bw", True, "ib_write_bw"), ("iperf3", True, "")],
)
def test_the_image_needs_the_tools_of_its_network(missing: str, rdma: bool, lacks: str) -> None:
    facts, _lines = run((Api if rdma else Plain)(probe=f"missing {missing}\n"), rdma=rdma)
    assert [(pod.cause, pod.error) for pod in facts.pods] == [
        ("no_tool", f"the image {parse_intent([FABRIC]).fabrics[0].pods.image} does not contain {lacks}")
        if lacks
        else ("", "")
    ] * 2


@pytest.mark.parametrize(
    ("answer", "failure"),
    [
        (
            CommandResult("", 0, '{\n"error": "unable to write to stream socket: Connection reset by peer"}'),
            "peer_gone",
        ),
        (CommandResult("", 1, '{\n"error": "unable to connect to server: No route to host"}'), "no_address"),
        (CommandResult("", 0, TCP.replace("21.5e9", "0")), "no_measurement"),
        (CommandResult("", 0, ""), "no_measurement"),
        (CommandResult("", 1, TCP), "exit_code"),
        (CommandResult("", 124, '{\n"error": "interrupt - the client has terminated"}', True), "hang"),
    ],
)
def test_iperf3_s_errors_count_also_beside_exit_code_0(answer: CommandResult, failure: str) -> None:
    facts, _lines = run(Plain(answers={("iperf3", "client"): answer}), rdma=False)
    assert [(pair.failure, pair.average_gbps) for pair in facts.pairs] == [(failure, None)] * 2


def test_a_tcp_client_that_came_too_early_is_tried_again() -> None:
    early = CommandResult("", 0, '{\n"error": "unable to connect to server: Connection refused"}')
    facts, _lines = run(Plain(answers={("iperf3", "client"): [early, early, None, None]}), rdma=False)
    assert [pair.average_gbps for pair in facts.pairs] == [21.5, 21.5]


def test_a_network_of_ipv6_addresses() -> None:
    class Six(Api):
        def create(self, definition: dict[str, typing.Any], manager: str = "") -> dict[str, typing.Any]:
            made = super().create(definition)
            annotations = made["metadata"]["annotations"]
            status = annotations["k8s.v1.cni.cncf.io/network-status"].replace("10.0.0.", "fd00::")
            annotations["k8s.v1.cni.cncf.io/network-status"] = status
            return made

    api = Six()
    facts, _lines = run(api, ipam={"type": "whereabouts", "range": "fd00::/112"})
    assert [(pair.failure, pair.average_gbps) for pair in facts.pairs] == [("", 0.034819)] * 2
    addresses = {pod.node: pod.address for pod in facts.pods}
    assert set(addresses.values()) == {"fd00::1", "fd00::2"}
    for tool, side, node, command in api.ran:
        there = addresses[node if side == "server" else "b" if node == "a" else "a"]
        if tool == "ib_write_bw":
            # both ends take the family of the server's address; perftest's own option has no value
            assert {"--ipv6", "--ipv6-addr"} <= set(command) and (command[-1] == there) == (side == "client")
        else:
            assert command[command.index("-a") + 1] == there


def test_a_perftest_that_does_not_know_ipv6_is_told() -> None:
    old = CommandResult("", 1, "ib_write_bw: unrecognized option '--ipv6-addr'\n Invalid Command or flag.\n")
    facts, _lines = run(Api(answers={("ib_write_bw", "client"): old}))
    assert [pair.failure for pair in facts.pairs] == ["no_option"] * 2


def test_the_plan_is_told_before_anything_is_started_and_kept() -> None:
    lives = []

    class Timed(Api):
        def create(self, definition: dict[str, typing.Any], manager: str = "") -> dict[str, typing.Any]:
            lives.append(definition["spec"]["activeDeadlineSeconds"])
            return super().create(definition)

    nodes = ("a", "b", "c", "d")
    facts, lines = run(Timed(nodes), nodes, bandwidth={"rounds": 2})
    assert lines[0] == "storage: 2 of 3 rounds of pairs, about 1 min, at most 72 min"
    assert lines[1] == (
        "storage: a pair that is too slow is measured again with more queue pairs, which takes about 15 s"
    )
    assert [(plan.fabric, plan.rounds, plan.all_rounds) for plan in facts.plans] == [("storage", 2, 3)]
    assert set(lives) == {14400}
    # each round is a few hours, as one pair at a time is measured
    many = tuple(f"n{number}" for number in range(6))
    lives.clear()
    facts, _lines = run(
        Timed(many), many, pods={**FABRIC["pods"], "iterations": None, "seconds": 3600, "limit_seconds": 7200}
    )
    assert (facts.plans[0].rounds, facts.plans[0].all_rounds) == (1, 5)
    assert len({frozenset((pair.client, pair.server)) for pair in facts.pairs}) == 3
    assert set(lives) == {int(facts.plans[0].most_seconds + 60)} and lives[0] > 4 * 7200


def test_a_pod_at_the_end_of_its_life_is_not_called_evicted() -> None:
    class Late(Api):
        def get(self, kind: str, namespace: str, name: str) -> dict[str, typing.Any]:
            pod = super().get(kind, namespace, name)
            return {
                **pod,
                "status": {
                    "phase": "Failed",
                    "reason": "DeadlineExceeded",
                    "message": "Pod was active on the node longer than the deadline",
                },
            }

    late = CommandResult("", 137, "")
    facts, _lines = run(Late(answers={("ib_write_bw", "client"): late}))
    assert [pair.failure for pair in facts.pairs] == ["deadline"] * 2
    assert "longer than the deadline" in facts.pairs[0].evidence


def test_fewer_streams_than_were_asked_for_are_no_measurement() -> None:
    two = CommandResult("", 0, TCP.replace("[{}, {}, {}, {}]", "[{}, {}]"))
    facts, _lines = run(Plain(answers={("iperf3", "client"): two}), rdma=False)
    assert [(pair.failure, pair.evidence) for pair in facts.pairs] == [
        ("no_measurement", "2 streams ran; 4 streams were requested")
    ] * 2
