# SPDX-License-Identifier: GPL-3.0-or-later

"""Read answers of the API server up to a limit of bytes and JSON values, and split them into pages, objects,
lines and events.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import time
import typing

from ..._model.base.errors import ParseError
from ..._model.boundary.form import describe_rejected
from ..._parse.kubernetes.resource import NOT_READ, title_of
from ..._parse.limits import MIB, count_values, count_values_outside_strings, decode_answer
from .errors import TOO_LARGE, ApiError, HTTPError
from .kinds import Kind, Resource

#: whether an object counts, by its metadata
Choice = typing.Callable[[Resource], bool]
#: bytes of a page, and values in it. 500 nodes have 15 MB and 600,000 values, 500 pods less; the memory of so many
#: values is 100 to 250 MiB. One object that fills a page alone may have twice as many: etcd takes 1.5 MiB of it, and an
#: empty message in a list has two bytes there and two signs here, so 1,600,000 are the most
MOST_PAGE, MOST_PAGE_VALUES = 32 * MIB, 1_000_000
#: values of an object, or bytes, with more than which it is left where a list of a kind in _PARTIAL becomes larger than
#: that: a node has 1,200 and 30 kB. Values of its metadata that are kept then
LARGE_VALUES, LARGE_BYTES, MOST_METADATA = 10_000, MIB // 4, 2_000
#: bytes of one object. etcd takes 1.5 MiB of what is asked to be written, and the event around it has a few more
MOST_OBJECT = 8 * MIB
#: bytes that a value has in an object as others make it, with the names around it. Text with more signs of values than
#: that has them in its strings
BYTES_OF_A_VALUE = 8
#: values in it: with their memory of 72 bytes each, they cost 16 MiB
MOST_VALUES = 16 * MIB // 72


@dataclasses.dataclass(frozen=True)
class Page:
    """One page of a list of objects.

    :ivar items: the objects
    :ivar version: resourceVersion of the list
    :ivar values: number of JSON values in the text of the page
    :ivar size: size of that text in bytes
    """

    items: tuple[Resource, ...]
    version: str
    values: int
    size: int

    def chosen(self, only: Choice) -> Page:
        """Return a copy of the page with only the objects that a filter accepts.

        :param only: function that gets an object and returns whether it is accepted
        """
        items = tuple(filter(only, self.items))
        if len(items) == len(self.items):
            return self
        texts = [json.dumps(item) for item in items]
        return Page(items, self.version, sum(map(count_values, texts)), sum(map(len, texts)))


def read_body(response: typing.Any, where: str, what: str, most: int) -> bytes:
    """Return the body of an answer of the API server.

    :param response: ``HTTPResponse`` of urllib3, not read yet
    :param where: method and path of the request, for error messages
    :param what: name of the answer, for error messages
    :param most: maximum size of the body in bytes
    :raises ApiError: the body is larger than the limit, or the connection broke
    """
    return read_counted(response, where, what, most, 0)[0]


def read_counted(
    response: typing.Any,
    where: str,
    what: str,
    most: int,
    most_values: int,
    seconds: float = 0.0,
    most_signs: int = 0,
) -> tuple[bytes, int]:
    """Return the body of an answer of the API server, and the number of JSON values in it.

    :param response: ``HTTPResponse`` of urllib3, not read yet
    :param where: method and path of the request, for error messages
    :param what: name of the answer, for error messages
    :param most: maximum size of the body in bytes
    :param most_values: maximum number of JSON values. 0 means no limit, and the number is returned as 0
    :param seconds: limit in seconds for the whole answer; 0 means no limit
    :param most_signs: maximum number of characters that may begin a value, including those in strings, where a client
        can put any number of them. Only those outside of strings count against ``most_values``. 0 means the same limit
        as ``most_values``
    :raises ApiError: the answer exceeds a limit, or the connection broke
    """
    said = bytearray()
    values = 0
    end = time.monotonic() + seconds
    try:
        for part in response.stream(65536, decode_content=True):
            if seconds and time.monotonic() >= end:
                response.close()
                raise ApiError(0, "Unreachable", f"the {what} did not end within {seconds:g} s", where)
            said += part
            values += count_values(part) if most_values else 0
            if len(said) > most or values > max(most_values, most_signs):
                response.close()
                limit = f"{most} bytes" if len(said) > most else f"{most_values} values"
                raise ApiError(response.status, TOO_LARGE, f"the {what} has more than {limit}", where)
    except (HTTPError, OSError) as error:
        raise ApiError(0, "Unreachable", f"the response was cut off: {error}", where) from error
    body = bytes(said)
    if most_signs and values > min(most_values, len(body) // BYTES_OF_A_VALUE):
        values = count_values_outside_strings(body)
        if values > most_values:
            raise ApiError(response.status, TOO_LARGE, f"the {what} has more than {most_values} values", where)
    return body, values


def read_page(response: typing.Any, where: str, objects: int = 0) -> tuple[bytes, int]:
    """Return the body of one page of a list, and the number of JSON values in it.

    :param response: ``HTTPResponse`` of urllib3, not read yet
    :param where: method and path of the request, for error messages
    :param objects: number of objects that were requested; 0 if not known. A page of one object may have twice as many
        values as another page
    :raises ApiError: the page exceeds its limits, or the connection broke
    """
    if objects != 1:
        return read_counted(response, where, "page", MOST_PAGE, MOST_PAGE_VALUES)
    return read_counted(response, where, "page", MOST_PAGE, 2 * MOST_PAGE_VALUES, most_signs=MOST_OBJECT)


def read_object(
    response: typing.Any, where: str, most_bytes: int = MOST_OBJECT, most_values: int = MOST_VALUES
) -> Resource:
    """Return the JSON object in the body of an answer.

    :param response: ``HTTPResponse`` of urllib3, not read yet
    :param where: method and path of the request, for error messages
    :param most_bytes: maximum size of the body in bytes
    :param most_values: maximum number of JSON values
    :raises ApiError: the answer exceeds a limit, is not a JSON object, or the connection broke
    """
    return decode_object(read_body(response, where, "answer", most_bytes), response.status, where, most_values)


def decode_object(body: bytes, status: int, where: str, most_values: int = 0) -> Resource:
    """Return the JSON object that the body of an answer contains.

    :param body: body of the answer
    :param status: HTTP status of the answer, for the error
    :param where: method and path of the request, for error messages
    :param most_values: maximum number of JSON values; 0 means no limit
    :raises ApiError: the text is not a JSON object, or has more values
    """
    try:
        data = decode_answer(body, "the response", most_values=most_values)
    except ParseError as error:
        raise ApiError(status, "Unreadable", str(error), where) from error
    if not isinstance(data, dict):
        raise ApiError(status, "Unreadable", "the response is not an object", where)
    return data


def describe_too_large() -> str:
    return f"larger than {MOST_PAGE} bytes or {2 * MOST_PAGE_VALUES} values, and was not read"


def cut_largest(items: typing.Sequence[Resource]) -> tuple[list[Resource], int, int]:
    """Reduce the largest objects of a list to their metadata and the key ``NOT_READ`` with the reason. Return three
    values: all objects in their order, and the total numbers of their JSON values and bytes.

    Only objects larger than any in a normal cluster are reduced, so a list of many small objects remains too large.

    :param items: objects as the API server sent them
    """
    why = f"larger than {LARGE_VALUES} values or {LARGE_BYTES} bytes in a list that is too large, and was not read"
    kept: list[Resource] = []
    values = size = 0
    for item in items:
        text = json.dumps(item)
        if count_values(text) > LARGE_VALUES or len(text) > LARGE_BYTES:
            metadata = item.get("metadata")
            metadata = metadata if isinstance(metadata, dict) else {}
            parts = {
                key: metadata[key]
                for key in ("name", "namespace", "uid", "resourceVersion", "labels", "ownerReferences")
                if key in metadata and count_values(json.dumps(metadata[key])) <= MOST_METADATA
            }
            kept.append({"kind": item.get("kind"), "metadata": parts, NOT_READ: why})
            text = json.dumps(kept[-1])
        else:
            kept.append(item)
        values, size = values + count_values(text), size + len(text)
    return kept, values, size


def describe_place(item: Resource) -> str:
    """Return the kind and name of an object as text for messages, such as ``Pod worker-0 in namespace ml``."""
    space = find_metadata(item, "namespace")
    return title_of(item) + (f" in namespace {describe_rejected(space)}" if space else "")


def list_items(kind: Kind, data: Resource, path: str) -> typing.Iterator[Resource]:
    """Yield the objects of a list. The kind is added to each object, because the API leaves it out in lists.

    :param kind: kind of the objects. It is added only if it is a name of ``KINDS``
    :param data: the decoded list
    :param path: path of the list in the API, for error messages
    :raises ApiError: the answer is not a list of objects
    """
    # an empty list of metadata has null for its items
    items = [] if data.get("items", False) is None else data.get("items")
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise ApiError(200, "Unreadable", "the response is not a list", f"GET {path}")
    named = {"kind": kind} if isinstance(kind, str) else {}
    yield from ({**named, **item} for item in items)


def find_metadata(data: Resource, key: str) -> str:
    """Return a value from the metadata of a list or an object as text. Return an empty string if it is missing.

    :param data: the list or the object
    :param key: key in its metadata, such as ``resourceVersion``
    """
    metadata = data.get("metadata")
    return str(metadata.get(key) or "") if isinstance(metadata, dict) else ""


def find_version(data: Resource) -> str:
    return find_metadata(data, "resourceVersion")


def read_lines(response: typing.Any, where: str) -> typing.Iterator[bytes]:
    """Yield the lines of a watch without blank ones. Each line is one event with one object.

    :param response: ``HTTPResponse`` of urllib3, not read yet
    :param where: method and path of the request, for error messages
    :raises ApiError: a line exceeds the limits of an object. Its status is 410, as for a version that is too old, so
        the caller lists the objects again and continues the watch after that
    """
    large = ApiError(410, TOO_LARGE, "an event is too large, so the list is read again", where)
    rest: list[bytes] = []
    size = 0
    for chunk in response.stream(amt=None, decode_content=False):
        first, *more = chunk.split(b"\n")
        rest.append(first)
        size += len(first)
        if size > MOST_OBJECT:
            raise large
        if more:
            lines = (b"".join(rest), *more[:-1])
            rest, size = [more[-1]], len(more[-1])
            for line in filter(bytes.strip, lines):
                if count_values(line) > MOST_VALUES and count_values_outside_strings(line) > MOST_VALUES:
                    raise large
                yield line


def read_events(response: typing.Any, path: str) -> typing.Iterator[Resource]:
    """Yield the events of a watch until the server ends it, and close the response in all cases.

    :param response: ``HTTPResponse`` of urllib3, not read yet
    :param path: path of the watch in the API, for error messages
    :raises ApiError: the event is an ERROR, is too large or is no mapping, or the connection broke
    """
    try:
        for line in read_lines(response, f"WATCH {path}"):
            event = decode_answer(line, "a watch event")
            if not isinstance(event, dict):
                raise ValueError(f"a watch event is of type {type(event).__name__}; expected a mapping")
            if event.get("type") == "ERROR":
                status = event.get("object", {})
                raise ApiError(
                    int(status.get("code", 500)),
                    str(status.get("reason", "")),
                    str(status.get("message", "")),
                    f"WATCH {path}",
                )
            yield event
    except (HTTPError, OSError, ValueError, ParseError) as error:
        raise ApiError(0, "Unreachable", f"the watch was interrupted: {error}", f"WATCH {path}") from error
    finally:
        with contextlib.suppress(HTTPError, OSError):
            response.close()


def list_warnings(response: typing.Any) -> tuple[str, ...]:
    """Return the warnings in the header of an answer. Each has the form ``Warning: 299 - "text"``, and only the text is
    returned.

    :param response: answer of the API server
    """
    values = response.headers.getlist("Warning") if hasattr(response.headers, "getlist") else []
    return tuple(value.partition('"')[2].rstrip('"') for value in values)
