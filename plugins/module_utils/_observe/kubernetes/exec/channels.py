# SPDX-License-Identifier: GPL-3.0-or-later

"""The channels of one exec as bytes over a websocket, in both directions at once. The protocols are v5.channel.k8s.io
and v4.channel.k8s.io.

The kubernetes client provides the credentials, and the websocket library provides the websocket protocol. The WSClient
of the kubernetes client is not used. Up to release 25 it decodes all bytes as text. It hides the HTTP status of a
refusal, sends no impersonation headers, and writes without reading. A command whose output is not read may stop reading
its stdin, so a writer that does not read could wait forever.
"""

from __future__ import annotations

import contextlib
import select
import ssl
import time
import typing

from ...._parse.pods.framing import ERROR, STDERR, STDOUT

try:
    import websocket

    _Base: typing.Any = websocket.WebSocket
    #: how a connection ends; ValueError is that of a socket which another thread closes at this moment
    ENDS: tuple[type[Exception], ...] = (websocket.WebSocketException, OSError, ValueError)
except ImportError:
    # the modules name the missing library before they come here
    _Base, ENDS = object, ()

#: bytes of stdin in a frame. A server reads a frame as a whole, so that small ones let it answer in between
CHUNK = 32 * 1024
#: bytes that are received before anything else gets its turn
BURST = 1024 * 1024
#: frames and seconds likewise: frames may be empty
BURST_FRAMES, BURST_SECONDS = 4096, 0.25
#: frames of one connection, or small pieces of them, and for each of its seconds: each takes some 10 us, whatever is in
#: it. A program that prints line by line, each in a frame of its own, prints thousands
MOST_FRAMES, FRAMES_A_SECOND = 65_536, 500
#: bytes of the smallest head of a frame
_HEAD = 2
#: bytes of a piece of a frame below which it counts as a frame of its own: it costs as much as one. A piece that ends
#: with a packet of the network or a record of TLS has more
_SMALL_PIECE = 512
#: bytes that are read at once
_PIECE = 16 * 1024
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


class Answering:
    """A wrapper of a socket during the HTTP handshake, which limits the bytes and the seconds of the server's answer.

    :ivar whole: the wrapped socket
    """

    def __init__(self, whole: typing.Any, seconds: float) -> None:
        self.whole = whole
        self._left, self._end = MOST_ANSWER, time.monotonic() + seconds

    def recv(self, size: int) -> bytes:
        """Receive and return bytes of the server's answer, within the limits of bytes and time.

        :param size: maximum number of bytes to receive
        :raises WebSocketException: the answer is too long or takes too long
        """
        if self._left <= 0:
            raise websocket.WebSocketProtocolException(f"the response has more than {MOST_ANSWER} bytes")
        if time.monotonic() >= self._end:
            raise websocket.WebSocketTimeoutException("the response takes too long")
        # a body has the length that its head says, and so much memory would be taken at once
        data = bytes(self.whole.recv(min(size, self._left)))
        self._left -= len(data)
        return data

    def __getattr__(self, name: str) -> typing.Any:
        return getattr(self.whole, name)


