# SPDX-License-Identifier: GPL-3.0-or-later

"""Run programs with limits of time and output. No shell is used, and the environment has a fixed locale and no secrets.

A program that exceeds a limit is killed together with its children.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import os
import re
import resource
import selectors
import shutil
import signal
import subprocess
import time
import typing

from ..._model.base.errors import ToolMissing
from ..._model.base.text import both_ends
from ..._parse.limits import MIB

#: variables of this collection, of the API server's credentials, of Ansible and of AWX: no program that we start has a
#: use for them
_OURS = re.compile(r"RDMA_|K8S_AUTH_|HELM_KUBE|KUBECONFIG\Z|ANSIBLE_|AWX_|TOWER_|CONTROLLER_|AAP_|GATEWAY_")
#: how other software names its secrets
_SECRET = re.compile(r"PASSW|PASSPHRASE|TOKEN|SECRET|CREDENTIAL|AUTH|API_?KEY|ACCESS_KEY|PRIVATE_KEY", re.IGNORECASE)
#: the diagnostics live in sbin, which a plain user's or a daemon's PATH may lack
_FOLDERS = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
#: bytes that a program may print: of those that ask one node, a table of some 100,000 neighbours is the longest
MOST_OUTPUT = 64 * MIB
#: characters at either end of an output in which words are looked for that say why a program failed
_WORDS = 32 * 1024
_PIECE = 64 * 1024


@dataclasses.dataclass(frozen=True)
class Finished:
    """The result of a program that has ended or was killed.

    :ivar argv: program and arguments
    :ivar rc: exit code; negative for the signal that ended it; None if it was killed because it exceeded a limit
    :ivar stdout: standard output, up to the limit
    :ivar stderr: standard error, up to the limit
    :ivar limit_seconds: time limit in seconds
    :ivar most_bytes: limit of the output in bytes
    :ivar overflowed: whether the output exceeded ``most_bytes``
    """

    argv: tuple[str, ...]
    rc: typing.Optional[int]
    stdout: str
    stderr: str
    limit_seconds: float
    most_bytes: int = MOST_OUTPUT
    overflowed: bool = False

    @property
    def failure(self) -> str:
        """Return the reason why the program failed, in one line with its output: it exceeded a limit, or its exit code
        is not 0. Return an empty string if it succeeded.
        """
        if self.rc == 0:
            return ""
        # each line once: some tools repeat one for every packet
        said = "\n".join(both_ends(text, 2 * _WORDS) for text in (self.stdout, self.stderr))
        lines = list(dict.fromkeys(line.strip() for line in said.splitlines() if line.strip()))
        words = both_ends("; ".join(lines))
        how = f"did not end within {self.limit_seconds:g} s" if self.rc is None else f"ended with exit code {self.rc}"
        how = f"printed more than {self.most_bytes} bytes, and was terminated" if self.overflowed else how
        return f"{' '.join((os.path.basename(self.argv[0]), *self.argv[1:]))} {how}: {words or 'it said nothing'}"


def search_path() -> str:
    """Return the PATH of this process, followed by those standard folders for programs that it lacks."""
    own = [folder for folder in os.environ.get("PATH", "").split(os.pathsep) if folder]
    return os.pathsep.join(own + [folder for folder in _FOLDERS if folder not in own])


def require_tool(tool: str, package: str) -> str:
    """Return the path of an installed program.

    :param tool: name of the program
    :param package: package that contains the program, for the error message
    :raises ToolMissing: the program is not installed
    """
    path = shutil.which(tool, path=search_path())
    if path is None:
        raise ToolMissing(tool, package)
    return path


def make_environment(kept: tuple[str, ...] = ()) -> dict[str, str]:
    """Return the environment variables for a program: those of this process, without the credentials of the collection,
    and without variables whose names suggest a secret.

    :param kept: prefixes of variables that the program needs although their names suggest a secret
    """
    own = {
        name: value
        for name, value in os.environ.items()
        if not _OURS.match(name) and (name.startswith(kept) or not _SECRET.search(name))
    }
    return {**own, "LC_ALL": "C", "PATH": search_path()}


@dataclasses.dataclass(frozen=True)
class Bounds:
    """Limits of a program, and of each program that it starts.

    :ivar memory: bytes of memory that it may write to. Memory that is only reserved does not count
    :ivar file: maximum size in bytes of each file that it writes
    """

    memory: int
    file: int

    def apply(self, process: int) -> None:
        """Set the limits for a program right after it was started, before it can have read any input. On systems
        without prlimit(2), no limits are set, and a limit that the system refuses is left as it is.

        The limits are not set by a function between fork and exec, because this would be unsafe beside other threads.

        :param process: id of the process
        """
        limit = getattr(resource, "prlimit", None)
        for kind, most in ((resource.RLIMIT_DATA, self.memory), (resource.RLIMIT_FSIZE, self.file)):
            # it may have ended already, or may have less anyhow
            with contextlib.suppress(OSError, ValueError):
                if limit is not None:
                    limit(process, kind, (most, most))


def run(
    argv: typing.Sequence[str],
    limit_seconds: float,
    kept: tuple[str, ...] = (),
    most_bytes: int = MOST_OUTPUT,
    more: typing.Optional[typing.Mapping[str, str]] = None,
    bounds: typing.Optional[Bounds] = None,
) -> Finished:
    """Run a program until it ends or exceeds a limit. A failure of the program is part of the result, not an exception.

    :param argv: program and arguments. Arguments from outside of the collection must have passed ``require_operand``
    :param limit_seconds: time limit in seconds
    :param kept: prefixes of environment variables that the program needs although their names suggest a secret
    :param most_bytes: limit of both streams together in bytes. If it is exceeded, the program is killed, and the output
        so far is kept
    :param more: additional environment variables, by name; None for no further ones
    :param bounds: limits of memory and files; None for those of this process
    """
    variables = {**make_environment(kept), **(more or {})}
    with subprocess.Popen(
        list(argv),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=variables,
        start_new_session=True,
    ) as process:
        try:
            if bounds is not None:
                bounds.apply(process.pid)
            rc, out, err, overflowed = _read_streams(process, limit_seconds, most_bytes)
        except BaseException:
            # an interrupt must not leave the program behind
            _end_session(process.pid)
            raise
    return Finished(tuple(argv), rc, out, err, limit_seconds, most_bytes, overflowed)


def _read_streams(
    process: subprocess.Popen[bytes], limit_seconds: float, most_bytes: int
) -> tuple[typing.Optional[int], str, str, bool]:
    """Read stdout and stderr of a program until it ends. Kill the program if it exceeds a limit.

    :param process: the started program, with pipes for stdout and stderr
    :param limit_seconds: time limit of the program in seconds
    :param most_bytes: limit of stdout and stderr together in bytes
    :returns: exit code (None if the program was killed), stdout, stderr, and whether they exceeded ``most_bytes``
    """
    end, left = time.monotonic() + limit_seconds, most_bytes
    streams = [typing.cast(typing.IO[bytes], stream) for stream in (process.stdout, process.stderr)]
    texts = {stream: bytearray() for stream in streams}
    rc: typing.Optional[int] = None
    overflowed = False
    with selectors.DefaultSelector() as selector:
        for stream in streams:
            os.set_blocking(stream.fileno(), False)
            selector.register(stream, selectors.EVENT_READ)
        while selector.get_map() and not overflowed:
            ready = selector.select(max(0.0, end - time.monotonic()))
            for key, _events in ready:
                stream = typing.cast(typing.IO[bytes], key.fileobj)
                piece = os.read(stream.fileno(), _PIECE)
                if not piece:
                    selector.unregister(stream)
                overflowed = overflowed or len(piece) > left
                texts[stream] += piece[:left]
                left -= min(left, len(piece))
            # a program that never stops printing is never silent either
            if not ready or time.monotonic() >= end:
                break
        has_ended = not selector.get_map()
    if has_ended and not overflowed:
        with contextlib.suppress(subprocess.TimeoutExpired):
            rc = process.wait(max(0.0, end - time.monotonic()))
    if rc is None:
        _end_session(process.pid)
    # each is let go as soon as it is decoded
    out, err = (texts.pop(stream).decode("utf-8", "backslashreplace") for stream in streams)
    return rc, out, err, overflowed


def _end_session(leader: int) -> None:
    """Kill a program and its children with SIGKILL. SIGTERM is not sent first, because the diagnostic programs need no
    cleanup, and some ignore it.

    :param leader: process ID of the program, which leads its own session
    """
    with contextlib.suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)


Job = typing.TypeVar("Job")
Answer = typing.TypeVar("Answer")


def call_each(work: typing.Callable[[Job], Answer], jobs: typing.Sequence[Job], parallel: int) -> tuple[Answer, ...]:
    """Call ``work`` for every item of ``jobs``, with up to ``parallel`` calls at once. Return the results in the order
    of ``jobs``. An exception of ``work`` is raised.

    :param work: function that gets one item and returns its result
    :param jobs: items, one for each call
    """
    with concurrent.futures.ThreadPoolExecutor(max_workers=max(1, parallel)) as pool:
        return tuple(pool.map(work, jobs))
