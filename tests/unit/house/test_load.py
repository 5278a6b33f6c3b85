# SPDX-License-Identifier: GPL-3.0-or-later

"""The loader has a fast way and an exact one. Whatever comes, they give the same value of the same types, or the same
words on what is wrong."""

from __future__ import annotations

import copy
import dataclasses
import json
import math
import typing

import hypothesis
import hypothesis.strategies as some
import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._check.discover import check as discover
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import load, to_data
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load_error import LoadError
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load_exactly import load_exactly
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.text import kind_of
from ansible_collections.linerate.rdma.plugins.module_utils._model.boundary.form import Bound, Range
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.hca import (
    Hca,
    Netdev,
    NodeHcas,
    ObservedHcas,
    PcieLink,
    PciFunction,
    Port,
    Sriov,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import Finding, Judged
from ansible_collections.linerate.rdma.tests.unit.examples import examples


class TaggedText(str):
    """As Ansible hands out what a user wrote."""


class TaggedInt(int):
    pass


class TaggedFloat(float):
    pass


class TaggedDict(dict[typing.Any, typing.Any]):
    pass


@dataclasses.dataclass(frozen=True)
class Leaf:
    name: str
    count: int = 0
    share: float = 0.5
    on: bool = False
    kind: typing.Literal["a", "b", 3] = "a"


@dataclasses.dataclass(frozen=True)
class Tree:
    leaf: Leaf
    maybe: typing.Optional[Leaf] = None
    number: typing.Optional[float] = None
    several: typing.Optional[typing.Union[int, typing.Literal["all", "auto"]]] = None
    packed: bytes = b""
    words: tuple[str, ...] = ()
    leaves: tuple[Leaf, ...] = ()
    by_name: dict[str, typing.Optional[int]] = dataclasses.field(default_factory=dict)
    trees: dict[str, tuple[Tree, ...]] = dataclasses.field(default_factory=dict)
    anything: typing.Any = None


@dataclasses.dataclass(frozen=True)
class Empty:
    pass


def typed(value: typing.Any) -> typing.Any:
    """A value with the types of all its parts: 1, True, 1.0 and a tagged 1 are equal to each other."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return type(value), [(field.name, typed(getattr(value, field.name))) for field in dataclasses.fields(value)]
    if isinstance(value, dict):
        return type(value), [(typed(key), typed(item)) for key, item in value.items()]
    if isinstance(value, (list, tuple)):
        return type(value), [typed(item) for item in value]
    # Python writes no number of more than 4,300 digits
    return type(value), hex(value) if isinstance(value, int) else repr(value)


def outcome(way: typing.Callable[..., typing.Any], cls: typing.Any, data: typing.Any) -> typing.Any:
    try:
        return "loaded", typed(way(cls, data, "here"))
    except LoadError as error:
        return "refused", str(error), error.path, error.seen, error.expected
    except Exception as error:
        return "raised", type(error), str(error)


def same(cls: typing.Any, data: typing.Any) -> typing.Any:
    """What both ways say."""
    before = typed(data)
    fast, exact = outcome(load, cls, data), outcome(load_exactly, cls, data)
    assert fast == exact and typed(data) == before
    return fast


TEXT = some.sampled_from(["a", "b", "name", "leaf", "count", "x", ""]) | some.text(max_size=3)
SCALAR = (
    some.none()
    | some.booleans()
    | some.integers()
    | some.floats()
    | TEXT
    | TEXT.map(TaggedText)
    | some.integers(-9, 9).map(TaggedInt)
    | some.floats(0, 1).map(TaggedFloat)
    | some.sampled_from([10**400, b"bytes", 3, object, frozenset()])
)
ANYTHING = some.recursive(
    SCALAR,
    lambda inner: (
        some.lists(inner, max_size=3)
        | some.lists(inner, max_size=3).map(tuple)
        | some.dictionaries(TEXT | some.integers(), inner, max_size=3)
    ),
    max_leaves=6,
)
LEAF = some.builds(
    Leaf,
    TEXT,
    some.integers(),
    some.floats(allow_nan=False, allow_infinity=False),
    some.booleans(),
    some.sampled_from(["a", "b", 3]),
)
TREE: some.SearchStrategy[Tree] = some.deferred(
    lambda: some.builds(
        Tree,
        LEAF,
        some.none() | LEAF,
        some.none() | some.floats(allow_nan=False, allow_infinity=False),
        some.none() | some.integers() | some.sampled_from(["all", "auto"]),
        some.binary(max_size=5),
        some.lists(TEXT, max_size=3).map(tuple),
        some.lists(LEAF, max_size=3).map(tuple),
        some.dictionaries(TEXT, some.none() | some.integers(), max_size=3),
        some.just({}) | some.dictionaries(TEXT, some.lists(TREE, max_size=1).map(tuple), max_size=1),
        some.none() | TEXT,
    )
)


def places(data: typing.Any) -> typing.Iterator[tuple[typing.Any, typing.Any]]:
    """Each container in the data with each of its keys."""
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, item in items:
        yield data, key
        yield from places(item)


def tagged(data: typing.Any) -> typing.Any:
    if isinstance(data, dict):
        return TaggedDict({tagged(key): tagged(item) for key, item in data.items()})
    if isinstance(data, list):
        return tuple(tagged(item) for item in data)
    if isinstance(data, bool) or data is None:
        return data
    return {str: TaggedText, int: TaggedInt, float: TaggedFloat}[type(data)](data)


@hypothesis.given(TREE)
def test_valid_data_loads_alike(tree: Tree) -> None:
    assert same(Tree, to_data(tree)) == ("loaded", typed(tree))


@hypothesis.given(TREE)
def test_tagged_values_become_plain(tree: Tree) -> None:
    # a value of a Literal, or of any type, stays what it was
    bare = dataclasses.replace(tree, leaf=Leaf("x"), maybe=None, several=None, leaves=(), trees={}, anything=None)
    data = {key: value for key, value in to_data(bare).items() if key != "leaf"}
    leaf = {"name": TaggedText("x"), "count": TaggedInt(0), "share": TaggedFloat(0.5), "on": False}
    assert same(Tree, {**tagged(data), "leaf": leaf}) == ("loaded", typed(bare))
    same(Tree, tagged(to_data(tree)))


@hypothesis.given(TREE, some.data())
@hypothesis.settings(max_examples=examples(300))
def test_damaged_data_is_refused_alike(tree: Tree, draw: some.DataObject) -> None:
    data = copy.deepcopy(to_data(tree))
    for _damage in range(draw.draw(some.integers(1, 2))):
        container, key = draw.draw(some.sampled_from(list(places(data))))
        how = draw.draw(some.sampled_from(["other", "gone", "more"]))
        if how == "other":
            container[key] = draw.draw(ANYTHING)
        elif how == "gone":
            del container[key]
        elif isinstance(container, dict):
            container[draw.draw(SCALAR.filter(lambda item: not (isinstance(item, float) and math.isnan(item))))] = (
                draw.draw(ANYTHING)
            )
        if not list(places(data)):
            break
    same(Tree, data)


TYPES: tuple[typing.Any, ...] = (
    *(Tree, Leaf, Empty, Judged, str, int, float, bool, bytes, typing.Any),
    *(typing.Optional[int], tuple[float, ...], dict[str, Leaf], typing.Union[int, typing.Literal["all"]]),
)


@hypothesis.given(some.sampled_from(TYPES), ANYTHING)
@hypothesis.settings(max_examples=examples(300))
def test_any_data_is_taken_or_refused_alike(cls: typing.Any, data: typing.Any) -> None:
    same(cls, data)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (
            {"leaf": {"name": "x", "cuont": 1}},
            "here.leaf.cuont: unknown key; expected one of: name, count, share, on, kind (did you mean 'count'?)",
        ),
        ({"leaf": {}}, "here.leaf.name: missing; expected a string"),
        ({"leaf": {"name": "x", "count": True}}, "here.leaf.count: True (boolean); expected an integer"),
        ({"leaf": {"name": "x", "on": 1}}, "here.leaf.on: 1 (integer); expected a boolean"),
        ({"leaf": {"name": "x", "kind": "c"}}, "here.leaf.kind: 'c'; expected one of: a, b, 3"),
        ({"leaf": {"name": "x"}, "leaves": [{"name": "y"}, 7]}, "here.leaves[1]: 7 (integer); expected a mapping"),
        ({"leaf": {"name": "x"}, "by_name": {1: 2}}, "here.by_name (key): 1 (integer); expected a string"),
        ({"leaf": {"name": "x"}, "words": "abc"}, "here.words: 'abc' (string); expected a list"),
        ({"leaf": {"name": "x"}, "by_name": []}, "here.by_name: a list; expected a mapping"),
        (
            {"leaf": {"name": "x"}, "several": "aut"},
            "here.several: 'aut' (string); expected an integer or one of: all, auto (did you mean 'auto'?)",
        ),
        (
            {"leaf": {"name": "x"}, "several": True},
            "here.several: True (boolean); expected an integer or one of: all, auto",
        ),
        ({"leaf": {"name": "x"}, "packed": "A"}, "here.packed: 'A' (string); expected bytes in base64"),
        ([], "here: a list; expected a mapping"),
    ],
)
def test_what_is_wrong_is_named_with_its_path(data: typing.Any, said: str) -> None:
    assert same(Tree, data)[:2] == ("refused", said)


@pytest.mark.parametrize("several", [3, "all", "auto", None])
def test_a_value_of_several_types_and_bytes_come_back(several: typing.Any) -> None:
    tree = Tree(Leaf("x"), several=several, packed=bytes(range(256)))
    assert load(Tree, json.loads(json.dumps(to_data(tree)))) == tree


def test_what_a_class_itself_refuses_is_raised_alike() -> None:
    said = same(Finding, {"check": "a.b", "subject": "x", "status": "fail"})
    assert said[:2] == ("raised", ValueError) and "' but has no cause or no remedy" in said[2]


def test_facts_of_a_node_load_alike_by_each_way() -> None:
    pci = PciFunction("0000:16:00.0", "15b3", "1021", "0207", "mlx5_core", 0, PcieLink(32.0, 16, 32.0, 16))
    port = Port(1, "ACTIVE", "LinkUp", "InfiniBand", 400.0, 4, "NDR", 7, 1, "0x0000000000000001")
    hca = Hca(
        "mlx5_0",
        "mlx5_0",
        (Netdev("ib0", "00:00", 2044),),
        pci,
        "0x0000000000000001",
        "node",
        "28.43.1014",
        "MT",
        None,
        (port,),
        Sriov(16, 8),
    )
    facts = discover.Facts({"worker-1": ObservedHcas(NodeHcas((hca,))), "worker-2": ObservedHcas(error="No ssh.")})
    assert same(discover.Facts, to_data(facts)) == ("loaded", typed(facts))


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({}, "a mapping"),
        ([], "a list"),
        ((), "a list"),
        ("x", "a string"),
        (True, "a boolean"),
        (1, "an integer"),
        (1.5, "a number"),
    ],
)
def test_a_type_has_the_words_of_yaml_whatever_ansible_calls_it(value: typing.Any, words: str) -> None:
    assert kind_of(value) == words
    if not isinstance(value, bool):
        assert kind_of(type("_AnsibleTaggedValue", (type(value),), {})(value)) == words
    assert (kind_of(None), kind_of(object())) == ("nothing", "a object")


@dataclasses.dataclass(frozen=True)
class Bounded:
    names: typing.Annotated[dict[str, str], Bound("names", 2)] = dataclasses.field(default_factory=dict)
    words: typing.Optional[typing.Annotated[tuple[str, ...], Bound("words", 2)]] = None
    table: typing.Annotated[bytes, Bound("octets", 3)] = b""
    count: typing.Annotated[int, Range("a count", 0, 2**64 - 1)] = 0
    share: typing.Annotated[float, Range("a share", 0, 1)] = 0.0


class Untouched(list[str]):
    def __iter__(self) -> typing.NoReturn:
        raise AssertionError("looked at an item")


class UntouchedMapping(dict[str, str]):
    def items(self) -> typing.NoReturn:
        raise AssertionError("looked at an item")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"names": dict.fromkeys("abc", "x")}, "here.names: a mapping of 3; expected at most 2 names"),
        ({"words": ["x"] * 3}, "here.words: a list of 3; expected at most 2 words"),
        ({"table": "AAAAAA=="}, "here.table: 'AAAAAA==' (string); expected at most 3 octets"),
        ({"count": -1}, "here.count: -1 (integer); expected a count from 0 to 1.84467e+19"),
        ({"count": 2**64}, "here.count: 18446744073709551616 (integer); expected a count from 0 to 1.84467e+19"),
        ({"count": 10**5000}, "here.count: an integer of 16610 bits; expected a count from 0 to 1.84467e+19"),
        ({"count": True}, "here.count: True (boolean); expected an integer"),
        ({"count": 1.0}, "here.count: 1.0 (number); expected an integer"),
        ({"share": math.nan}, "here.share: nan (number); expected a number"),
        ({"share": 1.5}, "here.share: 1.5 (number); expected a share from 0 to 1"),
    ],
)
def test_what_is_too_much_or_out_of_range_is_refused_alike(data: typing.Any, said: str) -> None:
    assert same(Bounded, data)[:2] == ("refused", said)


@pytest.mark.parametrize("way", [load, load_exactly])
@pytest.mark.parametrize(
    "data", [{"names": UntouchedMapping(dict.fromkeys("abc", "x"))}, {"words": Untouched(["x"] * 3)}]
)
def test_no_item_of_what_is_too_much_is_looked_at(way: typing.Callable[..., typing.Any], data: typing.Any) -> None:
    with pytest.raises(LoadError, match=" of 3; expected at most 2 "):
        way(Bounded, data, "here")


@pytest.mark.parametrize(
    "data",
    [
        {"names": {"a": "x", "b": "y"}, "words": ["x", "y"], "table": "AAAA", "count": 2**64 - 1, "share": 1},
        {"words": None, "count": TaggedInt(7), "share": TaggedFloat(0.5)},
    ],
)
def test_what_is_within_its_limits_loads_alike(data: typing.Any) -> None:
    assert same(Bounded, data)[0] == "loaded"


@dataclasses.dataclass(frozen=True)
class Bay:
    """One for each number on each rack."""

    ONCE = ("rack", "leaf.count")

    rack: str
    leaf: typing.Optional[Leaf] = None


def test_two_entries_about_one_thing_are_refused_with_their_place() -> None:
    def bays(*entries: tuple[str, typing.Optional[int]]) -> typing.Any:
        return [
            {"rack": rack, "leaf": None if count is None else {"name": "x", "count": count}} for rack, count in entries
        ]

    Bays = tuple[Bay, ...]
    assert same(Bays, bays(("a", 1), ("a", 2), ("b", 1)))[0] == "loaded"
    assert same(Bays, bays(("", None), ("", None)))[0] == "loaded", (
        "what is about nothing that is known contradicts nothing"
    )
    assert same(Bays, bays(("a", 1), ("b", 1), ("a", 1)))[2:] == (
        "here[2]",
        "a duplicate entry",
        "one entry for each rack, leaf.count",
    )


def test_a_node_that_shows_one_function_twice_is_an_error_of_this_node_alone() -> None:
    hca = to_data(Hca("mlx5_0", "mlx5_0", (), PciFunction("0000:0c:00.0", "15b3", "1021", "0207")))
    seen = load(
        dict[str, ObservedHcas], {"a": {"value": {"hcas": [hca, hca]}}, "b": {"value": {"hcas": [hca]}}}, "hcas"
    )
    assert seen["b"].value is not None and seen["a"].value is None and "a duplicate entry" in seen["a"].error
