# SPDX-License-Identifier: GPL-3.0-or-later

"""Answers of a BMC that cost the controller more than they are worth."""

from __future__ import annotations

import gzip
import http.client
import io
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._observe.http_response import (
    MOST_HEAD,
    BoundedResponse,
    HeadError,
)
from ansible_collections.linerate.rdma.plugins.module_utils._observe.redfish.bmc import Bmc, BmcError
from ansible_collections.linerate.rdma.plugins.module_utils._observe.redfish.session import (
    _MOST_PARTS,
    LARGEST,
    Session,
)
from ansible_collections.linerate.rdma.plugins.module_utils._observe.redfish.trust import Trust
from ansible_collections.linerate.rdma.tests.unit.limit import bounded

INTERIM = b"HTTP/1.1 100 Continue\r\n\r\n"
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


class Socket:
    def __init__(self, sent: bytes) -> None:
        self.sent = io.BytesIO(sent)

    def makefile(self, _mode: str) -> io.BytesIO:
        return self.sent


def response(interim: int) -> BoundedResponse:
    return BoundedResponse(typing.cast(typing.Any, Socket(INTERIM * interim + ANSWER)), method="GET")


def test_a_few_interim_answers_are_passed_over() -> None:
    found = response(8)
    found.begin()
    assert (found.status, found.read()) == (200, b"{}")


def test_an_endless_row_of_them_is_an_error() -> None:
    found = response(1000)
    with pytest.raises(http.client.HTTPException, match="interim"):
        found.begin()
    assert found.fp.tell() < 10 * len(INTERIM)


OK = b"HTTP/1.1 200 OK\r\n"
LINE = b"x" * 65_000


@pytest.mark.parametrize(
    ("head", "told"),
    [
        # each of these lines was 21,000 headers to the standard library
        (OK + (b"X: " + b"\ra:" * 21_000 + b"\r\n") * 97, "a line of its header contains a CR that is not at its end"),
        (OK + b"X: y\rTransfer-Encoding: chunked\r\n", "a line of its header contains a CR that is not at its end"),
        (OK + b"X: y\r\r\n", "a line of its header contains a CR that is not at its end"),
        (OK + b"X: " + LINE + b"\r\n" + b" " + LINE + b"\r\n", "more than 65536 bytes"),
        (INTERIM[:-2] + b"X: " + LINE + b"\r\n\r\n" + OK + b"X: " + LINE + b"\r\n", "more than 65536 bytes"),
        (b"HTTP/1.1 200 " + LINE + b"\r\nX: " + LINE + b"\r\n", "more than 65536 bytes"),
    ],
    ids=["lines in a line", "header in a header", "two CRs", "folded", "interim", "status line"],
)
def test_a_head_that_no_bmc_sends_is_an_error_before_it_is_parsed(head: bytes, told: str) -> None:
    found = BoundedResponse(typing.cast(typing.Any, Socket(head + b"\r\n{}")), method="GET")
    with pytest.raises(HeadError, match=told):
        found.begin()
    assert found.headers is None and found.fp.tell() <= MOST_HEAD + 1


def test_a_large_head_is_read_as_before() -> None:
    lines = b"".join(b"X-%d: %s\r\n" % (number, b"y" * 600) for number in range(90))
    found = BoundedResponse(typing.cast(typing.Any, Socket(OK + lines + b"Content-Length: 2\r\n\r\n{}")), method="GET")
    found.begin()
    assert (len(found.headers), found.read()) == (91, b"{}")


