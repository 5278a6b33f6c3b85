# SPDX-License-Identifier: GPL-3.0-or-later

"""Apply label selectors of the Kubernetes API to labels. Pure."""

from __future__ import annotations

import typing

from ..._model.kubernetes.disruption import LabelSelector


def labels_match(selector: typing.Optional[LabelSelector], labels: typing.Mapping[str, str]) -> bool:
    """Return whether a label selector of the Kubernetes API selects these labels. None selects nothing, and an empty
    selector selects everything.
    """
    if selector is None:
        return False
    tests = {
        "In": lambda key, values: labels.get(key) in values,
        "NotIn": lambda key, values: labels.get(key) not in values,
        "Exists": lambda key, values: key in labels,
        "DoesNotExist": lambda key, values: key not in labels,
    }
    return all(labels.get(key) == value for key, value in selector.labels.items()) and all(
        wanted.operator in tests and tests[wanted.operator](wanted.key, wanted.values)
        for wanted in selector.expressions
    )
