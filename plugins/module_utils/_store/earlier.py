# SPDX-License-Identifier: GPL-3.0-or-later

"""What the runs that are kept have measured, pair by pair."""

from __future__ import annotations

from .._model.base.load import load
from .._model.measurement.bandwidth import BandwidthFacts, Earlier, EarlierPair, PairKey
from .._model.run.facts import RunStart
from .facts import FactFolder, read_start
from .history import read_earlier


def earlier(folder: FactFolder) -> Earlier:
    """Return the figures of the kept runs before this one that were asked for the same fabrics. Waivers may differ:
    they change no figure.

    :param folder: of the run that is to be held against them
    :returns: a run that can't be read is named; one that measured nothing, as in check mode, is left out
    :raises FileError: this run, or the folder of the kept ones, can't be read
    """
    start = folder.start()
    found, unread = read_earlier(
        folder.report_dir, folder.run, lambda path, run: _read_measured_pairs(path, run, start)
    )
    measured = {run: pairs for run, pairs in found.items() if pairs}
    figures: dict[PairKey, list[float]] = {}
    for pairs in measured.values():
        for pair, average in pairs.items():
            figures.setdefault(pair, []).append(average)
    pairs_of_all = (
        EarlierPair(fabric, rail, client, server, tuple(of_pair), None if server_rail == rail else server_rail)
        for (fabric, rail, client, server, server_rail), of_pair in sorted(figures.items())
    )
    return Earlier(tuple(measured), unread, tuple(pairs_of_all))


def _read_measured_pairs(path: str, run: str, now: RunStart) -> dict[PairKey, float]:
    """In Gb/s; what was measured again counts, as it came last."""
    start = read_start(path)
    if start is None or start.check_mode or start.fabrics != now.fabrics:
        return {}
    value = FactFolder(path, run).value("bandwidth")
    if value is None:
        return {}
    seen: BandwidthFacts = load(
        BandwidthFacts, value.get("bandwidth") if isinstance(value, dict) else value, "bandwidth"
    )
    return {pair.key: pair.average_gbps for pair in seen.pairs if pair.is_comparable and pair.average_gbps is not None}
