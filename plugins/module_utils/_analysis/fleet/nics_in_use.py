# SPDX-License-Identifier: GPL-3.0-or-later

"""Find the physical functions that the node itself uses: those of its default routes, and those of its bonds. While the
SR-IOV operator creates virtual functions on such a function, the function has no link. Pure.
"""

from __future__ import annotations

import typing

from ..._model.node.hca import NodeHcas
from ..._model.node.platform import ObservedPlatform

#: use of a function over which a default route leads, also through a bond, a bridge or a VLAN
UPLINK = "the default route of the node"


def find_nics_in_use(
    hcas: typing.Optional[NodeHcas], platform: typing.Optional[ObservedPlatform]
) -> typing.Optional[dict[str, str]]:
    """Return the use of each physical function that the node itself uses, as text. The keys are the names of the
    network interfaces and the PCI addresses of these functions. A function counts also if a virtual function of it is
    in use. Return None if the default routes of the node are unknown.

    :param hcas: HCAs of the node; None if they were not read
    :param platform: observed platform of the node; None if it was not observed
    """
    uplinks = platform.value.uplinks if platform is not None and platform.value is not None else None
    found: dict[str, str] = {}
    for hca in hcas.hcas if hcas is not None else ():
        for netdev in hca.all_netdevs:
            use = UPLINK if netdev.name in (uplinks or ()) else f"the bond {netdev.bond}" if netdev.bond else ""
            address = hca.physical_function or (hca.pci.address if hca.pci is not None else "")
            if use and found.get(address) != UPLINK:
                found.update({netdev.name: use, **({address: use} if address else {})})
    if uplinks is None:
        return None
    return {**found, **dict.fromkeys(uplinks, UPLINK)}
