# SPDX-License-Identifier: GPL-3.0-or-later

"""Read settings of the interfaces of HCAs: ARP, MTU, and the settings that prevent packet loss with RoCE."""

from __future__ import annotations

import os
import typing

from ...._model.base.errors import RdmaError
from ...._model.base.operand import require_operand
from ...._model.base.text import format_ranges
from ...._model.node.hca import NodeHcas
from ...._parse.node import dcb
from ...._parse.node import tuning as parse
from ...._parse.node.sysfs import parse_number
from ...process import command
from ..sysfs_reader import SysfsReader
from .rows import Rows, reader_of

_LIMIT_SECONDS = 10.0
_ARP = ("arp_announce", "arp_ignore", "rp_filter")
ROCE = ("roce_trust", "roce_pfc", "roce_dscp", "roce_ecn", "roce_traffic_class", "roce_tos", "mtu")
_PRIORITIES = range(8)


def read(
    rows: Rows,
    readers: typing.Sequence[SysfsReader],
    proc: SysfsReader,
    configfs: SysfsReader,
    node: NodeHcas,
) -> None:
    """Add the tuning rows of the interfaces of HCAs to ``rows``: ARP, MTU and RoCE.

    The RDMA device of a bond (RoCE LAG) belongs to one of its functions and sends through the ports of all of them.
    Trust mode, PFC, DSCP and ECN are settings of each port, so they are read of the other functions too.

    :param rows: collector of the tuning rows (observable properties) of the node
    :param readers: readers of the sysfs roots
    :param proc: reader of the procfs of the node
    :param configfs: reader of /sys/kernel/config of the node
    :param node: all network functions. VFs are skipped, because their PF determines these settings
    """
    rows.absent(*_ARP, *ROCE)
    for hca in node.hcas:
        carrier = hca if hca.rdma_device else node.carrier(hca)
        if hca.is_virtual or carrier is None:
            continue
        for netdev in hca.netdevs:
            # the bond has the addresses of its functions, so ARP is a matter of the bond
            if hca.rdma_device:
                _read_arp_settings(rows, proc, netdev.name, hca.name)
            if any(port.link_layer == "Ethernet" for port in carrier.ports):
                _read_port_settings(rows, reader_of(readers, f"class/net/{netdev.name}"), netdev.name, hca.name)
        for port in hca.ports:
            if hca.rdma_device and port.link_layer == "Ethernet":
                _read_traffic_classes(
                    rows,
                    reader_of(readers, f"class/infiniband/{hca.rdma_device}"),
                    configfs,
                    hca.rdma_device,
                    port.number,
                    hca.name,
                )


def _read_arp_settings(rows: Rows, proc: SysfsReader, netdev: str, hca: str) -> None:
    """Add the tuning rows with the ARP settings of an interface to ``rows``. Of the value for all interfaces and the
    value for this interface, the larger is in effect (Documentation/networking/ip-sysctl.rst) and is added.

    :param rows: collector of the tuning rows of the node
    :param proc: reader of the procfs of the node
    :param netdev: name of the interface
    :param hca: name of the HCA of the interface, with which the values are stored
    """
    for row in _ARP:
        before = len(proc.errors)
        values = [proc.value(f"sys/net/ipv4/conf/{name}/{row}", parse_number) for name in ("all", netdev)]
        if len(proc.errors) > before:
            rows.unread(proc.errors[-1], row)
        elif all(value is not None for value in values):
            rows.add(row, max(value for value in values if value is not None), hca)


def _read_port_settings(rows: Rows, sysfs: SysfsReader, netdev: str, hca: str) -> None:
    """Add the tuning rows of an Ethernet port to ``rows``: MTU, trust mode, PFC, DSCP and ECN.

    :param rows: collector of the tuning rows of the node
    :param sysfs: reader of the sysfs that has the interface
    :param netdev: name of the interface
    :param hca: name of the HCA of the interface, with which the values are stored
    """
    rows.file("mtu", sysfs, f"class/net/{netdev}/mtu", parse.at_least_zero, hca)
    _read_roce_settings(rows, sysfs, netdev, hca)


