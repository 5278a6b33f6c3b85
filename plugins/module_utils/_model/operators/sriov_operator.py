# SPDX-License-Identifier: GPL-3.0-or-later

"""The SR-IOV network operator and its objects. Created by _parse/operators/sriov_operator.py, read by _check and
_render.

PCI addresses are dddd:bb:dd.f in lower case; times in seconds.
"""

from __future__ import annotations

import dataclasses
import typing

from ..boundary.devices import HardwareAddress, Interface, PciAddress, PciId
from ..boundary.kubernetes import Label, LabelValue, ObjectName, Subdomain
from ..boundary.words import Version, Word
from ..kubernetes.objects import ClusterNode, Workload
from .feature_discovery import FeatureDiscovery
from .nvidia import NicPolicy

#: measured in the finding about the operator where the cluster has none: a run may install it
NO_OPERATOR = "none"


@dataclasses.dataclass(frozen=True)
class StateVf:
    """A virtual function as the operator's config daemon reports it.

    :ivar index: index of the VF on its physical function
    :ivar driver: driver of the VF; None if it has none
    :ivar name: name of its network interface; None without one on the node
    :ivar guid: GUID of an InfiniBand VF: eight bytes in hex, last byte first, as the daemon reports it
    :ivar mtu: MTU in bytes
    """

    ONCE = ("address",)

    index: int
    address: PciAddress
    driver: typing.Optional[Word] = None
    name: typing.Optional[Interface] = None
    guid: typing.Optional[HardwareAddress] = None
    mtu: typing.Optional[int] = None


@dataclasses.dataclass(frozen=True)
class StateInterface:
    """A physical function as the operator's config daemon reports it.

    :ivar name: name of its network interface
    :ivar vendor: PCI vendor id
    :ivar device: PCI device id
    :ivar driver: driver of the physical function; None if the daemon does not report it
    :ivar link_type: IB or ETH
    :ivar mtu: MTU in bytes
    :ivar total_vfs: number of VFs that it offers
    :ivar vfs_count: number of VFs that exist
    :ivar vfs: VFs that exist, as the daemon reports them
    :ivar eswitch_mode: legacy or switchdev
    :ivar admin_state: up or down; None if an older daemon does not report it
    """

    ONCE = ("address",)

    name: Interface
    address: PciAddress
    vendor: PciId = ""
    device: PciId = ""
    driver: typing.Optional[Word] = None
    link_type: typing.Optional[Word] = None
    mtu: typing.Optional[int] = None
    total_vfs: int = 0
    vfs_count: int = 0
    vfs: tuple[StateVf, ...] = ()
    eswitch_mode: typing.Optional[Word] = None
    admin_state: typing.Optional[Word] = None


@dataclasses.dataclass(frozen=True)
class VfGroup:
    """The range of virtual functions that one policy creates on one physical function.

    :ivar policy: name of the policy
    :ivar resource: name of the resource, without its prefix
    :ivar device_type: netdevice or vfio-pci
    :ivar mtu: MTU in bytes; 0 leaves it unchanged
    :ivar rdma: whether its VFs have RDMA devices
    :ivar first: index of the first virtual function
    :ivar last: index of the last virtual function
    """

    policy: ObjectName
    resource: Word = ""
    device_type: Word = ""
    mtu: int = 0
    rdma: bool = False
    first: int = 0
    last: int = 0


@dataclasses.dataclass(frozen=True)
class WantedInterface:
    """The configuration of one physical function that the operator requests from its config daemon, with the policies
    behind it.

    :ivar vfs_count: number of VFs
    :ivar name: name of its network interface
    :ivar groups: ranges of its VFs, each created by one policy
    :ivar mtu: MTU in bytes; 0 leaves it unchanged
    :ivar link_type: IB or ETH; empty leaves it unchanged
    :ivar eswitch_mode: legacy or switchdev; empty leaves it unchanged
    :ivar external: whether another component creates the VFs (externallyManaged)
    """

    ONCE = ("address",)

    address: PciAddress
    vfs_count: int
    name: Interface = ""
    groups: tuple[VfGroup, ...] = ()
    mtu: int = 0
    link_type: Word = ""
    eswitch_mode: Word = ""
    external: bool = False

    @property
    def policies(self) -> tuple[str, ...]:
        return tuple(group.policy for group in self.groups)


