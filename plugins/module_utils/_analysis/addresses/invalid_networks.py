# SPDX-License-Identifier: GPL-3.0-or-later

"""Networks in use whose texts are not valid networks."""

from __future__ import annotations

import dataclasses
import ipaddress

from ..._model.kubernetes.addresses import AddressFacts

#: end of the reason for a network that is not valid
INVALID = "is not a valid network"
#: networks in use as texts, by the kind of use
_USES = {
    "pods": "pod network",
    "services": "service network",
    "node": "address of a node",
    "attachment": "NetworkAttachmentDefinition",
    "host": "network of a host",
    "near_host": "network of a host",
}


def exclude_invalid_networks(seen: AddressFacts) -> AddressFacts:
    """Return a copy of the facts in which each network in use that is not a valid network is moved to the errors.

    :param seen: addresses that are in use in the cluster
    """
    wrong = [item for item in seen.taken if not is_network(item.network)]
    errors = (
        *seen.errors,
        *(
            f"{_USES[item.kind]} ({item.owner}): {repr(item.network) if item.network else 'an empty text'} {INVALID}"
            for item in wrong
        ),
    )
    return dataclasses.replace(seen, taken=tuple(item for item in seen.taken if item not in wrong), errors=errors)


def is_network(text: str) -> bool:
    try:
        ipaddress.ip_network(text)
    except ValueError:
        return False
    return True
