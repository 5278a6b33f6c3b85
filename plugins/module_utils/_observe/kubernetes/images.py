# SPDX-License-Identifier: GPL-3.0-or-later

"""From where a cluster lets its nodes pull images."""

from __future__ import annotations

import typing

from ..._model.kubernetes.images import ImageFacts, MirrorRule, RegistrySources
from ..._parse.kubernetes import images as parse
from ..._parse.kubernetes.resource import ResourceError, name_of
from .client import Cluster
from .errors import ApiError
from .kinds import Resource, group_of

#: has the lists of registries, in the object of this name
CONFIG, NAME = "Image.config.openshift.io", "cluster"


def observe(cluster: Cluster, named: typing.Mapping[str, str]) -> ImageFacts:
    """Read it all. What cannot be read is in ``errors``; a kind that the server does not serve has no objects.

    :param named: images beside those of the fabrics, by the variable that names them
    :raises ApiError: the server cannot be reached
    """
    errors: list[str] = []

    def read(kind: str) -> tuple[Resource, ...]:
        try:
            return cluster.list(kind).items
        except ApiError as error:
            if error.status == 0:
                raise
            if not error.absent and _is_kind_served(cluster, kind):
                errors.append(error.seen)
            return ()

    rules: list[MirrorRule] = []
    registries = RegistrySources()
    try:
        for kind in parse.RULES:
            for item in read(kind):
                rules += parse.mirror_rules(item)
        for item in read(CONFIG):
            if name_of(item) == NAME:
                registries = parse.registry_sources(item)
    except ResourceError as error:
        errors.append(error.seen)
    return ImageFacts(tuple(rules), registries, dict(named), tuple(errors))


def _is_kind_served(cluster: Cluster, kind: str) -> bool:
    """Return whether there may be objects of a kind: a user without the right to list it is refused before the server
    checks whether it knows the kind."""
    try:
        return cluster.serves(group_of(kind))
    except ApiError as error:
        if error.status == 0:
            raise
        return True
