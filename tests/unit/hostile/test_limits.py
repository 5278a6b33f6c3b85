# SPDX-License-Identifier: GPL-3.0-or-later

"""What a node, a pod, an API, a BMC or a tool says costs the controller little, and is at worst the error of that
one."""

from __future__ import annotations

import contextlib
import json
import math
import pathlib
import threading
import time
import tracemalloc
import types
import typing

import hypothesis
import hypothesis.strategies as some
import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.schedule.measurements import Task
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import ParseError, RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import Fabric
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.objects import Container
from ansible_collections.linerate.rdma.plugins.module_utils._model.measurement.bandwidth import RdmaPod
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes import answers, yaml_documents
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.errors import ApiError
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.exec.channels import Channels
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.exec.pod_exec import on_many
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.shell import Shell
from ansible_collections.linerate.rdma.plugins.module_utils._observe.process import many
from ansible_collections.linerate.rdma.plugins.module_utils._observe.redfish.bmc import Bmc, BmcError
from ansible_collections.linerate.rdma.plugins.module_utils._parse.limits import MIB, decode_answer, decode_json
from ansible_collections.linerate.rdma.plugins.module_utils._parse.pods import shell as shell_stream
from ansible_collections.linerate.rdma.plugins.module_utils._parse.pods.framing import STDERR, STDOUT, Exchange
from ansible_collections.linerate.rdma.plugins.module_utils._parse.pods.observer_reply import parse_replies
from ansible_collections.linerate.rdma.plugins.module_utils._run.measurement.measure_pair import PairMeasurement
from ansible_collections.linerate.rdma.plugins.module_utils._store.facts import FactFolder
from ansible_collections.linerate.rdma.tests.unit.limit import bounded


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("[" * 600 + "]" * 600, "nesting of lists and mappings"),
        ("[" * 100_000, "nesting of lists and mappings"),
        ('{"a":' * 600 + "1" + "}" * 600, "nesting of lists and mappings"),
        ('{"rate": 1.0, "rate": 390}', "rate"),
        ('[{"a": {"b": 1, "b": 1}}]', "b"),
        ("[NaN]", "NaN"),
        ("-Infinity", "-Infinity"),
        ("[1e400]", "1e400"),
        ("1" * 5000, "1" * 200),
        ('"\\ud800"', "surrogate"),
        ('["\ud800"]', "surrogate"),
        (b'"\xff"', "0xff"),
        ("", "''"),
        ("{", "{"),
        ("[1] [2]", "[1] [2]"),
        (" " * (4 * MIB + 1), f"{4 * MIB + 1} bytes"),
        ("[" + "{}," * MIB + "{}]", "values"),
    ],
    ids=lambda value: repr(value[:12]),
)
def test_json_that_is_not_taken(text: typing.Union[str, bytes], seen: str) -> None:
    with pytest.raises(ParseError) as refused:
        decode_json(text, "ip -j link")
    assert str(refused.value).startswith("ip -j link: ")
    assert seen in str(refused.value)
    assert len(str(refused.value)) < 500


def test_json_that_is_taken() -> None:
    text = '{"a": [1, -2.5, 1e3, true, null, "\\ud83d\\ude00\\u00e4"], "b": {"a": {"a": 18446744073709551615}}, "": []}'
    expected = {"a": [1, -2.5, 1000.0, True, None, "\U0001f600ä"], "b": {"a": {"a": 2**64 - 1}}, "": []}
    assert decode_json(text, "a file") == decode_json(text.encode(), "a file") == expected
    assert decode_json("[[[]]]", "a file", most_depth=3) == [[[]]]
    assert decode_json("[[[1]]]", "a file", most_depth=3) == [[[1]]]
    assert math.isclose(decode_json("0.1", "a file"), 0.1)
    with pytest.raises(ParseError, match="at most 2 levels"):
        decode_json("[[[]]]", "a file", most_depth=2)


def deep(levels: int) -> typing.Any:
    made: typing.Any = []
    for _level in range(levels):
        made = [made]
    return made


