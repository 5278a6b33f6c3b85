# SPDX-License-Identifier: GPL-3.0-or-later

"""Plain data (JSON, YAML) to dataclasses and back, strictly.

One loader for everything that enters the collection as data: the intent that a user wrote, and facts that a module
returned. Facts and intent are frozen dataclasses; their field types are the schema. Nodes have the standard library
only, hence no pydantic.

It has two ways to one answer. The fast one is made once for each type and knows no path; what it can't take goes the
exact way, which names what is wrong.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import dataclasses
import difflib
import functools
import itertools
import math
import typing

from ..boundary.form import Bound, Range
from .either import find_beside, list_sides
from .errors import RdmaError
from .observed import Observed, is_observed
from .once import find_second, list_keys
from .text import kind_of, plain

_MOST_OF_A_FLOAT = 10**300
#: of a whole number that a message shows
_MOST_BITS = 128
#: characters of a path and of a value in a message
_SHOWN = 200
#: of which the nearest is looked for: known words, and characters of each. The lists of NCCL's variables and of our
#: checks have some 260
MOST_KNOWN, _MOST_OF_A_WORD = 400, 64
#: words for which one answer looks for the nearest: a file may have a million, and a reader corrects the first few
#: first
MOST_HINTS = 20
#: unknown keys of one mapping that are told each; of more their number
MOST_UNKNOWN = 20


class LoadError(RdmaError):
    """Data that does not fit its dataclass.

    :ivar path: where in the data, as the user would write it: ``rdma_fabrics[0].select.hcas_per_node``
    :ivar seen: what was found there, as text
    :ivar expected: what is allowed there, as text
    """

    def __init__(self, path: str, seen: str, expected: str) -> None:
        path, seen = plain(path, _SHOWN), plain(seen, _SHOWN)
        super().__init__(f"{path}: {seen}; expected {expected}")
        self.path = path
        self.seen = seen
        self.expected = expected


def nearest(word: str, known: typing.Iterable[str]) -> str:
    """Return the known word that looks most like ``word``, as a hint for a message; empty when none is near, and where
    it would take long to look: among more than ``MOST_KNOWN`` words, and for one of more than 64 characters. For words
    whose number somebody else chose there is ``Hints``.
    """
    words = list(itertools.islice(known, MOST_KNOWN + 1))
    if len(word) > _MOST_OF_A_WORD or len(words) > MOST_KNOWN:
        return ""
    match = difflib.get_close_matches(
        word, sorted(item for item in words if len(item) <= _MOST_OF_A_WORD), n=1, cutoff=0.6
    )
    return f" (did you mean '{match[0]}'?)" if match else ""


class Hints:
    """Looks for the nearest of the first ``MOST_HINTS`` words that it is asked about; of any later one it is silent."""

    def __init__(self) -> None:
        self._left = MOST_HINTS

    def nearest(self, word: str, known: typing.Iterable[str]) -> str:
        """Return the same as ``nearest``."""
        self._left -= 1
        return nearest(word, known) if self._left >= 0 else ""


def to_data(value: typing.Any) -> typing.Any:
    """Dataclasses to what JSON can hold; tuples become lists, bytes become text in base64."""
    if value is None or type(value) in (str, int, float, bool):
        return value
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {name: to_data(getattr(value, name)) for name in _list_names(type(value))}
    if isinstance(value, dict):
        return {str(key): to_data(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_data(item) for item in value]
    return value


def load(cls: typing.Any, data: typing.Any, path: str = "") -> typing.Any:
    """Load ``data`` as type ``cls``: a dataclass, ``Optional``, ``Tuple[X, ...]``, ``Dict[str, X]``, ``Literal``, a
    plain type with or without a ``Literal`` beside it, ``bytes``, or with a form of the boundary ``Annotated[str,
    Form]``, ``Annotated[int, Range]``, and ``Annotated[Tuple[X, ...], Bound]`` or of a ``Dict``. An empty text says
    that nothing is known, and has any form.

    What was observed of one node (a dataclass of ``value`` and ``error``) is an error of this node where its value does
    not fit: the others go on.

    :raises LoadError: unknown key (with the nearest known one), missing key, wrong type, value out of a ``Literal``
    """
    try:
        return _fast(cls)(data)
    except Exception:  # whatever it is, the exact way raises it again or knows better
        return load_exactly(cls, data, path)


Loader = typing.Callable[[typing.Any], typing.Any]


@functools.cache
def _fast(cls: typing.Any) -> Loader:
    """Make a function that loads data as this type, or raises any error."""
    origin = typing.get_origin(cls)
    arguments = typing.get_args(cls)
    if cls is typing.Any:
        return lambda data: data
    if origin is typing.Union and len(_list_options(cls)) == 1:
        return _fast_optional(_fast(_list_options(cls)[0]))
    if origin is typing.Annotated:
        return _fast_formed(*arguments[:2])
    if origin is tuple:
        return _fast_tuple(_fast_item(arguments[0]), list_keys(arguments[0]))
    if origin is dict:
        return _fast_dict(_fast(_key_type(arguments[0])), _fast(arguments[1]))
    if dataclasses.is_dataclass(class_of(cls)):
        return _FastDataclass(cls)
    if cls in (bool, int, float, str):
        return _fast_plain(cls)
    return lambda data: load_exactly(cls, data)


def _fast_optional(load_item: Loader) -> Loader:
    return lambda data: None if data is None else load_item(data)


def _fast_formed(cls: typing.Any, form: typing.Any) -> Loader:
    fits, load_item = form.fits, _fast(cls)
    if isinstance(form, Bound) and cls is not bytes:
        return _fast_bound(form, load_item)
    if isinstance(form, Range):
        return _fast_ranged(cls, form, load_item)

    def load_formed(data: typing.Any) -> typing.Any:
        value = data if data.__class__ is cls else load_item(data)
        if value != "" and not fits(value):
            raise ValueError
        return value

    return load_formed


def _fast_bound(bound: Bound, load_items: Loader) -> Loader:
    """Make a function that loads a list or a mapping, and looks at none of its items where there are too many."""

    def load_bound(data: typing.Any) -> typing.Any:
        if len(data) > bound.most:
            raise ValueError
        return load_items(data)

    return load_bound


def _fast_ranged(cls: typing.Any, form: Range, load_item: Loader) -> Loader:
    """Make a function that loads a number. A topology has a million of them, so that the limits are compared here.
    Neither NaN nor a boolean gets through."""
    least, most = form.least, form.most

    def load_ranged(data: typing.Any) -> typing.Any:
        value = data if data.__class__ is cls else load_item(data)
        if least <= value <= most:
            return value
        raise ValueError

    return load_ranged


def _fast_item(cls: typing.Any) -> Loader:
    """Make a function that loads an item of a list. An empty text means that a field is not known; as an item it is
    refused."""
    load_item = _fast(cls)
    if typing.get_origin(cls) is not typing.Annotated:
        return load_item

    def load_known(data: typing.Any) -> typing.Any:
        if data == "":
            raise ValueError
        return load_item(data)

    return load_known


def _key_type(cls: typing.Any) -> typing.Any:
    """Return the type of a mapping's keys: text, with a form where it has one."""
    return cls if typing.get_origin(cls) is typing.Annotated else str


