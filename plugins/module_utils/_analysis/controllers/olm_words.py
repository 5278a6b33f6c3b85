# SPDX-License-Identifier: GPL-3.0-or-later

"""The messages of OLM v0, and of the API server as OLM repeats them, each with its cause and the next step.

[src operator-framework/operator-lifecycle-manager v0.18 to v0.46: pkg/controller/registry/resolver,
pkg/controller/bundle, pkg/controller/install, pkg/controller/operators/catalog and olm; operator-framework/api
pkg/operators/v1alpha1].
"""

from __future__ import annotations

import re
import typing

_CATALOG = (
    "See its pod: kubectl get catalogsources,pods -A. Where the cluster can't reach it, as OpenShift's own ones without"
    ' a way to the internet, switch it off: oc patch operatorhub cluster --type merge -p \'{{"spec":'
    '{{"disableAllDefaultSources":true}}}}\''
)
_BUNDLE = "The mistake is in the bundle: take another version of the operator, and tell who makes it"


class Words(typing.NamedTuple):
    """A message of OLM.

    :ivar pattern: pattern of the message
    :ivar cause: cause, in which {0} is the text that the pattern captured; empty if the message itself names the cause
    :ivar remedy: next step, with {0} as in ``cause``; PACKAGE represents the requested package
    """

    pattern: typing.Pattern[str]
    cause: str
    remedy: str


def _build_explanations(*rows: tuple[str, str, str]) -> tuple[Words, ...]:
    return tuple(Words(re.compile(pattern), cause, remedy) for pattern, cause, remedy in rows)


#: why the resolver finds no way to install an operator; the first that fits counts
RESOLUTION = _build_explanations(
    (
        r"no operators found from catalog (\S{1,300})",
        "",
        "The catalog offers nothing, or answered late: see its pod, kubectl get catalogsources -A",
    ),
    (
        r"no operators found in package (\S{1,300})",
        "",
        "Correct package, or name the catalog that has it: kubectl get packagemanifests",
    ),
    (
        r"no operators found in channel (\S{1,300})",
        "",
        "Correct channel: kubectl get packagemanifest PACKAGE -o jsonpath='{{.status.channels[*].name}}'",
    ),
    (
        r"no operators found with name (\S{1,300})",
        "",
        "Correct version: kubectl get packagemanifest PACKAGE -o jsonpath='{{.status.channels[*].entries[*].name}}'",
    ),
    (
        r"no operators found matching the criteria|could not find any potential bundles",
        "",
        "Correct package, channel and source: kubectl get packagemanifests",
    ),
    (
        r"(?:error using catalogsource |failed to populate resolver cache from source )([^\s:]{1,300})",
        "catalog {0} does not answer, and OLM installs nothing in a namespace that sees it",
        f"Repair catalog {{0}}. {_CATALOG}",
    ),
    (
        r"source \S{1,300} produced no snapshot|dependency resolution requires at least one catalogsource"
        r"|no catalog sources"
        r" available|no registry client established|failed to list bundles|while listing bundles",
        "no catalog answers",
        _CATALOG,
    ),
    (
        r"bundle (\S{1,300}) requires an operator",
        "{0} requires another operator that no catalog offers",
        (
            "Add the catalog that offers what it names (kubectl get packagemanifests), or take a version that does not"
            " require it"
        ),
    ),
    (
        r"has a dependency without any candidates|not provided by a package in any|not found in any available Catalog",
        "it requires something that no catalog offers",
        "Add the catalog that offers what it names: kubectl get packagemanifests",
    ),
    (
        r"(?<!\S)(\S{1,300}) and \S{1,300} (?:provide|originate from package) \S",
        "two operators of one namespace bring the same package or API, {0} and another one",
        (
            "Delete one of their Subscriptions, or give one a namespace of its own: kubectl get"
            " subscriptions.operators.coreos.com -A"
        ),
    ),
    (
        r"there can be only one (?:operator from package|provider of) (\S{1,300})",
        "two operators of one namespace bring {0}",
        (
            "Delete one of their Subscriptions, or give one a namespace of its own: kubectl get"
            " subscriptions.operators.coreos.com -A"
        ),
    ),
    (
        r"conflicts with|permits at most|requires at least one of|is prohibited|is mandatory",
        "the operators that are asked for in this namespace exclude each other",
        "Give each of them a namespace of its own: kubectl get subscriptions.operators.coreos.com -A",
    ),
    (
        r"multiple name matches for status.installedCSV of subscription (\S{1,300}?):",
        "several catalogs or ClusterServiceVersions have what Subscription {0} has installed",
        "Keep one: kubectl get subscriptions.operators.coreos.com,clusterserviceversions -A",
    ),
    (
        r"channel heads?\b|head of channel|replacement chain|chain of replacement",
        "the channel in the catalog is damaged: its versions do not follow each other",
        "Take another channel, or an earlier image of the catalog, and tell who makes the catalog",
    ),
    (
        r"expected 1 OperatorGroup in the namespace, found ([0-9]{1,9})|found ([0-9]{1,9}) operatorGroups, expected 1",
        "its namespace has {0} OperatorGroups, and OLM needs one",
        "Keep one of them: kubectl get operatorgroups -A",
    ),
    (
        r"unable to determine whether subscription \S{1,300} has a preexisting CSV"
        r"|failed to retrieve properties of csv",
        "a ClusterServiceVersion of the namespace can't be read",
        "See them: kubectl get clusterserviceversions -A",
    ),
)

