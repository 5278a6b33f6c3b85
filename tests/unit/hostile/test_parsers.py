# SPDX-License-Identifier: GPL-3.0-or-later

"""Hostile values in every text that is read: an error of a parser's own, or a value of its type.

Made from the tables of parsers with their recorded samples (../parse/test_hostile.py), which a test there keeps whole,
and from the dataclasses of the facts, so that a new field is in it by itself.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import importlib
import inspect
import pkgutil
import re
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils import _parse
from ansible_collections.linerate.rdma.plugins.module_utils._check.stages import TABLE
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import load
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load_error import LoadError
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load_exactly import class_of, read_hints
from ansible_collections.linerate.rdma.plugins.module_utils._model.boundary.form import Bound, Form, Range
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.neighbours import ObservedNeighbours
from ansible_collections.linerate.rdma.tests.unit.house.test_folder import sample
from ansible_collections.linerate.rdma.tests.unit.parse.test_hostile import DATA, OWN, TEXT, parser

from . import free_text

HOSTILE = (
    "a\nb",
    "10.0.0.2\n",
    "eth0\x00",
    "\x1b[2J",
    "{{ lookup('pipe', 'id') }}",
    "{{x}}",
    "-oProxyCommand=id",
    "$(id)",
    "`id`",
    "../../etc/passwd",
    "a\u202eb",
    "[" * 10_000,
    "x" * 1_000_000,
)
#: what stands in the place of a text and is none
WRONG_TYPES: tuple[typing.Any, ...] = (None, 7, ["x"], {"x": "y"})
#: words of one sample of text that are changed
MOST_WORDS = 40

Hint = typing.Any
#: a place in data
Path = tuple[typing.Any, ...]


def some_of(values: typing.Sequence[str], number: int) -> tuple[str, ...]:
    """What ends a line, what is a template, what is an option: at each place. Of the others one, each in its turn."""
    return "a\nb", "{{x}}", "-oProxyCommand=id", values[number % len(values)]


def origin_of(hint: Hint) -> Hint:
    """What a generic type is of."""
    found: Hint = typing.get_origin(hint)
    return found


def unbound(hint: Hint) -> Hint:
    """A type without the bound of its list, which says nothing of the items."""
    return (
        typing.get_args(hint)[0]
        if origin_of(hint) is typing.Annotated and isinstance(typing.get_args(hint)[1], Bound)
        else hint
    )


def is_free(hint: Hint) -> bool:
    """Whether a type holds a text without a form."""
    hint = unbound(hint)
    if hint is str or hint is typing.Any:
        return True
    if origin_of(hint) in (typing.Annotated, typing.Literal):
        return False
    return any(is_free(part) for part in typing.get_args(hint) if part is not Ellipsis)


@functools.cache
def hints_of(of: typing.Any) -> dict[str, Hint]:
    """The types of a dataclass's fields, or of a function's parameters."""
    if inspect.isfunction(of):
        return typing.get_type_hints(of, include_extras=True)
    return read_hints(of)


def place_of(cls: typing.Any, field: str) -> str:
    """A field as the lists of reasons name it; that of a value by the type of the value: ``Observed[str].value``."""
    name = str(class_of(cls).__name__)
    hint = hints_of(class_of(cls))[field]
    if getattr(hint, "__parameters__", ()):
        name += f"[{class_of(unbound(typing.get_args(cls)[0])).__name__}]"
    return f"{name}.{field}"


def classes_of(hint: Hint, found: dict[typing.Any, None]) -> None:
    """All dataclasses that a type holds."""
    hint = unbound(hint)
    if dataclasses.is_dataclass(class_of(hint)) and hint not in found:
        found[hint] = None
        for field in dataclasses.fields(class_of(hint)):
            classes_of(hints_of(hint)[field.name], found)
    for part in typing.get_args(hint) if origin_of(hint) not in (typing.Annotated, typing.Literal) else ():
        classes_of(part, found)


def read_classes() -> tuple[typing.Any, ...]:
    """The dataclasses of facts, and of what parsers of all but the user's intent return."""
    found: dict[typing.Any, None] = {}
    for facts, _check in TABLE.values():
        classes_of(facts, found)
    for info in pkgutil.walk_packages(_parse.__path__, f"{_parse.__name__}."):
        module = importlib.import_module(info.name)
        for name, function in inspect.getmembers(module, inspect.isfunction):
            if function.__module__ == module.__name__ and name[0] != "_" and not info.name.endswith(".intent"):
                classes_of(hints_of(function).get("return"), found)
    return tuple(found)


def test_every_text_that_is_read_has_a_form_or_a_reason_to_have_none() -> None:
    free = {
        place_of(cls, field.name)
        for cls in read_classes()
        for field in dataclasses.fields(class_of(cls))
        if is_free(hints_of(cls)[field.name])
    }
    listed = free_text.listed()
    assert free - listed == set(), "give each a form of the boundary in its annotation, or a reason in free_text.py"
    assert listed - free == set(), "these have a form by now, or are gone"