def _fast_tuple(load_item: Loader, keys: tuple[str, ...]) -> Loader:
    def load_tuple(data: typing.Any) -> typing.Any:
        if not isinstance(data, (list, tuple)):
            raise TypeError
        items = tuple([load_item(item) for item in data])
        if keys and find_second(keys, items) is not None:
            raise ValueError
        return items

    return load_tuple


def _fast_dict(load_key: Loader, load_item: Loader) -> Loader:
    def load_dict(data: typing.Any) -> typing.Any:
        if not isinstance(data, dict):
            raise TypeError
        return {load_key(key): load_item(item) for key, item in data.items()}

    return load_dict


def _fast_plain(cls: typing.Any) -> Loader:
    return lambda data: data if data.__class__ is cls and cls is not float else _load_plain(cls, data, "")


class _FastDataclass:
    """Loads a dataclass. What its fields take is looked up at its first use: a class may hold others of its kind."""

    def __init__(self, cls: typing.Any) -> None:
        self.type, self.cls = cls, class_of(cls)
        self.fields: dict[str, tuple[typing.Any, Loader]] = {}
        self.observed = is_observed(cls)
        self.sides = list_sides(self.cls)

    def __call__(self, data: typing.Any) -> typing.Any:
        if not self.observed:
            return self._load(data)
        try:
            return self._load(data)
        except Exception:  # whatever it is, the exact way says what is wrong with this node
            return load_exactly(self.type, data)

    def _load(self, data: typing.Any) -> typing.Any:
        if not isinstance(data, dict):
            raise TypeError
        fields = self.fields or self._look()
        values = {}
        for key, item in data.items():
            plain_type, load_item = fields[key]
            values[key] = item if item.__class__ is plain_type else load_item(item)
        made = self.cls(**values)
        if self.sides is not None and find_beside(self.sides, made) is not None:
            raise ValueError
        return made

    def _look(self) -> dict[str, tuple[typing.Any, Loader]]:
        """Return the loaders by name of the field: the plain type whose values are taken as they are, and what loads
        all others."""
        hints = read_hints(self.type)
        self.fields = {
            field.name: (_plain_type(hints[field.name]), _fast(hints[field.name]))
            for field in dataclasses.fields(self.cls)
        }
        return self.fields


