# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the network functions of a node from sysfs in one pass, without tools or root.

sysfs changes while it is read: functions appear and disappear, and files return EINVAL. A function that disappeared is
left out and reported as an error. A value that could not be read is None and listed in ``unread``. An unreadable file
never counts as absent: only the error "no such file" means absent.
"""

from __future__ import annotations

import os
import re
import typing

from ..._model.boundary.devices import HARDWARE_ADDRESS, INTERFACE
from ..._model.boundary.fabric import LINK_GBPS
from ..._model.boundary.words import VERSION, WORD
from ..._model.node.hca import UPPERS, Hca, HeldParts, Netdev, NodeHcas, PciFunction, Port, Sriov
from ..._parse.node import sysfs as parse
from ..._parse.node.ethtool import LinkModes
from .ethtool import link_modes
from .sysfs_pci import read_administration, read_pci, read_sriov, read_sriov_absence, read_vf_index
from .sysfs_reader import SysfsReader, make_natural_sort_key

_NETWORK_CLASS = "02"
#: begin of the links to the interfaces above a network interface [Linux net/core/dev.c netdev_adjacent_sysfs_add]
_UPPER = "upper_"
#: levels of interfaces above one another, which the kernel limits [Linux include/linux/netdevice.h MAX_NEST_DEV]
_MOST_LEVELS = 8
_INFINIBAND_CLASS = "0207"
#: NVIDIA/Mellanox: an HCA without driver and without SR-IOV shows nothing but this
_HCA_VENDORS = ("15b3",)


def read_node(
    roots: typing.Sequence[str],
    netdevs: typing.Container[str] = (),
    held: typing.Optional[typing.Mapping[str, HeldParts]] = None,
) -> NodeHcas:
    """Return all relevant network functions below the given sysfs roots in one list: first the RDMA devices in the
    natural order of their names, then the other functions by PCI address.

    Relevant functions are: each RDMA device, and each PCI network function that supports SR-IOV, is a VF, has the class
    InfiniBand, has the vendor id of an HCA vendor, or has an interface in ``netdevs``. Errors are stored in ``errors``
    of the result.

    :param roots: sysfs roots, usually only /sys. A function that an earlier root has already is left out and reported
        as an error
    :param netdevs: names of interfaces whose functions are always relevant
    :param held: interfaces and RDMA devices in the network namespaces of pods, by PCI address; None if they were not
        read
    """
    found: dict[str, Hca] = {}
    errors: list[str] = []
    for root in roots:
        top = SysfsReader(root)
        if not top.names("class") and not top.names("bus"):
            errors.append(f"{root}: not a sysfs: both {root}/class and {root}/bus are empty or do not exist")
        for hca in _read_root(root, netdevs, held or {}, errors):
            if hca.name in found:
                errors.append(f"{root}: {hca.name} occurs twice: the second one was skipped")
            else:
                found[hca.name] = hca
    hcas = sorted(
        found.values(),
        key=lambda hca: (
            hca.rdma_device is None,
            make_natural_sort_key(hca.rdma_device or ""),
            hca.pci.address if hca.pci else hca.name,
        ),
    )
    return NodeHcas(tuple(hcas), tuple(errors))


def _read_root(
    root: str, netdevs: typing.Container[str], held: typing.Mapping[str, HeldParts], errors: list[str]
) -> typing.Iterator[Hca]:
    top = SysfsReader(root)
    rdma = _leave_out_management(top, _map_by_pci_address(top, "class/infiniband"))
    nets = _map_by_pci_address(top, "class/net")
    functions = [name for name in top.names("bus/pci/devices") if parse.is_pci_address(name)]
    errors.extend(top.errors)
    jobs: list[tuple[typing.Optional[str], typing.Optional[str], str]] = []
    for address in functions:
        folder = f"bus/pci/devices/{address}"
        jobs.extend([(address, device, folder) for device in rdma.get(address, ())] or [(address, None, folder)])
    # a device whose function is not under bus/pci is still a device: one without "device" link (rxe, siw), or on
    # another bus
    for device_address, devices in rdma.items():
        if device_address not in functions:
            jobs.extend(
                (device_address, device, f"class/infiniband/{device}{'/device' if device_address else ''}")
                for device in devices
            )
    for job_address, job_device, job_folder in jobs:
        reader = SysfsReader(os.path.join(root, job_folder))
        names = nets.get(job_address, ()) if job_address else ()
        parts = held.get(job_address or "")
        # an interface in a pod whose name on the node nobody kept may be the one
        named = any(name in netdevs for name in (*names, *(parts.names if parts else ()))) or bool(
            parts and parts.netdevs and not parts.names
        )
        hca = _read_hca(root, reader, job_address, job_device, names, named, parts)
        errors.extend(reader.errors)
        folders = (
            (reader.folder, os.path.join(root, f"class/infiniband/{job_device}")) if job_device else (reader.folder,)
        )
        gone = [path for path in folders if not os.path.exists(path)]
        if gone:
            errors.append(
                f"{gone[0]}: it disappeared while it was read and was skipped. Functions appear and disappear while"
                " VFs are created: rerun"
            )
        elif hca is not None:
            yield hca


def _map_by_pci_address(top: SysfsReader, folder: str) -> dict[typing.Optional[str], list[str]]:
    """Return the names of the entries of a class folder, by the PCI address of their function. The key is None for
    entries without a PCI function.

    :param top: reader of a sysfs root
    :param folder: class folder, such as ``class/net``
    """
    result: dict[typing.Optional[str], list[str]] = {}
    for name in top.names(folder):
        target = top.link(f"{folder}/{name}/device")
        # between a virtio NIC and its PCI function is a bus of its own
        if target and re.match(r"virtio[0-9]+\Z", target):
            target = top.above(f"{folder}/{name}/device")
        result.setdefault(target if target and parse.is_pci_address(target) else None, []).append(name)
    return result


def _leave_out_management(
    top: SysfsReader, devices: dict[typing.Optional[str], list[str]]
) -> dict[typing.Optional[str], list[str]]:
    """Return the RDMA devices without those for management only, by the PCI address of their function.

    The driver of an HCA with several planes (ConnectX-8 on XDR) adds a device for management, for example ``smi1``. It
    has a port for each plane, sends only management datagrams, and has no device node for verbs. A device without such
    a node is left out if another device of its function has a node. [src Linux 6.11
    drivers/infiniband/core/uverbs_main.c ib_uverbs_add_one, RDMA_DEVICE_TYPE_SMI]

    :param top: reader of a sysfs root
    :param devices: names of the RDMA devices, by the PCI address of their function; the key is None for devices without
        one
    """
    if all(len(names) < 2 for address, names in devices.items() if address):
        return devices
    verbs = {top.text(f"class/infiniband_verbs/{name}/ibdev") for name in top.names("class/infiniband_verbs")}
    return {
        address: [name for name in names if name in verbs] if address and verbs & set(names) else names
        for address, names in devices.items()
    }


def _read_hca(
    root: str,
    reader: SysfsReader,
    address: typing.Optional[str],
    device: typing.Optional[str],
    netdev_names: typing.Sequence[str],
    named: bool,
    held: typing.Optional[HeldParts],
) -> typing.Optional[Hca]:
    """Return one network function as read from sysfs. Return None if it is not a network function, or is not relevant:
    it has no RDMA device and no SR-IOV, is no VF, does not have the class InfiniBand or an HCA vendor, and is not named
    by the user.

    :param root: folder in which this sysfs is mounted
    :param reader: reader of the folder of the function
    :param address: PCI address of the function; None for an RDMA device without a PCI function
    :param device: name of the RDMA device of the function; None without an RDMA device
    :param netdev_names: names of the network interfaces of the function
    :param named: whether the function is relevant because the user named one of its interfaces
    :param held: interfaces and RDMA devices of the function in the network namespaces of pods; None if pods have none
        of them
    """
    if device is None and not _is_network(reader):
        return None
    physical_function = reader.link("physfn") if address else None
    pci = read_pci(reader, address, physical_function is None) if address else None
    sriov = read_sriov(reader) if address else None
    if device is None and pci is not None and not named and not _of_interest(pci, sriov, physical_function):
        return None
    rdma = SysfsReader(os.path.join(root, f"class/infiniband/{device}")) if device else None
    if rdma is not None and address is None:
        parent = rdma.formed("parent", INTERFACE)
        netdev_names = (parent,) if parent else ()
    # the kernel knows the interfaces of its own sysfs only
    real = os.path.realpath(root) == "/sys"
    found = (
        read_netdev(SysfsReader(os.path.join(root, f"class/net/{name}")), name, reader, real) for name in netdev_names
    )
    netdevs = tuple(netdev for netdev in found if netdev is not None)
    index = read_vf_index(reader, address, physical_function) if physical_function else None
    # one function may carry several devices: the name of the RDMA device comes first
    name = next(
        filter(None, (device, *(netdev.name for netdev in netdevs), *(held.names if held else ()), address)), ""
    )
    hca = Hca(
        name=name,
        rdma_device=device,
        netdevs=netdevs,
        pci=pci,
        node_guid=rdma.value("node_guid", parse.parse_guid) if rdma else None,
        node_description=rdma.text("node_desc") if rdma else None,
        firmware=rdma.formed("fw_ver", VERSION) if rdma else None,
        board=rdma.formed("board_id", WORD) if rdma else None,
        hca_type=rdma.formed("hca_type", WORD) if rdma else None,
        ports=read_ports(rdma, netdevs) if rdma else (),
        sriov=sriov,
        physical_function=physical_function,
        vf_index=index,
        administration=(
            read_administration(reader, physical_function, index) if physical_function and index is not None else None
        ),
        sriov_absence=read_sriov_absence(reader) if pci and sriov is None and physical_function is None else None,
        held=held,
        unread=tuple(reader.unread + (rdma.unread if rdma else [])),
    )
    if rdma is not None:
        reader.errors.extend(rdma.errors)
    return hca


def _of_interest(pci: PciFunction, sriov: typing.Optional[Sriov], physical_function: typing.Optional[str]) -> bool:
    return (
        sriov is not None
        or physical_function is not None
        or pci.device_class == _INFINIBAND_CLASS
        or pci.vendor in _HCA_VENDORS
    )


def _is_network(reader: SysfsReader) -> bool:
    """Return whether the class of a PCI function is that of a network function. This is checked before anything else is
    read, because a server has hundreds of other PCI functions.

    :param reader: reader of the folder of the function
    """
    device_class = reader.value("class", parse.parse_hexadecimal)
    return device_class is not None and f"{device_class:06x}".startswith(_NETWORK_CLASS)


def read_netdev(reader: SysfsReader, name: str, owner: SysfsReader, real: bool = False) -> typing.Optional[Netdev]:
    """Return a network interface as read from sysfs. Return None if it is a representor, or if it has disappeared
    because it was renamed or moved into the network namespace of a pod.

    In switchdev mode, sysfs lists the representors of the VFs below the physical function. They are ports of the
    embedded switch, not of the physical function.

    :param reader: reader of the folder of the interface
    :param owner: reader to which unread files and errors are added, usually that of the function
    :param real: whether the interface belongs to the running kernel, so that the kernel can be asked for its link modes
    """
    if parse.is_representor(reader.text("phys_port_name") or ""):
        return None
    infiniband = reader.value("type", parse.parse_number) == parse.IPOIB_TYPE
    address = reader.value("address", parse.parse_ipoib_address) if infiniband else None
    place = reader.value("dev_port", parse.parse_number)
    bond, bridge = _read_masters(reader)
    modes = link_modes(name) if real and not infiniband else LinkModes(None, None)
    # in Mb/s; -1 is unknown
    speed = None if infiniband else reader.number_if_any("speed")
    netdev = Netdev(
        name=name,
        hardware_address=reader.formed("address", HARDWARE_ADDRESS) or "",
        mtu=reader.value("mtu", parse.parse_number),
        state=reader.formed("operstate", WORD),
        port_guid=address.port_guid if address else None,
        subnet_prefix=address.subnet_prefix if address else None,
        queue_pair=address.queue_pair if address else None,
        port=None if place is None else place + 1,
        bond=bond,
        speed_gbps=speed / 1000 if speed and LINK_GBPS.fits(speed / 1000) else None,
        supported_gbps=modes.supported,
        partner_gbps=modes.partner,
        bridge=bridge,
        uppers=_read_uppers(reader),
    )
    if not os.path.exists(reader.folder):
        owner.errors.append(
            f"{reader.folder}: it disappeared while it was read and was skipped: it was renamed or moved into a pod"
        )
        return None
    owner.unread.extend(f"net/{name}/{item}" for item in reader.unread)
    owner.errors.extend(reader.errors)
    return netdev


def _read_masters(reader: SysfsReader) -> tuple[typing.Optional[str], typing.Optional[str]]:
    """Return two names: the bond of which a network interface is a part, and the bridge, or another device that
    forwards its packets, of which the interface or a VLAN on it is a port. None for none.

    :param reader: reader of the folder of the interface
    """
    master = reader.link("master")
    if master:
        return (master, None) if reader.names("master/bonding") else (None, master)
    uppers = (name for name in reader.names("") if name.startswith(_UPPER))
    ports = (reader.link(f"{name}/master") for name in uppers if not reader.names(f"{name}/master/bonding"))
    return None, next(filter(None, ports), None)


def _read_uppers(reader: SysfsReader) -> tuple[str, ...]:
    """Return the names of the interfaces above a network interface at any distance, such as its VLANs, its bond, and
    the VLANs of this bond. The name of a VLAN does not tell the interface on which it is.

    More interfaces than a fact has room for are an error of the reader, since any of them may be in use.

    :param reader: reader of the folder of the interface
    """
    found: dict[str, None] = {}
    paths = [""]
    for _level in range(_MOST_LEVELS):
        paths = [
            f"{path}{name}/"
            for path in paths
            for name in reader.names(path)
            if name.startswith(_UPPER) and name[len(_UPPER) :] not in found and INTERFACE.parse(name[len(_UPPER) :])
        ]
        found.update(dict.fromkeys(path.rstrip("/").rpartition("/")[2][len(_UPPER) :] for path in paths))
        if len(found) > UPPERS.most:
            reader.errors.append(
                f"{reader.folder}: it has more than {UPPERS.most} interfaces above it: only {UPPERS.most} were read"
            )
            return tuple(sorted(found)[: UPPERS.most])
    return tuple(sorted(found))


def read_ports(reader: SysfsReader, netdevs: typing.Sequence[Netdev]) -> tuple[Port, ...]:
    """Return the ports of an RDMA device in ascending order.

    :param reader: reader of the folder of the device
    :param netdevs: network interfaces of the same function
    """
    names = [name for name in reader.names("ports") if re.match(r"\A[0-9]{1,3}\Z", name)]
    return tuple(
        _read_port(
            reader, int(name), [netdev.mtu for netdev in netdevs if netdev.port == int(name) and netdev.mtu is not None]
        )
        for name in names
    )


def _read_port(reader: SysfsReader, number: int, mtus: typing.Sequence[int]) -> Port:
    folder = f"ports/{number}"
    rate = reader.value(f"{folder}/rate", parse.parse_rate)
    link_layer = reader.formed(f"{folder}/link_layer", WORD)
    pkeys = [
        reader.value(f"{folder}/pkeys/{index}", parse.parse_hexadecimal) for index in reader.names(f"{folder}/pkeys")
    ]
    return Port(
        number=number,
        state=reader.value(f"{folder}/state", parse.parse_enumeration_name),
        physical_state=reader.value(f"{folder}/phys_state", parse.parse_enumeration_name),
        link_layer=link_layer,
        rate_gbps=rate.gbps if rate else None,
        width=rate.width if rate else None,
        speed=rate.speed if rate else None,
        lid=reader.value(f"{folder}/lid", parse.parse_hexadecimal) or None,
        sm_lid=reader.value(f"{folder}/sm_lid", parse.parse_hexadecimal) or None,
        # on Ethernet the lower half of a GID is made from the MAC or is an IP address: no port GUID
        guid=reader.value(f"{folder}/gids/0", parse.port_guid_of_gid) if link_layer == "InfiniBand" else None,
        pkeys=tuple(f"0x{pkey:04x}" for pkey in pkeys if pkey),
        mtu=max(mtus, default=None),
    )
