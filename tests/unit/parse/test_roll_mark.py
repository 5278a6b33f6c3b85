# SPDX-License-Identifier: GPL-3.0-or-later

"""What a roll notes at a node comes back as it was written, and what is none is an error."""

from __future__ import annotations

import typing

import hypothesis
import hypothesis.strategies as some
import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import ParseError
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.node_roll import Mark
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.roll_mark import (
    ANNOTATION,
    KEEP,
    PROOF,
    find_keep_value,
    is_kept,
    parse_mark,
)
from ansible_collections.linerate.rdma.plugins.module_utils._render.node.roll_mark import mark_node


@hypothesis.given(
    some.builds(Mark, some.lists(some.text()).map(tuple), some.uuids().map(str), some.booleans(), some.booleans())
)
def test_there_and_back(noted: Mark) -> None:
    assert parse_mark(mark_node(noted)) == noted


def test_changes_of_a_node() -> None:
    assert mark_node(None) == {"metadata": {"annotations": {ANNOTATION: None}, "labels": {PROOF: None}}}
    over = mark_node(Mark(reset=True), over=True)["metadata"]
    assert over["labels"] == {PROOF: None} and over["annotations"][ANNOTATION]
    assert mark_node(None, False)["spec"] == {"unschedulable": None} and mark_node(None, True)["spec"] == {
        "unschedulable": True
    }
    assert parse_mark(mark_node(None)) is None and parse_mark({"metadata": {}}) is None


def keep(value: typing.Any) -> typing.Any:
    return {"metadata": {"annotations": {} if value is None else {KEEP: value}}}


@pytest.mark.parametrize("value", ["false", "True", "1", "", None, {"a": "b"}, "x" * 100])
def test_only_the_value_true_keeps_the_autoscaler_away(value: typing.Any) -> None:
    assert not is_kept(keep(value)) and is_kept(keep("true"))
    assert find_keep_value(keep(value)) == (value if value in ("false", "True", "1") else "")


def test_value_that_a_node_had_before_comes_back() -> None:
    def annotations(*of: typing.Any, **more: typing.Any) -> typing.Any:
        return mark_node(*of, **more)["metadata"]["annotations"]

    mine = Mark(kept=True, keep_before="false")
    assert annotations(mine)[KEEP] == "true" and parse_mark(mark_node(mine)) == mine
    assert annotations(None, release=mine)[KEEP] == "false"
    assert annotations(Mark(reset=True), release=mine, over=True)[KEEP] == "false"
    assert annotations(None, release=Mark(kept=True))[KEEP] is None
    assert KEEP not in annotations(None, release=Mark())


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", "1", '{"boot": 1}', '{"what": true}', '{"reset": "yes"}', 7, ["x"]]
)
def test_what_is_none(text: typing.Any) -> None:
    with pytest.raises(ParseError):
        parse_mark({"metadata": {"annotations": {ANNOTATION: text}}})
