# SPDX-License-Identifier: GPL-3.0-or-later

"""Open the connection for the channels of one exec: with the address and the credentials of a kubernetes client,
through a proxy, with TLS. A refusal of the API server is reported with its HTTP status.
"""

from __future__ import annotations

import base64
import contextlib
import re
import socket
import ssl
import threading
import typing
import urllib.parse

from .channels import ENDS, Answering, Channels, Socket

# the modules name the missing library before they come here
with contextlib.suppress(ImportError):
    import certifi
    import websocket
    from kubernetes.config import ConfigException
    from kubernetes.stream import ws_client
    from websocket._url import get_proxy_info

#: newest first; both have the same channels, and the newer one tells by a frame of its own that one of them ended
PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")


class Refused(Exception):
    """Raised if the API server did not open the websocket channels of an exec.

    :ivar status: HTTP status; 0 if there was no answer
    :ivar body: body of the answer
    :ivar reason: HTTP reason, or description of the failed connection
    """

    def __init__(self, status: int, reason: str, body: str = "") -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.body = body


#: status of HTTP for a connection that is a websocket from then on, and for one through a proxy
_OPENED, _TUNNEL = 101, 200
#: first line of the answer of a proxy (RFC 9112, 4)
_STATUS = re.compile(rb"HTTP/1\.[0-9] ([0-9]{3})[ \r\n]")


class Way:
    """A factory for websocket connections to one API server, with the address and credentials of a kubernetes client.
    Several threads may share it.
    """

    def __init__(self, configuration: typing.Any, headers: typing.Iterable[tuple[str, str]]) -> None:
        """Prepare connections for execs; nothing is connected yet.

        :param configuration: a kubernetes.client.Configuration
        :param headers: headers that the client adds to each request. Only impersonation headers are used. A name may
            occur more than once
        """
        self._configuration = configuration
        self._headers = [f"{name}: {value}" for name, value in headers if str(name).lower().startswith("impersonate-")]
        self._lock = threading.Lock()
        self._tls: dict[str, typing.Any] = {}

    def open(self, path: str, query: typing.Sequence[tuple[str, str]], seconds: float) -> Channels:
        """Open the connection of an exec, and return its channels (stdin, stdout, stderr).

        :param path: path of the exec in the API
        :param query: query parameters of the exec, as name and value
        :param seconds: limit in seconds of each step: the connection, TLS, the answer
        :raises Refused: the API server refuses, or does not answer
        """
        url = f"{self._configuration.host.rstrip('/')}{path}?{urllib.parse.urlencode(query, errors='surrogateescape')}"
        scheme, _colon, rest = url.partition(":")
        url = f"{'ws' if scheme.lower() == 'http' else 'wss'}:{rest}"
        found: typing.Any = None
        tunnel: typing.Optional[socket.socket] = None
        try:
            found = Socket(seconds, sslopt=self._share_tls_options(url), skip_utf8_validation=True)
            options, header, tunnel = (
                self._read_proxy_options(url),
                self._build_request_headers(),
                self._open_proxy_tunnel(url, seconds),
            )
            options.update({} if tunnel is None else {"socket": tunnel})
            # the token goes to the API server alone: a redirection may lead anywhere
            found.connect(
                url, header=header, subprotocols=list(PROTOCOLS), timeout=seconds, redirect_limit=0, **options
            )
        except (ConfigException, LookupError, *ENDS) as error:
            # ConfigException: a token that can't be renewed; LookupError and ValueError: an answer that is no HTTP
            if found is not None:
                found.shutdown()
            if tunnel is not None:
                tunnel.close()
            raise _make_refused_error(error, seconds) from error
        # older releases of the library take a redirection that they do not follow for an open connection
        status = int(getattr(found.handshake_response, "status", _OPENED))
        if status != _OPENED:
            found.shutdown()
            raise Refused(status, f"the API server responded with HTTP status {status}")
        found.answered()
        return Channels(found)

    def _open_proxy_tunnel(self, url: str, seconds: float) -> typing.Optional[socket.socket]:
        """Return a connection to the API server through a proxy, with TLS if the URL requires it. Return None if no
        proxy is configured: the websocket library then connects by itself.

        The websocket library is not used for the proxy, because it would read the answer of a proxy without a limit of
        bytes or time.

        :param url: URL of the exec
        :param seconds: limit in seconds of each step
        :raises WebSocketException: the proxy refuses, or its answer exceeds a limit
        """
        proxy, server = self._read_proxy_options(url), urllib.parse.urlsplit(url)
        chosen = [proxy.get(f"http_{name}") for name in ("proxy_host", "proxy_port", "proxy_auth", "no_proxy")]
        secure, host = url.startswith("wss:"), server.hostname or ""
        # as the library chooses it: also by variables of the environment
        name, port, login = typing.cast(typing.Any, get_proxy_info)(host, secure, *chosen)
        if not name:
            return None
        made = socket.create_connection((name, port or 80), seconds)
        try:
            for option in websocket.DEFAULT_SOCKET_OPTION if hasattr(websocket, "DEFAULT_SOCKET_OPTION") else ():
                made.setsockopt(*option)
            _connect_through(
                made, f"[{host}]" if ":" in host else host, server.port or (443 if secure else 80), login, seconds
            )
            if secure:
                tls = self._share_tls_options(url)
                made = tls["context"].wrap_socket(made, server_hostname=tls.get("server_hostname") or host)
        except BaseException:
            made.close()
            raise
        return made

    def _build_request_headers(self) -> list[str]:
        with self._lock:
            # may renew a token, which no two threads may do at once
            user = self._configuration.auth_settings().get("BearerToken", {}).get("value")
        return [*([f"authorization: {user}"] if user else []), *self._headers]

    def _read_proxy_options(self, url: str) -> dict[str, typing.Any]:
        configuration = self._configuration
        return (
            dict(ws_client.websocket_proxycare({}, configuration, url, None))
            if configuration.proxy or configuration.proxy_headers
            else {}
        )

    def _share_tls_options(self, url: str) -> dict[str, typing.Any]:
        """Return the TLS options for the websocket library, by name, or an empty dict if the URL has no TLS. The
        options are built once and shared, so that a thousand connections do not read the certificates again.

        :param url: URL of the exec
        """
        if not url.startswith("wss:"):
            return {}
        with self._lock:
            self._tls = self._tls or _build_tls_options(self._configuration)
            return self._tls


