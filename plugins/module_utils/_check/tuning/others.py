# SPDX-License-Identifier: GPL-3.0-or-later

"""Remove from the tuning of the nodes the values of HCAs that no fabric of the intent uses, such as an onboard NIC. The
expected values do not apply to them.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._analysis.fleet.hcas_of_fabric import find_candidates
from ..._model.intent.intent import Intent
from ..._model.node.hca import NodeHcas
from ..._model.node.tuning import NodeTuning, RowReading


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
    return dataclasses.replace(
        tuning, rows={row: tuple(_filter_readings(readings, others)) for row, readings in tuning.rows.items()}
    )


def _filter_readings(readings: typing.Iterable[RowReading], others: set[str]) -> typing.Iterator[RowReading]:
    for reading in readings:
        where = tuple(name for name in reading.where if name not in others)
        if where or not reading.where:
            yield dataclasses.replace(reading, where=where)
