# SPDX-License-Identifier: GPL-3.0-or-later

"""Find the objects of an earlier intent, of all kinds that stage network applies."""

from __future__ import annotations

import dataclasses
import typing

from ..._model.kubernetes.apply import MOST_LEFT, Leftovers
from .client import Cluster
from .copies import mark_copy
from .kinds import Resource
from .machines import find_labelled
from .outcome import identify_object
from .remove import find_leftovers, is_of_another


def find_all_leftovers(
    cluster: Cluster, kinds: typing.Sequence[str], selector: str, wanted: typing.Sequence[Resource]
) -> Leftovers:
    """Return the objects with the label that are not among those that the intent requires: of ``kinds``, and
    MachineConfigs and KubeletConfigs.

    :param kinds: kinds that are searched besides MachineConfigs and KubeletConfigs
    :param selector: label selector of the collection
    :param wanted: objects that the intent requires
    :raises ApiError: the API server cannot be reached
    """
    found, hosts = find_leftovers(cluster, kinds, selector, wanted), find_labelled(cluster, wanted)
    mine = [item for item in hosts.objects if not is_of_another(item, wanted)]
    # first, because tenants can make any number of the others
    objects = (*(mark_copy(identify_object("", item), item) for item in mine), *found.objects)
    return dataclasses.replace(
        found,
        objects=objects[:MOST_LEFT],
        more=found.more + len(objects[MOST_LEFT:]),
        errors=(*found.errors, *hosts.unread),
    )
