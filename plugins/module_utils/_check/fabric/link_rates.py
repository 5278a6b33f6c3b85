# SPDX-License-Identifier: GPL-3.0-or-later

"""Comparison of the rates of links of HCAs and switches with the rates that both ends support. Check id:
``fabric.rate``.
"""

from __future__ import annotations

import collections
import typing

from ..._analysis.fleet.hca_locations import Ends, collect_possible_rates, end_of
from ..._analysis.fleet.hcas_of_fabric import Membership
from ..._model.base.phrases import count_of
from ..._model.infiniband.fabric import LANE_GBPS, SeenCapabilities, Topology
from ..._model.intent.intent import Fabric
from ..._model.run.findings import FAIL, UNKNOWN, WARN, Finding, Status, build_pass
from .bounded import limit_findings
from .links_in_scope import LinksInScope
from .names import Names
from .uplinks import _find_usual, list_switch_links

#: how an administrator finds and permits the rates that a port does not use [rdma-core: ibportstate.c]
ENABLE_RATE = (
    "Run iblinkinfo as root on a node of the fabric: its line of the link shows the LID and the port of both ends. Run"
    " ibportstate LID PORT query for each end. If LinkSpeedEnabled, LinkSpeedExtEnabled or LinkWidthEnabled has fewer"
    " values than the line with Supported, run ibportstate LID PORT speed 15 espeed 31 width 255, which enables all of"
    " them, and ibportstate LID PORT reset for the port of the switch, while no job uses the link."
)
#: speed of a lane by the signaling rate that iblinkinfo prints, in Gb/s
_SPEED_OF_SIGNALING = {
    "2.5": "SDR",
    "5.0": "DDR",
    "10.0": "QDR",
    "14.0625": "FDR",
    "25.78125": "EDR",
    "53.125": "HDR",
    "106.25": "NDR",
    "212.5": "XDR",
}


def check_hca_rates(
    fabric: Fabric, membership: Membership, ends: Ends, capabilities: typing.Optional[SeenCapabilities]
) -> list[Finding]:
    """Report links of HCAs that run below the rate that both of their ends support, because a whole collective waits
    for the slowest link.

    A link that is slower than the fastest link among HCAs of the same board is reported too: as a failure if the
    supported rates are unknown. If they are known, the switch port supports no more. It is then unknown whether that
    is intended if two other nodes or the same node have a faster link, else it is a warning, because a single node
    does not decide.

    :param membership: HCAs that belong to the fabric, by node, with their rails
    :param ends: far end of the cable of each HCA port, and the link itself, by the GUID of the HCA port
    :param capabilities: links that run below their capability, as iblinkinfo reports them; None if it was not run
    """
    known = capabilities is not None and capabilities.error is None
    faster = collect_possible_rates(capabilities)
    rates = {}
    most: dict[typing.Any, dict[str, float]] = {}
    findings = []
    for name, members in membership.members.items():
        for member in members:
            subject, port = f"{name} {member.hca.name}", member.port
            if port is None:
                continue
            if port.rate_gbps is None:
                path = f"/sys/class/infiniband/{member.hca.rdma_device or member.hca.name}/ports/{port.number}/rate"
                why = "Reading the rate of the port in sysfs failed, so it is unknown whether the link is slow."
                findings.append(
                    Finding(
                        "fabric.rate",
                        subject,
                        UNKNOWN,
                        "rate not read",
                        "a rate in Gb/s",
                        why,
                        f"Run cat {path} as root on {name}. If it prints an error, drain the node and reload the"
                        " driver of the HCA. Then"
                        " run stage fabric again.",
                    )
                )
                continue
            kind = (member.hca.board, member.hca.pci.device if member.hca.pci else None)
            rates[subject] = (name, port.rate_gbps, kind)
            of_kind = most.setdefault(kind, {})
            of_kind[name] = max(port.rate_gbps, of_kind.get(name, 0.0))
            far = ends.get(port.guid or "")
            more = faster.get((port.guid or "", port.number)) or (faster.get(end_of(far[0])) if far else None)
            if more:
                findings.append(_report_below(subject, _describe_lanes(port.rate_gbps, port.width), more))
    slow = {finding.subject for finding in findings}
    for subject, (name, rate, kind) in rates.items():
        faster_on = [node for node, its in most[kind].items() if its > rate]
        if faster_on and subject not in slow:
            status: Status = FAIL if not known else UNKNOWN if name in faster_on or len(faster_on) > 1 else WARN
            findings.append(_report_slow(subject, rate, max(most[kind].values()), "HCAs of the same model", status))
    if any(finding.status in (FAIL, UNKNOWN) for finding in findings):
        return findings
    spread = ", ".join(
        f"{count} of {rate:g} Gb/s"
        for rate, count in sorted(collections.Counter(rate for _name, rate, _kind in rates.values()).items())
    )
    return [
        *findings,
        build_pass(
            "fabric.rate",
            fabric.name,
            f"links of HCAs: {spread or 'none'}",
            "each link as fast as both of its ports support",
        ),
    ]


