# SPDX-License-Identifier: GPL-3.0-or-later

"""TLS to a BMC, with one end for all that is read and sent, and a limit for what one answer takes.

``ssl.SSLSocket`` has a limit of time for each wait. OpenSSL reads over records of TLS that are no data in one call, and
does not wait for as long as a server sends them: such a call has no end. Here OpenSSL sees no socket. Each piece is
read within the time, counted, and handed to it.
"""

from __future__ import annotations

import contextlib
import io
import socket
import ssl
import time
import typing

#: bytes that are read at once
_PIECE = 65536


class TooMuch(Exception):
    """More bytes came for one answer than any has, with all that TLS and HTTP put around it."""


def left(end: float) -> float:
    """Return the seconds until then.

    :raises TimeoutError: none
    """
    left = end - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


class TlsChannel:
    """A TLS connection with the methods of a socket that ``http.client`` calls.

    :param plain: connected; it belongs to the channel
    :param end: moment of ``time.monotonic`` until which all has its time
    :param most: bytes that may come until ``expect_answer`` says that another answer begins
    :ivar end: may be set to another moment
    """

    def __init__(self, plain: socket.socket, context: ssl.SSLContext, host: str, end: float, most: int) -> None:
        self.end = end
        self._plain, self._most, self._taken = plain, most, 0
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=host)
        self._readers = 0
        self._closed = False

    def handshake(self) -> None:
        """Agree with the other end, and check its certificate as the context asks for.

        :raises OSError: it failed, or its time is over
        :raises TooMuch: it took more bytes than one answer
        """
        try:
            self._call(self._tls.do_handshake)
        except ssl.SSLError:
            # tell the other end why not
            with contextlib.suppress(OSError):
                self._flush()
            raise

    def certificate(self) -> typing.Optional[bytes]:
        """Return the certificate that the other end has shown."""
        return self._tls.getpeercert(binary_form=True)

    def expect_answer(self) -> None:
        """Begin to count anew: another answer comes."""
        self._taken = 0

    def sendall(self, data: typing.Any) -> None:
        """Send all of it.

        :raises OSError: it failed, or its time is over
        """
        view = memoryview(data)
        while view:
            view = view[self._call(self._tls.write, view) :]

    def makefile(self, mode: str) -> io.BufferedReader:
        """Return what reads from it. The socket is closed when this is closed as well."""
        if mode != "rb":
            raise ValueError(mode)
        self._readers += 1
        return io.BufferedReader(_Reader(self))

    def close(self) -> None:
        """Close the socket, as soon as nothing reads from it any more."""
        self._closed = True
        if not self._readers:
            self._plain.close()

    def let_go(self) -> None:
        """Count one reader less."""
        self._readers -= 1
        if self._closed:
            self.close()

    def read_into(self, place: typing.Any) -> int:
        """Read what there is, and wait where there is nothing; 0 at the end.

        :raises OSError: it failed, or its time is over
        :raises TooMuch: see ``most``
        """
        try:
            return int(self._call(self._tls.read, len(place), place))
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
            # as ssl.SSLSocket does: HTTP says how long an answer is
            return 0

    def _call(self, step: typing.Callable[..., typing.Any], *arguments: typing.Any) -> typing.Any:
        """Let OpenSSL do a step with what it has been handed, until it needs nothing more."""
        while True:
            try:
                found = step(*arguments)
            except ssl.SSLWantReadError:
                self._flush()
                self._feed()
            else:
                self._flush()
                return found

    def _feed(self) -> None:
        self._plain.settimeout(left(self.end))
        piece = self._plain.recv(_PIECE)
        self._taken += len(piece)
        if self._taken > self._most:
            raise TooMuch
        if piece:
            self._incoming.write(piece)
        else:
            self._incoming.write_eof()

    def _flush(self) -> None:
        waiting = self._outgoing.read()
        if waiting:
            self._plain.settimeout(left(self.end))
            self._plain.sendall(waiting)


class _Reader(io.RawIOBase):
    def __init__(self, channel: TlsChannel) -> None:
        self._channel = channel

    def readable(self) -> bool:
        return True

    def readinto(self, place: typing.Any) -> int:
        return self._channel.read_into(place)

    def close(self) -> None:
        if not self.closed:
            self._channel.let_go()
        super().close()