#: in whatever message
ANYWHERE = _build_explanations(
    (
        r'no endpoints available for service "([^"]{1,300})"',
        "a webhook does not serve: Service {0} has no address that is ready",
        (
            "Bring the pod of Service {0} back, or delete the webhook of an operator that is gone: "
            "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations"
        ),
    ),
    (
        r'failed calling webhook "([^"]{1,300})"',
        "webhook {0} does not answer",
        (
            "See the pod behind it; kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations shows its"
            " Service"
        ),
    ),
    (
        r'risk of data loss updating "([^"]{1,300})"',
        "definition {0} is there in an older version, in which objects are stored that the new one does not serve",
        (
            "Migrate its objects, then take the old version out of status.storedVersions: kubectl get crd {0} -o"
            " jsonpath='{{.status.storedVersions}}'"
        ),
    ),
    (
        r"existing CRs against new CRD's schema for \"([^\"]{1,300})\"|updated validation is too restrictive",
        "definition {0} is there in an older version, and objects of it do not fit the new one",
        (
            "Correct or delete the objects that it names; kubectl get crd {0} -o jsonpath='{{.spec.names.plural}}'"
            " tells their kind"
        ),
    ),
    (
        r'(?:error updating|updating existing) CRD "?([\w.-]{1,300})"?|error finding the "([^"]{1,300})" CRD',
        "definition {0} is there already, and cannot be brought to the new version",
        (
            "See who made it: kubectl get crd {0} -o yaml; helm uninstall keeps definitions. Delete it where no object"
            " of it is left"
        ),
    ),
    (
        r"conflicting CRD owner in namespace|pre-existing CRD owners found",
        "another operator of the namespace owns one of its definitions",
        "Remove the other one: kubectl get clusterserviceversions -A",
    ),
    (
        r"unable to adopt APIService|pre-existing APIService (\S{1,300}) is not adoptable",
        "the API that it serves is served by somebody else already",
        "See who does, and remove it: kubectl get apiservices",
    ),
    (
        r"minKubeVersion \(([^)]{1,60})\) > server version",
        "it needs Kubernetes {0} or newer",
        "Upgrade the cluster, or set version to an older one of its channel: kubectl get packagemanifests -o yaml",
    ),
    (
        r"Policy rule not satisfied for service account|attempting to grant RBAC permissions not currently held",
        "the service account that installs it lacks rights that it needs",
        (
            "See spec.serviceAccountName of the OperatorGroup: kubectl get operatorgroups -A -o yaml. Grant these"
            " rights to it, or remove the name"
        ),
    ),
    (
        r"attenuated service account query failed|attach attenuated ServiceAccount",
        "the service account that the OperatorGroup names is not there, or has no secret",
        "See spec.serviceAccountName of the OperatorGroup: kubectl get operatorgroups -A -o yaml",
    ),
    (
        r"Service account is owned by another ClusterServiceVersion",
        "its service account belongs to another operator",
        "Remove the other one: kubectl get clusterserviceversions -A",
    ),
    (
        r"Service account does not exist",
        "its service account is not there",
        "See who removed it, or refuses it: kubectl get events -A",
    ),
    (
        r"CRD is not present|CRD version not served|Established condition is False|Native API does not exist",
        "a definition or an API that it requires is not there, or not in this version",
        (
            "Install the operator or the release of Kubernetes that brings it: kubectl get crd, kubectl api-versions. A"
            " definition of its own comes with its InstallPlan: kubectl get installplans -A"
        ),
    ),
    (
        r"exceeded quota: ([^,\s]{1,300})",
        "quota {0} of its namespace is used up",
        "Raise the quota, or give the operator a namespace without one: kubectl get resourcequotas -A",
    ),
    (
        r"violates PodSecurity \"([^\"]{1,300})\"",
        "its namespace refuses its pods (Pod Security {0})",
        "Set the label pod-security.kubernetes.io/enforce=privileged on that namespace (kubectl label namespace)",
    ),
    (
        r"conversion webhooks must support only AllNamespaces",
        "it converts objects by a webhook, and so must watch all namespaces",
        "Leave target_namespaces empty",
    ),
    (
        r"[Ww]ebhook rules cannot include|repeated WebhookDescription name|Repeated WebhookDescription name"
        r"|onversion [Ww]ebhook must have at least one|onversion webhook owner must be|ConversionWebhook owner must be"
        r"|does not own CRD|PreserveUnknownFields must be false|CRD with Conversion info"
        r"|specified in Conversion Webhook",
        "a webhook in its bundle is wrong",
        _BUNDLE,
    ),
    (
        r"the InstallPlan contains invalid data|couldn't parse bundle|bundle CSV \S{1,300} missing"
        r"|CSV version parsing error|rule unmarshallable|failed to turn bundle"
        r" into steps|install strategy invalid|olm\.constraint|constraint is empty|not cast install strategy",
        "its bundle can't be read",
        _BUNDLE,
    ),
    (
        r"Reason: DeadlineExceeded|Reason: BackoffLimitExceeded|unpack job has failed|Bundle image pull failed",
        "the bundle's image could not be pulled, or not be read in time",
        (
            "Pull it on a node with crictl pull to see why; where the cluster has a mirror, see that it has this image."
            " Its name is in the InstallPlan: kubectl get installplans -A -o yaml"
        ),
    ),
    (
        r"Unpack pod\((\S{1,300}?)\) container\(\S{1,300}?\) is pending",
        "pod {0}, which unpacks the bundle, has not started",
        "See it: kubectl get pods -A -l operatorframework.io/bundle-unpack-ref",
    ),
    (
        r"referenced catalogsource not found|targeted catalogsource (\S{1,300}) missing",
        "the CatalogSource that its Subscription names is not there",
        "Name one that is, or create it: kubectl get catalogsources -A",
    ),
    (
        r"targeted catalogsource (\S{1,300}) unhealthy|couldn't connect to registry|couldn't ensure registry server",
        "the catalog does not answer",
        _CATALOG,
    ),
    (
        r"configmap name unset|image and address unset|unknown sourcetype|no reconciler for source type|error parsing"
        r" spec\.updateStrategy|failed to get catalog config map|empty polling interval",
        "the CatalogSource is incomplete",
        "Correct its spec: kubectl get catalogsources -A -o yaml",
    ),
    (
        r"not ready before timeout|install timeout",
        "its pods did not get ready in time",
        "See them, and their events: kubectl get pods,events -A",
    ),
    (
        r"fail forward upgrades enabled, unable to identify|no replacement CSV found",
        "the ClusterServiceVersions of its namespace do not follow each other",
        "See them, and delete the one that no Subscription has: kubectl get clusterserviceversions -A",
    ),
    (
        r"error creating secret|secret \S{1,300} does not exist",
        "a secret for its service account can't be made",
        "See who removed it, or refuses it: kubectl get events -A",
    ),
)

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
        "its namespace has more than one OperatorGroup",
        "Keep one of them: kubectl -n {0} get operatorgroups",
    ),
    "NoOperatorGroup": (
        "its namespace has no OperatorGroup",
        "Run again, which makes one; or see who deleted it: kubectl -n {0} get events",
    ),
    "UnsupportedOperatorGroup": (
        "it cannot watch the namespaces of its OperatorGroup",
        (
            "Set target_namespaces to what it supports: its own namespace, or none for all; its spec.installModes list"
            " them"
        ),
    ),
    "InvalidInstallModes": ("the install modes in its bundle contradict each other", _BUNDLE),
    "NoTargetNamespaces": (
        "its OperatorGroup selects no namespace",
        "Correct the OperatorGroup: kubectl -n {0} edit operatorgroup",
    ),
    "CannotModifyStaticOperatorGroupProvidedAPIs": (
        "its OperatorGroup is marked static (spec.staticProvidedAPIs), and lacks an API of this operator",
        "Take staticProvidedAPIs out of it: kubectl -n {0} edit operatorgroup",
    ),
    "OwnerConflict": ("another operator owns one of its definitions", "Remove the other one, which the message names"),
    "InterOperatorGroupOwnerConflict": (
        "an operator of another OperatorGroup owns one of its definitions",
        "Remove the other one: kubectl get clusterserviceversions -A",
    ),
    "RequirementsNotMet": (
        "something that it requires is missing",
        "See status.requirementStatus: kubectl -n {0} get clusterserviceversions -o yaml",
    ),
    "InvalidInstallStrategy": ("its bundle can't be read", _BUNDLE),
    "InvalidWebhookDescription": ("a webhook in its bundle is wrong", _BUNDLE),
    "InstallComponentFailed": (
        "OLM could not make its objects",
        "See the message, and what refuses them: kubectl -n {0} get events",
    ),
    "InstallComponentFailedNoRetry": (
        "OLM could not make its objects, and does not try again by itself",
        (
            "Mend what the message names, then delete the ClusterServiceVersion and its Subscription, and run again:"
            " kubectl -n {0} get clusterserviceversions,subscriptions.operators.coreos.com"
        ),
    ),
    "APIServiceInstallFailed": (
        "the API that it serves could not be set up",
        "See its pods and Services: kubectl -n {0} get pods,endpointslices; and kubectl get apiservices",
    ),
    "APIServiceResourceIssue": (
        "the API that it serves is not there",
        "See its pods and Services: kubectl -n {0} get pods,endpointslices",
    ),
    "ComponentUnhealthy": ("its pods ran, and are not ready any more", "See them: kubectl -n {0} get pods"),
    "InstallCheckFailed": ("its pods did not get ready in time", "See them: kubectl -n {0} get pods"),
    "OperatorConditionNotUpgradeable": (
        "the operator before it says that it may not be upgraded now",
        "kubectl -n {0} get operatorconditions -o yaml",
    ),
    "WaitingOnCleanup": (
        "its objects are deleted before it, and one of them is not gone yet",
        "See which, and its finalizers: kubectl -n {0} get clusterserviceversions -o yaml (status.cleanup)",
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


def explain_resolution(said: str, package: str) -> tuple[str, str]:
    """Return the cause why OLM cannot resolve a package, and the next step. Both are empty if the message is unknown.

    :param said: message of OLM
    :param package: name of the requested package
    """
    cause, remedy = _find_explanation(RESOLUTION, said) or _find_explanation(ANYWHERE, said) or ("", "")
    return cause, remedy.replace("PACKAGE", package)


def explain_words(said: str) -> typing.Optional[tuple[str, str]]:
    """Return the cause and the next step for a message, or None if the message is unknown."""
    return _find_explanation(ANYWHERE, said)


def _find_explanation(table: typing.Iterable[Words], said: str) -> typing.Optional[tuple[str, str]]:
    for words in table:
        match = words.pattern.search(said)
        if match:
            found = next(filter(None, match.groups()), "")
            return words.cause.format(found), words.remedy.format(found)
    return None