def _plain_type(cls: typing.Any) -> typing.Any:
    """bool, int or str where this is it, or ``Optional`` of it; otherwise what no value is of. Not each float is one
    that can be measured."""
    if typing.get_origin(cls) is typing.Union and len(_list_options(cls)) == 1:
        cls = _list_options(cls)[0]
    return cls if cls in (bool, int, str) else Loader


def load_exactly(cls: typing.Any, data: typing.Any, path: str = "") -> typing.Any:
    """Return the same as ``load``, slowly, with the path of what is wrong.

    :raises LoadError: the first mistake, as ``load`` says
    """
    value = _collect(cls, data, path, _First())
    return None if value is _HOLE else value


class _First(list[LoadError]):
    """Takes no mistake, and raises the first: what a node answers may have a million, and words are looked for about
    each."""

    def append(self, problem: LoadError) -> typing.NoReturn:
        raise problem


def load_all(cls: typing.Any, data: typing.Any, path: str = "") -> tuple[typing.Any, tuple[LoadError, ...]]:
    """Return the value and all mistakes, in the order of the data; a missing key stands behind the keys of its mapping.

    A dataclass with a mistake is there all the same: what could not be read of it raises ``Unread`` when it is asked
    for (see ``partial``). Any other value with a mistake is None. Behind ``MOST_HINTS`` mistakes an unknown key comes
    without the nearest known one. Of more than ``MOST_UNKNOWN`` unknown keys of one mapping the number is told.
    """
    problems: list[LoadError] = []
    value = _collect(cls, data, path, problems)
    return (None if value is _HOLE else value), tuple(problems)


class Unread(Exception):
    """Somebody asked for what could not be read; that it can't be read was told already."""


#: in the place of a value that could not be read
_HOLE = object()


