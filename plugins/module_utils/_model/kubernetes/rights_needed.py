# SPDX-License-Identifier: GPL-3.0-or-later

"""The rights on the API server that a run needs, by set of permissions. The files of docs/rbac are generated from this
module, and stage validate queries these rights.

A right has an object name if the collection knows it in advance. ``create`` has a name too if the object is applied:
the API server knows the name of a server-side apply when it authorizes it [kubernetes
staging/src/k8s.io/apiserver/pkg/endpoints/handlers/patch.go createAuthorizerAttributes].
"""

from __future__ import annotations

import dataclasses
import typing

from ..intent.intent import Fabric, Intent
from ..intent.profiles import NIC_POLICY, PLAIN, attachment_kind, carries_rdma, find_traits, needs_nic_policy
from ..node.bios import BiosIntent
from ..node.firmware import FirmwareIntent
from ..node.node_tuning import NAMESPACE as TUNING_NAMESPACE
from ..node.node_tuning import TUNED
from ..operators.operators import TABLE
from ..run.lease import NAME as LEASE
from ..run.lease import NAMESPACE as LEASE_NAMESPACE
from . import powers
from .admission import ACCOUNT
from .measuring import NAMESPACE as MEASURING
from .measuring import POLICY
from .observers import DAEMON_SET
from .own_kinds import JOBS, POOLS
from .rights import ANYTHING, Right

_NETWORKS = ("NicClusterPolicy", "MacvlanNetwork", "IPoIBNetwork", "HostDeviceNetwork")
#: claims of pods for devices (Dynamic Resource Allocation)
_CLAIMS = ("ResourceClaim", "ResourceClaimTemplate")
#: what remediates nodes, and the Machines of its selectors
_HEALTH_CHECKS = ("MachineHealthCheck.machine.openshift.io", "MachineHealthCheck.cluster.x-k8s.io", "NodeHealthCheck")
_MACHINES = ("Machine.machine.openshift.io", "Machine.cluster.x-k8s.io")
#: what server-side apply of an object takes that need not be there yet
_APPLY = ("get", "create", "patch")
#: the ClusterPolicy, as the chart of the GPU operator and its guide for OpenShift name it; a cluster has one
_CLUSTER_POLICIES = ("cluster-policy", "gpu-cluster-policy")
#: that OLM is read by
_OLM = ("CatalogSource", "ClusterServiceVersion", "InstallPlan", "OperatorGroup", "Subscription")

#: who reads what; in all namespaces, unless another is named
_READ: tuple[tuple[str, str, str], ...] = (
    *(
        ("operators", "list", kind)
        for kind in ("CustomResourceDefinition", "DaemonSet", "Deployment", "Node", "Pod", "SriovOperatorConfig")
    ),
    # a tenant can make a Deployment of any name; these tell which of them an admin gave rights in the cluster
    ("operators", "list", "ClusterRoleBinding"),
    *(
        ("operators", "list", kind)
        for kind in (
            "ClusterPolicy",
            "ClusterServiceVersion",
            "JobSetOperator",
            "Kueue",
            "NodeFeatureDiscovery",
            "Subscription",
        )
    ),
    *(
        ("operators", "list", kind)
        for kind in (
            "Image.config.openshift.io",
            "ImageContentSourcePolicy",
            "ImageDigestMirrorSet",
            "ImageTagMirrorSet",
        )
    ),
    *(
        ("network", verb, kind)
        for verb in ("list", "watch")
        for kind in ("NetworkAttachmentDefinition", "SriovNetworkNodePolicy", "SriovNetworkNodeState")
    ),
    *(
        ("network", "list", kind)
        for kind in (
            "ClusterVersion",
            "IPPool.whereabouts.cni.cncf.io",
            *POOLS,
            "MachineConfigPool",
            "Network.config.openshift.io",
        )
    ),
    *(
        ("network", "list", kind)
        for kind in ("PodDisruptionBudget", "ServiceCIDR", "SriovIBNetwork", "SriovNetwork", "SriovNetworkPoolConfig")
    ),
    *(
        ("network", "watch", kind)
        for kind in ("MachineConfigPool", "Node", "PodDisruptionBudget", "Pod", "SriovNetworkPoolConfig")
    ),
    *(("operators", "list", kind) for kind in ("NicNodePolicy", "NVIDIADriver")),
    *(("platform", "list", kind) for kind in ("MaintenanceOperatorConfig", "NicDevice")),
    # where another operator sets the number of virtual functions
    ("network", "list", "NicConfigurationTemplate"),
    ("network", "get", "Namespace"),
    *(("network", verb, kind) for verb in ("list", "watch") for kind in _NETWORKS),
    *(("network", "watch", kind) for kind in POOLS),
    # a KubeletConfig of an earlier intent is found by its label
    *(("teardown", "list", kind) for kind in ("KubeletConfig", "Namespace", "Tuned", *_CLAIMS, *JOBS)),
)


