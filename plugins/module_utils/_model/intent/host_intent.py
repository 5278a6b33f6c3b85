# SPDX-License-Identifier: GPL-3.0-or-later

"""What the intent asks of the hosts beside the network (rows S3.3, S3.4): locked memory, kernel arguments, how the
kubelet places pods, a way for NICs to reach the memory of GPUs."""

from __future__ import annotations

import dataclasses
import typing


@dataclasses.dataclass(frozen=True)
class Memlock:
    """The memory that a container may lock; RDMA registers what it locks.

    :ivar by: who sets it: a MachineConfig for CRI-O (OpenShift), or a drop-in of containerd's unit on each node
    :ivar limit_gib: in GiB; None only beside ``unlimited``
    :ivar unlimited: no limit at all: a container can then lock all memory of its node
    :ivar proof_mib: what a pod that is not root registers to prove it, in MiB
    """

    by: typing.Literal["machine_config", "containerd"]
    limit_gib: typing.Optional[int] = None
    unlimited: bool = False
    proof_mib: int = 1024

    @property
    def limit_bytes(self) -> typing.Optional[int]:
        """None is no limit."""
        return None if self.unlimited or self.limit_gib is None else self.limit_gib << 30

    @property
    def proof_bytes(self) -> int:
        return self.proof_mib << 20


@dataclasses.dataclass(frozen=True)
class Kubelet:
    """The settings by which the kubelet places pods: GPUs, NICs and CPUs of a pod on one NUMA node, else GPUDirect RDMA
    crosses the socket. None leaves what the kubelet has.

    :ivar topology_manager_scope: of what the policy holds: of each container, or of the whole pod
    :ivar cpu_manager_policy: static gives CPUs of its own to a container of a Guaranteed pod that asks for whole ones
    :ivar reserved_system_cpus: for the system alone, as the kernel writes them: 0-1,32
    :ivar pool_labels: of the MachineConfigPools; empty: the label that OpenShift gives its own pool of the role
    """

    topology_manager_policy: typing.Optional[
        typing.Literal["none", "best-effort", "restricted", "single-numa-node"]
    ] = None
    topology_manager_scope: typing.Optional[typing.Literal["container", "pod"]] = None
    cpu_manager_policy: typing.Optional[typing.Literal["none", "static"]] = None
    reserved_system_cpus: typing.Optional[str] = None
    pool_labels: dict[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class HostNeeds:
    """:ivar memlock: None leaves what the runtime has
    :ivar kernel_arguments: of the nodes, by a MachineConfig, or by their own boot loader before the roll of stage
        platform
    :ivar kubelet: None leaves what the kubelet has
    :ivar machine_role: of these objects: worker, or the name of the nodes' own MachineConfigPool
    :ivar gpudirect: how NICs reach the memory of GPUs: DMA-BUF, nvidia-peermem, the better one of what each node can
        do, or not at all
    """

    memlock: typing.Optional[Memlock] = None
    kernel_arguments: tuple[str, ...] = ()
    kubelet: typing.Optional[Kubelet] = None
    machine_role: str = "worker"
    gpudirect: typing.Literal["none", "auto", "dma_buf", "peermem"] = "none"

    @property
    def machine_memlock(self) -> typing.Optional[Memlock]:
        """Return the limit that a MachineConfig sets; None where none does."""
        return self.memlock if self.memlock is not None and self.memlock.by == "machine_config" else None
