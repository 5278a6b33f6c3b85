# SPDX-License-Identifier: GPL-3.0-or-later

"""Errors of requests to the API server, and retries after temporary errors."""

from __future__ import annotations

import random
import re
import time
import typing

from ..._model.base.errors import ParseError, RdmaError
from ..._model.base.phrases import describe_no_answer
from ..._model.kubernetes import measuring, observers, powers
from ..._parse.kubernetes.no_answer import UNREADABLE, UNTRUSTED
from ..._parse.kubernetes.refusal import explain
from ..._parse.limits import MIB, decode_json
from .kinds import Resource

try:
    from kubernetes.client.exceptions import ApiException
    from urllib3.exceptions import HTTPError
except ImportError:
    # the modules name the missing library before they come here
    class ApiException(Exception):  # type: ignore[no-redef]
        """Stands in for ApiException of the kubernetes client if that is not installed. It is never raised."""

    class HTTPError(Exception):  # type: ignore[no-redef]
        """Stands in for HTTPError of urllib3 if that is not installed. It is never raised."""


__all__ = ["CONFIGURATION", "PAUSES", "TOO_LARGE", "ApiError", "ApiException", "HTTPError", "api_error", "call_again"]

T = typing.TypeVar("T")
#: seconds before the second attempt and the third one
PAUSES = (1.0, 3.0)


#: begin of the message on a resource of a namespace
_NAMESPACED = r'cannot \w{1,40} resource "[^"]{1,260}" in API group "[^"]{0,260}" in the namespace'
#: set of rights that a forbidden request lacks, by the message of the API server; the first that fits counts. Rights in
#: other namespaces depend on the intent
_FORBIDDEN: tuple[tuple[str, typing.Pattern[str]], ...] = (
    (powers.CHANGE, re.compile(r'cannot \w+ resource "leases"')),
    (powers.MEASURING, re.compile(rf'{_NAMESPACED} "{measuring.NAMESPACE}"')),
    (powers.OBSERVERS, re.compile(rf'{_NAMESPACED} "{observers.NAMESPACE}"')),
    (powers.LOOK, re.compile(r'cannot (?:get|list|watch) resource "(?!secrets")')),
)
#: reason of an answer that is larger than its limit
TOO_LARGE = "TooLarge"
#: reason where the credentials can't be used, so that no server is asked
CONFIGURATION = "Configuration"


class ApiError(RdmaError):
    """Raised if the API server refused a request, or could not be reached.

    :ivar status: HTTP status; 0 if there was no answer
    :ivar reason: reason in the API's Status (such as NotFound, Forbidden, Conflict), or a reason of this collection
        (such as ``TOO_LARGE``)
    :ivar text: message of the server
    :ivar where: method and path of the request, or the source of the credentials
    :ivar causes: reasons of the causes in the API's Status, such as DisruptionBudget
    :ivar retry_after: seconds after which the API server asks to repeat the request; 0 if it does not
    """

    def __init__(
        self,
        status: int,
        reason: str,
        text: str,
        where: str,
        remedy: typing.Optional[str] = None,
        causes: tuple[str, ...] = (),
        retry_after: float = 0.0,
    ) -> None:
        """Create the error of a request to the API server.

        :param status: HTTP status; 0 if there was no answer
        :param reason: reason in the API's Status, such as ``NotFound``
        :param text: message of the API server, or of the connection to it
        :param where: method and path of the request
        :param remedy: remedy that replaces the default remedy of the status; None for the default
        :param causes: reasons of the causes in the API's Status, such as DisruptionBudget
        :param retry_after: seconds after which the API server asks to repeat the request; 0 if it does not
        """
        super().__init__(f"{where}: {text.rstrip('.')}", _remedy(status, reason, text) if remedy is None else remedy)
        self.status = status
        self.reason = reason
        self.text = text
        self.where = where
        self.causes = causes
        self.retry_after = retry_after

    @property
    def absent(self) -> bool:
        return self.status == 404

    @property
    def no_answer(self) -> str:
        """Return why objects could not be read, for a text whose remedy depends on it: ``describe_unread_remedy``."""
        return describe_no_answer(self.status, self.text)

    @property
    def too_large(self) -> bool:
        """Return whether an answer exceeded its size limit."""
        return self.reason == TOO_LARGE

    @property
    def held(self) -> bool:
        """Return whether a PodDisruptionBudget is the reason why an eviction was refused. The API server uses status
        429 for this as well as for overload. [kubernetes pkg/registry/core/pod/storage/eviction.go,
        createTooManyRequestsError]
        """
        return self.status == 429 and ("DisruptionBudget" in self.causes or "disruption budget" in self.text.lower())

    @property
    def passing(self) -> bool:
        """Return whether the error is temporary, so that a retry may succeed soon: the API server, or its connection to
        the node, is overloaded or restarts.
        """
        text = self.text.lower()
        if "not found" in text:
            # in the image, in the pod: kubelets say 500 of it
            return False
        # konnectivity's words for a full channel to an agent come in whatever status
        full = "receive channel" in text and "full" in text
        return full or self.status == 429 or self.status >= 500 or (self.status == 0 and "connection refused" in text)


