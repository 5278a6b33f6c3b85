# SPDX-License-Identifier: GPL-3.0-or-later

"""The mirror of a disconnected site (``rdma_cluster.mirror``): the one place that says under which name it has an image or a chart.

Two layouts: that of ``skopeo sync --scoped``, which keeps the registry's host below one place, and that of ``oc-mirror`` and of ImageDigestMirrorSets, in
which a source is replaced.
"""

from __future__ import annotations

import typing

#: source: what takes its place. The source EVERYTHING keeps each name whole, and puts the mirror in front
Mirror = typing.Mapping[str, str]
EVERYTHING = "*"
_DOCKER = "docker.io/"


def on_mirror(name: str, mirror: Mirror) -> str:
    """Where a mirror has an image, or a folder of images. What names no registry, is on the mirror already, or has none, keeps its name.

    :param name: ``registry/path``, with a tag, a digest or neither
    """
    host, slash, path = name.partition("/")
    if not slash or not (set(".:") & set(host) or host == "localhost") or any(_below(name, place) for place in mirror.values()):
        return name
    if name.startswith(_DOCKER) and "/" not in path:
        name = f"{_DOCKER}library/{path}"
    sources = [source for source in mirror if source != EVERYTHING and _below(name, source)]
    if sources:
        source = max(sources, key=len)
        return f"{mirror[source]}{name[len(source) :]}"
    return f"{mirror[EVERYTHING]}/{name}" if EVERYTHING in mirror else name


def _below(name: str, place: str) -> bool:
    # what follows a host alone is its port, and so another host
    return name == place or (name.startswith(place) and name[len(place)] in ("/:@" if "/" in place else "/"))
