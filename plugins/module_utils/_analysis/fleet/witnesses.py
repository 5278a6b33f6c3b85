# SPDX-License-Identifier: GPL-3.0-or-later

"""Find the rates and capabilities that two nodes report. A single node does not decide the values with which other
nodes are compared.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._model.boundary.fabric import LANES, PCIE_SPEED
from ..._model.node.hca import Hca, PcieLink

#: vendor and device on PCI, and the PSID of the board
_Board = tuple[str, str, str]


class Witnessed(typing.NamedTuple):
    """The highest value that nodes report.

    :ivar most: highest value that counts for all nodes
    :ivar nodes: nodes that report at least ``most``
    :ivar alone: node that alone reports a higher value; empty if there is none
    :ivar above: the higher value; 0 if there is none
    """

    most: float
    nodes: tuple[str, ...]
    alone: str = ""
    above: float = 0.0


def find_witnessed(reported: typing.Mapping[str, float]) -> Witnessed:
    """Return the highest value that at least two nodes report. With fewer than three nodes, return the highest value.

    :param reported: highest value of each node
    """
    values = sorted(reported.values(), reverse=True)
    most = values[1] if len(values) > 2 else values[0]
    nodes = tuple(sorted(node for node, value in reported.items() if value >= most))
    alone = next((node for node in nodes if reported[node] > most), "")
    return Witnessed(most, nodes, alone, reported.get(alone, 0.0))


class Boards:
    """The highest speed and width that cards of each board report as their capability. All cards of one board have the
    same capability, but a fault of the link may lower the reported value of a card.
    """

    def __init__(self, hcas: typing.Iterable[tuple[str, Hca]]) -> None:
        """Collect the capabilities that the cards report. Cards without a valid capability, or without the name of a
        board, are ignored.

        :param hcas: node of each HCA, and the HCA
        """
        self._speeds: dict[_Board, dict[str, float]] = {}
        self._widths: dict[_Board, dict[str, float]] = {}
        for node, hca in hcas:
            link, board = hca.pci.link if hca.pci else PcieLink(), _board_of(hca)
            if board and PCIE_SPEED.fits(link.max_speed) and LANES.fits(link.max_width):
                for known, value in ((self._speeds, link.max_speed), (self._widths, link.max_width)):
                    of_node = known.setdefault(board, {})
                    of_node[node] = max(of_node.get(node, 0.0), value or 0.0)
        self._seen = {
            board: (find_witnessed(speeds), find_witnessed(self._widths[board]))
            for board, speeds in self._speeds.items()
        }

    def complete_link(self, node: str, hca: Hca, link: PcieLink) -> PcieLink:
        """Return the PCIe link with the capability of its card replaced by the highest capability of its board on the
        same node, or on two nodes. A capability that the card does not report remains unknown.
        """
        board = _board_of(hca)
        if board not in self._seen or link.max_speed is None or link.max_width is None:
            return link
        speed, width = self._seen[board]
        return dataclasses.replace(
            link,
            max_speed=max(speed.most, self._speeds[board].get(node, 0.0)),
            max_width=int(max(width.most, self._widths[board].get(node, 0.0))),
        )

    def describe_alone(self, node: str, hca: Hca) -> str:
        """Return a text on a capability that only this node reports for a card of the board: this capability, and the
        highest one that two nodes report. Return an empty text if this node reports no higher capability than two nodes
        do.

        :param node: name of the node
        :param hca: HCA whose board is examined
        """
        board = _board_of(hca)
        if board not in self._seen or node not in self._speeds[board]:
            return ""
        speed, width = self._seen[board]
        own_speed, own_width = self._speeds[board][node], self._widths[board][node]
        if own_speed <= speed.most and own_width <= width.most:
            return ""
        return f"{own_speed:g} GT/s x{own_width:g}, and other nodes at most {speed.most:g} GT/s x{width.most:g}"


def _board_of(hca: Hca) -> typing.Optional[_Board]:
    return (hca.pci.vendor, hca.pci.device, hca.board) if hca.pci and hca.board else None
