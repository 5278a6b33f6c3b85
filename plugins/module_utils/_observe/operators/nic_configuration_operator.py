# SPDX-License-Identifier: GPL-3.0-or-later

"""What NVIDIA's NIC configuration operator reports of the cards, where the cluster has it."""

from __future__ import annotations

from ..._model.base.marks import LABEL, MANAGER
from ..._model.node.firmware import NicDevice, NicDevices, NicTemplate, UnreadNic
from ..._parse.kubernetes.resource import ResourceError
from ..._parse.operators.nic_configuration_operator import nic_device, nic_template, node_of
from ..kubernetes.client import Cluster
from ..kubernetes.errors import ApiError


def observe(cluster: Cluster) -> NicDevices:
    """Return all of them. A cluster without the operator has none; what could not be read is in ``errors``, of a node
    that is known in ``unread``."""
    devices: list[NicDevice] = []
    errors: list[str] = []
    unread: list[UnreadNic] = []
    try:
        for item in cluster.pages("NicDevice"):
            try:
                devices.append(nic_device(item))
            except ResourceError as error:
                node = node_of(item)
                if node:
                    unread.append(UnreadNic(node, error.seen))
                else:
                    errors.append(str(error))
    except ApiError as error:
        if not error.absent:
            errors.append(error.seen)
    return NicDevices(tuple(devices), tuple(errors), tuple(unread))


def read_templates(cluster: Cluster) -> tuple[NicTemplate, ...]:
    """Return those that are there, whoever made them.

    :raises ApiError: they can't be listed
    :raises ResourceError: an object that is none of its kind
    """
    return tuple(nic_template(item, LABEL, MANAGER) for item in cluster.pages("NicConfigurationTemplate"))
