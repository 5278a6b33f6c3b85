# SPDX-License-Identifier: GPL-3.0-or-later

"""Answers of a BMC that cost the controller more than they are worth."""

from __future__ import annotations

import http.client
import io
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._observe.redfish.bmc import Bmc, BmcError
from ansible_collections.linerate.rdma.plugins.module_utils._observe.redfish.session import (
    _MOST_PARTS,
    Session,
    _Response,
)
from ansible_collections.linerate.rdma.plugins.module_utils._observe.redfish.trust import Trust

INTERIM = b"HTTP/1.1 100 Continue\r\n\r\n"
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


class Socket:
    def __init__(self, sent: bytes) -> None:
        self.sent = io.BytesIO(sent)

    def makefile(self, _mode: str) -> io.BytesIO:
        return self.sent


def response(interim: int) -> _Response:
    return _Response(typing.cast(typing.Any, Socket(INTERIM * interim + ANSWER)), method="GET")


def test_a_few_interim_answers_are_passed_over() -> None:
    found = response(8)
    found.begin()
    assert (found.status, found.read()) == (200, b"{}")


def test_an_endless_row_of_them_is_an_error() -> None:
    found = response(1000)
    with pytest.raises(http.client.HTTPException, match="interim"):
        found.begin()
    assert found.fp.tell() < 10 * len(INTERIM)


@pytest.mark.parametrize("encoding", ["identity", "gzip"])
def test_so_is_an_answer_in_endless_small_chunks(encoding: str) -> None:
    head = f"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Encoding: {encoding}\r\n\r\n".encode()
    # of gzip: the head of a stream, then blocks with nothing in them
    parts = (
        [b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff", b"\x00\x00\x00\xff\xff"] if encoding == "gzip" else [b" ", b" "]
    )
    chunks = [b"%x\r\n%s\r\n" % (len(part), part) for part in parts]
    found = _Response(typing.cast(typing.Any, Socket(head + chunks[0] + chunks[1] * (2 * _MOST_PARTS))), method="GET")
    found.begin()
    with pytest.raises(BmcError, match="parts"):
        Session(Bmc("worker-1", "localhost", 443, "user", "password"), Trust(False), 60.0)._read(
            "GET /redfish/v1", found
        )