def _remedy(status: int, reason: str, text: str) -> str:
    """Return the remedy for an error of the API server or of the connection to it. Return an empty string if no remedy
    is known.

    :param status: HTTP status of the answer; 0 if there was none
    :param reason: reason in the API's Status, such as ``NotFound``
    :param text: message of the API server
    """
    if status == 0 and any(words in text for words in UNTRUSTED):
        return (
            "The kubeconfig does not trust this server. Set the certificate authority of this cluster or the correct"
            " server address in the kubeconfig"
        )
    if status == 0 and UNREADABLE in text:
        return (
            "Correct certificate-authority-data, client-certificate-data and client-key-data in the kubeconfig: each is"
            " PEM text in base64, and the key belongs to the certificate"
        )
    if status == 0 and reason == CONFIGURATION:
        # no server was asked
        return "Correct the kubeconfig or the variables K8S_AUTH_*"
    if status == 0:
        return "Check the kubeconfig (or the variables K8S_AUTH_*), and check that the API server runs"
    if status == 401:
        return (
            "The token or the client certificate in the kubeconfig is wrong or has expired. Renew it, or correct the"
            " variables K8S_AUTH_*"
        )
    if status == 403 and "admission webhook" not in text:  # a webhook's own refusal has another cause
        return _explain_forbidden(text)
    if status == 429 and "disruption budget" not in text.lower():
        return "The API server refuses requests because it is overloaded. Run the stage again when it is less busy"
    cause = explain(text)
    return f"{cause.why} {cause.remedy}" if cause is not None else ""


def _explain_forbidden(text: str) -> str:
    """Return the remedy for a request that the API server forbids to the user: the command that applies the file of
    docs/rbac with the right.

    :param text: message of the API server, such as ``User "x" cannot list resource "nodes" in API group ""``
    """
    if " cannot get path " in text:
        return (
            "As an admin of the cluster, run kubectl describe clusterrolebinding system:public-info-viewer, and add the"
            " group system:authenticated to it"
        )
    power = next((power for power, pattern in _FORBIDDEN if pattern.search(text)), None)
    if power is not None:
        return powers.describe_grant((power,))
    return (
        "As an admin of the cluster, apply the file of docs/rbac that has this right: docs/rbac/README.md lists the"
        " files, and validate.powers in report.json names those that the intent needs"
    )


def call_again(attempt: typing.Callable[[], T]) -> T:
    """Call ``attempt`` until it succeeds, at most three times, and return its result. Before a retry there is a pause
    of about 1 or 3 seconds.

    Use this only for operations that have not begun when the API server refuses them.

    :param attempt: function without arguments that makes the request
    :raises ApiError: error of the last attempt, or the first error that is not temporary
    """
    for pause in PAUSES:
        try:
            return attempt()
        except ApiError as error:
            if not error.passing:
                raise
        # not all at once again
        time.sleep(pause * random.SystemRandom().uniform(0.5, 1.5))
    return attempt()


def api_error(error: typing.Any, where: str) -> ApiError:
    """Return the ApiError for an exception of the kubernetes client, with the message and the reasons of the server's
    Status if the body is one.

    :param error: the exception, with the attributes ``status``, ``reason`` and ``body``
    :param where: request, for the message
    """
    body = error.body.decode(errors="replace") if isinstance(error.body, bytes) else error.body
    try:
        status = decode_json(body or "", "Status", most_bytes=MIB, unique=False)
    except ParseError:
        status = {}
    if not isinstance(status, dict):
        status = {}
    text = str(status.get("message") or body or error.reason or "no text")
    reason = str(status.get("reason") or error.reason or "")
    return ApiError(
        int(error.status or 0),
        reason,
        text.strip()[:1000],
        where,
        causes=_list_cause_reasons(status),
        retry_after=_retry_after(error),
    )


def _list_cause_reasons(status: Resource) -> tuple[str, ...]:
    """Return the reason of each cause in the details of a v1 Status, such as DisruptionBudget."""
    details = status.get("details")
    causes = details.get("causes") if isinstance(details, dict) else None
    return (
        tuple(str(cause.get("reason", "")) for cause in causes if isinstance(cause, dict))
        if isinstance(causes, list)
        else ()
    )


def _retry_after(error: typing.Any) -> float:
    """Return the header Retry-After in seconds (RFC 9110, 10.2.3). Return 0 if it is missing or is a date, which the
    API server never sends.

    :param error: exception of the kubernetes client; its headers may be missing
    """
    value = str((getattr(error, "headers", None) or {}).get("Retry-After") or "")
    return float(value) if value.isascii() and value.isdigit() and len(value) < 6 else 0.0
