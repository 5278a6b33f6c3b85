# SPDX-License-Identifier: GPL-3.0-or-later

"""Status and remedy of findings on pairs that partition keys separate. No hardware is a suspect for these pairs."""

from __future__ import annotations

import typing

from ..._analysis.fleet.paths.partitions import JOIN_SENTENCE, Apart
from ..._model.run.findings import FAIL, UNKNOWN

#: for opensm and UFM; the managers of switches have the same partition in their own form
_FULL_MEMBERS = (
    f"Make one of the ports a full member of the partition. {JOIN_SENTENCE} Then run stage reachability again."
)
#: ibping proves nothing of a partition that it does not use
_ANOTHER_PARTITION = (
    "Run stage bandwidth: if it passes, waive this finding, because jobs may use the other partition. If the fabric has"
    " no other tenants, you can instead make all ports full members of the default partition ('Default=0x7fff, ipoib :"
    " ALL=full;' in partitions.conf of opensm, equal on the hosts of all subnet managers, then pkill -HUP -x opensm on"
    " these hosts). Then run stage reachability again."
)


def find_status(parted: typing.Sequence[Apart]) -> typing.Literal["fail", "unknown"]:
    """Return the status for pairs that partition keys separate: ``unknown`` if the ports of every pair share another
    partition, which ibping does not use, else ``fail``.

    :param parted: partition keys that separate the ports of a pair, one item for each pair
    """
    return UNKNOWN if all(found.shared for found in parted) else FAIL


def remedy_of(parted: typing.Sequence[Apart]) -> str:
    return _ANOTHER_PARTITION if all(found.shared for found in parted) else _FULL_MEMBERS
