# SPDX-License-Identifier: GPL-3.0-or-later

"""A sysfs tree in a folder, in the kernel's own form, for tests that read one.

Links are relative, as the kernel makes them; files end with a line feed. Forms: Linux 6.12
drivers/infiniband/core/sysfs.c, drivers/pci/pci-sysfs.c, drivers/pci/iov.c, and a capture of an igb with VFs.
"""

from __future__ import annotations

import os
import pathlib
import struct
import typing

#: row S1.6: RDMA device, netdev, PCI address, fabric
SIX_HCAS = (
    ("mlx5_0", "ibp60s0", "0000:3c:00.0", 1),
    ("mlx5_1", "ibp77s0", "0000:4d:00.0", 1),
    ("mlx5_2", "ibp94s0", "0000:5e:00.0", 2),
    ("mlx5_3", "ibp156s0", "0000:9c:00.0", 2),
    ("mlx5_4", "ibp188s0", "0000:bc:00.0", 1),
    ("mlx5_5", "ibp222s0", "0000:dc:00.0", 1),
)


class Tree:
    """A tree that grows function by function."""

    def __init__(self, root: pathlib.Path) -> None:
        self.root = root
        for name in (
            "class/infiniband",
            "class/net",
            "bus/pci/devices",
            "bus/pci/drivers",
            "class/iommu",
            "kernel/iommu_groups",
        ):
            (root / name).mkdir(parents=True, exist_ok=True)

    def write(self, path: str, value: typing.Union[str, bytes]) -> pathlib.Path:
        """A file of one line."""
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(value if isinstance(value, bytes) else f"{value}\n".encode())
        return target

    def link(self, path: str, to: str) -> None:
        """A relative link; both ends are named from the root of the tree."""
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        # the kernel's links always end in the name of what they lead to: up to its parent, then down
        target.symlink_to(
            os.path.join(os.path.relpath((self.root / to).parent, target.parent), pathlib.PurePath(to).name)
        )

    def function(
        self,
        address: str,
        vendor: str,
        device: str,
        pci_class: str = "0x020700",
        driver: typing.Optional[str] = "mlx5_core",
        **files: str,
    ) -> str:
        """A PCI function below its root port. Returns its folder, from the root of the tree."""
        folder = f"devices/pci{address[:7]}/{address}"
        values = {
            "vendor": vendor,
            "device": device,
            "class": pci_class,
            "numa_node": "0",
            "current_link_speed": "32.0 GT/s PCIe",
            "current_link_width": "16",
            "max_link_speed": "32.0 GT/s PCIe",
            "max_link_width": "16",
            **files,
        }
        for name, value in values.items():
            self.write(f"{folder}/{name}", value)
        self.link(f"bus/pci/devices/{address}", folder)
        if driver:
            (self.root / f"bus/pci/drivers/{driver}").mkdir(parents=True, exist_ok=True)
            self.link(f"{folder}/driver", f"bus/pci/drivers/{driver}")
        return folder

    def virtual(self, physical: str, index: int, address: str, **more: typing.Any) -> str:
        """A VF of a function, with its links in both directions."""
        folder = self.function(address, **more)
        self.link(f"{folder}/physfn", f"devices/pci{physical[:7]}/{physical}")
        self.link(f"devices/pci{physical[:7]}/{physical}/virtfn{index}", folder)
        return folder

    def netdev(
        self,
        folder: typing.Optional[str],
        name: str,
        address: str,
        kind: int = 1,
        mtu: int = 1500,
        state: str = "up",
        dev_port: int = 0,
        master: str = "",
        phys_port_name: str = "",
    ) -> None:
        """A network interface; without a folder one that belongs to no device, such as a bond.

        :param phys_port_name: of a port of a switch, as a representor is one
        :param master: the bond or bridge that it is a part of
        """
        home = f"{folder}/net/{name}" if folder else f"devices/virtual/net/{name}"
        for file, value in (
            ("address", address),
            ("type", str(kind)),
            ("mtu", str(mtu)),
            ("operstate", state),
            ("dev_port", str(dev_port)),
        ):
            self.write(f"{home}/{file}", value)
        if phys_port_name:
            self.write(f"{home}/phys_port_name", phys_port_name)
        if master:
            self.link(f"{home}/master", f"devices/virtual/net/{master}")
        if folder:
            self.link(f"{home}/device", folder)
        self.link(f"class/net/{name}", home)

    def rdma(self, folder: typing.Optional[str], name: str, guid: str, **files: typing.Union[str, bytes]) -> str:
        """An RDMA device; without a folder one of software, which has no ``device`` link."""
        home = f"{folder}/infiniband/{name}" if folder else f"devices/virtual/infiniband/{name}"
        values: dict[str, typing.Union[str, bytes]] = {
            "node_type": "1: CA",
            "node_guid": guid,
            "sys_image_guid": guid,
            "node_desc": f"node {name}",
            "fw_ver": "28.41.1000",
            "hca_type": "MT4129",
            "board_id": "MT_0000000838",
            **files,
        }
        for file, value in values.items():
            self.write(f"{home}/{file}", value)
        if folder:
            self.link(f"{home}/device", folder)
        self.link(f"class/infiniband/{name}", home)
        return home

    def verbs(self, folder: str, number: int, device: str) -> None:
        """The device node for verbs of an RDMA device, which a device for management alone does not have."""
        home = f"{folder}/infiniband_verbs/uverbs{number}"
        self.write(f"{home}/ibdev", device)
        self.link(f"class/infiniband_verbs/uverbs{number}", home)

    def port(
        self, device: str, number: int = 1, gid: str = "fe80:0000:0000:0000:0000:0000:0000:0000", **files: str
    ) -> None:
        """A port of an RDMA device, active on InfiniBand at NDR unless told otherwise."""
        values = {
            "state": "4: ACTIVE",
            "phys_state": "5: LinkUp",
            "rate": "400 Gb/sec (4X NDR)",
            "lid": "0x4",
            "sm_lid": "0x1",
            "link_layer": "InfiniBand",
            "gids/0": gid,
            "pkeys/0": "0xffff",
            "pkeys/1": "0x0000",
            **files,
        }
        for file, value in values.items():
            self.write(f"class/infiniband/{device}/ports/{number}/{file}", value)