@pytest.mark.parametrize("encoding", ["identity", "gzip"])
def test_so_is_an_answer_in_endless_small_chunks(encoding: str) -> None:
    head = f"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Encoding: {encoding}\r\n\r\n".encode()
    # of gzip: the head of a stream, then blocks with nothing in them
    parts = (
        [b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff", b"\x00\x00\x00\xff\xff"] if encoding == "gzip" else [b" ", b" "]
    )
    chunks = [b"%x\r\n%s\r\n" % (len(part), part) for part in parts]
    found = BoundedResponse(
        typing.cast(typing.Any, Socket(head + chunks[0] + chunks[1] * (2 * _MOST_PARTS))), method="GET"
    )
    found.begin()
    with pytest.raises(BmcError, match="parts"):
        Session(Bmc("worker-1", "localhost", 443, "user", "password"), Trust(False), 60.0)._read(
            "GET /redfish/v1", found
        )


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize("end", [b"0\r\n" + b"a: b\r\n" * 1_000_000, (b"1;" + b"x" * 60_000 + b"\r\n \r\n") * 100])
def test_an_endless_trailer_and_endless_extensions_of_chunks_are_errors(end: bytes) -> None:
    found = BoundedResponse(typing.cast(typing.Any, Socket(CHUNKED + b"2\r\n{}\r\n" + end)), method="GET")
    found.begin()
    stream = found.fp
    with pytest.raises(http.client.HTTPException, match=r"trailer and the extensions .* more than 65536"):
        found.read(8 << 20)
    assert stream.tell() < 200_000


def test_chunks_with_an_extension_and_a_trailer_are_read() -> None:
    body = b"1;name=value\r\n{\r\n" + b"1\r\n \r\n" * 70_000 + b"1\r\n}\r\n0\r\nDigest: x\r\n\r\n"
    found = BoundedResponse(typing.cast(typing.Any, Socket(CHUNKED + body)), method="GET")
    found.begin()
    assert found.read().strip() == b"{" + b" " * 70_000 + b"}" and found.isclosed()


class Endless(io.RawIOBase):
    """An answer, and behind it bytes without end."""

    def __init__(self, sent: bytes) -> None:
        self.sent = 0
        self._first = sent

    def readable(self) -> bool:
        return True

    def readinto(self, place: typing.Any) -> int:
        found = self._first[: len(place)] or bytes(len(place))
        self._first = self._first[len(found) :]
        place[: len(found)] = found
        self.sent += len(found)
        return len(found)


def read(body: bytes) -> tuple[Endless, bytes]:
    """Read an answer of 100 GB, packed by gzip, that begins with a body."""
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\nContent-Encoding: gzip\r\n\r\n"
    stream = Endless(head + body)
    sock = typing.cast(typing.Any, Socket(b""))
    sock.sent = io.BufferedReader(stream)
    found = BoundedResponse(sock, method="GET")
    found.begin()
    session = Session(Bmc("worker-1", "localhost", 443, "user", "password"), Trust(False), 60.0)
    return stream, session._read("GET /redfish/v1", found)


@pytest.mark.parametrize("behind", [b"", b"x", b"x" * 100_000], ids=["at the end of a part", "in its part", "more"])
def test_bytes_behind_the_end_of_a_packed_answer_are_an_error_at_once(behind: bytes) -> None:
    with bounded(1), pytest.raises(BmcError, match="has bytes after the end of the gzip data") as refused:
        read(gzip.compress(b"{}") + behind)
    assert refused.value.cause == "not_json"


def test_a_packed_answer_that_unpacks_to_nothing_has_the_limit_of_others() -> None:
    # blocks with nothing in them: each costs five bytes and becomes none
    empty = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff" + b"\x00\x00\x00\xff\xff" * (LARGEST // 5 + 20_000)
    with pytest.raises(BmcError, match="more than 4 MiB"):
        read(empty)


def test_a_packed_answer_is_read() -> None:
    body = gzip.compress(b'{"a": 1}')
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\nContent-Encoding: gzip\r\n\r\n".encode()
    found = BoundedResponse(typing.cast(typing.Any, Socket(head + body)), method="GET")
    found.begin()
    session = Session(Bmc("worker-1", "localhost", 443, "user", "password"), Trust(False), 60.0)
    assert session._read("GET /redfish/v1", found) == b'{"a": 1}'
