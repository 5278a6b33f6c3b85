# SPDX-License-Identifier: GPL-3.0-or-later

"""Renders the namespace of the measuring pods and the NetworkPolicy for connections to them, and adapts the fabrics to
that namespace.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._model.intent.intent import Fabric
from ..._model.kubernetes.measuring import LABEL, NAMESPACE, OWN, POLICY
from ..cluster.names import MANAGED_BY, Object, build_owner_label

#: IPC_LOCK and hostPath are above the level baseline; OpenShift must not write labels of its own there
_SECURITY = {
    **{f"pod-security.kubernetes.io/{mode}": "privileged" for mode in ("enforce", "audit", "warn")},
    "security.openshift.io/scc.podSecurityLabelSync": "false",
}


def render_namespace(run: str) -> Object:
    """Render the namespace of the measuring pods. No role is bound in it.

    :param run: id of the run that owns the namespace
    """
    labels = {**MANAGED_BY, LABEL: OWN, **build_owner_label(run), **_SECURITY}
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": NAMESPACE, "labels": labels, "annotations": {"openshift.io/node-selector": ""}},
    }


def render_policy(run: str) -> Object:
    """Render the NetworkPolicy of the namespace: only the measuring pods of this run may connect to its pods. Without
    it, any pod of the cluster could send commands to mpirun and its daemons, which have no protection of their own.

    :param run: id of the run whose pods may connect
    """
    peers = {"podSelector": {"matchLabels": {**MANAGED_BY, **build_owner_label(run)}}}
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": POLICY, "namespace": NAMESPACE, "labels": {**MANAGED_BY, **build_owner_label(run)}},
        # all pods of the namespace: one that a killed run has left takes no connection either
        "spec": {"podSelector": {}, "policyTypes": ["Ingress"], "ingress": [{"from": [peers]}]},
    }


def move_fabrics(fabrics: typing.Iterable[Fabric]) -> tuple[Fabric, ...]:
    """Return copies of the fabrics whose networks are in the namespace of the measurement. The names of the networks
    are unchanged.
    """
    return tuple(
        dataclasses.replace(fabric, network=dataclasses.replace(fabric.network, namespace=NAMESPACE))
        for fabric in fabrics
    )
