# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the objects of the NVIDIA NIC configuration operator, if the cluster has it."""

from __future__ import annotations

from ..._model.base.marks import LABEL, MANAGER
from ..._model.node.firmware import NicDevice, NicDevices, NicTemplate, UnreadNic
from ..._parse.kubernetes.resource import ResourceError
from ..._parse.operators.nic_configuration_operator import nic_device, nic_template, node_of
from ..kubernetes.client import Cluster
from ..kubernetes.errors import ApiError


def observe(cluster: Cluster) -> NicDevices:
    """Return all NicDevices. Without the operator there are none. Devices that could not be read are in ``unread`` if
    their node is known. All other errors are in ``errors``.
    """
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
    """Return all NicConfigurationTemplates, with any creator.

    :raises ApiError: the server refuses, or cannot be reached
    :raises ResourceError: an object is malformed
    """
    return tuple(nic_template(item, LABEL, MANAGER) for item in cluster.pages("NicConfigurationTemplate"))
