# SPDX-License-Identifier: GPL-3.0-or-later

"""Decode JSON that the collection did not write, within limits on its size, its depth and the memory that its values
take.

Source of the format: RFC 8259. It does not define the meaning of duplicate keys and of numbers out of range (sections 4
and 6), and does not allow NaN and Infinity.
"""

from __future__ import annotations

import json
import math
import re
import typing

from .._model.base.errors import ParseError

MIB = 1024 * 1024
#: bytes of an answer unless its place says otherwise
MOST_BYTES = 4 * MIB
#: bytes of what a node answers as a whole, to a module or a command
MOST_ANSWER = 16 * MIB
#: the same of what it tells of its whole fabric. Fabrics of tens of thousands of ports have some ten MiB
MOST_FABRIC_ANSWER = 64 * MIB
#: characters of one text in JSON. The longest by right are objects of Kubernetes, of which etcd takes 1.5 MiB
MOST_OF_A_TEXT = 4 * MIB
#: levels of lists and mappings. Objects of Kubernetes have fewer than 20; Python's own recursion ends at 1,000, and the
#: walks of this collection before that
MOST_DEPTH = 64
#: digits of a whole number. The longest that any tool prints are counters and GUIDs of 64 bits, 20 digits; GUIDs of 128
#: bits have 39
_MOST_DIGITS = 64
#: memory of CPython for each sign of JSON that makes a value: an empty mapping takes 64 bytes and its place in a list 8
_BYTES_OF_VALUE = 72
#: memory that the values of an answer may take for each byte that its text may have
_GROWTH = 4
#: bytes that a text of JSON may have for each value in it
BYTES_A_VALUE = _BYTES_OF_VALUE // _GROWTH
#: what may be a longer one, in a text of JSON
_LONG_NUMBER = re.compile(f"[0-9]{{{_MOST_DIGITS + 1}}}")
_LONE = re.compile("[\ud800-\udfff]")
#: what may be the escape of one, in a text of JSON
_ESCAPED = re.compile(r"\\u[dD][89a-fA-F]")


def decode_json(
    text: typing.Union[str, bytes],
    what: str,
    most_bytes: int = MOST_BYTES,
    most_depth: int = MOST_DEPTH,
    unique: bool = True,
) -> typing.Any:
    """Decode JSON that comes from a node, a pod, an API, a BMC or a folder, within limits on its size.

    :param text: JSON text; bytes are UTF-8
    :param what: tool, API or file that the JSON is from, for messages
    :param most_bytes: maximum number of bytes, or of characters of a text. The decoded values may take four times as
        many bytes of memory
    :param most_depth: maximum number of levels of lists and mappings
    :param unique: whether a key that occurs twice in one mapping is an error. If False, which is for tools that may
        write such mappings, the last value is used
    :raises ParseError: the data is not valid text, is too large or too deep, or is not JSON; or it has a duplicate key,
        NaN, Infinity, an integer of more than 64 digits, a number beyond the range of 64-bit floating point, or half of
        a surrogate pair
    """
    if not isinstance(text, (str, bytes)):
        raise ParseError(what, f"a {type(text).__name__}", "text")
    if len(text) > most_bytes:
        raise ParseError(what, f"text of {len(text)} bytes", f"text of at most {most_bytes} bytes")
    if isinstance(text, bytes):
        text = _decode_utf8(text, what)
    values = count_values(text)
    if values > most_bytes // BYTES_A_VALUE:
        raise ParseError(what, f"JSON of {values} values", f"JSON of at most {most_bytes // BYTES_A_VALUE} values")
    try:
        data = json.loads(
            text,
            object_pairs_hook=_build_unique_mapping if unique else None,
            parse_int=_parse_integer,
            parse_float=_parse_float,
            parse_constant=_refuse_constant,
        )
    except _Refused as error:
        raise ParseError(what, error.seen, error.expected) from None
    except RecursionError:
        raise _too_deep(what, most_depth) from None
    except ValueError as error:
        raise ParseError(what, text.strip(), f"JSON ({error})") from None
    _limit_depth(data, what, most_depth)
    if _LONE.search(text) or (_ESCAPED.search(text) and any(map(_LONE.search, _list_texts(data)))):
        raise ParseError(what, "half of a surrogate pair", "Unicode")
    longest = longest_text(data) if len(text) > MOST_OF_A_TEXT else 0
    if longest > MOST_OF_A_TEXT:
        raise ParseError(what, f"a text of {longest} characters", f"texts of at most {MOST_OF_A_TEXT} characters")
    return data