def make_partial(
    cls: typing.Any, values: typing.Mapping[str, typing.Any], unread: typing.Collection[str]
) -> typing.Any:
    """Return an instance of a dataclass of which some fields are not known. What is in neither argument has its
    default.

    :param unread: fields that raise ``Unread`` when they are asked for; so does a comparison, which would ask for all
        of them
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


def _unread(*_arguments: typing.Any) -> typing.Any:
    raise Unread


@functools.cache
def _partial_class(cls: typing.Any, unread: frozenset[str]) -> typing.Any:
    return type(
        cls.__name__, (cls,), {"__eq__": _unread, "__hash__": _unread, **dict.fromkeys(unread, property(_unread))}
    )


def _collect(cls: typing.Any, data: typing.Any, path: str, problems: list[LoadError]) -> typing.Any:
    """Return the value, a partial one, or ``_HOLE``; what is wrong goes into ``problems``."""
    origin = typing.get_origin(cls)
    arguments = typing.get_args(cls)
    if cls is typing.Any:
        return data
    if origin is typing.Union:
        options = _list_options(cls)
        if data is None and type(None) in arguments:
            return None
        if len(options) > 1:
            return _collect_option(options, data, path, problems)
        return _collect(options[0], data, path, problems)
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
        return _load_plain(cls, data, path)
    except LoadError as error:
        problems.append(error)
        return _HOLE


def _collect_literal(
    allowed: tuple[typing.Any, ...], data: typing.Any, path: str, problems: list[LoadError]
) -> typing.Any:
    """Return a value out of a closed list, or ``_HOLE``."""
    if data in allowed:
        return data
    words = ", ".join(str(word) for word in allowed)
    problems.append(LoadError(path, f"'{data}'", f"one of: {words}{nearest(str(data), map(str, allowed))}"))
    return _HOLE


def _collect_tuple(of_items: typing.Any, data: typing.Any, path: str, problems: list[LoadError]) -> typing.Any:
    """Return the items of a list, or ``_HOLE`` where one is wrong, or is about what an earlier one is about."""
    if not isinstance(data, (list, tuple)):
        problems.append(LoadError(path, _seen(data), "a list"))
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
                    "an entry about what an earlier one is about",
                    f"one entry for each {about}",
                )
            )
            return _HOLE
    return items


def _list_options(cls: typing.Any) -> tuple[typing.Any, ...]:
    """Return the types of a ``Union`` beside None."""
    return tuple(argument for argument in typing.get_args(cls) if argument is not type(None))


def _collect_option(
    options: typing.Sequence[typing.Any], data: typing.Any, path: str, problems: list[LoadError]
) -> typing.Any:
    """Load data by the first of several types that fits."""
    for option in options:
        with contextlib.suppress(LoadError):
            return load_exactly(option, data, path)
    words = [
        str(word)
        for option in options
        if typing.get_origin(option) is typing.Literal
        for word in typing.get_args(option)
    ]
    problems.append(LoadError(path, _seen(data), " or ".join(map(_describe, options)) + nearest(str(data), words)))
    return _HOLE


def _collect_item(cls: typing.Any, data: typing.Any, path: str, problems: list[LoadError]) -> typing.Any:
    """Return an item of a list. One with a form is refused where it is an empty text, see ``_fast_item``."""
    if data == "" and typing.get_origin(cls) is typing.Annotated:
        problems.append(LoadError(path, _seen(data), typing.get_args(cls)[1].expected))
        return _HOLE
    return _collect(cls, data, path, problems)


def _collect_formed(
    cls: typing.Any, form: typing.Any, data: typing.Any, path: str, problems: list[LoadError]
) -> typing.Any:
    """Return a text, a number, a list or a mapping that must be of the form of the boundary that its annotation
    names."""
    if isinstance(form, Bound) and isinstance(data, (list, tuple, dict)) and not form.fits(data):
        # before any of its items is looked at
        problems.append(
            LoadError(path, f"a {'mapping' if isinstance(data, dict) else 'list'} of {len(data)}", form.expected)
        )
        return _HOLE
    value = _collect(cls, data, path, problems)
    if value is _HOLE or value == "" or form.fits(value):
        return value
    problems.append(LoadError(path, _seen(data), form.expected))
    return _HOLE


def _load_observed(cls: typing.Any, data: typing.Any, path: str, problems: list[LoadError]) -> typing.Any:
    """Load the observation of one node; where the value does not fit, that is its error."""
    if not isinstance(data, dict) or not data.keys() <= {"value", "error"}:
        return _collect_dataclass(cls, data, path, problems)
    try:
        return _collect_dataclass(cls, data, path, _First())
    except LoadError as error:
        return Observed(None, f"what it answered is refused: {error}")


def _collect_dict(
    types: typing.Sequence[typing.Any], data: typing.Any, path: str, problems: list[LoadError]
) -> typing.Any:
    if not isinstance(data, dict):
        problems.append(LoadError(path, _seen(data), "a mapping"))
        return _HOLE
    keys, cls = _key_type(types[0]), types[1]
    items = [
        (_collect(keys, key, f"{path} (key)", problems), _collect(cls, item, _join(path, key), problems))
        for key, item in data.items()
    ]
    return _HOLE if any(key is _HOLE or item is _HOLE for key, item in items) else dict(items)


def _collect_dataclass(cls: typing.Any, data: typing.Any, path: str, problems: list[LoadError]) -> typing.Any:
    hints, cls = read_hints(cls), class_of(cls)
    fields = {field.name: field for field in dataclasses.fields(cls)}
    if not isinstance(data, dict):
        problems.append(LoadError(path, _seen(data), "a mapping"))
        return make_partial(cls, {}, tuple(fields))
    values: dict[str, typing.Any] = {}
    unread: set[str] = set()
    misspelt: set[str] = set()
    absent = [name for name in fields if name not in data]
    unknown = 0
    for key, item in data.items():
        if key in fields:
            values[key] = _collect(hints[key], item, _join(path, key), problems)
            continue
        unknown += 1
        if unknown <= MOST_UNKNOWN:
            hint = nearest(str(key), fields) if len(problems) < MOST_HINTS else ""
            problems.append(LoadError(_join(path, key), "unknown key", f"one of: {', '.join(fields)}{hint}"))
            # it may be any of those that are not there, misspelt
            unread.update(absent)
            misspelt.update(name for name in fields if f"'{name}'" in hint)
    if unknown > MOST_UNKNOWN:
        problems.append(
            LoadError(
                path,
                f"{unknown} unknown keys, of which the first {MOST_UNKNOWN} are told",
                f"no key but: {', '.join(fields)}",
            )
        )
    for name, field in fields.items():
        if (
            name not in data
            and name not in misspelt
            and field.default is dataclasses.MISSING
            and field.default_factory is dataclasses.MISSING
        ):
            problems.append(LoadError(_join(path, name), "missing", _describe(hints[name])))
            unread.add(name)
    unread.update(name for name, value in values.items() if value is _HOLE)
    if problems:
        # not by its own __init__, which may refuse what is not whole
        return make_partial(cls, {name: value for name, value in values.items() if name not in unread}, unread)
    made, sides = cls(**values), list_sides(cls)
    beside = find_beside(sides, made) if sides is not None else None
    if beside is not None:
        value, reason = beside
        expected = f"{value}, or a reason why there is none, and not both"
        problems.append(LoadError(_join(path, reason), f"{_seen(data[reason])} beside {value}", expected))
        return make_partial(cls, {}, tuple(fields))
    return made


@functools.cache
def _list_names(cls: typing.Any) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(cls))


def class_of(cls: typing.Any) -> typing.Any:
    """Return the class of a type: of ``Observed[NodeHcas]`` the class ``Observed``."""
    return typing.get_origin(cls) or cls


@functools.cache
def read_hints(cls: typing.Any) -> dict[str, typing.Any]:
    """Return the types of the fields of a dataclass, by their names; those of ``Observed[NodeHcas]`` with ``NodeHcas``
    in the place of the type variable. To read them is slow, and a topology has a hundred thousand records."""
    of = class_of(cls)
    given = dict(zip(getattr(of, "__parameters__", ()), typing.get_args(cls)))
    return {
        name: hint[tuple(given.get(variable, variable) for variable in hint.__parameters__)]
        if getattr(hint, "__parameters__", ())
        else hint
        for name, hint in typing.get_type_hints(of, include_extras=True).items()
    }


def _load_plain(cls: typing.Any, data: typing.Any, path: str) -> typing.Any:
    if cls is bytes and isinstance(data, str):
        try:
            return base64.b64decode(data, validate=True)
        except (binascii.Error, ValueError):
            raise LoadError(path, _seen(data), _describe(cls)) from None
    # bool is a subclass of int, and YAML's "yes" is a bool: neither may pass for the other
    if cls is float and isinstance(data, int) and not isinstance(data, bool):
        return float(data) if abs(data) < _MOST_OF_A_FLOAT else _refuse(cls, data, path)
    if cls is bool or isinstance(data, bool):
        if cls is bool and isinstance(data, bool):
            return data
    elif isinstance(data, cls) and not (cls is float and not math.isfinite(data)):
        # Ansible hands out tagged subclasses of str, int and float: keep the plain value
        return cls(data)
    return _refuse(cls, data, path)


def _refuse(cls: typing.Any, data: typing.Any, path: str) -> typing.NoReturn:
    raise LoadError(path, _seen(data), _describe(cls))


def _join(path: str, key: typing.Any) -> str:
    return f"{path}.{key}" if path else str(key)


def _seen(data: typing.Any) -> str:
    if isinstance(data, int) and data.bit_length() > _MOST_BITS:
        # Python writes no number of more than 4,300 digits
        return f"an integer of {data.bit_length()} bits"
    kinds = {
        bool: "boolean",
        int: "integer",
        float: "number",
        str: "string",
        list: "list",
        tuple: "list",
        dict: "mapping",
    }
    for kind, name in kinds.items():
        if isinstance(data, kind):
            return f"{data!r} ({name})" if kind in (bool, int, float, str) else f"a {name}"
    return kind_of(data)


def _describe(cls: typing.Any) -> str:
    names = {bool: "a boolean", int: "an integer", float: "a number", str: "a string", bytes: "bytes in base64"}
    if cls in names:
        return names[cls]
    origin = typing.get_origin(cls)
    if origin is typing.Annotated:
        return str(typing.get_args(cls)[1].expected)
    if origin is typing.Union:
        return " or ".join(map(_describe, _list_options(cls)))
    if origin is tuple:
        return "a list"
    if origin is typing.Literal:
        return "one of: " + ", ".join(str(argument) for argument in typing.get_args(cls))
    return "a mapping"
