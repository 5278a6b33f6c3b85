# SPDX-License-Identifier: GPL-3.0-or-later

"""Choose the ports from which the fabrics are discovered. A discovery walks a whole fabric, so one port of each fabric
is sufficient.

A port that has lost its path to the subnet manager is on a part of the fabric that was cut off. That part is visible
only from such a port.
"""

from __future__ import annotations

import typing

from ..._model.infiniband.fabric import SeenSubnet
from ..._model.measurement.reachability import PortName

#: of ports that have lost their way; when the manager's own machine is gone, all have
_MOST_CUT_OFF = 4


def choose_vantage_points(subnets: typing.Mapping[str, typing.Sequence[SeenSubnet]]) -> dict[str, tuple[PortName, ...]]:
    """Return the ports through which to discover the fabrics: for each subnet manager, the first port of the first node
    that sees it; and up to four ports that have lost the path to their subnet manager, each with another name of its
    RDMA device.

    :param subnets: subnets that the ports of each node see
    :returns: ports by node, for every node of ``subnets``; empty for most nodes
    """
    result: dict[str, tuple[PortName, ...]] = {}
    known: set[str] = set()
    # one for each device name, which mostly is a rail
    cut_off: set[str] = set()
    for node, seen in subnets.items():
        ports = []
        for subnet in seen:
            if subnet.master is not None and subnet.master.guid not in known:
                known.add(subnet.master.guid)
                ports.append(PortName(subnet.rdma_device, subnet.port))
            elif subnet.cut_off and subnet.rdma_device not in cut_off and len(cut_off) < _MOST_CUT_OFF:
                cut_off.add(subnet.rdma_device)
                ports.append(PortName(subnet.rdma_device, subnet.port))
        result[node] = tuple(ports)
    return result
