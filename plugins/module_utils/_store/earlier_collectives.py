# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the figures of collectives that kept runs have measured, step by step."""

from __future__ import annotations

import typing

from .._model.base.load import load
from .._model.measurement.collectives import (
    EarlierCollectives,
    EarlierLatency,
    EarlierStep,
    LatencyFigures,
    StepFigures,
    StepKey,
    TestName,
)
from .._model.run.facts import RunStart
from .facts import FactFolder
from .history import read_earlier
from .run_start import read_start

#: keys of rdma_cluster.collectives that decide on a figure; the image may be a newer one, whose figures are to be
#: compared
_DECIDES = ("fabric", "gpus_per_node", "least_bytes", "most_bytes")


def read_earlier_collectives(folder: FactFolder) -> EarlierCollectives:
    """Return the figures of the earlier kept runs that had the same collectives and the same fabrics.

    :param folder: folder of the current run, whose figures are compared
    :returns: the figures. A run that cannot be read is listed with the reason. A run without figures, such as one in
        check mode, is left out
    :raises FileError: the folder of this run or that of the kept runs cannot be read
    """
    start = folder.start()
    found, unread = read_earlier(folder.report_dir, folder.run, lambda path, run: _read_figures(path, run, start))
    proven = {run: both for run, both in found.items() if both[0]}
    figures: dict[StepKey, list[StepFigures]] = {}
    latencies: dict[TestName, list[float]] = {}
    for steps, of_pairs in proven.values():
        for step in steps:
            figures.setdefault(step.key, []).append(step)
        for item in of_pairs:
            latencies.setdefault(item.test, []).append(item.median)
    known = (
        EarlierStep(steps[0].test, steps[0].kind, steps[0].nodes, tuple(step.median for step in steps))
        for _key, steps in sorted(figures.items())
    )
    known_latencies = tuple(EarlierLatency(test, tuple(values)) for test, values in sorted(latencies.items()))
    return EarlierCollectives(tuple(proven), unread, tuple(known), known_latencies)


def _read_figures(path: str, run: str, now: RunStart) -> tuple[tuple[StepFigures, ...], tuple[LatencyFigures, ...]]:
    """Return the figures of a kept run: those of its collectives by step, and the latencies of small messages. Both are
    empty if the run is in check mode, or had other collectives or fabrics.

    :param path: folder of the kept run
    :param run: id of the kept run
    :param now: start of the current run
    """
    start = read_start(path)
    if start is None or start.check_mode or start.fabrics != now.fabrics or _wish(start) != _wish(now):
        return (), ()
    value = FactFolder(path, run).value("collectives")
    value = value if isinstance(value, dict) else {}
    steps: tuple[StepFigures, ...] = load(tuple[StepFigures, ...], value.get("steps", []), "steps")
    latencies: tuple[LatencyFigures, ...] = load(tuple[LatencyFigures, ...], value.get("latencies", []), "latencies")
    return steps, latencies


def _wish(start: RunStart) -> dict[str, typing.Any]:
    wanted = start.cluster.get("collectives") if isinstance(start.cluster, dict) else None
    return {key: wanted.get(key) for key in _DECIDES} if isinstance(wanted, dict) else {}
