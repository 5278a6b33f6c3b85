# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the bandwidth figures of kept runs, pair by pair. A kept run is an earlier run whose folder is stored below the
report folder.
"""

from __future__ import annotations

from .._model.base.load import load
from .._model.measurement.bandwidth import BandwidthFacts, Earlier, EarlierPair
from .._model.measurement.pairs import PairKey
from .._model.run.facts import RunStart
from .facts import FactFolder
from .history import read_earlier
from .run_start import read_start


def read_earlier_figures(folder: FactFolder) -> Earlier:
    """Return the bandwidth figures of all kept runs before this one that had the same fabrics. Runs with other waivers
    are included, because waivers change no figure.

    :param folder: folder of the current run, whose figures are compared with the result
    :returns: the figures. A run that cannot be read is listed with the reason. A run without measurements, such as one
        in check mode, is left out
    :raises FileError: the folder of this run or that of the kept runs cannot be read
    """
    start = folder.start()
    found, unread = read_earlier(
        folder.report_dir, folder.run, lambda path, run: _read_measured_pairs(path, run, start)
    )
    measured = {run: pairs for run, pairs in found.items() if pairs}
    figures: dict[PairKey, dict[int, float]] = {}
    for place, pairs in enumerate(measured.values()):
        for pair, average in pairs.items():
            figures.setdefault(pair, {})[place] = average
    pairs_of_all = (
        EarlierPair(
            fabric,
            rail,
            client,
            server,
            tuple(of_pair.values()),
            None if server_rail == rail else server_rail,
            tuple(of_pair),
        )
        for (fabric, rail, client, server, server_rail), of_pair in sorted(figures.items())
    )
    return Earlier(tuple(measured), unread, tuple(pairs_of_all))


def _read_measured_pairs(path: str, run: str, now: RunStart) -> dict[PairKey, float]:
    """Return the average bandwidth of each measured pair of a kept run in Gb/s, by the key of the pair: fabric, rail,
    client, server and rail of the server. If a pair was measured again, the last measurement counts. Return an empty
    dict for a run in check mode, with other fabrics, or without measurements.

    :param path: folder of the kept run
    :param run: id of the kept run
    :param now: start record of the current run, whose fabrics the kept run must have
    :raises RdmaError: the start record or the measurements of the kept run cannot be read
    """
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
