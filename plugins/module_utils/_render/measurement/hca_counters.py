# SPDX-License-Identifier: GPL-3.0-or-later

"""The command that reads the counters of RDMA devices from sysfs, in a pod or on a host."""

from __future__ import annotations

import typing

from ..._model.base.operand import require_operand
from .commands import Command

#: files of a network interface that count errors of its link [Documentation/ABI/testing/sysfs-class-net,
#: sysfs-class-net-statistics]
_LINK_ERRORS = ("statistics/rx_crc_errors", "statistics/rx_frame_errors", "carrier_down_count")

# counters of the driver, without those of its queues. ice ends the names of those of the port with .nic
_ETHTOOL = (
    '; command -v ethtool > /dev/null && ethtool -S "${net##*/}" 2> /dev/null | while read -r name value; do'
    ' name=${name%:}; case "$name" in [rt]x[0-9]*|ch[0-9]*) ;;'
    " *discard*|*pause*|*xoff*|*pfc*|*crc*|*fcs*|*drop*|*errors_phy)"
    ' case "$name" in *.nic) name=${name%.nic}_nic ;; esac; echo "count $device $name $value" ;; esac; done'
)


def read_counters(devices: typing.Sequence[str], netdevs: bool = False) -> Command:
    """Return the command that prints the counters of all ports of RDMA devices in a pod, one counter a line: the word
    ``count``, the device, the name and the value of the counter. A device that is not visible in the pod is left out.

    :param devices: names of the RDMA devices
    :param netdevs: whether to also print the counters of the network interface of each Ethernet port: its link errors
        and, if the container has ethtool, the drops and pauses that the driver counts. Interfaces that represent
        virtual functions are left out
    :raises OperandError: a device is not a valid name
    """
    link = " ".join(f'"$net"/{name}' for name in _LINK_ERRORS) + _ETHTOOL
    of_netdevs = (
        ' if cat "$at"/ports/*/link_layer 2> /dev/null | grep -q Ethernet; then for net in "$at"/device/net/*; do'
        ' case "$(cat "$net"/phys_port_name 2> /dev/null)" in *vf*|*sf*) ;; *) show ' + link + " ;; esac; done; fi;"
    )
    script = (
        'show() { for file in "$@"; do read -r value 2> /dev/null < "$file" && echo "count $device ${file##*/} $value";'
        ' done; }; for device in "$@"; do at=/sys/class/infiniband/"$device"; show'
        f' "$at"/ports/*/counters/* "$at"/ports/*/hw_counters/*;{of_netdevs if netdevs else ""} done; true'
    )
    return ("sh", "-c", script, "counters", *(require_operand(device, "an RDMA device") for device in devices))
