# SPDX-License-Identifier: GPL-3.0-or-later

"""Send requests to a BMC over TLS: reads and writes, within the time limit of the BMC.

Only the standard library is used, and no proxy, because BMCs are in a separate network. ``ansible.module_utils.urls``
is not suitable. It has a time limit for each read instead of one for all, no certificate pinning, and no size limit. It
opens a new connection for each request, and sends the password to any redirection target.
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
from ..._parse.redfish.resources import parse_etag, parse_message_id
from ..http_response import BoundedResponse, HeadError
from .bmc import Bmc, BmcError, Cause, encode_basic
from .channel import TlsChannel, TooMuch, count_seconds_left
from .failures import (
    ATTEMPTS,
    BUSY,
    CONNECT,
    explain_lost,
    explain_refused,
    explain_timeout,
    explain_untrusted,
    out_of_hold,
)
from .trust import Trust, read_digest

#: bytes of an answer; the largest registries have 1.2 MB
LARGEST = 4 * 2**20
#: bytes that come for one answer, with records of TLS, heads, sizes of chunks and trailers, which HTTP does not bound
_MOST_RAW = 2 * LARGEST + 2**20
_REDIRECTS = 3
#: path of the service root of Redfish [DSP0266]
ROOT = "/redfish/v1"
#: parts of an answer: each chunk is one, and each costs a microsecond or more, whatever is in it
_MOST_PARTS = 40_000
_CHUNK = 65536
#: what is sent again where it is answered so. An action never is: a BMC that resets itself with its node may have begun
#: what it says 503 to
_PUT_OFF: dict[str, tuple[int, ...]] = {"GET": BUSY, "PATCH": (429, 503), "POST": ()}


class BmcAnswer(typing.NamedTuple):
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def data(self) -> typing.Any:
        """Return the JSON data of the body. Return None if it is not valid JSON."""
        return _decode_body(self.body)


class Write(typing.NamedTuple):
    """The content of a write request, and the checks before it is sent.

    :ivar body: JSON text of the request
    :ivar headers: HTTP headers of the request, by name
    :ivar prove: function without arguments that is called before each attempt, and raises an error if the BMC does not
        belong to the node or the write is forbidden. It may read from the same BMC
    :ivar guard: permission to write. It is asked immediately before the request is sent, and tells for how many seconds
        the permission remains
    """

    body: bytes
    headers: typing.Mapping[str, str]
    prove: typing.Callable[[], None]
    guard: Guard


class Session:
    """A connection to one BMC, which is kept open as long as the BMC allows it. No Redfish session is created, so
    nothing remains on the BMC.

    :param seconds: limit in seconds for all requests to this BMC together
    :param sleep: function that sleeps for a number of seconds
    :ivar bmc: BMC with its address and credentials
    :param trust: TLS settings by which the certificate of the BMC is verified
    :ivar end: time of a monotonic clock, in seconds, after which no request is sent
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
        self._close_connection()

    def get(self, path: str) -> dict[str, typing.Any]:
        """Send a GET for a Redfish resource, and return its decoded JSON. Its ETag is stored for ``etag``.

        :param path: path on this BMC, optionally with a query
        :raises BmcError: the BMC does not answer, or its answer is not a resource
        """
        answer = self._get_following_redirects(path)
        resource = self.resource(path, answer.body)
        self._etags[path] = parse_etag(resource, answer.headers.get("ETag", ""))
        return resource

    def body(self, path: str) -> bytes:
        """Return the body of a resource as bytes, without decoding it.

        :param path: path on this BMC
        :raises BmcError: the BMC does not answer, or answers with an error
        """
        return self._get_following_redirects(path).body

    def resource(self, path: str, body: bytes) -> dict[str, typing.Any]:
        """Return the decoded JSON of the body of a resource.

        :param path: path of the resource, for the error message
        :param body: body of the answer
        :raises BmcError: the body is not a JSON object
        """
        data = _decode_body(body)
        if not isinstance(data, dict):
            remedy = "Check the server at this address; restart it if it is a BMC"
            raise self.error("not_json", f"the response to GET {path} is not a JSON object ({len(body)} bytes)", remedy)
        return data

    def _get_following_redirects(self, path: str) -> BmcAnswer:
        """Return the answer with status 200 to a GET. At most ``_REDIRECTS`` redirections within this BMC are followed.

        :param path: path on this BMC
        :raises BmcError: the BMC does not answer, answers with another status, or redirects to another host
        """
        for _redirect in range(_REDIRECTS + 1):
            answer = self._request_with_retries("GET", path)
            if answer.status == 200:
                return answer
            if answer.status not in (301, 302, 307, 308):
                raise explain_refused(self.bmc, f"GET {path}", answer.status, parse_message_id(answer.data))
            path = self._resolve_redirect(path, answer.headers.get("Location", ""))
        raise self.error("status", f"GET {path} is redirected repeatedly", "Update the firmware of the BMC")

    def etag(self, path: str) -> str:
        """Return the ETag of a resource from the last ``get`` of its path. Return an empty text if the resource was not
        read, or has no ETag.

        :param path: path on this BMC
        """
        return self._etags.get(path, "")

    def send(self, method: str, path: str, write: Write) -> BmcAnswer:
        """Send a write, and return the answer of the BMC. It is sent only once: if the connection breaks, the result
        can only be determined by reading. Only a PATCH that the BMC has postponed (status 429 or 503) is sent again.

        :param method: PATCH or POST
        :param path: path on this BMC
        :param write: content of the request, and the checks before it is sent
        :raises BmcError: with the cause ``closed``, ``timeout`` or ``busy``: it is unknown whether the BMC has accepted
            the write; with any other cause: the BMC has not accepted it
        :raises RdmaError: the write is not permitted
        """
        return self._request_with_retries(method, path, write)

    def _resolve_redirect(self, path: str, location: str) -> str:
        """Return the path on this BMC that a redirection leads to.

        :param path: path of the redirected request
        :param location: header ``Location`` of the answer
        :raises BmcError: the redirection leads to another host, which must not get the password, or is invalid
        """
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
                "Set the address that the BMC redirects to, if it belongs to the BMC",
            )
        return target

    def _request_with_retries(self, method: str, path: str, write: typing.Optional[Write] = None) -> BmcAnswer:
        """Return the answer to a request, of any HTTP status. If the BMC is busy, a GET or PATCH is sent again. If the
        connection broke, only a GET is sent again. There are at most ``ATTEMPTS`` attempts, within the time limit of
        the BMC.

        :param method: GET, PATCH or POST
        :param path: path on this BMC
        :param write: content and checks of a PATCH or POST; None for a GET
        :raises BmcError: the BMC does not answer, or is busy until the time limit
        """
        what, busy = f"{method} {path}", _PUT_OFF[method]
        for attempt in range(1, ATTEMPTS + 1):
            # a connection that was kept open may have been closed meanwhile: at first a new one is tried at once
            wait = attempt - 1.0
            if write:
                write.prove()
            try:
                answer = self._exchange_once(method, path, write)
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
                    f"the BMC postponed {what} until the limit of {self._seconds:g} s was reached",
                    "Set a longer limit, or rerun later",
                )
            self._sleep(wait)
        raise AssertionError("the last attempt returns or raises")

    def _exchange_once(self, method: str, path: str, write: typing.Optional[Write]) -> BmcAnswer:
        with self._convert_errors(f"{method} {path}"):
            connection = self._connection or self._open_connection()
            secure = typing.cast(TlsChannel, connection.sock)
            secure.expect_answer()
            # nothing but sending it comes after this
            self._until = min(self.end, time.monotonic() + write.guard.seconds()) if write else self.end
            secure.end = self._until
            count_seconds_left(self._until)
            connection.request(method, path, write.body if write else None, self._build_headers(write))
            response = connection.getresponse()
            read = self._read(f"{method} {path}", response)
        if response.will_close:
            self._close_connection()
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
                part = self._inflate_part(what, inflate, part)
            size += len(part)
            if max(size, taken) > LARGEST or len(parts) >= _MOST_PARTS:
                self._close_connection()
                limit = (
                    f"the response to {what} has {_MOST_PARTS} parts"
                    if max(size, taken) <= LARGEST
                    else f"the response to {what} has more than {LARGEST // 2**20} MiB"
                )
                raise self.error(
                    "too_large", limit, "Check the server at this address: no resource of a BMC is that large"
                )
            parts.append(part)
        if response.length:
            raise http.client.IncompleteRead(b"", response.length)
        # or the connection takes no other request
        response.close()
        return b"".join(parts)

    def _inflate_part(self, what: str, inflate: typing.Any, part: bytes) -> bytes:
        """Return one piece of a compressed answer, decompressed.

        :param what: description of the request
        :param inflate: decompressor of zlib that has got the earlier parts
        :param part: bytes of the piece
        :raises zlib.error: the data is not in gzip format
        :raises BmcError: data follows the end of the compressed stream. zlib would append each further part to the data
            before it, which takes quadratic time
        """
        was_complete = inflate.eof
        found: bytes = b"" if was_complete else inflate.decompress(part, LARGEST + 1)
        if was_complete or inflate.unused_data:
            self._close_connection()
            raise self.error(
                "not_json",
                f"the response to {what} has bytes after the end of the gzip data",
                "Check the server at this address; restart it if it is a BMC",
            )
        return found

    def _build_headers(self, write: typing.Optional[Write]) -> dict[str, str]:
        headers = {"Accept": "application/json", "Accept-Encoding": "identity", "OData-Version": "4.0"}
        if write:
            headers.update({**write.headers, "Content-Type": "application/json"})
        if self.bmc.token:
            return {**headers, "X-Auth-Token": self.bmc.token}
        return {**headers, "Authorization": f"Basic {encode_basic(self.bmc)}"}

    def _open_connection(self) -> http.client.HTTPSConnection:
        host, context = self.bmc.address.strip("[]"), self._trust.context(self.bmc)
        plain = socket.create_connection((host, self.bmc.port), min(CONNECT, count_seconds_left(self.end)))
        try:
            secure = TlsChannel(plain, context, host, self.end, _MOST_RAW)
            secure.handshake()
        except BaseException:
            plain.close()
            raise
        # before anything is sent to it
        shown = read_digest(secure) if self.bmc.fingerprint else ""
        if not hmac.compare_digest(shown, self.bmc.fingerprint):
            secure.close()
            seen = f"its certificate differs from the pinned certificate: its SHA-256 is {shown or 'unknown'}"
            raise self.error("tls_pin", seen, "Check which server responds; pin the new certificate if the BMC has one")
        connection = http.client.HTTPSConnection(host, self.bmc.port, context=context)
        connection.auto_open = 0
        connection.response_class = BoundedResponse
        connection.sock = typing.cast(typing.Any, secure)
        self._connection = connection
        return connection

    def _close_connection(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def error(self, cause: Cause, what: str, remedy: str) -> BmcError:
        """Return an error of the BMC of this session.

        :param cause: category of the error
        :param what: description of the error without the name of the BMC
        :param remedy: instruction to the user that resolves the cause
        """
        return self.bmc.error(cause, what, remedy)

    @contextlib.contextmanager
    def _convert_errors(self, what: str) -> typing.Iterator[None]:
        """Return a context manager that converts errors of the socket, TLS and HTTP to a BmcError with a cause and a
        remedy, and closes the connection.

        :param what: request for the message, such as ``GET /redfish/v1``
        """
        try:
            yield
        except BmcError:
            self._close_connection()
            raise
        except TooMuch:
            self._close_connection()
            raise self.error(
                "too_large",
                (
                    f"the response to {what} has more than {_MOST_RAW // 2**20} MiB of TLS and HTTP data around its"
                    " content"
                ),
                "Check the server at this address; restart it if it is a BMC",
            ) from None
        except HeadError as error:
            self._close_connection()
            raise self.error(
                "too_large", f"{what}: {error}", "Check the server at this address; restart it if it is a BMC"
            ) from None
        except ssl.SSLCertVerificationError as error:
            self._close_connection()
            # without what it was raised in: that holds the headers
            raise explain_untrusted(self.bmc, error) from None
        except (OSError, http.client.HTTPException, zlib.error, ValueError) as error:
            self._close_connection()
            timeout = isinstance(error, (TimeoutError, socket.timeout))
            if timeout and time.monotonic() >= self.end:
                raise explain_timeout(self.bmc, what, self._seconds) from None
            if timeout and time.monotonic() >= self._until:
                raise out_of_hold(self.bmc, what) from None
            raise explain_lost(self.bmc, what, error) from None


def _decode_body(body: bytes) -> typing.Any:
    """Return the JSON data of a body. Return None if it is not valid JSON, or is larger than ``LARGEST`` bytes."""
    try:
        return decode_json(body, "Redfish", most_bytes=LARGEST, unique=False)
    except ParseError:
        return None
