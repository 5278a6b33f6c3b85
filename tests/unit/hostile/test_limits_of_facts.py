# SPDX-License-Identifier: GPL-3.0-or-later

"""Each list, mapping and number of facts has its limit. What one node tells beyond it is this node's error, and none of
its items is looked at."""

from __future__ import annotations

import dataclasses
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._check.stages import TABLE
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import load
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load_exactly import class_of
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.observed import is_observed
from ansible_collections.linerate.rdma.plugins.module_utils._model.boundary.form import Bound, Range
from ansible_collections.linerate.rdma.tests.unit.house.test_folder import sample

from . import without_limits
from .test_parsers import Hint, Path, annotated, changed, classes_of, hints_of, origin_of, place_of

#: a place in data, and what limits it
Limit = tuple[Path, typing.Union[Bound, Range]]


def fact_classes() -> tuple[typing.Any, ...]:
    """All dataclasses of the facts that any stage is judged by."""
    found: dict[typing.Any, None] = {}
    for facts, _check in TABLE.values():
        classes_of(facts, found)
    return tuple(found)


def observed_classes() -> list[typing.Any]:
    """Those of one node's answer."""
    return [cls for cls in fact_classes() if is_observed(cls)]


def is_open(hint: Hint) -> bool:
    """Whether a type holds a list, a mapping, octets or a number without a limit."""
    limited = False
    if origin_of(hint) is typing.Annotated:
        limited = isinstance(typing.get_args(hint)[1], (Bound, Range))
        hint = typing.get_args(hint)[0]
    if origin_of(hint) is typing.Literal:
        return False
    sized = origin_of(hint) in (tuple, dict) or hint in (int, float, bytes)
    return (
        hint is typing.Any
        or (sized and not limited)
        or any(is_open(part) for part in typing.get_args(hint) if part is not Ellipsis)
    )


def limits(hint: Hint) -> typing.Iterator[Limit]:
    """Places of a type's sample that have a limit, with the limit."""
    return ((path, found) for path, found in annotated(hint) if isinstance(found, (Bound, Range)))


class Endless(list[typing.Any]):
    """A list of as many items as it says, none of which may be looked at."""

    def __init__(self, items: int) -> None:
        super().__init__()
        self.items = items

    def __len__(self) -> int:
        return self.items

    def __iter__(self) -> typing.NoReturn:
        raise AssertionError("looked at an item")


class EndlessMapping(dict[typing.Any, typing.Any]):
    """A mapping of as many items as it says, none of which may be looked at."""

    def __init__(self, items: int) -> None:
        super().__init__()
        self.number = items

    def __len__(self) -> int:
        return self.number

    def items(self) -> typing.NoReturn:
        raise AssertionError("looked at an item")


def value_at(data: typing.Any, path: typing.Sequence[typing.Any]) -> typing.Any:
    for key in path:
        data = data[key]
    return data


def beyond(limit: typing.Union[Bound, Range], value: typing.Any) -> tuple[typing.Any, ...]:
    """What is just out of the limit, in the place of a value."""
    if isinstance(limit, Range):
        # of a float beyond 2 to the power of 53 one more is the same
        return limit.least - 1, max(limit.most + 1, limit.most * 2), float("nan"), 10**5000
    return (
        ()
        if isinstance(value, str)
        else (EndlessMapping(limit.most + 1) if isinstance(value, dict) else Endless(limit.most + 1),)
    )


def test_every_list_mapping_and_number_of_facts_has_a_limit_or_a_reason_to_have_none() -> None:
    without = {
        place_of(cls, field.name)
        for cls in fact_classes()
        for field in dataclasses.fields(class_of(cls))
        if is_open(hints_of(cls)[field.name])
    }
    listed = without_limits.listed()
    assert without - listed == set(), "give each a Bound or a Range in its annotation, or a reason in without_limits.py"
    assert listed - without == set(), "these have a limit by now, or are gone"


@pytest.mark.parametrize("cls", observed_classes(), ids=str)
def test_what_is_beyond_its_limit_is_an_error_of_its_node_by_name(cls: typing.Any) -> None:
    whole = sample(cls)
    assert load(cls, whole).value is not None
    for path, limit in limits(cls):
        for value in beyond(limit, value_at(whole, path)):
            found = load(cls, changed(whole, path, value))
            assert found.value is None, (path, limit)
            assert found.error.startswith("its output is not valid: value") and len(found.error) < 1000, (
                path,
                limit,
            )
            assert limit.expected in found.error or "expected a" in found.error, (path, limit, found.error)


def test_nothing_of_one_node_is_without_a_limit_but_values_that_are_shown() -> None:
    """A stage does not end for all by what one node tells."""
    of_nodes: dict[typing.Any, None] = {}
    for cls in observed_classes():
        classes_of(cls, of_nodes)
    without = {
        place_of(cls, field.name)
        for cls in of_nodes
        for field in dataclasses.fields(class_of(cls))
        if is_open(hints_of(cls)[field.name])
    }
    assert without == {"BiosAttribute.current", "BiosAttribute.pending", "Observed[dict].value"}
