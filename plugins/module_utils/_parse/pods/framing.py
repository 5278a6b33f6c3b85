# SPDX-License-Identifier: GPL-3.0-or-later

"""Run a command with stdin in a pod: the shell script that wraps the command, and the client side of its protocol.

The exit status from the API server is not reliable. It reports success for streams that a proxy, a konnectivity agent
or a kubelet cut off [kubernetes/kubernetes#124571, kubernetes-sigs/apiserver-network-proxy#748]. Before version 5 of
the exec protocol, stdin cannot be closed separately. The command therefore runs in a wrapper shell that marks the
beginning and the end of the command:

1. The shell prints ``@linerate-begin`` and waits. No part of the command runs before this line.
2. The client sends a line with a token and the size of stdin in bytes, and then stdin.
3. The command runs. The shell then prints the line ``@linerate-end TOKEN CODE`` on both streams.
4. The client sends the token, and the shell prints ``@linerate-heard TOKEN``.
5. The client sends an empty line, and the shell ends. It also ends if its stdin ends.

The token is on no command line, so no output contains it by accident. Output that a child process prints after step 3
is not part of the answer. The stream is in order, so step 4 proves that all of stdin arrived. A command that received
only a part of stdin and exited with 0 is not a complete answer. Step 4 also keeps the shell running until its output
has arrived, because output from the last moment of a process may be lost.

``head`` takes exactly the bytes of stdin. The ``head`` of busybox may read more than requested, but the client sends no
more until the command has ended.
"""

from __future__ import annotations

import re
import typing

from ..._model.base.errors import ParseError
from ..._model.kubernetes.objects import Answer

#: channels of the exec protocol [k8s.io/apimachinery pkg/util/remotecommand]
STDIN, STDOUT, STDERR, ERROR = 0, 1, 2, 3
BEGIN = b"@linerate-begin\n"

# variables of these names are in no container's environment, from where a shell would hand them on to the command
_SHELL = """
for linerate_tool in head cat; do
  command -v "$linerate_tool" > /dev/null || { echo "the image has no $linerate_tool" >&2; exit 127; }
done
printf '@linerate-begin\\n'
read -r linerate_token linerate_size || exit 1
linerate_run() {
  "$@"
  linerate_code=$?
  cat > /dev/null
  printf '\\n@linerate-end %s %d\\n' "$linerate_token" "$linerate_code"
  printf '\\n@linerate-end %s %d\\n' "$linerate_token" "$linerate_code" >&2
}
if [ "$linerate_size" -gt 0 ]; then head -c "$linerate_size" | linerate_run "$@"; else linerate_run "$@" < /dev/null; fi
while read -r linerate_line && [ "$linerate_line" = "$linerate_token" ]; do
  printf '\\n@linerate-heard %s\\n' "$linerate_token"
done
exit 0
"""
#: what the words of a command follow. Its container needs sh, head and cat
SHELL = ("/bin/sh", "-c", _SHELL, "sh")


