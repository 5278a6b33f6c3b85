# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the objects of the NVIDIA NIC configuration operator, if the cluster has it."""

from __future__ import annotations

import typing

from ..._model.base.marks import LABEL, MANAGER
from ..._model.node.firmware import NicDevice, NicDevices, NicTemplate, UnreadNic
from ..._parse.kubernetes.resource import ResourceError, read_namespace
from ..._parse.operators.nic_configuration_operator import is_reported, nic_device, nic_template, node_of
from ..kubernetes.client import Cluster
from ..kubernetes.errors import ApiError


def observe(cluster: Cluster) -> NicDevices:
    """Return all NicDevices. Without the operator there are none. A NicDevice that could not be read is in ``unread``
    if its node is known; all other errors, also that of an API server that cannot be reached, are in ``errors``.

    An unreadable NicDevice in a namespace without any NicDevice that has a status is ignored: it does not come from the
    operator, because a user with rights in that namespace created it. While no NicDevice has a status, unreadable ones
    with a node count.
    """
    devices: list[NicDevice] = []
    errors: list[str] = []
    failed: list[_Failed] = []
    spaces: set[str] = set()
    try:
        for item in cluster.pages("NicDevice"):
            try:
                if is_reported(item):
                    spaces.add(read_namespace(item))
                devices.append(nic_device(item))
            except ResourceError as error:
                failed.append(_Failed(read_namespace(item), node_of(item), error))
    except ApiError as error:
        if not error.absent:
            errors.append(error.seen)
    known = [item for item in failed if (item.namespace in spaces if spaces else item.node)]
    return NicDevices(
        tuple(devices),
        (*(str(item.error) for item in known if not item.node), *errors),
        tuple(UnreadNic(item.node, item.error.seen) for item in known if item.node),
    )


class _Failed(typing.NamedTuple):
    """A NicDevice that could not be read.

    :ivar namespace: namespace of the NicDevice
    :ivar node: name of its node; empty if it is not known
    :ivar error: reason why it could not be read
    """

    namespace: str
    node: str
    error: ResourceError


def read_templates(cluster: Cluster) -> tuple[NicTemplate, ...]:
    """Return all NicConfigurationTemplates of the cluster, whether the collection or another client created them.

    :raises ApiError: the server refuses, or cannot be reached
    :raises ResourceError: an object is malformed
    """
    return tuple(nic_template(item, LABEL, MANAGER) for item in cluster.pages("NicConfigurationTemplate"))