def list_needed_rights(intent: Intent, operator: str, olm: bool = False) -> tuple[Right, ...]:
    """Return all rights that the stages and the teardown need for this intent. The rights for installing operators by
    Helm are not included, since Helm needs almost all rights.

    :param operator: namespace of the SR-IOV network operator
    :param olm: whether OLM is to install operators
    """
    parts = {
        powers.LOOK: [*_list_read_rights(intent, operator), *(_look_at_olm() if olm else ())],
        powers.CHANGE: _list_lease_rights(),
        powers.SRIOV: _list_sriov_rights(intent, operator),
        powers.NVIDIA: _list_nvidia_rights(intent),
        powers.ATTACHMENTS: _list_attachment_rights(intent),
        powers.POOLS: _list_pools(intent),
        powers.NAMESPACES: _list_namespace_rights(intent),
        powers.MEASURING: _list_measuring_rights(intent),
        powers.JOBS: _list_job_rights(intent),
        powers.MACHINES: _list_machine_rights(intent),
        powers.PEERMEM: _list_peermem_rights(intent),
        powers.TUNING: _list_tuning_rights(intent),
        powers.ROLL: _list_roll_rights(intent) if _may_roll_nodes(intent) else (),
        powers.FIRMWARE: _look_at_firmware() if _may_roll_nodes(intent) else (),
        powers.OLM: _install_by_olm() if olm else (),
        powers.OLM_REMOVAL: _remove_by_olm() if olm else (),
    }
    return tuple(
        dict.fromkeys(dataclasses.replace(right, power=power) for power, rights in parts.items() for right in rights)
    )


def of_observers(namespace: str) -> tuple[Right, ...]:
    """Return the rights to start and remove observers in a namespace that an administrator has prepared. The rights of
    the sets ``look`` and ``change`` are not included.

    :param namespace: namespace of the observers
    """
    named = [("DaemonSet", verb) for verb in (*_APPLY, "delete")] + [
        ("ServiceAccount", verb) for verb in (*_APPLY, "delete")
    ]
    rights = [
        *(Right("observers", verb, kind, namespace, name=DAEMON_SET) for kind, verb in named),
        *(
            Right("observers", verb, kind, namespace)
            for kind in ("DaemonSet", "Pod", "Event")
            for verb in ("list", "watch")
        ),
        # a kubelet may give a pod of its node a finalizer, which is taken off
        Right("observers", "patch", "Pod", namespace),
        # commands run over a websocket, which is a GET; newer API servers ask for create as well
        *(Right("observers", verb, "Pod", namespace, "exec") for verb in ("get", "create")),
    ]
    return tuple(dataclasses.replace(right, power=powers.OBSERVERS) for right in rights)


def needed_powers(intent: Intent) -> tuple[powers.Power, ...]:
    """Return the sets of permissions that the stages need for this intent on any cluster. Sets that depend on variables
    or on the cluster are not included.
    """
    return powers.get_powers(
        {right.power for right in list_needed_rights(intent, "")} - {powers.JOBS, powers.NAMESPACES}
    )


def _list_read_rights(intent: Intent, operator: str) -> typing.Iterator[Right]:
    yield from (Right(*row) for row in _READ)
    yield Right("network", "list", "Service", "default")
    yield Right("operators", "get", "ConfigMap", operator, name="supported-nic-ids")
    # what a run that was killed has left of who admits pods on OpenShift; elsewhere there is no such kind
    yield Right("teardown", "get", "SecurityContextConstraints", name=ACCOUNT)
    # the config daemon says only in its log why a sync fails
    yield Right("network", "get", "Pod", operator, "log")
    if intent.cluster.disruption == "reboot":
        # what would remediate a node that reboots, whoever reboots it
        yield from (Right("network", "list", kind) for kind in (*_HEALTH_CHECKS, *_MACHINES))
    if intent.cluster.tuning.set:
        yield from (Right("tuning", "list", kind) for kind in ("Tuned", "Profile", "PerformanceProfile"))
    if intent.cluster.host.kubelet is not None:
        yield Right("network", "list", "KubeletConfig")


def _look_at_olm() -> typing.Iterator[Right]:
    """Yield the rights to read OLM's objects. They apply to all namespaces, since the namespaces of the operators may
    not exist yet.
    """
    yield from (Right("operators", verb, kind) for verb in ("list", "watch") for kind in _OLM)
    yield from (Right("operators", "list", kind) for kind in ("EndpointSlice", "PackageManifest"))
    yield Right("teardown", "list", "Operator")


