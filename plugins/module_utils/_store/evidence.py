# SPDX-License-Identifier: GPL-3.0-or-later

"""Pack the folder of a run into an archive, which contains no secrets. The module unpacking reads it.

The archive contains all files of a run: run.json (with the intent, the nodes and the versions), facts, records and the
report. SHA256SUMS has the format of ``sha256sum --check``.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import json
import os
import re
import stat
import tarfile
import typing
import urllib.parse

from .._model.base.errors import ParseError
from .._model.base.redact import redact, redact_text
from .._parse.limits import decode_json
from .facts import FactFolder
from .files import FileError, base_of, read_bytes, write_bytes
from .run_start import read_start

SUMS = "SHA256SUMS"
#: folder of the runs that are kept, see history
RUNS = "runs"
#: folder of what was judged again
JUDGED = "judged"
MOST_BYTES_OF_A_FILE = 512 << 20
#: pieces that are read at once: a header that asks for more wants the memory
MOST_AT_ONCE = 1 << 20

# what a run leaves in its folder; nothing else is packed or kept, and nothing else is taken out of an archive
OURS = re.compile(
    r"run\.json|report\.(html|json|xml|prom|md)|difference\.(json|html)|stages/[a-z_]+\.jsonl"
    r"|facts/[a-z][a-z0-9_]*/[A-Za-z0-9._~%-]+\.json"
)
# made of the rest by the report, and made anew where an archive is unpacked: a page from a stranger is code in the
# browser of who reads it
PAGES = re.compile(r"report\.(html|json|xml|prom|md)|difference\.(json|html)")
_FACT = re.compile(r"facts/([a-z][a-z0-9_]*)/(.+)\.json")
#: folders in a path of a run: facts/<kind>
_MOST_FOLDERS = 2
_ESCAPES: typing.Final = "backslashreplace"

Sums = dict[str, str]


class Packed(typing.NamedTuple):
    """The description of an archive that was written.

    :ivar sums: SHA-256 of each file, as hexadecimal digits, by its path relative to the report folder
    :ivar left_out: paths that were not packed, because they are not regular files or not files of a run
    :ivar sha256: SHA-256 of the archive, as hexadecimal digits
    """

    sums: Sums
    left_out: list[str]
    sha256: str


class Once:
    """A stream that is read once from start to end, and that computes the SHA-256 of all bytes read."""

    def __init__(self, stream: typing.BinaryIO) -> None:
        self._stream, self._digest = stream, hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        part = self._stream.read(size)
        self._digest.update(part)
        return part

    def seek(self, *_parse_member_path: int) -> typing.NoReturn:
        raise tarfile.ReadError("a part of it would be read twice")

    def finished(self) -> str:
        """Read the stream to its end, and return the SHA-256 of all of its bytes as hexadecimal digits."""
        while self.read(MOST_AT_ONCE):
            pass
        return self._digest.hexdigest()


def pack(report_dir: str, archive: str, top: str, replaces: bool = True) -> Packed:
    """Write the archive of a report folder. Return its SHA-256, the checksum of each file in it, and the paths that
    were left out. The same folder always results in the same bytes.

    :param report_dir: folder of the report
    :param archive: path of the archive
    :param top: name of the only folder in the archive
    :param replaces: whether an existing archive with other content is replaced. If False, such an archive is an error
    :raises FileError: a file cannot be read or written, or an archive with other content exists and ``replaces`` is
        False
    """
    names, left_out = list_files(report_dir)
    sums: Sums = {}
    start = None
    # whoever unpacks it is told what is wrong with it
    with contextlib.suppress(FileError):
        start = read_start(report_dir)
    facts = FactFolder(report_dir, "" if start is None else start.run)
    handle = io.BytesIO()
    # neither the time nor the name of the file is in the head of the compressed stream
    with (
        gzip.GzipFile(filename="", mode="wb", fileobj=handle, mtime=0) as stream,
        tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for name in names:
            # a link that came in the meantime is not followed
            most = _limit_of(name, facts)
            text = _remove_secrets(name, read_bytes(os.path.join(report_dir, name), report_dir, most))
            sums[name] = hashlib.sha256(text).hexdigest()
            _add_member(tar, f"{top}/{name}", text)
        _add_member(tar, f"{top}/{SUMS}", "".join(f"{digest}  {name}\n" for name, digest in sums.items()).encode())
    sha256 = hashlib.sha256(handle.getbuffer()).hexdigest()
    if not replaces and os.path.lexists(archive):
        with open_archive(archive) as there:
            if Once(there).finished() != sha256:
                seen = f"{archive} already exists with different content, so it was not replaced"
                raise FileError(
                    seen,
                    "Find its owner, and move the archive and its sheet to another folder. Then pack the folder again",
                )
    write_bytes(archive, handle.getvalue(), base_of(os.path.dirname(os.path.abspath(archive)), report_dir))
    return Packed(sums, left_out, sha256)


@contextlib.contextmanager
def open_archive(archive: str) -> typing.Iterator[typing.BinaryIO]:
    """Provide an archive, opened for reading, as a context. A FIFO or a device is refused, because it could be endless.

    :raises FileError: the archive cannot be opened, or is not a regular file
    """
    remedy = "Check that it exists, and that this user may read it"
    try:
        handle = os.open(archive, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise FileError(f"{archive} could not be read: {error.strerror}", remedy) from error
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise FileError(f"{archive} could not be read: it is not a regular file", remedy)
    with os.fdopen(handle, "rb") as stream:
        yield stream


def list_files(report_dir: str) -> tuple[list[str], list[str]]:
    """List the files that runs have left in a folder. The folder of kept runs is skipped.

    :param report_dir: folder of the report
    :returns: sorted paths of the files of runs; and sorted paths to leave out, because they are not regular files or
        not files of a run
    """
    names: list[str] = []
    left_out: list[str] = []
    for inside in _walk(report_dir):
        is_ours = OURS.fullmatch(inside) and stat.S_ISREG(os.lstat(os.path.join(report_dir, inside)).st_mode)
        # a name that is no UTF-8 is shown with escapes
        (names if is_ours else left_out).append(inside if is_ours else os.fsencode(inside).decode(errors=_ESCAPES))
    return sorted(names), sorted(left_out)


def _walk(report_dir: str) -> typing.Iterator[str]:
    """Yield the relative paths of all files in a folder, except those of kept runs. A symbolic link counts as a file,
    and so does a folder that is deeper than those of a run.

    :param report_dir: folder of the report
    """
    open_folders = [""]
    while open_folders:
        folder = open_folders.pop()
        with contextlib.suppress(OSError), os.scandir(os.path.join(report_dir, folder)) as found:
            for entry in found:
                inside = f"{folder}/{entry.name}" if folder else entry.name
                if inside == RUNS and entry.is_dir(follow_symlinks=False):
                    # runs before this one
                    continue
                if entry.is_dir(follow_symlinks=False) and inside.count("/") < _MOST_FOLDERS:
                    open_folders.append(inside)
                else:
                    yield inside


def _limit_of(name: str, facts: FactFolder) -> int:
    """Return the limit in bytes of a file of a run.

    :param name: path of the file, relative to the folder of the run
    :param facts: fact folder of the run, which has the limits of facts
    """
    found = _FACT.fullmatch(name)
    return facts.limit(found[1], urllib.parse.unquote(found[2]))[0] if found else MOST_BYTES_OF_A_FILE


def _remove_secrets(name: str, raw: bytes) -> bytes:
    """Return the content of a file with secrets redacted. Return ``raw`` unchanged if it contains no secrets.

    :param name: path of the file. Its end, ``.json`` or ``.jsonl``, decides whether the content is decoded as JSON; all
        other files are redacted as text
    :param raw: content of the file
    """
    text = raw.decode("utf-8", errors="backslashreplace")
    lines = text.splitlines(keepends=True) if name.endswith(".jsonl") else [text]
    clean = "".join(map(_clean_json, lines)) if name.endswith((".json", ".jsonl")) else redact_text(text)
    return raw if clean == text else clean.encode("utf-8")


def _clean_json(text: str) -> str:
    try:
        data = decode_json(text, "", MOST_BYTES_OF_A_FILE)
    except ParseError:
        # damaged, and evidence all the same
        return redact_text(text)
    clean = redact(data)
    return text if clean == data else json.dumps(clean, sort_keys=True, separators=(",", ":")) + "\n"


def _add_member(tar: tarfile.TarFile, name: str, text: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size, member.mode, member.mtime = len(text), 0o644, 0
    tar.addfile(member, io.BytesIO(text))
