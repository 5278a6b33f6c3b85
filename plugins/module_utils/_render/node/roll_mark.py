# SPDX-License-Identifier: GPL-3.0-or-later

"""Renders merge patches that set or remove the mark of a node. The mark is an annotation with the progress of a roll on
the node.
"""

from __future__ import annotations

import json
import typing

from ..._model.base.load import to_data
from ..._model.kubernetes.node_roll import Mark
from ..._parse.kubernetes.roll_mark import ANNOTATION, KEEP, PROOF

Patch = dict[str, typing.Any]


def mark_node(
    mark: typing.Optional[Mark],
    unschedulable: typing.Optional[bool] = None,
    release: typing.Optional[Mark] = None,
    over: bool = False,
) -> Patch:
    """Return the merge patch that sets or removes the mark of a node.

    :param mark: progress of the roll on the node; None removes the mark
    :param unschedulable: True cordons the node, False uncordons it, None leaves it unchanged
    :param release: an earlier mark of the node. If it has ``kept``, the annotation of the cluster-autoscaler gets the
        value that it had before, or is removed if it had none. None: the annotation stays
    :param over: whether the roll has released the node, so that the mark only records its settings that did not take
        effect or were not verified
    """
    text = None if mark is None else json.dumps(to_data(mark), sort_keys=True)
    kept: dict[str, typing.Optional[str]] = {}
    if mark is not None and mark.kept:
        kept = {KEEP: "true"}
    elif release is not None and release.kept:
        kept = {KEEP: release.keep_before or None}
    change: Patch = {
        "metadata": {
            "annotations": {ANNOTATION: text, **kept},
            "labels": {PROOF: None if mark is None or over else "marked"},
        }
    }
    # null takes the field away: false is what a node has that nobody has cordoned
    return change if unschedulable is None else {**change, "spec": {"unschedulable": True if unschedulable else None}}
