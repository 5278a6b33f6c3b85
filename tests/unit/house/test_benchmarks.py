# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every benchmark runs, at its smallest size, and measures something against something. How fast it was is for its
reader."""

from __future__ import annotations

import contextlib
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._parse.infiniband import ibnetdiscover
from ansible_collections.linerate.rdma.tests.benchmarks import localisation, pod_exec, topology
from ansible_collections.linerate.rdma.tests.benchmarks.support import (
    exec_rig,
    marked,
    simulated_fabric,
    spent,
    sshd,
    topograph,
)
from ansible_collections.linerate.rdma.tests.benchmarks.support.result import Result, show

ROOT = pathlib.Path(__file__).parents[3]
BENCHMARKS = sorted((ROOT / "tests/benchmarks").glob("*.py"))
CAPTURE = ROOT / "tests/unit/fixtures/infiniband-diags/ibnetdiscover.txt"


@pytest.mark.processes
@pytest.mark.thorough
@pytest.mark.parametrize("path", BENCHMARKS, ids=lambda path: path.stem)
def test_a_benchmark_measures_something(path: pathlib.Path) -> None:
    done = subprocess.run(
        [sys.executable, path, "--smallest", "--json"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    results = [Result(**result) for result in json.loads(done.stdout)]
    by_what = {(result.what, result.size, result.unit): result for result in results}
    assert len(by_what) == len(results) > 1, "each figure once, and a baseline among them"
    for result in results:
        assert math.isfinite(result.value) and result.value > 0 and result.ratio > 0 and result.unit, result
        baseline = by_what[result.baseline, result.size, result.unit]
        assert baseline.ratio == 1 and result.ratio == pytest.approx(result.value / baseline.value), (
            "of the same size, in the same unit"
        )
    assert any(result.ratio != 1 for result in results), "a baseline alone says nothing"


def test_there_are_benchmarks() -> None:
    assert BENCHMARKS


def test_results_are_a_table_with_units_and_ratios(capsys: pytest.CaptureFixture[str]) -> None:
    results = (
        Result("by hand", "4 nodes", 10.0, "s", 1.0, "by hand"),
        Result("module", "4 nodes", 2.5, "s", 0.25, "by hand", "once"),
    )
    assert show(results) == results
    head, *rows = [re.split(" {2,}", row) for row in capsys.readouterr().out.splitlines()]
    assert head == ["what", "size", "value", "ratio", "to"]
    assert rows == [
        ["by hand", "4 nodes", "10", "s", "1", "by hand"],
        ["module", "4 nodes", "2.5", "s", "0.25", "by hand", "once"],
    ]


def forms(text: str) -> set[str]:
    """The forms of a text's lines: the same, but for names and numbers."""
    text = re.sub(r'"MF0;[^"]+"', "SWITCH", re.sub(r'"worker[0-9]+ mlx5_[0-9]"', "HCA", text))
    text = re.sub(r"generated on .*", "generated on DATE", text)
    return set(re.sub(r"0x[0-9a-f]+|\b[0-9a-f]{16}\b|\b[0-9]+\b", "N", text).split("\n"))


def blocks(text: str) -> set[tuple[str, ...]]:
    """The order of the words that begin the lines of a block; lines of ports count once."""
    return {
        tuple(dict.fromkeys(re.split(r"[=\t(\[# ]", line)[0] or line[:1] for line in block.split("\n")))
        for block in text.strip("\n").split("\n\n")
    }


def test_the_large_fabric_is_printed_as_the_tool_prints_one() -> None:
    made, captured = topology.large_fabric(32), CAPTURE.read_text()
    assert forms(made) == forms(captured)
    assert blocks(made) == blocks(captured)


def test_the_large_fabric_is_whole() -> None:
    seen = ibnetdiscover.parse(topology.large_fabric(64))
    assert [sum(node.kind == kind for node in seen.nodes) for kind in ("Ca", "Switch")] == [64 * 8, 2 * 8 + 64]
    # a cable of each HCA, and 8 of each leaf; each is printed at both of its ends
    assert len(seen.links) == 64 * 8 + 2 * 8 * 8
    assert topology.large_fabric(64).count("\n[") == 2 * len(seen.links)


