# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection linerate.rdma: no other code may import this.

"""What a job needs of the hosts beside the network (rows S3.3, S3.4): locked memory, kernel arguments, a way for NICs to reach the memory of GPUs."""

from __future__ import annotations

import dataclasses
import typing

#: of containerd's unit, with the limit of locked memory
DROP_IN = "/etc/systemd/system/containerd.service.d/linerate-memlock.conf"


@dataclasses.dataclass(frozen=True)
class Memlock:
    """How much memory a container may lock; RDMA registers what it locks.

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
class HostNeeds:
    """:ivar memlock: None leaves what the runtime has
    :ivar kernel_arguments: of the nodes, by a MachineConfig
    :ivar machine_role: of the MachineConfigs: worker, or the name of the nodes' own MachineConfigPool
    :ivar gpudirect: how NICs reach the memory of GPUs: DMA-BUF, nvidia-peermem, the better one of what each node can do, or not at all
    """

    memlock: typing.Optional[Memlock] = None
    kernel_arguments: typing.Tuple[str, ...] = ()
    machine_role: str = "worker"
    gpudirect: typing.Literal["none", "auto", "dma_buf", "peermem"] = "none"


@dataclasses.dataclass(frozen=True)
class MemlockProof:
    """What a pod that is not root, and has no IPC_LOCK, found on one node.

    :ivar pod: namespace/name; empty where none was made
    :ivar user: numeric id that it ran as
    :ivar soft: limit of locked memory in bytes; -1 is no limit, None is not told
    :ivar hard: likewise
    :ivar device: RDMA device on which it registered
    :ivar asked: bytes to register
    :ivar registered: bytes that were registered; 0 when that failed, None when it was not tried
    :ivar evidence: the line that decided
    :ivar error: why there is no answer
    """

    fabric: str
    node: str
    pod: str = ""
    user: typing.Optional[int] = None
    soft: typing.Optional[int] = None
    hard: typing.Optional[int] = None
    device: str = ""
    asked: int = 0
    registered: typing.Optional[int] = None
    evidence: str = ""
    error: str = ""


@dataclasses.dataclass(frozen=True)
class ObservedText:
    """What a node answered in a word, or why there is no answer."""

    value: typing.Optional[str] = None
    error: typing.Optional[str] = None


@dataclasses.dataclass(frozen=True)
class ClusterPolicies:
    """The GPU operator's ClusterPolicies, and what became of the wish for nvidia-peermem.

    :ivar names: there must be one
    :ivar state: of the first one: ready, notReady, ignored
    :ivar rdma: its driver.rdma.enabled
    :ivar changed: it was switched on now; in check mode, it would be
    :ivar error: why it could not be read or changed
    """

    names: typing.Tuple[str, ...] = ()
    state: str = ""
    rdma: bool = False
    changed: bool = False
    error: str = ""


@dataclasses.dataclass(frozen=True)
class MachineConfig:
    """A MachineConfig that is to be applied.

    :ivar labels: by which MachineConfigPools select it
    :ivar what: it changes on a node, in words
    :ivar there: the cluster has it, exactly so
    """

    name: str
    labels: typing.Dict[str, str]
    what: str
    there: bool = False


@dataclasses.dataclass(frozen=True)
class Roll:
    """How one MachineConfigPool took its new MachineConfigs.

    :ivar rolls: how often it gave its nodes another configuration, once being what was planned
    :ivar config: that all of its nodes have now
    :ivar error: why it did not come to its end
    """

    pool: str
    rolls: int = 0
    config: str = ""
    machines: int = 0
    updated: int = 0
    seconds: float = 0.0
    error: str = ""
