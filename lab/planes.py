# SPDX-License-Identifier: GPL-3.0-or-later

"""Up, down and status of the whole lab."""

from __future__ import annotations

import concurrent.futures
import ctypes
import functools
import os
import pathlib
import shutil
import subprocess
import sys
import time
import typing

from dev.steps import StepError, say, step

from . import (
    controlplane,
    feature_discovery,
    job_operators,
    machine_config,
    network,
    nvidia_operator,
    objects,
    olm,
    scale,
    workers,
)
from .bmc.bios import RESTARTS
from .bmc.plane import Bmc
from .build import debian, disk, gotools, ibsim
from .description import Description, Worker
from .fabric.plane import FabricPlane
from .guest_agent import GuestAgent
from .pki import Pki
from .processes import Processes, end

FOLDER = pathlib.Path(__file__).parent.parent / ".lab"
#: of playbooks without rdma_report_dir
REPORT = FOLDER.parent / "build/report"
CLONE_NEWNET = 0x40000000


def set_report_aside(report: pathlib.Path) -> None:
    """Rename the report folder of a cluster that ends, in place of that of the cluster before it. A run on the next
    cluster would be refused there.
    """
    kept = report.with_name(f"{report.name}-before")
    if report.exists():
        shutil.rmtree(kept, ignore_errors=True)
        report.rename(kept)


