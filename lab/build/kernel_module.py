# SPDX-License-Identifier: GPL-3.0-or-later

"""What guests have of the kernel and Debian does not ship: modules that are compiled for it, and an initrd that loads
modules before its root is there."""

from __future__ import annotations

import pathlib
import shutil
import typing

from ..cache import cached
from ..run import run

HERE = pathlib.Path(__file__)


def siw_source(packages: pathlib.Path) -> pathlib.Path:
    """Folder with the kernel's own siw (software iWARP): to find it in the sources of all of the kernel takes longer
    than to compile it.

    :param packages: of ``debian.kernel_packages``
    """
    name = "linux-source-6.1/drivers/infiniband/sw/siw"

    def build(target: pathlib.Path) -> None:
        run(["tar", "-C", target, "--strip-components=5", "-xf", packages / "usr/src/linux-source-6.1.tar.xz", name])

    return cached("siw-source", [packages.name, name], build)


def compile_module(packages: pathlib.Path, folder: pathlib.Path, *settings: str) -> None:
    """Compile the modules of a folder, which come to lie in it, for the release of the packages.

    :param packages: of ``debian.kernel_packages``
    :param settings: of the kernel's configuration, as ``CONFIG_RDMA_SIW=m``
    """
    # the headers package points to /usr/src and /usr/lib by absolute paths: mount them there, in a mount namespace that
    # ends with the build
    script = (
        'set -eu; mount --make-rprivate /; mount --bind "$1/usr/src" /usr/src; mount -t tmpfs tmpfs /usr/lib/modules '
        "2>/dev/null || true; "
        'mkdir -p /usr/lib/linux-kbuild-6.1; mount --bind "$1/usr/lib/linux-kbuild-6.1" /usr/lib/linux-kbuild-6.1; '
        'release=$2 folder=$3; shift 3; make -s -j2 -C "/usr/src/linux-headers-$release" M="$folder" "$@" '
        "CONFIG_DEBUG_INFO_BTF_MODULES= modules"
    )
    kbuild = pathlib.Path("/usr/lib/linux-kbuild-6.1")
    existed = kbuild.exists()
    try:
        run(
            [
                "unshare",
                "-m",
                "bash",
                "-c",
                script,
                "module",
                packages,
                (packages / "version").read_text(),
                folder,
                *settings,
            ]
        )
    finally:
        if not existed and kbuild.exists():
            kbuild.rmdir()


def write_initrd(
    path: pathlib.Path,
    modules: pathlib.Path,
    release: str,
    names: typing.Iterable[str],
    init: pathlib.Path,
    folders: typing.Iterable[str],
) -> None:
    """Write an initrd with busybox, a first process, and modules in the order in which it loads them
    (``/modules/order``).

    :param modules: folder with ``lib/modules/<release>``
    :param names: of modules; those that they depend on come along
    :param init: the first process
    :param folders: empty ones that it mounts on
    """
    root = path.with_name(f"{path.name}.root")
    for name in ("bin", "modules", *folders):
        (root / name).mkdir(parents=True)
    shutil.copy2("/bin/busybox", root / "bin/busybox")
    (root / "bin/sh").symlink_to("busybox")
    order = []
    for module in names:
        for line in run(["modprobe", "-d", modules, "-S", release, "-D", module]).splitlines():
            words = line.split()
            found = pathlib.Path(words[1]) if words[0] == "insmod" else None
            if found and found.name not in order:
                shutil.copy2(found, root / "modules")
                order.append(found.name)
    (root / "modules/order").write_text("".join(f"{name}\n" for name in order))
    shutil.copy2(init, root / "init")
    (root / "init").chmod(0o755)
    every = "\n".join(str(item.relative_to(root)) for item in sorted(root.rglob("*"))) + "\n"
    run(["sh", "-c", 'cd "$1" && cpio -o -H newc --quiet > "$2"', "initrd", root, path], stdin=every)
    shutil.rmtree(root)
