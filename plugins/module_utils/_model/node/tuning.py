# SPDX-License-Identifier: GPL-3.0-or-later

"""The tuning of the host other than its network: the observed value of each row (property of a node), and the values
that the intent expects.

The rows, with their expected values and reasons, are in tuning_rows.
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
    """One observed value of a tuning row (one property of a node), and the devices that have it.

    :ivar value: value as the kernel or the tool reports it, abbreviated
    :ivar where: devices with this value: CPUs in the kernel's list format (0-254), names of HCAs, PCI addresses of
        GPUs; empty for the node as a whole
    """

    value: str
    where: typing.Annotated[tuple[str, ...], PLACES] = ()


@dataclasses.dataclass(frozen=True)
class NodeTuning:
    """The observed values of all tuning rows of one node, as the module node_info returns them.

    :ivar rows: readings by name of the tuning row, one reading for each value; empty if the node has no such device
    :ivar unread: why a tuning row, or the value of some devices, could not be read, by name of the row
    """

    rows: typing.Annotated[dict[str, typing.Annotated[tuple[RowReading, ...], READINGS]], ROWS] = dataclasses.field(
        default_factory=dict
    )
    unread: typing.Annotated[dict[str, str], ROWS] = dataclasses.field(default_factory=dict)


#: tuning of one node (module node_info)
ObservedTuning = Observed[NodeTuning]


@dataclasses.dataclass(frozen=True)
class Tuning:
    """The intent for host tuning.

    :ivar profile: profile whose values are expected: training, inference, or none, which reports only differences
        between comparable nodes
    :ivar expected: expected values of single tuning rows, by name: a value, several with | between them, ">=N" or
        "<=N"; null expects nothing. A node with another value fails
    :ivar cuda: version of CUDA that jobs use, such as "13.0"; the minimum driver for it is then expected. null accepts
        any driver
    :ivar set: whether to apply expected values that need no reboot, by a Tuned of OpenShift or by the module
        kernel_settings; otherwise they are only checked
    """

    profile: typing.Literal["training", "inference", "none"] = "training"
    expected: dict[str, typing.Any] = dataclasses.field(default_factory=dict)
    cuda: typing.Optional[str] = None
    set: bool = False


@dataclasses.dataclass(frozen=True)
class Roce:
    """The RoCE settings that NICs and switches of the fabric must have. Without them, the values of NVIDIA's network
    operator are recommended.

    :ivar dscp: DSCP of the packets
    :ivar priority: lossless priority to which the DSCP maps: PFC is on for it alone
    """

    dscp: int = 26
    priority: int = 3

    @property
    def traffic_class(self) -> int:
        """Return the traffic class byte of the packets: the DSCP, and the ECN bits of an ECN-capable sender."""
        return self.dscp << 2 | 2
