# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the error counters of all links that kept runs have stored."""

from __future__ import annotations

import typing

from .._model.base.load import load
from .._model.infiniband.fabric import SeenTopology
from .._model.run.link_errors import EarlierErrors, collect_readings
from .facts import FactFolder
from .history import read_earlier
from .run_start import read_start

#: runs that are read: the facts of a large fabric are megabytes each
MOST_RUNS = 20


def read_earlier_errors(report_dir: str, run: str) -> EarlierErrors:
    """Return the error counters of the 20 newest kept runs before this one, the oldest first. Runs in check mode and
    runs with other fabrics are included, because the counters belong to the links and every run reads them.

    :param report_dir: folder of the report, which contains the kept runs
    :param run: id of this run
    :returns: the counters. A run that cannot be read is listed with the reason. A run without counters is left out
    :raises FileError: the folder of the kept runs cannot be read
    """
    found, unread = read_earlier(
        report_dir, run, lambda path, name: collect_readings(name, _read_topologies(path, name)), MOST_RUNS
    )
    return EarlierErrors(tuple(reading for reading in found.values() if reading.ends), unread)


def _read_topologies(path: str, run: str) -> typing.Iterator[SeenTopology]:
    start, folder = read_start(path), FactFolder(path, run)
    chosen = folder.value("vantage_points") or () if start is not None else ()
    for node in chosen:
        fact = folder.read("topologies", node)
        if fact is not None and fact.value is not None:
            seen: tuple[SeenTopology, ...] = load(tuple[SeenTopology, ...], fact.value, "topologies")
            yield from seen
