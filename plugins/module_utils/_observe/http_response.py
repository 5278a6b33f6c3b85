# SPDX-License-Identifier: GPL-3.0-or-later

"""HTTP responses of BMCs, registries and upload servers, with limits on the size of their headers and of the framing of
their bodies.
"""

from __future__ import annotations

import http.client
import typing

#: heads before a body: that of the answer, and interim ones with a status of 1xx
_MOST_HEADS = 9
#: bytes of these heads together: a BMC and a registry send some hundred bytes
MOST_HEAD = 64 * 1024


#: bytes of a line before a chunk that are not an extension: 16 digits, and the end of the line
_OF_CHUNK = 18


class HeadError(http.client.HTTPException):
    """Raised if the header or the trailer of an HTTP response exceeds a limit, or is not valid."""


class BoundedResponse(http.client.HTTPResponse):
    """An HTTP response with limits on the size of its header, of its trailer and of the extensions of its chunks
    (``MOST_HEAD`` bytes each), and on the number of interim responses before it.

    ``http.client`` limits a header to 100 lines of 64 KiB each. But its parser also accepts a single CR as the end of a
    line, so these lines could become millions of headers in one call, and no time limit ends that call. ``http.client``
    also skips interim responses, lines of a trailer and extensions of chunks for as long as a server sends them.
    """

    _heads = 0
    _skipped = 0

    def begin(self) -> None:
        """Read the status line and the header of the response.

        :raises HeadError: the header exceeds a limit or is not valid, or too many interim responses came before it
        """
        whole = self.fp
        self.fp = typing.cast(typing.Any, _Head(whole))
        try:
            super().begin()
        finally:
            # none: the library has closed it
            if self.fp is not None:
                self.fp = whole

    def _read_next_chunk_size(self) -> typing.Any:
        return self._read_skipped(super()._read_next_chunk_size, _OF_CHUNK)  # type: ignore[misc]

    def _read_and_discard_trailer(self) -> None:
        self._read_skipped(super()._read_and_discard_trailer, 0)  # type: ignore[misc]

    def _read_skipped(self, read: typing.Callable[[], typing.Any], free: int) -> typing.Any:
        """Call a function that reads lines whose content is not used (chunk sizes and the trailer), and return its
        result. All such lines of the response together may have ``MOST_HEAD`` bytes.

        :param read: function of ``http.client`` that reads the lines
        :param free: bytes of each line that do not count against the limit
        :raises HeadError: the lines have more bytes
        """
        whole = self.fp
        lines = _Skipped(whole, free, self._skipped)
        self.fp = typing.cast(typing.Any, lines)
        try:
            return read()
        finally:
            self._skipped = lines.skipped
            # none: the library has closed it
            if self.fp is not None:
                self.fp = whole

    def _read_status(self) -> typing.Any:
        self._heads += 1
        if self._heads > _MOST_HEADS:
            raise HeadError(f"the server sent more than {_MOST_HEADS - 1} interim responses before the final response")
        return super()._read_status()  # type: ignore[misc]


class _Head:
    """A wrapper of the response's file that limits the bytes of all header lines together, including those of interim
    responses, to ``MOST_HEAD``.
    """

    def __init__(self, whole: typing.Any) -> None:
        self._whole = whole
        self._left = MOST_HEAD

    def readline(self, size: int) -> bytes:
        """Return the next line of the header.

        :param size: maximum number of bytes to read
        :raises HeadError: the headers have too many bytes, or the line has a CR that does not end it (RFC 9112, 2.2)
        """
        line: bytes = self._whole.readline(min(size, self._left + 1))
        self._left -= len(line)
        if self._left < 0:
            raise HeadError(f"its header has more than {MOST_HEAD} bytes")
        if b"\r" in line[:-2]:
            raise HeadError("a line of its header contains a CR that is not at its end")
        return line

    def close(self) -> None:
        self._whole.close()


class _Skipped:
    """A wrapper of the response's file that limits the bytes of the lines around the chunks of a body (chunk sizes with
    their extensions, and the trailer) to ``MOST_HEAD``.

    :ivar skipped: bytes of such lines so far, without those that do not count
    """

    def __init__(self, whole: typing.Any, free: int, skipped: int) -> None:
        self._whole, self._free, self.skipped = whole, free, skipped

    def readline(self, size: int) -> bytes:
        """Return the next line of the response, and add its bytes to ``skipped``, except the bytes of each line that do
        not count.

        :param size: maximum number of bytes to read
        :raises HeadError: the lines have too many bytes
        """
        line: bytes = self._whole.readline(size)
        self.skipped += max(0, len(line) - self._free)
        if self.skipped > MOST_HEAD:
            raise HeadError(f"its trailer and the extensions of its chunks have more than {MOST_HEAD} bytes")
        return line

    def close(self) -> None:
        self._whole.close()
