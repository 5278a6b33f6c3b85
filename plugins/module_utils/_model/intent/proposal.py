# SPDX-License-Identifier: GPL-3.0-or-later

"""An intent that was concluded from what there is: values, each with the reason for it, and what was left out. Made by
_plan/propose.py."""

from __future__ import annotations

import dataclasses
import typing

Scalar = typing.Union[str, int, bool]

#: how a value begins that only the user knows; _parse/intent.py refuses it wherever it stands
PLACEHOLDER = "FILL_IN"


@dataclasses.dataclass(frozen=True)
class Value:
    """A value that was concluded; a tuple is a list.

    :ivar why: from what
    :ivar asked: the variable by which whoever starts a run may say another one; empty for none
    """

    value: typing.Union[Scalar, tuple[Scalar, ...]]
    why: str
    asked: str = ""


@dataclasses.dataclass(frozen=True)
class Blank:
    """A value that nothing shows.

    :ivar hint: what to write
    :ivar why: why it is not known
    """

    hint: str
    why: str

    @property
    def text(self) -> str:
        """Return the placeholder in the file until the user fills it in."""
        return f"{PLACEHOLDER}: {self.hint}"


@dataclasses.dataclass(frozen=True)
class Section:
    """A mapping."""

    entries: tuple[tuple[str, Entry], ...]
    why: str


@dataclasses.dataclass(frozen=True)
class Sections:
    """A list of mappings."""

    items: tuple[Section, ...]
    why: str


Entry = typing.Union[Value, Blank, Section, Sections]


@dataclasses.dataclass(frozen=True)
class LeftOut:
    """An HCA or node that takes no part in the proposal.

    :ivar what: an HCA, a model or a node, for a reader
    :ivar why: the reason, and what to do if it shall take part
    """

    what: str
    why: str


@dataclasses.dataclass(frozen=True)
class Proposal:
    """The proposed intent.

    :ivar fabrics: none where nothing could be proposed
    :ivar notes: what a reader should know beside the values
    """

    fabrics: Sections
    cluster: Section
    left_out: tuple[LeftOut, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def variables(self) -> Section:
        """Return the two variables of the intent."""
        return Section((("rdma_fabrics", self.fabrics), ("rdma_cluster", self.cluster)), "")


def make_data(entry: Entry) -> typing.Any:
    """Return the plain data that Ansible makes of it where a run is asked nothing."""
    if isinstance(entry, Section):
        return {key: make_data(item) for key, item in entry.entries}
    if isinstance(entry, Sections):
        return [make_data(item) for item in entry.items]
    if isinstance(entry, Blank):
        return entry.text
    return list(entry.value) if isinstance(entry.value, tuple) else entry.value


def leaves(entry: Entry, path: str = "") -> typing.Iterator[tuple[str, typing.Union[Value, Blank]]]:
    """Yield all values with their paths, as the user would write them."""
    if isinstance(entry, Section):
        for key, item in entry.entries:
            yield from leaves(item, f"{path}.{key}" if path else key)
    elif isinstance(entry, Sections):
        for index, item in enumerate(entry.items):
            yield from leaves(item, f"{path}[{index}]")
    else:
        yield path, entry