def _list_lease_rights() -> typing.Iterator[Right]:
    # it is made by a POST, whose name the API server does not know
    yield Right("network", "create", "Lease", LEASE_NAMESPACE)
    yield from (Right("network", verb, "Lease", LEASE_NAMESPACE, name=LEASE) for verb in ("get", "update", "delete"))


def _list_sriov_rights(intent: Intent, operator: str) -> typing.Iterator[Right]:
    kinds = [
        kind
        for fabric in intent.fabrics
        if find_traits(fabric).functions
        for kind in ("SriovNetworkNodePolicy", attachment_kind(fabric))
    ]
    for kind in [*dict.fromkeys(kinds), *(["SriovNetworkPoolConfig"] if intent.cluster.node_pool is not None else [])]:
        yield from _list_object_rights(kind, operator)


def _list_nvidia_rights(intent: Intent) -> typing.Iterator[Right]:
    for fabric in intent.fabrics:
        if attachment_kind(fabric) in _NETWORKS:
            yield from _list_object_rights(attachment_kind(fabric))
        if needs_nic_policy(fabric):
            yield from _list_object_rights("NicClusterPolicy", name=NIC_POLICY)


def _list_attachment_rights(intent: Intent) -> typing.Iterator[Right]:
    for fabric in intent.fabrics:
        if attachment_kind(fabric) == PLAIN:
            yield from _list_object_rights(PLAIN, fabric.network.namespace)


def _list_pools(intent: Intent) -> typing.Iterator[Right]:
    for fabric in intent.fabrics:
        if fabric.pool is not None and fabric.pool.create:
            yield from _list_object_rights(f"{fabric.pool.kind}.nv-ipam.nvidia.com", fabric.pool.namespace)


def _list_namespace_rights(intent: Intent) -> typing.Iterator[Right]:
    for name in _list_namespaces(intent):
        yield from (Right("namespaces", verb, "Namespace", name=name) for verb in ("create", "patch"))
        yield Right("teardown", "delete", "Namespace", name=name)
        # a namespace with objects of others stays, and any kind may be theirs
        yield Right("teardown", "list", ANYTHING, name)
    if any(
        fabric.network.pod_security is not None and fabric.network.pod_security.enforce == "privileged"
        for fabric in intent.fabrics
    ):
        # with this level it is made by a POST, whose name the API server does not know
        yield Right("namespaces", "create", "Namespace")


def _list_measuring_rights(intent: Intent) -> typing.Iterator[Right]:
    """Yield the rights for measuring in a namespace that an administrator has prepared. They are not meant for a
    namespace that the run creates: a RoleBinding in it would be deleted with the namespace. Only a run with
    administrator rights creates its own namespace.
    """
    yield from (Right("bandwidth", verb, "Pod", MEASURING) for verb in ("get", "list", "watch", "create", "delete"))
    # a kubelet may give a pod of its node a finalizer, which is taken off
    yield Right("bandwidth", "patch", "Pod", MEASURING)
    # commands run over a websocket, which is a GET; newer API servers ask for create as well
    yield from (Right("bandwidth", verb, "Pod", MEASURING, "exec") for verb in ("get", "create"))
    yield Right("bandwidth", "list", "Event", MEASURING)
    # pods of others connect to none of these
    yield from (Right("bandwidth", verb, "NetworkPolicy", MEASURING, name=POLICY) for verb in (*_APPLY, "delete"))
    # whether an admin of OpenShift has prepared who admits them
    yield Right("bandwidth", "get", "ServiceAccount", MEASURING, name=ACCOUNT)
    if intent.cluster.host.memlock is not None and any(map(carries_rdma, intent.fabrics)):
        yield Right("host", "get", "Pod", MEASURING, "log")
    if any(attachment_kind(fabric) for fabric in intent.fabrics):
        # copies of the networks of the jobs
        yield from (Right("bandwidth", verb, PLAIN, MEASURING) for verb in ("create", "delete"))
        yield from (Right("bandwidth", "get", PLAIN, name) for name in _list_namespaces(intent))
    # where earlier releases measured, and a killed run may have left it
    yield from (Right("teardown", "get", "ServiceAccount", name, name=ACCOUNT) for name in _list_namespaces(intent))


def _list_job_rights(intent: Intent) -> typing.Iterator[Right]:
    for name in _list_namespaces(intent):
        for kind in (*JOBS, "ConfigMap"):
            yield from _list_object_rights(kind, name, need="jobs")
        yield Right("teardown", "list", "ConfigMap", name)


def _list_machine_rights(intent: Intent) -> typing.Iterator[Right]:
    """Yield the rights for MachineConfigs and KubeletConfigs. They are limited to the collection's own objects by name,
    since other MachineConfigs may contain secrets.
    """
    for kind, name in machine_objects(intent):
        yield from _list_object_rights(kind, name=name)
        # those that take it, which only the cluster knows
        yield Right("network", "patch", "MachineConfigPool")
        yield from _list_pause_rights(intent, "network")


