# SPDX-License-Identifier: GPL-3.0-or-later

"""The emulated HCA: ``lab/hca`` and the kernel's own siw, patched, as one module for the guests' kernel; a matter of seconds."""

from __future__ import annotations

import pathlib
import shutil

from ..cache import cached
from ..run import run
from . import debian, kernel

HERE = pathlib.Path(__file__)
SOURCE = HERE.parent.parent / "hca"
PATCH = SOURCE / "siw.patch"
INIT = SOURCE / "guest/init"
MODULE = "mlx5_core.ko"
#: loaded by the initrd of the guest that has nothing but HCAs, before its root is there
BOOT_MODULES = ("virtio_pci", "9pnet_virtio", "9p", "overlay", "virtio_rng")


def module() -> pathlib.Path:
    """Path of the module, for the release of ``debian.kernel_packages``."""
    packages = debian.kernel_packages()
    siw = _siw_source(packages)
    sources = sorted(path for path in SOURCE.iterdir() if path.is_file())

    def build(target: pathlib.Path) -> None:
        work = target / "build"
        work.mkdir()
        for path in sources:
            shutil.copy2(path, work)
        shutil.copytree(siw, work / "siw")
        run(["patch", "--strip=1", "--batch", "--directory", work, "--input", PATCH])
        _compile(packages, work)
        run(["strip", "-g", work / MODULE, "-o", target / MODULE])
        shutil.rmtree(work)

    return cached("hca", [packages.name, *sources, HERE], build) / MODULE


def initrd() -> pathlib.Path:
    """Path of the initrd of the guest that has nothing but HCAs."""
    kernel_folder = kernel.kernel()

    def build(target: pathlib.Path) -> None:
        root = target / "root"
        for name in ("bin", "modules", "proc", "dev", "lower", "upper", "root"):
            (root / name).mkdir(parents=True)
        shutil.copy2("/bin/busybox", root / "bin")
        (root / "bin/sh").symlink_to("busybox")
        order = []
        for module_name in BOOT_MODULES:
            for line in run(["modprobe", "-d", kernel_folder, "-S", (kernel_folder / "release").read_text(), "-D", module_name]).splitlines():
                words = line.split()
                path = pathlib.Path(words[1]) if words[0] == "insmod" else None
                if path and path.name not in order:
                    shutil.copy2(path, root / "modules")
                    order.append(path.name)
        (root / "modules/order").write_text("".join(f"{name}\n" for name in order))
        shutil.copy2(INIT, root / "init")
        names = "\n".join(str(path.relative_to(root)) for path in sorted(root.rglob("*"))) + "\n"
        run(["sh", "-c", 'cd "$1" && cpio -o -H newc --quiet > "$2"', "initrd", root, target / "initrd"], stdin=names)
        shutil.rmtree(root)

    return cached("hca-initrd", [kernel_folder.name, INIT, HERE], build) / "initrd"


def _siw_source(packages: pathlib.Path) -> pathlib.Path:
    """Folder with the kernel's own siw: to find it in the sources of all of the kernel takes longer than to compile the module."""
    name = "linux-source-6.1/drivers/infiniband/sw/siw"

    def build(target: pathlib.Path) -> None:
        run(["tar", "-C", target, "--strip-components=5", "-xf", packages / "usr/src/linux-source-6.1.tar.xz", name])

    return cached("hca-siw", [packages.name, name], build)


def _compile(packages: pathlib.Path, work: pathlib.Path) -> None:
    # the headers package points to /usr/src and /usr/lib by absolute paths: mount them there, in a mount namespace that ends with the build
    script = (
        'set -eu; mount --make-rprivate /; mount --bind "$1/usr/src" /usr/src; mount -t tmpfs tmpfs /usr/lib/modules 2>/dev/null || true; '
        'mkdir -p /usr/lib/linux-kbuild-6.1; mount --bind "$1/usr/lib/linux-kbuild-6.1" /usr/lib/linux-kbuild-6.1; '
        'make -s -j2 -C "/usr/src/linux-headers-$2" M="$3" CONFIG_DEBUG_INFO_BTF_MODULES= modules'
    )
    kbuild = pathlib.Path("/usr/lib/linux-kbuild-6.1")
    existed = kbuild.exists()
    try:
        run(["unshare", "-m", "bash", "-c", script, "hca", packages, (packages / "version").read_text(), work])
    finally:
        if not existed and kbuild.exists():
            kbuild.rmdir()
