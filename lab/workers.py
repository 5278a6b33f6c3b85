# SPDX-License-Identifier: GPL-3.0-or-later

"""The workers: QEMU guests with a real kubelet, an igb with SR-IOV behind an IOMMU, and a share with all that is a
worker's own."""

from __future__ import annotations

import pathlib
import shutil
import subprocess
import typing

from dev.steps import StepError, say

from . import accelerator, network, objects
from .build import debian, kernel
from .controlplane import API_PORT
from .description import Description, Guest, Worker
from .fabric import emulated
from .fabric.guest import hca_map
from .fabric.topology import Topology
from .guest_agent import PORT, GuestAgent
from .pki import Pki
from .processes import Processes, wait_until
from .run import run

READY_SECONDS = 600
NUMA_NODES = 2
#: where a worker has what its kernel has not of the sysfs of its HCAs
SYSFS = "/run/lab/sysfs"
#: how often a worker is started at most, until it is Ready
STARTS = 3
#: what the workers' CNI plugins may do has its own identity; the kubelet's is made per worker
PLUGIN_IDENTITIES = ("multus", "whereabouts")


def share(folder: pathlib.Path, worker: Worker) -> pathlib.Path:
    """The folder of the host that the worker sees, read-only, as /opt/lab."""
    return folder / "share" / worker.name


def ssh_key(folder: pathlib.Path) -> pathlib.Path:
    """The key that logs in to the workers as root."""
    return folder / "ssh" / "id"


def agent(processes: Processes, worker: Worker) -> GuestAgent:
    """The lab's own way into a worker."""
    return GuestAgent(worker.name, processes.records / f"{worker.name}.agent")


def leave_hcas(folder: pathlib.Path, worker: Worker, ports: str, tree: pathlib.Path) -> None:
    """Leave in a worker's share what its HCAs are like, for each boot from now on, whoever asks for it.

    :param ports: of ``emulated.ports``
    :param tree: what its kernel has not of the sysfs of its HCAs
    """
    own = share(folder, worker)
    archive = subprocess.run(["tar", "-C", tree, "-czf", "-", "."], stdout=subprocess.PIPE, check=True).stdout
    for name, content in (("ports", ports.encode()), ("sysfs", archive)):
        new = own / f"{name}.new"
        new.write_bytes(content)
        # who boots just then reads the old one or the new one
        new.replace(own / name)


def tell_hcas(agent: GuestAgent) -> None:
    """Have a worker that runs take what was left for its next boot: its sysfs is at ``SYSFS``.

    :raises StepError: it cannot be reached, or does not take it
    """
    agent.check("cd /opt/lab && /usr/local/sbin/lab-ports < ports && /usr/local/sbin/lab-sysfs < sysfs")


def prepare(
    description: Description, folder: pathlib.Path, authority: Pki, topologies: typing.Mapping[str, Topology]
) -> None:
    """Write the workers' shares: identities, keys, addresses, what HCAs they have; and the host's known_hosts for them.

    :param topologies: of the fabrics, by name
    """
    fabrics = description.fabric_plane
    key = ssh_key(folder)
    key.parent.mkdir(parents=True, exist_ok=True)
    _key(key)
    hosts = "127.0.0.1 localhost\n" + "".join(f"{worker.address} {worker.name}\n" for worker in description.workers)
    known = []
    for worker in description.workers:
        own = share(folder, worker)
        (own / "pki").mkdir(parents=True, exist_ok=True)
        if not worker.sealed:
            (own / "ssh").mkdir(exist_ok=True)
            _key(own / "ssh/host")
            (own / "ssh/authorized_keys").write_text(key.with_suffix(".pub").read_text())
            known.append(f"{worker.name},{worker.address} {(own / 'ssh/host.pub').read_text()}")
        (own / "hosts").write_text(hosts)
        (own / "hcas").write_text(hca_map(fabrics, topologies, worker.name))
        (own / "emulated").write_text(emulated.table(fabrics, worker.name))
        hcas = emulated.parameters(fabrics, topologies, worker.name, worker.number)
        (own / "node.env").write_text(_environment(description, worker, hcas))
        identity = f"kubelet-{worker.name}"
        authority.identity(identity, f"system:node:{worker.name}", "system:nodes", hosts=(worker.name, worker.address))
        for suffix in ("crt", "key", "kubeconfig"):
            shutil.copy2(authority.path(f"{identity}.{suffix}"), own / f"pki/kubelet.{suffix}")
        for name in PLUGIN_IDENTITIES:
            shutil.copy2(authority.path(f"{name}.kubeconfig"), own / "pki")
        shutil.copy2(authority.path("ca.crt"), own / "pki")
    (key.parent / "known_hosts").write_text("".join(known))


def _key(path: pathlib.Path) -> None:
    if not path.exists():
        run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "linerate-lab", "-f", path])


