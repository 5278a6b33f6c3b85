# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection linerate.rdma: no other code may import this.

"""Commands that run in the pods of the bandwidth stage.

Each is bounded by ``timeout`` inside the pod: perftest and rping hang for ever on some networks, and a server that a dead client left behind stays.
Output is line-buffered: both tools buffer whole blocks into a pipe, so that a killed one would leave nothing.
"""

from __future__ import annotations

import typing

from .._model.intent import Pods

Command = typing.Tuple[str, ...]

PINGS = 5
#: text by which a server shows that it is about to listen. The client is tried again, boundedly, should it be a moment too early
PING_SERVER_UP = "rdma_listen"
BANDWIDTH_SERVER_UP = "Waiting for client to connect"

# One round trip for all that must be known of the pod; absent files are left out.
_PROBE = """
env | grep '^PCIDEVICE_' | grep -v '_INFO=' | while read -r line; do echo "env $line"; done
for address in $(env | grep '^PCIDEVICE_' | grep -v '_INFO=' | cut -d= -f2- | tr ',' ' ') $1; do
  folder=/sys/bus/pci/devices/$address
  for device in "$folder"/infiniband/*; do [ -e "$device" ] && echo "pci $address ${device##*/}"; done
  [ -e "$folder/physfn" ] && folder=$folder/physfn
  [ -r "$folder/current_link_speed" ] && echo "speed $address $(cat "$folder/current_link_speed")"
  [ -r "$folder/current_link_width" ] && echo "width $address $(cat "$folder/current_link_width")"
done
for device in /sys/class/infiniband/*; do
  [ -r "$device/ports/1/rate" ] && echo "rate ${device##*/} $(cat "$device/ports/1/rate")"
done
command -v rdma > /dev/null && echo "rdma $(rdma -j link | tr -d '\\n')"
for tool in rping ib_write_bw; do command -v $tool > /dev/null || echo "missing $tool"; done
exit 0
"""


def probe(address: str = "") -> Command:
    """What RDMA device is on which function of this pod, and how fast its links are.

    :param address: PCI address of the attachment from network-status, where multus says it
    """
    return ("sh", "-c", _PROBE, "probe", address)


def _bounded(limit: int, *command: str) -> Command:
    return ("timeout", "--kill-after=5", str(limit), "stdbuf", "-oL", *command)


def ping_server(address: str, port: int, limit: int) -> Command:
    """rping as server. -d makes it print when it listens."""
    return _bounded(limit, "rping", "-s", "-a", address, "-p", str(port), "-C", str(PINGS), "-v", "-d")


def ping_client(address: str, port: int, limit: int) -> Command:
    """rping to the server at ``address``."""
    return _bounded(limit, "rping", "-c", "-a", address, "-p", str(port), "-C", str(PINGS), "-v")


def write_bandwidth(pods: Pods, device: str, port: int, server: str = "") -> Command:
    """ib_write_bw: as server, or as client of the server at the address ``server``.

    -F: no warning about the CPU's clock between the rows. Both ends need the same size, count and connection.
    """
    amount = ("-n", str(pods.iterations)) if pods.iterations is not None else ("-D", str(pods.seconds))
    connection = ("-R",) if pods.connection == "rdma_cm" else ()
    arguments = ("-d", device, "-p", str(port), "-F", "--report_gbits", "-s", str(pods.message_bytes), *amount, *connection)
    return _bounded(pods.limit_seconds, "ib_write_bw", *arguments, *((server,) if server else ()))
