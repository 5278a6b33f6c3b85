# SPDX-License-Identifier: GPL-3.0-or-later

"""Unpack the archive of a run from any source. Only files of a run are accepted, only below the target, within limits
of bytes, files and headers, and only if the content matches its checksums.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import re
import secrets
import shutil
import tarfile
import typing
import zlib

from .evidence import JUDGED, MOST_AT_ONCE, MOST_BYTES_OF_A_FILE, OURS, PAGES, SUMS, Once, Sums, open_archive
from .files import FileError, read_bytes, remove_file, write_parts

#: sizes that no run comes near; an archive that is larger is none of ours
MOST_FILES = 500_000
MOST_BYTES = 8 << 30
#: the same by the size of the archive: facts become a twentieth to a fiftieth of their size, and no file becomes less
#: than a header and a checksum do
MOST_RATIO = 200
LEAST_BYTES_OF_A_FILE = 16
#: bytes and files that are taken whatever the size of the archive
_FREE_BYTES, _FREE_FILES = 64 << 20, 1000
#: bytes of the checksums, and of a line of them: 66 and a path
_MOST_OF_SUMS, _MOST_OF_A_SUM = 128 << 20, 1024
#: headers that may stand before that of a file: of a long name, and of what the older form can't say
_MOST_HEADERS = 4
#: bytes of one that says what the older form can't: a path of ours has a third of it, and some of Python's releases
#: take the square of its time to read it
_MOST_OF_A_HEADER = 1024
# what is made anew in a folder that is there already
_MADE = re.compile(rf"(?:{JUDGED}/)?(?:{PAGES.pattern})|{JUDGED}/stages/[a-z_]+\.jsonl")
_TOP = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_SUM = re.compile(r"([0-9a-f]{64})  ([^\n]+)")


class Unpacked(typing.NamedTuple):
    """The description of an archive that was unpacked.

    :ivar sums: SHA-256 of each file in the archive, by path. Report pages are listed, although they are not unpacked
    :ivar sha256: SHA-256 of the archive, as hexadecimal digits
    """

    sums: Sums
    sha256: str


class _Bounded(gzip.GzipFile):
    """A decompressed stream with limits of its total size and of the size of each read.

    :cvar most: limit of the decompressed bytes
    """

    most = MOST_BYTES

    def read(self, size: typing.Optional[int] = -1) -> bytes:
        if size is None or size < 0 or size > MOST_AT_ONCE:
            raise tarfile.ReadError(f"a part of it has {size} bytes; the limit is {MOST_AT_ONCE}")
        if self.tell() > self.most:
            raise tarfile.ReadError(f"it has more than {self.most} bytes")
        return super().read(size)


#: for a method that has a parameter of the name of the module
_Unreadable, _FOR_ALL = tarfile.ReadError, tarfile.XGLTYPE


class _Member(tarfile.TarInfo):
    """A member of an archive, with limits of its headers. tarfile reads each extra header of a member in a nested call,
    so a long chain of headers would exhaust the stack. Such a chain is an error.
    """

    @classmethod
    def fromtarfile(cls, tarfile: tarfile.TarFile) -> _Member:
        depth = getattr(tarfile, "headers", 0)
        if depth > _MOST_HEADERS:
            raise _Unreadable(f"more than {_MOST_HEADERS} headers precede one file")
        tarfile.headers = depth + 1  # type: ignore[attr-defined]
        try:
            member = super().fromtarfile(tarfile)
        finally:
            tarfile.headers = depth  # type: ignore[attr-defined]
        if member.size < 0:
            # what follows would lie before it, again and again
            raise _Unreadable(f"a file in it has an invalid size of {member.size} bytes")
        return member

    def _proc_pax(self, tarfile: tarfile.TarFile) -> typing.Any:
        """Read an extended header of the archive. A header that is too large is refused before it is read. So is a
        global header: each later file inherits it, so many of them would accumulate.

        :raises tarfile.ReadError: the header is refused
        """
        if self.type == _FOR_ALL:
            raise _Unreadable(
                "it contains a global header; archives of this collection contain only headers of single files"
            )
        if self.size > _MOST_OF_A_HEADER:
            raise _Unreadable(f"a header in it has {self.size} bytes; the limit is {_MOST_OF_A_HEADER}")
        return super()._proc_pax(tarfile)  # type: ignore[misc]

    def _refuse_holes(self, *_what: typing.Any) -> typing.NoReturn:
        """Raise an error before the map of a sparse file is read. The map may be as large as the archive, and each of
        its numbers becomes an object.
        """
        raise tarfile.ReadError("it contains a sparse file")

    # each form of the map that tarfile of Python 3.9 to 3.14 reads has one of them
    _proc_sparse = _proc_gnusparse_00 = _proc_gnusparse_01 = _proc_gnusparse_10 = _refuse_holes


def unpack(
    archive: str, target: str, finish: typing.Callable[[str], object] = lambda folder: None, signed: str = ""
) -> Unpacked:
    """Unpack an archive completely, or not at all. The target must not exist, or must already contain exactly the
    content of the archive. Report pages in the archive are not unpacked. Pages and judgments in an existing target are
    removed, because their author is unknown.

    The archive is opened only once. A file that replaces it meanwhile is ignored, and an archive that changes meanwhile
    is refused.

    :param archive: path of the archive
    :param target: path of the folder that contains the files afterwards
    :param finish: function that is called with the folder of the unpacked files, and creates the report pages in it. A
        new folder is renamed to ``target`` after this call
    :param signed: SHA-256 on the signed sheet, which is compared before anything is unpacked. If empty, nothing is
        compared
    :raises FileError: the archive is not the signed one, is not an archive of a run, has a path outside of the folder,
        or has changed since it was packed
    """
    with open_archive(archive) as stream:
        sha256 = Once(stream).finished()
        if signed and sha256 != signed.strip().lower():
            seen = f"{archive} is not the signed archive: its SHA-256 is {sha256}; expected {signed}"
            raise FileError(
                seen,
                "Get the archive again from its source, and compare the checksum with the signed sheet; nothing was"
                " unpacked",
            )
        stream.seek(0)
        return Unpacked(_unpack_archive(archive, stream, sha256, target, finish), sha256)


def _unpack_archive(
    archive: str, stream: typing.BinaryIO, sha256: str, target: str, finish: typing.Callable[[str], object]
) -> Sums:
    """Unpack an open archive. Return the SHA-256 of each file in it, by path.

    :param archive: path of the archive, for messages
    :param stream: opened archive
    :param sha256: SHA-256 of the stream from the first time that it was read
    :param target: folder that the unpacked files become
    :param finish: function that is called with the folder of the unpacked files before it gets its final name
    :raises FileError: the archive cannot be unpacked, has changed, or differs from an existing target
    """
    parent = os.path.dirname(os.path.abspath(target))
    try:
        fresh = os.path.join(parent, f".evidence-{secrets.token_hex(8)}")
        os.makedirs(fresh)
    except OSError as error:
        raise FileError(
            f"{parent} could not be written: {error.strerror}", "Set another folder in rdma_report_dir"
        ) from error
    try:
        once = Once(stream)
        sums = _unpack_members(archive, once, os.fstat(stream.fileno()).st_size, fresh)
        if once.finished() != sha256:
            raise FileError(
                f"{archive} was changed while it was read",
                "Unpack it again when no process writes to it; nothing was unpacked",
            )
        if not os.path.lexists(target):
            finish(fresh)
            os.rename(fresh, target)
        else:
            _require_same_folder(target, sums)
            for name in [name for name in _all_in(target) if _MADE.fullmatch(name)]:
                remove_file(os.path.join(target, name), target)
            finish(target)
        return sums
    except (tarfile.TarError, EOFError, OSError, ValueError, RecursionError, zlib.error) as error:
        raise FileError(
            f"{archive} could not be unpacked: {error}",
            "Get it again; it must be an archive of linerate.rdma.evidence, *.tar.gz",
        ) from error
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _unpack_members(archive: str, once: Once, size: int, folder: str) -> Sums:
    """Unpack all members into a folder, verify their checksums, and return these.

    :param archive: path of the archive, for messages
    :param once: stream of the archive
    :param size: size of the archive in bytes
    :param folder: folder that receives the files
    :raises FileError: a member is not a file of a run, or differs from its checksum
    """
    found: Sums = {}
    total, tops, told = 0, set(), None
    most_bytes, most_files = _compute_limits(size)
    with _Bounded(filename="", mode="rb", fileobj=once) as stream:
        # the ends of its members, and what fills up its last block
        stream.most = most_bytes + 512 * 3 * most_files
        with tarfile.open(fileobj=stream, mode="r:", tarinfo=_Member) as tar:
            for member in _list_members(tar):
                top, name = _parse_member_path(archive, member, folder)
                tops.add(top)
                total += member.size
                if (
                    len(found) >= most_files
                    or total > most_bytes
                    or len(tops) > 1
                    or name in found
                    or (name == SUMS and told is not None)
                ):
                    seen = (
                        f"{archive} has too many files, files that are too large, a duplicate name, or more than one"
                        f" folder; found at {member.name!r}"
                    )
                    raise FileError(
                        seen,
                        f"No run writes more than {most_files} files and {most_bytes} bytes in an archive of this"
                        " size; check the source of the archive",
                    )
                if name == SUMS:
                    told = _read_checksums(tar, member, most_files)
                    continue
                digest = hashlib.sha256()
                write = _hash_alone if PAGES.fullmatch(name) else write_parts
                write(os.path.join(folder, name), _update_digest(_read_member(tar, member), digest))
                found[name] = digest.hexdigest()
    _require_matching_sums(archive, told, found)
    return found


def _compute_limits(size: int) -> tuple[int, int]:
    """Return the limits of bytes and of files in an archive of ``size`` bytes."""
    return min(MOST_BYTES, _FREE_BYTES + MOST_RATIO * size), min(
        MOST_FILES, _FREE_FILES + size // LEAST_BYTES_OF_A_FILE
    )


def _list_members(tar: tarfile.TarFile) -> typing.Iterator[tarfile.TarInfo]:
    """Yield the members one after the other, without keeping them in memory."""
    while True:
        member = tar.next()
        if member is None:
            return
        yield member
        tar.members.clear()  # type: ignore[attr-defined]


def _update_digest(parts: typing.Iterable[bytes], digest: typing.Any) -> typing.Iterator[bytes]:
    for part in parts:
        digest.update(part)
        yield part


def _hash_alone(_path: str, parts: typing.Iterable[bytes]) -> None:
    for _part in parts:
        pass


def _parse_member_path(archive: str, member: tarfile.TarInfo, folder: str) -> tuple[str, str]:
    """Return two texts: the top folder of a member, and its path below that folder.

    :param archive: path of the archive, for messages
    :param folder: folder that receives the files
    :raises FileError: the member is not a regular file of a run below the top folder, or is too large
    """
    top, _slash, name = member.name.partition("/")
    if not member.isreg() or member.issparse():
        kind = (
            "a link"
            if member.issym() or member.islnk()
            else "a folder"
            if member.isdir()
            else "a device, a pipe, or a sparse file"
        )
        raise FileError(
            f"{archive}: {member.name!r} is {kind}; only regular files are accepted",
            "Check the source of the archive; nothing was unpacked",
        )
    inside = ".." not in name.split("/") and (OURS.fullmatch(name) or name == SUMS)
    if not _TOP.fullmatch(top) or not inside:
        raise FileError(
            f"{archive}: {member.name!r} is not a file that a run writes",
            "Check the source of the archive; nothing was unpacked",
        )
    most = _MOST_OF_SUMS if name == SUMS else MOST_BYTES_OF_A_FILE
    if member.size > most:
        seen = f"{archive}: {member.name!r} has {member.size} bytes; the limit is {most}"
        raise FileError(seen, "Check the source of the archive; nothing was unpacked")
    # the same once more, by the standard library, where it can
    safe = getattr(tarfile, "data_filter", None)
    if safe is not None:
        safe(member, folder)
    return top, name


def _read_member(tar: tarfile.TarFile, member: tarfile.TarInfo) -> typing.Iterator[bytes]:
    stream = tar.extractfile(member)
    while stream is not None:
        part = stream.read(MOST_AT_ONCE)
        if not part:
            return
        yield part


def _read_checksums(tar: tarfile.TarFile, member: tarfile.TarInfo, most: int) -> tuple[Sums, bool]:
    """Return the checksums up to the first invalid line, and whether all lines are valid. A line that names a file
    again is invalid, and so is a line beyond the limit.

    :param member: member of the archive that contains the checksums
    :param most: limit of the number of lines
    """
    expected: Sums = {}
    stream = tar.extractfile(member)
    for _number in range(most + 1):
        line = stream.readline(_MOST_OF_A_SUM) if stream is not None else b""
        if not line:
            return expected, True
        match = _SUM.fullmatch(line.rstrip(b"\n").decode("utf-8", errors="backslashreplace"))
        if match is None or match[2] in expected:
            break
        expected[match[2]] = match[1]
    return expected, False


def _require_matching_sums(archive: str, told: typing.Optional[tuple[Sums, bool]], found: Sums) -> None:
    """Verify that the unpacked files match the checksums in the archive.

    :param told: checksums in the archive, and whether all of their lines are valid; None if the archive has none
    :param found: checksums of the unpacked files
    :raises FileError: a file was changed, added or removed
    """
    if told is None:
        raise FileError(
            f"{archive} has no {SUMS}, so its content could not be verified",
            "Pack the folder again with linerate.rdma.evidence",
        )
    expected, whole = told
    wrong = [] if whole else [f"a line of {SUMS} is not a checksum, or belongs to a file that is already listed"]
    wrong += [f"{name} was changed" for name in sorted(found) if name in expected and expected[name] != found[name]]
    wrong += [f"{name} was added" for name in sorted(found) if whole and name not in expected]
    wrong += [f"{name} is missing" for name in sorted(expected) if name not in found]
    if wrong:
        more = f", and {len(wrong) - 20} more" if len(wrong) > 20 else ""
        raise FileError(
            f"{archive} differs from the packed content: {'; '.join(wrong[:20])}{more}",
            "Get it again from its source; nothing was unpacked",
        )


def _require_same_folder(target: str, sums: Sums) -> None:
    """Verify that an existing folder contains exactly the files of the archive. Additional files are not allowed,
    because an additional fact changes the judgment. Report pages and judgments are not compared, because they are
    created again.

    :param target: existing folder
    :param sums: SHA-256 of each file of the archive, by its path
    :raises FileError: a file differs, is missing or is additional
    """
    remedy = "Set another folder in rdma_report_dir, or remove this one"
    for name, digest in sums.items():
        path = os.path.join(target, name)
        if not PAGES.fullmatch(name) and (
            not os.path.lexists(path)
            or hashlib.sha256(read_bytes(path, target, MOST_BYTES_OF_A_FILE)).hexdigest() != digest
        ):
            raise FileError(f"{target} already exists, and {name} in it differs from the file in the archive", remedy)
    more = next((name for name in _all_in(target) if name not in sums and not _MADE.fullmatch(name)), None)
    if more is not None:
        raise FileError(f"{target} already exists, and {more!r} in it is not in the archive", remedy)


def _all_in(target: str) -> typing.Iterator[str]:
    """Yield the relative paths of all files in an unpacked folder. A symbolic link to a folder counts as a file.

    :param target: unpacked folder
    """
    for folder, folders, files in os.walk(target):
        links = [name for name in folders if os.path.islink(os.path.join(folder, name))]
        for name in (*files, *links):
            yield os.path.relpath(os.path.join(folder, name), target).replace(os.sep, "/")
