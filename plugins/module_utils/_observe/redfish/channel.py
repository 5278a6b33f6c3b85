# SPDX-License-Identifier: GPL-3.0-or-later

"""TLS connections to BMCs, with one deadline for all data that is read and sent, and a limit on the size of each
answer.

``ssl.SSLSocket`` has only a time limit for each wait. Within one call, OpenSSL skips TLS records that contain no data,
and does not return as long as a server sends such records. Here OpenSSL has no access to the socket: each piece of data
is read within the deadline, counted, and passed to OpenSSL.
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
    """Raised if more bytes arrive for one answer than a valid answer can have, including the overhead of TLS and
    HTTP.
    """


def count_seconds_left(end: float) -> float:
    """Return the seconds until a deadline.

    :param end: deadline, as a time of ``time.monotonic``
    :raises TimeoutError: the deadline has passed
    """
    left = end - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


class TlsChannel:
    """A TLS connection with those methods of a socket that ``http.client`` calls. It has one deadline, and a limit on
    the received bytes of an answer.

    :param plain: the connected socket, which the channel closes
    :param context: settings of TLS
    :param host: name of the server, against which its certificate is verified
    :param end: deadline for all operations, as a time of ``time.monotonic``
    :param most: maximum number of bytes of one answer, including the overhead of TLS
    :ivar end: deadline for all operations, as a time of ``time.monotonic``. The owner may change it
    """

    def __init__(self, plain: socket.socket, context: ssl.SSLContext, host: str, end: float, most: int) -> None:
        self.end = end
        self._plain, self._most, self._taken = plain, most, 0
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=host)
        self._readers = 0
        self._closed = False

    def handshake(self) -> None:
        """Perform the TLS handshake, and verify the certificate of the server as the TLS context requires.

        :raises OSError: the handshake failed, or the deadline has passed
        :raises TooMuch: the server sent more bytes than one answer may have
        """
        try:
            self._call(self._tls.do_handshake)
        except ssl.SSLError:
            # tell the other end why not
            with contextlib.suppress(OSError):
                self._flush()
            raise

    def certificate(self) -> typing.Optional[bytes]:
        """Return the certificate of the server in DER form. Return None if it has sent none."""
        return self._tls.getpeercert(binary_form=True)

    def expect_answer(self) -> None:
        """Reset the count of received bytes to 0. Call this before each new answer."""
        self._taken = 0

    def sendall(self, data: typing.Any) -> None:
        """Encrypt and send all bytes before the deadline.

        :raises OSError: sending failed, or the deadline has passed
        """
        view = memoryview(data)
        while view:
            view = view[self._call(self._tls.write, view) :]

    def makefile(self, mode: str) -> io.BufferedReader:
        """Return a file object that reads from the connection. The socket stays open until this file and the channel
        are closed.

        :param mode: must be ``rb``
        :raises ValueError: the mode is not ``rb``
        """
        if mode != "rb":
            raise ValueError(mode)
        self._readers += 1
        return io.BufferedReader(_Reader(self))

    def close(self) -> None:
        """Close the channel. The socket is closed once no file object reads from it any more."""
        self._closed = True
        if not self._readers:
            self._plain.close()

    def let_go(self) -> None:
        """Count a file object of this channel as closed. If the channel is closed and this was its last file object,
        close the socket.
        """
        self._readers -= 1
        if self._closed:
            self.close()

    def read_into(self, place: typing.Any) -> int:
        """Read available bytes into a buffer, and wait until some arrive. Return the number of bytes; 0 at the end of
        the stream.

        :param place: writable buffer that receives the bytes
        :raises OSError: reading failed, or the deadline has passed
        :raises TooMuch: the answer exceeds its limit
        """
        try:
            return int(self._call(self._tls.read, len(place), place))
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
            # as ssl.SSLSocket does: HTTP says how long an answer is
            return 0

    def _call(self, step: typing.Callable[..., typing.Any], *arguments: typing.Any) -> typing.Any:
        """Call a function of OpenSSL, and repeat it with further received data as long as it needs more. Send the data
        that it produces, and return its result.

        :param step: method of the TLS object, such as ``read``
        :param arguments: arguments of the method
        :raises OSError: receiving or sending failed, or the deadline has passed
        :raises TooMuch: the answer exceeds its limit
        """
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
        self._plain.settimeout(count_seconds_left(self.end))
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
            self._plain.settimeout(count_seconds_left(self.end))
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
