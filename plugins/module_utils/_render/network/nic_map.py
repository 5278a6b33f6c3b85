# SPDX-License-Identifier: GPL-3.0-or-later

"""The NIC map of a fabric: an address for each of its interfaces on each node, and the ConfigMap that contains it.

The CNI of the pods assigns addresses of the same network. The map therefore takes addresses that the CNI never assigns:
those in the intent's ``ipam.exclude``, and those outside of ``range_start`` and ``range_end``.
"""

from __future__ import annotations

import ipaddress
import itertools
import typing

from ..._model.intent.intent import Fabric
from ..._model.job.nic_map import NicLine
from ..._parse.job.nic_map import KEY
from ..._parse.kubernetes.networks.addresses import Pool, RangeError, parse_range
from ..cluster.names import RenderError, build_labels

Object = dict[str, typing.Any]


def list_nic_lines(
    fabric: Fabric, netdevs: typing.Mapping[str, typing.Sequence[str]], before: typing.Iterable[NicLine] = ()
) -> tuple[NicLine, ...]:
    """Return one line of the NIC map for each interface, sorted by node and rail. The first rail is net1.

    :param netdevs: interfaces of the fabric on each node, in the order of the rails
    :param before: lines of the existing map. Their interfaces keep their addresses, because jobs may use them
    :raises RenderError: the fabric has no ipam, its range is invalid, or too few addresses are left for the map
    """
    ipam = fabric.ipam
    if ipam is None:
        raise RenderError(f"rdma_fabrics '{fabric.name}' has no ipam, so no addresses are available for a NIC map")
    try:
        pool = parse_range(ipam.range, ipam.range_start, ipam.range_end, ipam.exclude)
    except RangeError as error:
        raise RenderError(
            f"rdma_fabrics '{fabric.name}': ipam.{error.field}: {error.seen}; expected {error.expected}"
        ) from error
    kept = {
        (line.node, line.netdev): line.address
        for line in before
        if pool.on_network(line.address) and not pool.hands_out(line.address)
    }
    taken = {*kept.values(), str(ipaddress.ip_address(ipam.gateway)) if ipam.gateway else ""}
    free = (address for address in iterate_reserved(pool) if address not in taken)
    made = []
    for node, names in sorted(netdevs.items()):
        for rail, netdev in enumerate(names, 1):
            address = kept.get((node, netdev)) or next(free, None)
            if address is None:
                needed = sum(len(names) for names in netdevs.values())
                why = f"the NIC map requires {needed} addresses of {pool.network} that no pod gets"
                raise RenderError(
                    f"rdma_fabrics '{fabric.name}': {why}",
                    f"Set them in ipam.exclude, such as a network of at least {needed} addresses",
                )
            made.append(NicLine(node, netdev, f"net{rail}", address))
    return tuple(made)


def iterate_reserved(pool: Pool) -> typing.Iterator[str]:
    """Yield, in ascending order, the host addresses of a network that its IPAM plugin never assigns: addresses outside
    of its range, and excluded ones.

    :param pool: addresses that the IPAM plugin assigns
    """
    first, last = int(pool.network.network_address) + 1, int(pool.network.broadcast_address) - 1
    holes = ((first, int(pool.first) - 1), *pool.excluded, (int(pool.last) + 1, last))
    numbers = itertools.chain.from_iterable(range(max(low, first), min(high, last) + 1) for low, high in holes)
    return (str(pool.network[number - first + 1]) for number in numbers)


def render_config_map(fabric: Fabric, name: str, made: typing.Iterable[NicLine]) -> Object:
    """Render the ConfigMap of the NIC map, in the namespace of the fabric's pods.

    :param name: name of the ConfigMap
    :param made: lines of the map
    """
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": fabric.network.namespace, "labels": build_labels(fabric.name)},
        "data": {KEY: "".join(f"{line.text}\n" for line in made)},
    }
