# SPDX-License-Identifier: GPL-3.0-or-later

"""Thin access to a BMC: GET over TLS, and what writer.py sends, within the time that the BMC has in all. What it
answers is parsed in _parse/redfish.

The standard library alone, and no proxy: BMCs are on a network of their own. ``ansible.module_utils.urls`` has a limit
for each read instead of one for all, no pin, no limit of size, a new connection for each request, and sends the
password wherever it is redirected to.
"""

from __future__ import annotations

import contextlib
import hmac
import http.client
import socket
import ssl
import time
import typing
import zlib
from urllib.parse import urlsplit

from ..._model.base.errors import ParseError
from ..._model.run.guard import Guard
from ..._parse.limits import decode_json
from ..._parse.redfish.resource import is_path
from ..._parse.redfish.resources import etag, parse_message_id
from .bmc import Bmc, BmcError, Cause, basic
from .channel import TlsChannel, TooMuch, left
from .failures import ATTEMPTS, BUSY, CONNECT, lost, out_of_hold, over, refused, untrusted
from .trust import Trust, digest

#: bytes of an answer; the largest registries have 1.2 MB
LARGEST = 4 * 2**20
#: bytes that come for one answer, with records of TLS, heads, sizes of chunks and trailers, which HTTP does not bound
_MOST_RAW = 2 * LARGEST + 2**20
_REDIRECTS = 3
#: parts of an answer: each chunk is one, and each costs a microsecond or more, whatever is in it
_MOST_PARTS = 40_000
#: heads before a body: that of the answer, and interim ones with a status of 1xx
_MOST_HEADS = 9
_CHUNK = 65536
#: what is sent again where it is answered so. An action never is: a BMC that resets itself with its node may have begun
#: what it says 503 to
_PUT_OFF: dict[str, tuple[int, ...]] = {"GET": BUSY, "PATCH": (429, 503), "POST": ()}


class _Response(http.client.HTTPResponse):
    """An answer before which no endless row of interim ones stands: the library reads over these one after the other,
    as fast as a BMC sends them."""

    _heads = 0

    def _read_status(self) -> typing.Any:
        self._heads += 1
        if self._heads > _MOST_HEADS:
            raise http.client.HTTPException(f"more than {_MOST_HEADS - 1} interim answers came before the answer")
        return super()._read_status()  # type: ignore[misc]


class BmcAnswer(typing.NamedTuple):
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def data(self) -> typing.Any:
        """JSON; None where it is none."""
        return _decode_body(self.body)


class Write(typing.NamedTuple):
    """The rules for a write: its content and its time.

    :ivar prove: raises why it may not be sent; asked before each attempt, and reads from the same BMC
    :ivar guard: asked when nothing is left to be done but to send it
    """

    body: bytes
    headers: typing.Mapping[str, str]
    prove: typing.Callable[[], None]
    guard: Guard