@dataclasses.dataclass(frozen=True)
class NodeState:
    """A SriovNetworkNodeState (sriovnetwork.openshift.io/v1): the configuration that the operator requests for a node,
    and the report of its config daemon.

    :ivar node: name of the node
    :ivar wanted: requested configuration of the physical functions
    :ivar interfaces: report on the physical functions
    :ivar sync_status: Succeeded, Failed or InProgress; empty before the first report
    :ivar last_sync_error: error of the last sync; empty without one
    :ivar current_state: state of the drain: Idle, Draining, DrainComplete (annotation)
    :ivar desired_state: request of the daemon: Idle, Drain_Required, Reboot_Required (annotation)
    :ivar generation: generation of the object, which increases with each change of the request
    :ivar wanted_rdma_mode: shared, exclusive, or empty if not requested
    :ivar rdma_mode: mode of the node's RDMA devices and network namespaces: shared or exclusive; empty if the daemon
        does not report it
    :ivar external_drainer: whether another operator drains the node for it: NVIDIA's maintenance operator
    """

    ONCE = ("node",)

    node: Subdomain
    wanted: tuple[WantedInterface, ...] = ()
    interfaces: tuple[StateInterface, ...] = ()
    sync_status: Word = ""
    last_sync_error: str = ""
    current_state: Word = ""
    desired_state: Word = ""
    generation: int = 0
    wanted_rdma_mode: Word = ""
    rdma_mode: Word = ""
    external_drainer: bool = False


@dataclasses.dataclass(frozen=True)
class Policy:
    """A SriovNetworkNodePolicy (sriovnetwork.openshift.io/v1): the physical functions that it selects, and their
    virtual functions. The fields have the names and meanings of its spec. An empty selector field selects everything.

    :ivar resource_name: name of the extended resource, without its prefix
    :ivar vfs_count: number of virtual functions (numVfs)
    :ivar node_selector: labels of the nodes to which the policy applies
    :ivar vendor: PCI vendor id of the selected physical functions
    :ivar device: PCI device id of the selected physical functions (deviceID)
    :ivar root_devices: PCI addresses of the selected physical functions
    :ivar pf_names: netdev names, with the range of virtual functions if one is given: ens1f0#0-3
    :ivar priority: number from 0 to 99; the lowest takes precedence
    :ivar device_type: driver of the VFs: ``netdevice`` or ``vfio-pci``
    :ivar mtu: MTU in bytes; 0 leaves it unchanged
    :ivar rdma: whether the VFs get RDMA devices (isRdma)
    :ivar link_type: ``IB`` or ``ETH``; empty leaves it unchanged
    :ivar eswitch_mode: ``legacy`` or ``switchdev``; empty means ``legacy``
    :ivar external: whether the VFs are created outside of the operator (externallyManaged)
    :ivar net_filter: id of an OpenStack network, which selects physical functions
    :ivar vdpa_type: type of vDPA devices on the VFs: ``virtio`` or ``vhost``; empty for none
    :ivar exclude_topology: whether the NUMA node of the VFs is not reported to the kubelet
    :ivar intent: name of the intent of this collection that applied the policy, from its label; empty if the policy has
        no such label, or is not managed by linerate.rdma
    """

    name: ObjectName
    resource_name: str
    vfs_count: int
    node_selector: dict[str, str] = dataclasses.field(default_factory=dict)
    vendor: str = ""
    device: str = ""
    root_devices: tuple[str, ...] = ()
    pf_names: tuple[str, ...] = ()
    priority: int = 99
    device_type: str = ""
    mtu: int = 0
    rdma: bool = False
    link_type: str = ""
    eswitch_mode: str = ""
    external: bool = False
    net_filter: str = ""
    vdpa_type: str = ""
    exclude_topology: bool = False
    intent: LabelValue = ""


