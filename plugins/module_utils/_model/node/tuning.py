# SPDX-License-Identifier: GPL-3.0-or-later

"""The host under the network: what a node shows of how it is tuned, row by row, and what the intent wants of it.

The rows, what is expected of them and why are in tuning_rows.
"""

from __future__ import annotations

import dataclasses
import typing

from ..base.observed import Observed
from ..boundary.form import Bound

#: there are some fifty rows; a row has a reading for each value, at most one for each CPU or queue of a machine
ROWS, READINGS, PLACES = (
    Bound("rows of a node", 1024),
    Bound("readings of a row", 65_536),
    Bound("places of a reading", 65_536),
)


@dataclasses.dataclass(frozen=True)
class RowReading:
    """One value of a row.

    :ivar value: as the kernel or the tool says it, in as few characters as will do
    :ivar where: what of the node shows it: CPUs as the kernel lists them (0-254), names of HCAs, PCI addresses of GPUs;
        empty: the node as a whole
    """

    value: str
    where: typing.Annotated[tuple[str, ...], PLACES] = ()


@dataclasses.dataclass(frozen=True)
class NodeTuning:
    """Answer of node_info for one node.

    :ivar rows: readings of each row, one for each value; none: the node has no such thing
    :ivar unread: why a row, or a part of it, could not be read
    """

    rows: typing.Annotated[dict[str, typing.Annotated[tuple[RowReading, ...], READINGS]], ROWS] = dataclasses.field(
        default_factory=dict
    )
    unread: typing.Annotated[dict[str, str], ROWS] = dataclasses.field(default_factory=dict)


#: tuning of one node (module node_info)
ObservedTuning = Observed[NodeTuning]


@dataclasses.dataclass(frozen=True)
class Tuning:
    """The expected settings of the nodes beside the network.

    :ivar profile: whose values are expected: of training, of inference, or none, so that only nodes that differ from
        their like are told
    :ivar expected: of single rows instead, by name: a value, several with | between them, ">=N" or "<=N"; null expects
        nothing. What is written here fails where a node shows something else
    :ivar cuda: version of CUDA that jobs use, such as "13.0"; its least driver is then expected. null: any driver
    :ivar set: set what is expected and needs no reboot, by a Tuned of OpenShift or by the module kernel_settings; else
        it is only looked at
    """

    profile: typing.Literal["training", "inference", "none"] = "training"
    expected: dict[str, typing.Any] = dataclasses.field(default_factory=dict)
    cuda: typing.Optional[str] = None
    set: bool = False


@dataclasses.dataclass(frozen=True)
class Roce:
    """The settings of NICs and switches for RoCE of the fabric; where they are not given, the values of NVIDIA's
    network operator are advice.

    :ivar dscp: of the packets
    :ivar priority: to which it leads, which must not lose packets: PFC is on for it alone
    """

    dscp: int = 26
    priority: int = 3

    @property
    def traffic_class(self) -> int:
        """Return the byte in the packet: DSCP, and that the sender understands ECN."""
        return self.dscp << 2 | 2
