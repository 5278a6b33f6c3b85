# SPDX-License-Identifier: GPL-3.0-or-later

"""The registry of the kinds of facts about nodes: the source from which each is read, and its name in a comparison of
two runs.
"""

from __future__ import annotations

import typing

from ..base.errors import RdmaError
from ..base.load_error import suggest_nearest

#: the host of the node: sysfs, procfs, PCI configuration space, tools
HOST: typing.Final = "node"
#: its InfiniBand ports, which ask the fabric
IB_PORTS: typing.Final = "fabric"
#: the whole fabric, read through a few ports
WHOLE_FABRIC: typing.Final = "topology"
#: its Ethernet ports, which listen for switches for half a minute; only a run that needs the answer listens
LLDP: typing.Final = "switches"
#: files of the node; only the teardown asks for what the collection has left in them
FILES: typing.Final = "files"

Source = typing.Literal["node", "fabric", "topology", "switches", "files"]


class FactKind(typing.NamedTuple):
    """A kind of fact about a node, such as its HCAs.

    :ivar name: name of the kind, such as ``hcas``
    :ivar source: part of the node that is read: node, fabric, topology, switches or files; None for facts of another
        module or a BMC
    :ivar difference_prefix: prefix of its lines in the difference of two runs; empty for lines without a prefix, None
        if it is not compared
    """

    name: str
    source: typing.Optional[Source] = None
    difference_prefix: typing.Optional[str] = None


#: in the order in which two runs are compared
FACT_KINDS: tuple[FactKind, ...] = (
    FactKind("hcas_after_network", difference_prefix=""),
    FactKind("hcas", HOST, ""),
    FactKind("platform", HOST, "platform"),
    FactKind("firmware", HOST, "firmware"),
    FactKind("clock", HOST),
    FactKind("tuning", HOST),
    FactKind("bios", difference_prefix="BIOS"),
    FactKind("subnets", IB_PORTS, "subnet manager of"),
    FactKind("topologies", WHOLE_FABRIC),
    FactKind("neighbours", LLDP, "neighbours"),
    FactKind("containerd", difference_prefix="containerd"),
    FactKind("drop_in", FILES),
    FactKind("kernel_arguments_left", FILES),
)


def list_kinds_from(*sources: Source) -> tuple[str, ...]:
    """Return the kinds of facts that are read from the given sources.

    :param sources: node, fabric, topology, switches or files
    """
    return tuple(kind.name for kind in FACT_KINDS if kind.source in sources)


def list_sources(kinds: typing.Collection[str]) -> list[str]:
    """Return the sources on the node (node, fabric, topology, switches, files) from which facts of the given kinds are
    read.

    :param kinds: kinds of facts
    """
    return list(dict.fromkeys(kind.source for kind in FACT_KINDS if kind.name in kinds and kind.source is not None))


def list_kinds_for_observers(kinds: typing.Collection[str]) -> list[str]:
    """Return the kinds of facts that one command in each observer reads for a stage. If HCAs are among the needed
    kinds, all kinds of the sources node and fabric are read, since this costs little more than one kind and serves all
    stages.

    :param kinds: kinds that the stage needs
    """
    wanted = [name for name in list_kinds_from(HOST, IB_PORTS, LLDP) if name in kinds]
    return list(dict.fromkeys((*list_kinds_from(HOST, IB_PORTS), *wanted))) if "hcas" in wanted else wanted


def choose_kinds_for_observers(asked: typing.Optional[typing.Sequence[str]]) -> tuple[str, ...]:
    """Return the kinds that the observers are asked for: those in ``asked``, or by default all of a node and of its
    ports.

    :param asked: kinds that the user requests; None for the default
    :raises RdmaError: an observer cannot read one of them
    """
    known = list_kinds_from(HOST, IB_PORTS, FILES, LLDP)
    for name in asked or ():
        if name not in known:
            raise RdmaError(
                f"kinds: an observer does not read facts of the kind '{name}'{suggest_nearest(name, known)}",
                f"Use only these kinds: {', '.join(known)}",
            )
    return list_kinds_from(HOST, IB_PORTS) if asked is None else tuple(asked)