class Session:
    """One BMC, asked over one connection as long as it keeps it open. No session is made on the BMC: nothing is left
    there.

    :param seconds: that all answers of this BMC together may take
    """

    def __init__(
        self, bmc: Bmc, trust: Trust, seconds: float, sleep: typing.Callable[[float], None] = time.sleep
    ) -> None:
        self.bmc = bmc
        self.end = self._until = time.monotonic() + seconds
        self._seconds = seconds
        self._trust = trust
        self._sleep = sleep
        self._connection: typing.Optional[http.client.HTTPSConnection] = None
        self._etags: dict[str, str] = {}

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_what: object) -> None:
        self._close()

    def get(self, path: str) -> dict[str, typing.Any]:
        """Get a resource.

        :param path: on this BMC, perhaps with a query
        :raises BmcError: no answer, or none that is a resource
        """
        answer = self._got(path)
        resource = self.resource(path, answer.body)
        self._etags[path] = etag(resource, answer.headers.get("ETag", ""))
        return resource

    def body(self, path: str) -> bytes:
        """Return a resource as it was sent, for resource().

        :raises BmcError: no answer
        """
        return self._got(path).body

    def resource(self, path: str, body: bytes) -> dict[str, typing.Any]:
        """Return the resource in a body.

        :raises BmcError: it is none
        """
        data = _decode_body(body)
        if not isinstance(data, dict):
            remedy = "See what answers at this address, and restart the BMC if it is one"
            raise self.error(
                "not_json", f"GET {path} was answered with {len(body)} bytes that are no JSON object", remedy
            )
        return data

    def _got(self, path: str) -> BmcAnswer:
        """Return the answer with a resource, wherever on this BMC it is."""
        for _redirect in range(_REDIRECTS + 1):
            answer = self._answer("GET", path)
            if answer.status == 200:
                return answer
            if answer.status not in (301, 302, 307, 308):
                raise refused(self.bmc, f"GET {path}", answer.status, parse_message_id(answer.data))
            path = self._elsewhere(path, answer.headers.get("Location", ""))
        raise self.error("status", f"GET {path} is redirected again and again", "Update the firmware of the BMC")

    def etag(self, path: str) -> str:
        """Of a resource when it was read last; empty where it has none."""
        return self._etags.get(path, "")

    def send(self, method: str, path: str, write: Write) -> BmcAnswer:
        """Send a write. Sent once: when the connection breaks, only reading tells what became of it. A PATCH is sent
        again where the BMC says that it did not begin.

        :raises BmcError: ``closed``, ``timeout`` or ``busy`` where nobody knows what became of it, else it was not
            taken
        :raises RdmaError: it may not be sent
        """
        return self._answer(method, path, write)

    def _elsewhere(self, path: str, location: str) -> str:
        """Return the target of a redirection; never another host, which would get the password."""
        try:
            parts = urlsplit(location)
            port = parts.port or 443
        except ValueError:
            parts, port = urlsplit(""), 0
        own = not parts.netloc or (
            parts.scheme == "https" and parts.hostname == self.bmc.address.strip("[]").lower() and port == self.bmc.port
        )
        target = f"{parts.path}?{parts.query}" if parts.query else parts.path
        if not own or not is_path(target):
            raise self.error(
                "status",
                f"GET {path} is redirected away from the BMC",
                "Give the address that the BMC redirects to, if it is the BMC's",
            )
        return target

    def _answer(self, method: str, path: str, write: typing.Optional[Write] = None) -> BmcAnswer:
        """Return the answer to a request. It is sent again when the BMC is busy, unless it is an action, and a GET also
        when the connection broke."""
        what, busy = f"{method} {path}", _PUT_OFF[method]
        for attempt in range(1, ATTEMPTS + 1):
            # a connection that was kept open may have been closed meanwhile: at first a new one is tried at once
            wait = attempt - 1.0
            if write:
                write.prove()
            try:
                answer = self._exchange(method, path, write)
            except BmcError as error:
                if error.cause != "closed" or write or attempt == ATTEMPTS:
                    raise
            else:
                if answer.status not in busy or attempt == ATTEMPTS:
                    return answer
                told = answer.headers.get("Retry-After", "")
                wait = float(told) if told.isascii() and told.isdigit() and len(told) < 4 else float(attempt)
            if time.monotonic() + wait >= self.end:
                raise self.error(
                    "busy",
                    f"{what} was put off until its {self._seconds:g} s were over",
                    "Give it more seconds, or ask again later",
                )
            self._sleep(wait)
        raise AssertionError("the last attempt returns or raises")

    def _exchange(self, method: str, path: str, write: typing.Optional[Write]) -> BmcAnswer:
        with self._failures(f"{method} {path}"):
            connection = self._connection or self._connect()
            secure = typing.cast(TlsChannel, connection.sock)
            secure.expect()
            # nothing but sending it comes after this
            self._until = min(self.end, time.monotonic() + write.guard.seconds()) if write else self.end
            secure.end = self._until
            left(self._until)
            connection.request(method, path, write.body if write else None, self._headers(write))
            response = connection.getresponse()
            read = self._read(f"{method} {path}", response)
        if response.will_close:
            self._close()
        return BmcAnswer(response.status, response.headers, read)

    def _read(self, what: str, response: http.client.HTTPResponse) -> bytes:
        parts: list[bytes] = []
        size = taken = 0
        # some registries are stored compressed, and sent so whatever was asked for
        is_packed = response.headers.get("Content-Encoding", "").lower() == "gzip"
        inflate = zlib.decompressobj(wbits=31) if is_packed else None
        while part := response.read1(_CHUNK):
            taken += len(part)
            if inflate is not None:
                part = self._inflated(what, inflate, part)
            size += len(part)
            if max(size, taken) > LARGEST or len(parts) >= _MOST_PARTS:
                self._close()
                limit = (
                    f"{what} was answered in {_MOST_PARTS} parts"
                    if max(size, taken) <= LARGEST
                    else f"{what} was answered with more than {LARGEST // 2**20} MiB"
                )
                raise self.error(
                    "too_large", limit, "See what answers at this address: no resource of a BMC is that large"
                )
            parts.append(part)
        if response.length:
            raise http.client.IncompleteRead(b"", response.length)
        # or the connection takes no other request
        response.close()
        return b"".join(parts)

    def _inflated(self, what: str, inflate: typing.Any, part: bytes) -> bytes:
        """Unpack a part of an answer.

        :raises BmcError: something is behind the end of what was packed. zlib would join each further part to all that
            came there before, which takes the square of their length
        :raises zlib.error: it is not packed by gzip
        """
        was_complete = inflate.eof
        found: bytes = b"" if was_complete else inflate.decompress(part, LARGEST + 1)
        if was_complete or inflate.unused_data:
            self._close()
            raise self.error(
                "not_json",
                f"{what} was answered with bytes behind the end of what gzip has packed",
                "See what answers at this address, and restart the BMC if it is one",
            )
        return found

    def _headers(self, write: typing.Optional[Write]) -> dict[str, str]:
        headers = {"Accept": "application/json", "Accept-Encoding": "identity", "OData-Version": "4.0"}
        if write:
            headers.update({**write.headers, "Content-Type": "application/json"})
        if self.bmc.token:
            return {**headers, "X-Auth-Token": self.bmc.token}
        return {**headers, "Authorization": f"Basic {basic(self.bmc)}"}

    def _connect(self) -> http.client.HTTPSConnection:
        host, context = self.bmc.address.strip("[]"), self._trust.context(self.bmc)
        plain = socket.create_connection((host, self.bmc.port), min(CONNECT, left(self.end)))
        try:
            secure = TlsChannel(plain, context, host, self.end, _MOST_RAW)
            secure.handshake()
        except BaseException:
            plain.close()
            raise
        # before anything is sent to it
        shown = digest(secure) if self.bmc.fingerprint else ""
        if not hmac.compare_digest(shown, self.bmc.fingerprint):
            secure.close()
            seen = f"its certificate is another one than the pinned: its SHA-256 is {shown or 'not to be had'}"
            raise self.error("tls_pin", seen, "Find out who answers there; pin the new certificate if the BMC got one")
        connection = http.client.HTTPSConnection(host, self.bmc.port, context=context)
        connection.auto_open = 0
        connection.response_class = _Response
        connection.sock = typing.cast(typing.Any, secure)
        self._connection = connection
        return connection

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def error(self, cause: Cause, what: str, remedy: str) -> BmcError:
        """Return an error of this BMC."""
        return self.bmc.error(cause, what, remedy)

    @contextlib.contextmanager
    def _failures(self, what: str) -> typing.Iterator[None]:
        """Convert errors of the socket, TLS and HTTP to errors with a cause. After each, the connection can't be used
        again."""
        try:
            yield
        except BmcError:
            self._close()
            raise
        except TooMuch:
            self._close()
            raise self.error(
                "too_large",
                f"{what} was answered with more than {_MOST_RAW // 2**20} MiB of TLS and HTTP around its content",
                "See what answers at this address, and restart the BMC if it is one",
            ) from None
        except ssl.SSLCertVerificationError as error:
            self._close()
            # without what it was raised in: that holds the headers
            raise untrusted(self.bmc, error) from None
        except (OSError, http.client.HTTPException, zlib.error, ValueError) as error:
            self._close()
            timeout = isinstance(error, (TimeoutError, socket.timeout))
            if timeout and time.monotonic() >= self.end:
                raise over(self.bmc, what, self._seconds) from None
            if timeout and time.monotonic() >= self._until:
                raise out_of_hold(self.bmc, what) from None
            raise lost(self.bmc, what, error) from None


def _decode_body(body: bytes) -> typing.Any:
    """JSON; None where it is none, or no resource of a BMC."""
    try:
        return decode_json(body, "Redfish", most_bytes=LARGEST, unique=False)
    except ParseError:
        return None