def test_a_peer_that_is_not_to_be_had_says_why(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topograph, "BUILD", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(topograph.NotBuilt, match="Go is not installed"):
        topograph.build("v1.0.0", None)
    go = tmp_path / "go"
    go.write_text('#!/bin/sh\necho "no $1 today" >&2\nexit 3\n')
    go.chmod(0o755)
    with pytest.raises(topograph.NotBuilt, match="'go mod' ended with 3: no mod today"):
        topograph.build("v1.0.0", None)


def test_a_way_to_nodes_that_is_not_to_be_had_says_why(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sshd, "FOLDERS", str(tmp_path))
    monkeypatch.setattr(exec_rig, "KUBECTL", tmp_path / "kubectl")
    with pytest.raises(exec_rig.NotBuilt, match="Go is not installed"):
        exec_rig.kubectl()
    with pytest.raises(exec_rig.NotBuilt, match="kubectl is not installed") as no_kubectl:
        exec_rig.installed_kubectl()
    with contextlib.ExitStack() as stack:
        found = pod_exec.ways(stack, pod_exec.Machine("http://127.0.0.1:1", tmp_path, no_kubectl.value), 0.0)
    assert pod_exec.not_measured(found) == (
        "not measured: ansible.builtin.ping by kubernetes.core.kubectl (kubectl is not installed)",
        "not measured: ansible.builtin.ping by ssh (sshd is not installed)",
    )


def test_what_a_command_leaves_running_is_ended_and_counts(tmp_path: pathlib.Path) -> None:
    code = """
import os, signal, time
mine, its = os.pipe()
if os.fork():
    print(os.read(mine, 20).decode())
else:
    while time.process_time() < 0.5:
        pass
    os.dup2(os.open(os.devnull, os.O_RDWR), 1)
    os.dup2(1, 2)
    os.write(its, str(os.getpid()).encode())
    signal.pause()
"""
    cost, said = spent.run([sys.executable, "-c", code], tmp_path, os.environ)
    assert cost.processor > 0.5 and cost.wall > 0
    with pytest.raises(ProcessLookupError):
        os.kill(int(said), 0)


def test_a_command_that_fails_ends_the_benchmark_in_its_words(tmp_path: pathlib.Path) -> None:
    with pytest.raises(SystemExit, match="'sh -c echo no way >&2; exit 3' ended with 3: no way"):
        spent.run(["sh", "-c", "echo no way >&2; exit 3"], tmp_path, os.environ)


def test_a_draw_that_is_kept_is_not_measured_again(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = tmp_path / "draws"
    first = localisation.main(["--smallest", "--keep", str(kept)])
    measured = kept.read_text()

    def never(*_: object) -> typing.NoReturn:
        raise AssertionError("measured again")

    monkeypatch.setattr(localisation, "ours", never)
    monkeypatch.setattr(localisation, "peer", never)
    assert localisation.main(["--smallest", "--keep", str(kept)]) == first
    assert kept.read_text() == measured
    kept.write_text("".join(f"{line}\n" for line in measured.splitlines()[:-1]))
    with pytest.raises(AssertionError, match="measured again"):
        localisation.main(["--smallest", "--keep", str(kept)])


def test_a_table_goes_between_its_marks_alone(tmp_path: pathlib.Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("above\n<!-- made by tests/benchmarks/one.py -->\nold\n<!-- end of what is made -->\nbelow\n")
    marked.replace(page, "one", "new\n")
    assert (
        page.read_text()
        == "above\n<!-- made by tests/benchmarks/one.py -->\nnew\n<!-- end of what is made -->\nbelow\n"
    )
    with pytest.raises(SystemExit, match=r"made by tests/benchmarks/other\.py"):
        marked.replace(page, "other", "new\n")


def test_the_simulated_fabric_is_a_whole_tree() -> None:
    item = simulated_fabric.built(simulated_fabric.Shape(4, 3, 4, rails=2))
    assert [len(item.switches), len(item.hcas), len(item.links)] == [7, 16, 4 * 3 + 16]
    ports = [
        (end.guid, port) for link in item.links for end, port in ((link.switch, link.port), (link.peer, link.peer_port))
    ]
    assert len(set(ports)) == len(ports), "one cable a port"
    leaf = {link.peer.description: link.switch.description for link in item.links if link.peer.kind == "hca"}
    # HCA k of a host is on leaf k of its unit
    assert [leaf[f"node-{host:04} mlx5_{rail}"].split(";")[1][:6] for host in (1, 5) for rail in (0, 1)] == [
        "leaf00",
        "leaf01",
        "leaf02",
        "leaf03",
    ]
