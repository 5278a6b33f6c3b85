# SPDX-License-Identifier: GPL-3.0-or-later

"""What stands before an API server answers a command in a pod with a redirection: the token of the run goes nowhere
else."""

from __future__ import annotations

import socket
import threading
import typing

import pytest
import websocket

from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.exec.exec_connection import Refused, Way


class Server:
    """Gives each connection one answer. :ivar asked: what came"""

    def __init__(self, answer: str) -> None:
        self.asked: list[bytes] = []
        self._answer = answer.encode()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                client, _address = self._listener.accept()
            except OSError:
                return
            with client:
                self.asked.append(client.recv(65536))
                client.sendall(self._answer)

    def stop(self) -> None:
        self._listener.close()


class Configuration:
    proxy: typing.Any = None
    proxy_headers: typing.Any = None

    def __init__(self, port: int) -> None:
        self.host = f"http://127.0.0.1:{port}"

    def auth_settings(self) -> dict[str, dict[str, str]]:
        return {"BearerToken": {"value": "Bearer token-of-the-run"}}


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("old", [False, True], ids=["", "a library that takes it for an open connection"])
def test_no_redirection_is_followed(status: int, old: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    other = Server("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
    api = Server(f"HTTP/1.1 {status} Elsewhere\r\nLocation: ws://127.0.0.1:{other.port}/\r\nContent-Length: 0\r\n\r\n")
    if old:
        # as older releases look at what is left of the limit
        monkeypatch.setattr(websocket._core, "SUPPORTED_REDIRECT_STATUSES", ())
    try:
        with pytest.raises(Refused):
            Way(Configuration(api.port), [("Impersonate-User", "x")]).open(
                "/api/v1/namespaces/n/pods/p/exec", [("command", "x")], 5
            )
        assert len(api.asked) == 1 and b"token-of-the-run" in api.asked[0] and other.asked == []
    finally:
        api.stop()
        other.stop()