def _list_texts(data: typing.Any) -> typing.Iterator[str]:
    """Yield all texts and keys in lists and mappings of any depth, without copying the data."""
    left = [data]
    while left:
        item = left.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, dict):
            left += item.keys()
            left += item.values()
        elif isinstance(item, list):
            left += item


def longest_text(data: typing.Any) -> int:
    """Return the number of characters of the longest text or key in lists and mappings of any depth. Return 0 if there
    is no text.
    """
    return max(map(len, _list_texts(data)), default=0)


def describe_excess(text: str, most_bytes: int = MOST_BYTES, most_depth: int = MOST_DEPTH) -> str:
    """Return the reason why JSON exceeds the limits with which the collection reads its own files: too many bytes,
    values or levels, or a number of too many digits. Return an empty string if it is within the limits.

    :param text: JSON of ASCII characters, as the collection would write it
    :param most_bytes: maximum number of bytes
    :param most_depth: maximum number of levels of lists and mappings
    """
    values = count_values(text)
    if len(text) > most_bytes:
        return f"{len(text)} bytes; the limit is {most_bytes}"
    if values > most_bytes // BYTES_A_VALUE:
        return f"{values} values; the limit is {most_bytes // BYTES_A_VALUE}"
    if _is_deep(text.encode(), most_depth):
        return f"more than {most_depth} levels of lists and mappings"
    return _find_long_number(text) if _LONG_NUMBER.search(text) else ""


def _find_long_number(text: str) -> str:
    """Return a message if a JSON text has a whole number of more than 64 digits. Return an empty string if it has none.
    Digits inside of a string are not examined.
    """
    try:
        json.loads(text, parse_int=_parse_integer)
    except _Refused:
        return f"a number of more than {_MOST_DIGITS} digits"
    return ""


def count_values(text: typing.Union[str, bytes]) -> int:
    """Return an upper limit of the number of values in a JSON text: the number of its commas and opening brackets,
    including those in strings. It is faster than :func:`count_values_outside_strings`.
    """
    if isinstance(text, bytes):
        return text.count(b",") + text.count(b"[") + text.count(b"{")
    return text.count(",") + text.count("[") + text.count("{")


def count_values_outside_strings(text: bytes) -> int:
    """Return a closer upper limit of the number of values in a JSON text than :func:`count_values`: the number of its
    commas and opening brackets outside of strings.

    This takes three times the memory of the text, and more time than :func:`count_values`. If the text has more strings
    than its values allow, it is not JSON, and the result is that of :func:`count_values`.
    """
    plain = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    most = count_values(text)
    if plain.count(b'"') > 4 * (most + 1):
        return most
    return sum(map(count_values, plain.split(b'"')[::2]))


def decode_answer(text: bytes, what: str, most_depth: int = MOST_DEPTH, most_values: int = 0) -> typing.Any:
    """Decode the response of an API server, which may be a list of thousands of objects.

    A list or mapping that is nested deeper than ``most_depth`` levels is replaced by None. No kind of Kubernetes uses
    so many levels, and the other objects of the list stay readable. The depth is checked in the text, which is much
    faster than a walk through the values.

    :param what: name of the response in messages
    :param most_depth: maximum number of levels of lists and mappings
    :param most_values: maximum number of values; 0 for no limit, as for a list
    :raises ParseError: the response has too many values, is not JSON, or has NaN, Infinity, an integer of more than 64
        digits or a number beyond the range of 64-bit floating point
    """
    if most_values and count_values(text) > most_values and count_values_outside_strings(text) > most_values:
        raise ParseError(what, "JSON of more values", f"JSON of at most {most_values} values")
    try:
        return json.loads(
            _decode_utf8(_cut_deep_values(text, most_depth), what),
            parse_int=_parse_integer,
            parse_float=_parse_float,
            parse_constant=_refuse_constant,
        )
    except _Refused as error:
        raise ParseError(what, error.seen, error.expected) from None
    except RecursionError:
        raise _too_deep(what, most_depth) from None
    except ValueError as error:
        raise ParseError(what, text[:200].decode(errors="replace").strip(), f"JSON ({error})") from None


