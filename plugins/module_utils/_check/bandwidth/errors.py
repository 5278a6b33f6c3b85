# SPDX-License-Identifier: GPL-3.0-or-later

"""Stage bandwidth, the error counters of the HCAs of a RoCE fabric before and after the measurement of each pair. Check
id: ``bandwidth.errors``. Loss that a figure above its floor hides is found by them.
"""

from __future__ import annotations

import typing

from ..._analysis.bandwidth.floors import PairLimits
from ..._analysis.measurement.hca_errors import Measurement, judge_errors, merge_errors
from ..._model.base.phrases import count_of
from ..._model.intent.profiles import carries_roce
from ..._model.measurement.hca_counters import HcaErrors
from ..._model.measurement.pairs import PairResult
from ..._model.run.findings import Finding

_PAIRS = Measurement(
    "bandwidth.errors",
    "bandwidth",
    "the measurement of a pair",
    "A job waits for each packet that is sent again. The measured bandwidth can be above its floor all the same.",
)


def check_errors(ground: PairLimits, pairs: typing.Iterable[PairResult]) -> typing.Iterator[Finding]:
    """Yield a finding for each HCA whose error counters rose during the measurement of its pairs, and one passed
    finding for all remaining HCAs. Yield nothing on InfiniBand, whose counters stage fabric reads, and for a fabric
    without RDMA.

    :param ground: bandwidth limits by which the pairs of the fabric are judged
    :param pairs: measurements of the fabric, with the counter changes of their HCAs
    """
    fabric = ground.fabric
    if not carries_roce(fabric):
        return
    found: list[HcaErrors] = []
    virtual: set[str] = set()
    seen: set[str] = set()
    for pair in pairs:
        if pair.transport != "RDMA" or pair.average_gbps is None:
            continue
        items = {(item.node, item.device): item for item in pair.errors}
        for end in (pair.client_end, pair.server_end):
            pod = ground.pods.get(end)
            at = end[1], (pod.device if pod is not None else None) or "of an unknown device"
            found.append(items.pop(at, HcaErrors(*at, why="the result of the measurement does not contain them")))
            if pod is not None and pod.physical_function not in (None, pod.pci):
                virtual.add(end[1])
        seen.update(node for node, _device in items)
        found += items.values()
    merged = merge_errors(found)
    unseen = count_of(len(virtual - seen), "node")
    note = (
        f"; errors of the cables of {unseen} not read: no pod inspects them (rdma_observers)" if virtual - seen else ""
    )
    yield from judge_errors(_PAIRS, fabric.name, [(item.node, item.device) for item in merged], merged, note)
