# SPDX-License-Identifier: GPL-3.0-or-later

"""The state of the host settings that the intent requires, on the hosts and in the operators that manage them."""

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
#: state of that file: before the name of the intent that wrote it, and of a file without such a name that the intent
#: does not ask for
OF_INTENT, UNNAMED = "of intent ", "without an intent"
#: of CRI-O, with the limit of locked memory. CRI-O reads all files of its folder in the order of their names, and a
#: later default_ulimits replaces an earlier one as a whole
CRIO_FILE = "/etc/crio/crio.conf.d/99-linerate-memlock.conf"
#: by which MachineConfigPools select MachineConfigs
ROLE_LABEL = "machineconfiguration.openshift.io/role"
#: kinds that reboot the machines of their pools
HOST_KINDS = ("MachineConfig", "KubeletConfig")


@dataclasses.dataclass(frozen=True)
class ContainerdLimit:
    """The limit of locked memory of containerd on a node. Each limit is a number of bytes or ``infinity``.

    :ivar pid: ID of its main process; 0 if it does not run
    :ivar loaded: limit of its unit, from the files that systemd has loaded
    :ivar running: limit of its process, which its containers inherit; that of the unit if it does not run
    :ivar needs_reload: whether a file of the unit is newer than what systemd has loaded
    """

    pid: int
    loaded: str
    running: str
    needs_reload: bool = False

    def is_stale(self, wanted: str) -> bool:
        """Return whether a restart of containerd gives its process the wanted limit: the process runs with another
        limit, and the loaded unit has the wanted one. A newer file of the unit alone is no reason for a restart,
        because it may change something else.

        :param wanted: limit that the drop-in of the collection sets
        """
        return self.running != wanted and self.loaded == wanted

    def may_be_stale(self, wanted: str) -> bool:
        """Return whether a restart of containerd may give its process the wanted limit: as ``is_stale``, or a file of
        the unit is newer than what systemd has loaded.

        :param wanted: limit that the drop-in of the collection sets
        """
        return self.running != wanted and (self.loaded == wanted or self.needs_reload)


@dataclasses.dataclass(frozen=True)
class MemlockProof:
    """The result of the memory registration by a non-root pod without IPC_LOCK, on one node.

    :ivar fabric: fabric whose RDMA device was used
    :ivar node: name of the node
    :ivar pod: namespace/name; empty if none was created
    :ivar user: numeric id that it ran as
    :ivar soft: soft limit of locked memory in bytes; -1 is no limit, None is unknown
    :ivar hard: hard limit of locked memory in bytes; -1 is no limit, None is unknown
    :ivar device: RDMA device on which it registered memory
    :ivar asked: number of bytes to register
    :ivar registered: number of registered bytes; 0 if it failed, None if it was not tried
    :ivar evidence: the decisive line of the output
    :ivar error: why there is no result; empty if there is one
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
class DriverOfNodes:
    """An NVIDIADriver, by which the GPU operator configures the driver of GPUs on some nodes.

    :ivar state: its state: ready, notReady, disabled; empty if it has none yet
    :ivar rdma: value of spec.rdma.enabled
    :ivar nodes: nodes that its nodeSelector selects; None if the nodes were not read
    """

    name: str
    state: str = ""
    rdma: bool = False
    nodes: typing.Optional[tuple[str, ...]] = None


@dataclasses.dataclass(frozen=True)
class ClusterPolicies:
    """The GPU operator's ClusterPolicies, and the result of enabling nvidia-peermem.

    :ivar names: names of the ClusterPolicies; exactly one is expected
    :ivar state: state of the first one: ready, notReady, ignored
    :ivar rdma: value of driver.rdma.enabled in the ClusterPolicy
    :ivar changed: whether this call enabled it; in check mode, whether it would
    :ivar error: why it could not be read or changed
    :ivar delegated: whether the ClusterPolicy leaves the driver to objects of kind NVIDIADriver (useNvidiaDriverCRD)
    :ivar drivers: these objects
    """

    names: tuple[str, ...] = ()
    state: str = ""
    rdma: bool = False
    changed: bool = False
    error: str = ""
    delegated: bool = False
    drivers: tuple[DriverOfNodes, ...] = ()


@dataclasses.dataclass(frozen=True)
class HostConfig:
    """An object that reboots the machines of a MachineConfigPool when it is added or changed: a MachineConfig, or a
    KubeletConfig, from which OpenShift generates MachineConfigs.

    :ivar kind: MachineConfig or KubeletConfig (HOST_KINDS)
    :ivar name: name of the object
    :ivar what: change on a node, in words
    :ivar labels: labels of a MachineConfig, by which MachineConfigPools select it; empty for a KubeletConfig
    :ivar selector: selector by which a KubeletConfig selects MachineConfigPools
    :ivar generated: names of the MachineConfigs generated from it
    :ivar refusal: why the operator rejected the current KubeletConfig; empty if it accepted it, None if it has not
        reported
    :ivar there: whether the cluster has the object with exactly this content
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
    """The KubeletConfigs of the cluster, and the pools that use them.

    :ivar wanted: KubeletConfigs that the intent requires
    :ivar others: other KubeletConfigs
    :ivar pools: MachineConfigPools of the cluster
    :ivar error: why they could not be read
    :ivar reached: pools of which all inventory nodes have the pool's target configuration
    """

    wanted: tuple[HostConfig, ...] = ()
    others: tuple[HostConfig, ...] = ()
    pools: tuple[MachinePool, ...] = ()
    error: str = ""
    reached: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Roll:
    """The progress of one MachineConfigPool in bringing its machines to a new configuration.

    :ivar pool: name of the pool
    :ivar rolls: number of configurations that its nodes got one after the other; 1 if the roll went as planned
    :ivar config: name of the target configuration of the pool
    :ivar machines: number of its nodes
    :ivar updated: number of nodes that have the new configuration
    :ivar seconds: duration of the roll in seconds
    :ivar error: why it did not complete
    :ivar others: nodes outside of the inventory that do not have the configuration yet, if all inventory nodes have it
    """

    pool: str
    rolls: int = 0
    config: str = ""
    machines: int = 0
    updated: int = 0
    seconds: float = 0.0
    error: str = ""
    others: tuple[str, ...] = ()
