# SPDX-License-Identifier: GPL-3.0-or-later

"""The channels of one exec over its websocket, as bytes, in both directions at once: the protocols v5 and
v4.channel.k8s.io.

The kubernetes client has the credentials, and the websocket library below it has the protocol. Its own WSClient can't
be used: up to release 25 it makes text of all bytes, it hides the HTTP status of a refusal, it sends no impersonation,
and it writes without reading. A command whose output nobody reads does not read its stdin either, so that a writer that
does not read waits for ever.
"""

from __future__ import annotations

import base64
import contextlib
import re
import select
import socket
import ssl
import threading
import time
import typing
import urllib.parse

from ..._parse.pods.framing import ERROR, STDERR, STDOUT

try:
    import certifi
    import websocket
    from kubernetes.config import ConfigException
    from kubernetes.stream import ws_client
    from websocket._url import get_proxy_info

    _Base: typing.Any = websocket.WebSocket
    #: how a connection ends; ValueError is that of a socket which another thread closes at this moment
    _ENDS: tuple[type[Exception], ...] = (websocket.WebSocketException, OSError, ValueError)
except ImportError:
    # the modules name the missing library before they come here
    _Base, _ENDS = object, ()

#: newest first; both have the same channels, and the newer one tells by a frame of its own that one of them ended
PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")
#: bytes of stdin in a frame. A server reads a frame as a whole, so that small ones let it answer in between
CHUNK = 32 * 1024
#: bytes that are received before anything else gets its turn
BURST = 1024 * 1024
#: frames and seconds likewise: frames may be empty
BURST_FRAMES, BURST_SECONDS = 4096, 0.25
#: frames of one connection, and for each of its seconds: each takes some 10 us, whatever is in it. A program that
#: prints line by line, each in a frame of its own, prints thousands
MOST_FRAMES, FRAMES_A_SECOND = 65_536, 500
#: bytes of the smallest head of a frame
_HEAD = 2
#: bytes that wait at most when a ping is answered: a server that reads no answer needs none
MOST_ANSWERS = 64 * 1024
#: bytes of the answer by which the connection becomes a websocket, or of one that refuses it; the library reads it byte
#: by byte, and keeps each
MOST_ANSWER = 64 * 1024
#: bytes of a frame, and of a message in several frames: kubelets and API servers send what one read of a pipe gave, 32
#: KiB
MOST_FRAME = 1024 * 1024
#: bytes that are kept of the error channel, which nobody takes before the end: a Status has a few hundred
MOST_STATUS = 64 * 1024
#: seconds without traffic after which a ping is sent: balancers in front of API servers forget connections that are
#: silent for a minute
QUIET_SECONDS = 20.0
#: channels that somebody takes. Another one is that of version 5 by which a channel ends; the end marks say so as well
_TAKEN = (STDOUT, STDERR, ERROR)
#: a socket that does not wait has nothing, or no room, at the moment
_LATER = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class Refused(Exception):
    """The API server did not open the channels.

    :ivar status: of HTTP; 0 when there was no answer
    :ivar body: what it said
    :ivar reason: words of HTTP, or of the failed connection
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
    """The way to an API server, with the credentials of a client. Threads may share one."""

    def __init__(self, configuration: typing.Any, headers: typing.Iterable[tuple[str, str]]) -> None:
        """:param configuration: kubernetes.client.Configuration
        :param headers: that the client adds to each request; those of impersonation count, of which one name may occur
            again
        """
        self._configuration = configuration
        self._headers = [f"{name}: {value}" for name, value in headers if str(name).lower().startswith("impersonate-")]
        self._lock = threading.Lock()
        self._tls: dict[str, typing.Any] = {}

    def open(self, path: str, query: typing.Sequence[tuple[str, str]], seconds: float) -> Channels:
        """:param seconds: limit of each step: the connection, TLS, the answer

        :raises Refused: no, or no answer
        """
        url = f"{self._configuration.host.rstrip('/')}{path}?{urllib.parse.urlencode(query, errors='surrogateescape')}"
        scheme, _colon, rest = url.partition(":")
        url = f"{'ws' if scheme.lower() == 'http' else 'wss'}:{rest}"
        found: typing.Any = None
        tunnel: typing.Optional[socket.socket] = None
        try:
            found = _Socket(seconds, sslopt=self._secured(url), skip_utf8_validation=True)
            options, header, tunnel = self._proxy(url), self._header(), self._tunnel(url, seconds)
            options.update({} if tunnel is None else {"socket": tunnel})
            # the token goes to the API server alone: a redirection may lead anywhere
            found.connect(
                url, header=header, subprotocols=list(PROTOCOLS), timeout=seconds, redirect_limit=0, **options
            )
        except (ConfigException, LookupError, *_ENDS) as error:
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
            raise Refused(status, f"the API server answered with HTTP status {status}")
        found.answered()
        return Channels(found)

    def _tunnel(self, url: str, seconds: float) -> typing.Optional[socket.socket]:
        """Return a connection to the API server through a proxy, with TLS; None where there is no proxy, and the
        library connects by itself.

        The library reads the answer of a proxy without a limit of its bytes or its time.

        :raises WebSocketException: the proxy does not make it, or says more than an answer has
        """
        proxy, server = self._proxy(url), urllib.parse.urlsplit(url)
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
                tls = self._secured(url)
                made = tls["context"].wrap_socket(made, server_hostname=tls.get("server_hostname") or host)
        except BaseException:
            made.close()
            raise
        return made

    def _header(self) -> list[str]:
        with self._lock:
            # may renew a token, which no two threads may do at once
            user = self._configuration.auth_settings().get("BearerToken", {}).get("value")
        return [*([f"authorization: {user}"] if user else []), *self._headers]

    def _proxy(self, url: str) -> dict[str, typing.Any]:
        configuration = self._configuration
        return (
            dict(ws_client.websocket_proxycare({}, configuration, url, None))
            if configuration.proxy or configuration.proxy_headers
            else {}
        )

    def _secured(self, url: str) -> dict[str, typing.Any]:
        """TLS as the client has it for all else. It is made once: each of a thousand connections would read the
        certificates again."""
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
            f"the API server answered with HTTP status {status}",
            body.decode(errors="replace") if isinstance(body, bytes) else str(body),
        )
    if isinstance(error, (websocket.WebSocketTimeoutException, TimeoutError)):
        return Refused(0, f"no answer from the API server within {seconds:g} s")
    return Refused(0, f"no connection: {error or type(error).__name__}")


class _Answering:
    """A socket while HTTP answers on it: whoever answers has so many bytes and seconds, and no more."""

    def __init__(self, whole: typing.Any, seconds: float) -> None:
        self.whole = whole
        self._left, self._end = MOST_ANSWER, time.monotonic() + seconds

    def recv(self, size: int) -> bytes:
        """:raises WebSocketException: the answer is too long; a time-out where it takes too long"""
        if self._left <= 0:
            raise websocket.WebSocketProtocolException(f"the answer has more than {MOST_ANSWER} bytes")
        if time.monotonic() >= self._end:
            raise websocket.WebSocketTimeoutException("the answer takes too long")
        # a body has the length that its head says, and so much memory would be taken at once
        data = bytes(self.whole.recv(min(size, self._left)))
        self._left -= len(data)
        return data

    def __getattr__(self, name: str) -> typing.Any:
        return getattr(self.whole, name)


def _connect_through(
    made: socket.socket, host: str, port: int, login: typing.Optional[tuple[str, str]], seconds: float
) -> None:
    """Ask a proxy for a tunnel (RFC 9110, 9.3.6).

    :param made: the connection to it, which is one to the server afterwards
    :param login: name and password for the proxy
    :raises WebSocketException: it refuses, ends the connection, or its answer is too long or takes too long
    """
    lines = [f"CONNECT {host}:{port} HTTP/1.1", f"Host: {host}:{port}"]
    if login and login[0]:
        basic = base64.b64encode(":".join(filter(None, login)).encode()).decode()
        lines.append(f"Proxy-Authorization: Basic {basic}")
    made.sendall("".join(f"{line}\r\n" for line in (*lines, "")).encode())
    answering, answer = _Answering(made, seconds), bytearray()
    # not a byte behind the answer is the proxy's
    while not answer.endswith((b"\r\n\r\n", b"\n\n")):
        part = answering.recv(1)
        if not part:
            raise websocket.WebSocketProxyException("the proxy ended the connection")
        answer += part
    status = _STATUS.match(answer)
    if status is None or int(status[1]) != _TUNNEL:
        # its body, which may be of any length, is not read
        raise websocket.WebSocketProxyException(
            f"failed CONNECT via proxy status: {int(status[1]) if status else 'none'}"
        )


class _Socket(_Base):  # type: ignore[misc]
    """A websocket that sends nothing by itself: what it has to say, such as the answer to a ping, waits for its turn
    behind a frame that is half sent."""

    def __init__(self, seconds: typing.Optional[float] = None, **options: typing.Any) -> None:
        """:param seconds: limit of the answer by which it becomes a websocket; None: it is one already"""
        self._seconds = seconds
        self._sock: typing.Any = None
        super().__init__(**options)
        self.waiting = bytearray()
        #: of the message that is not whole yet
        self._parts = 0
        #: bytes and frames that may still be received in this turn, and the time of its end
        self._bytes, self._frames, self._end = 0, 0, 0.0
        #: frames that came, and since when
        self._heard, self._since = 0, time.monotonic()
        read = self.frame_buffer.recv_strict

        def bounded(size: int) -> typing.Any:
            if size > MOST_FRAME:
                raise websocket.WebSocketProtocolException(
                    f"a frame of {size} bytes came, and {MOST_FRAME} are the most"
                )
            return read(size)

        self.frame_buffer.recv_strict = bounded

    @property
    def sock(self) -> typing.Any:
        """Return the socket of the connection; the library sets it before it asks for the websocket."""
        return self._sock

    @sock.setter
    def sock(self, sock: typing.Any) -> None:
        self._sock = sock if sock is None or self._seconds is None else _Answering(sock, self._seconds)

    def answered(self) -> None:
        """It is a websocket from now on: what comes are frames, which have limits of their own."""
        self._seconds = None
        self._sock = getattr(self._sock, "whole", self._sock)

    def begin_turn(self) -> None:
        """From now on so much may be received as keeps nobody from the clock."""
        self._bytes, self._frames, self._end = BURST, BURST_FRAMES, time.monotonic() + BURST_SECONDS

    def recv_frame(self) -> typing.Any:
        """:raises BlockingIOError: nothing is there at the moment, or the turn is over. The library reads all frames of
        a message in one call"""
        if self._bytes <= 0 or self._frames <= 0 or time.monotonic() >= self._end:
            raise BlockingIOError
        frame = super().recv_frame()
        if frame is not None:
            self._bytes -= _HEAD + len(frame.data)
            self._frames -= 1
            self._heard += 1
            seconds = time.monotonic() - self._since
            if self._heard > MOST_FRAMES + FRAMES_A_SECOND * seconds:
                raise websocket.WebSocketProtocolException(
                    f"{self._heard} frames came within {seconds:.0f} s, more than any command prints"
                )
        if frame is not None and frame.opcode in (
            websocket.ABNF.OPCODE_CONT,
            websocket.ABNF.OPCODE_BINARY,
            websocket.ABNF.OPCODE_TEXT,
        ):
            self._parts += _HEAD + len(frame.data)
            if self._parts > MOST_FRAME:
                raise websocket.WebSocketProtocolException(f"a message of more than {MOST_FRAME} bytes came")
            if frame.fin:
                self._parts = 0
        return frame

    def pong(self, payload: typing.Any = "") -> None:
        if len(self.waiting) < MOST_ANSWERS:
            super().pong(payload)

    def send_frame(self, frame: typing.Any) -> int:
        data = frame.format()
        self.waiting += data
        return len(data)


class Channels:
    """An exec that was opened. What breaks it is kept in ``lost``; what came before can be taken all the same.

    :ivar lost: why there is no connection any more; empty as long as there is one, and when the server ended it in
        order
    """

    def __init__(self, socket: typing.Any) -> None:
        self._socket = socket
        socket.settimeout(0)
        self._came: dict[int, bytearray] = {}
        self._stdin: list[memoryview] = []
        self._traffic = time.monotonic()
        #: why nothing can be sent any more
        self._mute = ""
        self.open = True
        self.lost = ""

    @property
    def unsent(self) -> bool:
        """Return whether bytes wait for the server to take them."""
        return bool(self._stdin or self._socket.waiting)

    def write(self, data: bytes) -> None:
        """Hand over bytes for stdin. What the server does not take at once goes out with ``update``."""
        if data and self.open and not self._mute:
            self._stdin.append(memoryview(data))
            self._send()

    def take(self, channel: int) -> bytes:
        """Return the bytes that came on a channel since the last time."""
        return bytes(self._came.pop(channel, b""))

    def update(self, seconds: float) -> None:
        """Send and receive what can be; wait at most ``seconds`` until something can."""
        if not self.open:
            return
        if not self._mute and time.monotonic() - self._traffic > QUIET_SECONDS:
            self._traffic = time.monotonic()
            self._socket.ping()
        try:
            if self._ready(seconds):
                self._receive()
        except _ENDS as error:
            self.open = False
            self.lost = self._mute or str(error) or type(error).__name__
        self._send()

    def _ready(self, seconds: float) -> bool:
        """Wait for the socket; whether there is something to receive."""
        sock = self._there()
        # TLS decrypts several frames at once, and no poll shows what it holds
        if isinstance(sock, ssl.SSLSocket) and sock.pending():
            return True
        poll = select.poll()
        poll.register(sock, select.POLLIN | (select.POLLOUT if self.unsent else 0))
        return any(events & ~select.POLLOUT for _number, events in poll.poll(max(0.0, seconds) * 1000))

    def _there(self) -> typing.Any:
        """Return the socket, unless another thread has closed it."""
        if self._socket.sock is None:
            raise ConnectionError("closed here")
        return self._socket.sock

    def _receive(self) -> None:
        """Receive what has come, up to a limit, so that a flood does not hold up the timeout. The library keeps the
        part of a frame that is here already."""
        self._socket.begin_turn()
        with contextlib.suppress(*_LATER):
            while self.open:
                opcode, frame = self._socket.recv_data_frame(True)
                self._traffic = time.monotonic()
                if opcode == websocket.ABNF.OPCODE_CLOSE:
                    self._push()
                    self.open = False
                elif (
                    opcode in (websocket.ABNF.OPCODE_BINARY, websocket.ABNF.OPCODE_TEXT)
                    and len(frame.data) > 1
                    and frame.data[0] in _TAKEN
                ):
                    came = self._came.setdefault(frame.data[0], bytearray())
                    room = MOST_STATUS - len(came) if frame.data[0] == ERROR else len(frame.data)
                    came.extend(memoryview(frame.data)[1 : 1 + room])

    def _send(self) -> None:
        """As much as the server takes without a wait."""
        try:
            while self.unsent and self.open:
                if not self._socket.waiting:
                    piece = self._stdin[0][:CHUNK]
                    self._stdin[0] = self._stdin[0][CHUNK:]
                    if not self._stdin[0]:
                        del self._stdin[0]
                    self._socket.send(b"\0" + bytes(piece), websocket.ABNF.OPCODE_BINARY)
                if not self._push():
                    return
                self._traffic = time.monotonic()
        except _ENDS as error:
            # what the server said before it went away is still to be read, and then the end of it shows there as well
            self._mute = str(error) or type(error).__name__
            self._stdin.clear()
            self._socket.waiting.clear()

    def _push(self) -> bool:
        """Return whether the system took bytes."""
        waiting = self._socket.waiting
        try:
            taken = self._there().send(bytes(waiting))
        except _LATER:
            return False
        del waiting[:taken]
        return True

    def close(self) -> None:
        """Leave, without a wait for the other side's farewell: that would be seconds for each of a thousand pods.
        Another thread may do it."""
        if self.open:
            self._stdin.clear()
            with contextlib.suppress(*_ENDS):
                self._socket.send_close()
                self._push()
        self.open = False
        with contextlib.suppress(*_ENDS):
            self._socket.shutdown()
