# SPDX-License-Identifier: GPL-3.0-or-later

"""The objects that configure operators installed by OLM. A Helm chart brings this configuration with it, OLM does not.

NodeFeatureDiscovery (nfd.openshift.io/v1), SriovOperatorConfig (sriovnetwork.openshift.io/v1), ClusterPolicy
(nvidia.com/v1), JobSetOperator (operator.openshift.io/v1) and Kueue (kueue.openshift.io/v1), as in the guides of
OpenShift 4.20 and of the GPU operator.
"""

from __future__ import annotations

import copy
import json
import typing

from ..._model.intent.intent import Intent
from ..._model.operators.operators import GPU, JOBSET, KUEUE, NFD, SRIOV, JobNeeds, Operator
from .names import MANAGED_BY, Object

#: PCI classes of network devices, display devices, coprocessors and accelerators; without the first one NFD shows no
#: HCA of InfiniBand (0207)
PCI_CLASSES = ("02", "03", "0b40", "12")
#: API version, name, and whether it is in the operator's namespace
_IDENTITY = {
    NFD: ("nfd.openshift.io/v1", "nfd-instance", True),
    SRIOV: ("sriovnetwork.openshift.io/v1", "default", True),
    GPU: ("nvidia.com/v1", "gpu-cluster-policy", False),
    JOBSET: ("operator.openshift.io/v1", "cluster", False),
    KUEUE: ("kueue.openshift.io/v1", "cluster", False),
}


def render_worker_sources() -> Object:
    """Render the section ``sources`` of the worker of NFD: the PCI classes that it labels. The labels contain the
    vendor only, because NVIDIA's operators select nodes by such labels.
    """
    return {"pci": {"deviceClassWhitelist": list(PCI_CLASSES), "deviceLabelFields": ["vendor"]}}


def render_configuration(
    operator: Operator,
    namespace: str,
    intent: Intent,
    job: typing.Optional[JobNeeds],
    examples: typing.Sequence[Object],
) -> typing.Optional[Object]:
    """Render the configuration object of an operator. Return None for the GPU operator if its ClusterServiceVersion
    contains no example, from which its configuration is derived. Return None if the examples have another API group, as
    those of another package can.

    :param namespace: namespace of the operator
    :param job: needs of a training job; None if there is no job
    :param examples: examples of this kind from the ClusterServiceVersion
    """
    if operator.name == GPU and not examples:
        return None
    version, name, namespaced = _IDENTITY[operator.name]
    group = version.partition("/")[0]
    if any(str(item.get("apiVersion") or version).partition("/")[0] != group for item in examples):
        return None
    spec = copy.deepcopy(examples[0].get("spec") or {}) if examples and operator.name in (NFD, GPU) else {}
    if operator.name == NFD:
        # JSON is YAML as well
        spec["workerConfig"] = {"configData": json.dumps({"sources": render_worker_sources()})}
    elif operator.name == GPU:
        if intent.cluster.host.gpudirect == "peermem":
            driver = spec.setdefault("driver", {})
            driver["rdma"] = {**(driver.get("rdma") or {}), "enabled": True}
    elif operator.name == SRIOV:
        spec = {"enableInjector": True, "enableOperatorWebhook": True, "logLevel": 2}
    else:
        spec = {"managementState": "Managed"}
        if operator.name == KUEUE:
            spec["config"] = {"integrations": {"frameworks": ["BatchJob", *([job.kind] if job else [])]}}
    where = {"namespace": namespace} if namespaced else {}
    metadata = {"name": name, **where, "labels": dict(MANAGED_BY)}
    return {"apiVersion": version, "kind": operator.configuration, "metadata": metadata, "spec": spec}