def test_a_fact_that_is_nested_too_deep_is_an_error_of_its_node(tmp_path: pathlib.Path) -> None:
    folder = FactFolder(str(tmp_path), "run-1")
    folder.write("hcas", "worker-1", deep(5000))
    folder.write("hcas", "worker-2", {"hcas": []})
    sick, sound = folder.of_nodes("hcas", ["worker-1", "worker-2"]).values()
    assert sick["value"] is None and "RecursionError" in sick["error"]
    assert sound == {"value": {"hcas": []}, "error": None}


def of(name: str) -> Container:
    return Container("observers", name, "")


def test_an_exception_that_nobody_foresaw_is_the_error_of_one_pod() -> None:
    def work(container: Container, _over: threading.Event) -> str:
        if container == of("sick"):
            raise OverflowError("int too large")
        return container.pod

    found = dict(on_many(work, [of("sick"), of("a"), of("b")], 2))
    assert (found[of("a")], found[of("b")]) == ("a", "b")
    sick = found[of("sick")]
    assert isinstance(sick, RdmaError)
    assert (
        "sick" in sick.seen
        and "OverflowError ('int too large') in test_limits.py, line" in sick.seen
        and "report this" in sick.remedy
    )


def test_an_exception_that_nobody_foresaw_is_the_error_of_one_bmc() -> None:
    def work(bmc: Bmc) -> str:
        if bmc.node == "worker-1":
            raise RecursionError(bmc.password)
        return bmc.node

    bmcs = [Bmc("worker-1", "192.0.2.1", password="hunter2"), Bmc("worker-2", "192.0.2.2")]
    found = {bmc.node: outcome for bmc, outcome in many.iterate_outcomes(work, bmcs, 2, BmcError, Bmc.unforeseen)}
    sick = found["worker-1"]
    assert found["worker-2"] == "worker-2"
    assert isinstance(sick, BmcError) and sick.cause == "not_understood"
    assert "the BMC of worker-1" in str(sick) and "RecursionError" in str(sick) and "hunter2" not in str(sick)


class Answers(Channels):
    """Channels of a pod that prints what it is given, piece by piece."""

    def __init__(self, *pieces: bytes) -> None:
        self._pieces = list(pieces)
        self.open, self.lost, self.closed = True, "", False

    def update(self, seconds: float) -> None:
        self.open = self.open and bool(self._pieces)

    def take(self, channel: int) -> bytes:
        return self._pieces.pop(0) if channel == STDOUT and self._pieces else b""

    def write(self, data: bytes) -> None:
        pass

    def close(self) -> None:
        self.open, self.closed = False, True


def test_a_flood_in_the_shell_of_a_pod_costs_little_and_ends_with_its_connection() -> None:
    channels = Answers(b"\n@linerate 0 0\n", *([b"x" * 16384] * 8192))
    shell = Shell(channels, time.monotonic)
    assert shell.wait(60).exit_code == 0
    shell.start(["ib_write_bw"])
    with bounded(5):
        assert not shell.wait_for("never", 60)
        result = shell.wait(60)
    assert (
        channels.closed
        and result.exit_code is None
        and not result.timed_out
        and "more than 4194304 bytes" in result.error
    )
    assert len(result.output) == shell_stream.MOST_BYTES


def test_a_stream_in_small_pieces_costs_no_square_of_its_length() -> None:
    stream = shell_stream.Stream("t0k")
    with bounded(5):
        for number in range(60_000):
            stream.feed(b"\n@linerate 1-t0k 0\n" if number % 2 else b"@linerate 0 " * 3)
    assert stream.exit_code is None and stream.size == 30_000 * (19 + 36)


def test_what_comes_behind_the_end_of_a_command_is_looked_at_once() -> None:
    exchange = Exchange("token")
    with bounded(0.4):
        exchange.feed(STDOUT, b"@linerate-begin\n\n@linerate-end token 0\n")
        exchange.feed(STDERR, b"\n@linerate-end token 0\n")
        for _number in range(3000):
            exchange.feed(STDOUT, b"\n@linerate-heard toke" * 200)
    assert exchange.answer is None and exchange.size > 12_000_000
    exchange.feed(STDOUT, b"\n@linerate-heard token\n")
    assert exchange.answer is not None and exchange.answer.stdout == b""


