# SPDX-License-Identifier: GPL-3.0-or-later

"""Names and labels of the objects that the collection creates, and the formats in which operators expect some
values.
"""

from __future__ import annotations

import json
import re
import typing

from ..._model.base import marks
from ..._model.base.errors import RdmaError
from ..._model.intent.intent import Fabric
from ..._model.intent.networks import Network

Object = dict[str, typing.Any]
#: PCI addresses of a fabric's physical functions on each node
Members = typing.Mapping[str, typing.Sequence[str]]

#: on every object
MANAGED_BY = marks.MANAGED_BY
FABRIC_LABEL = marks.FABRIC_LABEL
#: on pods: the run that owns them, see _model/run/lease.py
RUN_LABEL = marks.RUN_LABEL


class RenderError(RdmaError):
    """The error that the intent cannot be rendered as objects. The message names the key and the required change."""


def object_name(*parts: str) -> str:
    """Return a DNS subdomain (RFC 1123) from parts, which are joined with hyphens: lower case, other characters become
    hyphens, at most 253 characters. Empty parts are skipped, and a longer name is cut.

    :raises RenderError: no valid character remains
    """
    name = re.sub(r"[^a-z0-9.-]+", "-", "-".join(part for part in parts if part).lower()).strip("-.")[:253].strip("-.")
    if not name:
        raise RenderError(f"{parts} cannot be used in the name of an object; use letters, digits and hyphens")
    return name


def build_labels(fabric: str, run: str = "") -> dict[str, str]:
    """Return the labels of an object that belongs to a fabric, as value by key.

    :param fabric: name of the fabric
    :param run: id of the run that owns the object; empty if no run owns it
    """
    return {**MANAGED_BY, FABRIC_LABEL: object_name(fabric)[:63].strip("-."), **build_owner_label(run)}


def build_owner_label(run: str) -> dict[str, str]:
    """Return the label with the id of the run that owns an object. Return an empty mapping if ``run`` is empty."""
    return {RUN_LABEL: re.sub(r"[^A-Za-z0-9._-]+", "-", run)[:63].strip("-._")} if run else {}


def policy_name(fabric: str, node: str = "") -> str:
    """Return the name of the SriovNetworkNodePolicy of a fabric.

    :param node: node of a policy for a single node; empty for a policy for all nodes
    """
    return object_name("linerate", fabric, node)


def get_interface(fabric: Fabric) -> str:
    """Return the node's network interface on which the fabric's pod interfaces are created.

    :raises RenderError: ``select.netdev`` of the fabric does not name exactly one interface
    """
    if len(fabric.select.netdev) != 1:
        raise RenderError(
            f"rdma_fabrics '{fabric.name}': select.netdev has {len(fabric.select.netdev)} interfaces, but pods use"
            " only one; set one"
        )
    return fabric.select.netdev[0]


def keep_filled(**fields: typing.Any) -> Object:
    """Return the given fields as a mapping, without those that are None, so that the operator chooses defaults for
    them.
    """
    return {key: value for key, value in fields.items() if value is not None}


def format_switch(wanted: typing.Optional[bool]) -> typing.Optional[str]:
    """Return a Boolean as ``on`` or ``off``, the format of the SR-IOV operator. Return None for None.

    :param wanted: value of the intent; None if it is not set
    """
    return None if wanted is None else "on" if wanted else "off"


def plugins_text(network: Network) -> typing.Optional[str]:
    """Return the chained CNI plugins of a network as JSON objects separated by commas, without the brackets of a list.
    Operators append this text to the first plugin of their own list. Return None if the network has no chained plugins.
    """
    return ",".join(json.dumps(plugin, sort_keys=True) for plugin in network.meta_plugins) or None
