# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse the output of ``helm template --include-crds``, and the example objects in a ClusterServiceVersion.

Helm writes a line ``# Source: <chart>/<file>`` before each document. Files of a chart's folder ``crds`` come first.
[src helm v3 pkg/action/action.go renderResources]
"""

from __future__ import annotations

import re
import typing

from ..kubernetes.resource import Resource, ResourceError, json_of, mapping_at, title_of

_SOURCE = re.compile(r"^# Source: (\S+)[ \t]*$", re.MULTILINE)
_EXAMPLES = "alm-examples"


def definitions_text(text: str) -> str:
    """Return those documents in the output of ``helm template`` that come from the folders ``crds`` of a chart and of
    its subcharts. Return an empty text if there are none. Helm installs these CustomResourceDefinitions once and never
    upgrades them.

    CustomResourceDefinitions among the templates are left out, because Helm upgrades them itself.
    """
    found, folders = [], typing.cast(list[str], [])
    for part in re.split(r"^---[ \t]*$", text, flags=re.MULTILINE):
        source = _SOURCE.search(part)
        # a file may hold several documents, and Helm names it before the first one
        folders = source[1].split("/")[:-1] if source else folders
        if "crds" in folders and "templates" not in folders:
            found.append(part.strip("\n"))
    return "".join(f"---\n{part}\n" for part in found)


def olm_examples(resource: Resource) -> tuple[dict[str, typing.Any], ...]:
    """Return the objects in the annotation alm-examples of a ClusterServiceVersion. Return an empty tuple if it has no
    such annotation.

    :raises ResourceError: the annotation is not a list of objects
    """
    text = mapping_at(resource, "metadata", "annotations").get(_EXAMPLES)
    if not text:
        return ()
    what = f"{title_of(resource)}: annotation {_EXAMPLES}"
    data = json_of(text, what)
    if not isinstance(data, list) or not all(isinstance(item, dict) for item in data):
        raise ResourceError(f"{what} is not a list of objects")
    return tuple(data)
