# SPDX-License-Identifier: GPL-3.0-or-later

"""The error for data that does not fit its dataclass, and the parts of its message: path, value, type and most similar
known word.
"""

from __future__ import annotations

import difflib
import itertools
import typing

from .errors import RdmaError
from .text import cut_plain, kind_of

#: bits of a whole number that a message shows
_MOST_BITS = 128
#: characters of a path and of a value in a message
_SHOWN = 200
#: known words that are searched for the nearest one, and characters of each. The lists of NCCL's variables and of the
#: checks have some 260 words
MOST_KNOWN, _MOST_OF_A_WORD = 400, 64
#: words of one answer for which the nearest one is searched: a file may have a million, and a reader corrects the first
#: few first
MOST_HINTS = 20


class LoadError(RdmaError):
    """The error for data that does not fit its dataclass.

    :ivar path: path in the data, as the user would write it: ``rdma_fabrics[0].select.hcas_per_node``
    :ivar seen: the value at that path, as text
    :ivar expected: the allowed values, as text
    """

    def __init__(self, path: str, seen: str, expected: str) -> None:
        path, seen = cut_plain(path, _SHOWN), cut_plain(seen, _SHOWN)
        super().__init__(f"{path}: {seen}; expected {expected}")
        self.path = path
        self.seen = seen
        self.expected = expected


def suggest_nearest(word: str, known: typing.Iterable[str]) -> str:
    """Return a hint for a message with the known word that is most similar to ``word``. Return an empty text if no word
    is similar, and if the search would be slow: among more than ``MOST_KNOWN`` words, or for a word of more than 64
    characters. Callers with an unlimited number of words use ``Hints``.

    :param word: unknown word of the user
    :param known: words that are allowed in its place
    """
    words = list(itertools.islice(known, MOST_KNOWN + 1))
    if len(word) > _MOST_OF_A_WORD or len(words) > MOST_KNOWN:
        return ""
    match = difflib.get_close_matches(
        word, sorted(item for item in words if len(item) <= _MOST_OF_A_WORD), n=1, cutoff=0.6
    )
    return f" (did you mean '{match[0]}'?)" if match else ""


class Hints:
    """A search for the most similar known word, which stops after ``MOST_HINTS`` calls because it is slow. Later calls
    return an empty hint.
    """

    def __init__(self) -> None:
        self._left = MOST_HINTS

    def nearest(self, word: str, known: typing.Iterable[str]) -> str:
        """Return a hint with the known word that is most similar to ``word``. Return an empty text if no word is
        similar, and from the call after ``MOST_HINTS`` calls on.
        """
        self._left -= 1
        return suggest_nearest(word, known) if self._left >= 0 else ""


def list_options(cls: typing.Any) -> tuple[typing.Any, ...]:
    """Return the member types of a ``Union``, without None."""
    return tuple(argument for argument in typing.get_args(cls) if argument is not type(None))


def refuse_value(cls: typing.Any, data: typing.Any, path: str) -> typing.NoReturn:
    """Raise the error for a value that is not of type ``cls``. The function never returns.

    :param cls: required type
    :param data: value that is refused
    :param path: path of the value in the data
    :raises LoadError: always
    """
    raise LoadError(path, describe_value(data), describe_type(cls))


def join_path(path: str, key: typing.Any) -> str:
    """Return the path of a key, given the path of its mapping."""
    return f"{path}.{key}" if path else str(key)


def describe_value(data: typing.Any) -> str:
    """Return a description of a value with its type, for a message. A list or mapping is described by its type
    alone.
    """
    if isinstance(data, int) and data.bit_length() > _MOST_BITS:
        # Python refuses to write a number of more than 4,300 digits
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


def describe_type(cls: typing.Any) -> str:
    """Return a description of the values that a type allows, for a message."""
    names = {bool: "a boolean", int: "an integer", float: "a number", str: "a string", bytes: "bytes in base64"}
    if cls in names:
        return names[cls]
    origin = typing.get_origin(cls)
    if origin is typing.Annotated:
        return str(typing.get_args(cls)[1].expected)
    if origin is typing.Union:
        return " or ".join(map(describe_type, list_options(cls)))
    if origin is tuple:
        return "a list"
    if origin is typing.Literal:
        return "one of: " + ", ".join(str(argument) for argument in typing.get_args(cls))
    return "a mapping"