_SIGNS = bytes(sorted(set(range(256)) - set(b'[]{}"\\')))
_SAME = bytes.maketrans(b"{}", b"[]")
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"?|[\[\]{}]', re.DOTALL)


def _is_deep(text: bytes, most: int) -> bool:
    """Return whether a list or mapping in a JSON text is nested deeper than ``most`` levels. Unlike
    :func:`_may_be_deep`, the result is exact.
    """
    depth = 0
    for token in _TOKEN.finditer(text) if _may_be_deep(text, most) else ():
        depth += 1 if token[0] in b"[{" else -1 if token[0] in b"]}" else 0
        if depth > most:
            return True
    return False


def _may_be_deep(text: bytes, most: int) -> bool:
    """Return False if no list or mapping in a JSON text can be nested deeper than ``most`` levels, otherwise True.
    Unlike :func:`_is_deep`, this is an estimate: it may return True for a text that is not so deep, and is much faster.
    """
    signs = text.translate(_SAME, _SIGNS)
    # two quotes side by side are a text without a bracket, or end one and begin the next
    signs = signs.replace(b"\\\\", b"").replace(b'\\"', b"").replace(b'""', b"")
    levels = b"".join(signs.split(b'"')[::2])
    for _level in range(most):
        levels = levels.replace(b"[]", b"")
        if not levels:
            return False
    return True


def _cut_deep_values(text: bytes, most: int) -> bytes:
    """Return a JSON text with null in place of each list and mapping that is nested deeper than ``most`` levels. A text
    that ends within such a list or mapping is returned unchanged.
    """
    if not _may_be_deep(text, most):
        return text
    kept, end, depth = [], 0, 0
    for token in _TOKEN.finditer(text):
        if token[0] in b"[{":
            depth += 1
            if depth == most + 1:
                kept += [text[end : token.start()], b"null"]
        elif token[0] in b"]}":
            if depth == most + 1:
                end = token.end()
            depth -= 1
    return b"".join((*kept, text[end:])) if depth <= most else text


def _decode_utf8(text: bytes, what: str) -> str:
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        raise ParseError(what, f"byte {error.start}: 0x{text[error.start]:02x}", "UTF-8") from None


class _Refused(Exception):
    """The error for a value in JSON that Python's decoder accepts, but this collection does not: a duplicate key, NaN,
    Infinity, or a number that is too long or too large.

    :ivar seen: the value
    :ivar expected: description of an allowed value
    """

    def __init__(self, seen: str, expected: str) -> None:
        super().__init__(seen)
        self.seen = seen
        self.expected = expected


def _build_unique_mapping(pairs: list[tuple[str, typing.Any]]) -> dict[str, typing.Any]:
    """Return the mapping of a JSON object.

    :param pairs: keys and values of the object
    :raises _Refused: a key occurs twice
    """
    made = dict(pairs)
    if len(made) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _value in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise _Refused(twice, "a key that occurs once in its mapping")
    return made


def _parse_integer(text: str) -> int:
    if len(text.lstrip("-")) > _MOST_DIGITS:
        raise _Refused(text, f"a number of at most {_MOST_DIGITS} digits")
    return int(text)


def _parse_float(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise _Refused(text, "a number of 64 bits")
    return number


def _refuse_constant(text: str) -> typing.NoReturn:
    raise _Refused(text, "a number")


def _limit_depth(data: typing.Any, what: str, most: int) -> None:
    """Verify that decoded JSON has at most ``most`` levels of lists and mappings.

    :param what: tool, API or file that the data is from, for messages
    :raises ParseError: the data has more levels
    """
    level = [data]
    for _depth in range(most):
        level = [
            child
            for item in level
            if isinstance(item, (dict, list))
            for child in (item.values() if isinstance(item, dict) else item)
            if isinstance(child, (dict, list))
        ]
        if not level:
            return
    raise _too_deep(what, most)


def _too_deep(what: str, most: int) -> ParseError:
    return ParseError(what, "nesting of lists and mappings", f"nesting of at most {most} levels")
