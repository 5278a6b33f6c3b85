# SPDX-License-Identifier: GPL-3.0-or-later

"""Read facts of one node, each by its kind. The modules of the collection use this, and so does the program that runs
in an observer, a pod on the node.

The program gets its request as JSON in its first argument, and prints a value or an error for each kind: ``{"hcas":
{"value": ...}, "subnets": {"error": ...}}``.
"""

from __future__ import annotations

import dataclasses
import json
import sys
import typing

from ..._model.base.errors import RdmaError
from ..._model.base.load import to_data
from ..._model.infiniband.fabric import SeenSubnet
from ..._model.node.firmware import NodeFirmware
from ..._model.node.hca import NodeHcas
from ..._model.node.neighbours import NodeNeighbours
from ..._model.node.platform import NodePlatform
from ..._model.node.tuning import NodeTuning
from ..infiniband import subnet
from . import clock, drop_in, firmware, ip_link, namespaces, neighbours, platform, sysfs
from .left_arguments import read_left_arguments
from .tuning.node import read_tuning

Kept = dict[str, typing.Any]


class NodeReader:
    """A reader of the facts of the node on which it runs. It reads the HCAs from sysfs only once.

    :ivar readers: function without arguments that reads each kind of facts, by name of the kind
    """

    def __init__(
        self,
        roots: typing.Sequence[str] = ("/sys",),
        netdevs: typing.Sequence[str] = (),
        host: str = "/",
        kernel_arguments: typing.Sequence[str] = (),
        beside_infiniband: bool = False,
    ) -> None:
        """Create a reader.

        :param roots: folders in which sysfs is mounted, usually only /sys
        :param netdevs: names of interfaces that are included even if they do not belong to an HCA
        :param host: folder with the files of the node
        :param kernel_arguments: further kernel arguments to report
        :param beside_infiniband: whether the Ethernet NICs of a node that has InfiniBand listen for LLDP frames of
            switches too
        """
        self._beside = beside_infiniband
        self._roots, self._netdevs, self._host, self._arguments = (
            list(roots),
            list(netdevs),
            host,
            tuple(kernel_arguments),
        )
        self._hcas: typing.Optional[NodeHcas] = None
        #: by the names of the registry (_model/run/fact_kinds.py)
        self.readers: typing.Mapping[str, typing.Callable[[], typing.Any]] = {
            "hcas": self._read_hcas,
            "platform": self._read_platform,
            "firmware": self._read_firmware,
            "clock": clock.read_clock,
            "tuning": self._read_tuning,
            "subnets": self._read_subnets,
            "neighbours": self._read_neighbours,
            "drop_in": self._read_drop_in,
            "kernel_arguments_left": self._read_kernel_arguments_left,
        }

    def read(self, kind: str) -> typing.Any:
        """Read the fact of one kind, and return it as plain data.

        :param kind: kind of the fact, such as ``hcas``
        :raises RdmaError: the fact cannot be read
        """
        return to_data(self.readers[kind]())

    def _read_hcas(self) -> NodeHcas:
        return ip_link.add_vf_settings(self._seen())

    def _read_platform(self) -> NodePlatform:
        return platform.read_platform(self._roots, self._seen(), wanted=self._arguments)

    def _read_firmware(self) -> NodeFirmware:
        return firmware.read_firmware(self._seen(), self._roots[0])

    def _read_tuning(self) -> NodeTuning:
        return read_tuning(self._roots, self._seen(), self._host)

    def _read_subnets(self) -> tuple[SeenSubnet, ...]:
        return subnet.read_subnets(subnet.list_infiniband_ports(self._seen()), self._roots)

    def _read_neighbours(self) -> NodeNeighbours:
        return neighbours.read_neighbours(self._roots, self._seen(), beside_infiniband=self._beside)

    def _read_drop_in(self) -> Kept:
        return {"state": drop_in.state(self._host)}

    def _read_kernel_arguments_left(self) -> Kept:
        drop_in.need_files(self._host)
        return {"arguments": read_left_arguments(self._host)}

    def _seen(self) -> NodeHcas:
        if self._hcas is None:
            held = namespaces.read_held_parts(self._roots)
            node = sysfs.read_node(self._roots, self._netdevs, held.parts)
            boot = platform.read_boot()
            self._hcas = dataclasses.replace(node, errors=(*node.errors, *held.errors), boot=boot)
        return self._hcas


def answer(asked: Kept) -> dict[str, Kept]:
    """Return the value or the error of each requested kind of fact, by kind: ``{"value": ...}`` or ``{"error":
    "..."}``. An error of one kind does not affect the other kinds.

    :param asked: the request: ``kinds`` (a list), and optionally ``sysfs`` (roots), ``netdevs`` (interfaces), ``host``
        (folder with the node's files), ``kernel_arguments`` and ``beside_infiniband``
    """
    roots, host = asked.get("sysfs") or ("/sys",), asked.get("host") or "/"
    reader = NodeReader(
        roots,
        asked.get("netdevs") or (),
        host,
        asked.get("kernel_arguments") or (),
        bool(asked.get("beside_infiniband")),
    )
    return {kind: _read_fact(reader, kind) for kind in asked["kinds"]}


def _read_fact(reader: NodeReader, kind: str) -> Kept:
    try:
        return {"value": reader.read(kind)}
    except RdmaError as error:
        return {"error": str(error)}


if __name__ == "__main__":
    json.dump(answer(json.loads(sys.argv[1])), sys.stdout)
