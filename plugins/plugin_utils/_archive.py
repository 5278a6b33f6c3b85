# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection linerate.rdma: no other code may import this.

"""Brings the archive of a run to where it survives the job: a folder, or an address that takes PUT. Runs on the
controller.

An answer elsewhere (a redirection) is not followed: what was meant for one host, a signature or a token, is no other
host's business.
"""

from __future__ import annotations

import base64
import datetime
import html
import http.client
import io
import json
import math
import os
import re
import socket
import ssl
import tempfile
import threading
import time
import typing
import urllib.error
import urllib.parse

from ansible.module_utils.urls import open_url

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.text import plain
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.archive import (
    VARIABLE,
    Address,
    ArchiveError,
    ArchiveLogin,
    Folder,
    Place,
)
from ansible_collections.linerate.rdma.plugins.module_utils._parse.archive import parse_expiry, place_of, refusal_words
from ansible_collections.linerate.rdma.plugins.module_utils._store.evidence import pack
from ansible_collections.linerate.rdma.plugins.module_utils._store.files import write_text

#: seconds in which a server must give a sign
PATIENCE = 60.0
#: seconds that an upload may take in all attempts, and as many more as its size has at SLOWEST: one exchange may take
#: so long as well
IN_ALL = 3 * PATIENCE
#: seconds in which it must give a sign to a look at it, before the run
_PATIENCE_FOR_A_LOOK = 15.0
#: bytes a second that an upload must have on the whole
SLOWEST = 64 << 10
#: bytes of a refusal that are read
_MOST = 65536
#: answers that a moment later may be others
_AGAIN = (408, 425, 429, 500, 502, 503, 504)
_NAME = re.compile(r"rdma-evidence-([0-9]{8}T[0-9]{6}Z-[0-9a-f]{6})\.tar\.gz")
_OFF = f"or leave {VARIABLE} out"


class Sent(typing.NamedTuple):
    """:ivar place: of the archive, as it may be shown
    :ivar sha256: of the archive
    :ivar size: of the archive, in bytes
    :ivar sum_place: of its checksum; empty where none could be put beside it
    :ivar removed: older archives that are not kept any more
    """

    place: str
    sha256: str
    size: int
    sum_place: str = ""
    removed: tuple[str, ...] = ()


class Attempts(typing.NamedTuple):
    """The limits on retries for a server that is busy or not reached.

    :ivar retries: after the first attempt, of archive and checksum together
    :ivar delay: seconds before each of them
    :ivar in_all: seconds for all that is sent, and as many more as the size of the archive has at SLOWEST
    """

    retries: int = 0
    delay: float = 0.0
    in_all: float = IN_ALL


_ONCE = Attempts()


class _Upload:
    """An upload to one place, within one time for all of it.

    :param size: of the archive, in bytes
    """

    def __init__(
        self, place: Address, login: ArchiveLogin, authority: str, patience: float, attempts: Attempts, size: int
    ) -> None:
        self._place, self._login, self._authority, self._patience = place, login, authority, patience
        self._left, self._delay = attempts.retries, attempts.delay
        self._end = time.monotonic() + attempts.in_all + size / SLOWEST

    def put(self, base: str, content: bytes) -> None:
        """:raises ArchiveError: the place does not take it, or not in time"""
        while True:
            seconds = max(0.0, self._end - time.monotonic())
            try:
                return _request(
                    self._place,
                    "PUT",
                    base,
                    self._login,
                    self._authority,
                    self._patience,
                    content,
                    most_seconds=seconds,
                )
            except ArchiveError as error:
                # an attempt that has less time than a server may be silent would tell nothing new
                if not error.again or self._left < 1 or time.monotonic() + self._delay + self._patience > self._end:
                    raise
            self._left -= 1
            time.sleep(self._delay)


