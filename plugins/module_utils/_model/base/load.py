# SPDX-License-Identifier: GPL-3.0-or-later

"""Load plain data (JSON, YAML) as dataclasses, strictly, and convert dataclasses to plain data.

All data that enters the collection is loaded here: the intent of the user, and facts that a module returned. Facts and
intent are frozen dataclasses; their field types are the schema. Nodes have the standard library only, hence no
pydantic.

A type has two loaders with equal results. The fast one is made once for each type and knows no path. Data that it
refuses goes to ``load_exactly``, which names the mistake.
"""

from __future__ import annotations

import base64
import dataclasses
import functools
import typing

from ..boundary.form import Bound, Range
from .either import find_beside, list_sides
from .load_error import list_options
from .load_exactly import class_of, key_type, list_names, load_exactly, load_plain, read_hints
from .observed import is_observed
from .once import find_second, list_keys


def to_data(value: typing.Any) -> typing.Any:
    """Convert dataclasses to data that JSON can represent; tuples become lists, bytes become text in base64."""
    if value is None or type(value) in (str, int, float, bool):
        return value
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {name: to_data(getattr(value, name)) for name in list_names(type(value))}
    if isinstance(value, dict):
        return {str(key): to_data(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_data(item) for item in value]
    return value


def load(cls: typing.Any, data: typing.Any, path: str = "") -> typing.Any:
    """Load ``data`` as type ``cls``: a dataclass, ``Optional``, ``Tuple[X, ...]``, ``Dict[str, X]``, ``Literal``, a
    plain type with or without a ``Literal`` beside it, ``bytes``, or with a form of the boundary ``Annotated[str,
    Form]``, ``Annotated[int, Range]``, and ``Annotated[Tuple[X, ...], Bound]`` or of a ``Dict``. An empty text means
    that the value is not known, and fits each form.

    The observation of one node (a dataclass of ``value`` and ``error``) gets an error where its value does not fit. The
    observations of other nodes are loaded.

    :raises LoadError: unknown key (with the nearest known one), missing key, wrong type, value out of a ``Literal``
    """
    try:
        return _fast(cls)(data)
    except Exception:  # the exact loader raises any error again, or loads the data
        return load_exactly(cls, data, path)


Loader = typing.Callable[[typing.Any], typing.Any]


@functools.cache
def _fast(cls: typing.Any) -> Loader:
    """Make a function that loads data as this type, or raises any error."""
    origin = typing.get_origin(cls)
    arguments = typing.get_args(cls)
    if cls is typing.Any:
        return lambda data: data
    if origin is typing.Union and len(list_options(cls)) == 1:
        return _fast_optional(_fast(list_options(cls)[0]))
    if origin is typing.Annotated:
        return _fast_formed(*arguments[:2])
    if origin is tuple:
        return _fast_tuple(_fast_item(arguments[0]), list_keys(arguments[0]))
    if origin is dict:
        return _fast_dict(_fast(key_type(arguments[0])), _fast(arguments[1]))
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
    """Make a function that loads a list or a mapping, and reads none of its items where these are too many."""

    def load_bound(data: typing.Any) -> typing.Any:
        if len(data) > bound.most:
            raise ValueError
        return load_items(data)

    return load_bound


def _fast_ranged(cls: typing.Any, form: Range, load_item: Loader) -> Loader:
    """Make a function that loads a number. A topology has a million of them, so the limits are compared here. NaN and
    booleans are refused."""
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
    return lambda data: data if data.__class__ is cls and cls is not float else load_plain(cls, data, "")


class _FastDataclass:
    """Loads a dataclass. The types of its fields are read at its first use, since a class may contain its own type."""

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
        except Exception:  # the exact loader makes the error of this node
            return load_exactly(self.type, data)

    def _load(self, data: typing.Any) -> typing.Any:
        if not isinstance(data, dict):
            raise TypeError
        fields = self.fields or self._read_fields()
        values = {}
        for key, item in data.items():
            plain_type, load_item = fields[key]
            values[key] = item if item.__class__ is plain_type else load_item(item)
        made = self.cls(**values)
        if self.sides is not None and find_beside(self.sides, made) is not None:
            raise ValueError
        return made

    def _read_fields(self) -> dict[str, tuple[typing.Any, Loader]]:
        """Return, by name of the field, the plain type whose values need no loader, and the loader of other values."""
        hints = read_hints(self.type)
        self.fields = {
            field.name: (_plain_type(hints[field.name]), _fast(hints[field.name]))
            for field in dataclasses.fields(self.cls)
        }
        return self.fields


def _plain_type(cls: typing.Any) -> typing.Any:
    """Return bool, int or str where the type is one of them, or ``Optional`` of it; otherwise a type that no value
    has. A float needs a loader, since it may be infinite."""
    if typing.get_origin(cls) is typing.Union and len(list_options(cls)) == 1:
        cls = list_options(cls)[0]
    return cls if cls in (bool, int, str) else Loader