def wrong_in(value: typing.Any, hint: Hint = None) -> typing.Iterator[str]:
    """What of a value is not of its type, where that has a form."""
    hint = unbound(hint)
    if origin_of(hint) is typing.Annotated:
        form = typing.get_args(hint)[1]
        if value not in (None, "") and not form.fits(value):
            yield f"{str(value)[:40]!r} is not {form.expected}"
        return
    arguments = [part for part in typing.get_args(hint) if part is not type(None)]
    if origin_of(hint) is typing.Union and len(arguments) == 1:
        yield from wrong_in(value, arguments[0])
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        hints = hints_of(hint if class_of(hint) is type(value) else type(value))
        for field in dataclasses.fields(value):
            for words in wrong_in(getattr(value, field.name), hints[field.name]):
                yield f"{type(value).__name__}.{field.name}: {words}"
    elif isinstance(value, dict):
        keys, values = arguments if origin_of(hint) is dict else (None, None)
        for key, item in value.items():
            yield from wrong_in(key, keys)
            yield from wrong_in(item, values)
    elif isinstance(value, (tuple, list, frozenset, set)):
        same = arguments[:1] * len(value) if len(arguments) == 1 or Ellipsis in arguments else arguments
        for item, part in zip(value, same or [None] * len(value)):
            yield from wrong_in(item, part)


def outcome(call: typing.Callable[..., typing.Any], argument: typing.Any, name: str) -> list[str]:
    """What is wrong with what a parser made of it; nothing where it refused it in its own words."""
    function = parser(name)
    hint = hints_of(function).get("return") if call is function else None
    try:
        return list(wrong_in(call(argument), hint))
    except OWN as error:
        # a message quotes some of what it refuses, and never all of it
        fits = len(str(error)) < 5000 and str(error).replace("\n", "").isprintable()
        return [] if fits else [f"a message of {len(str(error))} characters: {str(error)[:200]!r}"]


def texts_in(data: typing.Any, start: tuple[typing.Any, ...] = ()) -> typing.Iterator[tuple[typing.Any, ...]]:
    """Places of texts; of a list only the first item, as the others are like it."""
    if isinstance(data, str):
        yield start
    for key, value in (
        data.items() if isinstance(data, dict) else enumerate(data[:1]) if isinstance(data, (list, tuple)) else ()
    ):
        yield from texts_in(value, (*start, key))


def changed(data: typing.Any, path: tuple[typing.Any, ...], value: typing.Any) -> typing.Any:
    """A copy with another value at one place; what is not on the way there is shared."""
    if not path:
        return value
    made = copy.copy(data)
    made[path[0]] = changed(data[path[0]], path[1:], value)
    return made


def renamed(data: typing.Any, path: tuple[typing.Any, ...], value: str) -> typing.Any:
    """A copy in which the key at the end of a path is another text."""
    if len(path) == 1:
        return {(value if key == path[0] else key): item for key, item in data.items()}
    made = copy.copy(data)
    made[path[0]] = renamed(data[path[0]], path[1:], value)
    return made


def keys_in(data: typing.Any) -> typing.Iterator[tuple[typing.Any, ...]]:
    """Places of texts that a key of a mapping leads to."""
    return (path for path in texts_in(data) if path and isinstance(path[-1], str))


@pytest.mark.parametrize("name", DATA)
def test_objects_with_a_hostile_text_anywhere(name: str) -> None:
    parsed = DATA[name]
    for sample_ in parsed.samples[:2]:
        assert outcome(parsed.call, sample_, name) == [], "the recorded sample itself"
        for number, path in enumerate(texts_in(sample_)):
            for value in (*some_of(HOSTILE, number), WRONG_TYPES[number % len(WRONG_TYPES)]):
                assert outcome(parsed.call, changed(sample_, path, value), name) == [], (path, str(value)[:40])
        for number, path in enumerate(keys_in(sample_)):
            for text in some_of(HOSTILE[:-1], number):
                assert outcome(parsed.call, renamed(sample_, path, text), name) == [], ("key", path, text)


@pytest.mark.parametrize("name", TEXT)
def test_texts_with_a_hostile_word_anywhere(name: str) -> None:
    parsed = TEXT[name]
    text = min(parsed.samples, key=len)
    assert outcome(parsed.call, text, name) == [], "the recorded sample itself"
    words = list(re.finditer(r'[^\s"\[\](){},:=]+', text))[:MOST_WORDS]
    for number, word in enumerate(words):
        # what a huge one costs is the matter of other tests
        for value in some_of(HOSTILE[:-1], number):
            assert outcome(parsed.call, text[: word.start()] + value + text[word.end() :], name) == [], (
                word[0],
                value[:40],
            )


