# SPDX-License-Identifier: GPL-3.0-or-later

"""Packages and root file systems from the Debian mirror that this system already uses.

The host is Debian 12, the guests are Debian 13: their rdma-core, perftest and ibsim are new enough for NDR.
Nothing here touches the host's own package state: each suite has a private apt root in the cache.
"""

from __future__ import annotations

import functools
import os
import pathlib
import subprocess
import typing

from dev.steps import StepError, step

from ..cache import cached
from ..run import run

PACKAGES = pathlib.Path(__file__).parent.parent / "packages.txt"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
QEMU_PACKAGES = ("qemu-system-x86", "seabios")
#: of each worker; the agent is the lab's own way in
SEALED_PACKAGES = (
    "systemd-sysv dbus udev iproute2 rdma-core ethtool pciutils kmod iptables iputils-ping procps containerd crun "
    "containernetworking-plugins mount "
    "ca-certificates busybox-static jq qemu-guest-agent"
).split()
#: of a worker that is reached by ssh
GUEST_PACKAGES = (
    *SEALED_PACKAGES,
    *"openssh-server sudo python3 ibverbs-utils ibverbs-providers perftest rdmacm-utils infiniband-diags "
    "opensm".split(),
)
POD_PACKAGES = (
    "iproute2 ibverbs-utils ibverbs-providers perftest rdmacm-utils rdma-core iperf3 iputils-ping ethtool kmod "
    "pciutils jq procps "
    # for observers
    "python3 infiniband-diags"
).split()
MIRROR_REMEDY = "is the Debian mirror reachable? 'make lab' can be run again at once"
WITHOUT_DOCUMENTATION = [f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in ("man", "doc", "locale")]


