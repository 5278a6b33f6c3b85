# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse the counters of a pod's RDMA devices. A script in the pod prints a line for each: ``count``, the device, the
name of the file in sysfs, and its number (Documentation/ABI/stable/sysfs-class-infiniband of Linux).
"""

from __future__ import annotations

import re

from ..._model.boundary.devices import RDMA_DEVICE
from ..._model.boundary.numbers import COUNTER

_LINE = re.compile(r"count (\S{1,64}) ([A-Za-z0-9_]{1,64}) ([0-9]{1,20})\n", re.ASCII)
#: of a device with all that its driver counts, some 100; and of all devices of a pod
_MOST_LINES = 65_536


def parse_counters(text: str) -> dict[str, dict[str, int]]:
    """Return the counters of each device: values by name of the counter, by device. Counters of several ports of a
    device are added up. Incomplete and invalid lines are ignored, and a device without a valid line is left out. This
    function never raises an error.
    """
    found: dict[str, dict[str, int]] = {}
    for line in text.splitlines(keepends=True)[:_MOST_LINES]:
        match = _LINE.fullmatch(line)
        if match is not None and RDMA_DEVICE.fits(match.group(1)) and COUNTER.fits(int(match.group(3))):
            of_device = found.setdefault(match.group(1), {})
            total = of_device.get(match.group(2), 0) + int(match.group(3))
            if COUNTER.fits(total):
                of_device[match.group(2)] = total
    return found
