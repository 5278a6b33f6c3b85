# SPDX-License-Identifier: GPL-3.0-or-later

"""The kinds of Kubernetes objects that the collection uses, and the API paths of their objects.

The paths are fixed, so no discovery is needed, and a kind that the server does not know can be distinguished from an
object that does not exist.
"""

from __future__ import annotations

import typing

from ..._model.base.operand import part_of_path

Resource = dict[str, typing.Any]
#: name of a kind in KINDS, or what stands there of one that only a custom resource definition tells
Kind = typing.Union[str, tuple[str, str, bool]]
#: kind: (path of its API, plural, namespaced). whereabouts and nv-ipam both have an IPPool, so their group stands
#: behind it, as kubectl writes it
KINDS: dict[str, tuple[str, str, bool]] = {
    "Namespace": ("/api/v1", "namespaces", False),
    "Node": ("/api/v1", "nodes", False),
    "Pod": ("/api/v1", "pods", True),
    "Event": ("/api/v1", "events", True),
    "ConfigMap": ("/api/v1", "configmaps", True),
    "ServiceAccount": ("/api/v1", "serviceaccounts", True),
    "Role": ("/apis/rbac.authorization.k8s.io/v1", "roles", True),
    "ClusterRole": ("/apis/rbac.authorization.k8s.io/v1", "clusterroles", False),
    "ClusterRoleBinding": ("/apis/rbac.authorization.k8s.io/v1", "clusterrolebindings", False),
    "RoleBinding": ("/apis/rbac.authorization.k8s.io/v1", "rolebindings", True),
    "SecurityContextConstraints": ("/apis/security.openshift.io/v1", "securitycontextconstraints", False),
    "ImageStreamTag": ("/apis/image.openshift.io/v1", "imagestreamtags", True),
    "Lease": ("/apis/coordination.k8s.io/v1", "leases", True),
    "DaemonSet": ("/apis/apps/v1", "daemonsets", True),
    "Deployment": ("/apis/apps/v1", "deployments", True),
    "NetworkPolicy": ("/apis/networking.k8s.io/v1", "networkpolicies", True),
    "PodDisruptionBudget": ("/apis/policy/v1", "poddisruptionbudgets", True),
    "Service": ("/api/v1", "services", True),
    "ServiceCIDR": ("/apis/networking.k8s.io/v1", "servicecidrs", False),
    "Network.config.openshift.io": ("/apis/config.openshift.io/v1", "networks", False),
    "ClusterVersion": ("/apis/config.openshift.io/v1", "clusterversions", False),
    "Image.config.openshift.io": ("/apis/config.openshift.io/v1", "images", False),
    "ImageDigestMirrorSet": ("/apis/config.openshift.io/v1", "imagedigestmirrorsets", False),
    "ImageTagMirrorSet": ("/apis/config.openshift.io/v1", "imagetagmirrorsets", False),
    "ImageContentSourcePolicy": ("/apis/operator.openshift.io/v1alpha1", "imagecontentsourcepolicies", False),
    "IPPool.whereabouts.cni.cncf.io": ("/apis/whereabouts.cni.cncf.io/v1alpha1", "ippools", True),
    "IPPool.nv-ipam.nvidia.com": ("/apis/nv-ipam.nvidia.com/v1alpha1", "ippools", True),
    "CIDRPool.nv-ipam.nvidia.com": ("/apis/nv-ipam.nvidia.com/v1alpha1", "cidrpools", True),
    "ClusterServiceVersion": ("/apis/operators.coreos.com/v1alpha1", "clusterserviceversions", True),
    "Subscription": ("/apis/operators.coreos.com/v1alpha1", "subscriptions", True),
    "CatalogSource": ("/apis/operators.coreos.com/v1alpha1", "catalogsources", True),
    "InstallPlan": ("/apis/operators.coreos.com/v1alpha1", "installplans", True),
    "OperatorGroup": ("/apis/operators.coreos.com/v1", "operatorgroups", True),
    "Operator": ("/apis/operators.coreos.com/v1", "operators", False),
    "PackageManifest": ("/apis/packages.operators.coreos.com/v1", "packagemanifests", True),
    "EndpointSlice": ("/apis/discovery.k8s.io/v1", "endpointslices", True),
    "CustomResourceDefinition": ("/apis/apiextensions.k8s.io/v1", "customresourcedefinitions", False),
    "NetworkAttachmentDefinition": ("/apis/k8s.cni.cncf.io/v1", "network-attachment-definitions", True),
    "NicClusterPolicy": ("/apis/mellanox.com/v1alpha1", "nicclusterpolicies", False),
    "NicNodePolicy": ("/apis/mellanox.com/v1alpha1", "nicnodepolicies", False),
    "NicDevice": ("/apis/configuration.net.nvidia.com/v1alpha1", "nicdevices", True),
    "NicConfigurationTemplate": ("/apis/configuration.net.nvidia.com/v1alpha1", "nicconfigurationtemplates", True),
    "MaintenanceOperatorConfig": ("/apis/maintenance.nvidia.com/v1alpha1", "maintenanceoperatorconfigs", True),
    "MacvlanNetwork": ("/apis/mellanox.com/v1alpha1", "macvlannetworks", False),
    "IPoIBNetwork": ("/apis/mellanox.com/v1alpha1", "ipoibnetworks", False),
    "HostDeviceNetwork": ("/apis/mellanox.com/v1alpha1", "hostdevicenetworks", False),
    "SriovIBNetwork": ("/apis/sriovnetwork.openshift.io/v1", "sriovibnetworks", True),
    "SriovNetwork": ("/apis/sriovnetwork.openshift.io/v1", "sriovnetworks", True),
    "SriovNetworkNodePolicy": ("/apis/sriovnetwork.openshift.io/v1", "sriovnetworknodepolicies", True),
    "SriovNetworkNodeState": ("/apis/sriovnetwork.openshift.io/v1", "sriovnetworknodestates", True),
    "SriovNetworkPoolConfig": ("/apis/sriovnetwork.openshift.io/v1", "sriovnetworkpoolconfigs", True),
    "NodeFeatureDiscovery": ("/apis/nfd.openshift.io/v1", "nodefeaturediscoveries", True),
    "Kueue": ("/apis/kueue.openshift.io/v1", "kueues", False),
    "JobSetOperator": ("/apis/operator.openshift.io/v1", "jobsetoperators", False),
    "ClusterPolicy": ("/apis/nvidia.com/v1", "clusterpolicies", False),
    "NVIDIADriver": ("/apis/nvidia.com/v1alpha1", "nvidiadrivers", False),
    "MachineConfig": ("/apis/machineconfiguration.openshift.io/v1", "machineconfigs", False),
    "KubeletConfig": ("/apis/machineconfiguration.openshift.io/v1", "kubeletconfigs", False),
    "MachineConfigPool": ("/apis/machineconfiguration.openshift.io/v1", "machineconfigpools", False),
    "Machine.machine.openshift.io": ("/apis/machine.openshift.io/v1beta1", "machines", True),
    "MachineHealthCheck.machine.openshift.io": ("/apis/machine.openshift.io/v1beta1", "machinehealthchecks", True),
    "Machine.cluster.x-k8s.io": ("/apis/cluster.x-k8s.io/v1beta1", "machines", True),
    "MachineHealthCheck.cluster.x-k8s.io": ("/apis/cluster.x-k8s.io/v1beta1", "machinehealthchecks", True),
    "NodeHealthCheck": ("/apis/remediation.medik8s.io/v1alpha1", "nodehealthchecks", False),
    "Tuned": ("/apis/tuned.openshift.io/v1", "tuneds", True),
    "Profile": ("/apis/tuned.openshift.io/v1", "profiles", True),
    "PerformanceProfile": ("/apis/performance.openshift.io/v2", "performanceprofiles", False),
    "SelfSubjectAccessReview": ("/apis/authorization.k8s.io/v1", "selfsubjectaccessreviews", False),
    "Job": ("/apis/batch/v1", "jobs", True),
    "StatefulSet": ("/apis/apps/v1", "statefulsets", True),
    "JobSet": ("/apis/jobset.x-k8s.io/v1alpha2", "jobsets", True),
    "PyTorchJob": ("/apis/kubeflow.org/v1", "pytorchjobs", True),
    "MPIJob": ("/apis/kubeflow.org/v2beta1", "mpijobs", True),
    "TrainJob": ("/apis/trainer.kubeflow.org/v1alpha1", "trainjobs", True),
    "TrainingRuntime": ("/apis/trainer.kubeflow.org/v1alpha1", "trainingruntimes", True),
    "ClusterTrainingRuntime": ("/apis/trainer.kubeflow.org/v1alpha1", "clustertrainingruntimes", False),
    # v1beta2 came with release 0.15, and 0.19 serves both
    "LocalQueue": ("/apis/kueue.x-k8s.io/v1beta1", "localqueues", True),
    "ClusterQueue": ("/apis/kueue.x-k8s.io/v1beta1", "clusterqueues", False),
    "ResourceFlavor": ("/apis/kueue.x-k8s.io/v1beta1", "resourceflavors", False),
    "ResourceClaim": ("/apis/resource.k8s.io/v1", "resourceclaims", True),
    "ResourceClaimTemplate": ("/apis/resource.k8s.io/v1", "resourceclaimtemplates", True),
    "DeviceClass": ("/apis/resource.k8s.io/v1", "deviceclasses", False),
    "ResourceSlice": ("/apis/resource.k8s.io/v1", "resourceslices", False),
    "ComputeDomain": ("/apis/resource.nvidia.com/v1beta1", "computedomains", True),
    "StorageClass": ("/apis/storage.k8s.io/v1", "storageclasses", False),
    "PersistentVolume": ("/api/v1", "persistentvolumes", False),
    "PersistentVolumeClaim": ("/api/v1", "persistentvolumeclaims", True),
    "SriovOperatorConfig": ("/apis/sriovnetwork.openshift.io/v1", "sriovoperatorconfigs", True),
}


