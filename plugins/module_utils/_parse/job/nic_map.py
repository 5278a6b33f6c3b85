# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse the NIC map, which lists the interface and the address of each network device of each node, and read its text
from a ConfigMap.
"""

from __future__ import annotations

from ..._model.base.phrases import count_of
from ..._model.boundary.addresses import ADDRESS
from ..._model.boundary.devices import INTERFACE
from ..._model.boundary.form import describe_rejected
from ..._model.boundary.kubernetes import SUBDOMAIN
from ..._model.job.nic_map import NicLine, NicMap
from ..kubernetes.resource import Resource, ResourceError, mapping_at, title_of

#: the key that we write; of a map that someone else made, the only key counts
KEY = "nic-map"


def parse_nic_map(text: str) -> NicMap:
    """Parse the lines of the NIC map. Empty lines and lines that begin with ``#`` are ignored. The result also lists
    the invalid lines, each with its number, its text cut to 200 characters, and the reason.
    """
    lines, broken = [], []
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if stripped and not stripped.startswith("#"):
            try:
                lines.append(_parse_line(stripped))
            except ValueError as error:
                broken.append((number, stripped[:200], str(error)))
    return NicMap(tuple(lines), tuple(broken))


def _parse_line(text: str) -> NicLine:
    """Parse one line of a NIC map, which has the form ``node:netdev:interface:address``.

    :raises ValueError: the line is invalid. The message is the reason
    """
    # an IPv6 address has colons of its own
    parts = text.split(":", 3)
    if len(parts) != 4:
        raise ValueError(f"it has {count_of(len(parts), 'part')}; expected 4 parts, separated by colons")
    node, netdev, interface, address = parts
    for what, value, form in (
        ("node", node, SUBDOMAIN),
        ("host netdev", netdev, INTERFACE),
        ("pod interface", interface, INTERFACE),
    ):
        if not form.fits(value):
            raise ValueError(f"'{describe_rejected(value)}' is not a valid name of a {what}")
    found = ADDRESS.parse(address)
    if found is None:
        raise ValueError(f"'{describe_rejected(address)}' is not an IP address")
    return NicLine(node, netdev, interface, found)


def text_of(resource: Resource) -> str:
    """Return the text of the NIC map in a ConfigMap: the value of the key ``nic-map`` or, if this key is missing, of
    the only key.

    :raises ResourceError: the ConfigMap has neither that key nor exactly one key, or the value is not text
    """
    data = mapping_at(resource, "data")
    found = data.get(KEY) if KEY in data else next(iter(data.values())) if len(data) == 1 else None
    if not isinstance(found, str):
        raise ResourceError(
            f"{title_of(resource)}: expected data.{KEY}, or exactly one key; the ConfigMap has"
            f" {', '.join(map(str, data)) or 'none'}"
        )
    return found
