# SPDX-License-Identifier: GPL-3.0-or-later

"""A name in a list that is none is left out: an empty text in its place made the fact of all nodes unreadable."""

from __future__ import annotations

import ast
import pathlib
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import load, to_data
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.core import parse_workload
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.networks.ipam import shared_pool
from ansible_collections.linerate.rdma.plugins.module_utils._parse.operators.sriov_operator import parse_installation

PARSERS = pathlib.Path(__file__).resolve().parents[3] / "plugins" / "module_utils" / "_parse"
NONE_OF_IT: list[typing.Any] = [None, "", 5, {}, "a b", "\u202e", "x" * 5000]
METADATA = {"name": "a", "namespace": "b", "labels": {"app.kubernetes.io/version": "1.6.0"}}


def deployment(images: typing.Iterable[typing.Any]) -> dict[str, typing.Any]:
    containers = [{"name": "manager", "image": image} for image in images]
    spec = {"replicas": 1, "template": {"spec": {"containers": containers}}}
    return {"kind": "Deployment", "metadata": METADATA, "spec": spec, "status": {}}


def pool(nodes: typing.Iterable[typing.Any]) -> dict[str, typing.Any]:
    spec = {"subnet": "192.168.0.0/16", "perNodeBlockSize": 24}
    return {
        "kind": "IPPool",
        "metadata": METADATA,
        "spec": spec,
        "status": {"allocations": [{"nodeName": node} for node in nodes]},
    }


@pytest.mark.parametrize(
    ("parse", "written", "good", "kept"),
    [
        (parse_workload, deployment, "registry.example/a:1", lambda found: found.images),
        (parse_installation, deployment, "registry.example/a:1", lambda found: found.deployment.images),
        (shared_pool, pool, "worker-1", lambda found: found.nodes),
    ],
    ids=["workload", "installation", "shared_pool"],
)
def test_what_is_no_name_is_left_out_of_a_list(
    parse: typing.Callable[[typing.Any], typing.Any],
    written: typing.Callable[[typing.Any], typing.Any],
    good: str,
    kept: typing.Callable[[typing.Any], tuple[str, ...]],
) -> None:
    found = parse(written([*NONE_OF_IT, good]))
    assert kept(found) == (good,)
    assert load(type(found), to_data(found), "it") == found


def test_no_parser_makes_a_list_of_texts_that_may_be_empty() -> None:
    found = [
        f"{path.relative_to(PARSERS)}:{getattr(node, 'lineno', 0)}"
        for path in sorted(PARSERS.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if any(isinstance(part, ast.Call) and called(part) == "known" for part in made_in(node))
    ]
    assert not found, "use list_known"


def made_in(node: ast.AST) -> list[ast.AST]:
    """What each element of a list, a set or a tuple is made of, where the node makes one of all elements."""
    if isinstance(node, (ast.ListComp, ast.SetComp)):
        return [node.elt]
    if isinstance(node, ast.Call) and called(node) in {"tuple", "list", "set", "frozenset", "sorted"}:
        return [argument.elt for argument in node.args if isinstance(argument, ast.GeneratorExp)]
    return []


def called(node: ast.Call) -> str:
    return node.func.id if isinstance(node.func, ast.Name) else ""
