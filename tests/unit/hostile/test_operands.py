# SPDX-License-Identifier: GPL-3.0-or-later

"""Values from outside in command lines: none is an option of a tool, and none leaves the line of its command."""

from __future__ import annotations

import ast
import inspect
import os
import pathlib
import subprocess
import sys
import typing

import pytest
import yaml

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.operand import (
    OperandError,
    one_line,
    require_operand,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.awx import BMC_ENVIRONMENT
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import Fabric
from ansible_collections.linerate.rdma.plugins.module_utils._model.measurement.reachability import PortName
from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.operators import OperatorChart
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.archive import ENVIRONMENT, LOGIN_ENVIRONMENT
from ansible_collections.linerate.rdma.plugins.module_utils._observe.infiniband import ibping, subnet
from ansible_collections.linerate.rdma.plugins.module_utils._observe.node import firmware
from ansible_collections.linerate.rdma.plugins.module_utils._observe.operators import helm
from ansible_collections.linerate.rdma.plugins.module_utils._observe.process import command
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._render.measurement import commands, counters
from ansible_collections.linerate.rdma.tests.unit.house.conftest import make_fabrics

PLUGINS = pathlib.Path(__file__).resolve().parents[3] / "plugins"
HOSTILE = (
    "-oProxyCommand=touch /tmp/x",
    "-x",
    "--",
    "10.0.0.2\ntouch /tmp/x",
    "a\0b",
    "a\rb",
    "a\x1b[2J",
    "a\x85b",
    "a\u2028b",
    "a\ud800b",
)


@pytest.mark.parametrize("value", HOSTILE)
def test_what_no_command_may_have_is_refused_by_name(value: str) -> None:
    with pytest.raises(OperandError) as refused:
        require_operand(value, "the address of worker-1")
    assert "the address of worker-1" in str(refused.value) and str(refused.value).isprintable()


@pytest.mark.parametrize("value", ["", "10.0.0.2", "fd00::2", "mlx5_0", "0-3,8", "a b", "a-b", "\u00e4"])
def test_other_values_stay_as_they_are(value: str) -> None:
    assert require_operand(value, "it") == value


def test_a_line_may_begin_with_a_dash() -> None:
    assert one_line("-C", "a word") == "-C"


# the renderers of commands in pods: a new one is here by itself


def renderers() -> list[tuple[str, typing.Callable[..., commands.Command], str]]:
    """Each public function that makes a command, with each of its parameters that is a text."""
    found: list[tuple[str, typing.Callable[..., commands.Command], str]] = []
    for module in (commands, counters):
        for name, function in inspect.getmembers(module, inspect.isfunction):
            if name.startswith("_") or function.__module__ != module.__name__:
                continue
            assert typing.get_type_hints(function)["return"] == commands.Command, f"{name} makes no command"
            found += [
                (name, function, parameter.name)
                for parameter in inspect.signature(function).parameters.values()
                if parameter.annotation == "str"
            ]
    return found


def fabric() -> Fabric:
    return parse_intent(make_fabrics()).fabrics[0]


def arguments(function: typing.Callable[..., typing.Any], hostile: str, value: str) -> dict[str, typing.Any]:
    good: dict[str, typing.Any] = {
        "Fabric": fabric(),
        "int": 1,
        "bool": False,
        "str": "good",
        "typing.Mapping[int, typing.Sequence[int]]": {1: [1]},
    }
    needed = {
        parameter.name: good.get(parameter.annotation) for parameter in inspect.signature(function).parameters.values()
    }
    return {**needed, hostile: value}


def test_the_renderers_are_found() -> None:
    assert {
        "render_shell",
        "render_host_shell",
        "render_ping_server",
        "render_ping_client",
        "write_bandwidth",
        "render_tcp_bandwidth",
        "render_read",
    } <= {name for name, _function, _parameter in renderers()}


@pytest.mark.parametrize(("name", "function", "parameter"), renderers())
def test_no_renderer_makes_an_option_or_a_line_of_a_value(
    name: str, function: typing.Callable[..., commands.Command], parameter: str
) -> None:
    assert "good" in function(**arguments(function, parameter, "good"))
    for value in HOSTILE:
        with pytest.raises(OperandError):
            function(**arguments(function, parameter, value))


# what runs a program on a node or on the controller

Call = typing.Callable[[], object]
PROGRAMS: dict[str, typing.Callable[[str], typing.Any]] = {
    "infiniband-diags": lambda value: subnet.build_arguments(PortName(value, 1)),
    "mstconfig": lambda value: firmware.query_settings(firmware.Tool("mstconfig"), value),
    "helm, reference": lambda value: helm.default_values("true", OperatorChart(value, "1", "ns", "name")),
    "helm, version": lambda value: helm.default_values("true", OperatorChart("chart", value, "ns", "name")),
    "helm, namespace": lambda value: helm.render_chart("true", OperatorChart("chart", "1", value, "name"), {}),
    "helm, release": lambda value: helm.render_chart("true", OperatorChart("chart", "1", "ns", value), {}),
    "helm, repository": lambda value: helm.render_chart("true", OperatorChart("chart", "1", "ns", "name", value), {}),
    "helm, Kubernetes": lambda value: helm.render_chart("true", OperatorChart("chart", "1", "ns", "name"), {}, value),
    "ibping": lambda value: ibping.start_servers([PortName(value, 1)], 1),
}


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("value", ["-oProxyCommand=x", "-x", "a\nb"])
def test_no_program_gets_a_value_as_an_option(program: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "require_tool", lambda tool, _package: tool)
    monkeypatch.setattr(subprocess, "Popen", lambda argv, **_more: pytest.fail(f"it ran: {argv}"))
    with pytest.raises(OperandError):
        PROGRAMS[program](value)


#: functions whose argument is a command line
RUNS = (
    "run",
    "_run",
    "Popen",
    "_limit_command",
    "_read_helm_documents",
    "_run_helm",
    "_run_in_container",
    "_run_port_query",
    "_run_tool",
)
#: words of command lines that are no constants, by file: none of them is a value from outside that may begin with a
#: dash
WORDS: dict[str, dict[str, str]] = {
    "_observe/node/firmware.py": {
        "path": "a program of the PATH, or a file that was made here",
        "tool.path": "a program of the PATH",
        "*asked": "made from parts that are looked at where it is made",
    },
    "_observe/operators/helm.py": {
        "path": "a program of the PATH, or a path",
        "file": "made here",
        "*argv": "made from parts that are looked at where it is made",
        "*of_chart": "parts of a Chart, which is looked at when it is made",
        "chart.release": "of a Chart",
        "chart.reference": "of a Chart",
        "chart.namespace": "of a Chart",
        "chart.version": "of a Chart",
        "chart.repository": "of a Chart",
    },
    "_observe/process/folder_lock.py": {
        "sys.executable": "the program that runs Ansible",
        "_KEEPER": "a constant",
    },
    "_observe/infiniband/ibping.py": {"tool": "a program of the PATH", "guard": "a program of the PATH"},
    "_observe/infiniband/subnet.py": {
        "walked": "a file that was made here",
        "*options": "constants",
        "*more": "a number, or constants",
        "os.devnull": "a constant",
    },
    "_observe/node/tuning/gpu.py": {"*program": "a program of the PATH or of the node, with a constant"},
    "_observe/node/tuning/network.py": {"tool": "a program of the PATH", "what": "one of two constants"},
    "_run/node_changes/set_firmware.py": {
        "tool.path": "a program of the PATH",
        "*wishes": "each of them is looked at where it is made",
    },
    "_run/node_changes/set_kernel_arguments.py": {"self._tool": "a program of the PATH"},
    "_render/measurement/collectives.py": {
        "script": "one of our own",
        "f'{LOG_FOLDER}/{object_name(run.name)}'": "a constant and a name of Kubernetes",
        "escape_script(script)": "one of our own",
        "name": "a constant",
        "*_count_iterations(run)": "constants, and a number",
        "*words": "a program of the test that is looked at, numbers and options",
        "agent_path(run)": "a constant and a name of Kubernetes",
        "named": "hosts, each of which is looked at where the list is made",
        "*asks": "constants, and the same",
        "*places": "constants, and the same hosts",
        "f'{name}={value}'": (
            "NCCL's own variables behind -x; their values are numbers, constants and a name of Kubernetes"
        ),
    },
    "_render/measurement/mpirun_agent.py": {
        "script": "one of our own",
        "_DAEMON_SCRIPT": "a constant",
        "limit": "a number",
        "agent_path(run)": "a constant and a name of Kubernetes",
        "f'{agent_path(run)}.{number}.done'": "the same, and a number",
        "AGENT_FOLDER": "a constant",
        "escape_script(AGENT_SCRIPT)": "a constant",
    },
    "_render/measurement/hca_counters.py": {
        "script": "one of our own",
        "*(require_operand(device, 'an RDMA device') for device in devices)": "devices, each of which is looked at",
    },
    "_render/measurement/commands.py": {
        "*command": "made from parts that are looked at where it is made",
        "*amount": "numbers",
        "*both": "a constant",
        "_SHELL": "a constant",
        "f'{_HOST}{_SHELL}'": "constants",
    },
    "_render/measurement/counters.py": {"*nodes": "numbers", "_READ": "a constant"},
    "_render/job/job_start.py": {
        "*command": "of the user's own job, behind a script",
        "script.lstrip()": "a script that is made here",
        "_ADDRESSES.format(metric=METRIC, map=f'{MAP_FOLDER}/{KEY}').lstrip()": "a constant",
    },
}


def command_lines(tree: ast.AST) -> typing.Iterator[typing.Union[ast.List, ast.Tuple]]:
    """Lists and tuples that are handed to what runs a program, or that have an option in them."""
    for item in ast.walk(tree):
        if isinstance(item, ast.Call):
            name = (
                item.func.attr
                if isinstance(item.func, ast.Attribute)
                else item.func.id
                if isinstance(item.func, ast.Name)
                else ""
            )
            yield from (part for part in item.args if name in RUNS and isinstance(part, (ast.List, ast.Tuple)))
        if isinstance(item, (ast.List, ast.Tuple)) and any(
            isinstance(part, ast.Constant) and str(part.value).startswith("-") for part in item.elts
        ):
            yield item


def doubtful(word: ast.expr) -> typing.Iterator[str]:
    """What of a word of a command line is neither constant, nor a number, nor looked at by ``require_operand``."""
    if isinstance(word, ast.Starred) and isinstance(word.value, ast.IfExp):
        yield from (name for branch in (word.value.body, word.value.orelse) for name in doubtful(ast.Starred(branch)))
    elif isinstance(word, ast.Starred) and isinstance(word.value, (ast.List, ast.Tuple)):
        yield from (name for part in word.value.elts for name in doubtful(part))
    elif (
        (isinstance(word, ast.Call) and ast.unparse(word.func) in ("require_operand", "str", "command.require_tool"))
        or (
            isinstance(word, ast.Starred)
            and isinstance(word.value, ast.Call)
            and ast.unparse(word.value.func) == "build_arguments"
        )
        or (isinstance(word, ast.JoinedStr) and isinstance(word.values[0], ast.Constant))
    ):
        return
    elif not isinstance(word, ast.Constant):
        yield ast.unparse(word)


def test_each_word_of_each_command_line_is_looked_at() -> None:
    seen: dict[str, set[str]] = {}
    for folder in ("_observe", "_run", "_render", "_store"):
        for path in (PLUGINS / "module_utils" / folder).rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            if any(
                word in text for word in ("command.run(", "subprocess.", "command import", "Command = ", "-> Command:")
            ):
                words = {
                    name for line in command_lines(ast.parse(text)) for word in line.elts for name in doubtful(word)
                }
                seen[str(path.relative_to(PLUGINS / "module_utils"))] = words
    assert {name: words for name, words in seen.items() if words} == {name: set(words) for name, words in WORDS.items()}


# the environment


def test_programs_get_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    secret = (
        "RDMA_BMC_PASSWORD",
        "RDMA_REPORT_ARCHIVE_TOKEN",
        "K8S_AUTH_API_KEY",
        "K8S_AUTH_PASSWORD",
        "CONTROLLER_OAUTH_TOKEN",
        "TOWER_PASSWORD",
        "HELM_KUBETOKEN",
    )
    for name in (*secret, "GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "HELM_REGISTRY_CONFIG", "SIM_HOST", "HTTPS_PROXY"):
        monkeypatch.setenv(name, f"value-of-{name}")
    told = command.run([sys.executable, "-c", "import os; print(*sorted(os.environ))"], 20).stdout.split()
    assert {"SIM_HOST", "HTTPS_PROXY", "HELM_REGISTRY_CONFIG", "PATH"} <= set(told)
    assert {*secret, "GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY"}.isdisjoint(told)


def test_helm_gets_what_a_registry_needs_and_nothing_of_ours(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    binary = tmp_path / "helm"
    binary.write_text('#!/bin/sh\nenv | cut -d= -f1 | sed "s/.*/- &/"\n')
    binary.chmod(0o755)
    for name in ("RDMA_BMC_PASSWORD", "K8S_AUTH_API_KEY", "AWS_SECRET_ACCESS_KEY", "DOCKER_AUTH_CONFIG"):
        monkeypatch.setenv(name, "x")
    seen: list[str] = []

    def read(text: str) -> list[typing.Any]:
        seen.append(text)
        return []

    monkeypatch.setattr(helm, "read_documents", read)
    helm.default_values(str(binary), OperatorChart("chart", "1", "ns", "name"))
    told = seen[0].split()
    assert {"AWS_SECRET_ACCESS_KEY", "DOCKER_AUTH_CONFIG", "HOME" if "HOME" in os.environ else "PATH"} <= set(told)
    assert {"RDMA_BMC_PASSWORD", "K8S_AUTH_API_KEY"}.isdisjoint(told)


def test_helm_of_the_role_gets_no_secrets_of_ours() -> None:
    role = PLUGINS.parent / "roles" / "operators"
    files = (role / "tasks" / name for name in ("release.yml", "release_look.yml"))
    tasks = [task for file in files for task in yaml.safe_load(file.read_text(encoding="utf-8"))]
    running = [
        task
        for task in tasks
        if {"ansible.builtin.command", "kubernetes.core.helm", "linerate.rdma.on_node"} & set(task)
    ]
    assert len(running) == 3 and {task.get("environment") for task in running} == {"{{ operators_helm_environment }}"}
    emptied = yaml.safe_load((role / "vars" / "main.yml").read_text(encoding="utf-8"))["operators_helm_environment"]
    secrets = {*BMC_ENVIRONMENT.values(), ENVIRONMENT, *LOGIN_ENVIRONMENT.values()}
    # what leads Helm to another cluster is held in test_helm.py
    assert {name for name in emptied if not name.startswith("HELM_KUBE")} == secrets and set(emptied.values()) == {""}


def test_an_error_of_a_value_is_one_of_ours() -> None:
    assert issubclass(OperandError, RdmaError)
