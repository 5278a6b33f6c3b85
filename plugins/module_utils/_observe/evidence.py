# SPDX-License-Identifier: GPL-3.0-or-later

"""The folder of a run as one archive, and back. What is packed holds no secret; what is unpacked leads nowhere, and is what was packed.

All that a run left: run.json (its intent, its nodes, versions), facts, records, the report; and SHA256SUMS, as ``sha256sum --check`` takes it.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import re
import shutil
import stat
import tarfile
import tempfile
import typing
import zlib

from .._model.redact import redact, redact_text
from .files import FileError, write_bytes

SUMS = "SHA256SUMS"
#: folder of the runs that are kept, see history
RUNS = "runs"
#: sizes that no run comes near; an archive that is larger is none of ours
MOST_FILES = 500_000
MOST_BYTES = 8 << 30
MOST_BYTES_OF_A_FILE = 1 << 30
#: pieces that tarfile reads at once: a header that asks for more wants the memory
_MOST_AT_ONCE = 16 << 20

# what a run leaves in its folder; nothing else is packed or kept, and nothing else is taken out of an archive
_OURS = re.compile(r"run\.json|report\.(html|json|xml|prom)|difference\.(json|html)|stages/[a-z_]+\.jsonl|facts/[a-z][a-z0-9_]*/[^/\\\x00-\x1f]+\.json")
_TOP = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_SUM = re.compile(r"([0-9a-f]{64})  ([^\n]+)")

Sums = typing.Dict[str, str]


class _Bounded(gzip.GzipFile):
    """A decompressed archive that ends where no archive of ours goes on."""

    def read(self, size: typing.Optional[int] = -1) -> bytes:
        if size is None or size < 0 or size > _MOST_AT_ONCE:
            raise tarfile.ReadError(f"one part of it has {size} bytes; {_MOST_AT_ONCE} are the most")
        if self.tell() > MOST_BYTES:
            raise tarfile.ReadError(f"it has more than {MOST_BYTES} bytes")
        return super().read(size)


def pack(report_dir: str, archive: str, top: str) -> typing.Tuple[Sums, typing.List[str]]:
    """Write the archive. The same folder gives the same bytes, whenever and by whomever it is packed.

    :param top: name of the one folder in the archive
    :returns: checksums of what was packed by path, and paths that were left out: no regular file, or nothing that a run leaves
    :raises FileError: a file can't be read or written
    """
    names, left_out = listed(report_dir)
    sums: Sums = {}
    handle = io.BytesIO()
    # neither the time nor the name of the file is in the head of the compressed stream
    with gzip.GzipFile(filename="", mode="wb", fileobj=handle, mtime=0) as stream, tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name in names:
            text = _without_secrets(name, _read(os.path.join(report_dir, name)))
            sums[name] = hashlib.sha256(text).hexdigest()
            _add(tar, f"{top}/{name}", text)
        _add(tar, f"{top}/{SUMS}", "".join(f"{digest}  {name}\n" for name, digest in sums.items()).encode())
    write_bytes(archive, handle.getvalue())
    return sums, left_out


def checksum(archive: str) -> str:
    """SHA-256 of an archive, as ``sha256sum`` says it.

    :raises FileError: it can't be read
    """
    digest = hashlib.sha256()
    try:
        with open(archive, "rb") as stream:
            for part in iter(lambda: stream.read(1 << 20), b""):
                digest.update(part)
    except OSError as error:
        raise FileError(f"{archive} can't be read: {error.strerror}", "Look whether it is there, and this user may read it") from error
    return digest.hexdigest()


def verify(archive: str, signed: str) -> None:
    """Whether an archive is the one that was signed.

    :param signed: its SHA-256 as on the sheet
    :raises FileError: it is another one, or can't be read
    """
    found = checksum(archive)
    if found != signed.strip().lower():
        seen = f"{archive} is not what was signed: its SHA-256 is {found}; expected {signed}"
        raise FileError(seen, "Fetch it again from who keeps it, and compare the digits with the signed sheet; nothing was unpacked")


def unpack(archive: str, target: str) -> Sums:
    """Unpack an archive into a folder that is not there yet, or that holds the same already; all of it or nothing.

    :returns: checksums by path
    :raises FileError: it is no archive of ours, something in it would lead out of the folder, or something is not what was packed
    """
    parent = os.path.dirname(os.path.abspath(target))
    try:
        os.makedirs(parent, exist_ok=True)
        fresh = tempfile.mkdtemp(dir=parent, prefix=".evidence-")
    except OSError as error:
        raise FileError(f"{parent} can't be written: {error.strerror}", "Name another folder in rdma_report_dir") from error
    try:
        sums = _unpacked(archive, fresh)
        if not os.path.lexists(target):
            os.chmod(fresh, 0o755)
            os.rename(fresh, target)
        else:
            _same(target, sums)
        return sums
    except (tarfile.TarError, EOFError, OSError, zlib.error) as error:
        raise FileError(f"{archive} can't be unpacked: {error}", "Fetch it again; it is an archive of linerate.rdma.evidence, *.tar.gz") from error
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def listed(report_dir: str) -> typing.Tuple[typing.List[str], typing.List[str]]:
    """What runs have left in a folder.

    :returns: paths below the folder, in order; and paths to leave out: no regular file, or nothing that a run leaves
    """
    names: typing.List[str] = []
    left_out: typing.List[str] = []
    for folder, folders, files in os.walk(report_dir):
        if folder == report_dir and RUNS in folders:
            # runs before this one
            folders.remove(RUNS)
        folders.sort()
        for name in [*files, *[item for item in folders if os.path.islink(os.path.join(folder, item))]]:
            path = os.path.join(folder, name)
            inside = os.path.relpath(path, report_dir).replace(os.sep, "/")
            is_ours = _OURS.fullmatch(inside) and stat.S_ISREG(os.lstat(path).st_mode)
            (names if is_ours else left_out).append(inside)
    return sorted(names), sorted(left_out)


def _read(path: str) -> bytes:
    try:
        # a link that came in the meantime is not followed
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as stream:
            return stream.read()
    except OSError as error:
        raise FileError(f"{path} can't be read: {error.strerror}", "Look whether this user may read there") from error


def _without_secrets(name: str, raw: bytes) -> bytes:
    """The file as it is, unless there is a secret in it."""
    text = raw.decode("utf-8", errors="backslashreplace")
    lines = text.splitlines(keepends=True) if name.endswith(".jsonl") else [text]
    if name.endswith((".json", ".jsonl")):
        clean = "".join(map(_clean_json, lines))
    else:
        clean = redact_text(text)
    return raw if clean == text else clean.encode("utf-8")


def _clean_json(text: str) -> str:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        # damaged, and evidence all the same
        return redact_text(text)
    clean = redact(data)
    return text if clean == data else json.dumps(clean, sort_keys=True, separators=(",", ":")) + "\n"


def _add(tar: tarfile.TarFile, name: str, text: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size, member.mode, member.mtime = len(text), 0o644, 0
    tar.addfile(member, io.BytesIO(text))


def _unpacked(archive: str, folder: str) -> Sums:
    """:raises FileError: a member that is none of ours, or not what was packed"""
    found: Sums = {}
    total, tops, told = 0, set(), None
    with _Bounded(archive, "rb") as stream, tarfile.open(fileobj=stream, mode="r:") as tar:
        for member in tar:
            top, name = _place(archive, member, folder)
            tops.add(top)
            total += member.size
            if len(found) >= MOST_FILES or total > MOST_BYTES or len(tops) > 1 or name in found or (name == SUMS and told is not None):
                seen = f"{archive} has too many files, too large ones, one twice, or more than one folder; met at {member.name!r}"
                raise FileError(seen, f"No run leaves more than {MOST_FILES} files and {MOST_BYTES} bytes; look where it comes from")
            text = _content(tar, member)
            if name == SUMS:
                told = text.decode("utf-8", errors="backslashreplace")
                continue
            found[name] = hashlib.sha256(text).hexdigest()
            write_bytes(os.path.join(folder, name), text)
    _compare(archive, told, found)
    return found


def _place(archive: str, member: tarfile.TarInfo, folder: str) -> typing.Tuple[str, str]:
    """The folder and the path in it that a member asks for.

    :raises FileError: it is no regular file of ours below the one folder
    """
    top, _slash, name = member.name.partition("/")
    if not member.isreg() or member.issparse():
        kind = "a link" if member.issym() or member.islnk() else "a folder" if member.isdir() else "a device, a pipe, or a file with holes"
        raise FileError(f"{archive}: {member.name!r} is {kind}; only regular files are taken", "Look where the archive comes from; nothing was unpacked")
    inside = ".." not in name.split("/") and (_OURS.fullmatch(name) or name == SUMS)
    if not _TOP.fullmatch(top) or not inside:
        raise FileError(f"{archive}: {member.name!r} is no file that a run leaves", "Look where the archive comes from; nothing was unpacked")
    if member.size > MOST_BYTES_OF_A_FILE:
        seen = f"{archive}: {member.name!r} has {member.size} bytes; {MOST_BYTES_OF_A_FILE} are the most"
        raise FileError(seen, "Look where the archive comes from; nothing was unpacked")
    # the same once more, by the standard library, where it can
    safe = getattr(tarfile, "data_filter", None)
    if safe is not None:
        safe(member, folder)
    return top, name


def _content(tar: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    stream = tar.extractfile(member)
    parts = []
    while stream is not None:
        part = stream.read(1 << 20)
        if not part:
            break
        parts.append(part)
    return b"".join(parts)


def _compare(archive: str, told: typing.Optional[str], found: Sums) -> None:
    """:raises FileError: a file was changed, added or taken away"""
    if told is None:
        raise FileError(f"{archive} has no {SUMS}, so nothing says whether it is what was packed", "Pack the folder again, by linerate.rdma.evidence")
    matches = [_SUM.fullmatch(line) for line in told.splitlines()]
    expected = {match[2]: match[1] for match in matches if match}
    wrong = [f"{name} was changed" for name in sorted(found) if name in expected and expected[name] != found[name]]
    wrong += [f"{name} was added" for name in sorted(found) if name not in expected]
    wrong += [f"{name} is missing" for name in sorted(expected) if name not in found]
    wrong += [f"a line of {SUMS} is no checksum"] if None in matches else []
    if wrong:
        more = f", and {len(wrong) - 20} more" if len(wrong) > 20 else ""
        raise FileError(f"{archive} is not what was packed: {'; '.join(wrong[:20])}{more}", "Fetch it again from who packed it; nothing was unpacked")


def _same(target: str, sums: Sums) -> None:
    """:raises FileError: the folder holds something else"""
    for name, digest in sums.items():
        path = os.path.join(target, name)
        if not os.path.isfile(path) or hashlib.sha256(_read(path)).hexdigest() != digest:
            seen = f"{target} is there already, and {name} in it is not that of the archive"
            raise FileError(seen, "Name another folder in rdma_report_dir, or remove this one")
