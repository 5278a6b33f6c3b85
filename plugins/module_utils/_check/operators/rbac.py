# SPDX-License-Identifier: GPL-3.0-or-later

"""The rights that the stages need in the cluster, and whether the user of the kubeconfig has them. Check id: ``operators.rights``.

docs/rbac.yml grants exactly these; a test holds the two together.
"""

from __future__ import annotations

import typing

from ..._model.admission import ACCOUNT
from ..._model.bios import BiosWishes
from ..._model.findings import FAIL, UNKNOWN, WARN, Finding, ok
from ..._model.firmware import FirmwareWishes
from ..._model.intent import Fabric, Intent
from ..._model.lease import NAME as LEASE
from ..._model.lease import NAMESPACE as LEASE_NAMESPACE
from ..._model.profiles import PLAIN, attachment_kind, carries_rdma, needs_nic_policy, traits
from ..._model.rights import Right, RightsFacts

#: of jobs that the filter render_job writes
_JOBS = ("PyTorchJob", "TrainJob", "TrainingRuntime")
_POOLS = ("IPPool.nv-ipam.nvidia.com", "CIDRPool.nv-ipam.nvidia.com")

#: who reads what; in all namespaces, unless another is named
_READ: typing.Tuple[typing.Tuple[str, str, str], ...] = (
    *(("operators", "list", kind) for kind in ("CustomResourceDefinition", "DaemonSet", "Deployment", "Node", "Pod", "SriovOperatorConfig")),
    *(("operators", "list", kind) for kind in ("ClusterPolicy", "ClusterServiceVersion", "JobSetOperator", "Kueue", "NodeFeatureDiscovery", "Subscription")),
    *(("operators", "list", kind) for kind in ("Image.config.openshift.io", "ImageContentSourcePolicy", "ImageDigestMirrorSet", "ImageTagMirrorSet")),
    *(("network", verb, kind) for verb in ("list", "watch") for kind in ("NetworkAttachmentDefinition", "SriovNetworkNodePolicy", "SriovNetworkNodeState")),
    *(("network", "list", kind) for kind in ("IPPool.whereabouts.cni.cncf.io", *_POOLS, "MachineConfigPool", "Network.config.openshift.io")),
    *(("network", "list", kind) for kind in ("PodDisruptionBudget", "ServiceCIDR", "SriovIBNetwork", "SriovNetwork", "SriovNetworkPoolConfig")),
    *(("network", "watch", kind) for kind in ("MachineConfigPool", "Node", "PodDisruptionBudget", "Pod", "SriovNetworkPoolConfig")),
    ("platform", "list", "NicDevice"),
    ("network", "get", "Namespace"),
    ("bandwidth", "watch", "Pod"),
    *(("network", verb, kind) for verb in ("list", "watch") for kind in ("NicClusterPolicy", "MacvlanNetwork", "IPoIBNetwork", "HostDeviceNetwork")),
    *(("network", "watch", kind) for kind in _POOLS),
    *(("teardown", "list", kind) for kind in ("Namespace", "NicConfigurationTemplate", "Tuned", *_JOBS)),
)
#: what no stage needs: its subject, and what it is for
_BESIDE = {
    "jobs": ("training jobs", "Needed only to submit what render_job and render_nic_map write."),
    "namespaces": ("namespaces of the pods", "Needed only where the namespace is not there, or is the collection's own."),
    "settle": ("bringing nodes to what is wanted", "Needed only with platform_settle: true."),
    "teardown": ("teardown", "Needed only to take everything back."),
}


#: that OLM is read by
_OLM = ("CatalogSource", "ClusterServiceVersion", "InstallPlan", "OperatorGroup", "Subscription")


def needed(intent: Intent, operator: str, olm: bool = False) -> typing.Tuple[Right, ...]:
    """All that the stages and the teardown do for this intent. What Helm needs to install an operator is not in it: that is nearly everything.

    :param operator: namespace of the SR-IOV network operator
    :param olm: whether OLM is to install operators
    """
    rights = [Right(*row) for row in _READ]
    rights += [Right("network", "list", "Service", "default"), Right("operators", "get", "ConfigMap", operator, name="supported-nic-ids")]
    if olm:
        rights += _of_olm()
    # whatever changes the cluster holds it; a name can't be asked for what is not there yet
    rights.append(Right("network", "create", "Lease", LEASE_NAMESPACE))
    rights += [Right("network", verb, "Lease", LEASE_NAMESPACE, name=LEASE) for verb in ("get", "update", "delete")]
    # what a run that was killed has left of who admits pods on OpenShift; elsewhere there is no such kind
    rights.append(Right("teardown", "get", "SecurityContextConstraints", name=ACCOUNT))
    # the config daemon says only in its log why a sync fails
    rights.append(Right("network", "get", "Pod", operator, "log"))
    if intent.cluster.node_pool is not None:
        rights += [Right("network", verb, "SriovNetworkPoolConfig", operator) for verb in ("get", "create", "patch")]
        rights.append(Right("teardown", "delete", "SriovNetworkPoolConfig", operator))
    rights += _of_host(intent)
    if intent.cluster.tuning.set:
        rights += [Right("tuning", "list", kind) for kind in ("Tuned", "Profile", "PerformanceProfile")]
        rights += [*(Right("tuning", verb, "Tuned") for verb in ("get", "create", "patch")), Right("teardown", "delete", "Tuned")]
    if (intent.cluster.bios != BiosWishes() or intent.cluster.firmware != FirmwareWishes()) and intent.cluster.disruption == "reboot":
        rights += [Right("settle", "get", "Node"), Right("settle", "patch", "Node"), Right("settle", "create", "Pod", "", "eviction")]
        rights += [Right("settle", verb, "NicConfigurationTemplate") for verb in ("get", "create", "patch", "delete")]
    for fabric in intent.fabrics:
        rights += _of_fabric(fabric, operator)
    return tuple(dict.fromkeys(rights))


