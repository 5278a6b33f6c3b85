# SPDX-License-Identifier: GPL-3.0-or-later

"""The labels and annotations by which GitOps tools mark the objects that they keep as their repository describes them.
An object with such a mark belongs to the admins of the repository, even if a run of the collection created it earlier.
"""

from __future__ import annotations

import typing

from ..base.text import cut_plain

Item = typing.Mapping[str, typing.Any]
#: marks in labels and annotations: Argo CD, Flux, Rancher Fleet, Open Cluster Management
_MARKS = {
    "argocd.argoproj.io/tracking-id": "Argo CD",
    "argocd.argoproj.io/instance": "Argo CD",
    "kustomize.toolkit.fluxcd.io/name": "Flux",
    "helm.toolkit.fluxcd.io/name": "Flux",
    "objectset.rio.cattle.io/id": "Fleet",
    "apps.open-cluster-management.io/hosting-subscription": "Open Cluster Management",
}
#: characters of a value that are shown
_MOST_SHOWN = 100


def find_owner_mark(item: Item) -> str:
    """Return the GitOps tool that owns an object, followed by its mark in parentheses. Return an empty text if the
    object has no mark of such a tool.

    :param item: object of which the metadata is sufficient
    """
    metadata = item.get("metadata") if isinstance(item, typing.Mapping) else None
    for part in ("annotations", "labels"):
        marks = metadata.get(part) if isinstance(metadata, typing.Mapping) else None
        for key, value in marks.items() if isinstance(marks, typing.Mapping) else ():
            if key in _MARKS:
                return f"{_MARKS[key]} ({part[:-1]} {key}={cut_plain(str(value)[:_MOST_SHOWN])})"
    return ""


def explain_owner(item: Item) -> str:
    """Return why an object is not removed: a GitOps tool owns it and would create it again. Return an empty text if no
    GitOps tool owns the object.

    :param item: object of which the metadata is sufficient
    """
    owner = find_owner_mark(item)
    return (
        f"it belongs to {owner}, which would create it again. Remove it from the repository of that tool"
        if owner
        else ""
    )
