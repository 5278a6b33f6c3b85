# SPDX-License-Identifier: GPL-3.0-or-later

"""What the headers of small packets leave of a RoCE link: a faultless fleet of MTU 1500 passes, a slow one fails."""

from __future__ import annotations

import dataclasses
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.fleet.paths.packets import compute_data_share
from ansible_collections.linerate.rdma.plugins.module_utils._model.measurement.bandwidth import BandwidthFacts
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import PASS, Finding
from ansible_collections.linerate.rdma.tests.unit.truth.fleet import PAIR, ROCE, Fleet, Shape, healthy
from ansible_collections.linerate.rdma.tests.unit.truth.judge import findings

#: of both directions at once
LINK = 2 * 400


def judged(
    share: float, packet: int, shape: Shape = ROCE, ipv6: bool = True, mtu: typing.Optional[int] = None
) -> dict[str, list[Finding]]:
    """Findings of stage bandwidth that are no pass, by check. All pairs have this share of the link."""
    found: Fleet = healthy(shape)
    (source,) = [source for source in found.facts if getattr(source, "key", "") == "bandwidth"]
    seen: BandwidthFacts = found.facts[source]
    fabric, *others = found.intent.fabrics
    link = LINK if fabric.bandwidth.directions == "at_once" else LINK / 2
    pairs = tuple(
        dataclasses.replace(pair, average_gbps=share * link, peak_gbps=share * link + 1, packet_bytes=packet)
        for pair in seen.pairs
    )
    ipam, pods = fabric.ipam, seen.pods
    assert ipam is not None
    if ipv6:
        pods = tuple(dataclasses.replace(pod, address=f"fd00::{number:x}:2") for number, pod in enumerate(pods))
        ipam = dataclasses.replace(ipam, range="fd00::/48", type="whereabouts", pool=None)
    wanted = dataclasses.replace(
        fabric, mtu=mtu, ipam=ipam, bandwidth=dataclasses.replace(fabric.bandwidth, sweep=False)
    )
    fleet = dataclasses.replace(
        found,
        facts={**found.facts, source: dataclasses.replace(seen, pods=pods, pairs=pairs)},
        intent=dataclasses.replace(found.intent, fabrics=(wanted, *others)),
    )
    result: dict[str, list[Finding]] = {}
    for item in findings(fleet, "bandwidth"):
        if item.status != PASS:
            result.setdefault(item.check, []).append(item)
    return result


@pytest.mark.parametrize(
    ("packet", "vlan", "ipv6", "share"),
    [(1024, True, True, 1024 / 1130), (1024, True, False, 1024 / 1110), (4096, False, False, 4096 / 4178)],
)
def test_headers_take_their_bytes(packet: int, vlan: bool, ipv6: bool, share: float) -> None:
    assert compute_data_share(packet, vlan, ipv6) == pytest.approx(share)


@pytest.mark.parametrize("ipv6", [True, False])
@pytest.mark.parametrize("part", [1.0, 0.975])
def test_what_packets_of_1024_bytes_leave_is_no_failure_and_is_told(part: float, ipv6: bool) -> None:
    found = judged(part * compute_data_share(1024, True, ipv6), 1024, ipv6=ipv6)
    assert list(found) == ["bandwidth.packets"]
    (finding,) = found["bandwidth.packets"]
    assert finding.status == "warn" and finding.measured.startswith("packets of 1024 bytes: ")
    assert "The intent sets no MTU" in (finding.why or "") and "set mtu of the fabric" in (finding.remedy or "")


def test_a_pair_that_is_slower_than_its_packets_allow_fails() -> None:
    found = judged(0.96 * compute_data_share(1024, True, True), 1024)
    assert {item.status for item in found["bandwidth.floor"]} == {"fail"}
    assert all("0.97 of what packets of 1024 bytes leave" in item.expected for item in found["bandwidth.floor"])


def test_an_intent_with_that_mtu_asks_for_no_more() -> None:
    assert judged(compute_data_share(1024, True, True), 1024, mtu=1500) == {}


@pytest.mark.parametrize(
    ("shape", "packet", "mtu"),
    [
        # packets that are smaller than the MTU of the intent are a fault
        (ROCE, 1024, 4200),
        (ROCE, 2048, None),
        (ROCE, 4096, None),
        (PAIR, 1024, None),
    ],
)
def test_other_packets_lower_no_floor(shape: Shape, packet: int, mtu: typing.Optional[int]) -> None:
    found = judged(0.91, packet, shape, ipv6=False, mtu=mtu)
    assert {item.status for item in found["bandwidth.floor"]} == {"fail"}
    assert all(">= 736.00" in item.expected or ">= 368.00" in item.expected for item in found["bandwidth.floor"])
