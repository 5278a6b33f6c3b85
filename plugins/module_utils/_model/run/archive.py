# SPDX-License-Identifier: GPL-3.0-or-later

"""The destination to which the archive of a run's report is stored, so that the report outlives the job. A destination
may contain secrets and is shown in shortened form.
"""

from __future__ import annotations

import dataclasses
import typing

from ..base.errors import RdmaError

#: the variable that names the place, and the one of the environment, which a credential of AWX sets
VARIABLE, ENVIRONMENT = "rdma_report_archive", "RDMA_REPORT_ARCHIVE"
#: who sends it, in the environment alone
LOGIN_ENVIRONMENT = {name: f"{ENVIRONMENT}_{name.upper()}" for name in ("user", "password", "token")}
#: stands for the identity of the run in an address
RUN = "{run}"


class ArchiveError(RdmaError):
    """The error for a destination that is invalid or did not accept the archive. The message contains no query,
    password or token.

    :ivar again: whether a retry may succeed
    """

    def __init__(self, seen: str, remedy: str, again: bool = False) -> None:
        super().__init__(seen, remedy)
        self.again = again


@dataclasses.dataclass(frozen=True)
class ArchiveLogin:
    """The credentials for the upload. A field is empty if it is not set.

    :ivar user: user name for HTTP basic authentication
    :ivar password: password of that user
    :ivar token: bearer token
    """

    user: str = ""
    password: str = dataclasses.field(default="", repr=False)
    token: str = dataclasses.field(default="", repr=False)

    @property
    def is_named(self) -> bool:
        return bool(self.user or self.password or self.token)


@dataclasses.dataclass(frozen=True)
class Folder:
    """A folder of the controller to which the archive is copied.

    :ivar path: path of the folder, as the user wrote it
    """

    path: str

    @property
    def shown(self) -> str:
        return self.path


@dataclasses.dataclass(frozen=True)
class Address:
    """A URL to which the archive is uploaded with PUT.

    :ivar base: scheme, host and path
    :ivar query: query with its question mark, which may contain a signature; empty if there is none
    :ivar in_folder: whether the file name is appended to the path; otherwise the path is that of the file
    """

    base: str
    query: str = dataclasses.field(default="", repr=False)
    in_folder: bool = False

    @property
    def is_clear(self) -> bool:
        """Return whether an upload to this URL is not encrypted (http)."""
        return self.base.startswith("http://")

    @property
    def shown(self) -> str:
        return self.cut(self.base)

    def of(self, run: str, name: str) -> str:
        """Return the URL of an uploaded file, without its query.

        :param run: id of the run, which replaces ``{run}``
        :param name: name of the file
        """
        return self.base.replace(RUN, run) + (name if self.in_folder else "")

    def cut(self, base: str) -> str:
        """Return a URL in the form for messages: ``?...`` is appended if the address has a query, which may be secret.

        :param base: URL of the address without its query
        """
        return base + ("?..." if self.query else "")


Place = typing.Union[Folder, Address]


@dataclasses.dataclass(frozen=True)
class ArchiveFacts:
    """The result of the check, before the first stage, whether the destination can accept the archive.

    :ivar place: destination in the form for messages
    :ivar error: why it cannot accept the archive; empty if no problem is known
    :ivar remedy: instruction that resolves the error; empty if there is none
    """

    place: str
    error: str = ""
    remedy: str = ""
