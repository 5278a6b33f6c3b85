# SPDX-License-Identifier: GPL-3.0-or-later

"""The classes of error counters of a port: their counters, the cause of the errors, and the remedy."""

from __future__ import annotations

import dataclasses
import typing


@dataclasses.dataclass(frozen=True)
class CounterClass:
    """A class of error counters that have the same cause and remedy.

    :ivar name: name of the class
    :ivar maximum: largest value of each counter in PortCounters (InfiniBand Architecture Specification 1.3, table 247),
        at which it stops
    :ivar why: cause of the errors
    :ivar remedy: instruction to the user that resolves the cause
    :ivar closes: whether growth closes the gate
    """

    name: str
    maximum: typing.Mapping[str, int]
    why: str
    remedy: str
    closes: bool = True


PHYSICAL = CounterClass(
    "physical",
    {
        "SymbolErrorCounter": 65535,
        "LinkErrorRecoveryCounter": 255,
        "LinkDownedCounter": 255,
        "PortRcvErrors": 65535,
        "LocalLinkIntegrityErrors": 15,
        "ExcessiveBufferOverrunErrors": 15,
    },
    "The receiver of this port detects errors on the link (physical counters). A damaged packet is sent again, and"
    " the whole collective waits for it.",
    "While no job uses the link, clean and reseat the cable at both ends. If a later run still finds new errors,"
    " replace the cable or the transceiver. If that does not help, move the cable to another port of the switch, or"
    " replace the HCA.",
)
CLASSES = (
    PHYSICAL,
    CounterClass(
        "physical, further up",
        {"PortRcvRemotePhysicalErrors": 65535},
        "This port receives packets that another switch has already marked as damaged (PortRcvRemotePhysicalErrors):"
        " the bad link is upstream on their path.",
        "Run ibqueryerrors as root on a node of the fabric. Follow the ports with PortRcvErrors or SymbolErrorCounter"
        " against the direction of the traffic, and repair the first link with such errors.",
    ),
    CounterClass(
        "congestion",
        {"PortXmitDiscards": 65535},
        "The port drops packets (congestion): the packets waited too long for a slow receiver (PortXmitDiscards).",
        "Run ibqueryerrors --details as root on a node of the fabric to see the cause of the discards. Repair the"
        " device behind the port that receives too slowly: an HCA with a slow PCIe link (finding discover.pcie), or"
        " a host that hangs.",
    ),
    CounterClass(
        "management",
        {"VL15Dropped": 65535},
        "The port drops subnet management packets, because it had no buffer for them (VL15Dropped). No data is lost:"
        " these packets alone use VL 15, and their sender sends them again. Usually several managers and tools query"
        " the port at the same time, this stage among them.",
        "Stop other tools that query the fabric (ibdiagnet, UFM telemetry, exporters) during the next run. If a"
        " later run still finds new errors, read the log of the subnet manager for timeouts at this port, and"
        " repair the port that it names.",
        closes=False,
    ),
    CounterClass(
        "configuration",
        {"PortXmitConstraintErrors": 255, "PortRcvConstraintErrors": 255},
        "The port drops packets with a P_Key or a raw packet type that its partition does not allow (configuration"
        " error).",
        "Compare the P_Keys of both ends (smpquery pkeys LID) with the partitions of the subnet manager"
        " (partitions.conf), and correct the partitions.",
    ),
    CounterClass(
        "relay",
        {"PortRcvSwitchRelayErrors": 65535},
        "The switch could not forward packets (PortRcvSwitchRelayErrors). Most of these packets are multicast packets"
        " that returned to the port from which they came, which is harmless.",
        "No action is needed unless stage reachability reports lost packets on this path. In this case run ibtracert"
        " SOURCE-LID DESTINATION-LID as root on a node of the fabric.",
        closes=False,
    ),
)
#: class of each counter, by the name of the counter
CLASS_OF = {name: group for group in CLASSES for name in group.maximum}
