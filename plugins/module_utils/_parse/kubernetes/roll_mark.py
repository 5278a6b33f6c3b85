# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the mark on a node: an annotation of linerate.rdma in which a roll, which resets nodes one after the other,
notes its progress with the node.
"""

from __future__ import annotations

import dataclasses
import re
import typing

from ..._model.base.errors import ParseError
from ..._model.base.load import load
from ..._model.base.load_error import LoadError
from ..._model.base.marks import MANAGER
from ..._model.kubernetes.node_roll import Mark
from ..limits import MIB, decode_json
from .resource import Resource, find_manager, mapping_at

ANNOTATION = "linerate.rdma/roll"
#: beside it. A kubelet may write the annotations of its Node, but no label of this domain [kubernetes.io, Admission
#: Control, NodeRestriction]
PROOF = "linerate.node-restriction.kubernetes.io/roll"
#: annotation of a node that the cluster-autoscaler does not delete [kubernetes/autoscaler cluster-autoscaler/FAQ.md]
KEEP = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
#: values of it that a roll restores; they have the form of a value of a label
_KEEP_VALUE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?", re.ASCII)
#: bytes; the API server takes annotations of 256 KiB in all
_MOST = MIB // 4


def is_in_roll(resource: Resource) -> bool:
    """Return whether a roll has marked a v1 Node and not released it.

    A roll sets a label, and removes it when the node is Ready after its reset, even if it keeps the annotation because
    a setting did not take effect. The label decides, because a kubelet can write the annotation of its Node, and can
    cordon its Node under the name of any field manager. A kubelet cannot write the label if the API server uses
    NodeRestriction, as kubeadm and OpenShift configure it. A roll never leaves the label alone, so the label has no
    effect without the annotation or a cordon of the roll.

    :raises ResourceError: the object has an unexpected form
    """
    if PROOF not in mapping_at(resource, "metadata", "labels"):
        return False
    cordoned = mapping_at(resource, "spec").get("unschedulable") is True
    return ANNOTATION in mapping_at(resource, "metadata", "annotations") or (
        cordoned and find_manager(resource, "unschedulable") == MANAGER
    )


def is_kept(resource: Resource) -> bool:
    """Return whether a v1 Node has the annotation that keeps the cluster-autoscaler from removing it, whichever client
    wrote it. The cluster-autoscaler accepts no other value than ``true``.
    [src kubernetes/autoscaler core/scaledown/eligibility/eligibility.go HasNoScaleDownAnnotation]

    :raises ResourceError: the object has an unexpected form
    """
    return mapping_at(resource, "metadata", "annotations").get(KEEP) == "true"


def find_keep_value(resource: Resource) -> str:
    """Return the value of the annotation of the cluster-autoscaler on a v1 Node; empty if the node does not have it, or
    if its value is not a short word.

    :raises ResourceError: the object has an unexpected form
    """
    value = str(mapping_at(resource, "metadata", "annotations").get(KEEP) or "")
    return value if _KEEP_VALUE.fullmatch(value) else ""


def parse_mark(resource: Resource) -> typing.Optional[Mark]:
    """Return the mark of a roll on a v1 Node. Return None if the node has no mark. If another client has cordoned the
    node since the mark was written, the mark is returned with ``cordoned`` False.

    :raises ParseError: the annotation is not a valid mark
    :raises ResourceError: the object has an unexpected form
    """
    text = mapping_at(resource, "metadata", "annotations").get(ANNOTATION)
    if text is None:
        return None
    try:
        found: Mark = load(Mark, decode_json(text, ANNOTATION, most_bytes=_MOST), ANNOTATION)
    except (ParseError, TypeError, LoadError):
        raise ParseError(
            f"annotation {ANNOTATION}", str(text)[:200], "the record that a roll of this collection writes"
        ) from None
    cordoned_by = find_manager(resource, "unschedulable")
    return dataclasses.replace(found, cordoned=False) if cordoned_by not in ("", MANAGER) else found
