# SPDX-License-Identifier: GPL-3.0-or-later

"""Apply the ResourceFlavors of a queue of Kueue to the nodes that pods choose.

Kueue gives the pods of a template one flavor of each resource group that covers a resource of them. The pods get the
labels of the flavor as nodeSelector, and its tolerations. A flavor is not given to pods whose nodeSelector or node
affinity contradicts its labels, or that do not tolerate its taints. [src kueue v0.19.2
pkg/scheduler/flavorassigner/flavorassigner.go checkFlavorForPodSets, flavorSelector; pkg/podset/podset.go Merge]
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import typing

from ..._model.job.job import NodeChoice
from ..._model.job.stack import FlavorGroup, ResourceFlavor
from ..._parse.kubernetes.core import tolerates_taint
from .requirements import is_met

#: combinations of the flavors of several groups that are compared with the nodes
_MOST = 64


class FlavoredChoice(typing.NamedTuple):
    """The nodes on which pods may run with certain flavors.

    :ivar choice: nodes on which the pods may run, with the labels and tolerations that the flavors add
    :ivar names: names of the flavors; None if it is not known which flavors the pods get
    """

    choice: NodeChoice
    names: typing.Optional[tuple[str, ...]] = None


def list_flavored_choices(
    choice: NodeChoice, resources: typing.AbstractSet[str], groups: typing.Sequence[FlavorGroup]
) -> typing.Optional[list[FlavoredChoice]]:
    """Return the nodes on which pods may run with each combination of flavors that Kueue may give them.

    The list is empty if no flavor of a group fits the pods. Return None if there are more than ``_MOST`` combinations.

    :param choice: nodes on which the pods may run, by their template
    :param resources: resources that the pods request
    :param groups: flavors of the queue of the job
    """
    fitting = [
        [flavor for flavor in group.flavors if _is_assignable(choice, flavor, group)]
        for group in groups
        if group.resources & resources
    ]
    if math.prod(map(len, fitting)) > _MOST:
        return None
    return [_add_flavors(choice, flavors) for flavors in itertools.product(*fitting)]


def _is_assignable(choice: NodeChoice, flavor: ResourceFlavor, group: FlavorGroup) -> bool:
    """Return whether Kueue may give a flavor to pods: they tolerate its taints, and their node selector and affinity
    fit its labels. Only the keys that label flavors of the group are compared.
    """
    tolerations = (*choice.tolerations, *flavor.tolerations)
    if not all(any(tolerates_taint(item, taint) for item in tolerations) for taint in flavor.taints):
        return False
    keys = {key for item in group.flavors for key in item.labels}
    if any(flavor.labels.get(key) != value for key, value in choice.labels.items() if key in keys):
        return False
    terms = [[item for item in term if not item.of_name and item.key in keys] for term in choice.terms]
    # terms are alternatives: one without a key of the flavors matches each flavor
    return not all(terms) or not terms or any(all(is_met(item, flavor.labels) for item in term) for term in terms)


def _add_flavors(choice: NodeChoice, flavors: typing.Sequence[ResourceFlavor]) -> FlavoredChoice:
    labels = {key: value for flavor in flavors for key, value in flavor.labels.items()}
    added = tuple(item for flavor in flavors for item in flavor.tolerations)
    return FlavoredChoice(
        dataclasses.replace(choice, labels={**labels, **choice.labels}, tolerations=(*choice.tolerations, *added)),
        tuple(flavor.name for flavor in flavors),
    )
