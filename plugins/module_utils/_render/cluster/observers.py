# SPDX-License-Identifier: GPL-3.0-or-later

"""The observers as objects: a namespace of their own, and a DaemonSet of privileged pods that can read the host but
have no rights in the cluster.

The pods resemble the pod of `oc debug node` [openshift/oc pkg/cli/debug/debug.go], but mount ``/`` of the host
read-only.
"""

from __future__ import annotations

import hashlib
import json
import re
import typing

from ..._model.kubernetes.observers import CONTAINER, DAEMON_SET, HOST, LABEL, OWN, TEMPLATE, Wanted
from .names import MANAGED_BY, Object, RenderError, build_owner_label

#: of the pods. Without the label of what teardown takes back: the DaemonSet would make each pod anew that is deleted
POD_LABELS = {"app.kubernetes.io/name": DAEMON_SET}
#: the namespace must take privileged pods; OpenShift would put its own labels there, and its default node selector in
#: the way
_SECURITY = {
    **{f"pod-security.kubernetes.io/{mode}": "privileged" for mode in ("enforce", "audit", "warn")},
    "security.openshift.io/scc.podSecurityLabelSync": "false",
}
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


def render_objects(wanted: Wanted, prepared: bool = False) -> tuple[Object, ...]:
    """Render all objects of the observers, in the order in which they are applied.

    :param wanted: settings of the observers
    :param prepared: whether an admin has created the namespace and its role bindings. They are then not rendered
    :raises RenderError: the name of the namespace or of the image is invalid, or the lifetime is less than 60 s
    """
    if not _NAME.fullmatch(wanted.namespace):
        raise RenderError(
            f"namespace '{wanted.namespace}' is not a valid name of a namespace; write up to 63 lower-case letters,"
            " digits and hyphens"
        )
    if not wanted.image or not wanted.image.isprintable() or " " in wanted.image:
        raise RenderError(
            f"image '{wanted.image}' is not a valid name of an image; write it with its digest, such as"
            " registry.example/rdma-tools@sha256:..."
        )
    if wanted.lifetime < 60:
        raise RenderError(
            f"lifetime is {wanted.lifetime}; set the seconds after which a container ends itself, at least 60"
        )
    around = () if prepared else (_render_namespace(wanted),)
    admitted = _render_admission_role(wanted) if wanted.openshift and not prepared else ()
    return (*around, _service_account(wanted), *admitted, daemon_set(wanted))


def daemon_set(wanted: Wanted) -> Object:
    """Render the DaemonSet of the observers: one pod on each selected node, regardless of its taints.

    :param wanted: settings of the observers
    """
    spec = _pod_spec(wanted)
    # written by us, since the controller's own hash is known only when it has seen the template
    mark = hashlib.sha256(json.dumps(spec, sort_keys=True).encode()).hexdigest()[:16]
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": _render_metadata(wanted, DAEMON_SET),
        "spec": {
            "selector": {"matchLabels": dict(POD_LABELS)},
            # nobody is served by them: all are replaced at once
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "100%"}},
            "template": {
                "metadata": {
                    "labels": dict(POD_LABELS),
                    "annotations": {"openshift.io/required-scc": "privileged", TEMPLATE: mark},
                },
                "spec": spec,
            },
        },
    }


def _pod_spec(wanted: Wanted) -> Object:
    # read-only alone is the host's root and no other of its file systems. The kubelet takes the recursive form without
    # propagation only
    below = {"recursiveReadOnly": "IfPossible"} if wanted.recursive else {"mountPropagation": "HostToContainer"}
    container = {
        "name": CONTAINER,
        "image": wanted.image,
        "imagePullPolicy": wanted.pull_policy,
        # it goes at once when it is told to; what a broken connection left behind in it goes with its time
        "command": ["/bin/sh", "-c", f"trap exit TERM; sleep {wanted.lifetime} & wait"],
        "resources": dict(wanted.resources),
        "securityContext": {"privileged": True, "runAsUser": 0, "readOnlyRootFilesystem": True},
        "volumeMounts": [
            {"name": "host", "mountPath": HOST, "readOnly": True, **below},
            {"name": "tmp", "mountPath": "/tmp"},
        ],
    }
    spec: dict[str, typing.Any] = {
        "serviceAccountName": DAEMON_SET,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        # of Linux, since other nodes know no privileged pods
        "nodeSelector": {"kubernetes.io/os": "linux", **dict(sorted(wanted.node_selector.items()))},
        "tolerations": [{"operator": "Exists"}],
        # names of network interfaces, RDMA devices and /proc/sys/net are those of the host
        "hostNetwork": True,
        "hostPID": True,
        "dnsPolicy": "Default",
        "terminationGracePeriodSeconds": 0,
        "containers": [container],
        # without a type: its check fails where the host has no such folder for the kubelet, as on Talos
        "volumes": [{"name": "host", "hostPath": {"path": "/"}}, {"name": "tmp", "emptyDir": {"sizeLimit": "256Mi"}}],
    }
    if wanted.nodes:
        # one term each: matchFields takes one value; by the node's own name, from which the label
        # kubernetes.io/hostname may differ
        terms = [
            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
            for node in sorted(set(wanted.nodes))
        ]
        spec["affinity"] = {
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        }
    if wanted.priority_class:
        spec["priorityClassName"] = wanted.priority_class
    if wanted.pull_secrets:
        spec["imagePullSecrets"] = [{"name": name} for name in wanted.pull_secrets]
    return spec


def _render_namespace(wanted: Wanted) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": wanted.namespace,
            "labels": {**MANAGED_BY, LABEL: OWN, **build_owner_label(wanted.run), **_SECURITY},
            "annotations": {"openshift.io/node-selector": ""},
        },
    }


def _service_account(wanted: Wanted) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": _render_metadata(wanted, DAEMON_SET),
        "automountServiceAccountToken": False,
    }


def _render_admission_role(wanted: Wanted) -> tuple[Object, ...]:
    """Render the Role and RoleBinding by which OpenShift admits the privileged pods of the observers in their namespace
    only.
    """
    name, group = f"{DAEMON_SET}-privileged", "rbac.authorization.k8s.io"
    rule = {
        "apiGroups": ["security.openshift.io"],
        "resources": ["securitycontextconstraints"],
        "resourceNames": ["privileged"],
        "verbs": ["use"],
    }
    return (
        {"apiVersion": f"{group}/v1", "kind": "Role", "metadata": _render_metadata(wanted, name), "rules": [rule]},
        {
            "apiVersion": f"{group}/v1",
            "kind": "RoleBinding",
            "metadata": _render_metadata(wanted, name),
            "roleRef": {"apiGroup": group, "kind": "Role", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": DAEMON_SET, "namespace": wanted.namespace}],
        },
    )


def _render_metadata(wanted: Wanted, name: str) -> Object:
    return {"name": name, "namespace": wanted.namespace, "labels": {**MANAGED_BY, **build_owner_label(wanted.run)}}
