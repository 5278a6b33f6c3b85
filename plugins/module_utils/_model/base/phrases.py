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


def describe_read_remedy(rerun: str) -> str:
    """Return the remedy for objects that the API server did not return, or that have an invalid format: one for a
    missing right, one for an overloaded API server, and one for each other error.

    :param rerun: sentence that says what to run again
    """
    return (
        "If the error contains 'forbidden', give the user of the kubeconfig the rights, as an admin of the cluster:"
        " kubectl apply -f docs/rbac/look.yml. If it reports too many requests, wait until the API server is less busy."
        " Otherwise correct what the error names: the kubeconfig, the API server"
        f" or the object. {rerun}"
    )


def describe_rerun(stage: str) -> str:
    """Return the remedy for a stage that ended before it read or measured something.

    :param stage: name of the stage
    """
    return f"Run stage {stage} again. If it ends early again, correct the error in the output of ansible-playbook."
