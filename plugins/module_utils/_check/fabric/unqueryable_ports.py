# SPDX-License-Identifier: GPL-3.0-or-later

"""Stage fabric: ports that could not be queried for their subnet manager. The fabric of such a port is not known, so it
does not count as absent.
"""

from __future__ import annotations

import typing

from ..._analysis.fleet.hcas_of_fabric import find_candidates
from ..._model.base.phrases import format_clause
from ..._model.infiniband.fabric import SeenSubnet
from ..._model.intent.intent import Fabric
from ..._model.node.hca import Hca
from .names import FabricFacts, join_some

#: why no tool can open a port (_model/infiniband/fabric.py): cause and remedy, from the lowest layer up
_BARRIERS: dict[str, tuple[str, str]] = {
    "module": (
        "the kernel module ib_umad is not loaded on the node",
        (
            "On each of these nodes, load the module now and at each boot: 'modprobe ib_umad', and 'echo ib_umad >"
            " /etc/modules-load.d/ib_umad.conf'. Then run stage fabric again."
        ),
    ),
    "port": (
        "the kernel module ib_umad has not registered the port",
        (
            "Drain the node of each port, because a reload stops all RDMA of the node. Then reload the driver of its"
            " HCAs: 'modprobe -r mlx5_ib && modprobe mlx5_ib'. If 'dmesg | grep umad' shows an error, correct it. Then"
            " run stage fabric again."
        ),
    ),
    "device": (
        "the port has no device node /dev/infiniband/umad*, although the kernel module ib_umad has registered the port",
        (
            "On each of these nodes, let udev create the device nodes: 'udevadm trigger"
            " --subsystem-match=infiniband_mad'. If Ansible connects to a container on the node instead of the node,"
            " mount /dev/infiniband of the node in this container. Then run stage fabric again."
        ),
    ),
    "right": (
        "the user of Ansible has no permission to open /dev/infiniband/umad*",
        (
            "Set ansible_user: root or ansible_become: true for these nodes in the inventory. Then run stage fabric"
            " again."
        ),
    ),
}


def find_unasked(fabric: Fabric, name: str, fabric_facts: FabricFacts) -> tuple[Hca, ...]:
    """Return the HCAs of a node that may belong to a fabric and have a link, but could not be queried for their subnet
    manager. If the node did not answer at all, return all its candidate HCAs with a link.

    :param name: name of the node
    :param fabric_facts: HCAs, subnet managers and topologies of the nodes whose facts could be read
    """
    hcas = find_candidates(fabric, fabric_facts.nodes[name])
    if name not in fabric_facts.subnets:
        return tuple(hca for hca in hcas if any(port.link_layer == "InfiniBand" and port.linked for port in hca.ports))
    seen_by: dict[str, list[SeenSubnet]] = {}
    for seen in fabric_facts.subnets[name]:
        seen_by.setdefault(seen.rdma_device, []).append(seen)
    return tuple(hca for hca in hcas if _is_mute(seen_by.get(hca.rdma_device or "", [])))


def describe_hca(hca: Hca) -> str:
    return f"{hca.name} ({hca.pci.address})" if hca.pci else hca.name


def _is_mute(ports: typing.Sequence[SeenSubnet]) -> bool:
    """Return whether the subnet of an HCA is unknown because its ports could not be queried: no port sees a subnet
    manager, and at least one port has a link over which no query was sent. Return True for an empty list.

    :param ports: answers of the ports of the HCA
    """
    return not any(seen.master for seen in ports) and (
        not ports or any(seen.linked and not seen.silent for seen in ports)
    )


def explain_cause(
    nodes: typing.Sequence[str], fabric_facts: FabricFacts, mute: typing.Sequence[Hca] = ()
) -> tuple[str, str]:
    """Return the reason why ports of these nodes could not be queried for their subnet manager, and its remedy.

    Of several reasons, return the most basic: no answer of a node, then devices that no tool can open, then errors of
    the query.

    :param nodes: names of the nodes
    :param fabric_facts: HCAs, subnet managers and topologies of the nodes whose facts could be read
    :param mute: HCAs of the node that were not queried, if ``nodes`` has one node; empty if they are not known
    """
    missing = [name for name in nodes if name not in fabric_facts.subnets]
    if missing:
        why = (
            f"The module subnet_manager_info could not read the ports of {join_some(missing)}, so their subnet"
            " managers are unknown."
        )
        return why, (
            f"Follow the remedy of the finding fabric.node of {missing[0] if len(missing) == 1 else 'these nodes'},"
            " then run stage fabric again."
        )
    found = [(name, seen) for name in nodes for seen in fabric_facts.subnets[name] if _is_mute([seen])]
    for barrier, (text, remedy) in _BARRIERS.items():
        behind = [f"{name} {seen.rdma_device}" for name, seen in found if seen.barrier == barrier]
        if behind:
            return (
                f"The subnet manager of each of these ports is unknown, because {text}: {join_some(behind)}.",
                remedy,
            )
    words = [f"{name} {seen.rdma_device}: {format_clause(seen.error)}" for name, seen in found]
    if not words:
        return (
            "The module subnet_manager_info did not query"
            f" {join_some([describe_hca(hca) for hca in mute]) if mute else 'these HCAs'}, because it found no RDMA"
            f" device for {'it' if len(mute) == 1 else 'them'}.",
            f"Run rdma link on {join_some(nodes)}. If an HCA has no RDMA device, load its RDMA driver (modprobe"
            " mlx5_ib). If it still has none, correct the error in dmesg of the HCA. Then run stage fabric again.",
        )
    return (
        f"These ports could not be queried, so their subnet managers are unknown: {join_some(words)}.",
        f"Run sminfo as root on {nodes[0]}, and correct the error that it prints. Then run stage fabric again.",
    )
