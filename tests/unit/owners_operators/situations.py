# SPDX-License-Identifier: GPL-3.0-or-later

"""The table of the owners of an operator's objects: for each kind that the operators' code writes or deletes, and each
owner, what a run and a teardown may do with the object. Each cell is a test of its kind in this folder."""

from __future__ import annotations

import typing

#: what happens to an object: it is changed or deleted, it stays and is named, or the run or the teardown ends before it
TAKE, KEEP, REFUSE = "take", "keep", "refuse"
#: owners
OWN = "this intent"
EARLIER = "an earlier release of this intent, without a label of the intent"
OTHER = "another intent"
TWIN = "another intent with the default name"
SHARED = "two intents"
HAND = "an admin by hand"
COPY = "an admin, who copied an object with its labels"
HELM = "a Helm release of others"
GITOPS = "GitOps, with ownership annotations"
CATALOG = "OLM"
NEEDED = "another operator needs it"
PODS = "running pods depend on it"
NEWER = "an admin, or a newer release of the collection"
UPGRADING, SCALED = "an upgrade of OpenShift", "the cluster-autoscaler"
#: what a run or a teardown does
INSTALL, UPGRADE, UPGRADE_NONE = "install", "upgrade", "upgrade, disruption: none"
ROLL = "roll"
TEARDOWN, TEARDOWN_NONE = "teardown", "teardown, disruption: none"

Cell = tuple[str, str, str]
#: kinds that configure the operators of OLM
CONFIGURATIONS = ("NodeFeatureDiscovery", "SriovOperatorConfig", "JobSetOperator", "Kueue")
_OF_ADMINS: tuple[Cell, ...] = (
    (OWN, TEARDOWN, TAKE),
    (HAND, TEARDOWN, KEEP),
    (GITOPS, TEARDOWN, KEEP),
)
#: owner, action, result, of each kind
TABLE: dict[str, tuple[Cell, ...]] = {
    "NicClusterPolicy": (
        (OWN, INSTALL, TAKE),
        (OWN, TEARDOWN, TAKE),
        (OWN, TEARDOWN_NONE, REFUSE),
        (EARLIER, INSTALL, TAKE),
        (EARLIER, TEARDOWN, TAKE),
        (OTHER, INSTALL, REFUSE),
        (OTHER, TEARDOWN, KEEP),
        (TWIN, INSTALL, REFUSE),
        (TWIN, TEARDOWN, KEEP),
        (SHARED, INSTALL, KEEP),
        (SHARED, TEARDOWN, KEEP),
        (SHARED, TEARDOWN_NONE, KEEP),
        (HAND, TEARDOWN, KEEP),
        (NEEDED, TEARDOWN, KEEP),
    ),
    # with its ClusterServiceVersion
    "Subscription": (
        (OWN, INSTALL, TAKE),
        (HAND, INSTALL, KEEP),
        (COPY, INSTALL, KEEP),
        (GITOPS, INSTALL, KEEP),
        (OWN, UPGRADE_NONE, REFUSE),
        (OWN, TEARDOWN, TAKE),
        (OWN, TEARDOWN_NONE, KEEP),
        (OTHER, TEARDOWN, KEEP),
        (TWIN, TEARDOWN, KEEP),
        (SHARED, TEARDOWN, KEEP),
        (HAND, TEARDOWN, KEEP),
        (COPY, TEARDOWN, KEEP),
        (GITOPS, TEARDOWN, KEEP),
        (NEEDED, TEARDOWN, KEEP),
        (PODS, TEARDOWN, KEEP),
    ),
    # the settings or the catalog name the package of the operator otherwise than the collection
    "Subscription of another package": (
        (OWN, INSTALL, KEEP),
        (OWN, TEARDOWN, TAKE),
        (OWN, TEARDOWN_NONE, KEEP),
        (NEEDED, TEARDOWN, KEEP),
        (PODS, TEARDOWN, KEEP),
    ),
    "OperatorGroup": (
        (HAND, INSTALL, REFUSE),
        (COPY, INSTALL, REFUSE),
        (GITOPS, INSTALL, REFUSE),
        (OWN, TEARDOWN, TAKE),
        (HAND, TEARDOWN, KEEP),
        (COPY, TEARDOWN, KEEP),
        (GITOPS, TEARDOWN, KEEP),
        (NEEDED, TEARDOWN, KEEP),
    ),
    # it would upgrade the operator of another owner too
    "InstallPlan": ((SHARED, INSTALL, REFUSE),),
    # as all objects that configure an operator of OLM, with their definitions
    **dict.fromkeys(CONFIGURATIONS, _OF_ADMINS),
    # a definition goes with its last object, and an Operator with its last definition
    "CustomResourceDefinition": _OF_ADMINS,
    "ClusterServiceVersion": _OF_ADMINS,
    "Operator": _OF_ADMINS,
    "Namespace": ((OWN, TEARDOWN, TAKE), (GITOPS, TEARDOWN, KEEP)),
    "Helm release": (
        (OWN, UPGRADE, TAKE),
        (EARLIER, UPGRADE, TAKE),
        (EARLIER, UPGRADE_NONE, REFUSE),
        (NEWER, UPGRADE, REFUSE),
        (NEWER, UPGRADE_NONE, REFUSE),
        (HELM, UPGRADE, KEEP),
        (GITOPS, UPGRADE, KEEP),
        (HAND, UPGRADE, KEEP),
        (OWN, TEARDOWN, TAKE),
        (HELM, TEARDOWN, KEEP),
        (GITOPS, TEARDOWN, KEEP),
        (HAND, TEARDOWN, KEEP),
    ),
    # from the folder crds, which Helm does not upgrade
    "CustomResourceDefinition of a chart": (
        (OWN, UPGRADE, TAKE),
        (EARLIER, UPGRADE, TAKE),
        (GITOPS, UPGRADE, REFUSE),
        (HELM, UPGRADE, REFUSE),
        (CATALOG, UPGRADE, REFUSE),
        # equal to that of the chart
        (GITOPS, UPGRADE, KEEP),
        (HELM, UPGRADE, KEEP),
        (CATALOG, UPGRADE, KEEP),
    ),
    # values of node feature discovery, whose labels other operators need
    "Helm values": (
        (HAND, UPGRADE, KEEP),
        (HAND, UPGRADE_NONE, KEEP),
        (NEEDED, UPGRADE, TAKE),
        (NEEDED, UPGRADE_NONE, REFUSE),
    ),
    # Helm's records of the revisions of a release that did not complete
    "Secret": ((OWN, UPGRADE, TAKE),),
    # the machine config operator and the cluster-autoscaler own nodes too
    "Node": (
        (OWN, ROLL, TAKE),
        (UPGRADING, ROLL, REFUSE),
        (SCALED, ROLL, TAKE),
    ),
    # of the GPU operator: stage host adds one field, and a teardown leaves it
    "ClusterPolicy": ((HAND, UPGRADE, TAKE),),
    "NVIDIADriver": ((HAND, UPGRADE, KEEP),),
}


def cells(kind: str) -> list[typing.Any]:
    """The cells of a kind, as parameters of a test."""
    return [*TABLE[kind]]
