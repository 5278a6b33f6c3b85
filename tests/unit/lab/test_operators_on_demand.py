# SPDX-License-Identifier: GPL-3.0-or-later

"""Operators that run as processes, on demand: built only then, with their own labels and annotations gone when they are
taken back."""

from __future__ import annotations

import pathlib
import types
import typing

import pytest

from dev.steps import ROOT, StepError
from lab import machine_config, nvidia_operator, objects
from lab.build import debian, disk, gotools, ibsim
from lab.description import read
from lab.planes import Lab

ON_DEMAND = (*nvidia_operator.TOOLS, *machine_config.TOOLS)


def test_they_are_compiled_only_when_they_are_asked_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    built: list[str] = []
    monkeypatch.setattr(gotools, "binary", built.append)
    monkeypatch.setattr(gotools, "module_folder", lambda *_module: pathlib.Path())
    monkeypatch.setattr(gotools, "check_go", lambda: None)
    monkeypatch.setattr(debian, "install_host_packages", lambda: None)
    monkeypatch.setattr(disk, "build_roots", lambda _kinds: None)
    monkeypatch.setattr(ibsim, "programs", lambda: types.SimpleNamespace(umad2sim=None))
    monkeypatch.setattr(disk, "disk", lambda *_what: pathlib.Path())
    Lab(read(), tmp_path / "lab").build()
    assert "etcd" in built and not set(ON_DEMAND) & set(built)


@pytest.mark.parametrize("name", ON_DEMAND)
def test_each_is_pinned(name: str) -> None:
    tool = gotools.TOOL[name]
    pins = (ROOT / "lab/go" / tool.module / "go.mod").read_text()
    assert f"tool {tool.package}\n" in pins and (ROOT / "lab/go" / tool.module / "go.sum").exists()


@pytest.mark.parametrize(
    ("name", "output"),
    [
        ("etcd", "server"),
        ("kubelet", "kubelet"),
        ("whereabouts", "cmd"),
        ("sriov-network-webhook", "webhook"),
        ("training-operator", "training-operator.v1"),
    ],
)
def test_what_go_calls_a_binary(name: str, output: str) -> None:
    assert gotools.TOOL[name].output == output


def test_no_binary_takes_the_place_of_another() -> None:
    """What is compiled at once lies in one folder, by Go's name at first."""
    for module in {tool.module for tool in gotools.TOOL.values()}:
        tools = {name: tool.output for name, tool in gotools.TOOL.items() if tool.module == module}
        assert len(set(tools.values())) == len(tools)
        assert not any(name in tools.values() and tools[name] != name for name in tools)


class Nodes:
    """Nodes as an API server has them; keeps what is changed."""

    def __init__(self, *nodes: dict[str, typing.Any]) -> None:
        self.nodes = nodes
        self.patched: dict[str, typing.Any] = {}

    def get(self) -> typing.Any:
        return types.SimpleNamespace(to_dict=lambda: {"items": list(self.nodes)})

    def patch(self, name: str, body: typing.Any, content_type: str) -> None:
        assert content_type == "application/merge-patch+json"
        self.patched[name] = body


def node(name: str, **metadata: typing.Any) -> dict[str, typing.Any]:
    taints = [
        {"key": key, "effect": "NoSchedule"}
        for key in ("UpdateInProgress", "node.kubernetes.io/unschedulable", "site/own")
    ]
    return {"metadata": {"name": name, **metadata}, "spec": {"taints": taints, "unschedulable": True}}


def test_what_the_machine_config_controller_said_of_nodes_is_forgotten_and_no_more() -> None:
    told = {"machineconfiguration.openshift.io/state": "Working", "site/own": "yes"}
    nodes = Nodes(node("worker-1", annotations=told), node("stranger", annotations={"site/own": "yes"}), node("bare"))
    machine_config.forget(types.SimpleNamespace(resources=types.SimpleNamespace(get=lambda **_kind: nodes)))
    assert nodes.patched == {
        "worker-1": {
            "metadata": {"annotations": {"machineconfiguration.openshift.io/state": None}},
            "spec": {"taints": [{"key": "site/own", "effect": "NoSchedule"}], "unschedulable": None},
        }
    }


def test_labels_of_nvidia_s_operator_go_and_no_others() -> None:
    nodes = Nodes(
        node("worker-1", labels={"network.nvidia.com/operator.mofed.wait": "false", "site/own": "yes"}), node("bare")
    )
    nvidia_operator.forget(types.SimpleNamespace(resources=types.SimpleNamespace(get=lambda **_kind: nodes)))
    assert nodes.patched == {"worker-1": {"metadata": {"labels": {"network.nvidia.com/operator.mofed.wait": None}}}}


def test_one_that_ends_at_its_start_is_told_with_its_last_words(monkeypatch: pytest.MonkeyPatch) -> None:
    class Processes:
        logs = pathlib.Path("/logs")

        def start(self, *_what: typing.Any) -> None: ...

        def check(self, name: str) -> None:
            raise StepError(f"{name} has ended; its last output:\nno such kind", "see its log")

    monkeypatch.setattr(nvidia_operator, "_definitions", list)
    monkeypatch.setattr(nvidia_operator, "sources", pathlib.Path)
    monkeypatch.setattr(gotools, "binary", pathlib.Path)
    for name in ("apply", "client"):
        monkeypatch.setattr(objects, name, lambda *_what: None)
    authority = types.SimpleNamespace(path=pathlib.Path)
    with pytest.raises(StepError, match="no such kind"):
        nvidia_operator.start(typing.cast(typing.Any, authority), typing.cast(typing.Any, Processes()))
