# SPDX-License-Identifier: GPL-3.0-or-later

"""What hosts and the operators of their machines show of what the intent asks of them (rows S3.3, S3.4)."""

from __future__ import annotations

import dataclasses
import typing

from ..base.observed import Observed
from ..boundary.devices import RdmaDevice
from ..boundary.kubernetes import Namespaced
from ..boundary.numbers import Bytes, BytesOrAll, User
from ..boundary.words import Host
from .disruption import LabelSelector, MachinePool

#: of containerd's unit, with the limit of locked memory
DROP_IN = "/etc/systemd/system/containerd.service.d/linerate-memlock.conf"
#: by which MachineConfigPools select MachineConfigs
ROLE_LABEL = "machineconfiguration.openshift.io/role"
#: kinds that reboot the machines of their pools
HOST_KINDS = ("MachineConfig", "KubeletConfig")


@dataclasses.dataclass(frozen=True)
class MemlockProof:
    """The result of a pod that is not root, and has no IPC_LOCK, on one node.

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

    ONCE = ("fabric", "node")

    fabric: str
    node: Host
    pod: Namespaced = ""
    user: typing.Optional[User] = None
    soft: typing.Optional[BytesOrAll] = None
    hard: typing.Optional[BytesOrAll] = None
    device: RdmaDevice = ""
    asked: Bytes = 0
    registered: typing.Optional[Bytes] = None
    evidence: str = ""
    error: str = ""


#: answer of one node in a word
ObservedText = Observed[str]


@dataclasses.dataclass(frozen=True)
class ClusterPolicies:
    """The GPU operator's ClusterPolicies, and what became of the wish for nvidia-peermem.

    :ivar names: there must be one
    :ivar state: of the first one: ready, notReady, ignored
    :ivar rdma: its driver.rdma.enabled
    :ivar changed: it was switched on now; in check mode, it would be
    :ivar error: why it could not be read or changed
    """

    names: tuple[str, ...] = ()
    state: str = ""
    rdma: bool = False
    changed: bool = False
    error: str = ""


@dataclasses.dataclass(frozen=True)
class HostConfig:
    """An object that reboots machines when it is new to their MachineConfigPool: a MachineConfig, or a KubeletConfig,
    of which OpenShift makes MachineConfigs.

    :ivar kind: one of HOST_KINDS
    :ivar what: it changes on a node, in words
    :ivar labels: of a MachineConfig, by which MachineConfigPools select it
    :ivar selector: of a KubeletConfig, which selects MachineConfigPools by their labels
    :ivar generated: names of the MachineConfigs that were made of it
    :ivar refusal: why the operator did not take a KubeletConfig as it is now; empty: it did, None: it has not said
    :ivar there: the cluster has it, exactly so
    """

    kind: str
    name: str
    what: str
    labels: dict[str, str] = dataclasses.field(default_factory=dict)
    selector: typing.Optional[LabelSelector] = None
    generated: tuple[str, ...] = ()
    refusal: typing.Optional[str] = None
    there: bool = False


@dataclasses.dataclass(frozen=True)
class KubeletStatus:
    """The KubeletConfigs of the cluster, and who takes them.

    :ivar wanted: those that the intent asks for
    :ivar others: those of somebody else
    :ivar error: why it could not be read
    :ivar reached: pools of which all nodes of the inventory have what the pool wants
    """

    wanted: tuple[HostConfig, ...] = ()
    others: tuple[HostConfig, ...] = ()
    pools: tuple[MachinePool, ...] = ()
    error: str = ""
    reached: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Roll:
    """The progress of one MachineConfigPool with what is new to it.

    :ivar rolls: how often it gave its nodes another configuration, once being what was planned
    :ivar config: that all of its nodes have now
    :ivar error: why it did not come to its end
    :ivar others: nodes that are not of the inventory and have not got it, where all that are have
    """

    pool: str
    rolls: int = 0
    config: str = ""
    machines: int = 0
    updated: int = 0
    seconds: float = 0.0
    error: str = ""
    others: tuple[str, ...] = ()
