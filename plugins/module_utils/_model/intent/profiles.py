# SPDX-License-Identifier: GPL-3.0-or-later

"""The table of the profiles of a fabric, one row each, with the properties that stages use. Stages use these properties
instead of comparing profile names.

The renderers of a profile are in _render/network/network.py (RENDERERS), its rules in
_check/network/lint/plain_network.py (RULES).
"""

from __future__ import annotations

import dataclasses
import typing

from .comparison import Kind
from .intent import ClusterIntent, Fabric
from .networks import VF_SETTINGS

#: kinds of attachments whose pods share one interface of the node
MACVLAN, IPOIB, HOST_DEVICE, PLAIN = (
    "MacvlanNetwork",
    "IPoIBNetwork",
    "HostDeviceNetwork",
    "NetworkAttachmentDefinition",
)
_DEFINITIONS = {
    PLAIN: "network-attachment-definitions.k8s.cni.cncf.io",
    "SriovIBNetwork": "sriovibnetworks.sriovnetwork.openshift.io",
    "SriovNetwork": "sriovnetworks.sriovnetwork.openshift.io",
    "SriovNetworkNodePolicy": "sriovnetworknodepolicies.sriovnetwork.openshift.io",
    "SriovNetworkNodeState": "sriovnetworknodestates.sriovnetwork.openshift.io",
    "SriovOperatorConfig": "sriovoperatorconfigs.sriovnetwork.openshift.io",
    "NicClusterPolicy": "nicclusterpolicies.mellanox.com",
    MACVLAN: "macvlannetworks.mellanox.com",
    IPOIB: "ipoibnetworks.mellanox.com",
    HOST_DEVICE: "hostdevicenetworks.mellanox.com",
}
#: the only NicClusterPolicy that NVIDIA's network operator obeys
NIC_POLICY = "nic-cluster-policy"
#: pods of a node on a network that they share, unless the intent gives another number (row S3.1)
SHARING_PODS = 63


@dataclasses.dataclass(frozen=True)
class Traits:
    """The properties of one profile.

    :ivar kinds: kind of the network for a job, with RDMA and without, for comparisons of networks
    :ivar link: link layer of its HCAs; None: InfiniBand if ``select.subnet_manager`` is set, else Ethernet
    :ivar members: whether HCAs of the nodes belong to the fabric; they do not for the pod network
    :ivar functions: whether the SR-IOV network operator creates virtual functions for it
    :ivar shared: whether many pods share one interface of the node, which ``select.netdev`` names
    :ivar resource: whether its pods request a resource of a device plugin
    :ivar prefix: prefix of that resource; empty for ``rdma_cluster.resource_prefix``
    :ivar rdma: whether its pods get an RDMA device, unless the fabric has ``rdma: false``
    :ivar keys: keys of the fabric and its network that apply to this profile, in addition to those of all profiles
    :ivar predicates: conditions for readiness, in this order (_analysis/readiness/sriov.py)
    """

    kinds: tuple[Kind, Kind]
    link: typing.Optional[typing.Literal["InfiniBand", "Ethernet"]] = None
    members: bool = True
    functions: bool = False
    shared: bool = False
    resource: typing.Literal["needed", "possible", "none"] = "none"
    prefix: str = ""
    rdma: bool = False
    keys: tuple[str, ...] = ()
    predicates: tuple[str, ...] = ("objects", "attachment", "pool", "resource", "ready")


_VF = ("link_state", "meta_plugins", "mtu")
PROFILES: dict[str, Traits] = {
    "sriov_infiniband": Traits(
        ("sriov_rdma", "sriov_rdma"),
        "InfiniBand",
        functions=True,
        resource="needed",
        rdma=True,
        keys=_VF,
        predicates=("virtual_functions",),
    ),
    "sriov_ethernet": Traits(
        ("sriov_rdma", "sriov"),
        "Ethernet",
        functions=True,
        resource="needed",
        rdma=True,
        keys=(*_VF, *VF_SETTINGS),
        predicates=("virtual_functions",),
    ),
    # MacvlanNetwork or IPoIBNetwork, and the devices by the plugin that shares them
    "rdma_shared": Traits(
        ("rdma_shared", "macvlan"),
        shared=True,
        resource="needed",
        prefix="rdma",
        rdma=True,
        keys=("mode", "meta_plugins", "mtu", "pods_per_node"),
    ),
    # a whole interface by its name, or one of a pool of functions
    "host_device": Traits(
        ("sriov_rdma", "vnic"), resource="possible", prefix="nvidia.com", rdma=True, keys=("meta_plugins",)
    ),
    "macvlan": Traits(
        ("macvlan", "macvlan"), "Ethernet", shared=True, keys=("mode", "meta_plugins", "mtu", "pods_per_node")
    ),
    "ipoib": Traits(("ipoib", "ipoib"), "InfiniBand", shared=True, keys=("pods_per_node",)),
    # the baseline of each comparison: nothing is made, pods have it anyway
    "pod_network": Traits(("pod_network", "pod_network"), "Ethernet", members=False, predicates=("ready",)),
}


#: profiles that may stand on the same HCAs: neither takes them from the other
_TOGETHER = tuple(
    map(
        frozenset,
        (
            ("macvlan",),
            ("macvlan", "sriov_ethernet"),
            ("macvlan", "rdma_shared"),
            ("ipoib",),
            ("ipoib", "sriov_infiniband"),
            ("ipoib", "rdma_shared"),
            ("rdma_shared", "sriov_ethernet"),
            ("rdma_shared", "sriov_infiniband"),
        ),
    )
)


def find_traits(fabric: Fabric) -> Traits:
    """Return the properties of the fabric's profile."""
    return PROFILES[fabric.profile]


