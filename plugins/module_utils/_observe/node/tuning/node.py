# SPDX-License-Identifier: GPL-3.0-or-later

"""How the host under the network is tuned: everything that can be read without a tool, and by two tools what can't. It
changes nothing."""

from __future__ import annotations

import os
import typing

from ...._model.node.hca import NodeHcas
from ...._model.node.tuning import NodeTuning
from ..sysfs import SysfsReader
from . import cpu, gpu, kernel, kubelet, network, pci
from .rows import Rows, reader_of


def read_tuning(roots: typing.Sequence[str], hcas: NodeHcas, host: str = "/", proc: str = "/proc") -> NodeTuning:
    """Read all rows of one node.

    :param roots: of sysfs, usually just /sys; what is no device comes from the first one that has it
    :param hcas: what the same roots show of HCAs
    :param host: folder in which the files of the node are
    :param proc: procfs that shows the node's processes and its network namespace
    """
    rows = Rows()
    readers = [SysfsReader(root) for root in roots]
    system, processes, files, devices = (
        reader_of(readers, "kernel/mm"),
        SysfsReader(proc),
        SysfsReader(host),
        SysfsReader(os.path.join(host, "dev")),
    )
    machine = reader_of(readers, "devices/system/cpu")
    cpu.read(rows, machine, processes, devices)
    kernel.read(rows, system, processes, devices, files)
    cards = pci.list_gpus(rows, readers)
    pci.read(
        rows,
        pci.PciHost(machine, processes, bool(cards) and pci.has_data_direct(readers)),
        pci.list_functions(readers, hcas.hcas),
        cards,
    )
    gpu.read(rows, reader_of(readers, "module/nvidia"), host, [card.address for card in cards])
    gpu.read_p2pdma(rows, reader_of(readers, "module"), processes, files, bool(cards))
    kubelet.read(rows, files)
    network.read(rows, readers, processes, SysfsReader(os.path.join(host, "sys/kernel/config")), hcas.hcas)
    return rows.result()
