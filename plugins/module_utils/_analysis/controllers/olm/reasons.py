# SPDX-License-Identifier: GPL-3.0-or-later

"""The reasons of a ClusterServiceVersion of OLM v0, each with its cause and the next step.

[src operator-framework/operator-lifecycle-manager v0.18 to v0.46: pkg/controller/operators/olm; operator-framework/api
pkg/operators/v1alpha1].
"""

from __future__ import annotations

import typing

from .messages import BUNDLE

#: reasons of a ClusterServiceVersion that say less than its message may
GENERAL = frozenset(
    (
        "RequirementsNotMet",
        "InvalidInstallStrategy",
        "InstallComponentFailed",
        "InstallComponentFailedNoRetry",
        "APIServiceInstallFailed",
    )
)
#: reason of a ClusterServiceVersion: cause, next step. {0} is its namespace
REASONS: typing.Mapping[str, tuple[str, str]] = {
    "TooManyOperatorGroups": (
        "the namespace has more than one OperatorGroup",
        "Delete all OperatorGroups of the namespace except one: kubectl -n {0} get operatorgroups",
    ),
    "NoOperatorGroup": (
        "the namespace has no OperatorGroup",
        "Rerun to create an OperatorGroup, or find the reason in the events: kubectl -n {0} get events",
    ),
    "UnsupportedOperatorGroup": (
        "the operator cannot watch the namespaces of its OperatorGroup",
        (
            "Set target_namespaces to namespaces that the operator supports: its own namespace, or an empty list for"
            " all namespaces. spec.installModes of the ClusterServiceVersion lists the supported modes"
        ),
    ),
    "InvalidInstallModes": ("the install modes in its bundle contradict each other", BUNDLE),
    "NoTargetNamespaces": (
        "the OperatorGroup selects no namespace",
        "Correct the OperatorGroup: kubectl -n {0} edit operatorgroup",
    ),
    "CannotModifyStaticOperatorGroupProvidedAPIs": (
        "the OperatorGroup is marked static (spec.staticProvidedAPIs), and lacks an API of this operator",
        "Remove staticProvidedAPIs from the OperatorGroup: kubectl -n {0} edit operatorgroup",
    ),
    "OwnerConflict": ("another operator owns a CRD of this operator", "Remove the operator that the message names"),
    "InterOperatorGroupOwnerConflict": (
        "an operator of a different OperatorGroup owns a CRD of this operator",
        "Remove the other operator: kubectl get clusterserviceversions -A",
    ),
    "RequirementsNotMet": (
        "a requirement of the operator is missing",
        "Install the requirement that status.requirementStatus lists as missing: kubectl -n {0} get"
        " clusterserviceversions -o yaml",
    ),
    "InvalidInstallStrategy": ("the bundle could not be read", BUNDLE),
    "InvalidWebhookDescription": ("a webhook definition in the bundle is invalid", BUNDLE),
    "InstallComponentFailed": (
        "OLM could not create the objects of the operator",
        "Correct the error in the message or in the events: kubectl -n {0} get events",
    ),
    "InstallComponentFailedNoRetry": (
        "OLM could not create the objects of the operator, and does not try again",
        (
            "Correct the error in the message, and delete the ClusterServiceVersion and its Subscription"
            " (kubectl -n {0} get"
            " clusterserviceversions,subscriptions.operators.coreos.com). Then run stage operators again"
        ),
    ),
    "APIServiceInstallFailed": (
        "the API of the operator could not be set up",
        (
            "Correct the pods and Services of the operator that are not ready: kubectl -n {0} get"
            " pods,endpointslices; and kubectl get apiservices"
        ),
    ),
    "APIServiceResourceIssue": (
        "the API of the operator is not available",
        "Correct the pods and Services of the operator that are not ready: kubectl -n {0} get pods,endpointslices",
    ),
    "ComponentUnhealthy": (
        "the pods of the operator were ready, and are not ready now",
        "Correct the cause in the events of the pods that are not ready: kubectl -n {0} describe pods",
    ),
    "InstallCheckFailed": (
        "the pods of the operator were not ready in time",
        "Correct the cause in the events of the pods that are not ready: kubectl -n {0} describe pods",
    ),
    "OperatorConditionNotUpgradeable": (
        "the installed version of the operator reports that it must not be upgraded now",
        "Wait until the condition Upgradeable is True, or correct its cause: kubectl -n {0} get operatorconditions"
        " -o yaml",
    ),
    "WaitingOnCleanup": (
        "OLM is still deleting the objects of the operator",
        (
            "Remove the finalizers of the remaining objects whose controller no longer exists: kubectl -n {0} get"
            " clusterserviceversions -o yaml (status.cleanup)"
        ),
    ),
}
#: reasons of a ClusterServiceVersion on its way: OLM goes on by itself
ON_THE_WAY = frozenset(
    (
        "RequirementsUnknown",
        "AllRequirementsMet",
        "InstallSucceeded",
        "InstallWaiting",
        "BeingReplaced",
        "Replaced",
        "NeedsReinstall",
        "NeedsCertRotation",
        "DetectedClusterChange",
        "APIServiceResourcesNeedReinstall",
        "Copied",
    )
)
