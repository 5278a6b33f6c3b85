# SPDX-License-Identifier: GPL-3.0-or-later

"""What of the node's functions is in the network namespaces of pods, where the node's own sysfs does not show it.

A sysfs shows the interfaces, and in exclusive mode the RDMA devices, of the network namespace in which it was mounted. A container has one of its own, so
the same files are read below ``/proc/<pid>/root/sys``. That takes root, and neither a tool nor the API server.
"""

from __future__ import annotations

import dataclasses
import os
import typing

from .._model.hca import HeldParts
from .._parse.node.sysfs import guid, pci_address_of_link
from .sysfs import Reader, read_netdev, read_ports

Held = typing.Dict[str, HeldParts]


def held_parts(roots: typing.Sequence[str], proc: str = "/proc") -> Held:
    """By PCI address, for functions of which the node itself shows no interface, or no RDMA device.

    What cannot be looked into is left out: a namespace that ends meanwhile, or all of them without root. Then nobody knows what is there.

    :param roots: sysfs roots of the node, usually just /sys
    """
    here = {kind: {address for root in roots for address in _functions(root, kind).values()} for kind in ("net", "infiniband")}
    found: Held = {}
    for root in _other_roots(proc, roots):
        for name, address in _functions(root, "net").items():
            if address not in here["net"]:
                _add_netdev(found, address, root, name)
        for name, address in _functions(root, "infiniband").items():
            if address not in here["infiniband"]:
                device = Reader(os.path.join(root, "class/infiniband", name))
                parts = found.get(address, HeldParts())
                ports = read_ports(device, parts.netdevs)
                found[address] = dataclasses.replace(parts, rdma_device=name, node_guid=device.value("node_guid", guid), ports=ports)
    return found


def _add_netdev(found: Held, address: str, root: str, name: str) -> None:
    reader = Reader(os.path.join(root, "class/net", name))
    netdev = read_netdev(reader, name, Reader(root))
    parts = found.get(address, HeldParts())
    if netdev is None or any(other.hardware_address == netdev.hardware_address for other in parts.netdevs):
        return
    # the name that it had on the node [containernetworking/plugins main/host-device moveLinkIn]
    alias = reader.text("ifalias")
    found[address] = dataclasses.replace(parts, netdevs=(*parts.netdevs, netdev), names=(*parts.names, *([alias] if alias else [])))


def _other_roots(proc: str, roots: typing.Sequence[str]) -> typing.Iterator[str]:
    """A sysfs of each network namespace but the node's own."""
    own, done = _link(os.path.join(proc, "self/ns/net")), set()
    devices = {_device(root) for root in roots}
    for pid in _listed(proc):
        namespace = _link(os.path.join(proc, pid, "ns/net")) if pid.isdigit() else ""
        root = os.path.join(proc, pid, "root/sys")
        if namespace and namespace != own and namespace not in done and os.path.isdir(os.path.join(root, "class/net")):
            # one that sees the node's own mount shows what the node shows; another process of the namespace may have its own
            if _device(root) not in devices:
                done.add(namespace)
            yield root


def _functions(root: str, kind: str) -> typing.Dict[str, str]:
    """PCI address by name, of what a class shows. By the link's own text: a path through /proc/<pid>/root can't be resolved by name."""
    folder = os.path.join(root, "class", kind)
    found = {name: pci_address_of_link(_link(os.path.join(folder, name))) for name in _listed(folder)}
    return {name: address for name, address in found.items() if address}


def _listed(folder: str) -> typing.List[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _link(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""


def _device(path: str) -> int:
    try:
        return os.stat(path).st_dev
    except OSError:
        return -1
