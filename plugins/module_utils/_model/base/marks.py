# SPDX-License-Identifier: GPL-3.0-or-later

"""The labels that mark Kubernetes objects as created by the collection. Renderers write them, parsers read them, and a
teardown deletes the objects that carry them.
"""

from __future__ import annotations

import hashlib
import json
import typing

#: of server-side apply, and the value of the label
MANAGER = "linerate.rdma"
LABEL = "app.kubernetes.io/managed-by"
#: selects the objects of the collection
SELECTOR = f"{LABEL}={MANAGER}"
#: fabric of an object
FABRIC_LABEL = "linerate.rdma/fabric"
#: of pods: the run that made them
RUN_LABEL = "linerate.rdma/run"
#: name of the intent that an object belongs to, `rdma_cluster.intent_name`
INTENT_LABEL = "linerate.rdma/intent"
#: name of an intent that sets none. It proves nothing, because two intents of a cluster may both have it
DEFAULT_INTENT = "default"
#: before the name of each intent that needs an object which several intents share
USER_LABEL = f"{INTENT_LABEL}-"
#: annotation with the labels of the nodes of an intent, on objects that select no nodes
NODES_ANNOTATION = "linerate.rdma/nodes"
#: characters of a name in this label: 63 of a label without ``intent-``, and without the digest and its hyphen
_MOST_OF_NAME, _DIGEST = 47, 8
#: on every object of the collection
MANAGED_BY = {LABEL: MANAGER}


def is_ours(labels: typing.Mapping[str, typing.Any]) -> bool:
    """Return whether the labels mark an object as managed by the collection."""
    return labels.get(LABEL) == MANAGER


def replace_labels(definition: dict[str, typing.Any], labels: typing.Mapping[str, typing.Any]) -> dict[str, typing.Any]:
    """Return a copy of an object that has these labels and no others.

    :param definition: object with ``metadata``
    """
    return {**definition, "metadata": {**definition["metadata"], "labels": {**labels}}}


def mark_intent(definition: dict[str, typing.Any], intent: str) -> dict[str, typing.Any]:
    """Return a rendered object with the label of its intent.

    :param definition: object with ``metadata``
    :param intent: name of the intent; empty: the default
    """
    labels = definition["metadata"].get("labels", {})
    return replace_labels(definition, {**labels, INTENT_LABEL: intent or DEFAULT_INTENT})


def format_nodes(selector: typing.Mapping[str, str]) -> str:
    """Return the value of the annotation that names the nodes of an intent.

    :param selector: labels of the nodes that the intent selects
    """
    return json.dumps(dict(selector), sort_keys=True)


def build_user_label(intent: str, selector: typing.Mapping[str, str]) -> dict[str, str]:
    """Return the label by which an intent records that it needs a shared object, as a mapping with this single label.
    Two intents with the default name have different labels if they select different nodes.

    :param intent: name of the intent; empty for the default name
    :param selector: labels of the nodes that the intent selects
    """
    name = intent or DEFAULT_INTENT
    told = json.dumps([name, sorted(selector.items()) if name == DEFAULT_INTENT else []])
    short = name if name != DEFAULT_INTENT and len(name) <= _MOST_OF_NAME else ""
    digest = hashlib.sha256(told.encode()).hexdigest()[:_DIGEST]
    return {f"{USER_LABEL}{short or f'{name[:_MOST_OF_NAME]}-{digest}'}": name}


def build_selection_label(intent: str, selector: typing.Mapping[str, str]) -> dict[str, str]:
    """Return the label by which a user confirms that an object belongs to the intent that selects these nodes, as a
    mapping with this single label. It is needed if another intent may have the same name. For an intent with the
    default name, it equals the result of ``build_user_label``.

    :param intent: name of the intent; empty for the default name
    :param selector: labels of the nodes that the intent selects
    """
    name = intent or DEFAULT_INTENT
    digest = hashlib.sha256(json.dumps([name, sorted(selector.items())]).encode()).hexdigest()[:_DIGEST]
    return {f"{USER_LABEL}{name[:_MOST_OF_NAME]}-{digest}": name}


def find_users(labels: typing.Mapping[str, typing.Any]) -> dict[str, str]:
    """Return the labels of an object by which intents record that they need the object. The value of each label is the
    name of the intent.
    """
    return {str(key): str(value) for key, value in labels.items() if str(key).startswith(USER_LABEL)}
