# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the registries and mirrors from which the nodes of a cluster may pull images."""

from __future__ import annotations

import typing

from ...._model.kubernetes.images.pull_rules import ImageFacts, MirrorRule, RegistrySources
from ...._parse.kubernetes import images as parse
from ...._parse.kubernetes.resource import ResourceError, name_of
from ..client import Cluster
from ..errors import ApiError
from ..kinds import Resource, group_of

#: has the lists of registries, in the object of this name
CONFIG, NAME = "Image.config.openshift.io", "cluster"


def observe(cluster: Cluster, named: typing.Mapping[str, str]) -> ImageFacts:
    """Return the mirror rules of the cluster, and its lists of allowed, blocked and insecure registries. Errors are
    stored in ``errors`` of the result. A kind that the API server does not know counts as a kind without objects.

    :param named: names of images that are stored in the result as they are, by the variable of the collection that sets
        each of them
    :raises ApiError: the API server cannot be reached
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
    """Return whether the API server knows the API group of a kind. Return True if this cannot be determined.

    This is checked after a list was refused: the refusal does not show whether the server knows the kind, because it
    checks the rights of the user first.

    :raises ApiError: the API server cannot be reached
    """
    try:
        return cluster.serves(group_of(kind))
    except ApiError as error:
        if error.status == 0:
            raise
        return True