def test_the_answer_of_a_look_costs_16_mib_and_a_second_at_most() -> None:
    text = '{"hcas": {"value": [' + "{}," * (50 * MIB // 3) + "{}]}}"
    tracemalloc.start()
    try:
        with bounded(5):
            for answer in (text, text[: 3 * MIB], '{"hcas": {"value": [' + "{}," * 200_000 + "{}]}}"):
                with contextlib.suppress(ParseError):
                    parse_replies(answer, ["hcas"])
        assert tracemalloc.get_traced_memory()[1] < 24 * MIB
    finally:
        tracemalloc.stop()
    with pytest.raises(ParseError, match="at most 4194304 bytes"):
        parse_replies(text, ["hcas"])
    with pytest.raises(ParseError, match="at most 64 levels"):
        parse_replies('{"hcas": {"value": ' + "[" * 600 + "]" * 600 + "}}", ["hcas"])


class Body:
    """An answer of the API server that streams."""

    def __init__(self, *chunks: bytes) -> None:
        self.chunks = chunks

    def stream(self, amt: typing.Optional[int], decode_content: bool) -> typing.Iterator[bytes]:
        assert amt is None and not decode_content
        return iter(self.chunks)


class Server:
    """An API server that answers the same to whatever it is asked."""

    def __init__(self, *chunks: bytes) -> None:
        self.chunks = chunks
        self.taken = 0
        self.closed = False
        self.status, self.headers = 200, {"Date": "now"}

    def request(self, _method: str, _path: str, **_options: typing.Any) -> Server:
        return self

    def stream(self, amt: typing.Optional[int] = None, decode_content: bool = True) -> typing.Iterator[bytes]:
        for chunk in self.chunks:
            self.taken += 1
            yield chunk

    def close(self) -> None:
        self.closed = True


ASKED: typing.Mapping[str, typing.Callable[[Cluster], typing.Any]] = {
    "get": lambda cluster: cluster.get("Node", "", "worker-1"),
    "dated": lambda cluster: cluster.dated("Node", "", "worker-1"),
    "patch": lambda cluster: cluster.patch("Node", "", "worker-1", {}),
    "apply": lambda cluster: cluster.apply({"kind": "Pod", "metadata": {"name": "p", "namespace": "x"}}, "m", False),
    "create": lambda cluster: cluster.create({"kind": "Pod", "metadata": {"namespace": "x"}}),
}


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize(
    ("chunks", "seen"),
    [
        ([b" " * MIB] * 64, "more than 8388608 bytes"),
        ([b'{"status":[' + b"{}," * (2 * MIB) + b"{}]}"], "of more values"),
        ([b'{"a": NaN}'], "NaN"),
        ([b'{"a": \xff}'], "0xff"),
        ([b'{"a": 1'], "is not JSON"),
    ],
    ids=["size", "values", "NaN", "UTF-8", "cut"],
)
def test_an_object_of_the_api_server_costs_little_and_is_its_own_error(
    asked: str, chunks: list[bytes], seen: str
) -> None:
    server = Server(*chunks)
    with bounded(1), pytest.raises(ApiError, match=seen):
        ASKED[asked](Cluster(server))
    assert server.taken < 10


def test_an_object_that_is_nested_too_deep_costs_a_list_nothing_but_what_is_below() -> None:
    sound = {"metadata": {"name": "worker-2", "annotations": {"a": '[{"]"\\'}}}
    sick = b'{"metadata":{"name":"worker-1","managedFields":' + b'{"f:a":' * 5000 + b"{}" + b"}" * 5000 + b"}}"
    server = Server(b'{"metadata":{"resourceVersion":"1"},"items":[' + sick + b"," + json.dumps(sound).encode() + b"]}")
    first, second = Cluster(server).list("Node").items
    assert first["metadata"]["name"] == "worker-1" and len(json.dumps(first)) < 1000
    assert second == {"kind": "Node", **sound}
    event = Server(b'{"type":"MODIFIED","object":' + sick + b'}\n{"type":"ADDED","object":{}}\n')
    assert [event["type"] for event in Cluster(event).watch("Node", "1")] == ["MODIFIED", "ADDED"]


def test_what_lies_below_the_last_level_is_null_and_all_else_stays() -> None:
    text = b'[1, {"a": [{"b": "]]]}"}, 2], "c": "[[["}, [[[]], []], "\\"[{\\\\", 3]'
    assert decode_answer(text, "a list", most_depth=2) == [1, {"a": None, "c": "[[["}, [None, None], '"[{\\', 3]
    assert decode_answer(text, "a list", most_depth=3) == [1, {"a": [None, 2], "c": "[[["}, [[None], []], '"[{\\', 3]
    assert decode_answer(text, "a list", most_depth=4) == decode_answer(text, "a list") == json.loads(text)


@hypothesis.given(
    some.recursive(
        some.none() | some.text(alphabet='[]{}"\\,a\u00e4'),
        lambda inner: some.lists(inner) | some.dictionaries(some.text('[{"\\'), inner),
    )
)
def test_an_answer_that_is_not_deep_is_taken_as_it_is(data: typing.Any) -> None:
    assert decode_answer(json.dumps(data).encode(), "an answer") == data


@pytest.mark.parametrize(
    "text",
    [
        "- " * 16_000,
        "[" * 16_000,
        "[[], " * 6_000,
        "a: &a [x, x]\nb: &b [*a, *a]\n",
        "x" * 100_000,
        "a: 0x_",
        "a: !!int x",
    ],
    ids=lambda text: text[:4],
)
def test_yaml_of_the_cluster_that_costs_much_is_an_error(text: str) -> None:
    with bounded(4), pytest.raises(RdmaError, match="YAML"):
        yaml_documents.read_yaml(text)


def test_the_lines_of_a_watch_have_an_end() -> None:
    assert list(answers.read_lines(Body(b'{"a', b'": 1}\n\n{"b": 2}\n{"c"', b": 3}\n", b"left"), "WATCH")) == [
        b'{"a": 1}',
        b'{"b": 2}',
        b'{"c": 3}',
    ]
    with bounded(1), pytest.raises(ApiError, match="too large") as refused:
        list(answers.read_lines(Body(*([b"x" * 256] * 40_000)), "WATCH"))
    # a version that is too old has the list read again, without what is too large
    assert refused.value.status == 410


def test_a_text_without_an_end_is_cut_and_says_so(tmp_path: pathlib.Path) -> None:
    folder = FactFolder(str(tmp_path), "run-1")
    folder.write("hcas", "worker-1", {"model": "x" * 1_000_000, "list": ["y" * 65_536, "z" * 65_537, 7]})
    folder.write("hcas", "worker-2", error="failed: " + "w" * 100_000)
    folder.write("network_objects", value={"config": "c" * 200_000})
    first, second = folder.of_nodes("hcas", ["worker-1", "worker-2"]).values()
    assert first["value"]["model"] == "x" * 65_536 + "... (1000000 characters)"
    assert first["value"]["list"] == ["y" * 65_536, "z" * 65_536 + "... (65537 characters)", 7]
    assert second["error"].endswith("... (100008 characters)") and len(second["error"]) < 8300
    # what is applied to the cluster is never cut
    assert folder.value("network_objects") == {"config": "c" * 200_000}


def test_a_pair_whose_ends_print_what_nobody_foresaw_is_one_failed_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    def attempt(*_arguments: typing.Any) -> typing.NoReturn:
        raise RecursionError("maximum recursion depth exceeded")

    monkeypatch.setattr(PairMeasurement, "_attempt_pair", attempt)
    client, server = (RdmaPod("fabric", node, node, "jobs") for node in ("worker-1", "worker-2"))
    fabric = typing.cast(Fabric, types.SimpleNamespace(name="fabric"))
    measurement = PairMeasurement(typing.cast("typing.Any", None), time.monotonic, lambda _line: None)
    pair = measurement._guard_attempt(fabric, Task.between((0, "worker-1"), (0, "worker-2")), client, server, 0, 0.0)
    assert pair.failure == "no_measurement" and pair.average_gbps is None
    assert pair.evidence.startswith("worker-1 -> worker-2: its output could not be processed: RecursionError")