def look(place: Place, login: ArchiveLogin, authority: str, dry: bool) -> None:
    """Check that the archive can be sent there, as far as that shows without sending it.

    :param authority: file with certificates that are trusted in place of the system's; empty: the system's
    :param dry: nothing is written
    :raises ArchiveError: it can't
    """
    if isinstance(place, Folder):
        _look_at_folder(place, dry)
        return
    _look_at_login(place, login)
    if authority:
        try:
            ssl.create_default_context(cafile=authority)
        except (OSError, ValueError) as error:
            seen = (
                f"{authority} holds no certificate that can be trusted:"
                f" {getattr(error, 'strerror', None) or type(error).__name__}"
            )
            raise ArchiveError(seen, f"Name a file of PEM in {VARIABLE}_ca, or leave it out") from None
    until = parse_expiry(place)
    if until is not None and until <= datetime.datetime.now(datetime.timezone.utc):
        seen = f"the signature of {place.shown} is over since {until:%Y-%m-%d %H:%M:%S} UTC"
        raise ArchiveError(seen, "Sign the address anew, for longer than the run takes")
    # whoever answers is there, whatever it says: a signature for PUT is good for nothing else, so it is not sent
    _request(place, "HEAD", place.of("look", ""), ArchiveLogin(), authority, _PATIENCE_FOR_A_LOOK, None, bare=True)


def send(
    report_dir: str,
    run: str,
    place: Place,
    login: ArchiveLogin,
    authority: str,
    keep: int,
    patience: float = PATIENCE,
    attempts: Attempts = _ONCE,
) -> Sent:
    """Pack the folder of a run, and bring it there, the checksum after it: where one is, the archive is whole.

    :param keep: archives that stay in a folder, this one included; addresses keep what they keep
    :param patience: seconds in which a server must give a sign
    :param attempts: whose time is for archive and checksum together
    :raises ArchiveError: the place does not take it
    :raises FileError: something of the run can't be read, or the folder not written
    """
    top = f"rdma-evidence-{run}"
    name = f"{top}.tar.gz"
    if isinstance(place, Folder):
        folder = path_of(place)
        path = os.path.join(folder, name)
        digest = pack(report_dir, path, top).sha256
        write_text(f"{path}.sha256", _sum_line(digest, name))
        return Sent(path, digest, os.path.getsize(path), f"{path}.sha256", tuple(_prune(folder, run, keep)))
    _look_at_login(place, login)
    with tempfile.TemporaryDirectory(prefix="linerate-rdma-") as folder:
        path = os.path.join(folder, name)
        digest = pack(report_dir, path, top).sha256
        with open(path, "rb") as stream:
            content = stream.read()
    base = place.of(run, name)
    upload = _Upload(place, login, authority, patience, attempts, len(content))
    upload.put(base, content)
    shown = place.cut(base)
    if place.query and not place.in_folder:
        # the signature is of one file
        return Sent(shown, digest, len(content))
    upload.put(f"{base}.sha256", _sum_line(digest, base.rpartition("/")[2]).encode())
    return Sent(shown, digest, len(content), place.cut(f"{base}.sha256"))


def path_of(place: Folder) -> str:
    """Absolute path, from where ansible-playbook was called."""
    return os.path.abspath(os.path.expanduser(place.path))


def _sum_line(digest: str, name: str) -> str:
    """As ``sha256sum --check`` takes it."""
    return f"{digest}  {name}\n"


def _look_at_folder(place: Folder, dry: bool) -> None:
    path = path_of(place)
    try:
        if not dry:
            os.makedirs(path, exist_ok=True)
            with tempfile.TemporaryFile(dir=path):
                return
        there = path
        while not os.path.lexists(there):
            there = os.path.dirname(there)
        if not os.path.isdir(there):
            raise NotADirectoryError(20, "Not a directory")
        if not os.access(there, os.W_OK | os.X_OK):
            raise PermissionError(13, "Permission denied")
    except OSError as error:
        raise ArchiveError(
            f"the folder {path} can't be written: {error.strerror}",
            f"Make it, and let this user write there; name another one, {_OFF}",
        ) from error


