# SPDX-License-Identifier: GPL-3.0-or-later

"""Load plain data (JSON, YAML) as dataclasses, strictly, and convert dataclasses to plain data.

All data that enters the collection is loaded here: the intent of the user, and facts that a module returned. Facts and
intent are frozen dataclasses; their field types are the schema. Nodes have the standard library only, hence no
pydantic.

Each type has two loaders with equal results. The fast loader is built once per type and does not track the path within
the data. Data that it rejects goes to ``load_exactly``, which reports the mistake with its path.
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
    """Convert dataclasses to data that JSON can represent. Tuples become lists, bytes become base64 text."""
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
    """Load ``data`` as type ``cls``. Supported types: dataclass, ``Optional``, ``Tuple[X, ...]``, ``Dict[str, X]``,
    ``Literal``, a plain type with or without a ``Literal`` in a ``Union``, ``bytes``, and the annotated types
    ``Annotated[str, Form]``, ``Annotated[int, Range]`` and ``Annotated[X, Bound]`` with a tuple or ``Dict``. A field
    with an empty text is unknown and fits each form.

    A value that does not fit within an ``Observed`` becomes the error of that node. The observations of other nodes are
    loaded.

    :param data: plain data, such as the result of ``json.loads``
    :param path: path of ``data`` in the document of the user, for messages
    :raises LoadError: unknown key (with the most similar known one), missing key, wrong type, value not in a
        ``Literal``
    """
    try:
        return _fast(cls)(data)
    except Exception:  # the exact loader raises any error again, or loads the data
        return load_exactly(cls, data, path)


Loader = typing.Callable[[typing.Any], typing.Any]


@functools.cache
def _fast(cls: typing.Any) -> Loader:
    """Return the fast loader of a type. The loader returns the loaded data, or raises any exception if the data does
    not fit.
    """
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
    """Build a loader for a list or mapping that checks the number of items before it loads any of them.

    :param bound: largest permitted number of items
    :param load_items: loader for the list or mapping
    """

    def load_bound(data: typing.Any) -> typing.Any:
        if len(data) > bound.most:
            raise ValueError
        return load_items(data)

    return load_bound


def _fast_ranged(cls: typing.Any, form: Range, load_item: Loader) -> Loader:
    """Build a loader for a number. It compares the limits inline for speed, since a topology has a million numbers. It
    rejects NaN and booleans.

    :param cls: int or float
    :param form: plausible range of the number
    :param load_item: loader for a number of this type
    """
    least, most = form.least, form.most

    def load_ranged(data: typing.Any) -> typing.Any:
        value = data if data.__class__ is cls else load_item(data)
        if least <= value <= most:
            return value
        raise ValueError

    return load_ranged


def _fast_item(cls: typing.Any) -> Loader:
    """Build a loader for a list item. An empty text means an unknown value in a field, but is rejected as an item."""
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
    """The fast loader of a dataclass. It reads the field types at the first use, since a class may contain its own
    type.

    :ivar type: type with its type arguments, such as ``Observed[NodeHcas]``
    :ivar cls: dataclass without type arguments
    :ivar fields: type and loader of each field, by its name; empty before the first use
    :ivar observed: whether the type is ``Observed``
    :ivar sides: two groups of fields that exclude each other, from the attribute ``EITHER`` of the class: those of a
        value, and those of the reason why there is no value; None if the class has no such attribute
    """

    def __init__(self, cls: typing.Any) -> None:
        self.type, self.cls = cls, class_of(cls)
        self.fields: dict[str, tuple[typing.Any, Loader]] = {}
        self.observed = is_observed(cls)
        self.sides = list_sides(self.cls)

    def __call__(self, data: typing.Any) -> typing.Any:
        if not self.observed:
            return self._load_instance(data)
        try:
            return self._load_instance(data)
        except Exception:  # the exact loader makes the error of this node
            return load_exactly(self.type, data)

    def _load_instance(self, data: typing.Any) -> typing.Any:
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
        """Store in ``fields``, and return, two types by field name: a plain type (bool, int or str) whose values are
        accepted as they are, and the loader for all other values.
        """
        hints = read_hints(self.type)
        self.fields = {
            field.name: (_plain_type(hints[field.name]), _fast(hints[field.name]))
            for field in dataclasses.fields(self.cls)
        }
        return self.fields


def _plain_type(cls: typing.Any) -> typing.Any:
    """Return bool, int or str if the type is that type, or ``Optional`` of it: the fast loader accepts such values
    without a call. Return ``Loader`` for any other type, which no value has, so that the loader of the type is always
    called. A float has a loader because it may be infinite.
    """
    if typing.get_origin(cls) is typing.Union and len(list_options(cls)) == 1:
        cls = list_options(cls)[0]
    return cls if cls in (bool, int, str) else Loader
