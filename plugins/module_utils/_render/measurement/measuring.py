# SPDX-License-Identifier: GPL-3.0-or-later

"""The namespace in which pods measure, who may connect to them, and where a fabric's pods are in it."""

from __future__ import annotations

import dataclasses
import typing

from ..._model.intent.intent import Fabric
from ..._model.kubernetes.measuring import LABEL, NAMESPACE, OWN, POLICY
from ..cluster.names import MANAGED_BY, Object, owner

#: IPC_LOCK and hostPath are above the level baseline; OpenShift must not write labels of its own there
_SECURITY = {
    **{f"pod-security.kubernetes.io/{mode}": "privileged" for mode in ("enforce", "audit", "warn")},
    "security.openshift.io/scc.podSecurityLabelSync": "false",
}


def render_namespace(run: str) -> Object:
    """Render the namespace. Nothing binds a right in it."""
    labels = {**MANAGED_BY, LABEL: OWN, **owner(run), **_SECURITY}
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": NAMESPACE, "labels": labels, "annotations": {"openshift.io/node-selector": ""}},
    }


def render_policy(run: str) -> Object:
    """Return the NetworkPolicy of the namespace: connections come from the measuring pods of this run alone.

    mpirun and its daemons take commands from any process that connects to them, and have no other protection.
    """
    peers = {"podSelector": {"matchLabels": {**MANAGED_BY, **owner(run)}}}
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": POLICY, "namespace": NAMESPACE, "labels": {**MANAGED_BY, **owner(run)}},
        # all pods of the namespace: one that a killed run has left takes no connection either
        "spec": {"podSelector": {}, "policyTypes": ["Ingress"], "ingress": [{"from": [peers]}]},
    }


def measured(fabrics: typing.Iterable[Fabric]) -> tuple[Fabric, ...]:
    """Return the fabrics as their measuring pods see them: pods and networks are in the namespace of the measurement,
    under their own names."""
    return tuple(
        dataclasses.replace(fabric, network=dataclasses.replace(fabric.network, namespace=NAMESPACE))
        for fabric in fabrics
    )