def _look_at_login(place: Address, login: ArchiveLogin) -> None:
    """:raises ArchiveError: it contradicts itself, or would be sent for all to read"""
    if login.token and (login.user or login.password):
        raise ArchiveError(
            f"{place.shown}: both a token and a user are in the environment",
            "Set RDMA_REPORT_ARCHIVE_TOKEN, or user and password, and not both",
        )
    if bool(login.user) != bool(login.password):
        raise ArchiveError(
            f"{place.shown}: a user without a password, or a password without a user, is in the environment",
            "Set both, or none",
        )
    if not (login.token + login.user + login.password).isprintable() or not login.token.isascii():
        raise ArchiveError(
            f"{place.shown}: user, password or token in the environment has a sign that no header has",
            "Set it again, on one line",
        )
    if login.is_named and place.is_clear:
        seen = f"{place.shown} is not encrypted, and whoever is on the way would read password or token"
        raise ArchiveError(seen, "Give an https address, or leave the credentials out")


def _request(
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
    """Ask within a time for the whole exchange: each socket gives up after its own silence, and a server that drips is
    never silent.

    :param bare: without the query, and any answer will do
    :param most_seconds: that are left for it
    :raises ArchiveError: no answer, or a refusal
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

    # a daemon: what still waits for the server ends with the task
    thread = threading.Thread(target=exchange, daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        raise _late(base if bare else place.cut(base), seconds)
    if failures:
        raise failures[0]


class _Late(TimeoutError):
    """The time for the whole exchange is over."""


class _Body:
    """The body of the upload, in pieces: the time of a socket is that of one call, and one for all of it would bound
    the whole upload.

    :param end: by a monotonic clock; after it nothing more is sent
    :param seconds: from the beginning to that end
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
                raise _refused(shown, error, place, login, patience) from None
    # whatever is raised, its own text may hold the whole address
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise _silent(shown, error, patience, body.seconds) from None
    else:
        with answer:
            pass


def _refused(
    shown: str, error: urllib.error.HTTPError, place: Address, login: ArchiveLogin, patience: float
) -> ArchiveError:
    words = _remove_secrets(refusal_words(_read(error, patience).decode("utf-8", errors="replace")), place, login)
    seen = f"{shown} did not take the archive: HTTP {error.code} {http.client.responses.get(error.code, '')}".rstrip()
    seen += f" ({words})" if words else ""
    return ArchiveError(seen, _remedy(error, place, login), error.code in _AGAIN)


def _read(error: urllib.error.HTTPError, seconds: float) -> bytes:
    """Read the message of a refusal, as much of it as comes within that time."""
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


def _late(shown: str, seconds: float) -> ArchiveError:
    """A server that has used up its time would use up that of each further attempt."""
    seen = f"{shown} has not taken it within {seconds:.3g} s, the time that there is for it"
    return ArchiveError(seen, f"Look at the server and the network: less than {SLOWEST >> 10} KiB/s is given up")


def _remove_secrets(words: str, place: Address, login: ArchiveLogin) -> str:
    """Return the message of a server, without the secrets that it was sent, in whichever of its forms: as it is,
    percent-encoded or decoded, and in base64."""
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
    """Return the pattern of a part of a text, an escape of which may be in capitals or not."""
    return f"(?i:{part})" if re.fullmatch(r"%[0-9A-Fa-f]{2}", part) else re.escape(part)


def _remedy(error: urllib.error.HTTPError, place: Address, login: ArchiveLogin) -> str:
    code = error.code
    if 300 <= code < 400:
        to = _remove_secrets(_elsewhere(error.headers.get("Location")), place, login)
        return (
            f"It is elsewhere{f', on {to}' if to else ''}: give the address of that place itself, signed for it where"
            " it is signed"
        )
    if code in (400, 403) and place.query:
        return (
            "Sign the address anew: for PUT, for this very file, for longer than the run takes, and by somebody who may"
            " write it"
        )
    if code == 401 or (code == 403 and not place.query):
        return (
            "Look at user and password, or the token, in the environment of ansible-playbook (RDMA_REPORT_ARCHIVE_*),"
            " and whether they may write there"
        )
    if code in (404, 409):
        return "Make the folder, or the bucket, and look whether the address is right"
    if code in (405, 501):
        return "Give an address that takes PUT: WebDAV, or a signed address of S3"
    if code == 413:
        return "Raise the size that the server, or a proxy before it, takes"
    if code in (402, 507):
        return "Make room there, or give another place"
    return "Look at the server; then send it again: ansible-playbook linerate.rdma.report"


def _elsewhere(location: typing.Optional[str]) -> str:
    """Scheme and host to which a server sends; empty where it is no address. It may write what it was sent into the
    path."""
    try:
        found = place_of(location)
    except ArchiveError:
        return ""
    return plain("/".join(found.base.split("/")[:3]), 300) if isinstance(found, Address) else ""


def _silent(shown: str, error: Exception, patience: float, seconds: float) -> ArchiveError:
    reason: typing.Any = getattr(error, "reason", None)
    cause = reason if isinstance(reason, Exception) else error
    if isinstance(cause, ssl.SSLCertVerificationError):
        seen = f"{shown}: its certificate is not trusted: {plain(cause.verify_message or 'no reason is given', 200)}"
        return ArchiveError(
            seen, f"Name the authority in {VARIABLE}_ca, a file of PEM, and the host as the certificate does"
        )
    if isinstance(cause, ssl.SSLError):
        return ArchiveError(
            f"{shown}: no TLS: {plain(str(cause.reason or 'no reason is given'), 100)}",
            "Look whether that port speaks TLS, or needs http:// instead",
        )
    if isinstance(cause, _Late):
        return _late(shown, seconds)
    if isinstance(cause, (socket.timeout, TimeoutError)):
        return ArchiveError(
            f"{shown} gave no sign within {patience:g} s",
            "Look whether it is up, and whether a firewall or a proxy is on the way",
            True,
        )
    if isinstance(cause, socket.gaierror):
        return ArchiveError(
            f"{shown}: nobody knows this host: {cause.strerror}",
            "Correct the name, or the DNS of where ansible-playbook runs",
            True,
        )
    if isinstance(cause, ConnectionRefusedError):
        return ArchiveError(
            f"{shown}: the connection is refused", "Look whether it is up, and whether the port is right", True
        )
    if isinstance(cause, (BrokenPipeError, ConnectionResetError, http.client.RemoteDisconnected)):
        seen = f"{shown} ended the connection before it had all of it, and without an answer"
        return ArchiveError(seen, "Look at its log; a limit of size is the likeliest cause", True)
    if isinstance(cause, OSError) and cause.strerror:
        return ArchiveError(
            f"{shown} is not reached: {plain(str(cause.strerror), 200)}",
            "Look whether it is up, and the way there",
            True,
        )
    return ArchiveError(
        f"{shown} is not reached: {type(cause).__name__}", "Look whether it is up, and whether it speaks HTTP", True
    )


def _prune(folder: str, run: str, keep: int) -> typing.Iterator[str]:
    """Let the oldest go. Only what has the name of an archive is one.

    :raises ArchiveError: one of them can't be removed
    """
    try:
        there = sorted(match[1] for match in map(_NAME.fullmatch, os.listdir(folder)) if match)
        for old in there[: -max(1, keep)]:
            if old != run:
                path = os.path.join(folder, f"rdma-evidence-{old}.tar.gz")
                os.unlink(path)
                if os.path.exists(f"{path}.sha256"):
                    os.unlink(f"{path}.sha256")
                yield path
    except OSError as error:
        seen = f"an old archive in {folder} can't be removed: {error.strerror}; that of this run is there"
        raise ArchiveError(seen, f"Let this user remove files there, or raise {VARIABLE}_keep") from error
