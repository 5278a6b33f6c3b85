# SPDX-License-Identifier: GPL-3.0-or-later

"""The guests' kernel: an uncompressed vmlinux (boots 2 s faster by PVH), the modules that the lab needs, siw, and an
initrd."""

from __future__ import annotations

import lzma
import pathlib
import shutil
import struct

from ..cache import cached
from ..run import run
from . import debian, kernel_module

HERE = pathlib.Path(__file__)
INIT = HERE.parent.parent / "guest/init"
SIW_PATCH = HERE.parent / "siw.patch"
#: folders and files of the module tree that guests need; the rest is 300 MB of other hardware
KEEP = (
    "arch crypto lib net/802 net/8021q net/9p net/bridge net/core net/ipv4 net/ipv6 net/llc net/netfilter net/sched "
    "net/tls net/xfrm net/packet "
    "fs/9p fs/configfs fs/ext4 fs/fscache fs/fuse fs/jbd2 fs/mbcache.ko fs/netfs fs/overlayfs "
    "drivers/block/virtio_blk.ko drivers/block/loop.ko drivers/char/hw_random drivers/char/virtio_console.ko "
    "drivers/dca drivers/i2c/algos "
    "drivers/infiniband/core drivers/infiniband/sw drivers/infiniband/ulp/ipoib drivers/iommu drivers/misc/pvpanic "
    "drivers/net/dummy.ko "
    "drivers/net/ethernet/intel/igb "
    "drivers/net/ethernet/intel/igbvf drivers/net/ipvlan drivers/net/macvlan.ko drivers/net/tun.ko drivers/net/veth.ko "
    "drivers/net/virtio_net.ko "
    "drivers/net/net_failover.ko drivers/net/vxlan drivers/pps "
    "drivers/ptp drivers/vfio drivers/virtio drivers/vhost virt net/core/failover.ko"
).split()
#: tells QEMU of a panic, and comes first
PANIC_MODULE = "pvpanic-pci"
#: loaded by the initrd before the root file system is there; crc32c is ext4's, by alias and not by dependency
BOOT_MODULES = (
    *(PANIC_MODULE, "virtio_pci", "virtio_blk", "crc32c_generic", "ext4", "virtio_net", "virtio_rng"),
    *("9pnet_virtio", "9p"),
)


def kernel() -> pathlib.Path:
    """Folder with ``vmlinux``, ``initrd``, ``lib/modules/<release>`` and ``release``."""
    packages = debian.kernel_packages()

    def build(target: pathlib.Path) -> None:
        release = (packages / "version").read_text()
        (target / "release").write_text(release)
        (target / "vmlinux").write_bytes(uncompressed((packages / f"boot/vmlinuz-{release}").read_bytes()))
        _modules(packages / f"lib/modules/{release}", target / f"lib/modules/{release}")
        _siw(packages, release, target)
        run(["depmod", "-b", target, release])
        kernel_module.write_initrd(
            target / "initrd", target, release, BOOT_MODULES, INIT, ("proc", "sys", "dev", "root")
        )

    return cached("kernel", [packages.name, HERE, kernel_module.HERE, INIT, SIW_PATCH], build)


def uncompressed(image: bytes) -> bytes:
    """The ELF kernel inside a bzImage (Linux Documentation/arch/x86/boot.rst: setup_sects, payload_offset,
    payload_length)."""
    sectors = image[0x1F1] or 4
    offset, length = struct.unpack_from("<II", image, 0x248)
    start = (sectors + 1) * 512 + offset
    payload = image[start : start + length]
    # the decompressor stops at the end of the stream; the kernel's build appends the size
    elf = lzma.LZMADecompressor().decompress(payload)
    if elf[:4] != b"\x7fELF":
        raise ValueError("the kernel image holds no ELF file")
    return elf


def _modules(source: pathlib.Path, target: pathlib.Path) -> None:
    target.mkdir(parents=True)
    for name in ("modules.builtin", "modules.builtin.modinfo", "modules.order"):
        shutil.copy2(source / name, target)
    for name in KEEP:
        item = source / "kernel" / name
        goal = target / "kernel" / name
        if item.is_dir():
            shutil.copytree(item, goal, dirs_exist_ok=True)
        elif item.is_file():
            goal.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(item, goal)


def _siw(packages: pathlib.Path, release: str, target: pathlib.Path) -> None:
    """siw (software iWARP): Debian does not ship it, so it is compiled from Debian's own kernel source for Debian's own
    kernel.

    User space knows the devices of the emulated HCA for siw's, and so does siw: a patch of one line has it leave their
    netdevs alone.
    """
    work = target / "siw"
    shutil.copytree(kernel_module.siw_source(packages), work)
    run(["patch", "--strip=1", "--batch", "--directory", work, "--input", SIW_PATCH])
    kernel_module.compile_module(packages, work, "CONFIG_RDMA_SIW=m")
    goal = target / f"lib/modules/{release}/kernel/drivers/infiniband/sw/siw"
    goal.mkdir(parents=True, exist_ok=True)
    run(["strip", "-g", work / "siw.ko", "-o", goal / "siw.ko"])
    shutil.rmtree(work)
