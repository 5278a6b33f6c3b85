# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the templates of NVIDIA's NIC configuration operator, and refuse those that require another number of virtual
functions of a card than the SR-IOV network operator sets.
"""

from __future__ import annotations

import typing

from ..._analysis.controllers.sriov.card_firmware import (
    CardTemplates,
    describe_disable,
    list_template_conflicts,
    writes_firmware,
)
from ..._analysis.controllers.sriov.policies import find_wanted
from ..._model.base.errors import RdmaError
from ..._model.base.marks import LABEL, MANAGER
from ..._model.kubernetes.disruption import OperatorSettings
from ..._model.node.firmware import NicDevice
from ..._observe.kubernetes.client import Cluster
from ..._observe.kubernetes.errors import ApiError
from ..._observe.kubernetes.kinds import Resource, group_of
from ..._observe.operators.nic_configuration_operator import observe, read_templates
from ..._observe.operators.sriov_operator import namespace_of_operator
from ..._parse.kubernetes import core
from ..._parse.kubernetes.resource import name_of
from ..._parse.operators import sriov_operator
from ..._parse.operators.nic_configuration_operator import nic_template

TEMPLATE = "NicConfigurationTemplate"
#: nodes that a message names
_NAMED = 5


def read_card_templates(cluster: Cluster) -> CardTemplates:
    """Read the templates of NVIDIA's NIC configuration operator and its cards. Without the operator there are none: a
    user without rights would otherwise get Forbidden for a kind that the API server does not serve.

    The operator reads templates only in its own namespace, which is that of its NicDevices. A tenant may have created
    others. If no NicDevice could be read, all templates count.

    :raises ApiError: the API server refuses, or cannot be reached
    :raises ResourceError: a template is malformed
    """
    if not cluster.serves(group_of(TEMPLATE)):
        return CardTemplates()
    templates = read_templates(cluster)
    nics = observe(cluster) if templates else None
    if nics is None or nics.errors or not nics.devices:
        return CardTemplates(templates)
    places = {device.namespace for device in nics.devices}
    return CardTemplates(tuple(item for item in templates if item.namespace in places), nics.devices)


def refuse_conflicts(
    cluster: Cluster,
    named: typing.Optional[str],
    templates: typing.Sequence[Resource],
    devices: typing.Sequence[NicDevice],
) -> None:
    """Verify that the policies in the cluster do not make the SR-IOV operator set another number of virtual functions
    of a card than the templates that the run will apply.

    :param named: namespace of the SR-IOV operator, as the intent has it
    :param templates: NicConfigurationTemplates to apply
    :param devices: cards of the cluster that NVIDIA's NIC configuration operator has found
    :raises RdmaError: the numbers differ, or an object has an unexpected form
    :raises ApiError: the API server refuses a list, or cannot be reached
    """
    found = _list_conflicts(cluster, named, templates, devices)
    if found:
        raise RdmaError(
            "NVIDIA's NIC configuration operator and the SR-IOV operator would set different numbers of virtual"
            f" functions. {' '.join(found[:_NAMED]).rstrip('.')}",
            "Then run stage platform again. Nothing was set",
        )


def _list_conflicts(
    cluster: Cluster,
    named: typing.Optional[str],
    templates: typing.Sequence[Resource],
    devices: typing.Sequence[NicDevice],
) -> list[str]:
    if not cluster.serves(group_of("SriovNetworkNodePolicy")):
        return []
    place = namespace_of_operator(cluster, named)
    policies = tuple(map(sriov_operator.parse_policy, _list_served(cluster, "SriovNetworkNodePolicy", place)))
    settings = next(
        (
            sriov_operator.operator_settings(item)
            for item in _list_served(cluster, "SriovOperatorConfig", place)
            if name_of(item) == "default"
        ),
        OperatorSettings(),
    )
    if not policies or not writes_firmware(settings):
        return []
    cards = CardTemplates(tuple(nic_template(item, LABEL, MANAGER) for item in templates), tuple(devices))
    nodes = {node.name: node for node in map(core.parse_node, cluster.list("Node").items)}
    found: list[str] = []
    for item in _list_served(cluster, "SriovNetworkNodeState", place):
        state = sriov_operator.node_state(item)
        node = nodes.get(state.node)
        if node is not None:
            wanted = find_wanted(policies, node, state)
            found += [
                f"{node.name}: {why}. {describe_disable(place, settings)}."
                for why in list_template_conflicts(cards, node, wanted, state.interfaces)
            ]
    return found


def explain_unread(error: RdmaError) -> str:
    """Return why the templates could not be read, as text."""
    if isinstance(error, ApiError):
        return "the API server does not serve the kind" if error.absent else error.no_answer
    return error.seen


def _list_served(cluster: Cluster, kind: str, place: str) -> tuple[Resource, ...]:
    """Return the objects of a kind in a namespace. A kind that the API server does not serve has none."""
    try:
        return cluster.list(kind, place).items
    except ApiError as error:
        if error.absent:
            return ()
        raise