def path_of(kind: Kind, namespace: str = "", name: str = "") -> str:
    """Return the API path of an object, or of a list of objects.

    :param namespace: namespace of the object; empty for a cluster-scoped object, or for a list over all namespaces
    :param name: name of the object; empty for a list
    :raises OperandError: a name contains characters that would change the path
    """
    namespace, name = part_of_path(namespace), part_of_path(name)
    base, plural, namespaced = KINDS[kind] if isinstance(kind, str) else kind
    folder = f"{base}/namespaces/{namespace}/{plural}" if namespaced and namespace else f"{base}/{plural}"
    return f"{folder}/{name}" if name else folder


def group_of(kind: str) -> str:
    """Return the API group of a kind in ``KINDS``. It is empty for the core group, /api/v1."""
    base = KINDS[kind][0]
    return base.split("/")[2] if base.startswith("/apis/") else ""


def version_of(kind: str) -> str:
    """Return the apiVersion of the objects of a kind in ``KINDS``, such as k8s.cni.cncf.io/v1."""
    return KINDS[kind][0].partition("/")[2].partition("/")[2]


def kind_of(definition: Resource) -> str:
    """Return the key of an object's kind in ``KINDS``: the kind or, if several API groups have a kind of that name, the
    kind and the group, separated by a dot.
    """
    kind, group = str(definition["kind"]), str(definition.get("apiVersion", "")).partition("/")[0]
    return f"{kind}.{group}" if f"{kind}.{group}" in KINDS else kind