def install_host_packages() -> None:
    """Install what the lab needs on the host (lab/packages.txt) and is not there.

    :raises StepError: not root, or apt fails
    """
    wanted = [line for line in PACKAGES.read_text().splitlines() if line and not line.startswith("#")]
    states = subprocess.run(
        ["dpkg-query", "-W", "-f", "${Package} ${db:Status-Status}\n", *wanted],
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    missing = sorted(set(wanted) - {line.split()[0] for line in states.splitlines() if line.endswith(" installed")})
    if not missing:
        return
    if os.geteuid() != 0:
        raise StepError("the lab needs root: for a network namespace, and to install packages", "run it as root")
    with step(f"install {' '.join(missing)}"):
        run(["apt-get", "update", "-q"], remedy=MIRROR_REMEDY)
        run(
            ["apt-get", "install", "-y", "-q", "--no-install-recommends", *missing],
            env={"DEBIAN_FRONTEND": "noninteractive"},
            remedy=MIRROR_REMEDY,
        )


@functools.cache
def mirror() -> str:
    """Base address of the mirror in the host's own sources; apt takes a second of a processor to tell it.

    :raises StepError: the host has no Debian 12 sources
    """
    targets = run(["apt-get", "indextargets", "--format", "$(BASE_URI) $(RELEASE) $(CREATED_BY)"])
    for line in targets.splitlines():
        base, release, created_by = line.split(" ")
        if release == "bookworm" and created_by == "Packages":
            return base.split("/dists/")[0]
    raise StepError(
        "this system's apt sources name no Debian 12 (bookworm) mirror",
        "run the lab on Debian 12, or add its sources to /etc/apt",
    )


def _apt_options(root: pathlib.Path, suites: typing.Iterable[str]) -> list[str]:
    for name in ("state/lists/partial", "cache/archives/partial", "etc"):
        (root / name).mkdir(parents=True, exist_ok=True)
    sources = root / "etc/sources.list"
    sources.write_text(
        "".join(
            f"{kind} [signed-by={KEYRING}] {mirror()} {suite} main\n" for suite in suites for kind in ("deb", "deb-src")
        )
    )
    settings = {
        "Dir::State": root / "state",
        # what the host has is not fetched again
        "Dir::State::status": "/var/lib/dpkg/status",
        "Dir::Cache": root / "cache",
        "Dir::Etc::SourceList": sources,
        "Dir::Etc::SourceParts": "/dev/null",
        "Dir::Etc::Parts": "/dev/null",
        "Debug::NoLocking": "1",
        "APT::Install-Recommends": "false",
        "APT::Sandbox::User": "root",
    }
    return [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]


def _unpack(archives: typing.Iterable[pathlib.Path], target: pathlib.Path) -> None:
    for archive in archives:
        run(["dpkg-deb", "-x", archive, target])


def qemu() -> pathlib.Path:
    """Root folder of QEMU 11 from Debian 13's backports, with all its libraries: nothing of it is installed, it runs by
    its own loader.

    Debian 12's own 7.2 has no igb, the one emulated NIC with SR-IOV. Debian's 10.0 aborts now and then while a guest
    with several processors moves the BARs of its PCI devices ("iotlb_to_section: Assertion `section_index <
    d->map.sections_nb' failed"): it takes a section's number from one memory map and looks it up in the next.
    """
    return _root_folder("qemu", QEMU_PACKAGES, "extract", "trixie", "trixie-backports")


def qemu_program() -> tuple[typing.Union[str, pathlib.Path], ...]:
    """How a command line of it begins: Debian 13's program on Debian 12, by its own loader."""
    root, libraries = qemu(), _qemu_libraries()
    program = (libraries / "ld-linux-x86-64.so.2", "--library-path", libraries, root / "usr/bin/qemu-system-x86_64")
    return (*program, "-L", root / "usr/share/qemu", "-L", root / "usr/share/seabios")


def qemu_modules() -> pathlib.Path:
    """For its environment, as QEMU_MODULE_DIR."""
    return _qemu_libraries() / "qemu"


def _qemu_libraries() -> pathlib.Path:
    return qemu() / "usr/lib/x86_64-linux-gnu"


def kernel_packages() -> pathlib.Path:
    """Debian 12's kernel, its headers and its source, unpacked. ``version`` in it holds the release (6.1.0-NN-amd64).

    The generic kernel: the cloud kernels have no rdma_rxe and no igb.
    """

    def build(target: pathlib.Path) -> None:
        root = target / "apt"
        options = _apt_options(root, ("bookworm", "bookworm-updates"))
        run(["apt-get", *options, "update", "-q"])
        depends = run(["apt-cache", *options, "depends", "linux-image-amd64"])
        release = next(word for word in depends.split() if word.startswith("linux-image-6")).replace("linux-image-", "")
        version = release.replace("-amd64", "")
        names = [
            f"linux-image-{release}",
            f"linux-headers-{release}",
            f"linux-headers-{version}-common",
            "linux-kbuild-6.1",
            "linux-source-6.1",
        ]
        run(["apt-get", *options, "download", "-q", *names], cwd=root)
        _unpack(sorted(root.glob("*.deb")), target)
        (target / "version").write_text(release)
        run(["rm", "-r", root])

    return cached("kernel-packages", [mirror(), "linux-image-amd64 of bookworm"], build)


def development_files(packages: typing.Sequence[str], name: str = "development-files") -> pathlib.Path:
    """Root folder with these packages of Debian 12 unpacked, to compile against.

    :param name: in the cache, which keeps one folder of each name
    """

    def build(target: pathlib.Path) -> None:
        root = target / "apt"
        options = _apt_options(root, ("bookworm", "bookworm-updates"))
        run(["apt-get", *options, "update", "-q"])
        run(["apt-get", *options, "download", "-q", *packages], cwd=root)
        _unpack(sorted(root.glob("*.deb")), target)
        run(["rm", "-r", root])

    return cached(name, [mirror(), *packages], build)


def _root_folder(name: str, packages: typing.Sequence[str], variant: str, *suites: str) -> pathlib.Path:
    """Folder with packages of Debian 13 and what they depend on; the last suite goes first.

    :param variant: mmdebstrap's: ``minbase`` for a root file system, ``extract`` for files alone, without running a
        package's scripts
    """

    def build(target: pathlib.Path) -> None:
        sources = [f"deb [signed-by={KEYRING}] {mirror()} {suite} main" for suite in suites]
        options = ["--aptopt=APT::Install-Recommends=false", f'--aptopt=APT::Default-Release "{suites[-1]}"']
        run(
            [
                # what it mounts goes with it, however it ends: else the next build would remove /proc and /sys of this
                # machine with the rest
                *(
                    "unshare",
                    "--mount",
                    "--",
                    "mmdebstrap",
                    "--mode=root",
                    f"--variant={variant}",
                    *options,
                    *WITHOUT_DOCUMENTATION,
                ),
                *("--include=" + ",".join(packages), "--format=directory", suites[0], str(target / "root"), *sources),
            ],
            remedy=MIRROR_REMEDY,
        )

    return cached(name, [mirror(), variant, *suites, *packages], build) / "root"


def guest_root(sealed: bool) -> pathlib.Path:
    """Root file system of a worker, Debian 13, as it comes from the packages.

    :param sealed: without Python, sshd and the tools of a fabric
    """
    name, packages = ("sealed-root", SEALED_PACKAGES) if sealed else ("guest-root", GUEST_PACKAGES)
    return _root_folder(name, packages, "minbase", "trixie")


def collectives_root() -> pathlib.Path:
    """Root file system of the pod image with Open MPI, for stage collectives."""
    return _root_folder("collectives-root", [*POD_PACKAGES, "openmpi-bin"], "minbase", "trixie")


def pod_root() -> pathlib.Path:
    """Root file system of the pod image: what measures (perftest, rping, ping) and what observes (Python,
    infiniband-diags)."""
    return _root_folder("pod-root", POD_PACKAGES, "minbase", "trixie")
