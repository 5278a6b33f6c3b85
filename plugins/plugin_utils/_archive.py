# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection linerate.rdma: no other code may import this.

"""Send the archive of a run to a folder that outlives the job, or to an HTTP address that accepts PUT. Runs on the
controller.
"""

from __future__ import annotations

import datetime
import hashlib
import os
import re
import ssl
import tempfile
import time
import typing

from ansible_collections.linerate.rdma.plugins.module_utils._model.run.archive import (
    VARIABLE,
    Address,
    ArchiveError,
    ArchiveLogin,
    Folder,
    Place,
)
from ansible_collections.linerate.rdma.plugins.module_utils._parse.archive import parse_expiry
from ansible_collections.linerate.rdma.plugins.module_utils._store.evidence import pack
from ansible_collections.linerate.rdma.plugins.module_utils._store.files import read_bytes, write_text
from ansible_collections.linerate.rdma.plugins.module_utils._store.run_start import read_start
from ansible_collections.linerate.rdma.plugins.plugin_utils._archive_request import SLOWEST, send_request

#: seconds in which a server must answer or read on
PATIENCE = 60.0
#: seconds that an upload may take in all attempts, plus the seconds of its size at SLOWEST. One exchange has this limit
#: too
IN_ALL = 3 * PATIENCE
#: seconds in which a server must answer before the run, when it is checked
_PROBE_PATIENCE = 15.0
_NAME = re.compile(r"rdma-evidence-([0-9]{8}T[0-9]{6}Z-[0-9a-f]{6})\.tar\.gz")
_OFF = f"or remove {VARIABLE}"


class Sent(typing.NamedTuple):
    """The description of an archive that was sent to its destination.

    :ivar place: address or path of the archive, without secrets
    :ivar sha256: SHA-256 of the archive, in hexadecimal
    :ivar size: size of the archive, in bytes
    :ivar sum_place: address or path of the checksum file; empty if none was sent
    :ivar removed: paths of older archives that were removed
    """

    place: str
    sha256: str
    size: int
    sum_place: str = ""
    removed: tuple[str, ...] = ()


class Attempts(typing.NamedTuple):
    """The limits on retries for a server that is busy or cannot be reached.

    :ivar retries: maximum number of retries, for archive and checksum together
    :ivar delay: seconds before each retry
    :ivar in_all: limit in seconds for all attempts together, in addition to the time that the archive takes at the
        transfer rate SLOWEST
    """

    retries: int = 0
    delay: float = 0.0
    in_all: float = IN_ALL


_ONCE = Attempts()


class _Upload:
    """An upload of an archive and its checksum to one address. The limits of retries and time apply to both files
    together.

    :param authority: file with certificates that are trusted instead of those of the system; empty for those of the
        system
    :param patience: seconds in which the server must answer or continue to read
    :param attempts: limits of retries and time
    :param size: size of the archive, in bytes, which extends the time limit
    """

    def __init__(
        self, place: Address, login: ArchiveLogin, authority: str, patience: float, attempts: Attempts, size: int
    ) -> None:
        self._place, self._login, self._authority, self._patience = place, login, authority, patience
        self._left, self._delay = attempts.retries, attempts.delay
        self._end = time.monotonic() + attempts.in_all + size / SLOWEST

    def put(self, base: str, content: bytes) -> None:
        """Upload a file, and repeat a failed upload as long as the limits of retries and time allow it.

        :param base: address of the file
        :param content: content of the file
        :raises ArchiveError: the server refuses the file, or does not accept it in time
        """
        while True:
            seconds = max(0.0, self._end - time.monotonic())
            try:
                return send_request(
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
                # an attempt with less time than a server may be silent cannot succeed
                if not error.again or self._left < 1 or time.monotonic() + self._delay + self._patience > self._end:
                    raise
            self._left -= 1
            time.sleep(self._delay)


def probe_destination(place: Place, login: ArchiveLogin, authority: str, dry: bool) -> None:
    """Verify that a destination can accept the archive, without sending it. If the destination is a folder, create it,
    and write and remove a temporary file in it.

    :param place: address or folder
    :param login: credentials for the address
    :param authority: file with certificates that are trusted instead of those of the system; empty for those of the
        system
    :param dry: whether nothing may be written to a folder
    :raises ArchiveError: the destination cannot accept the archive
    """
    if isinstance(place, Folder):
        _probe_folder(place, dry)
        return
    _check_login(place, login)
    if authority:
        try:
            ssl.create_default_context(cafile=authority)
        except (OSError, ValueError) as error:
            seen = (
                f"{authority} contains no certificate that can be trusted:"
                f" {getattr(error, 'strerror', None) or type(error).__name__}"
            )
            raise ArchiveError(seen, f"Set {VARIABLE}_ca to a PEM file, or remove it") from None
    until = parse_expiry(place)
    if until is not None and until <= datetime.datetime.now(datetime.timezone.utc):
        seen = f"the signature of {place.shown} expired at {until:%Y-%m-%d %H:%M:%S} UTC"
        raise ArchiveError(seen, "Sign the URL again, with a validity longer than the run")
    # any answer proves that the server is up. A signature is valid for PUT alone, so it is not sent here
    send_request(place, "HEAD", place.of("look", ""), ArchiveLogin(), authority, _PROBE_PATIENCE, None, bare=True)


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
    """Pack the folder of a run, send it to a destination, and send its checksum after it. An archive that has a
    checksum is therefore complete.

    :param report_dir: folder of the run
    :param run: id of the run
    :param place: address or folder
    :param login: credentials for the address
    :param authority: file with certificates that are trusted instead of those of the system; empty for those of the
        system
    :param keep: number of archives of this cluster that remain in a folder, including this one. Archives at an
        address, and those of a run without a known cluster, are never removed
    :param patience: seconds in which a server must answer or continue to read
    :param attempts: limits for archive and checksum together
    :raises ArchiveError: the destination does not accept the archive, or an older archive cannot be removed
    :raises FileError: a file of the run cannot be read, or the folder cannot be written
    """
    top = f"rdma-evidence-{run}"
    name = f"{top}.tar.gz"
    if isinstance(place, Folder):
        folder = path_of(place)
        path = os.path.join(folder, name)
        digest = pack(report_dir, path, top).sha256
        write_text(f"{path}.sha256", _sum_line(digest, name))
        of_cluster = _list_archives_of_cluster(folder, report_dir, run)
        removed = tuple(_remove_old_archives(folder, of_cluster, run, keep))
        return Sent(path, digest, os.path.getsize(path), f"{path}.sha256", removed)
    _check_login(place, login)
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
        # the signature is valid for one file
        return Sent(shown, digest, len(content))
    upload.put(f"{base}.sha256", _sum_line(digest, base.rpartition("/")[2]).encode())
    return Sent(shown, digest, len(content), place.cut(f"{base}.sha256"))


def path_of(place: Folder) -> str:
    """Return the absolute path of a folder. A relative path starts at the folder in which ansible-playbook was
    called.
    """
    return os.path.abspath(os.path.expanduser(place.path))


def _sum_line(digest: str, name: str) -> str:
    """Return the line for a file in the format of ``sha256sum --check``.

    :param digest: SHA-256 of the file
    :param name: name of the file
    """
    return f"{digest}  {name}\n"


def _probe_folder(place: Folder, dry: bool) -> None:
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
            f"the folder {path} could not be written: {error.strerror}",
            f"Create the folder and give this user write permission, set another folder, {_OFF}",
        ) from error


