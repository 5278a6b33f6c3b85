# SPDX-License-Identifier: GPL-3.0-or-later

"""Counters of the RDMA devices of a pod, as the script of _render/measurement/collectives.py prints them: ``count``,
the device, the name of the file in sysfs, and the number in it (Documentation/ABI/stable/sysfs-class-infiniband of
Linux)."""

from __future__ import annotations

import re

from ..._model.boundary.devices import RDMA_DEVICE
from ..._model.boundary.numbers import COUNTER

_LINE = re.compile(r"count (\S{1,64}) ([A-Za-z0-9_]{1,64}) ([0-9]{1,20})\n", re.ASCII)
#: of a device with all that its driver counts, some 100; and of all devices of a pod
_MOST_LINES = 65_536


def parse_counters(text: str) -> dict[str, dict[str, int]]:
    """Return the counters of each device, by name. Never raises: what is no whole line is none, and a device of which
    none was printed is not there."""
    found: dict[str, dict[str, int]] = {}
    for line in text.splitlines(keepends=True)[:_MOST_LINES]:
        match = _LINE.fullmatch(line)
        if match is not None and RDMA_DEVICE.fits(match.group(1)) and COUNTER.fits(int(match.group(3))):
            found.setdefault(match.group(1), {})[match.group(2)] = int(match.group(3))
    return found
