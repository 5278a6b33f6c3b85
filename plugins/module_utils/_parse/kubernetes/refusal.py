# SPDX-License-Identifier: GPL-3.0-or-later

"""Explain why an API server rejected an object if neither the object nor the user is the cause, such as a webhook that
does not respond or an outdated definition.

[src Kubernetes 1.34 apiserver pkg/admission/plugin/webhook/errors; apimachinery
pkg/util/managedfields/internal/structuredmerge.go, whose error has status 500 and no reason; apiserver
pkg/endpoints/handlers/rest.go fieldValidation]
"""

from __future__ import annotations

import re
import typing


class RefusalCause(typing.NamedTuple):
    """The cause of the rejection of an object by the API server, and its remedy.

    :ivar why: cause, as a complete sentence
    :ivar remedy: instruction that resolves the cause, as a complete sentence
    """

    why: str
    remedy: str


_WEBHOOK = re.compile(r'failed calling webhook "([^"]+)"')
_SERVICE = re.compile(r"https://([a-z0-9-]+)\.([a-z0-9-]+)\.svc[:/?\"]")
#: states of a Service whose remedy is not to restore its pods
_ABSENT = "does not exist: its operator was removed, but its webhook remained"
_UNTRUSTED = "has a certificate that does not match the webhook's caBundle"
#: what it says of the way to the webhook, and what that means for its Service
_WAYS: tuple[tuple[typing.Pattern[str], str], ...] = (
    (re.compile(r"no endpoints available for service"), "has no ready pod"),
    (re.compile(r'service "[^"]+" not found'), _ABSENT),
    (
        re.compile(r"connection refused|connection reset|EOF"),
        "leads to a pod that does not accept connections: it is starting or has failed",
    ),
    (re.compile(r"x509:|tls:"), _UNTRUSTED),
    (
        re.compile(r"deadline exceeded|timeout(?!=)|no route to host"),
        "does not respond in time: its pod hangs, or the control plane cannot reach the pod network",
    ),
)
_TYPED = re.compile(
    r"failed to create typed \w+ object \([^;()]*; ([^,()]+), Kind=(\w+)\): (\.?[\w.\[\]=\"-]+): field not declared in"
    r" schema"
)
_UNKNOWN = re.compile(r'unknown field "([^"]+)"')
_HOOKS = "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations"


def explain(text: str) -> typing.Optional[RefusalCause]:
    """Return the cause of a rejection if it is a webhook that does not respond, or a definition of another version.
    Return None for any other message.

    :param text: message of a Status, or a warning
    """
    return _find_webhook_cause(text) or _find_version_cause(text)


def unknown_fields(warnings: typing.Iterable[str]) -> tuple[str, ...]:
    """Return the names of the fields that the API server dropped from an object because the CustomResourceDefinition of
    the cluster does not have them. The stored object then differs from the requested one. The result is empty if no
    warning is about such a field.

    :param warnings: warnings in the response of the API server
    """
    return tuple(name for warning in warnings for name in _UNKNOWN.findall(warning))


def _find_webhook_cause(text: str) -> typing.Optional[RefusalCause]:
    """Return cause and remedy of a refusal because a webhook did not respond. Return None for any other refusal.

    :param text: message of the API server
    """
    called = _WEBHOOK.search(text)
    if called is None:
        return None
    service = _SERVICE.search(text)
    if service is None:
        why = f"The API server calls the webhook {called[1]} for each such object, and the webhook did not respond."
        return RefusalCause(
            why,
            f"Run {_HOOKS} -o yaml, which shows the address of the webhook, and restore the webhook. If its"
            " operator was removed, delete the webhook.",
        )
    name, space = service[1], service[2]
    means = next((means for pattern, means in _WAYS if pattern.search(text)), "did not respond")
    why = (
        f"The API server calls the webhook {called[1]} for each such object, and its Service {space}/{name} {means}."
        " The object itself was not checked."
    )
    return RefusalCause(why, _describe_service_remedy(name, space, means))


def _describe_service_remedy(name: str, space: str, means: str) -> str:
    """Return the instruction that makes a webhook respond, or removes the webhook of an operator that was removed.

    :param name: name of the Service of the webhook
    :param space: namespace of the Service
    :param means: state of the Service, as text
    """
    delete = f"run {_HOOKS}, and delete the configuration that names this Service"
    if means == _ABSENT:
        return (
            f"If the operator of this Service is not needed, {delete}. If it is needed, install it again, and check"
            f" that kubectl -n {space} get service {name} shows the Service."
        )
    if means == _UNTRUSTED:
        return (
            f"Run {_HOOKS} -o yaml, and read clientConfig.caBundle of the webhook of Service {space}/{name}. Restart"
            " the program that writes it (cert-manager, or the operator of the webhook), so that it contains the"
            f" certificate authority of the Service. If the operator was removed, {delete}."
        )
    return (
        f"Run kubectl -n {space} get endpointslices,pods -o wide, and restore the pods that Service {name} selects"
        f" (kubectl -n {space} describe service {name}). If their operator was removed, {delete}."
    )


def _find_version_cause(text: str) -> typing.Optional[RefusalCause]:
    """Return cause and remedy of a refusal because the definition in the cluster does not have a field. Return None for
    any other refusal.

    :param text: message of the API server
    """
    typed, unknown = _TYPED.search(text), _UNKNOWN.search(text)
    if typed is None and unknown is None:
        return None
    field = typed[3] if typed is not None else unknown[1] if unknown is not None else ""
    kind = f" of {typed[2]} ({typed[1]})" if typed is not None else ""
    why = (
        f"The definition{kind} in the cluster does not have the field {field}: it belongs to a different version of"
        " its operator than this collection expects."
    )
    remedy = (
        "Upgrade the operator with its definitions. With operators_install: true, stage operators does this for"
        " releases that a run made. Helm never upgrades definitions: run "
    )
    remedy += "helm show crds CHART --version VERSION | kubectl apply --server-side --force-conflicts -f -"
    return RefusalCause(why, remedy)
