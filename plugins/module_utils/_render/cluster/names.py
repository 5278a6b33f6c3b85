# SPDX-License-Identifier: GPL-3.0-or-later

"""Names and labels of the objects that the collection makes, and how operators want some values written."""

from __future__ import annotations

import json
import re
import typing

from ..._model.base import marks
from ..._model.base.errors import RdmaError
from ..._model.intent.intent import Fabric, Network

Object = dict[str, typing.Any]
#: PCI addresses of a fabric's physical functions on each node
Members = typing.Mapping[str, typing.Sequence[str]]

#: on every object
MANAGED_BY = marks.MANAGED_BY
FABRIC_LABEL = "linerate.rdma/fabric"
#: on pods: the run that owns them, see _model/run/lease.py
RUN_LABEL = marks.RUN_LABEL


class RenderError(RdmaError):
    """The intent cannot be written as objects. The message says which key, and what to add."""


def object_name(*parts: str) -> str:
    """Return a DNS subdomain (RFC 1123) from parts: lower case, other signs become hyphens, at most 253 characters.

    :raises RenderError: nothing is left of it
    """
    name = re.sub(r"[^a-z0-9.-]+", "-", "-".join(part for part in parts if part).lower()).strip("-.")[:253].strip("-.")
    if not name:
        raise RenderError(f"no object can be named after {parts}; use letters, digits and hyphens")
    return name


def labels(fabric: str, run: str = "") -> dict[str, str]:
    """Labels of an object of one fabric, and of one run."""
    return {**MANAGED_BY, FABRIC_LABEL: object_name(fabric)[:63].strip("-."), **owner(run)}


def owner(run: str) -> dict[str, str]:
    """Return the label of what one run owns; none for what is nobody's."""
    return {RUN_LABEL: re.sub(r"[^A-Za-z0-9._-]+", "-", run)[:63].strip("-._")} if run else {}


def policy_name(fabric: str, node: str = "") -> str:
    """Of the SriovNetworkNodePolicy."""
    return object_name("linerate", fabric, node)


def interface(fabric: Fabric) -> str:
    """Return the one interface of the node on which pods are put.

    :raises RenderError: the fabric names none, or several
    """
    if len(fabric.select.netdev) != 1:
        raise RenderError(
            f"rdma_fabrics '{fabric.name}': select.netdev names {len(fabric.select.netdev)} interfaces, and pods are"
            " put on one; name one"
        )
    return fabric.select.netdev[0]


def filled(**fields: typing.Any) -> Object:
    """Render the fields that have a value: what the intent does not say is the operator's to choose."""
    return {key: value for key, value in fields.items() if value is not None}


def switch(wanted: typing.Optional[bool]) -> typing.Optional[str]:
    """on or off, as the SR-IOV operator writes them."""
    return None if wanted is None else "on" if wanted else "off"


def plugins_text(network: Network) -> typing.Optional[str]:
    """Chained plugins: operators put this text behind the first plugin of a list, so it is a row of objects and no
    list."""
    return ",".join(json.dumps(plugin, sort_keys=True) for plugin in network.meta_plugins) or None
