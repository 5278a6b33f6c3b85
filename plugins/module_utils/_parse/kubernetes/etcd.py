# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse the members of etcd from their static pods."""

from __future__ import annotations

from ..._model.kubernetes.control_plane import EtcdMember
from .resource import Resource, items_of, mapping_at, name_of

#: namespace and label selector of the pods: kubeadm [kubernetes cmd/kubeadm/app/phases/etcd/local.go] and RKE2;
#: OpenShift's etcd operator
PODS: tuple[tuple[str, str], ...] = (("kube-system", "component=etcd"), ("openshift-etcd", "app=etcd"))


def parse_member(resource: Resource) -> EtcdMember:
    """Return the etcd member that runs in a static pod: its node, and whether it is ready. The node is empty if the pod
    names none.

    :raises ResourceError: the object is not a valid Pod
    """
    conditions = items_of(mapping_at(resource, "status"), "conditions", f"Pod {name_of(resource)}")
    ready = any(item.get("type") == "Ready" and item.get("status") == "True" for item in conditions)
    return EtcdMember(str(mapping_at(resource, "spec").get("nodeName") or ""), ready)