def annotated(hint: Hint, path: Path = ()) -> typing.Iterator[tuple[Path, typing.Any]]:
    """Places of a type's sample that have an annotation of the boundary, with the annotation."""
    origin, arguments = origin_of(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        yield path, arguments[1]
        yield from annotated(arguments[0], path)
    elif origin is typing.Union:
        yield from annotated(arguments[0], path)
    elif origin is tuple:
        yield from annotated(arguments[0], (*path, 0))
    elif origin is dict:
        key, *_others = sample(hint)
        yield from annotated(arguments[1], (*path, key))
    elif dataclasses.is_dataclass(class_of(hint)):
        for field in dataclasses.fields(class_of(hint)):
            yield from annotated(hints_of(hint)[field.name], (*path, field.name))


def is_recursive(cls: typing.Any) -> bool:
    """Whether a class holds itself, so that no sample of it has an end."""
    found: dict[typing.Any, None] = {}
    for hint in hints_of(cls).values():
        classes_of(hint, found)
    return cls in found


def formed(hint: Hint) -> typing.Iterator[tuple[Path, typing.Any]]:
    """Places of a type's sample that have a form, with the form. A bound says nothing of the items of its list."""
    return ((path, found) for path, found in annotated(hint) if not isinstance(found, Bound))


@pytest.mark.parametrize("stage", TABLE)
def test_facts_of_a_folder_with_a_hostile_text_anywhere(stage: str) -> None:
    """A fact of a node is an error of this node alone; one of the cluster ends the stage with the path of what is
    wrong."""
    for name, hint in hints_of(TABLE[stage][0]).items():
        whole = sample(hint)
        assert list(wrong_in(load(hint, whole), hint)) == []
        for number, (path, form) in enumerate(formed(hint)):
            bad: typing.Sequence[typing.Any] = (
                some_of(HOSTILE, number)
                if isinstance(form, Form)
                else (form.least - 1, form.most + 1, float("nan"), True, "7")
            )
            for value in bad:
                data = changed(whole, path, value)
                try:
                    found = load(hint, data, name)
                except LoadError as error:
                    assert len(str(error)) < 1000 and str(error).isprintable()
                    continue
                assert origin_of(hint) is dict and found["worker-1"].value is None and found["worker-1"].error, (
                    name,
                    path,
                    str(value)[:40],
                )
                assert len(found["worker-1"].error) < 1000


def test_one_sick_node_is_one_sick_node() -> None:
    hint = hints_of(TABLE["discover"][0])["nodes"]
    whole = {**sample(hint), "worker-2": sample(hint)["worker-1"]}
    found = load(hint, changed(whole, ("worker-1", "value", "hcas", 0, "rdma_device"), "$(id)"), "hcas")
    assert (
        found["worker-1"].value is None
        and "hcas[0].rdma_device" in found["worker-1"].error
        and "name of an RDMA device" in found["worker-1"].error
    )
    assert found["worker-2"].value is not None and found["worker-2"].error != found["worker-1"].error


@pytest.mark.parametrize(
    ("path", "most", "words"),
    [
        (("netdevs", 0, "switch_ports"), 64, "ports of switches"),
        (("netdevs", 0, "hardware_addresses"), 65_536, "hardware addresses of neighbours"),
        (("netdevs",), 1024, "network interfaces"),
        (("uplinks",), 1024, "network interfaces"),
    ],
)
def test_a_node_that_tells_of_too_many_neighbours_is_refused(
    path: tuple[typing.Any, ...], most: int, words: str
) -> None:
    whole = sample(ObservedNeighbours)
    item = functools.reduce(lambda data, key: data[key], path, whole["value"])[0]
    assert load(ObservedNeighbours, changed(whole, ("value", *path), [item] * most)).error == whole["error"]
    found = load(ObservedNeighbours, changed(whole, ("value", *path), [item] * (most + 1)), "neighbours")
    assert found.value is None and found.error.endswith(
        f"{path[-1]}: a list of {most + 1}; expected at most {most} {words}"
    )


def test_every_form_takes_its_example_and_nothing_hostile() -> None:
    forms = {
        form
        for cls in read_classes()
        if not is_recursive(cls)
        for field in dataclasses.fields(class_of(cls))
        for _path, form in formed(hints_of(cls)[field.name])
    }
    assert len(forms) > 20
    for form in forms:
        assert form.fits(form.example) and form.expected
        if isinstance(form, Range):
            assert not any(map(form.fits, (form.least - 1, form.most + 1, float("nan"), float("inf"), True, "1", None)))
        else:
            assert not any(
                map(
                    form.fits, (*HOSTILE, *WRONG_TYPES, "", f"{form.example}\n", f" {form.example}", f"-{form.example}")
                )
            ), form.words