@dataclasses.dataclass(frozen=True)
class SupportedNic:
    """An entry of the operator's ConfigMap supported-nic-ids: a NIC that the operator supports.

    :ivar vendor: PCI vendor id
    :ivar device: PCI device id of the physical function
    :ivar virtual_device: PCI device id of the virtual functions
    """

    vendor: PciId
    device: PciId
    virtual_device: PciId


@dataclasses.dataclass(frozen=True)
class OperatorInstallation:
    """One SR-IOV network operator in the cluster.

    :ivar deployment: Deployment of the operator
    :ivar version: version from the label app.kubernetes.io/version, else RELEASE_VERSION, else the image's tag
    :ivar origin: helm, olm, nvidia-network-operator or unknown
    :ivar resource_prefix: RESOURCE_PREFIX of its container
    """

    deployment: Workload
    version: Version = ""
    origin: Word = "unknown"
    resource_prefix: Subdomain = ""


@dataclasses.dataclass(frozen=True)
class OlmObject:
    """A ClusterServiceVersion or Subscription of an operator.

    :ivar kind: ClusterServiceVersion or Subscription
    :ivar phase: phase of a ClusterServiceVersion: Succeeded, Failed, Pending, Installing...; state of a Subscription:
        AtLatestKnown, UpgradePending...
    :ivar message: reason why the object has not progressed, from its message or its conditions
    :ivar version: version of a ClusterServiceVersion; name of the ClusterServiceVersion that a Subscription installed
    :ivar package: package of a Subscription; empty for a ClusterServiceVersion
    :ivar ours: whether it is a Subscription that a run created and that no other tool owns
    """

    kind: Word
    name: ObjectName
    namespace: Label
    phase: Word = ""
    message: str = ""
    version: Version = ""
    package: Version = ""
    ours: bool = False


@dataclasses.dataclass(frozen=True)
class OperatorFacts:
    """The state of the SR-IOV network operator and of the objects that it depends on, as the module sriov_operator_info
    found them.

    :ivar crds: names of the established custom resource definitions
    :ivar installations: SR-IOV network operators in the cluster; exactly one is expected
    :ivar configs: namespaces that have a SriovOperatorConfig named default
    :ivar nodes: nodes of the cluster
    :ivar states: desired configuration of each node, and the report of its config daemon
    :ivar daemon: the config daemon's DaemonSet in the operator's namespace, None if absent
    :ivar policies: SriovNetworkNodePolicies in the operator's namespace; the operator ignores those in other namespaces
    :ivar supported_nics: entries of the operator's ConfigMap supported-nic-ids; None if it does not exist
    :ivar discovery: workers of node feature discovery; None if not read, since no label is missing
    :ivar olm: ClusterServiceVersions and Subscriptions of the operator in its namespace
    :ivar multus: DaemonSets whose names or images indicate multus
    :ivar multus_pods: number of pods in the operator's namespace with multus' network-status, which proves that multus
        works, however it was installed
    :ivar attachments: number of NetworkAttachmentDefinitions, None if the API server does not serve the kind
    :ivar nic_policies: NicClusterPolicies of NVIDIA's network operator
    :ivar troubles: pods in the operator's namespace that are not ready, each with its cause
    :ivar errors: texts that name each failed read and its reason
    :ivar namespace: namespace of the operator, or the usual one if it is not installed
    :ivar says: error of the operator's last failed sync, from its log; empty if it was not read. It is read only if the
        operator runs and has not created a config daemon
    """

    crds: tuple[str, ...]
    installations: tuple[OperatorInstallation, ...]
    configs: tuple[str, ...]
    nodes: tuple[ClusterNode, ...]
    states: tuple[NodeState, ...] = ()
    daemon: typing.Optional[Workload] = None
    policies: tuple[Policy, ...] = ()
    supported_nics: typing.Optional[tuple[SupportedNic, ...]] = None
    discovery: typing.Optional[tuple[FeatureDiscovery, ...]] = None
    olm: tuple[OlmObject, ...] = ()
    multus: tuple[Workload, ...] = ()
    multus_pods: int = 0
    attachments: typing.Optional[int] = None
    nic_policies: tuple[NicPolicy, ...] = ()
    troubles: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    namespace: str = ""
    says: str = ""
