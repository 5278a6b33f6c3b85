# SPDX-License-Identifier: GPL-3.0-or-later

"""Who answers an exec before it is a websocket, an API server or what stands before it, has so many bytes and
seconds."""

from __future__ import annotations

import base64
import hashlib
import socket
import threading
import types

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.exec import channels
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.exec.channels import (
    MOST_ANSWER,
    Channels,
)
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.exec.exec_connection import Refused, Way
from ansible_collections.linerate.rdma.tests.unit.hostile.test_redirected_exec import Configuration, Server

FRAME = b"\x82\x03\x01hi"


def opened(port: int, seconds: float = 5.0) -> Channels:
    return Way(Configuration(port), ()).open("/api/v1/namespaces/n/pods/p/exec", [("command", "x")], seconds)


@pytest.mark.parametrize(
    "header",
    [
        "X-A: " + "a" * 2 * MOST_ANSWER,
        "\r\n".join(f"X-{number}: {'a' * 1000}" for number in range(2 * MOST_ANSWER // 1000)),
    ],
)
def test_an_answer_of_more_bytes_than_any_is_refused(header: str) -> None:
    api = Server(f"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n{header}\r\n\r\n")
    try:
        with pytest.raises(Refused, match=f"no connection: the response has more than {MOST_ANSWER} bytes"):
            opened(api.port)
    finally:
        api.stop()


class Through(Configuration):
    """A client behind a proxy, which is all that it reaches."""

    def __init__(self, port: int, scheme: str) -> None:
        super().__init__(1)
        self.host = f"{scheme}://api.example:6443"
        self.proxy, self.no_proxy, self.proxy_headers = (
            f"http://127.0.0.1:{port}",
            None,
            {"proxy-authorization": "Basic dXNlcjpwYXNz"},
        )
        self.verify_ssl = self.assert_hostname = False
        self.ssl_ca_cert = self.cert_file = self.key_file = None


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize(
    ("answer", "seen"),
    [
        ("HTTP/1.1 200 OK\r\nX-A: " + "a" * 2 * MOST_ANSWER, f"the response has more than {MOST_ANSWER} bytes"),
        ("HTTP/1.1 200 OK\r\n" + "X-A: a\r\n" * MOST_ANSWER, f"the response has more than {MOST_ANSWER} bytes"),
        (
            "HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 99999999\r\n\r\n" + "a" * MOST_ANSWER,
            "failed CONNECT via proxy status: 407",
        ),
        ("HTTP/1.1 ²00 OK\r\n\r\n", "failed CONNECT via proxy status: none"),
        ("a\n\n", "failed CONNECT via proxy status: none"),
        ("HTTP/1.1 200 OK\r\n", "the proxy closed the connection"),
    ],
    ids=["line", "lines", "refusal", "status", "no HTTP", "end"],
)
def test_the_answer_of_a_proxy_has_the_same_limit(scheme: str, answer: str, seen: str) -> None:
    proxy = Server(answer)
    try:
        with pytest.raises(Refused, match=f"no connection: {seen}"):
            Way(Through(proxy.port, scheme), ()).open("/api/v1/namespaces/n/pods/p/exec", [("command", "x")], 5.0)
    finally:
        proxy.stop()
    head = (
        b"CONNECT api.example:6443 HTTP/1.1\r\nHost: api.example:6443\r\nProxy-Authorization: Basic"
        b" dXNlcjpwYXNz\r\n\r\n"
    )
    assert proxy.asked == [head], "no token goes to the proxy"


def test_a_proxy_that_drips_ends_with_the_time_of_the_step(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(100_000))
    monkeypatch.setattr(channels, "time", types.SimpleNamespace(monotonic=lambda: float(next(clock))))
    proxy = Server(f"HTTP/1.1 200 OK\r\nX-A: {'a' * 1000}\r\n\r\n")
    try:
        with pytest.raises(Refused, match="the API server did not respond within 50 s"):
            Way(Through(proxy.port, "https"), ()).open("/exec", [("command", "x")], 50.0)
    finally:
        proxy.stop()


def test_an_answer_that_drips_ends_with_the_time_of_the_step(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(100_000))
    monkeypatch.setattr(channels, "time", types.SimpleNamespace(monotonic=lambda: float(next(clock))))
    api = Server(f"HTTP/1.1 101 Switching Protocols\r\nX-A: {'a' * 1000}\r\n\r\n")
    try:
        with pytest.raises(Refused, match="the API server did not respond within 50 s"):
            opened(api.port, 50.0)
    finally:
        api.stop()


def test_a_refusal_takes_no_memory_for_what_its_head_promises() -> None:
    asked: list[int] = []

    class Whole:
        def recv(self, size: int) -> bytes:
            asked.append(size)
            return b"x"

    assert channels.Answering(Whole(), 5.0).recv(10**12) == b"x"
    assert asked == [MOST_ANSWER]


def test_what_comes_behind_the_answer_is_not_counted() -> None:
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        client, _address = listener.accept()
        with client:
            asked = client.recv(65536)
            key = next(
                line.split(b": ")[1] for line in asked.split(b"\r\n") if line.lower().startswith(b"sec-websocket-key")
            )
            accept = base64.b64encode(
                hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11", usedforsecurity=False).digest()
            )
            head = (
                b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection:"
                b" Upgrade\r\nSec-WebSocket-Protocol: v5.channel.k8s.io\r\n"
            )
            client.sendall(head + b"Sec-WebSocket-Accept: " + accept + b"\r\n\r\n" + FRAME * 20_000)
            client.recv(65536)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    with listener:
        found, came = opened(listener.getsockname()[1]), b""
        while found.open and len(came) < 40_000:
            found.update(5.0)
            came += found.take(1)
        found.close()
    thread.join(5)
    assert (came, found.lost) == (b"hi" * 20_000, "")
