# SPDX-License-Identifier: GPL-3.0-or-later

"""Questions to the facts of a run."""

from __future__ import annotations

import pathlib
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.run.facts import RunStart
from ansible_collections.linerate.rdma.plugins.module_utils._store.facts import FactFolder
from ansible_collections.linerate.rdma.plugins.plugin_utils._query import QueryError, ask, compile_query, show

Facts = list[tuple[str, dict[str, typing.Any], dict[str, str]]]
FACTS: Facts = [
    ("worker-1", {"hcas": {"hcas": [{"name": "mlx5_0", "ports": [{"number": 1, "rate_gbps": 400.0}]}]}}, {}),
    ("worker-2", {"hcas": {"hcas": [{"name": "mlx5_0", "ports": [{"number": 1, "rate_gbps": 200.0}]}]}}, {}),
    ("worker-3", {}, {"hcas": "unreachable"}),
]


def test_the_node_is_beside_each_answer() -> None:
    answers, unread = ask(compile_query("hcas.hcas[].ports[?rate_gbps < `400`][]"), FACTS)
    assert answers == [{"node": "worker-2", "answer": [{"number": 1, "rate_gbps": 200.0}]}]
    assert show(answers, unread) == [
        'worker-2: {"number": 1, "rate_gbps": 200.0}',
        "not read: hcas of worker-3: unreachable",
    ]
    answers, _unread = ask(compile_query("hcas.hcas[].name"), FACTS)
    assert show(answers, []) == ["worker-1: mlx5_0", "worker-2: mlx5_0"]


def test_zero_and_false_are_answers_and_nothing_is_none() -> None:
    assert [
        item["answer"]
        for item in ask(
            compile_query("x"), [("a", {"x": 0}, {}), ("b", {"x": False}, {}), ("c", {"x": []}, {}), ("d", {}, {})]
        )[0]
    ] == [0, False]
    assert show([], []) == ["No result: no node reports a matching value."]


@pytest.mark.parametrize(
    ("query", "column"), [("hcas.hcas[?name ==", 18), ("hcas..x", 5), ("a[?b < 'c]", 7), ("", 0), ("a.b)", 3)]
)
def test_a_bad_expression_shows_the_place(query: str, column: int) -> None:
    with pytest.raises(QueryError) as error:
        compile_query(query)
    _cause, shown, mark, *_rest = str(error.value).splitlines()
    assert (shown, mark) == (f"  {query}", "  " + " " * column + "^")


def test_a_function_that_does_not_fit_names_the_node() -> None:
    with pytest.raises(QueryError, match=r"could not be evaluated for worker-1: .*length"):
        ask(compile_query("length(hcas.hcas[0].ports[0].number)"), FACTS)


def test_a_node_whose_fact_has_another_form_does_not_end_the_query() -> None:
    facts: Facts = [("bad", {"hcas": {"hcas": 5}}, {}), ("good", {"hcas": {"hcas": [1]}}, {})]
    answers, unread = ask(compile_query("length(hcas.hcas)"), facts)
    assert answers == [{"node": "good", "answer": 1}]
    assert [(item["node"], "length" in item["error"]) for item in unread] == [("bad", True)]


@pytest.mark.parametrize(
    ("query", "fact", "words"),
    [
        (
            "hcas.hcas[?rate > speed].name",
            {"hcas": [{"name": "a", "rate": 1, "speed": "fast"}]},
            "not supported between instances of 'int' and 'str'",
        ),
        ("max_by(hcas.hcas, &name).name", {"hcas": [{"name": 1}, {"name": "a"}]}, "not supported between instances of"),
        ("contains('mlx5_0', hcas.hcas[0].name)", {"hcas": [{"name": 1}]}, "requires string as left operand"),
        ("sum(hcas.hcas[].rate)", {"hcas": [{"rate": 10**400}, {"rate": 0.5}]}, "too large"),
        ("ceil(hcas.hcas[0].rate)", {"hcas": [{"rate": float("nan")}]}, "NaN"),
        ("length(hcas.hcas[0].rate)", {"hcas": [{"rate": True, "x": "x" * 5000}]}, "length"),
        ("sum(hcas.hcas)", {"hcas": ["x" * 5000]}, "characters)"),
    ],
)
def test_a_value_that_python_can_not_compare_does_not_end_the_query(
    query: str, fact: dict[str, typing.Any], words: str
) -> None:
    good: dict[str, typing.Any] = {"hcas": [{"name": "mlx5_0", "rate": 2.0, "speed": 1.0}]}
    if "(hcas.hcas)" in query:
        good = {"hcas": [2.0]}
    elif query.startswith("length"):
        good = {"hcas": [{"rate": "abc"}]}
    facts: Facts = [("bad", {"hcas": fact}, {}), ("good", {"hcas": good}, {})]
    answers, unread = ask(compile_query(query), facts)
    assert [item["node"] for item in answers] == ["good"]
    ((node, kind, error),) = [(item["node"], item["kind"], item["error"]) for item in unread]
    assert (node, kind) == ("bad", "the answer") and words in error and len(error) < 400
    with pytest.raises(QueryError, match="could not be evaluated for bad") as raised:
        ask(compile_query(query), facts[:1])
    assert raised.value.remedy == "Check the structure of the facts in the folder facts"


def test_all_that_a_run_saw_of_a_node(tmp_path: pathlib.Path) -> None:
    FactFolder(str(tmp_path), "run-0").write("old", "worker-1", {"x": 1})
    folder = FactFolder(str(tmp_path), "run-1")
    folder.begin(RunStart("run-1", "2026-01-02T03:04:05+00:00"))
    assert folder.all_of("worker-1") == ({}, {})
    folder.write("hcas", "worker-1", {"hcas": []})
    folder.write("subnets", "worker-1", error="no umad")
    (tmp_path / "facts" / "platform").mkdir()
    (tmp_path / "facts" / "platform" / "worker-1.json").write_text("torn", encoding="utf-8")
    values, errors = folder.all_of("worker-1")
    assert (
        values == {"hcas": {"hcas": []}}
        and errors["subnets"] == "no umad"
        and "could not be read:" in errors["platform"]
    )
