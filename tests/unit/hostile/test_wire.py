# SPDX-License-Identifier: GPL-3.0-or-later

"""The line protocol of the shells in pods under a real sh: one command stays one command, whatever a word of it
holds."""

from __future__ import annotations

import json
import pathlib
import time
import typing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.operand import OperandError
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.objects import CommandResult
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.exec.channels import Channels
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.kinds import path_of
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.shell import Shell
from ansible_collections.linerate.rdma.plugins.module_utils._render.measurement import commands
from ansible_collections.linerate.rdma.tests.unit.examples import examples
from ansible_collections.linerate.rdma.tests.unit.parse.test_pod_shell import Pipe
from ansible_collections.linerate.rdma.tests.unit.run import test_pairs


class Wire:
    """Channels that keep what is written."""

    open, lost = True, ""

    def __init__(self) -> None:
        self.sent = b""

    def write(self, data: bytes) -> None:
        self.sent += data


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\n\n", "'\n"])
def test_a_newline_in_a_word_is_no_second_command(ends: str, tmp_path: pathlib.Path) -> None:
    mark = tmp_path / "mark"
    pipe = Pipe(*commands.render_shell())
    shell = Shell(typing.cast(Channels, pipe), time.monotonic)
    shell.wait(30)
    try:
        with pytest.raises(OperandError, match=r"U\+000"):
            shell.start(("echo", f"10.0.0.2{ends}9 touch {mark}{ends}10 true"))
        # it takes further commands, and none of the refused one has begun
        shell.start(("echo", "on"))
        assert shell.wait(30).output == "on\n"
    finally:
        pipe.close()
        assert pipe.process.wait(20) is not None
        typing.cast(typing.IO[bytes], pipe.process.stdout).close()
    assert not mark.exists()


@settings(max_examples=examples(200))
@given(st.lists(st.text(st.characters(codec=None), min_size=1), min_size=1, max_size=4))
def test_each_command_is_one_line_or_refused(words: list[str]) -> None:
    wire = Wire()
    shell = Shell(typing.cast(Channels, wire), time.monotonic, "t0k")
    try:
        shell.start(words)
    except OperandError:
        assert wire.sent == b""
        return
    assert len(wire.sent.decode().splitlines()) == 1 and wire.sent.startswith(b"1-t0k ") and wire.sent.endswith(b"\n")


@pytest.mark.parametrize(
    "name", ["../nodes/worker-2", "a/b", "..", ".", "a?force=true", "a#b", "a%2fb", "a b", "a\nb", "a\0b"]
)
def test_a_name_stays_a_part_of_its_path(name: str) -> None:
    with pytest.raises(OperandError):
        path_of("Pod", "default", name)
    with pytest.raises(OperandError):
        path_of("Pod", name, "pod")


def test_names_of_kubernetes_are_parts_of_paths() -> None:
    assert path_of("Pod", "default", "a.b-1") == "/api/v1/namespaces/default/pods/a.b-1"
    assert path_of("Node", "", "system:node@x") == "/api/v1/nodes/system:node@x"


class OneHostile(test_pairs.Api):
    """An API server whose pod on node b tells a hostile text: as its address, or as its RDMA device."""

    def __init__(self, address: str = "", device: str = "") -> None:
        super().__init__(nodes=("a", "b", "c"))
        self.hostile_address, self.hostile_device = address, device

    def create(self, definition: dict[str, typing.Any], manager: str = "") -> dict[str, typing.Any]:
        pod = super().create(definition)
        annotations = pod["metadata"]["annotations"]
        if self.hostile_address and pod["node"] == "b":
            status = [{"name": "test/net", "interface": "net1", "ips": [self.hostile_address]}]
            annotations["k8s.v1.cni.cncf.io/network-status"] = json.dumps(status)
        return pod

    def greeting(self, pod: str, node: str) -> CommandResult:
        if node != "b" or not self.hostile_device:
            return super().greeting(pod, node)
        return CommandResult("shell", 0, f"rdma {json.dumps([{'ifname': self.hostile_device, 'netdev': 'net1'}])}\n")


@pytest.mark.parametrize(
    "api",
    [
        lambda: OneHostile(address="10.0.0.2\n9 touch /tmp/x"),
        lambda: OneHostile(address="-oProxyCommand=x"),
        lambda: OneHostile(device="siw0\n9 touch /tmp/x"),
        lambda: OneHostile(device="--use_hugepages"),
    ],
)
def test_a_hostile_pod_is_refused_and_the_others_are_measured(api: typing.Callable[[], OneHostile]) -> None:
    server = api()
    facts, _lines = test_pairs.run(server, ("a", "b", "c"))
    assert [(pod.node, bool(pod.error)) for pod in sorted(facts.pods, key=lambda pod: pod.node)] == [
        ("a", False),
        ("b", True),
        ("c", False),
    ]
    assert {(pair.client, pair.server) for pair in facts.pairs if pair.average_gbps} == {("a", "c"), ("c", "a")}
    words = [word for _tool, _end, _node, command in server.ran for word in command]
    assert not [word for word in words if "touch" in word or "Proxy" in word or "hugepages" in word]
