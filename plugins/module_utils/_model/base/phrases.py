# SPDX-License-Identifier: GPL-3.0-or-later

"""Parts of the sentences of findings."""

from __future__ import annotations

import typing


def count_of(number: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun: ``1 node``, ``2 nodes``.

    :param plural: plural of the noun; if empty, the noun with an ``s``
    """
    return f"{number} {noun if number == 1 else plural or f'{noun}s'}"


def format_duration(seconds: float) -> str:
    """Return a duration for a user: ``less than a minute``, ``90 min`` or ``2 h 05 min``.

    :param seconds: duration in seconds
    """
    minutes = round(seconds / 60)
    if seconds < 60:
        return "less than a minute"
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60:02d} min"


def format_estimate(seconds: float) -> str:
    """Return an estimated duration for a user: ``less than a minute`` or ``about 90 min``.

    :param seconds: estimated duration in seconds
    """
    return f"{'' if seconds < 60 else 'about '}{format_duration(seconds)}"


def format_clause(text: typing.Optional[str], none: str = "no reason was reported") -> str:
    """Return a text from outside for use as the last part of a sentence: without white space at its ends and without a
    period.

    :param text: error or reason as a tool or component reported it; None counts as empty
    :param none: words for a text that is missing or empty
    """
    words = (text or "").strip()
    return (words[:-1].rstrip() if words.endswith(".") and not words.endswith("..") else words) or none


#: how a reason begins for which objects could not be read, if no missing right is the cause
OVERLOADED = "the API server refuses requests because it is overloaded (HTTP 429)"
UNREACHABLE = "the API server cannot be reached"
FAILED = "the API server failed"


def describe_no_answer(status: int, text: str) -> str:
    """Return why the API server did not return objects. Errors that are not about rights begin with their kind.

    :param status: HTTP status; 0 if there was no answer
    :param text: message of the API server, or of the connection to it
    """
    if status == 429:
        return f"{OVERLOADED}: {text}"
    if status == 0:
        return f"{UNREACHABLE}: {text}"
    return f"{FAILED} (HTTP {status}): {text}" if status >= 500 else text


def is_throttled(reason: str) -> bool:
    """Return whether objects could not be read because the API server is overloaded (HTTP 429).

    :param reason: why they could not be read, as text
    """
    return "because it is overloaded" in reason or "too many requests" in reason.lower()


def describe_unread_remedy(reasons: typing.Iterable[str], rights: str) -> str:
    """Return the remedy for objects that could not be read, one sentence for each cause among the reasons, without the
    last period.

    :param reasons: why they could not be read, as ``describe_no_answer`` or an error of the API server returned it
    :param rights: instruction to give the user of the kubeconfig the rights, without a period
    """
    steps: dict[str, None] = {}
    for reason in reasons:
        if is_throttled(reason):
            steps["Wait until the API server is less busy (kubectl get --raw /readyz answers at once), then rerun"] = (
                None
            )
        elif UNREACHABLE in reason:
            steps["Check the network and the API server (kubectl get --raw /readyz), then rerun"] = None
        elif FAILED in reason:
            steps["Check the API server (kubectl get --raw '/readyz?verbose'), then rerun"] = None
        else:
            steps[rights] = None
    return ". ".join(steps)


def describe_read_remedy(rerun: str) -> str:
    """Return the remedy for objects that the API server did not return, or that have an invalid format: one for a
    missing right, one for an overloaded API server, and one for each other error.

    :param rerun: sentence that says what to run again
    """
    return (
        "If the error contains 'forbidden', give the user of the kubeconfig the rights, as an admin of the cluster:"
        " kubectl apply -f docs/rbac/look.yml, in the folder of the collection linerate.rdma. If it reports too many"
        " requests, wait until the API server is less busy."
        " Otherwise correct what the error names: the kubeconfig, the API server"
        f" or the object. {rerun}"
    )


def describe_rerun(stage: str) -> str:
    """Return the remedy for a stage that ended before it read or measured something.

    :param stage: name of the stage
    """
    return f"Run stage {stage} again. If it ends early again, correct the error in the output of ansible-playbook."
