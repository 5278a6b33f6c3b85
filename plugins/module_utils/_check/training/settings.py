# SPDX-License-Identifier: GPL-3.0-or-later

"""Check the variables of NCCL in a log whose harm its channels do not show. Check id: ``training.problem``."""

from __future__ import annotations

import typing

from ..._model.base.phrases import count_of
from ..._model.job.nccl import NcclLog
from ..._model.run.findings import WARN, Finding
from ..job.nccl_settings import explain_silent


def check_settings(log: NcclLog) -> typing.Iterator[Finding]:
    """Yield a warning for each value of a variable that slows down the job, with the number of processes that have it.
    Variables whose effect the channels show are judged by the channels.

    :param log: parsed log of NCCL
    """
    found: dict[tuple[str, str], tuple[str, str, int]] = {}
    for process in log.processes:
        for name, why, remedy in explain_silent(process.environment, len(process.devices)):
            key = name, process.environment[name]
            found[key] = why, remedy, found.get(key, ("", "", 0))[2] + 1
    for (name, value), (why, remedy, count) in found.items():
        yield Finding(
            "training.problem",
            name,
            WARN,
            f"{name}={value} in {count_of(count, 'process', 'processes')} of {len(log.processes)}",
            "no variable of NCCL that slows down the job",
            why,
            f"{remedy} It is in the job or in its image. Then run the job again.",
        )