def _check_login(place: Address, login: ArchiveLogin) -> None:
    """Verify that the credentials fit the destination: they are complete, and are not sent over an unencrypted
    connection.

    :raises ArchiveError: the credentials are incomplete or contradictory, contain characters that no header can have,
        or would be sent unencrypted
    """
    if login.token and (login.user or login.password):
        raise ArchiveError(
            f"{place.shown}: the environment contains both a token and a user",
            "Set either RDMA_REPORT_ARCHIVE_TOKEN, or user and password, but not both",
        )
    if bool(login.user) != bool(login.password):
        raise ArchiveError(
            f"{place.shown}: the environment contains a user without a password, or a password without a user",
            "Set both, or neither",
        )
    if not (login.token + login.user + login.password).isprintable() or not login.token.isascii():
        raise ArchiveError(
            (
                f"{place.shown}: user, password or token in the environment contains a character that an HTTP header"
                " cannot contain"
            ),
            "Set the value again, on one line",
        )
    if login.is_named and place.is_clear:
        seen = f"{place.shown} is not encrypted, so other hosts on the path could read the password or the token"
        raise ArchiveError(seen, "Set an https URL, or remove the credentials")


def _list_archives_of_cluster(folder: str, report_dir: str, run: str) -> list[str]:
    """Add this run to the list of the runs of its cluster that have an archive in a folder, and return the IDs of these
    runs in order of time. Each cluster has its own list, a hidden file in the folder. The name of this file is derived
    from the uid of the cluster. Clusters whose kubeconfigs have the same URL, such as that of a tunnel or of the
    Service of the API server, would remove the archives of each other. Without a uid, the archive of the run belongs
    to no list, and the result is empty.

    :param folder: folder with the archives
    :param report_dir: folder of the report of this run
    :raises FileError: the list cannot be read or written
    """
    start = read_start(report_dir)
    if start is None or not start.cluster_uid:
        return []
    path = os.path.join(folder, f".rdma-evidence-{hashlib.sha256(start.cluster_uid.encode()).hexdigest()[:12]}")
    before = read_bytes(path).decode("ascii", "replace").split() if os.path.lexists(path) else []
    there = {match[1] for match in map(_NAME.fullmatch, os.listdir(folder)) if match}
    found = sorted(there.intersection((*before, run)))
    write_text(path, "".join(f"{name}\n" for name in found))
    return found


def _remove_old_archives(folder: str, of_cluster: typing.Sequence[str], run: str, keep: int) -> typing.Iterator[str]:
    """Remove the oldest archives of this cluster in a folder with their checksum files, and yield the paths of the
    removed archives. The archive of this run is never removed.

    :param folder: folder with the archives
    :param of_cluster: IDs of the runs of this cluster with an archive in the folder, in order of time
    :param run: ID of this run
    :param keep: number of archives of this cluster that remain
    :raises ArchiveError: an archive cannot be removed
    """
    try:
        for old in of_cluster[: -max(1, keep)]:
            if old != run:
                path = os.path.join(folder, f"rdma-evidence-{old}.tar.gz")
                os.unlink(path)
                if os.path.exists(f"{path}.sha256"):
                    os.unlink(f"{path}.sha256")
                yield path
    except OSError as error:
        seen = f"an old archive in {folder} could not be removed: {error.strerror}; the archive of this run was written"
        raise ArchiveError(
            seen, f"Give this user the permission to remove files there, or increase {VARIABLE}_keep"
        ) from error
