# SPDX-License-Identifier: GPL-3.0-or-later

"""The command that reads the counters of ports of a fabric, on a host with an HCA on that fabric."""

from __future__ import annotations

import typing

from ..._model.base.operand import require_operand
from ..._parse.infiniband.perfquery import ASKED
from .commands import Command

#: seconds of one call of the tool, and of all of them
ONE_LIMIT, LIMIT = 20, 120

# The tool gives up at the first port without an answer: the others are then asked one by one, unless it is the node
# that does not answer. What a tool printed that was killed may end in the middle of a port. One line, as the shell of a
# pod reads its commands.
_ASK = (
    'ask() { said=$(timeout "$limit" perfquery -C "$device" -P "$number" "$@" 2>&1); code=$?; '
    'if [ $code = 124 ]; then said="perfquery did not end within $limit s"; fi; printf \'%s\\n\' "$said"; }'
)
_EACH = 'for port in $(echo "$ports" | tr , " "); do ask "$more" "$lid" "$port"; done'
_READ = (
    f"device=$1; number=$2; limit=$3; shift 3; {_ASK}; "
    f'for item in "$@"; do lid=${{item%%:*}}; ports=${{item#*:}}; echo "{ASKED} $lid"; '
    'for more in -l -xl; do ask "$more" "$lid" "$ports"; '
    f"case $code:$ports:$said in 0:*) ;; *:*,*:*perfquery | *:*,*:*perfextquery) {_EACH} ;; *) break ;; esac; "
    "done; done"
)


def render_read(device: str, port: int, asked: typing.Mapping[int, typing.Sequence[int]]) -> Command:
    """Return the command that runs perfquery for ports of some nodes.

    :param device: name of the RDMA device that sends the queries
    :param port: number of its port that sends the queries
    :param asked: port numbers of each node, by its LID
    :raises OperandError: the device is not a valid name
    """
    nodes = [f"{lid}:{','.join(map(str, ports))}" for lid, ports in asked.items()]
    return (
        "timeout",
        "--kill-after=5",
        str(LIMIT),
        "sh",
        "-c",
        _READ,
        "counters",
        require_operand(device, "the RDMA device"),
        str(port),
        str(ONE_LIMIT),
        *nodes,
    )
