# SPDX-License-Identifier: GPL-3.0-or-later

"""The host settings of the intent that are not part of the network: locked memory, kernel arguments, pod placement by
the kubelet, and access of NICs to GPU memory.
"""

from __future__ import annotations

import dataclasses
import typing


@dataclasses.dataclass(frozen=True)
class Memlock:
    """The limit of memory that a container may lock. RDMA locks the memory that it registers.

    :ivar by: how the limit is set: by a MachineConfig for CRI-O (OpenShift), or by a drop-in of containerd's unit on
        each node
    :ivar limit_gib: limit in GiB; None only with ``unlimited``
    :ivar unlimited: whether there is no limit at all, so that a container can lock all memory of its node
    :ivar proof_mib: amount of memory that a non-root pod registers as proof, in MiB
    :ivar ulimits: further entries of CRI-O's ``default_ulimits`` (``nofile=1048576:1048576``), with ``machine_config``
        only
    """

    by: typing.Literal["machine_config", "containerd"]
    limit_gib: typing.Optional[int] = None
    unlimited: bool = False
    proof_mib: int = 1024
    ulimits: tuple[str, ...] = ()

    @property
    def limit_bytes(self) -> typing.Optional[int]:
        """Return the limit of locked memory in bytes, or None for no limit."""
        return None if self.unlimited or self.limit_gib is None else self.limit_gib << 30

    @property
    def proof_bytes(self) -> int:
        return self.proof_mib << 20


@dataclasses.dataclass(frozen=True)
class Kubelet:
    """The kubelet settings that place GPUs, NICs and CPUs of a pod on one NUMA node. Otherwise GPUDirect RDMA crosses
    the socket. None leaves the kubelet's setting unchanged.

    :ivar topology_manager_policy: policy of the kubelet's topology manager
    :ivar topology_manager_scope: whether the policy applies to each container or to the whole pod
    :ivar cpu_manager_policy: static gives exclusive CPUs to a container of a Guaranteed pod that requests whole CPUs
    :ivar reserved_system_cpus: CPUs reserved for the system, in the kernel's list format: 0-1,32
    :ivar pool_labels: labels of the MachineConfigPools; empty for the label that OpenShift gives its own pool of the
        role
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
    """The host settings of the intent that are not part of the network.

    :ivar memlock: limit of locked memory; None leaves the setting of the container runtime unchanged
    :ivar kernel_arguments: kernel arguments of the nodes, set by a MachineConfig, or in the boot loader of each node
        before the roll of stage platform
    :ivar kubelet: kubelet settings; None leaves them unchanged
    :ivar machine_role: role of the MachineConfig and KubeletConfig objects: worker, or the name of the nodes' own
        MachineConfigPool
    :ivar gpudirect: required access of NICs to GPU memory: ``dma_buf``, ``peermem``, ``auto`` for the better one that
        each node supports, or ``none``
    """

    memlock: typing.Optional[Memlock] = None
    kernel_arguments: tuple[str, ...] = ()
    kubelet: typing.Optional[Kubelet] = None
    machine_role: str = "worker"
    gpudirect: typing.Literal["none", "auto", "dma_buf", "peermem"] = "none"

    @property
    def machine_memlock(self) -> typing.Optional[Memlock]:
        """Return the limit of locked memory if a MachineConfig sets it, else None."""
        return self.memlock if self.memlock is not None and self.memlock.by == "machine_config" else None
