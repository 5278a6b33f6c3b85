# SPDX-License-Identifier: GPL-3.0-or-later

"""Find out why a tool cannot send datagrams through a port, from sysfs and the device nodes of ib_umad
(linux/drivers/infiniband/core/user_mad.c, Documentation/infiniband/user_mad).
"""

from __future__ import annotations

import os
import typing

from ..._model.infiniband.fabric import Barrier
from ..._model.measurement.reachability import PortName


def find_barrier(
    name: PortName, sysfs: typing.Sequence[str], devices: str = "/dev/infiniband"
) -> typing.Optional[Barrier]:
    """Return the first missing condition for sending management datagrams through a port: ``module`` (the kernel module
    ib_umad), ``port`` (an entry for the port), ``device`` (the device node) or ``right`` (the right to read and write
    the device node). Return None if all conditions are met.

    Call this after a tool has failed. It opens no device.

    :param name: RDMA device and number of the port
    :param sysfs: sysfs roots, usually only /sys
    :param devices: folder of the device nodes
    """
    folders = [
        folder for folder in (os.path.join(root, "class", "infiniband_mad") for root in sysfs) if os.path.isdir(folder)
    ]
    if not folders:
        return "module"
    umad = next(
        (
            entry
            for folder in folders
            for entry in _list_umad_entries(folder)
            if _is_of(os.path.join(folder, entry), name)
        ),
        None,
    )
    if umad is None:
        return "port"
    device = os.path.join(devices, umad)
    if not os.path.exists(device):
        return "device"
    return None if os.access(device, os.R_OK | os.W_OK) else "right"


def _list_umad_entries(folder: str) -> list[str]:
    try:
        return sorted(entry for entry in os.listdir(folder) if entry.startswith("umad"))
    except OSError:
        return []


def _is_of(folder: str, name: PortName) -> bool:
    return _read_short_file(os.path.join(folder, "ibdev")) == name.device and _read_short_file(
        os.path.join(folder, "port")
    ) == str(name.port)


def _read_short_file(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(64).strip()
    except OSError:
        return ""
