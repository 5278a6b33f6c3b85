# SPDX-License-Identifier: GPL-3.0-or-later

"""A proposed intent, derived from the observed state of the nodes and the cluster. It has values, each with its reason,
and lists what is not included. Created by _plan/propose/propose.py.
"""

from __future__ import annotations

import dataclasses
import typing

Scalar = typing.Union[str, int, bool]

#: how a value begins that only the user knows; _parse/intent.py refuses it wherever it stands
PLACEHOLDER = "FILL_IN"


@dataclasses.dataclass(frozen=True)
class Value:
    """A value of the proposed intent that was derived from observations. A tuple represents a list.

    :ivar value: the value; a tuple for a list
    :ivar why: observation from which the value was derived
    :ivar asked: variable that overrides the value when a run is started; empty for none
    """

    value: typing.Union[Scalar, tuple[Scalar, ...]]
    why: str
    asked: str = ""


@dataclasses.dataclass(frozen=True)
class Blank:
    """A value of the proposed intent that cannot be derived, so that the user must enter it.

    :ivar hint: instruction to the user, which names the value to enter
    :ivar why: why the value cannot be derived
    """

    hint: str
    why: str

    @property
    def text(self) -> str:
        """Return the placeholder that the file contains until the user replaces it."""
        return f"{PLACEHOLDER}: {self.hint}"


@dataclasses.dataclass(frozen=True)
class Section:
    """A mapping in the proposed intent.

    :ivar entries: keys with their values, in the order of the file
    :ivar why: reason for the mapping, as a comment in the file
    """

    entries: tuple[tuple[str, Entry], ...]
    why: str


@dataclasses.dataclass(frozen=True)
class Sections:
    """A list of mappings in the proposed intent.

    :ivar items: the mappings
    :ivar why: reason for the list, as a comment in the file
    """

    items: tuple[Section, ...]
    why: str


Entry = typing.Union[Value, Blank, Section, Sections]


@dataclasses.dataclass(frozen=True)
class LeftOut:
    """An HCA or node that is not part of the proposal.

    :ivar what: the HCA, model or node, for messages
    :ivar why: the reason, and how to include it
    """

    what: str
    why: str


@dataclasses.dataclass(frozen=True)
class Proposal:
    """The proposed intent, the HCAs and nodes that it leaves out, and notes.

    :ivar fabrics: proposed value of ``rdma_fabrics``; empty if no fabric could be proposed
    :ivar cluster: proposed ``rdma_cluster``
    :ivar left_out: HCAs and nodes that the proposal does not include
    :ivar notes: further information for the user
    :ivar image: proposed ``rdma_observers_image``; None if the proposal does not set it
    """

    fabrics: Sections
    cluster: Section
    left_out: tuple[LeftOut, ...] = ()
    notes: tuple[str, ...] = ()
    image: typing.Optional[Value] = None

    @property
    def variables(self) -> Section:
        """Return the proposed intent as one mapping with the variables ``rdma_fabrics`` and ``rdma_cluster``, and with
        ``rdma_observers_image`` if it is proposed.
        """
        image = (("rdma_observers_image", self.image),) if self.image is not None else ()
        return Section((("rdma_fabrics", self.fabrics), ("rdma_cluster", self.cluster), *image), "")


def make_data(entry: Entry) -> typing.Any:
    """Return a section or value of the proposed intent as plain data. A blank, which the user must fill in, becomes its
    placeholder text.

    :param entry: value, blank, mapping (``Section``) or list of mappings (``Sections``)
    """
    if isinstance(entry, Section):
        return {key: make_data(item) for key, item in entry.entries}
    if isinstance(entry, Sections):
        return [make_data(item) for item in entry.items]
    if isinstance(entry, Blank):
        return entry.text
    return list(entry.value) if isinstance(entry.value, tuple) else entry.value


def iterate_leaves(entry: Entry, path: str = "") -> typing.Iterator[tuple[str, typing.Union[Value, Blank]]]:
    """Yield each value and each blank of a section of the proposed intent, with its path in the notation of the user.

    :param entry: value, blank, mapping (``Section``) or list of mappings (``Sections``)
    :param path: path of the section in the intent
    """
    if isinstance(entry, Section):
        for key, item in entry.entries:
            yield from iterate_leaves(item, f"{path}.{key}" if path else key)
    elif isinstance(entry, Sections):
        for index, item in enumerate(entry.items):
            yield from iterate_leaves(item, f"{path}[{index}]")
    else:
        yield path, entry
