# SPDX-License-Identifier: GPL-3.0-or-later

"""The objects by which OpenShift admits the pods of the collection. These pods add IPC_LOCK and run as the user of
their image, which ``restricted-v2`` refuses.

All other constraints equal those of ``restricted-v2``. docs/rbac/measuring-openshift.yml contains the same objects for
an admin to apply. [openshift/api security/v1 types.go; openshift/cluster-kube-apiserver-operator bindata
scc-restricted-v2]
"""

from __future__ import annotations

import typing

from ..._model.kubernetes.admission import ACCOUNT, OPENSHIFT_GROUP
from .names import MANAGED_BY, Object, build_owner_label

_RBAC = "rbac.authorization.k8s.io"


def render_objects(namespaces: typing.Iterable[str], host_paths: bool = False, run: str = "") -> tuple[Object, ...]:
    """Render the SecurityContextConstraints, and in each namespace the ServiceAccount that may use them, in the order
    in which they are applied.

    :param namespaces: names of the namespaces of the measuring pods
    :param host_paths: whether pods mount /dev/infiniband of their node (``pods.mount_infiniband``)
    :param run: id of the run that owns the objects; empty if no run owns them
    """
    marks = {**MANAGED_BY, **build_owner_label(run)}
    found = [
        {
            "apiVersion": f"{OPENSHIFT_GROUP}/v1",
            "kind": "SecurityContextConstraints",
            "metadata": _render_metadata(marks),
            **_render_constraints(host_paths),
        }
    ]
    for namespace in sorted(set(namespaces)):
        found += _render_account_objects(namespace, marks)
    return tuple(found)


def render_account(namespace: str, marks: typing.Mapping[str, str]) -> Object:
    """Render the ServiceAccount of the pods for measurements. Its token is not mounted in the pods.

    :param marks: labels of the object
    """
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {**_render_metadata(marks), "namespace": namespace},
        "automountServiceAccountToken": False,
    }


def _render_constraints(host_paths: bool) -> Object:
    return {
        **{f"allowHost{what}": False for what in ("IPC", "Network", "PID", "Ports")},
        "allowHostDirVolumePlugin": host_paths,
        "allowPrivilegeEscalation": False,
        "allowPrivilegedContainer": False,
        # without it no memory can be pinned
        "allowedCapabilities": ["IPC_LOCK"],
        "defaultAddCapabilities": [],
        "requiredDropCapabilities": ["ALL"],
        "priority": 0,
        "readOnlyRootFilesystem": False,
        # a capability that is added is of use to root only, so the image's own user stays
        "runAsUser": {"type": "RunAsAny"},
        "fsGroup": {"type": "MustRunAs"},
        "seLinuxContext": {"type": "MustRunAs"},
        "supplementalGroups": {"type": "RunAsAny"},
        "seccompProfiles": ["runtime/default"],
        "volumes": ["emptyDir", *(["hostPath"] if host_paths else [])],
    }


def _render_account_objects(namespace: str, marks: typing.Mapping[str, str]) -> tuple[Object, ...]:
    rule = {
        "apiGroups": [OPENSHIFT_GROUP],
        "resources": ["securitycontextconstraints"],
        "resourceNames": [ACCOUNT],
        "verbs": ["use"],
    }
    metadata = {**_render_metadata(marks), "namespace": namespace}
    return (
        render_account(namespace, marks),
        {"apiVersion": f"{_RBAC}/v1", "kind": "Role", "metadata": metadata, "rules": [rule]},
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "RoleBinding",
            "metadata": metadata,
            "roleRef": {"apiGroup": _RBAC, "kind": "Role", "name": ACCOUNT},
            "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": namespace}],
        },
    )


def _render_metadata(marks: typing.Mapping[str, str]) -> Object:
    return {"name": ACCOUNT, "labels": dict(marks)}
