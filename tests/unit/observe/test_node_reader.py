# SPDX-License-Identifier: GPL-3.0-or-later

"""The archive that looks at a node by itself: with a bare Python, from within an archive as well, and one kind that
fails leaves the others."""

from __future__ import annotations

import ast
import base64
import io
import json
import pathlib
import subprocess
import sys
import typing
import zipfile

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import to_data
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.hca import NodeHcas
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.neighbours import NodeNeighbours
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.fact_kinds import HOST, IB_PORTS, list_kinds_from
from ansible_collections.linerate.rdma.plugins.module_utils._observe.node import (
    namespaces,
    neighbours,
    node_reader,
    platform,
)
from ansible_collections.linerate.rdma.plugins.module_utils._observe.process import archive
from ansible_collections.linerate.rdma.tests.unit.sysfs_tree import Tree, add_six_hcas

ENTRY = node_reader.__name__
ROOT = pathlib.Path(__file__).resolve().parents[3]
PLUGINS = "ansible_collections/linerate/rdma/plugins/"


def in_observer(packed: bytes, folder: pathlib.Path, **asked: typing.Any) -> subprocess.CompletedProcess[bytes]:
    """As an observer runs it: nothing of this environment, no folder of ours, only the archive on stdin."""
    command = [sys.executable, "-I", "-S", "-c", archive.START, ENTRY, json.dumps(asked)]
    return subprocess.run(
        command,
        input=packed,
        capture_output=True,
        env={"PATH": "/nowhere", "TMPDIR": str(folder)},
        cwd="/",
        timeout=120,
        check=False,
    )


@pytest.fixture(scope="module")
def packed() -> bytes:
    return archive.build_archive(ENTRY)


def test_a_bare_python_sees_what_the_module_sees(packed: bytes, tmp_path: pathlib.Path) -> None:
    add_six_hcas(Tree(tmp_path / "sys"))
    roots = [str(tmp_path / "sys")]
    done = in_observer(packed, tmp_path, kinds=list(list_kinds_from(HOST, IB_PORTS)), sysfs=roots)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert (
        seen["hcas"]["value"] == node_reader.NodeReader(roots).read("hcas") and len(seen["hcas"]["value"]["hcas"]) == 6
    )
    assert seen["platform"]["value"]["functions"] == node_reader.NodeReader(roots).read("platform")["functions"]
    assert seen["clock"]["value"]["seconds"] > 1.7e9
    # no tool is there, which takes nothing from the rest
    assert "sminfo is not installed" in seen["subnets"]["error"]
    assert [path.name for path in tmp_path.iterdir()] == ["sys"]


def test_what_can_not_be_seen_in_namespaces_is_said_of_the_node(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_six_hcas(Tree(tmp_path / "sys"))
    monkeypatch.setattr(namespaces, "read_held_parts", lambda roots: namespaces.HeldByPods({}, ("/proc/7/ns/net: no",)))
    seen = node_reader.NodeReader([str(tmp_path / "sys")]).read("hcas")
    assert seen["errors"] == ["/proc/7/ns/net: no"] and len(seen["hcas"]) == 6


@pytest.mark.parametrize("asked", [{}, {"beside_infiniband": True}])
def test_ethernet_beside_infiniband_listens_where_it_is_asked_to(
    asked: dict[str, bool], tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[bool] = []

    def listened(roots: typing.Sequence[str], node: NodeHcas, beside_infiniband: bool) -> NodeNeighbours:
        seen.append(beside_infiniband)
        return NodeNeighbours()

    monkeypatch.setattr(neighbours, "read_neighbours", listened)
    answer = node_reader.answer({"kinds": ["neighbours"], "sysfs": [str(tmp_path)], **asked})
    assert answer == {"neighbours": {"value": to_data(NodeNeighbours())}} and seen == [bool(asked)]


def test_it_holds_what_the_look_needs_and_not_the_kubernetes_client(packed: bytes) -> None:
    names = zipfile.ZipFile(io.BytesIO(packed)).namelist()
    assert any(name.endswith("_observe/node/sysfs.py") for name in names) and any(
        name.endswith("_parse/__init__.py") for name in names
    )
    assert not [name for name in names if name.endswith(("_observe/kubernetes/client.py", "_ansible/cluster.py"))]
    # an exec carries it to each node
    assert len(packed) < 180_000
    assert archive.build_archive(ENTRY) == packed


def test_it_has_the_lines_of_the_sources_without_their_docstrings(packed: bytes) -> None:
    with zipfile.ZipFile(io.BytesIO(packed)) as file:
        names = [name for name in file.namelist() if name.startswith(PLUGINS) and file.read(name)]
        assert len(names) > 50
        for name in names:
            source = (ROOT / "plugins" / name[len(PLUGINS) :]).read_text(encoding="utf-8")
            tree, text = ast.parse(source), file.read(name).decode("utf-8")
            assert text.count("\n") == source.count("\n")
            for node in ast.walk(tree):
                if (
                    isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef))
                    and ast.get_docstring(node) is not None
                ):
                    node.body[0] = ast.Expr(ast.Constant(""))
            assert ast.dump(ast.parse(text)) == ast.dump(tree), name


def test_it_is_made_of_an_archive_as_well(packed: bytes, tmp_path: pathlib.Path) -> None:
    """Ansible packs a module and what it imports into one; the sources are read out of that."""
    path = tmp_path / "module.zip"
    path.write_bytes(archive.build_archive(archive.__name__))
    with zipfile.ZipFile(path, "a") as joined, zipfile.ZipFile(io.BytesIO(packed)) as more:
        for name in set(more.namelist()) - set(joined.namelist()):
            joined.writestr(name, more.read(name))
    script = (
        f"import base64, sys\nsys.path.insert(0, sys.argv[1])\nfrom {archive.__name__} import"
        f" build_archive\nprint(base64.b64encode(build_archive({ENTRY!r})).decode())\n"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", script, str(path)], capture_output=True, text=True, timeout=120, check=False
    )
    assert base64.b64decode(done.stdout) == packed, done.stderr


def test_one_kind_that_fails_leaves_the_others(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    def refuse(roots: typing.Any, hcas: typing.Any, wanted: typing.Any) -> typing.Any:
        raise RdmaError("the configuration space can't be read", "Become root")

    monkeypatch.setattr(platform, "read_platform", refuse)
    seen = node_reader.answer({"kinds": ["platform", "clock"], "sysfs": [str(tmp_path)]})
    assert (
        seen["platform"] == {"error": "the configuration space can't be read. Become root"} and "value" in seen["clock"]
    )


def test_a_source_that_is_not_there_is_named() -> None:
    with pytest.raises(RdmaError, match=r"the source of .*_observe\.node\.nothing could not be read"):
        archive.build_archive(f"{node_reader.__package__}.nothing")
