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
    "Correct the pod of the catalog if it is not ready: kubectl get catalogsources,pods -A. If the cluster cannot"
    " reach the catalog (for example the default catalogs of OpenShift without internet access), disable it: oc"
    ' patch operatorhub cluster --type merge -p \'{{"spec":{{"disableAllDefaultSources":true}}}}\''
)
BUNDLE = (
    "The bundle is faulty: use a different version of the operator, and report the problem to the vendor of the"
    " operator"
)


class Words(typing.NamedTuple):
    """A known message of OLM, with its explanation.

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
        "The catalog offers no operators, or responded too late. Correct its pod if it is not ready: kubectl get"
        " catalogsources,pods -A",
    ),
    (
        r"no operators found in package (\S{1,300})",
        "",
        "Correct package, or name a catalog that offers the package: kubectl get packagemanifests",
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
        "catalog {0} does not respond, and OLM installs nothing in a namespace that uses it",
        f"Repair catalog {{0}}. {_CATALOG}",
    ),
    (
        r"source \S{1,300} produced no snapshot|dependency resolution requires at least one catalogsource"
        r"|no catalog sources"
        r" available|no registry client established|failed to list bundles|while listing bundles",
        "no catalog responds",
        _CATALOG,
    ),
    (
        r"bundle (\S{1,300}) requires an operator",
        "{0} requires another operator that no catalog offers",
        (
            "Add a catalog that offers the required operator (kubectl get packagemanifests), or use a version that does"
            " not require it"
        ),
    ),
    (
        r"has a dependency without any candidates|not provided by a package in any|not found in any available Catalog",
        "the operator has a requirement that no catalog offers",
        "Add a catalog that offers the requirement: kubectl get packagemanifests",
    ),
    (
        r"(?<!\S)(\S{1,300}) and \S{1,300} (?:provide|originate from package) \S",
        "two operators of one namespace provide the same package or API: {0} and another operator",
        (
            "Delete one of the two Subscriptions, or give one of the operators its own namespace: kubectl get"
            " subscriptions.operators.coreos.com -A"
        ),
    ),
    (
        r"there can be only one (?:operator from package|provider of) (\S{1,300})",
        "two operators of one namespace provide {0}",
        (
            "Delete one of the two Subscriptions, or give one of the operators its own namespace: kubectl get"
            " subscriptions.operators.coreos.com -A"
        ),
    ),
    (
        r"conflicts with|permits at most|requires at least one of|is prohibited|is mandatory",
        "the operators that are requested in this namespace exclude each other",
        "Give each operator its own namespace: kubectl get subscriptions.operators.coreos.com -A",
    ),
    (
        r"multiple name matches for status.installedCSV of subscription (\S{1,300}?):",
        "several catalogs or ClusterServiceVersions contain the version that Subscription {0} has installed",
        "Keep one of them: kubectl get subscriptions.operators.coreos.com,clusterserviceversions -A",
    ),
    (
        r"channel heads?\b|head of channel|replacement chain|chain of replacement",
        "the channel in the catalog is damaged: its versions do not form one upgrade path",
        (
            "Use a different channel or an earlier image of the catalog, and report the problem to the vendor of the"
            " catalog"
        ),
    ),
    (
        r"expected 1 OperatorGroup in the namespace, found ([0-9]{1,9})|found ([0-9]{1,9}) operatorGroups, expected 1",
        "the namespace has {0} OperatorGroups, and OLM requires exactly one",
        "Delete all OperatorGroups of the namespace except one: kubectl get operatorgroups -A",
    ),
    (
        r"unable to determine whether subscription \S{1,300} has a preexisting CSV"
        r"|failed to retrieve properties of csv",
        "a ClusterServiceVersion of the namespace could not be read",
        "Correct or delete the ClusterServiceVersion that OLM cannot read: kubectl get clusterserviceversions -A",
    ),
)

#: in whatever message
ANYWHERE = _build_explanations(
    (
        r'no endpoints available for service "([^"]{1,300})"',
        "a webhook is not available: Service {0} has no ready address",
        (
            "Restore the pod of Service {0}, or delete the webhook if its operator was removed: kubectl get"
            " validatingwebhookconfigurations,mutatingwebhookconfigurations"
        ),
    ),
    (
        r'failed calling webhook "([^"]{1,300})"',
        "webhook {0} does not respond",
        (
            "Correct the pod of its Service if it is not ready; kubectl get"
            " validatingwebhookconfigurations,mutatingwebhookconfigurations shows the Service"
        ),
    ),
    (
        r'risk of data loss updating "([^"]{1,300})"',
        "CRD {0} exists in an older version, and objects are stored in a version that the new CRD does not serve",
        (
            "Migrate the objects, then remove the old version from status.storedVersions: kubectl get crd {0} -o"
            " jsonpath='{{.status.storedVersions}}'"
        ),
    ),
    (
        r"existing CRs against new CRD's schema for \"([^\"]{1,300})\"|updated validation is too restrictive",
        "CRD {0} exists in an older version, and some of its objects do not match the new schema",
        (
            "Correct or delete the objects that the message names; kubectl get crd {0} -o"
            " jsonpath='{{.spec.names.plural}}' shows their kind"
        ),
    ),
    (
        r'(?:error updating|updating existing) CRD "?([\w.-]{1,300})"?|error finding the "([^"]{1,300})" CRD',
        "CRD {0} already exists and cannot be upgraded to the new version",
        (
            "Let the owner of the CRD upgrade it: kubectl get crd {0} -o yaml shows the owner. If there is no owner"
            " (helm uninstall keeps CRDs) and no object of the kind, delete the CRD"
        ),
    ),
    (
        r"conflicting CRD owner in namespace|pre-existing CRD owners found",
        "another operator of the namespace owns a CRD of this operator",
        "Remove the other operator: kubectl get clusterserviceversions -A",
    ),
    (
        r"unable to adopt APIService|pre-existing APIService (\S{1,300}) is not adoptable",
        "another component already serves the API of this operator",
        "Remove that component: kubectl get apiservices shows its Service",
    ),
    (
        r"minKubeVersion \(([^)]{1,60})\) > server version",
        "the operator requires Kubernetes {0} or later",
        "Upgrade the cluster, or set version to an older version of the channel: kubectl get packagemanifests -o yaml",
    ),
    (
        r"Policy rule not satisfied for service account|attempting to grant RBAC permissions not currently held",
        "the service account that installs the operator lacks required rights",
        (
            "Grant the rights to the service account in spec.serviceAccountName of the OperatorGroup, or remove this"
            " field: kubectl get operatorgroups -A -o yaml"
        ),
    ),
    (
        r"attenuated service account query failed|attach attenuated ServiceAccount",
        "the service account that the OperatorGroup names does not exist, or has no secret",
        "Create the service account in spec.serviceAccountName of the OperatorGroup with its secret, or remove this"
        " field: kubectl get operatorgroups -A -o yaml",
    ),
    (
        r"Service account is owned by another ClusterServiceVersion",
        "the service account of the operator belongs to another operator",
        "Remove the other operator: kubectl get clusterserviceversions -A",
    ),
    (
        r"Service account does not exist",
        "the service account of the operator does not exist",
        "Correct the cause in the events: kubectl get events -A",
    ),
    (
        r"CRD is not present|CRD version not served|Established condition is False|Native API does not exist",
        "a required CRD or API does not exist, or not in the required version",
        (
            "Install the operator or the Kubernetes release that provides it: kubectl get crd, kubectl api-versions."
            " The CRDs of the operator itself come with its InstallPlan: kubectl get installplans -A"
        ),
    ),
    (
        r"exceeded quota: ([^,\s]{1,300})",
        "quota {0} of the namespace is used up",
        "Raise the quota, or give the operator a namespace without a quota: kubectl get resourcequotas -A",
    ),
    (
        r"violates PodSecurity \"([^\"]{1,300})\"",
        "the namespace rejects the pods of the operator (Pod Security {0})",
        "Set the label pod-security.kubernetes.io/enforce=privileged on the namespace (kubectl label namespace)",
    ),
    (
        r"conversion webhooks must support only AllNamespaces",
        "the operator converts objects with a webhook, so it must watch all namespaces",
        "Leave target_namespaces empty",
    ),
    (
        r"[Ww]ebhook rules cannot include|repeated WebhookDescription name|Repeated WebhookDescription name"
        r"|onversion [Ww]ebhook must have at least one|onversion webhook owner must be|ConversionWebhook owner must be"
        r"|does not own CRD|PreserveUnknownFields must be false|CRD with Conversion info"
        r"|specified in Conversion Webhook",
        "a webhook definition in the bundle is invalid",
        BUNDLE,
    ),
    (
        r"the InstallPlan contains invalid data|couldn't parse bundle|bundle CSV \S{1,300} missing"
        r"|CSV version parsing error|rule unmarshallable|failed to turn bundle"
        r" into steps|install strategy invalid|olm\.constraint|constraint is empty|not cast install strategy",
        "the bundle could not be read",
        BUNDLE,
    ),
    (
        r"Reason: DeadlineExceeded|Reason: BackoffLimitExceeded|unpack job has failed|Bundle image pull failed",
        "the image of the bundle could not be pulled or read in time",
        (
            "Pull the image on a node with crictl pull to see the reason. If the cluster uses a mirror, check that the"
            " mirror has the image. The InstallPlan contains its name: kubectl get installplans -A -o yaml"
        ),
    ),
    (
        r"Unpack pod\((\S{1,300}?)\) container\(\S{1,300}?\) is pending",
        "pod {0}, which unpacks the bundle, has not started",
        "Correct the cause in the events of the pod: kubectl describe pods -A -l"
        " operatorframework.io/bundle-unpack-ref",
    ),
    (
        r"referenced catalogsource not found|targeted catalogsource (\S{1,300}) missing",
        "the CatalogSource that the Subscription names does not exist",
        "Name an existing CatalogSource, or create this CatalogSource: kubectl get catalogsources -A",
    ),
    (
        r"targeted catalogsource (\S{1,300}) unhealthy|couldn't connect to registry|couldn't ensure registry server",
        "the catalog does not respond",
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
        "the pods of the operator were not ready in time",
        "Correct the cause in the events of the pods: kubectl get pods,events -A",
    ),
    (
        r"fail forward upgrades enabled, unable to identify|no replacement CSV found",
        "the ClusterServiceVersions of the namespace do not form one upgrade path",
        "Delete the ClusterServiceVersion that no Subscription references: kubectl get clusterserviceversions -A",
    ),
    (
        r"error creating secret|secret \S{1,300} does not exist",
        "a secret for the service account of the operator could not be created",
        "Correct the cause in the events: kubectl get events -A",
    ),
)


def explain_resolution(said: str, package: str) -> tuple[str, str]:
    """Return the cause why OLM cannot resolve a package, and the next step. Both are empty if the message is unknown.

    :param said: message of OLM
    :param package: name of the requested package
    """
    cause, remedy = _find_explanation(RESOLUTION, said) or _find_explanation(ANYWHERE, said) or ("", "")
    return cause, remedy.replace("PACKAGE", package)


def explain_words(said: str) -> typing.Optional[tuple[str, str]]:
    """Return the cause of a message of OLM and the next step. Return None if the message is unknown.

    :param said: message of OLM
    """
    return _find_explanation(ANYWHERE, said)


def _find_explanation(table: typing.Iterable[Words], said: str) -> typing.Optional[tuple[str, str]]:
    for words in table:
        match = words.pattern.search(said)
        if match:
            found = next(filter(None, match.groups()), "")
            return words.cause.format(found), words.remedy.format(found)
    return None
