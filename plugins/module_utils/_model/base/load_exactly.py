# SPDX-License-Identifier: GPL-3.0-or-later

"""Load plain data as dataclasses and report the path of each mistake. This loader is slow, so ``load`` uses it only for
data that its fast loader rejected.

A dataclass with a mistake becomes a partial instance: access to a field that could not be read raises ``Unread``.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import dataclasses
import functools
import math
import typing

from ..boundary.form import Bound
from .either import find_beside, list_sides
from .load_error import (
    MOST_HINTS,
    LoadError,
    describe_type,
    describe_value,
    join_path,
    list_options,
    refuse_value,
    suggest_nearest,
)
from .observed import Observed, is_observed
from .once import find_second, list_keys

_MOST_OF_A_FLOAT = 10**300
#: unknown keys of one mapping that have a message each; further ones are counted
MOST_UNKNOWN = 20


def key_type(cls: typing.Any) -> typing.Any:
    """Return the type of a mapping's keys: ``str``, or the given type if it is annotated with a form, such as
    ``Annotated[str, Form]``.

    :param cls: type argument of the keys of the mapping
    """
    return cls if typing.get_origin(cls) is typing.Annotated else str


def load_exactly(cls: typing.Any, data: typing.Any, path: str = "") -> typing.Any:
    """Return ``data`` loaded as type ``cls``. This loader tracks the path within the data, so that an error names the
    place of the mistake.

    :param path: path of ``data`` in the document of the user, for messages
    :raises LoadError: the first mistake in the order of the data
    """
    value = _collect_value(cls, data, path, _First())
    return None if value is _HOLE else value


class _First(list[LoadError]):
    """A list of mistakes that raises the first one that is appended. It saves collecting a million mistakes in the data
    of one node, since the search for hints is slow.
    """

    def append(self, problem: LoadError) -> typing.NoReturn:
        raise problem


def load_all(cls: typing.Any, data: typing.Any, path: str = "") -> tuple[typing.Any, tuple[LoadError, ...]]:
    """Load ``data`` as type ``cls``. Return two values: the loaded value, and all mistakes in the order of the data. A
    missing key is reported after the present keys of its mapping.

    A dataclass with a mistake becomes a partial instance, whose unread fields raise ``Unread`` (``make_partial``). Any
    other value with a mistake is None. After ``MOST_HINTS`` mistakes the message about an unknown key has no hint. If a
    mapping has more than ``MOST_UNKNOWN`` unknown keys, one mistake has the number of the remaining keys.

    :param data: plain data, such as the result of ``json.loads``
    :param path: path of ``data`` in the document of the user, for messages
    """
    problems: list[LoadError] = []
    value = _collect_value(cls, data, path, problems)
    return (None if value is _HOLE else value), tuple(problems)


class Unread(Exception):
    """The error for access to a field of a partial instance that could not be read. The mistake in that field is
    already reported.
    """


#: in the place of a value that could not be read
_HOLE = object()


def make_partial(
    cls: typing.Any, values: typing.Mapping[str, typing.Any], unread: typing.Collection[str]
) -> typing.Any:
    """Return an instance of a dataclass in which some fields are unknown. A field that is in neither argument has its
    default.

    :param values: known fields by name
    :param unread: fields that raise ``Unread`` on access. A comparison raises it too, since it uses all fields
    """
    made = object.__new__(_partial_class(cls, frozenset(unread)))
    for field in dataclasses.fields(cls):
        if field.name in values:
            value = values[field.name]
        elif field.name in unread:
            continue
        else:
            value = field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
        object.__setattr__(made, field.name, value)
    return made


def _fail_unread(*_arguments: typing.Any) -> typing.Any:
    raise Unread


@functools.cache
def _partial_class(cls: typing.Any, unread: frozenset[str]) -> typing.Any:
    return type(
        cls.__name__,
        (cls,),
        {"__eq__": _fail_unread, "__hash__": _fail_unread, **dict.fromkeys(unread, property(_fail_unread))},
    )


def _collect_value(cls: typing.Any, data: typing.Any, path: str, problems: list[LoadError]) -> typing.Any:
    """Return ``data`` loaded as type ``cls``, and append the mistakes to ``problems``. With a mistake, return a partial
    instance for a dataclass, and the marker ``_HOLE`` for any other type.

    :param path: path of ``data`` in the document, for messages
    """
    origin = typing.get_origin(cls)
    arguments = typing.get_args(cls)
    if cls is typing.Any:
        return data
    if origin is typing.Union:
        options = list_options(cls)
        if data is None and type(None) in arguments:
            return None
        if len(options) > 1:
            return _collect_option(options, data, path, problems)
        return _collect_value(options[0], data, path, problems)
    if origin is typing.Literal:
        return _collect_literal(arguments, data, path, problems)
    if origin is typing.Annotated:
        return _collect_formed(arguments[0], arguments[1], data, path, problems)
    if origin is tuple:
        return _collect_tuple(arguments[0], data, path, problems)
    if origin is dict:
        return _collect_dict(arguments, data, path, problems)
    if is_observed(cls):
        return _load_observed(cls, data, path, problems)
    if dataclasses.is_dataclass(class_of(cls)):
        return _collect_dataclass(cls, data, path, problems)
    try:
        return load_plain(cls, data, path)
    except LoadError as error:
        problems.append(error)
        return _HOLE


def _collect_literal(
    allowed: tuple[typing.Any, ...], data: typing.Any, path: str, problems: list[LoadError]
) -> typing.Any:
    """Return ``data`` if it is one of the allowed values. Otherwise append a mistake to ``problems`` and return the
    marker ``_HOLE``.

    :param path: path of the value in the document, for messages
    """
    if data in allowed:
        return data
    words = ", ".join(str(word) for word in allowed)
    problems.append(LoadError(path, f"'{data}'", f"one of: {words}{suggest_nearest(str(data), map(str, allowed))}"))
    return _HOLE


def _collect_tuple(of_items: typing.Any, data: typing.Any, path: str, problems: list[LoadError]) -> typing.Any:
    """Return the items of a list as a tuple. If ``data`` is not a list, an item has a mistake, or two items have the
    same key fields, append the mistake to ``problems`` and return the marker ``_HOLE``.

    :param of_items: type of the items
    :param path: path of the value in the document, for messages
    """
    if not isinstance(data, (list, tuple)):
        problems.append(LoadError(path, describe_value(data), "a list"))
        return _HOLE
    items = tuple([_collect_item(of_items, item, f"{path}[{index}]", problems) for index, item in enumerate(data)])
    if any(item is _HOLE for item in items):
        return _HOLE
    with contextlib.suppress(Unread):
        number = find_second(list_keys(of_items), items)
        if number is not None:
            about = ", ".join(list_keys(of_items))
            problems.append(
                LoadError(
                    f"{path}[{number}]",
                    "a duplicate entry",
                    f"one entry for each {about}",
                )
            )
            return _HOLE
    return items


def _collect_option(
    options: typing.Sequence[typing.Any], data: typing.Any, path: str, problems: list[LoadError]
) -> typing.Any:
    """Return ``data`` loaded as the first of the types that accepts it. If no type does, append a mistake to
    ``problems`` and return the marker ``_HOLE``.

    :param options: types of the union, in the order in which they are tried
    :param path: path of the value in the document, for messages
    """
    for option in options:
        with contextlib.suppress(LoadError):
            return load_exactly(option, data, path)
    words = [
        str(word)
        for option in options
        if typing.get_origin(option) is typing.Literal
        for word in typing.get_args(option)
    ]
    problems.append(
        LoadError(
            path, describe_value(data), " or ".join(map(describe_type, options)) + suggest_nearest(str(data), words)
        )
    )
    return _HOLE


def _collect_item(cls: typing.Any, data: typing.Any, path: str, problems: list[LoadError]) -> typing.Any:
    """Return a list item loaded as type ``cls``. If the item has a mistake, append the mistake to ``problems`` and
    return the marker ``_HOLE``. An empty text is a mistake if the type is annotated with a form, although in a field it
    would be an unknown value.

    :param path: path of the value in the document, for messages
    """
    if data == "" and typing.get_origin(cls) is typing.Annotated:
        problems.append(LoadError(path, describe_value(data), typing.get_args(cls)[1].expected))
        return _HOLE
    return _collect_value(cls, data, path, problems)


def _collect_formed(
    cls: typing.Any, form: typing.Any, data: typing.Any, path: str, problems: list[LoadError]
) -> typing.Any:
    """Return a text, number, list or mapping that satisfies its annotation. Otherwise append a mistake to ``problems``
    and return the marker ``_HOLE``.

    :param cls: type without the annotation
    :param form: the annotation: a ``Form``, ``Range`` or ``Bound``
    :param path: path of the value in the document, for messages
    """
    if isinstance(form, Bound) and isinstance(data, (list, tuple, dict)) and not form.fits(data):
        # the length is compared before any item is read
        problems.append(
            LoadError(path, f"a {'mapping' if isinstance(data, dict) else 'list'} of {len(data)}", form.expected)
        )
        return _HOLE
    value = _collect_value(cls, data, path, problems)
    if value is _HOLE or value == "" or form.fits(value):
        return value
    problems.append(LoadError(path, describe_value(data), form.expected))
    return _HOLE


def _load_observed(cls: typing.Any, data: typing.Any, path: str, problems: list[LoadError]) -> typing.Any:
    """Return the observation of one node as an ``Observed``. If the value does not fit the type, return an ``Observed``
    whose error describes the mistake, so that the observations of other nodes remain usable.

    :param path: path of the value in the document, for messages
    """
    if not isinstance(data, dict) or not data.keys() <= {"value", "error"}:
        return _collect_dataclass(cls, data, path, problems)
    try:
        return _collect_dataclass(cls, data, path, _First())
    except LoadError as error:
        return Observed(None, f"its output is not valid: {error}")


def _collect_dict(
    types: typing.Sequence[typing.Any], data: typing.Any, path: str, problems: list[LoadError]
) -> typing.Any:
    if not isinstance(data, dict):
        problems.append(LoadError(path, describe_value(data), "a mapping"))
        return _HOLE
    keys, cls = key_type(types[0]), types[1]
    items = [
        (
            _collect_value(keys, key, f"{path} (key)", problems),
            _collect_value(cls, item, join_path(path, key), problems),
        )
        for key, item in data.items()
    ]
    return _HOLE if any(key is _HOLE or item is _HOLE for key, item in items) else dict(items)


def _collect_dataclass(cls: typing.Any, data: typing.Any, path: str, problems: list[LoadError]) -> typing.Any:
    hints, cls = read_hints(cls), class_of(cls)
    fields = {field.name: field for field in dataclasses.fields(cls)}
    if not isinstance(data, dict):
        problems.append(LoadError(path, describe_value(data), "a mapping"))
        return make_partial(cls, {}, tuple(fields))
    values: dict[str, typing.Any] = {}
    unread: set[str] = set()
    misspelt: set[str] = set()
    absent = [name for name in fields if name not in data]
    unknown = 0
    for key, item in data.items():
        if key in fields:
            values[key] = _collect_value(hints[key], item, join_path(path, key), problems)
            continue
        unknown += 1
        if unknown <= MOST_UNKNOWN:
            hint = suggest_nearest(str(key), fields) if len(problems) < MOST_HINTS else ""
            problems.append(LoadError(join_path(path, key), "unknown key", f"one of: {', '.join(fields)}{hint}"))
            # the key may be a misspelling of any absent one
            unread.update(absent)
            misspelt.update(name for name in fields if f"'{name}'" in hint)
    if unknown > MOST_UNKNOWN:
        problems.append(
            LoadError(
                path,
                f"{unknown} unknown keys, of which only the first {MOST_UNKNOWN} are listed",
                f"only these keys: {', '.join(fields)}",
            )
        )
    for name, field in fields.items():
        if (
            name not in data
            and name not in misspelt
            and field.default is dataclasses.MISSING
            and field.default_factory is dataclasses.MISSING
        ):
            problems.append(LoadError(join_path(path, name), "missing", describe_type(hints[name])))
            unread.add(name)
    unread.update(name for name, value in values.items() if value is _HOLE)
    if problems:
        # without its own __init__, which may refuse an instance with missing fields
        return make_partial(cls, {name: value for name, value in values.items() if name not in unread}, unread)
    made, sides = cls(**values), list_sides(cls)
    beside = find_beside(sides, made) if sides is not None else None
    if beside is not None:
        value, reason = beside
        expected = f"either {value} or a reason why it is missing, but not both"
        problems.append(LoadError(join_path(path, reason), f"{describe_value(data[reason])} beside {value}", expected))
        return make_partial(cls, {}, tuple(fields))
    return made


@functools.cache
def list_names(cls: typing.Any) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(cls))


def class_of(cls: typing.Any) -> typing.Any:
    """Return the class of a type without its type arguments: ``Observed`` for ``Observed[NodeHcas]``."""
    return typing.get_origin(cls) or cls


@functools.cache
def read_hints(cls: typing.Any) -> dict[str, typing.Any]:
    """Return the field types of a dataclass by field name. For ``Observed[NodeHcas]`` the type variable is replaced by
    ``NodeHcas``. The result is cached, since resolving is slow and a topology has a hundred thousand records.
    """
    of = class_of(cls)
    given = dict(zip(getattr(of, "__parameters__", ()), typing.get_args(cls)))
    return {
        name: hint[tuple(given.get(variable, variable) for variable in hint.__parameters__)]
        if getattr(hint, "__parameters__", ())
        else hint
        for name, hint in typing.get_type_hints(of, include_extras=True).items()
    }


def load_plain(cls: typing.Any, data: typing.Any, path: str) -> typing.Any:
    if cls is bytes and isinstance(data, str):
        try:
            return base64.b64decode(data, validate=True)
        except (binascii.Error, ValueError):
            raise LoadError(path, describe_value(data), describe_type(cls)) from None
    # bool is a subclass of int, and YAML's "yes" is a bool, so each is refused as the other
    if cls is float and isinstance(data, int) and not isinstance(data, bool):
        return float(data) if abs(data) < _MOST_OF_A_FLOAT else refuse_value(cls, data, path)
    if cls is bool or isinstance(data, bool):
        if cls is bool and isinstance(data, bool):
            return data
    elif isinstance(data, cls) and not (cls is float and not math.isfinite(data)):
        # Ansible passes tagged subclasses of str, int and float; the plain value is kept
        return cls(data)
    return refuse_value(cls, data, path)
