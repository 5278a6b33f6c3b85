# SPDX-License-Identifier: GPL-3.0-or-later

"""Compute the rates that a PCIe link sustains and could sustain for data: as trained, and as the card and the port
above it (its slot) support. Rates are in Gb/s.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._model.boundary.fabric import LANES, PAYLOAD, PCIE_SPEED
from ..._model.node.hca import PcieLink, compute_pcie_gbps

#: bytes of a packet beside its payload, at most: 2 of framing, 6 of the data link layer, 16 of a memory write's header
#: with 64 bit addresses; the answer to a read has 4 less. R. Neugebauer and others, Understanding PCIe performance for
#: end host networking, SIGCOMM 2018, section 3
HEADER, SHORT_HEADER = 24, 20
#: of the link, for packets: acknowledgements and flow control take 8 to 10 percent (there as well;
#: pcie-bench/pcie-model has the formula), where they are no part of the flits
FOR_PACKETS = 0.90
#: GT/s from which on links have flits
_FLITS = 64.0
#: of bytes: what servers set. Data that the HCA reads come in pieces
#: that the root complex chooses, and larger ones are rare, whatever MaxPayload is
USUAL_PAYLOAD = 256


def compute_sustained_gbps(speed: float, width: int, payload: int = USUAL_PAYLOAD) -> float:
    """Return the rate in Gb/s that a PCIe link sustains for data. For example, packet headers reduce the 63.0 Gb/s of 8
    GT/s x8 to 57.6. Below 64 GT/s, acknowledgments and flow control reduce the rate to nine tenths of that.

    :param speed: speed in GT/s
    :param width: number of lanes
    :param payload: payload of a packet in bytes; values above USUAL_PAYLOAD count as USUAL_PAYLOAD
    """
    size = min(payload, USUAL_PAYLOAD)
    return compute_pcie_gbps(speed, width) * size / (size + HEADER) * (FOR_PACKETS if speed < _FLITS else 1.0)


@dataclasses.dataclass(frozen=True)
class Pcie:
    """The PCIe link of an HCA. Rates are in Gb/s of data, and None if sysfs does not provide enough information.

    :ivar now: rate that it sustains
    :ivar could: rate that the card and the slot support
    :ivar text: description of ``could`` for a finding
    :ivar trained: description of the link as trained, for a finding
    :ivar trained_down: whether it runs below the capability of card and slot
    :ivar small_packets: whether MaxPayload is set below the capability of card and slot
    :ivar slot_known: whether the port above reports its capability
    :ivar card: rate that the card supports in a slot that fits it
    :ivar payload: MaxPayload in bytes, as set; None if unknown
    :ivar alone: speed and width that only this node reports for a card of this board, and the highest that other nodes
        report; empty if other nodes report the same
    """

    now: typing.Optional[float] = None
    could: typing.Optional[float] = None
    text: str = ""
    trained: str = ""
    trained_down: bool = False
    small_packets: bool = False
    slot_known: bool = False
    card: typing.Optional[float] = None
    payload: typing.Optional[int] = None
    alone: str = ""


def find_pcie(link: PcieLink) -> Pcie:
    """Return the rate that a PCIe link carries, and the rate that it could carry.

    If the port above reports less than the trained link, it is emulated by a hypervisor, and the trained value counts.
    Values that no link can have count as unknown, so that no floor depends on them.
    """
    speeds = {
        name: getattr(link, name) if PCIE_SPEED.fits(getattr(link, name)) else None
        for name in ("current_speed", "max_speed", "slot_speed")
    }
    widths = {
        name: getattr(link, name) if LANES.fits(getattr(link, name)) else None
        for name in ("current_width", "max_width", "slot_width")
    }
    payloads = {
        name: getattr(link, name) if PAYLOAD.fits(getattr(link, name)) else None
        for name in ("payload", "payload_could")
    }
    link = PcieLink(**speeds, **widths, **payloads)
    payload = link.payload or USUAL_PAYLOAD
    could_payload = link.payload_could or payload
    now = (
        compute_sustained_gbps(link.current_speed, link.current_width, payload)
        if link.current_speed and link.current_width
        else None
    )
    trained = f"{link.current_speed:g} GT/s x{link.current_width}" if now is not None else "unknown"
    if link.max_speed is None or link.max_width is None:
        return Pcie(now, None, "", trained, payload=link.payload)
    speed, width = link.max_speed, link.max_width
    slot_known = link.slot_speed is not None and link.slot_width is not None
    if link.slot_speed is not None:
        speed = min(speed, max(link.slot_speed, link.current_speed or 0.0))
    if link.slot_width is not None:
        width = min(width, max(link.slot_width, link.current_width or 0))
    below = now is not None and ((link.current_speed or speed) < speed or (link.current_width or width) < width)
    could, card = (
        compute_sustained_gbps(*lanes, could_payload) for lanes in ((speed, width), (link.max_speed, link.max_width))
    )
    size = (
        f"{min(could_payload, USUAL_PAYLOAD)} bytes"
        if link.payload or link.payload_could
        else f"{USUAL_PAYLOAD} bytes (assumed)"
    )
    text = f"{speed:g} GT/s x{width} with packets of {size}"
    small = link.payload is not None and link.payload < min(could_payload, USUAL_PAYLOAD)
    if small:
        trained += f" with packets of {link.payload} bytes"
    return Pcie(now, could, text, trained, below, small, slot_known, card, link.payload)


def compute_most_of_pcie(raw_gbps: float, payload: typing.Optional[int]) -> float:
    """Return the highest rate in Gb/s that a PCIe link can carry for data. No valid measurement exceeds it.

    :param raw_gbps: speed x width without the encoding
    :param payload: payload of its packets in bytes; None if unknown. A small payload counts as USUAL_PAYLOAD, since a
        virtual machine may see the value of its hypervisor
    """
    return (
        raw_gbps * max(payload, USUAL_PAYLOAD) / (max(payload, USUAL_PAYLOAD) + SHORT_HEADER) if payload else raw_gbps
    )
