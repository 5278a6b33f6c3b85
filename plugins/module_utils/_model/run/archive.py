# SPDX-License-Identifier: GPL-3.0-or-later

"""Where the archive of a run goes, so that the report survives the job. What leads there may be a secret, and is shown
cut."""

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
    """A place that the archive can't go to, or did not take it. No message holds a query, a password or a token.

    :ivar again: whether the same may do a moment later
    """

    def __init__(self, seen: str, remedy: str, again: bool = False) -> None:
        super().__init__(seen, remedy)
        self.again = again


@dataclasses.dataclass(frozen=True)
class ArchiveLogin:
    """The credentials of the sender. Empty where none is named."""

    user: str = ""
    password: str = dataclasses.field(default="", repr=False)
    token: str = dataclasses.field(default="", repr=False)

    @property
    def is_named(self) -> bool:
        return bool(self.user or self.password or self.token)


@dataclasses.dataclass(frozen=True)
class Folder:
    """A folder of the controller.

    :ivar path: as it was given
    """

    path: str

    @property
    def shown(self) -> str:
        return self.path


@dataclasses.dataclass(frozen=True)
class Address:
    """An address that takes PUT.

    :ivar base: scheme, host and path
    :ivar query: with its question mark; empty where there is none. A signature is in it
    :ivar in_folder: the file's name comes behind the path; else the path is that of the file
    """

    base: str
    query: str = dataclasses.field(default="", repr=False)
    in_folder: bool = False

    @property
    def is_clear(self) -> bool:
        """Return whether it is sent unencrypted."""
        return self.base.startswith("http://")

    @property
    def shown(self) -> str:
        return self.cut(self.base)

    def of(self, run: str, name: str) -> str:
        """Scheme, host and path of a file.

        :param run: identity, in place of ``{run}``
        :param name: of the file
        """
        return self.base.replace(RUN, run) + (name if self.in_folder else "")

    def cut(self, base: str) -> str:
        """Return a path of this address as it may be shown."""
        return base + ("?..." if self.query else "")


Place = typing.Union[Folder, Address]


@dataclasses.dataclass(frozen=True)
class ArchiveFacts:
    """The state of the archive's destination, observed before anything is run.

    :ivar place: as it may be shown
    :ivar error: why it can't; empty where nothing says so
    :ivar remedy: what to do then
    """

    place: str
    error: str = ""
    remedy: str = ""
