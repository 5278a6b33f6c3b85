# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse OpenShift's ClusterVersion (config.openshift.io/v1), which shows an upgrade of the cluster in progress."""

from __future__ import annotations

from ..._model.base.text import cut_plain
from .resource import Resource, items_of, mapping_at, name_of

#: characters of the message
_MOST_SHOWN = 300


def parse_progress(resource: Resource) -> str:
    """Return the message of an upgrade that is in progress, such as ``Working towards 4.20.3: 40% complete``, on one
    line and cut to 300 characters. Return an empty string if no upgrade is in progress.

    :raises ResourceError: the object is not a valid ClusterVersion
    """
    name = name_of(resource)
    for item in items_of(mapping_at(resource, "status"), "conditions", f"ClusterVersion {name}"):
        if item.get("type") == "Progressing" and item.get("status") == "True":
            said = item.get("message") or item.get("reason") or "no message"
            return cut_plain(" ".join(str(said)[:_MOST_SHOWN].split()))
    return ""