def _of_olm() -> typing.List[Right]:
    """Operators have namespaces of their own, which need not be there yet: all of it is asked for in all of them."""
    return [
        *(Right("operators", verb, kind) for verb in ("list", "watch") for kind in _OLM),
        *(Right("operators", "list", kind) for kind in ("EndpointSlice", "PackageManifest")),
        *(Right("operators", verb, kind) for verb in ("get", "create", "patch") for kind in ("OperatorGroup", "Subscription")),
        Right("operators", "patch", "InstallPlan"),
        *(Right("teardown", "delete", kind) for kind in ("ClusterServiceVersion", "CustomResourceDefinition", "OperatorGroup", "Subscription")),
    ]


def _of_host(intent: Intent) -> typing.List[Right]:
    """MachineConfigs may hold secrets, so that none but our own are read, by name."""
    needs, rights = intent.cluster.host, []
    machines = needs.kernel_arguments or (needs.memlock is not None and needs.memlock.by == "machine_config")
    for kind in (*(["MachineConfig"] if machines else []), *(["KubeletConfig"] if needs.kubelet is not None else [])):
        rights += [Right("network", verb, kind) for verb in ("get", "create", "patch")]
        rights += [Right("network", "patch", "MachineConfigPool"), Right("teardown", "delete", kind)]
    if needs.kubelet is not None:
        rights.append(Right("network", "list", "KubeletConfig"))
    if needs.memlock is not None:
        pods = [fabric.network.namespace for fabric in intent.fabrics if carries_rdma(fabric)]
        rights += [right for name in pods for right in (Right("host", "get", "Pod", name), Right("host", "get", "Pod", name, "log"))]
    if needs.gpudirect == "peermem":
        rights += [Right("host", verb, "ClusterPolicy") for verb in ("list", "patch")]
    return rights


def _of_fabric(fabric: Fabric, operator: str) -> typing.List[Right]:
    pods = fabric.network.namespace
    made = [("SriovNetworkNodePolicy", operator), (attachment_kind(fabric), operator)] if traits(fabric).functions else []
    if attachment_kind(fabric) and not made:
        made.append((attachment_kind(fabric), pods if attachment_kind(fabric) == PLAIN else ""))
    if needs_nic_policy(fabric):
        made.append(("NicClusterPolicy", ""))
    if fabric.pool is not None and fabric.pool.create:
        made.append((f"{fabric.pool.kind}.nv-ipam.nvidia.com", fabric.pool.namespace))
    return [
        # server-side apply of what is not there yet needs both
        *(Right("network", verb, kind, namespace) for kind, namespace in made for verb in ("get", "create", "patch")),
        *(Right("teardown", "delete", kind, namespace) for kind, namespace in made),
        *(Right("jobs", verb, kind, pods) for kind in (*_JOBS, "ConfigMap") for verb in ("get", "create", "patch")),
        *(Right("teardown", "delete", kind, pods) for kind in (*_JOBS, "ConfigMap")),
        Right("teardown", "list", "ConfigMap", pods),
        *(Right("namespaces", verb, "Namespace") for verb in ("create", "patch")),
        Right("teardown", "delete", "Namespace"),
        *(Right("bandwidth", verb, "Pod", pods) for verb in ("create", "delete")),
        # whether an admin of OpenShift has prepared who admits them
        Right("bandwidth", "get", "ServiceAccount", pods, name=ACCOUNT),
        # commands run over a websocket, which is a GET; newer API servers ask for create as well
        *(Right("bandwidth", verb, "Pod", pods, "exec") for verb in ("get", "create")),
        Right("bandwidth", "list", "Event", pods),
    ]


def check(seen: typing.Optional[RightsFacts]) -> typing.Tuple[Finding, ...]:
    """One finding for each stage whose rights are not complete, or one pass."""
    expected = "all rights of docs/rbac.yml"
    if seen is None or not seen.asked:
        why = "The API server was not asked what the user of the kubeconfig may do."
        return (Finding("operators.rights", "kubeconfig", UNKNOWN, "not asked", expected, why, "Run the stage again."),)
    findings = []
    for need in dict.fromkeys(denied.need for denied in seen.denied):
        texts = [denied.text for denied in seen.denied if denied.need == need]
        why = "The API server would refuse it half-way, so nothing is begun."
        status: typing.Literal["fail", "warn"] = FAIL
        subject, beside = _BESIDE.get(need, (f"stage {need}", ""))
        if beside:
            status, why = WARN, beside
        remedy = f"Bind the user to the roles in docs/rbac.yml; kubectl auth can-i {texts[0].replace(' in ', ' -n ')} shows whether it is enough."
        findings.append(Finding("operators.rights", subject, status, f"may not: {'; '.join(texts)}", expected, why, remedy))
    return tuple(findings) or (ok("operators.rights", "kubeconfig", f"{seen.asked} rights, all there", expected),)
