# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the settings that physical functions have for their VFs, with ``ip link``. sysfs of the in-tree kernel drivers
does not show them. No privileges are needed.
"""

from __future__ import annotations

import dataclasses

from ..._model.base.errors import RdmaError
from ..._model.node.hca import Hca, NodeHcas, VfAdministration
from ..._parse.node.ip_link import Settings, parse_vf_settings
from ..process import command

_LIMIT_SECONDS = 30.0


def add_vf_settings(node: NodeHcas) -> NodeHcas:
    """Return the HCAs of the node, with the settings of their VFs from ``ip link`` added. A setting that sysfs has
    already reported is kept.

    If no physical function has VFs, no program is run. If the program fails, the HCAs are returned unchanged, with the
    failure added to ``errors``.
    """
    owners = {
        netdev.name: hca.pci.address
        for hca in node.hcas
        if hca.pci and hca.sriov and hca.sriov.current
        for netdev in hca.netdevs
    }
    if not owners:
        return node
    try:
        shown = {owners[name]: settings for name, settings in _read_vf_settings().items() if name in owners}
    except RdmaError as error:
        return dataclasses.replace(node, errors=(*node.errors, f"settings of VFs: {error}"))
    return dataclasses.replace(
        node, hcas=tuple(_add_vf_settings(hca, shown.get(hca.physical_function or "", {})) for hca in node.hcas)
    )


def _read_vf_settings() -> dict[str, Settings]:
    finished = command.run(
        [command.require_tool("ip", "iproute2 (Debian) or iproute (RHEL)"), "-json", "link", "show"], _LIMIT_SECONDS
    )
    if finished.failure:
        raise RdmaError(finished.failure)
    return parse_vf_settings(finished.stdout)


def _add_vf_settings(hca: Hca, settings: Settings) -> Hca:
    found = settings.get(-1 if hca.vf_index is None else hca.vf_index)
    if found is None:
        return hca
    known = {
        name: value
        for name, value in dataclasses.asdict(hca.administration or VfAdministration()).items()
        if value is not None
    }
    return dataclasses.replace(hca, administration=dataclasses.replace(found, **known))
