# SPDX-License-Identifier: GPL-3.0-or-later

"""Status and remedy of findings on pairs that partition keys separate. No hardware is a suspect for these pairs."""

from __future__ import annotations

import typing

from ..._analysis.fleet.partitions import Apart
from ..._model.run.findings import FAIL, UNKNOWN

#: for opensm; UFM and the managers of switches have the same partition in their own form
_FULL_MEMBERS = (
    "Make one of the ports a full member, for example: 'Default=0x7fff, ipoib : ALL=full;' in"
    " /etc/opensm/partitions.conf on the subnet manager host, then 'systemctl restart opensm'. Then run stage"
    " reachability again."
)
#: ibping proves nothing of a partition that it does not use
_ANOTHER_PARTITION = (
    "Add all HCAs to the default partition ('Default=0x7fff, ipoib : ALL=full;' in /etc/opensm/partitions.conf), then"
    " run stage reachability again. Or waive this finding if stage bandwidth passes."
)


def find_status(parted: typing.Sequence[Apart]) -> typing.Literal["fail", "unknown"]:
    """Return the status for pairs that partition keys separate: ``unknown`` if the ports of every pair share another
    partition, which ibping does not use, else ``fail``.

    :param parted: partition keys that separate the ports of a pair, one item for each pair
    """
    return UNKNOWN if all(found.shared for found in parted) else FAIL


def remedy_of(parted: typing.Sequence[Apart]) -> str:
    return _ANOTHER_PARTITION if all(found.shared for found in parted) else _FULL_MEMBERS
