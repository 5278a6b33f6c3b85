# SPDX-License-Identifier: GPL-3.0-or-later

"""The objects that make OLM install an operator: Namespace, OperatorGroup, Subscription."""

from __future__ import annotations

import typing

from ..._model.base.marks import MANAGED_BY
from ..._model.operators.olm import DesiredOperator

Resource = dict[str, typing.Any]

#: of the OperatorGroup, of which a namespace has one
GROUP_NAME = "linerate-rdma"


def render_namespace(name: str) -> Resource:
    """Render the namespace of an operator. It admits privileged pods, because these operators change the node."""
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


def render_subscription(name: str, wish: DesiredOperator, pinned: str) -> Resource:
    """Render the Subscription of an operator, with manual approval of install plans.

    :param name: name of the Subscription
    :param wish: the desired operator with its catalog and its channel; without a channel OLM takes the default of the
        catalog
    :param pinned: name of the first ClusterServiceVersion to install; empty: the latest of the channel
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