def _environment(description: Description, worker: Worker, hcas: str) -> str:
    """:param hcas: parameters of the module that emulates them"""
    routes = ";".join(
        f"{description.pod_subnet(other)} {other.address}" for other in description.workers if other != worker
    )
    values = {
        "NODE": worker.name,
        "ADDRESS": worker.address,
        "PREFIX": description.network.prefix,
        "GATEWAY": description.network.address,
        "API": f"{description.network.address}:{API_PORT}",
        "SERVICE_ADDRESS": description.service_address,
        "POD_NETWORK": description.network.pods,
        "POD_SUBNET": description.pod_subnet(worker),
        "POD_ROUTES": routes,
        "PF": description.sriov.netdev,
        "HCAS": hcas,
        "FIRMWARE_VFS": emulated.TOTAL_VFS,
        "SEALED": "yes" if worker.sealed else "",
    }
    return "".join(f'{name}="{value}"\n' for name, value in values.items())


def start(
    description: Description,
    folder: pathlib.Path,
    processes: Processes,
    worker: Worker,
    disk: pathlib.Path,
    iommu: bool,
) -> None:
    """Start a worker, unless it runs. Its disk is thrown away when QEMU ends: each start is a fresh node, but for its
    boot entry and the firmware of its HCAs. A worker that boots itself anew keeps its disk, and the kernel arguments
    and the IOMMU of its start.

    :param iommu: as its BIOS says
    """
    kernel_folder = kernel.kernel()
    command_line = f"{accelerator.kernel_arguments()} systemd.show_status=0 lab.number={worker.number}"
    if (_kept(folder, worker) / "arguments").exists():
        command_line = (_kept(folder, worker) / "arguments").read_text().strip() or command_line
    leave_boot(folder, worker)
    number = f"{worker.number:02x}"
    processes.start(
        worker.name,
        [
            *debian.qemu_program(),
            *("-uuid", worker.uuid, "-smbios", f"type=1,serial={worker.serial}"),
            *("-name", worker.name, "-M", "q35", *accelerator.options(), *_size(description.guest)),
            *accelerator.boot_options(kernel_folder / "vmlinux", kernel_folder / "initrd"),
            *("-append", command_line, "-drive", f"file={disk},if=virtio,format=raw,snapshot=on"),
            *_virtio_nic("cluster", worker, f"52:54:00:78:00:{number}"),
            *(("-device", "intel-iommu,intremap=on") if iommu else ()),
            *("-device", "pcie-root-port,id=rp0,chassis=1,slot=1"),
            *("-netdev", f"tap,id=storage,ifname={network.tap(worker.name, 'storage')},script=no,downscript=no"),
            *("-device", f"igb,bus=rp0,netdev=storage,mac=52:54:00:88:00:{number},romfile="),
            *_virtio_nic("vnic", worker, f"52:54:00:98:00:{number}"),
            *(
                "-virtfs",
                f"local,path={share(folder, worker)},mount_tag=lab,security_model=none,readonly=on,multidevs=remap",
            ),
            *("-virtfs", f"local,path={_firmware(folder, worker)},mount_tag=firmware,security_model=none"),
            *(
                "-device",
                "virtio-serial-pci",
                "-chardev",
                f"socket,id=agent,path={agent(processes, worker).path},server=on,wait=off",
            ),
            *("-device", f"virtserialport,chardev=agent,name={PORT}"),
            *(
                "-device",
                "virtio-rng-pci",
                "-serial",
                "stdio",
                "-monitor",
                f"unix:{processes.records / worker.name}.monitor,server,nowait",
            ),
        ],
        env={"QEMU_MODULE_DIR": str(debian.qemu_modules()), "TMPDIR": str(_temporary(folder))},
    )


def keep_boot(folder: pathlib.Path, worker: Worker, agent: GuestAgent) -> None:
    """Before a reset: what the worker's disk has of its boot entry, and of who set it. Of a worker that hangs, what was
    kept last stays."""
    there = "cd / && { [ ! -e boot/arguments ] || %s; }"
    try:
        arguments = agent.check(there % "cat boot/arguments")
        files = agent.check(there % "tar -c boot etc/linerate-rdma 2>/dev/null | base64")
    except StepError:
        return
    kept = _kept(folder, worker)
    shutil.rmtree(kept, ignore_errors=True)
    if not files:
        # it has none
        return
    kept.mkdir(parents=True)
    (kept / "arguments").write_text(arguments)
    (kept / "files").write_text(files)


def leave_boot(folder: pathlib.Path, worker: Worker) -> None:
    """Leave the same in the worker's share, from where it comes to a fresh disk."""
    kept, left = _kept(folder, worker) / "files", share(folder, worker) / "kept"
    left.unlink(missing_ok=True)
    if kept.exists():
        shutil.copy2(kept, left)


def _firmware(folder: pathlib.Path, worker: Worker) -> pathlib.Path:
    """Return the folder of what the HCAs of a worker store (see lab-firmware), and make it."""
    path = folder / "firmware" / worker.name
    path.mkdir(parents=True, exist_ok=True)
    return path


