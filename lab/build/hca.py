# SPDX-License-Identifier: GPL-3.0-or-later

"""The emulated HCA: ``lab/hca`` and the kernel's own siw, patched, as one module for the guests' kernel; a matter of
seconds."""

from __future__ import annotations

import pathlib
import shutil

from ..cache import cached
from ..run import run
from . import debian, kernel, kernel_module

HERE = pathlib.Path(__file__)
SOURCE = HERE.parent.parent / "hca"
PATCH = SOURCE / "siw.patch"
INIT = SOURCE / "guest/init"
MODULE = "mlx5_core.ko"
#: loaded by the initrd of the guest that has nothing but HCAs, before its root is there
BOOT_MODULES = (kernel.PANIC_MODULE, "virtio_pci", "9pnet_virtio", "9p", "overlay", "virtio_rng")


def module() -> pathlib.Path:
    """Path of the module, for the release of ``debian.kernel_packages``."""
    packages = debian.kernel_packages()
    siw = kernel_module.siw_source(packages)
    sources = sorted(path for path in SOURCE.iterdir() if path.is_file())

    def build(target: pathlib.Path) -> None:
        work = target / "build"
        work.mkdir()
        for path in sources:
            shutil.copy2(path, work)
        shutil.copytree(siw, work / "siw")
        run(["patch", "--strip=1", "--batch", "--directory", work, "--input", PATCH])
        kernel_module.compile_module(packages, work)
        run(["strip", "-g", work / MODULE, "-o", target / MODULE])
        shutil.rmtree(work)

    return cached("hca", [packages.name, *sources, HERE, kernel_module.HERE], build) / MODULE


def initrd() -> pathlib.Path:
    """Path of the initrd of the guest that has nothing but HCAs."""
    kernel_folder = kernel.kernel()

    def build(target: pathlib.Path) -> None:
        release = (kernel_folder / "release").read_text()
        kernel_module.write_initrd(
            target / "initrd", kernel_folder, release, BOOT_MODULES, INIT, ("proc", "dev", "lower", "upper", "root")
        )

    return cached("hca-initrd", [kernel_folder.name, INIT, HERE], build) / "initrd"
