# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse the output of ``devlink -j dev info pci/<address>`` (iproute2 devlink/devlink.c, since 5.1): the firmware
versions that the driver reports.

``{"info": {"pci/0000:3b:00.0": {"driver": ..., "versions": {"fixed": {...}, "running": {...}, "stored": {...}}}}}``.
mlx5 reports ``fw.psid``, ``fw.version`` and, from Linux 5.14 on, ``fw``. Other drivers report ``fw`` or ``fw.mgmt``. If
no new version waits for a reset, mlx5 reports the running version as the stored one.
"""

from __future__ import annotations

import typing

from ..._model.base.errors import ParseError
from ..._model.boundary.words import WORD
from ..limits import decode_json

_SOURCE, _FORM = "devlink", "the versions of one PCI function, in JSON"
_VERSIONS = ("fw.version", "fw", "fw.mgmt")


class Info(typing.NamedTuple):
    """The PSID and the firmware versions of a PCI function. A value is None if the driver does not report it.

    :ivar psid: identifier of the board and its firmware variant, such as ``MT_0000000838``
    :ivar running: version that runs now
    :ivar stored: version that runs after the next reset
    """

    psid: typing.Optional[str]
    running: typing.Optional[str]
    stored: typing.Optional[str]


def parse(text: str, address: str) -> Info:
    """Return the PSID and the firmware versions of one PCI function from the output of ``devlink -j dev info``.

    :param text: output in JSON
    :param address: PCI address of the function
    :raises ParseError: the output has an unexpected form, or is about another function
    """
    try:
        versions = decode_json(text, _SOURCE, unique=False)["info"][f"pci/{address}"].get("versions", {})
        parts = {name: versions.get(name, {}) for name in ("fixed", "running", "stored")}
        said = {
            name: {key: part[key] for key in (*_VERSIONS, "fw.psid") if key in part} for name, part in parts.items()
        }
    except (KeyError, TypeError, AttributeError):
        raise ParseError(_SOURCE, text, _FORM) from None
    if not all(WORD.fits(value) for part in said.values() for value in part.values()):
        raise ParseError(_SOURCE, text, _FORM)
    # the stored version is compared with the running one, so that both must be of one component
    key = next((name for name in _VERSIONS if name in said["running"]), "")
    return Info(said["fixed"].get("fw.psid"), said["running"].get(key), said["stored"].get(key))