def machine_objects(intent: Intent) -> typing.Iterator[tuple[str, str]]:
    """Yield the kind and name of each MachineConfig and KubeletConfig that the collection creates for the intent."""
    needs = intent.cluster.host
    if needs.machine_memlock is not None:
        yield "MachineConfig", f"99-{needs.machine_role}-linerate-memlock"
    if needs.kernel_arguments:
        yield "MachineConfig", f"99-{needs.machine_role}-linerate-kernel-arguments"
    if needs.kubelet is not None:
        yield "KubeletConfig", f"linerate-{needs.machine_role}"


def _list_peermem_rights(intent: Intent) -> typing.Iterator[Right]:
    if intent.cluster.host.gpudirect == "peermem":
        yield from (Right("host", "patch", "ClusterPolicy", name=name) for name in _CLUSTER_POLICIES)


def _list_tuning_rights(intent: Intent) -> typing.Iterator[Right]:
    if intent.cluster.tuning.set:
        yield from _list_object_rights("Tuned", TUNING_NAMESPACE, TUNED, need="tuning")


def _may_roll_nodes(intent: Intent) -> bool:
    return (
        intent.cluster.bios != BiosIntent() or intent.cluster.firmware != FirmwareIntent()
    ) and intent.cluster.disruption == "reboot"


def _list_roll_rights(intent: Intent) -> typing.Iterator[Right]:
    yield from (Right("settle", verb, "Node") for verb in ("get", "patch"))
    yield Right("settle", "create", "Pod", "", "eviction")
    yield from _list_pause_rights(intent, "settle")


def _list_pause_rights(intent: Intent, need: str) -> typing.Iterator[Right]:
    """Yield the rights to pause MachineHealthChecks and NodeHealthChecks while nodes reboot, if the intent permits it.

    :param need: stage that needs the rights
    """
    if intent.cluster.pause_health_checks:
        yield from (Right(need, "patch", kind) for kind in _HEALTH_CHECKS)
        yield Right(need, "get", "NodeHealthCheck")


def _look_at_firmware() -> typing.Iterator[Right]:
    yield from (Right("settle", verb, "NicConfigurationTemplate") for verb in (*_APPLY, "delete"))


def _install_by_olm() -> typing.Iterator[Right]:
    yield from (Right("operators", verb, kind) for verb in _APPLY for kind in ("OperatorGroup", "Subscription"))
    yield Right("operators", "patch", "InstallPlan")
    yield from (
        Right("operators", verb, "Namespace", name=name)
        for name in _list_operator_namespaces()
        for verb in ("get", "patch")
    )
    # it is made by a POST, whose name the API server does not know
    yield Right("operators", "create", "Namespace")
    # an operator does nothing without it; its name is that of the package's example
    kinds = [operator.configuration for operator in TABLE if operator.package is not None and operator.configuration]
    yield from (Right("operators", verb, kind) for kind in kinds for verb in _APPLY)
    # with that example
    yield Right("operators", "get", "ClusterServiceVersion")
    # who has rights in a namespace that is there, and what acts in it
    yield from (Right("operators", "list", kind) for kind in ("RoleBinding", "ServiceAccount", "Pod"))
    yield from (Right("operators", "get", kind) for kind in ("Role", "ClusterRole"))


def _remove_by_olm() -> typing.Iterator[Right]:
    kinds = ("ClusterServiceVersion", "CustomResourceDefinition", "Operator", "OperatorGroup", "Subscription")
    yield from (Right("teardown", "delete", kind) for kind in kinds)
    yield from (Right("teardown", "delete", "Namespace", name=name) for name in _list_operator_namespaces())


def _list_operator_namespaces() -> list[str]:
    """Return, sorted, the namespaces that a run creates when it installs operators."""
    return sorted({operator.package.namespace for operator in TABLE if operator.package is not None})


def _list_object_rights(
    kind: str, namespace: str = "", name: str = "", need: str = "network"
) -> typing.Iterator[Right]:
    """Yield the rights to apply objects of a kind in a stage, and to delete them in a teardown.

    :param kind: kind of the objects
    :param namespace: namespace of the objects; empty for all namespaces
    :param name: name of the object; empty for all
    :param need: stage that applies the objects
    """
    yield from (Right(need, verb, kind, namespace, name=name) for verb in _APPLY)
    yield Right("teardown", "delete", kind, namespace, name=name)


def _list_namespaces(intent: Intent) -> tuple[str, ...]:
    """Return the namespaces of the jobs, in the order of the fabrics."""

    def of(fabric: Fabric) -> str:
        return fabric.network.namespace

    return tuple(dict.fromkeys(map(of, intent.fabrics)))
