# SPDX-License-Identifier: GPL-3.0-or-later

"""A proxy before the lab's API server that cuts streams of exec and says that all went well, as some do: python -m
lab.cutting_proxy PORT BYTES

It ends TLS and logs in as the lab's admin, as authenticating proxies do. Whatever is no websocket passes as it is. Of
the output of a command BYTES pass; then come the API server's own words for success and an orderly close.
"""

from __future__ import annotations

import socket
import socketserver
import ssl
import sys
import threading
import typing

from dev.steps import say

from . import controlplane, description
from .pki import Pki
from .planes import FOLDER

#: channels of exec, and what the API server says at the end of a command that ended well [k8s.io/apimachinery
#: pkg/util/remotecommand]
STDOUT, STATUS = 1, 3
SUCCESS = b'{"metadata":{},"status":"Success"}'
#: opcodes [RFC 6455 5.2], and the status of an orderly close
BINARY, CLOSE, NORMAL = 0x2, 0x8, (1000).to_bytes(2, "big")
_CHUNK = 1 << 16


def frame(opcode: int, payload: bytes) -> bytes:
    """A final frame from a server, which masks nothing. [RFC 6455 5.2]"""
    length = len(payload)
    if length < 126:
        return bytes((0x80 | opcode, length)) + payload
    return bytes((0x80 | opcode, 126)) + length.to_bytes(2, "big") + payload


def frames(stream: typing.BinaryIO) -> typing.Iterator[tuple[bytes, int, bytes]]:
    """Frames of a server as they come: as they are, their opcode, their payload."""
    while len(head := stream.read(2)) == 2:
        length, extended = head[1] & 0x7F, b""
        if length >= 126:
            extended = stream.read(2 if length == 126 else 8)
            length = int.from_bytes(extended, "big")
        payload = stream.read(length)
        yield head + extended + payload, head[0] & 0xF, payload


def cut(stream: typing.BinaryIO, most: int) -> typing.Iterator[bytes]:
    """What a client gets of a stream of exec.

    :param most: bytes of the command's output
    """
    passed = 0
    for whole, opcode, payload in frames(stream):
        if opcode == BINARY and payload[:1] == bytes((STDOUT,)):
            passed += len(payload) - 1
            if passed > most:
                yield frame(BINARY, payload[: len(payload) - (passed - most)])
                yield frame(BINARY, bytes((STATUS,)) + SUCCESS)
                yield frame(CLOSE, NORMAL)
                return
        yield whole


def _relay(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(_CHUNK):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        # either side has gone, and the other one's end follows
        pass


def _head(stream: typing.Union[typing.BinaryIO, socket.SocketIO]) -> bytes:
    lines = []
    while (line := stream.readline()) not in (b"", b"\r\n"):
        lines.append(line)
    return b"".join(lines) + b"\r\n"


def serve(port: int, most: int) -> None:
    lab = description.read()
    authority: Pki = controlplane.pki(lab, FOLDER)
    inward = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    inward.load_cert_chain(authority.path("kube-apiserver.crt"), authority.path("kube-apiserver.key"))
    outward = ssl.create_default_context(cafile=str(authority.path("ca.crt")))
    outward.load_cert_chain(authority.path("admin.crt"), authority.path("admin.key"))

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            plain = socket.create_connection((lab.network.address, controlplane.API_PORT))
            with (
                outward.wrap_socket(plain, server_hostname=lab.network.address) as server,
                inward.wrap_socket(self.request, server_side=True) as client,
            ):
                asked = client.makefile("rb", buffering=0)
                head = _head(asked)
                server.sendall(head)
                if b"upgrade: websocket" not in head.lower():
                    threading.Thread(target=_relay, args=(client, server), daemon=True).start()
                    _relay(server, client)
                    return
                answered = server.makefile("rb")
                client.sendall(_head(answered))
                threading.Thread(target=_relay, args=(client, server), daemon=True).start()
                for data in cut(answered, most):
                    client.sendall(data)

    class Server(socketserver.ThreadingTCPServer):
        allow_reuse_address = daemon_threads = True

    with Server((lab.network.address, port), Handler) as listener:
        say(f"cuts each stream after {most} bytes, at port {port}")
        listener.serve_forever()


if __name__ == "__main__":
    serve(*map(int, sys.argv[1:]))