def is_infiniband(fabric: Fabric) -> bool:
    """Return whether the fabric is InfiniBand, where the subnet manager determines its members."""
    link = find_traits(fabric).link
    return link == "InfiniBand" or (link is None and bool(fabric.select.subnet_manager))


def may_share(one: Fabric, other: Fabric) -> bool:
    """Return whether two fabrics may select the same HCAs. This depends on their profiles, and on the macvlan mode
    ``passthru``, which excludes sharing.
    """
    modes = (one.network.mode, other.network.mode)
    return frozenset((one.profile, other.profile)) in _TOGETHER and "passthru" not in modes


def owns_rdma(fabric: Fabric) -> bool:
    """Return whether each interface that a pod gets from the fabric belongs to a function with an RDMA device, which
    the pod gets with it. This depends on the profile and on ``rdma`` of the fabric; on InfiniBand, ``rdma`` is ignored.
    """
    return find_traits(fabric).rdma and (fabric.rdma or is_infiniband(fabric))


def isolates_rdma(fabric: Fabric) -> bool:
    """Return whether the CNI plugin ``rdma`` moves the RDMA device into the pod, so that no other pod can access it."""
    return any(plugin.get("type") == "rdma" for plugin in fabric.network.meta_plugins)


def carries_rdma(fabric: Fabric) -> bool:
    """Return whether the pods of the fabric get RDMA devices."""
    return owns_rdma(fabric) or (find_traits(fabric).rdma and isolates_rdma(fabric))


def carries_roce(fabric: Fabric) -> bool:
    """Return whether the fabric is RoCE: Ethernet, with RDMA devices for its pods."""
    return not is_infiniband(fabric) and carries_rdma(fabric)


def is_interface_moved(fabric: Fabric) -> bool:
    """Return whether a pod of the fabric gets a whole physical interface of the node. The node does not have the
    interface while the pod runs.
    """
    its = find_traits(fabric)
    return its.members and not its.functions and not its.shared


def find_kind(fabric: Fabric) -> Kind:
    """Return the kind of network that a job gets from the fabric, such as ``macvlan``. Networks are compared by their
    kinds.
    """
    with_rdma, without = find_traits(fabric).kinds
    return with_rdma if carries_rdma(fabric) else without


def attachment_kind(fabric: Fabric) -> str:
    """Return the kind of Kubernetes object that provides the pods' interface to the fabric. Return an empty text if the
    pods need none.
    """
    if fabric.profile == "rdma_shared":
        return IPOIB if is_infiniband(fabric) else MACVLAN
    if fabric.profile == "host_device":
        return HOST_DEVICE if fabric.resource_name else PLAIN
    fixed = {"sriov_infiniband": "SriovIBNetwork", "sriov_ethernet": "SriovNetwork", "macvlan": PLAIN, "ipoib": IPOIB}
    return fixed.get(fabric.profile, "")


def attachment_name(fabric: Fabric) -> str:
    """Return the value for the pods' network annotation, namespace/name. Return an empty text if the pods need none."""
    return f"{fabric.network.namespace}/{fabric.network.name}" if attachment_kind(fabric) else ""


def resource_of(fabric: Fabric, cluster: ClusterIntent) -> str:
    """Return the extended resource that the pods request, such as openshift.io/mlx_compute, or an empty text if there
    is none.

    :param cluster: settings of the intent that all fabrics share
    """
    return (
        f"{find_traits(fabric).prefix or cluster.resource_prefix}/{fabric.resource_name}"
        if fabric.resource_name
        else ""
    )


def count_pods_on_a_node(fabric: Fabric) -> int:
    """Return the maximum number of pods of one node on the network at the same time. It is also the number of their
    addresses.
    """
    if find_traits(fabric).functions:
        return fabric.select.hcas_per_node * fabric.virtual_functions
    if find_traits(fabric).shared:
        return fabric.pods_per_node or SHARING_PODS
    return fabric.select.hcas_per_node


def list_rails(fabric: Fabric) -> range:
    """Return the rail numbers of the fabric, one for each HCA of a node. The pod network has one rail."""
    return range(max(1, fabric.select.hcas_per_node))


def list_definitions(fabric: Fabric) -> tuple[str, ...]:
    """Return the names of the custom resource definitions that the fabric's objects need."""
    kinds = [attachment_kind(fabric)] if attachment_kind(fabric) else []
    kinds += (
        ["SriovNetworkNodePolicy", "SriovNetworkNodeState", "SriovOperatorConfig"]
        if find_traits(fabric).functions
        else []
    )
    kinds += [PLAIN] if kinds else []
    kinds += ["NicClusterPolicy"] if needs_nic_policy(fabric) else []
    names = [_DEFINITIONS[kind] for kind in kinds]
    if fabric.ipam and fabric.ipam.type == "whereabouts":
        names.append("ippools.whereabouts.cni.cncf.io")
    return (*names, *([f"{fabric.pool.kind.lower()}s.nv-ipam.nvidia.com"] if fabric.pool else []))


def list_reporting_objects(fabric: Fabric) -> tuple[str, ...]:
    """Return the kind and name of the objects whose status shows the progress of NVIDIA's network operator, one text
    each: the NicClusterPolicy and the network. Return an empty tuple if the fabric does not need the operator.
    """
    return (
        (f"NicClusterPolicy {NIC_POLICY}", f"{attachment_kind(fabric)} {fabric.network.name}")
        if needs_nic_policy(fabric)
        else ()
    )


def needs_nic_policy(fabric: Fabric) -> bool:
    """Return whether the fabric needs NVIDIA's network operator, which runs the components of a NicClusterPolicy on the
    nodes.
    """
    return attachment_kind(fabric) in (MACVLAN, IPOIB, HOST_DEVICE)
