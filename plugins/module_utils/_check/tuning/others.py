# SPDX-License-Identifier: GPL-3.0-or-later

"""Remove from the tuning of the nodes the values of HCAs that no fabric of the intent uses, such as an onboard NIC. The
expected values do not apply to them.

The rows ``gpu_nic_path`` and ``acs`` describe the path of a GPU to its nearest HCA. If no fabric uses that HCA, the
path to the nearest HCA of a fabric takes its place.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._analysis.fleet.hcas_of_fabric import find_candidates
from ..._model.intent.intent import Intent
from ..._model.node.hca import NodeHcas
from ..._model.node.tuning import NodeTuning, RowReading
from ..._parse.node import pci_path
from .unread import MISSING, ONLY_NEAREST


def drop_unused_hcas(
    intent: Intent, nodes: typing.Mapping[str, NodeHcas], tunings: typing.Mapping[str, NodeTuning]
) -> dict[str, NodeTuning]:
    """Return the tuning of the nodes without the values of HCAs that no fabric uses. If no HCA of a node matches a
    fabric, or its HCAs could not be read, all its values are kept.

    :param nodes: HCAs of each node that could be read
    :param tunings: values of the tuning rows (observable properties) of each node
    """
    return {
        name: _remove_others(tuning, _of_no_fabric(intent, nodes[name])) if name in nodes else tuning
        for name, tuning in tunings.items()
    }


def list_rdma_devices(intent: Intent, node: NodeHcas) -> frozenset[str]:
    """Return the names of the HCAs of a node that have an RDMA device and that a fabric of the intent may use."""
    return frozenset(
        hca.name
        for fabric in intent.fabrics
        for hca in find_candidates(fabric, node)
        if hca.rdma_device and hca.pci is not None and not hca.is_virtual
    )


def _of_no_fabric(intent: Intent, node: NodeHcas) -> set[str]:
    ours = {hca.name for fabric in intent.fabrics for hca in find_candidates(fabric, node)}
    return {hca.name for hca in node.hcas} - ours if ours else set()


def _remove_others(tuning: NodeTuning, others: set[str]) -> NodeTuning:
    if not others:
        return tuning
    rows = {
        row: tuple(_filter_readings(readings, lambda name: name not in others)) for row, readings in tuning.rows.items()
    }
    return _replace_nearest(dataclasses.replace(tuning, rows=rows), tuning, others)


def _filter_readings(
    readings: typing.Iterable[RowReading], keeps: typing.Callable[[str], bool]
) -> typing.Iterator[RowReading]:
    """Yield the readings of a row without the places that are not kept. A reading that has no place is kept, and a
    reading that loses all of its places is left out.
    """
    for reading in readings:
        where = tuple(filter(keeps, reading.where))
        if where or not reading.where:
            yield dataclasses.replace(reading, where=where)


def _replace_nearest(kept: NodeTuning, tuning: NodeTuning, others: set[str]) -> NodeTuning:
    """Return ``kept`` with the paths between GPUs and HCAs of fabrics in place of those to other HCAs.

    A path that the data does not show is unread.

    :param kept: values without those of HCAs that no fabric uses
    :param tuning: all values of the node
    :param others: HCAs that no fabric uses
    """
    pairs = [
        (reading.value, *where.partition(" ")[::2])
        for reading in tuning.rows.get("gpu_nic_path", ())
        for where in reading.where
    ]
    if not any(hca in others for _value, _gpu, hca in pairs):
        return kept
    paths = {
        name: pci_path.parse_path(reading.value.replace(" ", "/"))
        for reading in tuning.rows.get("pci_way", ())
        for name in reading.where
    }
    numa = {
        name: reading.value
        for row in ("gpu_numa", "hca_numa")
        for reading in tuning.rows.get(row, ())
        for name in reading.where
    }
    ours = [name for name in paths if name not in others and not any(name == gpu for _value, gpu, _hca in pairs)]
    readings: dict[str, list[str]] = {}
    bridges: set[str] = set()
    unread = dict(kept.unread)
    for value, gpu, hca in pairs:
        nearest, distance = (hca, value) if hca not in others else _find_nearest(gpu, ours, paths, numa)
        if distance:
            readings.setdefault(distance, []).append(f"{gpu} {nearest}")
        else:
            unread.setdefault("gpu_nic_path", MISSING)
        if gpu not in paths or nearest not in paths:
            unread.setdefault("acs", MISSING)
        else:
            bridges.update(pci_path.list_bridges_between(paths[gpu], paths[nearest]))
    acs = tuple(_filter_readings(tuning.rows.get("acs", ()), bridges.__contains__))
    missing = sorted(bridges - {name for reading in acs for name in reading.where})
    if missing and "acs" in tuning.rows:
        unread.setdefault("acs", f"{missing[0]}: {ONLY_NEAREST}")
    nearest_rows = {"gpu_nic_path": tuple(RowReading(value, tuple(where)) for value, where in readings.items())}
    return NodeTuning({**kept.rows, **nearest_rows, "acs": acs}, unread)


def _find_nearest(
    gpu: str,
    hcas: typing.Iterable[str],
    paths: typing.Mapping[str, pci_path.Path],
    numa: typing.Mapping[str, str],
) -> tuple[str, str]:
    """Return the HCA that is nearest to a GPU, and the distance by the names of ``nvidia-smi topo -m``; two empty texts
    if the path of the GPU or of all HCAs is unknown.

    :param gpu: PCI address of the GPU
    :param hcas: names of the HCAs of fabrics
    :param paths: paths in the PCI tree by name of the function
    :param numa: NUMA node by name of the function
    """
    if gpu not in paths:
        return "", ""
    ways = [
        (pci_path.measure_distance(paths[gpu], paths[hca], gpu in numa and numa[gpu] == numa.get(hca)), hca)
        for hca in hcas
        if paths[hca].functions
    ]
    distance, hca = min(ways, key=lambda way: pci_path.DISTANCES.index(way[0]), default=("", ""))
    return hca, distance
