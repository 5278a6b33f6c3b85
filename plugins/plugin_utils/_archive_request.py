# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection linerate.rdma: no other code may import this.

"""One HTTP exchange with the server that accepts the archive of a run by PUT, with a time limit and with errors that
have a remedy.

A redirection is not followed, since a signature or a token is valid for one host only.
"""

from __future__ import annotations

import base64
import contextlib
import html
import http.client
import io
import json
import math
import re
import socket
import ssl
import threading
import time
import typing
import urllib.error
import urllib.parse

from ansible.module_utils.urls import open_url

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.text import cut_plain
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.archive import (
    VARIABLE,
    Address,
    ArchiveError,
    ArchiveLogin,
)
from ansible_collections.linerate.rdma.plugins.module_utils._observe.http_response import BoundedResponse, HeadError
from ansible_collections.linerate.rdma.plugins.module_utils._parse.archive import place_of, refusal_words

#: bytes per second that an upload must reach on average
SLOWEST = 64 << 10
#: bytes of a refusal that are read
_MOST = 65536
#: HTTP codes after which a later attempt may succeed
_AGAIN = (408, 425, 429, 500, 502, 503, 504)


def send_request(
    place: Address,
    method: str,
    base: str,
    login: ArchiveLogin,
    authority: str,
    patience: float,
    content: typing.Optional[bytes],
    bare: bool = False,
    most_seconds: float = math.inf,
) -> None:
    """Send a request, and ignore the content of a successful answer. A time limit applies to the whole exchange,
    because the timeout of a socket alone does not end an exchange with a server that reads or writes single bytes.

    :param place: destination of the archive
    :param method: HTTP method, such as PUT
    :param base: address of the request without its query, which names the file
    :param login: user and password, or token, for the destination
    :param authority: file with certificates that are trusted instead of those of the system; empty for those of the
        system
    :param patience: timeout of the socket in seconds
    :param content: body of the request; None for no body
    :param bare: whether the query of ``place`` is left out and any HTTP status is accepted
    :param most_seconds: upper limit of the whole exchange in seconds
    :raises ArchiveError: the server does not answer in time, or refuses the request
    """
    seconds = min(3 * patience + len(content or b"") / SLOWEST, most_seconds)
    failures: list[BaseException] = []

    def exchange() -> None:
        try:
            _exchange(
                place,
                method,
                base,
                login,
                authority,
                patience,
                _Body(content, time.monotonic() + seconds, seconds),
                bare,
            )
        except BaseException as error:
            failures.append(error)

    # a daemon thread, so that an exchange that still waits ends with the task
    thread = threading.Thread(target=exchange, daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        raise _describe_lateness(base if bare else place.cut(base), seconds)
    if failures:
        raise failures[0]


class _Late(TimeoutError):
    """The error that the time limit of a whole HTTP exchange is exceeded."""


class _Body:
    """The body of an upload, from which the HTTP client reads one piece at a time. The timeout of the socket applies to
    each piece.

    :param end: time of the monotonic clock after which no piece is sent
    :param seconds: time limit of the whole exchange, in seconds
    :ivar content: bytes of the body; None for a request without a body
    """

    def __init__(self, content: typing.Optional[bytes], end: float, seconds: float) -> None:
        self.content = content
        self.end = end
        self.seconds = seconds
        self._stream = io.BytesIO(content or b"")

    def read(self, size: int = -1) -> bytes:
        if time.monotonic() > self.end:
            raise _Late
        return self._stream.read(size)


def _exchange(
    place: Address,
    method: str,
    base: str,
    login: ArchiveLogin,
    authority: str,
    patience: float,
    body: _Body,
    bare: bool,
) -> None:
    content = body.content
    headers = (
        {} if content is None else {"Content-Type": "application/gzip" if content[:2] == b"\x1f\x8b" else "text/plain"}
    )
    headers.update({} if content is None else {"Content-Length": str(len(content))})
    if login.token:
        headers["Authorization"] = f"Bearer {login.token}"
    shown = base if bare else place.cut(base)
    try:
        with _bounded_heads():
            answer = open_url(
                base + ("" if bare else place.query),
                data=None if content is None else body,
                headers=headers,
                method=method,
                timeout=patience,
                url_username=login.user or None,
                url_password=login.password or None,
                force_basic_auth=bool(login.user),
                follow_redirects="none",
                ca_path=authority or None,
                http_agent="linerate.rdma",
                use_netrc=False,
            )
    except urllib.error.HTTPError as error:
        with error:
            if not bare:
                raise _describe_refusal(shown, error, place, login, patience) from None
    # the text of the error may contain the address with its secrets, so it is not chained
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise _describe_failure(shown, error, patience, body.seconds) from None
    else:
        with answer:
            pass


@contextlib.contextmanager
def _bounded_heads() -> typing.Iterator[None]:
    """Provide a context in which the size of the header of each answer that a connection of http.client reads is
    limited. The class of the response is replaced, because ``open_url`` has no option for it. The task has a process of
    its own, in which no other request runs meanwhile.
    """
    before = http.client.HTTPConnection.response_class
    http.client.HTTPConnection.response_class = BoundedResponse
    try:
        yield
    finally:
        http.client.HTTPConnection.response_class = before


def _describe_refusal(
    shown: str, error: urllib.error.HTTPError, place: Address, login: ArchiveLogin, patience: float
) -> ArchiveError:
    words = _remove_secrets(
        refusal_words(_read_refusal(error, patience).decode("utf-8", errors="replace")), place, login
    )
    seen = f"{shown} did not accept the archive: HTTP {error.code} {http.client.responses.get(error.code, '')}".rstrip()
    seen += f" ({words})" if words else ""
    return ArchiveError(seen, _find_remedy(error, place, login), error.code in _AGAIN)


def _read_refusal(error: urllib.error.HTTPError, seconds: float) -> bytes:
    """Return the body of the answer with which a server refused a request, as far as it arrives within ``seconds`` and
    at most 64 KiB of it. A lost connection ends the body.

    :param error: refusal, from which the body can be read
    """
    found, end = b"", time.monotonic() + seconds
    try:
        while len(found) < _MOST and time.monotonic() < end:
            part = error.read1(_MOST - len(found))
            if not part:
                break
            found += part
    except (OSError, http.client.HTTPException):
        pass
    return found


def _describe_lateness(shown: str, seconds: float) -> ArchiveError:
    """Return the error that an exchange exceeded its time limit. The error is marked as not worth a retry, since
    another attempt would exceed the limit too.

    :param shown: destination in the form for messages
    :param seconds: time limit that was exceeded
    """
    seen = f"{shown} did not accept the archive within the limit of {seconds:.3g} s"
    return ArchiveError(
        seen, f"Check the server and the network: a transfer slower than {SLOWEST >> 10} KiB/s is aborted"
    )


def _remove_secrets(words: str, place: Address, login: ArchiveLogin) -> str:
    """Return the message of a server with each secret of the request replaced by ``...``. A secret is found in all its
    forms: plain, percent-encoded or decoded, in base64, escaped for HTML or JSON, and in hexadecimal digits. Forms of
    at most three characters are kept.

    :param words: message of the server
    :param place: destination of the archive, whose query may be secret
    :param login: user and password, or token, that were sent
    """
    parts = [part for item in place.query[1:].split("&") for part in (item, item.partition("=")[2])]
    given = {login.password, login.token, place.query, *parts}
    bare = {
        form for secret in given for form in (secret, urllib.parse.unquote(secret), urllib.parse.unquote_plus(secret))
    }
    forms = {
        form
        for secret in bare
        for form in (
            secret,
            *(quote(secret, safe) for quote in (urllib.parse.quote, urllib.parse.quote_plus) for safe in ("", "/")),
        )
    }
    # as XML and JSON escape it, and in hexadecimal digits
    forms |= {
        form
        for secret in bare
        for form in (html.escape(secret), json.dumps(secret)[1:-1], secret.encode("utf-8", "surrogateescape").hex())
    }
    for secret in (
        f"{login.user}:{login.password}" if login.password else "",
        f"Bearer {login.token}" if login.token else "",
        *bare,
    ):
        coded = base64.b64encode(secret.encode("utf-8", "surrogateescape")).decode("ascii")
        forms |= {
            form
            for one in (coded, coded.replace("+", "-").replace("/", "_"))
            for form in (one, one.rstrip("="), urllib.parse.quote(one, ""))
        }
    # the escapes of a percent-encoded text have letters of either case
    for form in sorted((form for form in forms if len(form) > 3), key=len, reverse=True):
        words = re.sub("".join(_either_case(part) for part in re.split(r"(%[0-9A-Fa-f]{2})", form)), "...", words)
    return words


def _either_case(part: str) -> str:
    """Return a regular expression that matches a piece of text. If the piece is a percent-encoded character, such as
    ``%2f``, its letters match in either case.

    :param part: piece of a secret
    """
    return f"(?i:{part})" if re.fullmatch(r"%[0-9A-Fa-f]{2}", part) else re.escape(part)


def _find_remedy(error: urllib.error.HTTPError, place: Address, login: ArchiveLogin) -> str:
    code = error.code
    if 300 <= code < 400:
        to = _remove_secrets(_find_redirection(error.headers.get("Location")), place, login)
        return (
            f"The server redirects to another location{f', on {to}' if to else ''}: set the URL of that location,"
            " signed for that location if the URL is signed"
        )
    if code in (400, 403) and place.query:
        return (
            "Sign the URL again: for PUT, for this exact file, with a validity longer than the run, and by an"
            " account that may write there"
        )
    if code == 401 or (code == 403 and not place.query):
        return (
            "Check the user and the password, or the token, in the environment of ansible-playbook"
            " (RDMA_REPORT_ARCHIVE_*), and whether the account may write there"
        )
    if code in (404, 409):
        return "Create the folder or the bucket, and check that the URL is correct"
    if code in (405, 501):
        return "Set a URL that accepts PUT: WebDAV, or a presigned URL of S3"
    if code == 413:
        return "Increase the size limit of the server, or of a proxy in front of the server"
    if code in (402, 507):
        return "Free space on the server, or set another location"
    return "Check the server, then send the archive again: ansible-playbook linerate.rdma.report"


def _find_redirection(location: typing.Optional[str]) -> str:
    """Return the scheme and host to which a server redirects a request, such as ``https://example.com``. Return an
    empty text if the header Location is missing or not an address. The path is left out, since the server may repeat
    secrets in it.

    :param location: value of the header Location; None if it is missing
    """
    try:
        found = place_of(location)
    except ArchiveError:
        return ""
    return cut_plain("/".join(found.base.split("/")[:3]), 300) if isinstance(found, Address) else ""


def _describe_failure(shown: str, error: Exception, patience: float, seconds: float) -> ArchiveError:
    reason: typing.Any = getattr(error, "reason", None)
    cause = reason if isinstance(reason, Exception) else error
    if isinstance(cause, ssl.SSLCertVerificationError):
        seen = (
            f"{shown}: its certificate is not trusted: {cut_plain(cause.verify_message or 'no reason is given', 200)}"
        )
        return ArchiveError(
            seen,
            (
                f"Set {VARIABLE}_ca to the PEM file of the certificate authority, and use the host name in the"
                " certificate"
            ),
        )
    if isinstance(cause, ssl.SSLError):
        return ArchiveError(
            f"{shown}: TLS failed: {cut_plain(str(cause.reason or 'no reason is given'), 100)}",
            "Check whether the port supports TLS, or requires http:// instead",
        )
    if isinstance(cause, _Late):
        return _describe_lateness(shown, seconds)
    if isinstance(cause, HeadError):
        return ArchiveError(
            f"{shown} sent no valid HTTP response: {cause}", "Check the server, and any proxy in front of the server"
        )
    if isinstance(cause, (socket.timeout, TimeoutError)):
        return ArchiveError(
            f"{shown} did not respond within {patience:g} s",
            "Check that the server is running, and that no firewall or proxy blocks the connection",
            True,
        )
    if isinstance(cause, socket.gaierror):
        return ArchiveError(
            f"{shown}: the host name could not be resolved: {cause.strerror}",
            "Correct the name, or the DNS configuration of the machine that runs ansible-playbook",
            True,
        )
    if isinstance(cause, ConnectionRefusedError):
        return ArchiveError(
            f"{shown}: the connection was refused",
            "Check that the server is running, and that the port is correct",
            True,
        )
    if isinstance(cause, (BrokenPipeError, ConnectionResetError, http.client.RemoteDisconnected)):
        seen = f"{shown} closed the connection before it received the complete archive, and sent no response"
        return ArchiveError(seen, "Check the log of the server; a size limit is the most likely cause", True)
    if isinstance(cause, OSError) and cause.strerror:
        return ArchiveError(
            f"{shown} could not be reached: {cut_plain(str(cause.strerror), 200)}",
            "Check that the server is running, and that this machine can reach the server",
            True,
        )
    return ArchiveError(
        f"{shown} could not be reached: {type(cause).__name__}",
        "Check that the server is running, and that it supports HTTP",
        True,
    )