class Lab:
    """The lab of this checkout.

    :param folder: holds all that a running lab writes: records of processes, logs, keys, the workers' shares
    """

    def __init__(self, description: Description, folder: pathlib.Path = FOLDER) -> None:
        self.description = description
        self.folder = folder
        folder.mkdir(mode=0o700, exist_ok=True)
        self.processes = Processes(folder, description.network.namespace)

    @property
    def authority(self) -> Pki:
        return controlplane.pki(self.description, self.folder)

    @functools.cached_property
    def fabric(self) -> FabricPlane:
        """The simulated fabrics."""
        return FabricPlane(self.description.fabric_plane, self.folder, self.processes, ibsim.programs())

    def build(self) -> typing.Mapping[str, pathlib.Path]:
        """Build what is not in the cache; returns the disk of each worker. What is not always there is built when it is
        asked for."""
        debian.install_host_packages()
        gotools.check_go()
        on_demand = (*scale.TOOLS, *job_operators.OPERATORS, *nvidia_operator.TOOLS, *machine_config.TOOLS, *olm.TOOLS)
        with concurrent.futures.ThreadPoolExecutor() as pool:
            # packages are fetched and set up, which takes one processor and the network, while the compiler takes what
            # is left
            debians = pool.submit(disk.build_roots, [worker.sealed for worker in self.description.workers])
            for name in gotools.TOOL:
                if name not in on_demand:
                    gotools.binary(name)
            # here, because from inside of the lab's network namespace nothing can be fetched
            for module in (
                controlplane.OPERATOR,
                controlplane.WHEREABOUTS,
                controlplane.ATTACHMENTS,
                feature_discovery.MODULE,
            ):
                gotools.module_folder(*module)
            debians.result()
        umad2sim = ibsim.programs().umad2sim
        return {worker.name: disk.disk(umad2sim, worker.sealed) for worker in self.description.workers}

    def up(self, nodes: int = 0) -> None:
        """Build and start what is not there; a lab that was interrupted or damaged is made whole.

        :param nodes: simulated nodes for scale
        """
        disks = self.build()
        if nodes:
            scale.build()
        start = time.monotonic()
        authority = self.authority
        workers.prepare(self.description, self.folder, authority, self.fabric.topologies)
        self._link_operator()
        self._end_strays()
        network.create(self.description)
        self.enter()
        for worker in self.description.workers:
            self.bmc(worker.name).prepare(authority)
            self.bmc(worker.name).start()
            self.start_worker(worker, disks)
        with step("start etcd and kube-apiserver"):
            controlplane.start_api(self.description, self.folder, self.processes, authority)
        controlplane.start_controllers(self.processes, authority)
        controlplane.apply_base(self.description, authority)
        feature_discovery.start(authority)
        controlplane.start_webhook(self.description, self.processes, authority)
        with step("start two fabrics, each with a master and a standby subnet manager"):
            self.fabric.start()
        with step("wait until the workers are Ready"):
            self.wait_workers(disks)
        self.refresh()
        workers.label(self.description, authority)
        with step("wait until node feature discovery has labelled the workers"):
            feature_discovery.await_label(authority, self.description.workers)
        scale.start(self.description, self.processes, authority, nodes)
        say(
            f"up after {time.monotonic() - start:.0f} s; next: 'make site', 'lab/kubectl get nodes', 'lab/on"
            f" {self.description.workers[0].name} ps -ef'"
        )

    def down(self) -> None:
        """End everything, by process ids, and remove all but the logs."""
        with step("stop the lab"):
            self.fabric.stop()
            self.processes.stop(*self.processes.names())
            network.remove(self.description)
            for path in self.folder.iterdir():
                if path != self.processes.logs:
                    shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
            set_report_aside(REPORT)
            left = [name for name, there in self._leftovers().items() if there]
            if left:
                raise StepError(
                    f"still there: {', '.join(left)}", "run it again; what it cannot take away has to go by hand"
                )

    def worker(self, name: str) -> Worker:
        """:raises StepError: there is none of that name"""
        for worker in self.description.workers:
            if worker.name == name:
                return worker
        raise StepError(
            f"no worker '{name}'", f"use one of {', '.join(worker.name for worker in self.description.workers)}"
        )

    def agent(self, name: str) -> GuestAgent:
        """The lab's own way into a worker.

        :raises StepError: there is none of that name
        """
        return workers.agent(self.processes, self.worker(name))

    def bmc(self, name: str) -> Bmc:
        """:raises StepError: there is no worker of that name"""
        return Bmc(self.worker(name), self.folder, self.processes)

    def start_worker(self, worker: Worker, disks: typing.Mapping[str, pathlib.Path]) -> None:
        workers.start(
            self.description, self.folder, self.processes, worker, disks[worker.name], self.bmc(worker.name).has_iommu
        )

    def boot(self, name: str) -> None:
        """Start a worker, and wait until it is whole.

        :raises StepError: it is not Ready in time
        """
        worker, disks = self.worker(name), self.build()
        self.start_worker(worker, disks)
        workers.wait_ready(self.processes, [worker], self.authority, lambda one: self.start_worker(one, disks))
        self.refresh()

    def switch_iommu(self, name: str, on: bool) -> None:
        """Set it in the BIOS of a worker, reset the worker by its BMC, and wait until it is whole again."""
        worker, bmc = self.worker(name), self.bmc(name)
        before = workers.boot_of(self.authority, worker)
        bmc.switch_iommu(on)
        bmc.reset()
        workers.wait_booted(self.processes, worker, self.authority, before)

    def reset(self, name: str, kind: str) -> None:
        """What a BMC does to its worker. That it boots is not waited for: no BMC does.

        :param kind: of DMTF's Resource.ResetType
        """
        worker = self.worker(name)
        workers.keep_boot(self.folder, worker, self.agent(name))
        self.processes.stop(worker.name)
        if kind in RESTARTS:
            with open(self.processes.logs / f"{name}.boot.log", "ab") as log:
                subprocess.Popen(
                    [sys.executable, "-m", "lab", "boot", name],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )

    def wait_workers(self, disks: typing.Mapping[str, pathlib.Path]) -> None:
        """Wait until all workers are Ready; one that ends while it boots is started again."""
        workers.wait_ready(
            self.processes, self.description.workers, self.authority, lambda worker: self.start_worker(worker, disks)
        )

    def _leftovers(self) -> dict[str, bool]:
        """What must be gone when the lab is down, and whether it is there."""
        mounts = pathlib.Path("/proc/self/mountinfo").read_text()
        return {
            f"network namespace {self.description.network.namespace}": network.exists(self.description),
            "processes": any(self.processes.alive(name) for name in self.processes.names()),
            f"mounts below {self.folder}": f" {self.folder}" in mounts,
            f"files in {self.folder} other than logs": any(
                path != self.processes.logs for path in self.folder.iterdir()
            ),
        }

    def refresh(self) -> None:
        """Bring the HCAs of the running workers up to date with their fabrics."""
        self.leave_hcas()
        for worker in self.description.workers:
            if self.processes.alive(worker.name):
                workers.tell_hcas(self.agent(worker.name))

    def leave_hcas(self) -> None:
        """Have what the HCAs of the workers are like now take effect at the next boot of each worker."""
        ports = self.fabric.refresh()
        for worker in self.description.workers:
            workers.leave_hcas(self.folder, worker, ports[worker.name], self.fabric.sysfs(worker.name))

    def enter(self) -> None:
        """Put this process into the lab's network namespace; Python 3.11 has no os.setns.

        :raises StepError: the lab is down, or the kernel refuses
        """
        try:
            with open(f"/run/netns/{self.processes.namespace}", "rb") as handle:
                if ctypes.CDLL(None, use_errno=True).setns(handle.fileno(), CLONE_NEWNET) != 0:
                    raise StepError(
                        f"cannot enter the lab's network namespace: {os.strerror(ctypes.get_errno())}", "run it as root"
                    )
        except FileNotFoundError as error:
            raise StepError("the lab is down", "start it with 'make lab'") from error

    def status(self) -> bool:
        """Print what runs and what it uses; returns whether the lab is whole."""
        if not network.exists(self.description):
            say("down")
            return False
        whole = True
        for name in self.processes.names():
            pid = self.processes.pid(name)
            whole = whole and pid is not None
            say(f"{name:28} {f'process {pid}, {_resident_mib(pid)} MiB' if pid else 'HAS ENDED'}")
        self.enter()
        if not controlplane.ready(self.description, self.authority):
            say("the API server does not answer")
            return False
        for node in (
            objects.client(self.authority.path("admin.kubeconfig"))
            .resources.get(api_version="v1", kind="Node")
            .get()
            .items
        ):
            if scale.LABEL in (node.metadata.labels or {}):
                continue
            ready = any(
                condition.type == "Ready" and condition.status == "True" for condition in node.status.conditions or []
            )
            resources = {
                key: value
                for key, value in node.status.allocatable.to_dict().items()
                if key.startswith("openshift.io/")
            }
            whole = whole and ready
            say(f"{node.metadata.name:28} {'Ready' if ready else 'NOT READY'} {resources or 'no VF resources'}")
        for fabric in self.fabric.status():
            whole = whole and fabric.active == fabric.hcas and "MASTER" in fabric.managers.values()
            say(str(fabric))
        say("up" if whole else "damaged; 'make lab' makes it whole")
        return whole

    def _link_operator(self) -> None:
        """Fixed places for what the inventory of the lab names: the operator's chart and helm."""
        chart = gotools.module_folder(*controlplane.OPERATOR) / "deployment/sriov-network-operator-chart"
        for name, target in (("chart", chart), ("helm", gotools.binary("helm"))):
            link = self.folder / name
            link.unlink(missing_ok=True)
            link.symlink_to(target)

    def _end_strays(self) -> None:
        """End processes of an interrupted start that were not written down; not whoever started this one from within,
        as molecule does."""
        known, mine = {self.processes.pid(name) for name in self.processes.names()}, os.getpid()
        strays = [pid for pid in network.processes(self.description) if pid not in known and not _descends(pid, known)]
        end([pid for pid in strays if pid != mine and not _descends(mine, [pid])])


def _resident_mib(pid: int) -> int:
    pages = int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") // 2**20


def _descends(pid: int, ancestors: typing.Collection[typing.Optional[int]]) -> bool:
    """Whether the process was started by one of these."""
    while pid > 1:
        try:
            pid = int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        except FileNotFoundError:
            return False
        if pid in ancestors:
            return True
    return False
