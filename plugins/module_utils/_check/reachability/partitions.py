# SPDX-License-Identifier: GPL-3.0-or-later

"""What a finding says where partition keys keep pairs apart, and no element is to be accused."""

from __future__ import annotations

import typing

from ..._analysis.fleet.partitions import Apart
from ..._model.run.findings import FAIL, UNKNOWN

#: for opensm; UFM and the managers of switches have the same partition in their own form
_FULL_MEMBERS = (
    "Make one of them a full member: 'Default=0x7fff, ipoib : ALL=full;' in /etc/opensm/partitions.conf, then"
    " 'systemctl restart opensm'."
)
#: ibping proves nothing of a partition that it does not use
_ANOTHER_PARTITION = (
    "Make the default partition reach all HCAs, or see what stage bandwidth measures, and waive this finding with that"
    " reason."
)


def find_status(parted: typing.Sequence[Apart]) -> typing.Literal["fail", "unknown"]:
    """Return ``unknown`` where all of them share another partition: then nothing is known to be wrong."""
    return UNKNOWN if all(found.shared for found in parted) else FAIL


def remedy_of(parted: typing.Sequence[Apart]) -> str:
    return _ANOTHER_PARTITION if all(found.shared for found in parted) else _FULL_MEMBERS
