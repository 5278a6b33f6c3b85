# SPDX-License-Identifier: GPL-3.0-or-later

"""The parts of the sheet of a node: statements with their tone, the items and blocks of its PCI tree, and the rows of
its tables.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._model.node.hca import ObservedHcas
from ..._model.node.tuning import ObservedTuning
from ..._model.run.findings import Judged

Tone = typing.Literal["", "bad", "unknown"]
Kind = typing.Literal["root", "bridge", "gpu", "hca"]
UNKNOWN = "unknown"
#: of a sheet; the largest machines have 16, and some of them in eight parts each
MOST_GPUS = 256


class Statement(typing.NamedTuple):
    """A short text about an item of the sheet.

    :ivar text: the statement
    :ivar tone: ``bad`` for a problem, ``unknown`` for a value that is not known, otherwise empty
    """

    text: str
    tone: Tone = ""


@dataclasses.dataclass(frozen=True)
class SheetItem:
    """An item of the PCI tree of a node: a host bridge, a bridge, an HCA or a GPU.

    :ivar kind: ``root`` for a host bridge, otherwise ``bridge``, ``gpu`` or ``hca``
    :ivar name: displayed name
    :ivar said: statements about the item
    :ivar below: items below it in the PCI tree
    """

    kind: Kind
    name: str
    said: tuple[Statement, ...] = ()
    below: tuple[SheetItem, ...] = ()

    @property
    def tone(self) -> Tone:
        return find_worst(self.said)


@dataclasses.dataclass(frozen=True)
class Block:
    """A NUMA node of a node, with its CPUs and the items of its PCI tree.

    :ivar name: displayed name of the NUMA node
    :ivar cpus: statement with the CPUs in the kernel's list format, such as ``CPUs 0-31``
    :ivar items: items at the top of its PCI tree
    """

    name: str
    cpus: Statement
    items: tuple[SheetItem, ...]


@dataclasses.dataclass(frozen=True)
class Device:
    """A line in a table of a node's sheet: a port of an HCA, an HCA without ports, or a GPU.

    :ivar name: name of the port, HCA or GPU
    :ivar cells: cells in the order of the headings of the table
    """

    name: str
    cells: tuple[Statement, ...]


@dataclasses.dataclass(frozen=True)
class Sheet:
    """The content of the sheet of a node. A part that is empty is not known, or does not exist.

    :ivar node: name of the node
    :ivar kind: models of its CPUs, GPUs and HCAs as text; empty if not known
    :ivar blocks: NUMA nodes with their parts of the PCI tree
    :ivar hcas: lines of the table of ports
    :ivar gpus: lines of the table of GPUs
    :ivar wrong: problems, each as text
    :ivar unknown: values that are not known, each as text
    :ivar odd: differences from comparable nodes and HCAs, each as text
    :ivar steps: remedies if the node did not answer
    """

    node: str
    kind: str = ""
    blocks: tuple[Block, ...] = ()
    hcas: tuple[Device, ...] = ()
    gpus: tuple[Device, ...] = ()
    wrong: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    odd: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()

    @property
    def rank(self) -> int:
        """Return a number by which sheets are sorted in ascending order: 0 for a node with a problem, 1 for unknown
        values, 2 for differences from comparable nodes, 3 for none of these.
        """
        return 0 if self.wrong else 1 if self.unknown else 2 if self.odd else 3


@dataclasses.dataclass(frozen=True)
class SheetInputs:
    """The input from which the sheet of a node is built.

    :ivar node: name of the node
    :ivar hcas: observed HCAs, or the error that prevented reading them
    :ivar tuning: observed tuning settings, or the error that prevented reading them
    :ivar rails: fabric and rail as text, by the name of the HCA, as far as they are known
    :ivar wanted: names of the HCAs that the intent may use
    :ivar moved: names of the HCAs whose interface is moved into pods, and is down after its return
    :ivar judged: findings about the node that did not pass
    :ivar kind: models of the CPUs, GPUs and HCAs as text; empty if not known
    :ivar odd: differences from comparable nodes and HCAs, each as text
    """

    node: str
    hcas: ObservedHcas
    tuning: ObservedTuning
    rails: typing.Mapping[str, str]
    wanted: typing.Container[str]
    moved: typing.Container[str] = ()
    judged: typing.Sequence[Judged] = ()
    kind: str = ""
    odd: tuple[str, ...] = ()


def find_worst(said: typing.Iterable[Statement]) -> Tone:
    tones = {one.tone for one in said}
    return "bad" if "bad" in tones else "unknown" if "unknown" in tones else ""
