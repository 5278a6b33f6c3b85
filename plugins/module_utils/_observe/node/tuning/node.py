# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the tuning of the host that affects its network, from files and with a few programs. Nothing is changed."""

from __future__ import annotations

import os
import typing

from ...._model.node.hca import NodeHcas
from ...._model.node.tuning import NodeTuning
from ..sysfs_reader import SysfsReader
from . import cpu, gpu, kernel, kubelet, network, pci
from .rows import Rows, reader_of


def read_tuning(roots: typing.Sequence[str], hcas: NodeHcas, host: str = "/", proc: str = "/proc") -> NodeTuning:
    """Return all settings of one node that affect its network. Each setting is a tuning row with its values, or with
    the reason why it could not be read.

    :param roots: sysfs roots, usually only /sys. A setting that does not belong to a device is read from the first root
        that has it
    :param hcas: HCAs that were read from the same roots
    :param host: folder with the files of the node
    :param proc: procfs that shows the processes of the node and its network namespace
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
    of_nvidia = [card.address for card in cards if card.vendor == pci.NVIDIA]
    gpu.read(rows, reader_of(readers, "module/nvidia"), host, of_nvidia)
    gpu.read_p2pdma(rows, reader_of(readers, "module"), processes, files, bool(cards))
    kubelet.read(rows, files, processes)
    network.read(rows, readers, processes, SysfsReader(os.path.join(host, "sys/kernel/config")), hcas)
    return rows.result()
