# SPDX-License-Identifier: GPL-3.0-or-later

"""What the API server, or the way to it, answers in place of what was asked for."""

from __future__ import annotations

import random
import time
import typing

from ..._model.base.errors import ParseError, RdmaError
from ..._parse.kubernetes.no_answer import UNTRUSTED
from ..._parse.kubernetes.refusal import explain
from ..._parse.limits import MIB, decode_json
from .kinds import Resource

try:
    from kubernetes.client.exceptions import ApiException
    from urllib3.exceptions import HTTPError
except ImportError:
    # the modules name the missing library before they come here
    class ApiException(Exception):  # type: ignore[no-redef]
        """Stands for that of the client."""

    class HTTPError(Exception):  # type: ignore[no-redef]
        """Stands for that of urllib3."""


__all__ = ["CONFIGURATION", "PAUSES", "TOO_LARGE", "ApiError", "ApiException", "HTTPError", "again", "api_error"]

T = typing.TypeVar("T")
#: seconds before the second attempt and the third one
PAUSES = (1.0, 3.0)


#: reason of an answer that is larger than its limit
TOO_LARGE = "TooLarge"
#: reason where the credentials can't be used, so that no server is asked
CONFIGURATION = "Configuration"


class ApiError(RdmaError):
    """The API server refused, or could not be reached.

    :ivar status: HTTP status; 0 when there was no answer
    :ivar reason: of the API's Status: NotFound, Forbidden, Conflict, Expired...
    :ivar text: the server's own words
    :ivar causes: of the API's Status, such as DisruptionBudget
    :ivar retry_after: seconds after which the server wants to be asked again; 0 when it does not say
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
        """:param remedy: where it is another one than that of the status"""
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
    def too_large(self) -> bool:
        """Whether an answer was left for its size."""
        return self.reason == TOO_LARGE

    @property
    def held(self) -> bool:
        """Whether a PodDisruptionBudget refuses an eviction. The API server says 429 of that too.
        [kubernetes pkg/registry/core/pod/storage/eviction.go, createTooManyRequestsError]
        """
        return self.status == 429 and ("DisruptionBudget" in self.causes or "disruption budget" in self.text.lower())

    @property
    def passing(self) -> bool:
        """Whether the same may be granted in a moment: the server, or the way from it to the node, is overloaded or
        starts anew."""
        text = self.text.lower()
        if "not found" in text:
            # in the image, in the pod: kubelets say 500 of it
            return False
        # konnectivity's words for a full channel to an agent come in whatever status
        full = "receive channel" in text and "full" in text
        return full or self.status == 429 or self.status >= 500 or (self.status == 0 and "connection refused" in text)


def _remedy(status: int, reason: str, text: str) -> str:
    """What helps against what the server, or the way to it, says."""
    if status == 0 and any(words in text for words in UNTRUSTED):
        return (
            "The server is not the one that the kubeconfig trusts: take the certificate authority of this cluster, or"
            " the right server"
        )
    if status == 0 and reason == CONFIGURATION:
        # no server was asked
        return "Correct the kubeconfig, or the variables K8S_AUTH_*"
    if status == 0:
        return "Check the kubeconfig (or the variables K8S_AUTH_*), and whether the API server runs"
    if status == 401:
        return (
            "The token or the client certificate in the kubeconfig is wrong or has expired: renew it, or what"
            " K8S_AUTH_* name"
        )
    if status == 403 and "admission webhook" not in text:  # a webhook's own refusal has another cause
        return "Give the user the rights of docs/rbac that the stage needs: linerate.rdma.validate names the files"
    cause = explain(text)
    return f"{cause.why} {cause.remedy}" if cause is not None else ""


def again(attempt: typing.Callable[[], T]) -> T:
    """Try what the server may grant in a moment, a few times. For what has not begun when it is refused.

    :raises ApiError: of the last attempt, or of the first one that another would not help
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
    """The server's Status, where it sent one."""
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
    """Reasons of the causes of a v1 Status."""
    details = status.get("details")
    causes = details.get("causes") if isinstance(details, dict) else None
    return (
        tuple(str(cause.get("reason", "")) for cause in causes if isinstance(cause, dict))
        if isinstance(causes, list)
        else ()
    )


def _retry_after(error: typing.Any) -> float:
    """The header Retry-After in seconds (RFC 9110, 10.2.3); 0 where there is none, or where it is a date, which the API
    server never sends."""
    value = str((getattr(error, "headers", None) or {}).get("Retry-After") or "")
    return float(value) if value.isascii() and value.isdigit() and len(value) < 6 else 0.0
