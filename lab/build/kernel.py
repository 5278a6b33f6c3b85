# SPDX-License-Identifier: GPL-3.0-or-later

"""The guests' kernel: an uncompressed vmlinux (boots 2 s faster by PVH), the modules that the lab needs, siw, and an initrd."""

from __future__ import annotations

import lzma
import pathlib
import shutil
import struct

from ..cache import cached
from ..run import run
from . import debian

HERE = pathlib.Path(__file__)
INIT = HERE.parent.parent / "guest/init"
#: folders and files of the module tree that guests need; the rest is 300 MB of other hardware
KEEP = (
    "arch crypto lib net/802 net/8021q net/9p net/bridge net/core net/ipv4 net/ipv6 net/llc net/netfilter net/sched net/tls net/xfrm net/packet "
    "fs/9p fs/configfs fs/ext4 fs/fscache fs/fuse fs/jbd2 fs/mbcache.ko fs/netfs fs/overlayfs "
    "drivers/block/virtio_blk.ko drivers/block/loop.ko drivers/char/hw_random drivers/char/virtio_console.ko drivers/dca drivers/i2c/algos "
    "drivers/infiniband/core drivers/infiniband/sw drivers/infiniband/ulp/ipoib drivers/iommu drivers/net/dummy.ko drivers/net/ethernet/intel/igb "
    "drivers/net/ethernet/intel/igbvf drivers/net/ipvlan drivers/net/macvlan.ko drivers/net/tun.ko drivers/net/veth.ko drivers/net/virtio_net.ko "
    "drivers/net/net_failover.ko drivers/net/vxlan drivers/pps "
    "drivers/ptp drivers/vfio drivers/virtio drivers/vhost virt net/core/failover.ko"
).split()
#: loaded by the initrd before the root file system is there; crc32c is ext4's, by alias and not by dependency
BOOT_MODULES = ("virtio_pci", "virtio_blk", "crc32c_generic", "ext4", "virtio_net", "virtio_rng", "9pnet_virtio", "9p")


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
        _initrd(target, release)

    return cached("kernel", [packages.name, HERE, INIT], build)


def uncompressed(image: bytes) -> bytes:
    """The ELF kernel inside a bzImage (Linux Documentation/arch/x86/boot.rst: setup_sects, payload_offset, payload_length)."""
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
    """siw (software iWARP): Debian does not ship it, so it is compiled from Debian's own kernel source for Debian's own kernel."""
    version = release.replace("-amd64", "")
    work = target / "siw"
    work.mkdir()
    name = "linux-source-6.1/drivers/infiniband/sw/siw"
    run(["tar", "-C", work, "--strip-components=5", "-xf", packages / "usr/src/linux-source-6.1.tar.xz", name])
    # the headers package points to /usr/src and /usr/lib by absolute paths: mount them there, in a mount namespace that ends with the build
    script = (
        'set -eu; mount --make-rprivate /; mount --bind "$1/usr/src" /usr/src; mount -t tmpfs tmpfs /usr/lib/modules 2>/dev/null || true; '
        'mkdir -p /usr/lib/linux-kbuild-6.1; mount --bind "$1/usr/lib/linux-kbuild-6.1" /usr/lib/linux-kbuild-6.1; '
        'make -s -j2 -C "/usr/src/linux-headers-$2-amd64" M="$3" CONFIG_RDMA_SIW=m CONFIG_DEBUG_INFO_BTF_MODULES= modules'
    )
    kbuild = pathlib.Path("/usr/lib/linux-kbuild-6.1")
    existed = kbuild.exists()
    run(["unshare", "-m", "bash", "-c", script, "siw", packages, version, work])
    if not existed and kbuild.exists():
        kbuild.rmdir()
    goal = target / f"lib/modules/{release}/kernel/drivers/infiniband/sw/siw"
    goal.mkdir(parents=True, exist_ok=True)
    run(["strip", "-g", work / "siw.ko", "-o", goal / "siw.ko"])
    shutil.rmtree(work)


def _initrd(target: pathlib.Path, release: str) -> None:
    root = target / "initrd.root"
    for name in ("bin", "modules", "proc", "sys", "dev", "root"):
        (root / name).mkdir(parents=True)
    shutil.copy2("/bin/busybox", root / "bin/busybox")
    (root / "bin/sh").symlink_to("busybox")
    order = []
    for module in BOOT_MODULES:
        for line in run(["modprobe", "-d", target, "-S", release, "-D", module]).splitlines():
            words = line.split()
            path = pathlib.Path(words[1]) if words[0] == "insmod" else None
            if path and path.name not in order:
                shutil.copy2(path, root / "modules")
                order.append(path.name)
    (root / "modules/order").write_text("".join(f"{name}\n" for name in order))
    shutil.copy2(INIT, root / "init")
    (root / "init").chmod(0o755)
    names = "\n".join(str(path.relative_to(root)) for path in sorted(root.rglob("*"))) + "\n"
    script = 'cd "$1" && cpio -o -H newc --quiet > "$2"'
    run(["sh", "-c", script, "initrd", root, target / "initrd"], stdin=names)
    shutil.rmtree(root)