def _kept(folder: pathlib.Path, worker: Worker) -> pathlib.Path:
    return folder / "boot" / worker.name


def _temporary(folder: pathlib.Path) -> pathlib.Path:
    """Where QEMU keeps what the guest writes to its throw-away disk."""
    path = folder / "tmp"
    path.mkdir(exist_ok=True)
    return path


def _size(guest: Guest) -> typing.Iterator[str]:
    """Processors and memory, on two NUMA nodes, since the HCAs are on both."""
    yield from ("-smp", f"{guest.cpus},sockets={NUMA_NODES}", "-m", str(guest.memory_mib))
    for node in range(NUMA_NODES):
        yield from ("-object", f"memory-backend-ram,id=memory{node},size={guest.memory_mib // NUMA_NODES}M")
        yield from ("-numa", f"node,nodeid={node},memdev=memory{node}", "-numa", f"cpu,node-id={node},socket-id={node}")


def _virtio_nic(name: str, worker: Worker, mac: str) -> list[str]:
    return [
        "-netdev",
        f"tap,id={name},ifname={network.tap(worker.name, name)},script=no,downscript=no",
        "-device",
        f"virtio-net-pci,netdev={name},mac={mac},romfile=",
    ]


def wait_ready(
    processes: Processes, workers: typing.Sequence[Worker], authority: Pki, start_again: typing.Callable[[Worker], None]
) -> None:
    """Wait until the workers are Ready in the API server, as booted now: a worker that lost its power stays Ready there
    for 40 s.

    :param start_again: starts a worker that ended before it was Ready; emulation on a busy host is not always kind to a
        kernel that boots
    :raises StepError: one ends again and again, or is not Ready in time; with its last output, its console's among it
    """
    client = objects.client(authority.path("admin.kubeconfig"))
    nodes = client.resources.get(api_version="v1", kind="Node")
    left = dict.fromkeys((worker.name for worker in workers), STARTS - 1)

    def missing() -> set[str]:
        for worker in workers:
            if not left[worker.name]:
                processes.check(worker.name)
            elif not processes.alive(worker.name):
                left[worker.name] -= 1
                say(f"{processes.end_of(worker.name)}\n{worker.name} is started again")
                start_again(worker)
        boots = {
            node.metadata.name: node.status.nodeInfo.bootID
            for node in nodes.get().items
            for condition in node.status.conditions or []
            if condition.type == "Ready" and condition.status == "True"
        }
        return {
            worker.name
            for worker in workers
            if boots.get(worker.name, "") != _boot_id(agent(processes, worker), worker.name in boots)
        }

    if not wait_until(lambda: not missing(), READY_SECONDS, 0.5):
        late = sorted(missing())
        raise StepError(
            f"{', '.join(late)} not Ready after {READY_SECONDS} s; the last output:\n{processes.log(late[0])}",
            f"look at its kubelet: lab/on {late[0]} journalctl -u kubelet",
        )


def boot_of(authority: Pki, worker: Worker) -> str:
    """The boot that the API server knows as Ready; empty where it is not Ready."""
    node = (
        objects.client(authority.path("admin.kubeconfig"))
        .resources.get(api_version="v1", kind="Node")
        .get(name=worker.name)
    )
    ready = any(condition.type == "Ready" and condition.status == "True" for condition in node.status.conditions or [])
    return str(node.status.nodeInfo.bootID) if ready else ""


def wait_booted(processes: Processes, worker: Worker, authority: Pki, before: str) -> None:
    """Wait until a worker that somebody has reset is whole again.

    :param before: its boot before that
    :raises StepError: it is not in time; with the last output
    """

    def whole() -> bool:
        if boot_of(authority, worker) in ("", before):
            return False
        return agent(processes, worker).run(["test", "-d", f"{SYSFS}/class"], limit=30).code == 0

    if not wait_until(whole, READY_SECONDS, 0.5):
        raise StepError(
            f"{worker.name} is not back after {READY_SECONDS} s; the last output:\n{processes.log(worker.name)}",
            f"see {processes.logs}",
        )


def _boot_id(agent: GuestAgent, asked: bool) -> typing.Optional[str]:
    """The worker's own word for its boot; None when it does not answer, or is not asked since nobody holds it for
    ready."""
    if not asked:
        return None
    try:
        return agent.check("cat /proc/sys/kernel/random/boot_id").strip()
    except StepError:
        return None


def label(description: Description, authority: Pki) -> None:
    """Set the role of the workers, as whoever installs a cluster does."""
    client = objects.client(authority.path("admin.kubeconfig"))
    nodes = client.resources.get(api_version="v1", kind="Node")
    for worker in description.workers:
        labels = {"node-role.kubernetes.io/worker": ""}
        nodes.patch(
            name=worker.name, body={"metadata": {"labels": labels}}, content_type="application/merge-patch+json"
        )
