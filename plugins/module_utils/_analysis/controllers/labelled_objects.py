# SPDX-License-Identifier: GPL-3.0-or-later

"""Describe objects that have the collection's label, and limit the number of findings about them. A tenant may give the
label to any number of objects.
"""

from __future__ import annotations

import typing

from ..._model.base.marks import LABEL, SELECTOR
from ..._model.kubernetes.apply import AppliedObject
from ..._model.run.findings import FAIL, PASS, UNKNOWN, WARN, Finding

#: findings of a kind in a namespace that are shown in full
MOST_ALIKE = 64
_WORST_FIRST = (FAIL, UNKNOWN, WARN)


def fold_alike(judged: typing.Iterable[tuple[AppliedObject, Finding]]) -> list[Finding]:
    """Return the findings on labelled objects, limited for each kind and namespace. Of more than ``MOST_ALIKE``
    findings, return the first ``MOST_ALIKE``, the first finding of each further status, and one finding that states the
    number of the remaining ones and has the worst status of them.

    :param judged: labelled objects, each with the finding on it
    """
    groups: dict[tuple[str, str], list[Finding]] = {}
    for item, finding in judged:
        groups.setdefault((item.kind, item.namespace), []).append(finding)
    found: list[Finding] = []
    for (kind, namespace), findings in groups.items():
        kept = findings[:MOST_ALIKE]
        rest: list[Finding] = []
        for finding in findings[MOST_ALIKE:]:
            (rest if any(finding.status == one.status for one in kept) else kept).append(finding)
        found += kept
        if rest:
            found.append(_count_others(kind, namespace, rest))
    return found


def name_kind(kind: str) -> str:
    """Return a kind in the form that kubectl accepts: in lower case. The kind IPPool is written with its API group,
    because whereabouts has a kind with the same name.
    """
    return "ippools.nv-ipam.nvidia.com" if kind == "IPPool" else kind.lower()


def describe_delete(kind: str, name: str, namespace: str = "") -> str:
    """Return the command that deletes an object.

    :param namespace: namespace of the object; empty for a kind without namespaces
    """
    return f"kubectl delete {name_kind(kind)} {name}{f' -n {namespace}' if namespace else ''}"


def describe_ways_out(item: AppliedObject) -> str:
    """Return the remedy for an object that a user copied with the label of the collection: the command that removes the
    label, and the command that deletes the object."""
    kind, where = name_kind(item.kind), f" -n {item.namespace}" if item.namespace else ""
    return (
        f"If it is needed, remove the label: kubectl label {kind} {item.name}{where} {LABEL}-. If it is not, delete it:"
        f" {describe_delete(item.kind, item.name, item.namespace)}"
    )


def _count_others(kind: str, namespace: str, rest: typing.Sequence[Finding]) -> Finding:
    first = min(rest, key=lambda item: _WORST_FIRST.index(item.status) if item.status in _WORST_FIRST else 3)
    subject = f"more {kind}" + (f" in namespace {namespace}" if namespace else "")
    if first.status == PASS:
        return Finding(first.check, subject, PASS, f"{len(rest)} more", first.expected)
    why = f"In addition to the objects with a finding of their own, there are {len(rest)} more. The first: {first.why}"
    remedy = (
        f"List the objects: kubectl get {name_kind(kind)} {f'-n {namespace}' if namespace else '-A'} -l"
        f" {SELECTOR}. If a user created them, ask the user to remove the label. {first.remedy}"
    )
    return Finding(first.check, subject, first.status, f"{len(rest)} more", first.expected, why, remedy)