class Socket(_Base):  # type: ignore[misc]
    """A nonblocking websocket that queues outgoing frames in ``waiting``. A frame that the library sends itself, such
    as a pong, is sent after the frame that is partly sent.
    """

    def __init__(self, seconds: typing.Optional[float] = None, **options: typing.Any) -> None:
        """Create a socket that is not connected yet.

        :param seconds: limit in seconds for the answer to the handshake; None if the handshake is complete
        :param options: further options of ``websocket.WebSocket``
        """
        self._seconds = seconds
        self._sock: typing.Any = None
        super().__init__(**options)
        self.waiting = bytearray()
        #: of the message that is not whole yet
        self._parts = 0
        #: bytes and frames that may still be received in this turn, and the time of its end
        self._bytes, self._frames, self._end = 0, 0, 0.0
        #: frames and small pieces of them that came, and since when
        self._heard, self._since = 0, time.monotonic()
        #: of the head or the content of a frame that is not whole yet
        self._came = bytearray()
        self.frame_buffer.recv_strict = self._read_part

    @property
    def sock(self) -> typing.Any:
        """Return the socket of the connection; None if it is not connected. The websocket library sets it before the
        handshake.
        """
        return self._sock

    @sock.setter
    def sock(self, sock: typing.Any) -> None:
        self._sock = sock if sock is None or self._seconds is None else Answering(sock, self._seconds)

    def answered(self) -> None:
        """Mark the handshake as complete. From then on, the limits of frames apply instead of those of the HTTP
        answer.
        """
        self._seconds = None
        self._sock = getattr(self._sock, "whole", self._sock)

    def begin_turn(self) -> None:
        """Reset the limits of bytes, frames and seconds for one call that receives data (a turn). Because of these
        limits, a flood of data cannot delay the check of a timeout.
        """
        self._bytes, self._frames, self._end = BURST, BURST_FRAMES, time.monotonic() + BURST_SECONDS

    def _read_part(self, size: int) -> bytes:
        """Return the next bytes of a frame: its header, a part of its header or its content. This replaces a method of
        the library that concatenates all fragments each time that a new fragment arrives.

        :param size: number of bytes
        :raises BlockingIOError: not all bytes have arrived, or the limits of this turn are reached. The bytes so far
            are kept
        :raises WebSocketProtocolException: more than MOST_FRAME bytes are requested, or they arrive in too many
            fragments
        """
        if size > MOST_FRAME:
            raise websocket.WebSocketProtocolException(f"a frame has {size} bytes; the limit is {MOST_FRAME} bytes")
        while len(self._came) < size:
            if time.monotonic() >= self._end:
                raise BlockingIOError
            wanted = min(_PIECE, size - len(self._came))
            piece = self.frame_buffer.recv(wanted)
            self._came += piece
            if len(piece) < min(wanted, _SMALL_PIECE):
                self._count_one()
        part = bytes(self._came[:size])
        del self._came[:size]
        return part

    def _count_one(self) -> None:
        """Count a received frame, or a small fragment of a frame, against the limit of the connection.

        :raises WebSocketProtocolException: there are more of them than a command can print: ``MOST_FRAMES``, and
            ``FRAMES_A_SECOND`` for each second of the connection
        """
        self._heard += 1
        seconds = time.monotonic() - self._since
        if self._heard > MOST_FRAMES + FRAMES_A_SECOND * seconds:
            raise websocket.WebSocketProtocolException(
                f"the stream sent {self._heard} frames or fragments within {seconds:.0f} s, more than any command"
                " prints"
            )

    def recv_frame(self) -> typing.Any:
        """Receive and return the next frame. Returning after each frame keeps the library from reading all frames of a
        message in one call.

        :raises BlockingIOError: no data is available, or the limits of this turn are reached
        :raises WebSocketProtocolException: a message is larger than MOST_FRAME, or there are too many frames
        """
        if self._bytes <= 0 or self._frames <= 0 or time.monotonic() >= self._end:
            raise BlockingIOError
        frame = super().recv_frame()
        if frame is not None:
            self._bytes -= _HEAD + len(frame.data)
            self._frames -= 1
            self._count_one()
        if frame is not None and frame.opcode in (
            websocket.ABNF.OPCODE_CONT,
            websocket.ABNF.OPCODE_BINARY,
            websocket.ABNF.OPCODE_TEXT,
        ):
            self._parts += _HEAD + len(frame.data)
            if self._parts > MOST_FRAME:
                raise websocket.WebSocketProtocolException(f"a message has more than {MOST_FRAME} bytes")
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
    """The open channels of one exec. A connection error is stored in ``lost`` instead of being raised, so that data
    that arrived before the error can still be read.

    :ivar open: whether the connection is open
    :ivar lost: error that ended the connection; empty while it is open, and if the server closed it normally
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
        """Return whether bytes are waiting to be sent."""
        return bool(self._stdin or self._socket.waiting)

    def write(self, data: bytes) -> None:
        """Queue bytes for stdin, and send as many as the socket accepts. Call ``update`` to send the rest. The bytes
        are dropped if the connection is closed or broken.
        """
        if data and self.open and not self._mute:
            self._stdin.append(memoryview(data))
            self._send()

    def take(self, channel: int) -> bytes:
        """Return the bytes that arrived on a channel since the last call. Return no bytes if nothing arrived.

        :param channel: number of the channel: 1 is stdout, 2 stderr, 3 the status
        """
        return bytes(self._came.pop(channel, b""))

    def update(self, seconds: float) -> None:
        """Send and receive data. Wait for at most ``seconds`` until the socket is ready. A connection error ends the
        connection and is stored in ``lost``.
        """
        if not self.open:
            return
        if not self._mute and time.monotonic() - self._traffic > QUIET_SECONDS:
            self._traffic = time.monotonic()
            self._socket.ping()
        try:
            if self._wait_for_data(seconds):
                self._receive()
        except ENDS as error:
            self.open = False
            self.lost = self._mute or str(error) or type(error).__name__
        self._send()

    def _wait_for_data(self, seconds: float) -> bool:
        """Wait until the socket is ready. Return whether there is data to receive.

        :param seconds: longest wait in seconds
        """
        sock = self._require_open_socket()
        # TLS decrypts several frames at once, and no poll shows what it holds
        if isinstance(sock, ssl.SSLSocket) and sock.pending():
            return True
        poll = select.poll()
        poll.register(sock, select.POLLIN | (select.POLLOUT if self.unsent else 0))
        return any(events & ~select.POLLOUT for _number, events in poll.poll(max(0.0, seconds) * 1000))

    def _require_open_socket(self) -> typing.Any:
        """Return the socket of the connection, which must be open.

        :raises ConnectionError: another thread has closed the connection
        """
        if self._socket.sock is None:
            raise ConnectionError("closed by this process")
        return self._socket.sock

    def _receive(self) -> None:
        """Receive the available data, up to a limit for each call, so that a flood of data does not delay the check of
        a timeout. The websocket library keeps incomplete frames.
        """
        self._socket.begin_turn()
        with contextlib.suppress(*_LATER):
            while self.open:
                opcode, frame = self._socket.recv_data_frame(True)
                self._traffic = time.monotonic()
                if opcode == websocket.ABNF.OPCODE_CLOSE:
                    self._send_waiting_bytes()
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
        """Send as many bytes as the socket accepts without waiting. After an error, the remaining bytes are dropped,
        and nothing is sent any more.
        """
        try:
            while self.unsent and self.open:
                if not self._socket.waiting:
                    piece = self._stdin[0][:CHUNK]
                    self._stdin[0] = self._stdin[0][CHUNK:]
                    if not self._stdin[0]:
                        del self._stdin[0]
                    self._socket.send(b"\0" + bytes(piece), websocket.ABNF.OPCODE_BINARY)
                if not self._send_waiting_bytes():
                    return
                self._traffic = time.monotonic()
        except ENDS as error:
            # what the server said before it went away is still to be read, and then the end of it shows there as well
            self._mute = str(error) or type(error).__name__
            self._stdin.clear()
            self._socket.waiting.clear()

    def _send_waiting_bytes(self) -> bool:
        """Send queued bytes. Return False if the socket accepts no bytes at the moment."""
        waiting = self._socket.waiting
        try:
            taken = self._require_open_socket().send(bytes(waiting))
        except _LATER:
            return False
        del waiting[:taken]
        return True

    def close(self) -> None:
        """Close the connection without waiting for the close frame of the server, which would take seconds for each of
        a thousand pods. Another thread may call this.
        """
        if self.open:
            self._stdin.clear()
            with contextlib.suppress(*ENDS):
                self._socket.send_close()
                self._send_waiting_bytes()
        self.open = False
        with contextlib.suppress(*ENDS):
            self._socket.shutdown()
