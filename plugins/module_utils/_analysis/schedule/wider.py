# SPDX-License-Identifier: GPL-3.0-or-later

"""Choose a larger measurement for a pair that is too slow, with more queue pairs and larger messages. Otherwise an end
could be accused only because perftest did not fill the link.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._model.intent.intent import Fabric
from ..._parse.kubernetes.quantity import parse_quantity
from ..._parse.kubernetes.resource import ResourceError

#: queue pairs that fill any link, and by how much messages grow
MANY, FACTOR = 16, 4
#: bytes of a message above which larger ones change nothing
LARGEST = 8 * 2**20
#: messages of a queue pair that perftest sends at least
FEWEST_MESSAGES = 5
#: of a pod's memory, for the buffers of perftest: it takes two of a message for each queue pair
_SHARE = 2
#: pairs of an end that stay too slow with more queue pairs: its further ones are then not measured again
ENOUGH = 2


class Amount(typing.NamedTuple):
    """The amount of data that ib_write_bw sends.

    :ivar queue_pairs: number of queue pairs at the same time
    :ivar message_bytes: size of a message in bytes
    :ivar iterations: number of messages of each queue pair; None if the intent limits the measurement by time
    """

    queue_pairs: int
    message_bytes: int
    iterations: typing.Optional[int]


def widen_amount(fabric: Fabric, queue_pairs: typing.Optional[int]) -> typing.Optional[Amount]:
    """Return the amount for the repetition of a pair that is too slow: enough queue pairs to fill any link, and
    messages as large as the memory of the pod and the number of messages allow. Return None if the first measurement
    was as large already, or if the memory does not suffice.

    :param queue_pairs: number of queue pairs of the first measurement; None counts as 1
    """
    first, size, wanted = queue_pairs or 1, fabric.pods.message_bytes, fabric.pods.iterations
    room = _parse_pod_memory(fabric) // _SHARE
    for many in (max(first, MANY), *(count for count in (8, 4, 2) if count > first)):
        for factor in (FACTOR, FACTOR // 2, 1):
            larger = factor * size
            if (many, factor) == (first, 1) or (factor > 1 and larger > LARGEST) or 2 * many * larger > room:
                continue
            if wanted is None:
                return Amount(many, larger, None)
            # no more data than before: who gives a number of messages means the time that they take
            messages = wanted * first // (many * factor)
            if messages >= FEWEST_MESSAGES or factor == 1:
                return Amount(many, larger, max(FEWEST_MESSAGES, messages))
    return None


def widen_fabric(fabric: Fabric, amount: Amount) -> Fabric:
    """Return the fabric with its measurement settings replaced by those of the repetition.

    :param amount: amount of data of the repetition
    """
    pods = dataclasses.replace(
        fabric.pods, queue_pairs=amount.queue_pairs, message_bytes=amount.message_bytes, iterations=amount.iterations
    )
    return dataclasses.replace(fabric, pods=pods)


def _parse_pod_memory(fabric: Fabric) -> int:
    """Return the memory of a pod in bytes, or 0 if the setting is invalid."""
    try:
        return int(parse_quantity(fabric.pods.memory, "pods.memory"))
    except ResourceError:
        return 0
