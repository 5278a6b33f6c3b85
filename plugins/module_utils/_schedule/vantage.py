# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection linerate.rdma: no other code may import this.

"""From where to look at the fabrics: a discovery walks a whole fabric, so one port of each is enough."""

from __future__ import annotations

import typing

from .._model.facts import PortName, SeenSubnet


def vantage_points(subnets: typing.Mapping[str, typing.Sequence[SeenSubnet]]) -> typing.Dict[str, typing.Tuple[PortName, ...]]:
    """For each subnet manager that is seen, the first port of the first node that sees it.

    :param subnets: what the ports of each node see
    :returns: ports by node, for every node of ``subnets``; mostly empty
    """
    result: typing.Dict[str, typing.Tuple[PortName, ...]] = {}
    known = set()
    for node, seen in subnets.items():
        ports = []
        for subnet in seen:
            if subnet.master is not None and subnet.master.guid not in known:
                known.add(subnet.master.guid)
                ports.append(PortName(subnet.rdma_device, subnet.port))
        result[node] = tuple(ports)
    return result