class Exchange:
    """The client side of one command. It processes received bytes, and provides the bytes to send and the answer. It
    does no I/O.

    :ivar began: whether the shell in the container has started, so that its output belongs to the command
    """

    def __init__(self, token: str, stdin: bytes = b"") -> None:
        """Create the client side of a command that has not been sent yet.

        :param token: unguessable text of letters and digits, unique for each exchange
        :param stdin: bytes for the stdin of the command
        """
        self._token = token.encode()
        self._stdin = stdin
        self._head = bytearray()
        self._streams = {STDOUT: _Stream(self._token), STDERR: _Stream(self._token)}
        self._due: list[bytes] = []
        self.began = False
        self._heard = False
        self._ended = False

    def feed(self, channel: int, data: bytes) -> None:
        """Process received bytes, in pieces of any size. An empty piece is ignored.

        :param channel: number of the stream: STDOUT, STDERR or another one, which is ignored
        :param data: bytes that were received on this stream
        :raises ParseError: the bytes are not from the wrapper shell, or the streams have different exit codes
        """
        if channel not in self._streams or not data:
            return
        if channel == STDOUT and not self.began:
            self._head += data
            if not BEGIN.startswith(self._head[: len(BEGIN)]):
                raise ParseError(
                    "stdout of the shell in the pod",
                    self._head[:200].decode(errors="replace"),
                    f"{BEGIN.decode().strip()} on a line of its own",
                )
            if len(self._head) < len(BEGIN):
                return
            self.began, data = True, bytes(self._head[len(BEGIN) :])
            self._due.append(b"%s %d\n" % (self._token, len(self._stdin)))
            self._due.append(self._stdin)
        self._streams[channel].feed(data)
        self._queue_due_replies()

    def _queue_due_replies(self) -> None:
        """Queue the answers that the pod expects: one when the command has ended on both streams, and one when the pod
        has heard the first.

        :raises ParseError: the two streams end with different exit codes
        """
        first, second = (self._streams[channel].code for channel in (STDOUT, STDERR))
        if first is None or second is None:
            return
        if first != second:
            raise ParseError("the end marks of the command", f"{first} on stdout, {second} on stderr", "one exit code")
        if not self._ended:
            self._ended = True
            self._due.append(self._token + b"\n")
        if not self._heard and self._streams[STDOUT].heard():
            self._heard = True
            self._due.append(b"\n")

    def due(self) -> list[bytes]:
        """Return the bytes that must be sent now, in pieces and in their order. Each piece is returned once. The list
        is empty if nothing must be sent.
        """
        due, self._due = [piece for piece in self._due if piece], []
        return due

    @property
    def answer(self) -> typing.Optional[Answer]:
        """Return the exit code and the output of the command. Return None until the answer is complete."""
        code = self._streams[STDOUT].code
        if not self._heard or code is None:
            return None
        return Answer(code, self._streams[STDOUT].text, self._streams[STDERR].text)

    @property
    def came(self) -> tuple[int, int]:
        """Return two numbers: the bytes of the command's stdout, and those of its stderr, that were received so far."""
        return len(self._streams[STDOUT].text), len(self._streams[STDERR].text)

    @property
    def size(self) -> int:
        """Return the number of received bytes that are kept in memory, without copying them."""
        return sum(stream.size for stream in self._streams.values())

    @property
    def said(self) -> str:
        """Return the text that was received on stderr so far. Before the command begins, it consists of messages of the
        shell or of the container runtime.
        """
        return self._streams[STDERR].text.decode(errors="replace").strip()

    @property
    def missing(self) -> str:
        """Return a description of the part of the answer that has not been received yet, for messages. Return an empty
        text if the answer is complete.
        """
        if self._heard:
            return ""
        if not self.began:
            return "the first line of the shell in the pod"
        names = [
            name for name, channel in (("stdout", STDOUT), ("stderr", STDERR)) if self._streams[channel].code is None
        ]
        return (
            f"the command's end mark on {' and '.join(names)}"
            if names
            else "the confirmation of the shell that all of stdin arrived"
        )


class _Stream:
    """The bytes that were received on stdout or stderr. They contain the output of the command between the lines of the
    protocol.

    :param token: unguessable text in the lines of the protocol
    :ivar code: exit code of the command; None before the command has ended
    """

    def __init__(self, token: bytes) -> None:
        self._end = re.compile(rb"\n@linerate-end %s ([0-9]{1,3})\n" % re.escape(token))
        self._hears = b"\n@linerate-heard %s\n" % token
        self._data = bytearray()
        self._stop: typing.Optional[int] = None
        #: up to where nobody heard
        self._searched = 0
        self.code: typing.Optional[int] = None

    def feed(self, data: bytes) -> None:
        """Take data of the stream, and search them for the end mark of the command."""
        before = len(self._data)
        self._data += data
        # a mark may have begun in what came before
        found = None if self.code is not None else self._end.search(self._data, max(0, before - len(self._hears) - 8))
        if found:
            self.code, self._stop = int(found[1]), found.start()

    @property
    def size(self) -> int:
        """Return the number of bytes that the stream has sent."""
        return len(self._data)

    @property
    def text(self) -> bytes:
        """Return the output of the command, without the end mark."""
        return bytes(self._data[: self._stop])

    def heard(self) -> bool:
        """Return whether the pod has confirmed, after the end mark, that it got the answer."""
        if self._stop is None:
            return False
        start, self._searched = max(self._stop, self._searched - len(self._hears)), len(self._data)
        return self._data.find(self._hears, start) >= 0