def check_switch_rates(
    fabric: Fabric, topology: Topology, capabilities: typing.Optional[SeenCapabilities], names: Names, way: LinksInScope
) -> list[Finding]:
    """Report links between switches that run below the rate that their ends support. If that is unknown, report links
    below the rate of most of these links. Only links that carry traffic of the fabric are judged.

    :param capabilities: links that run below their capability, as iblinkinfo reports them; None if it was not run
    :param names: names of the switches and HCAs of the topology, for texts
    :param way: links that carry traffic of the fabric
    """
    links = [link for link in list_switch_links(topology) if end_of(link.a) in way.ours]
    if not links:
        return []
    known = capabilities is not None and capabilities.error is None
    faster = collect_possible_rates(capabilities)
    rates = {link: link.width * LANE_GBPS[link.speed] for link in links if link.width and link.speed in LANE_GBPS}
    usual = _find_usual(list(map(int, rates.values()))) if rates else 0
    findings = []
    for link in links:
        subject = f"{names.port(link.a.guid, link.a.port)} - {names.port(link.b.guid, link.b.port)}"
        speed = link.speed if link.speed in LANE_GBPS else "unknown"
        shown = f"width {f'{link.width}x' if link.width else 'unknown'}, speed {speed}"
        more = faster.get(end_of(link.a)) or faster.get(end_of(link.b))
        if more:
            findings.append(
                _report_below(subject, _describe_lanes(rates[link], link.width) if link in rates else shown, more)
            )
        elif link not in rates:
            why = (
                "ibnetdiscover does not show the width or the speed of this link, so it is unknown whether the link"
                " is slow. Versions before rdma-core 48 do not know the speed XDR. In a newer version, the switch"
                " reports no valid value."
            )
            remedy = (
                "Run ansible rdma_nodes --become -m ansible.builtin.command -a 'ibnetdiscover --version'. If a version"
                " is older than 48, install infiniband-diags of rdma-core 48 or newer on these nodes. Otherwise update"
                " the firmware of the switch. Then run stage fabric again."
            )
            expected = "a known width and speed, such as width 4x, speed NDR"
            findings.append(Finding("fabric.rate", subject, UNKNOWN, shown, expected, why, remedy))
        elif rates[link] < usual and not known:
            findings.append(_report_slow(subject, rates[link], usual, "switches", FAIL))
    subject = f"{fabric.name} switches"
    return limit_findings(fabric, findings, "links") or [
        build_pass(
            "fabric.rate",
            subject,
            f"{count_of(len(rates), 'link')}, most with {usual:g} Gb/s",
            "each link as fast as both of its ports support",
        )
    ]


def describe_possible(could_be: str) -> str:
    """Return a rate or a width that both ports of a link support, with its unit. iblinkinfo reports the signaling rate
    of one lane, and the result has the data rate of the lane, as all other rates of this check.

    :param could_be: text after ``Could be``, such as ``106.25 Gbps`` or ``4X``
    """
    return ", ".join(map(_describe_possible_part, could_be.split(", ")))


def _describe_possible_part(part: str) -> str:
    if "Gbps" not in part:
        return f"width {part}"
    speed = _SPEED_OF_SIGNALING.get(part.replace("Gbps", "").strip())
    return f"{LANE_GBPS[speed]:g} Gb/s per lane ({speed})" if speed else part.replace("Gbps", "Gb/s per lane")


def _describe_lanes(rate: float, width: typing.Optional[int]) -> str:
    return f"{rate:g} Gb/s" + (f" ({width}X, {rate / width:g} Gb/s per lane)" if width else "")


def _report_below(subject: str, measured: str, could_be: str) -> Finding:
    why = (
        "Both ports of the link support the higher rate, but the link trained down. The cable or transceiver is bad or"
        " too old, or a setting of a port limits the link."
    )
    remedy = (
        f"{ENABLE_RATE} Otherwise reseat or replace the cable or the transceiver while no job uses the link. Then run"
        " stage fabric again."
    )
    expected = f"{describe_possible(could_be)}, the highest that both ports support"
    return Finding("fabric.rate", subject, FAIL, measured, expected, why, remedy)


def _report_slow(subject: str, rate: float, best: float, kind: str, status: Status) -> Finding:
    """Return the finding on a link that is slower than comparable links.

    :param subject: subject of the finding
    :param rate: rate of the link in Gb/s
    :param best: rate of the fastest comparable link in Gb/s
    :param kind: description of the comparable links
    :param status: FAIL if it is not known what the ends of the link support; else they support no more, so that the
        rate may be intended
    """
    if status != FAIL:
        why = (
            f"Other links of {kind} are faster. The port at the far end of this link does not support a higher rate:"
            " it is a slower or a split port of the switch."
        )
        return Finding(
            "fabric.rate",
            subject,
            status,
            f"{rate:g} Gb/s",
            f"{best:g} Gb/s",
            why,
            "If this rate is intended, waive this finding, or describe a fabric of the intent for each rate."
            " Otherwise move the cable to a switch port with the full speed, or end the split of the port, while no"
            " job uses the link. Then run stage fabric again.",
        )
    why = (
        f"Other links of {kind} in this fabric are faster, and the rate that the ports of this link support is"
        " unknown. The link may have trained down in width or speed."
    )
    remedy = (
        "Check the speed that the switch port permits. If it permits the higher rate, reseat or replace the cable"
        " or the transceiver while no job uses the link. Then run stage fabric again."
    )
    return Finding("fabric.rate", subject, FAIL, f"{rate:g} Gb/s", f"{best:g} Gb/s", why, remedy)
