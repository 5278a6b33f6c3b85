# SPDX-License-Identifier: GPL-3.0-or-later

"""The workers' wrapper for the diagnostics: which HCA it takes, and that it leaves the rest to the tool."""

from __future__ import annotations

import os
import pathlib
import subprocess

import pytest

from lab.fabric import guest
from lab.fabric.model import Fabrics
from lab.fabric.topology import Topology

SHOW = """#!/bin/sh
echo "$SIM_CA_NAME|$SIM_HOST|$IBSIM_SERVER_NAME:$IBSIM_SERVER_PORT|$*"
exit "${SHOW_RC:-0}"
"""


@pytest.fixture
def worker(tmp_path: pathlib.Path, fabrics: Fabrics, topologies: dict[str, Topology]) -> pathlib.Path:
    """A worker's root with the wrapper, its map, and tools that say how they were called."""
    library = tmp_path / "built.so"
    library.write_bytes(b"library")
    guest.install(tmp_path, library)
    (tmp_path / guest.HCAS).parent.mkdir(parents=True)
    (tmp_path / guest.HCAS).write_text(guest.hca_map(fabrics, topologies, "worker-1"))
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in guest.TOOLS:
        (tools / name).write_text(SHOW)
        (tools / name).chmod(0o755)
    return tmp_path


def call(worker: pathlib.Path, tool: str, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    settings = {
        "LAB_HCAS": str(worker / guest.HCAS),
        "LAB_TOOLS": f"{worker / 'tools'}:/usr/bin:/bin",
        "LAB_LIBRARY": "",
        **env,
    }
    return subprocess.run(
        [str(worker / "usr/local/sbin" / tool), *arguments],
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        check=False,
        timeout=20,
    )


def chosen(worker: pathlib.Path, tool: str, *arguments: str) -> tuple[str, str]:
    """Device and the arguments of the tool."""
    fields = call(worker, tool, *arguments).stdout.rstrip("\n").split("|")
    return fields[0], fields[-1]


def test_install_puts_all_tools_and_the_library(worker: pathlib.Path) -> None:
    assert (worker / guest.LIBRARY).read_bytes() == b"library"
    for tool in (
        "sminfo",
        "ibnetdiscover",
        "ibping",
        "ibstat",
        "ibhosts",
        "saquery",
        "perfquery",
        "iblinkinfo",
        "ibqueryerrors",
    ):
        assert os.access(worker / "usr/local/sbin" / tool, os.X_OK)


def test_the_map_names_node_and_simulator_of_each_hca(worker: pathlib.Path, topologies: dict[str, Topology]) -> None:
    lines = [line.split() for line in (worker / guest.HCAS).read_text().splitlines() if not line.startswith("#")]
    assert [line[0] for line in lines] == [f"mlx5_{number}" for number in range(6)]
    assert lines[2] == ["mlx5_2", topologies["fabric-2"].hca("worker-1", "mlx5_2").id, "10.78.0.1", "7300"]


@pytest.mark.parametrize(
    ("arguments", "device"),
    [
        ((), "mlx5_0"),
        (("-C", "mlx5_4", "-P", "1"), "mlx5_4"),
        (("-Cmlx5_3",), "mlx5_3"),
        (("--Ca", "mlx5_2"), "mlx5_2"),
        (("--Ca=mlx5_5", "--Port=1"), "mlx5_5"),
        (("-c", "3", "-L", "-C", "mlx5_1", "81"), "mlx5_1"),
        # the tool itself says that there is none
        (("-C", "mlx5_9"), "mlx5_0"),
        # a prefix of another's name is not its name
        (("-C", "mlx5_"), "mlx5_0"),
    ],
)
def test_the_hca_is_chosen_and_the_arguments_are_left(
    worker: pathlib.Path, arguments: tuple[str, ...], device: str
) -> None:
    assert chosen(worker, "ibping", *arguments) == (device, " ".join(arguments))


def test_the_tool_gets_its_fabric(worker: pathlib.Path, topologies: dict[str, Topology]) -> None:
    fields = call(worker, "sminfo", "-C", "mlx5_2").stdout.split("|")
    assert fields[1:3] == [topologies["fabric-2"].hca("worker-1", "mlx5_2").id, "10.78.0.1:7300"]


def test_arguments_with_spaces_stay_whole(worker: pathlib.Path) -> None:
    (worker / "tools/saquery").write_text('#!/bin/sh\necho "$#" "$2"\n')
    assert call(worker, "saquery", "-N", "two words; rm x", "*").stdout == "3 two words; rm x\n"


def test_the_exit_code_is_the_tools(worker: pathlib.Path) -> None:
    assert call(worker, "sminfo", SHOW_RC="255").returncode == 255


def test_the_wrapper_becomes_the_tool(worker: pathlib.Path) -> None:
    (worker / "tools/ibping").write_text('#!/bin/sh\necho "$$"\n')
    process = subprocess.Popen(
        [worker / "usr/local/sbin/ibping", "-S"],
        env={**os.environ, "LAB_HCAS": str(worker / guest.HCAS), "LAB_TOOLS": str(worker / "tools"), "LAB_LIBRARY": ""},
        stdout=subprocess.PIPE,
        text=True,
    )
    said = process.communicate(timeout=20)[0]
    assert int(said) == process.pid


def test_ibstat_names_its_hca_by_position(worker: pathlib.Path) -> None:
    assert chosen(worker, "ibstat", "mlx5_4", "1") == ("mlx5_4", "mlx5_4 1")


@pytest.mark.parametrize("arguments", [(), ("-l",), ("-p",)])
def test_ibstat_without_a_name_tells_of_all(worker: pathlib.Path, arguments: tuple[str, ...]) -> None:
    lines = call(worker, "ibstat", *arguments).stdout.splitlines()
    assert [line.split("|")[0] for line in lines] == [f"mlx5_{number}" for number in range(6)]


def test_ibstat_of_all_fails_when_one_fails(worker: pathlib.Path) -> None:
    assert call(worker, "ibstat", SHOW_RC="3").returncode == 3


def test_scripts_call_the_wrapped_tools(worker: pathlib.Path) -> None:
    (worker / "tools/ibhosts").write_text('#!/bin/sh\n"$IBPATH/ibnetdiscover" "$@"\n')
    assert chosen(worker, "ibhosts", "-C", "mlx5_3") == ("mlx5_3", "-C mlx5_3")


def test_a_worker_without_its_map_says_so(worker: pathlib.Path) -> None:
    done = call(worker, "sminfo", LAB_HCAS="/nowhere/hcas")
    assert done.returncode == 255
    assert done.stderr.startswith("sminfo: /nowhere/hcas cannot be read")