def space(capabilities: typing.Sequence[tuple[int, bytes]]) -> bytes:
    """A configuration space of 4096 bytes with these extended capabilities: id and body."""
    place, raw = 0x100, bytearray(4096)
    for number, (capability, body) in enumerate(capabilities):
        following = place + 0x40 if number + 1 < len(capabilities) else 0
        raw[place : place + 4 + len(body)] = struct.pack("<I", capability | 1 << 16 | following << 20) + body
        place = following
    return bytes(raw)


def sriov_body(
    total: int,
    current: int = 0,
    offset: int = 1,
    stride: int = 1,
    ari: bool = True,
    bars: typing.Sequence[int] = (0x0C,),
) -> bytes:
    """SR-IOV capability behind its header, as ``lspci -vvv`` shows it of a PF: InitialVFs is TotalVFs, bars are the
    registers from VF BAR 0 on."""
    registers = [*bars, 0, 0, 0, 0, 0, 0][:6]
    return struct.pack(
        "<IHHHHHHHHHHII6I",
        2,
        0x10 if ari else 0,
        0,
        total,
        total,
        current,
        0,
        offset,
        stride,
        0,
        0x101E,
        0x553,
        1,
        *registers,
    )


def bridge(first: int, last: int, capabilities: typing.Sequence[tuple[int, bytes]] = ()) -> bytes:
    """Configuration space of a port that leads to these buses."""
    raw = bytearray(space(capabilities))
    raw[0x0E], raw[0x19], raw[0x1A] = 1, first, last
    return bytes(raw)


def resource(*of_vfs: tuple[int, int, int]) -> str:
    """``resource`` of a physical function, without its last line feed: start, end and flags of the BARs of its VFs."""
    own = ((0xE000000000, 0xE001FFFFFF, 0x14220C), *[(0, 0, 0)] * 6)
    lines = (*own, *of_vfs, *[(0, 0, 0)] * 6)[:13]
    return "\n".join(f"0x{start:016x} 0x{end:016x} 0x{flags:016x}" for start, end, flags in lines)


#: of VF BAR 0 of a ConnectX-7 with 16 VFs: IORESOURCE_MEM, 64 bits, prefetchable
PLACED = (0xE002000000, 0xE003FFFFFF, 0x14220C)


def guid(node: int, hca: int, port: int = 0) -> str:
    """GUID as sysfs writes it."""
    return f"b83f:d203:{0xE0 + node:04x}:00{hca}{port}"


def plain_guid(node: int, hca: int, port: int = 0) -> str:
    """The same GUID as facts write it."""
    return "0x" + guid(node, hca, port).replace(":", "")


def add_six_hcas(tree: Tree, node: int = 1, **port_files: str) -> None:
    """The node of row S1.6."""
    for index, (device, netdev, address, _fabric) in enumerate(SIX_HCAS):
        folder = tree.function(address, vendor="0x15b3", device="0x1021", sriov_totalvfs="16", sriov_numvfs="0")
        tree.rdma(folder, device, guid(node, index), node_desc=f"worker-{node} {device}")
        tree.port(device, 1, "fe80:0000:0000:0000:" + guid(node, index, 1), lid=hex(0x10 * node + index), **port_files)
        raw = guid(node, index, 1).replace(":", "")
        octets = ":".join(raw[place : place + 2] for place in range(0, 16, 2))
        tree.netdev(folder, netdev, f"00:00:10:49:fe:80:00:00:00:00:00:00:{octets}", kind=32, mtu=4092)


