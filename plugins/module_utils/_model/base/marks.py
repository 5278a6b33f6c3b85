# SPDX-License-Identifier: GPL-3.0-or-later

"""The labels that mark Kubernetes objects as created by the collection. Renderers write them, parsers read them, and a
teardown deletes the objects that carry them.
"""

from __future__ import annotations

import typing

#: of server-side apply, and the value of the label
MANAGER = "linerate.rdma"
LABEL = "app.kubernetes.io/managed-by"
#: selects the objects of the collection
SELECTOR = f"{LABEL}={MANAGER}"
#: of pods: the run that made them
RUN_LABEL = "linerate.rdma/run"
#: name of the intent that an object belongs to, `rdma_cluster.intent_name`
INTENT_LABEL = "linerate.rdma/intent"
#: name of an intent that sets none. It proves nothing, because two intents of a cluster may both have it
DEFAULT_INTENT = "default"
#: on every object of the collection
MANAGED_BY = {LABEL: MANAGER}


def is_ours(labels: typing.Mapping[str, typing.Any]) -> bool:
    """Return whether the labels mark an object as managed by the collection."""
    return labels.get(LABEL) == MANAGER


def mark_intent(definition: dict[str, typing.Any], intent: str) -> dict[str, typing.Any]:
    """Return a rendered object with the label of its intent.

    :param definition: object with ``metadata``
    :param intent: name of the intent; empty: the default
    """
    metadata = definition["metadata"]
    labels = {**metadata.get("labels", {}), INTENT_LABEL: intent or DEFAULT_INTENT}
    return {**definition, "metadata": {**metadata, "labels": labels}}
