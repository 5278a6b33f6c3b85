# SPDX-License-Identifier: GPL-3.0-or-later

"""The workers' disk: Debian 13 with kubelet, containerd, multus and the images already imported. Holds no secret and no
address: what is a worker's own comes to it at boot (lab/guest/lab-boot), so one disk serves all workers of a kind, and
all labs."""

from __future__ import annotations

import json
import pathlib
import shutil
import typing

from ..cache import cached
from ..fabric import guest as fabric
from ..run import run
from . import debian, gotools, hca, ibsim, images, kernel

HERE = pathlib.Path(__file__)
GUEST = HERE.parent.parent / "guest"
FABRIC_GUEST = pathlib.Path(fabric.__file__).parent
#: units that cost boot time and do nothing here, or that would start a subnet manager
MASKED = (
    "apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer e2scrub_reap.service fstrim.timer "
    "getty@tty1.service "
    "ibacm.service ibacm.socket iscsid.service iwpmd.service networking.service opensm.service "
    "proc-sys-fs-binfmt_misc.automount rdma-ndd.service "
    "srp_daemon.service sshd-keygen.service systemd-binfmt.service systemd-firstboot.service "
    "systemd-journal-flush.service systemd-pstore.service "
    "systemd-timesyncd.service systemd-tpm2-setup.service systemd-tpm2-setup-early.service "
    "systemd-networkd-wait-online.service"
).split()
ENABLED = ("lab-boot.service", "kubelet.service", "containerd.service")
SIZE = "6G"
#: on a worker that is reached by ssh: somebody who is not root, and becomes it by sudo
ADMIN = "admin"


def build_roots(kinds: typing.Iterable[bool]) -> None:
    """Build what guests are made of besides what is compiled from Go.

    :param kinds: of the workers' disks, see ``disk``
    """
    debian.qemu()
    ibsim.programs()
    kernel.kernel()
    hca.module()
    debian.pod_root()
    for sealed in sorted(set(kinds)):
        debian.guest_root(sealed)


def disk(umad2sim: pathlib.Path, sealed: bool) -> pathlib.Path:
    """Path of the disk image (raw ext4, sparse).

    :param umad2sim: libumad2sim.so, through which the workers' own diagnostics reach the simulated fabrics
    :param sealed: of a worker without Python, sshd and the tools of a fabric
    """
    root = debian.guest_root(sealed)
    kernel_folder = kernel.kernel()
    image_folder = images.images(umad2sim)
    binaries = [gotools.binary(name) for name in ("kubelet", "multus", "whereabouts")]
    inputs: list[typing.Union[str, pathlib.Path]] = [
        root.parent.name,
        kernel_folder.name,
        image_folder.name,
        *map(str, binaries),
    ]
    inputs += [umad2sim, hca.module(), GUEST, FABRIC_GUEST, HERE]

    def build(target: pathlib.Path) -> None:
        work = target / "root"
        run(["cp", "-a", "--reflink=auto", root, work])
        shutil.copytree(kernel_folder / "lib/modules", work / "usr/lib/modules", dirs_exist_ok=True)
        _add_hca(work, (kernel_folder / "release").read_text())
        shutil.copy2(binaries[0], work / "usr/local/bin/kubelet")
        plugins = work / "opt/cni/bin"
        plugins.mkdir(parents=True)
        for path in (*(work / "usr/lib/cni").iterdir(), *binaries[1:]):
            shutil.copy2(path, plugins)
        # in its place is what has the calls wait for each other
        (plugins / "multus").rename(plugins / "multus.program")
        shutil.copytree(GUEST / "root", work, dirs_exist_ok=True)
        if not sealed:
            fabric.install(work, umad2sim)
            shutil.copy2(images.MSTCONFIG, work / "usr/local/bin")
            _add_admin(work)
        _settle(work, (*ENABLED, *(() if sealed else ("ssh.service",))))
        _import_images(work, image_folder)
        run(["truncate", "-s", SIZE, target / "disk.ext4"])
        run(
            [
                "mke2fs",
                "-q",
                "-t",
                "ext4",
                "-O",
                "^has_journal",
                "-E",
                "lazy_itable_init=1",
                "-d",
                work,
                target / "disk.ext4",
            ]
        )
        shutil.rmtree(work)

    return cached("sealed-disk" if sealed else "disk", inputs, build) / "disk.ext4"


def _add_hca(work: pathlib.Path, release: str) -> None:
    """The driver of the emulated HCAs."""
    modules = work / "usr/lib/modules" / release
    (modules / "updates").mkdir()
    shutil.copy2(hca.module(), modules / "updates")
    run(["depmod", "-b", work, release])


def _settle(work: pathlib.Path, enabled: typing.Iterable[str]) -> None:
    units = work / "etc/systemd/system"
    for name in MASKED:
        (units / name).unlink(missing_ok=True)
        (units / name).symlink_to("/dev/null")
    wants = units / "multi-user.target.wants"
    wants.mkdir(exist_ok=True)
    for name in enabled:
        source = f"/etc/systemd/system/{name}" if (units / name).is_file() else f"/usr/lib/systemd/system/{name}"
        (wants / name).unlink(missing_ok=True)
        (wants / name).symlink_to(source)
    # the operator's scripts, run in the host's root, expect bash as sh and grubby; both are Red Hat's
    (work / "usr/bin/sh").unlink()
    (work / "usr/bin/sh").symlink_to("bash")
    for key in (work / "etc/ssh").glob("ssh_host_*"):
        key.unlink()
    for name in ("opt/lab", "etc/lab", "var/lib/kubelet"):
        (work / name).mkdir(parents=True, exist_ok=True)
    (work / fabric.HCAS).symlink_to(f"/opt/lab/{pathlib.Path(fabric.HCAS).name}")
    spec = run(["chroot", work, "ctr", "oci", "spec"])
    (work / "etc/containerd/rdma.json").write_text(_with_rdma_devices(spec))


def _add_admin(work: pathlib.Path) -> None:
    # without PAM, sshd takes a password that can't be for none, and '!' for a locked account
    run(["chroot", work, "useradd", "--create-home", "--shell", "/bin/bash", "--password", "*", ADMIN])
    sudoers = work / "etc/sudoers.d" / ADMIN
    sudoers.write_text(f"{ADMIN} ALL=(ALL) NOPASSWD: ALL\n")
    sudoers.chmod(0o440)


def _with_rdma_devices(spec: str) -> str:
    """runc's default spec, and the device cgroup also allows uverbs (231) and rdma_cm (misc, 10): RDMA without
    privileged pods."""
    document = json.loads(spec)
    document["linux"]["resources"]["devices"] += [
        {"allow": True, "type": "c", "major": major, "access": "rw"} for major in (231, 10)
    ]
    return json.dumps(document)


def _import_images(work: pathlib.Path, image_folder: pathlib.Path) -> None:
    """Import with the guest's own containerd, run natively in a chroot: at the first boot it would cost half a minute
    under emulation."""
    archives = work / "opt/images"
    archives.mkdir()
    for path in image_folder.glob("*.tar"):
        (archives / path.name).touch()
    run(["unshare", "-m", "bash", HERE.parent / "import-images", work, image_folder], remedy="read the output above")
    shutil.rmtree(archives)