def _read_roce_settings(rows: Rows, sysfs: SysfsReader, netdev: str, hca: str) -> None:
    """Add the tuning rows with trust mode, PFC and ECN of an interface to ``rows``. PFC comes from the program ``dcb``,
    which works with any driver. ECN comes from sysfs files that exist only with the driver packages of NVIDIA, and so
    does the trust mode if its file exists; otherwise ``dcb`` provides it.

    :param rows: collector of the tuning rows of the node
    :param sysfs: reader of the sysfs that has the interface
    :param netdev: name of the interface
    :param hca: name of the HCA of the interface, with which the values are stored
    """
    by_file = os.path.exists(os.path.join(sysfs.folder, f"class/net/{netdev}/qos/trust"))
    if by_file:
        rows.file("roce_trust", sysfs, f"class/net/{netdev}/qos/trust", parse.parse_word, hca)
    _read_dcb_settings(rows, netdev, hca, by_file)
    before, states = len(sysfs.errors), []
    for priority in _PRIORITIES:
        both = [
            sysfs.value(f"class/net/{netdev}/ecn/{side}/enable/{priority}", parse.on_off)
            for side in ("roce_np", "roce_rp")
        ]
        states.append(None if None in both else both == ["on", "on"])
    if len(sysfs.errors) > before:
        rows.unread(sysfs.errors[-1], "roce_ecn")
    elif None in states:
        rows.unread(f"{netdev}: only the driver packages of NVIDIA provide it (class/net/{netdev}/ecn)", "roce_ecn")
    else:
        rows.add("roce_ecn", format_ranges(priority for priority in _PRIORITIES if states[priority]) or "none", hca)


def _read_dcb_settings(rows: Rows, netdev: str, hca: str, trust_known: bool) -> None:
    of_tool = ("roce_pfc", "roce_dscp", *(() if trust_known else ("roce_trust",)))
    try:
        tool = command.require_tool("dcb", "iproute2 (Debian) or iproute (RHEL), 5.11 or newer")
    except RdmaError as error:
        rows.unread(str(error), *of_tool)
        return
    pfc, applications = (
        command.run([tool, "-j", what, "show", "dev", require_operand(netdev, "the interface")], _LIMIT_SECONDS)
        for what in ("pfc", "app")
    )
    if pfc.failure:
        rows.unread(pfc.failure, "roce_pfc")
    else:
        rows.parsed("roce_pfc", dcb.parse_lossless_priorities, pfc.stdout, hca)
    if applications.failure:
        rows.unread(applications.failure, *of_tool[1:])
        return
    try:
        by_dscp = dcb.parse_priorities(applications.stdout)
    except RdmaError as error:
        rows.unread(str(error), *of_tool[1:])
        return
    if not trust_known:
        rows.add("roce_trust", "dscp" if by_dscp else "pcp", hca)
    rows.add("roce_dscp", " ".join(f"{dscp}:{priority}" for dscp, priority in sorted(by_dscp.items())) or "none", hca)


def _read_traffic_classes(
    rows: Rows, sysfs: SysfsReader, configfs: SysfsReader, device: str, port: int, hca: str
) -> None:
    """Add two tuning rows to ``rows``: the traffic class and the type of service that the driver sets on RoCE packets
    of a program that chooses neither value itself. A value whose file is absent is left out.

    :param rows: collector of the tuning rows of the node
    :param sysfs: reader of the sysfs that has the device
    :param configfs: reader of /sys/kernel/config of the node
    :param device: name of the RDMA device
    :param port: number of the port on the device
    :param hca: name of the HCA, with which the values are stored
    """
    rows.file(
        "roce_traffic_class", sysfs, f"class/infiniband/{device}/tc/{port}/traffic_class", parse.traffic_class, hca
    )
    # the folder is there only where somebody has made it; to make one would change the node
    rows.file("roce_tos", configfs, f"rdma_cm/{device}/ports/{port}/default_roce_tos", parse.at_least_zero, hca)