def _build_tls_options(configuration: typing.Any) -> dict[str, typing.Any]:
    verify, named, authority = (
        configuration.verify_ssl,
        configuration.assert_hostname is not False,
        configuration.ssl_ca_cert or certifi.where(),
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = bool(verify and named)
    # releases of the library before 1.2 take no context, and make one of these
    options: dict[str, typing.Any] = {"context": context, "check_hostname": context.check_hostname}
    if verify:
        context.load_verify_locations(authority)
        options["ca_certs"] = authority
    else:
        context.verify_mode = ssl.CERT_NONE
    options["cert_reqs"] = context.verify_mode
    if configuration.cert_file:
        context.load_cert_chain(configuration.cert_file, configuration.key_file or None)
        options.update(certfile=configuration.cert_file, keyfile=configuration.key_file)
    name = getattr(configuration, "tls_server_name", None)
    return {**options, "server_hostname": name} if name else options


def _make_refused_error(error: Exception, seconds: float) -> Refused:
    status = int(getattr(error, "status_code", 0) or 0)
    body = getattr(error, "resp_body", None) or b""
    if status:
        # the exception's own text quotes all headers
        return Refused(
            status,
            f"the API server responded with HTTP status {status}",
            body.decode(errors="replace") if isinstance(body, bytes) else str(body),
        )
    if isinstance(error, (websocket.WebSocketTimeoutException, TimeoutError)):
        return Refused(0, f"the API server did not respond within {seconds:g} s")
    return Refused(0, f"no connection: {error or type(error).__name__}")


def _connect_through(
    made: socket.socket, host: str, port: int, login: typing.Optional[tuple[str, str]], seconds: float
) -> None:
    """Open a tunnel to a server through an HTTP proxy with CONNECT (RFC 9110, 9.3.6).

    :param made: connection to the proxy, which afterwards is a connection to the server
    :param host: host of the server, with brackets around an IPv6 address
    :param login: user name and password for the proxy; None if it needs none
    :param seconds: time limit for the answer of the proxy
    :raises WebSocketException: the proxy refuses or closes the connection, or its answer is too long or takes too long
    """
    lines = [f"CONNECT {host}:{port} HTTP/1.1", f"Host: {host}:{port}"]
    if login and login[0]:
        basic = base64.b64encode(":".join(filter(None, login)).encode()).decode()
        lines.append(f"Proxy-Authorization: Basic {basic}")
    made.sendall("".join(f"{line}\r\n" for line in (*lines, "")).encode())
    answering, answer = Answering(made, seconds), bytearray()
    # not a byte behind the answer is the proxy's
    while not answer.endswith((b"\r\n\r\n", b"\n\n")):
        part = answering.recv(1)
        if not part:
            raise websocket.WebSocketProxyException("the proxy closed the connection")
        answer += part
    status = _STATUS.match(answer)
    if status is None or int(status[1]) != _TUNNEL:
        # its body, which may be of any length, is not read
        raise websocket.WebSocketProxyException(
            f"failed CONNECT via proxy status: {int(status[1]) if status else 'none'}"
        )
