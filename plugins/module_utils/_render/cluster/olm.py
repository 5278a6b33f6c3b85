# SPDX-License-Identifier: GPL-3.0-or-later

"""What the collection makes so that OLM installs an operator: Namespace, OperatorGroup, Subscription."""

from __future__ import annotations

import typing

from ..._model.base.marks import MANAGED_BY
from ..._model.operators.olm import OperatorWish

Resource = dict[str, typing.Any]

#: of the OperatorGroup, of which a namespace has one
GROUP_NAME = "linerate-rdma"


def render_namespace(name: str) -> Resource:
    """These operators run pods that change the node."""
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": name, "labels": {**MANAGED_BY, "pod-security.kubernetes.io/enforce": "privileged"}},
    }


def render_operator_group(name: str, space: str, targets: typing.Sequence[str]) -> Resource:
    spec = {"targetNamespaces": sorted(targets)} if targets else {}
    return {
        "apiVersion": "operators.coreos.com/v1",
        "kind": "OperatorGroup",
        "metadata": {"name": name, "namespace": space, "labels": MANAGED_BY},
        "spec": spec,
    }


def render_subscription(name: str, wish: OperatorWish, pinned: str) -> Resource:
    """:param wish: with its channel and its catalog; without a channel OLM takes the catalog's default
    :param pinned: name of the ClusterServiceVersion to begin with
    """
    spec = {
        "name": wish.package,
        "source": wish.source,
        "sourceNamespace": wish.source_namespace,
        # what is installed, and when, says the intent
        "installPlanApproval": "Manual",
        **({"channel": wish.channel} if wish.channel else {}),
        **({"startingCSV": pinned} if pinned else {}),
    }
    metadata = {"name": name, "namespace": wish.namespace, "labels": MANAGED_BY}
    return {"apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription", "metadata": metadata, "spec": spec}