def add_planes(tree: Tree, number: int, address: str, verbs: bool = True) -> None:
    """A ConnectX-8 with four planes on XDR: mlx5_N, and smiN+1 for management with a port for each plane. Form:
    Mellanox/rdmamap pull request 17, a capture of such a node."""
    folder = tree.function(address, vendor="0x15b3", device="0x1023", current_link_speed="64.0 GT/s PCIe")
    tree.rdma(folder, f"mlx5_{number}", guid(1, number), hca_type="MT4131")
    gid = "fe80:0000:0000:0000:" + guid(1, number, 1)
    tree.port(f"mlx5_{number}", gid=gid, rate="800 Gb/sec (4X XDR)")
    tree.rdma(folder, f"smi{number + 1}", guid(1, number), hca_type="MT4131")
    for plane in range(1, 5):
        tree.port(f"smi{number + 1}", plane, gid, rate="200 Gb/sec (1X XDR)")
    if verbs:
        tree.verbs(folder, number, f"mlx5_{number}")


def add_infiniband_vfs(tree: Tree, count: int = 2, administered: bool = True) -> None:
    """A ConnectX-7 with VFs, as NVIDIA's driver package shows them; without ``administered`` as the kernel's own driver
    does."""
    physical = tree.function(
        "0000:3c:00.0", vendor="0x15b3", device="0x1021", sriov_totalvfs="16", sriov_numvfs=str(count)
    )
    tree.rdma(physical, "mlx5_0", guid(1, 0))
    tree.port("mlx5_0", gid="fe80:0000:0000:0000:" + guid(1, 0, 1))
    for index in range(count):
        folder = tree.virtual(
            "0000:3c:00.0",
            index,
            f"0000:3c:00.{index + 1}",
            vendor="0x15b3",
            device="0x101e",
            current_link_speed="Unknown",
        )
        own = f"0200:0000:0000:00{index:02x}"
        tree.rdma(folder, f"mlx5_{index + 1}", own)
        tree.port(f"mlx5_{index + 1}", gid=f"fe80:0000:0000:0000:{own}", state="1: DOWN", lid="0x0", sm_lid="0x0")
        if administered:
            for file, value in (
                ("node", f"02:00:00:00:00:00:00:{index:02x}"),
                ("port", f"02:00:00:00:00:00:00:{index:02x}"),
                ("policy", "Down"),
            ):
                tree.write(f"{physical}/sriov/{index}/{file}", value)


def add_igb(tree: Tree, virtual_functions: int = 3) -> None:
    """An igb with VFs as the capture shows it, and a plain network card beside it."""
    tree.function("0000:00:01.0", vendor="0x1af4", device="0x1000", pci_class="0x020000", driver="virtio-pci")
    slow = {
        "numa_node": "-1",
        "current_link_speed": "2.5 GT/s PCIe",
        "max_link_speed": "2.5 GT/s PCIe",
        "current_link_width": "1",
        "max_link_width": "1",
    }
    physical = tree.function(
        "0000:01:00.0",
        vendor="0x8086",
        device="0x10c9",
        pci_class="0x020000",
        driver="igb",
        sriov_totalvfs="7",
        sriov_numvfs=str(virtual_functions),
        **slow,
    )
    tree.netdev(physical, "eth1", "52:54:00:88:00:01")
    for index in range(virtual_functions):
        folder = tree.virtual(
            "0000:01:00.0",
            index,
            f"0000:01:10.{2 * index}",
            vendor="0x8086",
            device="0x10ca",
            pci_class="0x020000",
            driver="igbvf",
            numa_node="-1",
            current_link_speed="Unknown",
            max_link_speed="Unknown",
            current_link_width="0",
            max_link_width="0",
        )
        tree.netdev(folder, f"eth{3 + index}", f"2e:4a:de:30:21:6{index}", state="down")


def add_virtio(tree: Tree, address: str = "0000:00:02.0", number: int = 1, name: str = "eth2") -> None:
    """A virtio NIC: its interface belongs to a device on a bus of its own, below the PCI function."""
    function = tree.function(
        address, vendor="0x1af4", device="0x1000", pci_class="0x020000", driver="virtio-pci", numa_node="-1"
    )
    tree.write(f"{function}/virtio{number}/device", "0x0001")
    tree.netdev(f"{function}/virtio{number}", name, "52:54:00:98:00:01")
