# SPDX-License-Identifier: GPL-3.0-or-later

"""Compare the routing in the intent, static or adaptive, with the uplinks that carried the data of the tests. Check id:
``bandwidth.routing``.
"""

from __future__ import annotations

import typing

from ..._analysis.fleet.routes import listed
from ..._analysis.schedule.link_coverage_rounds import Test
from ..._analysis.schedule.paths import PathTable
from ..._model.intent.intent import Fabric
from ..._model.measurement.bandwidth import CountedPair
from ..._model.run.findings import FAIL, WARN, Finding, ok
from .uplink_shares import UplinkShare, compute_shares

#: settings that show how an NVIDIA subnet manager routes; by default it routes adaptively (docs.nvidia.com, InfiniBand
#: Cluster Bring-up Procedure)
_CONFIGURATION = (
    "routing_engine (ar_updn and the like are adaptive), ar_mode and ar_sl_mask in the subnet manager's opensm.conf,"
    " or UFM"
)


def check_routing(fabric: Fabric, ways: PathTable, pairs: typing.Mapping[Test, CountedPair]) -> list[Finding]:
    """Return the finding that compares the routing in the intent with the uplinks that the tests used. The list is
    empty if the uplinks prove nothing.

    :param ways: paths between the ports
    :param pairs: pairs that were measured with counters, by test
    """
    out = [
        (test, pair, carried)
        for test, pair in pairs.items()
        for carried in [compute_shares(ways, test, pair, 0)]
        if carried is not None
    ]
    alone = [(test, pair, carried) for test, pair, carried in out if carried.alone is not None]
    said = f"The intent says routing: {fabric.routing}"
    if fabric.routing == "static":
        spread = [(pair, carried) for _test, pair, carried in out if carried.spread]
        if spread:
            why = (
                f"{said}, and what one test sent left its leaf over several uplinks: {_list_shares(ways, spread)}."
                " So links that are named may not be those in use."
            )
            remedy = f"See {_CONFIGURATION}. If it routes adaptively, say routing: adaptive. Then run the stage again."
            return [
                _make_finding(
                    fabric,
                    FAIL,
                    f"several uplinks in {len(spread)} of {len(out)} tests",
                    "one uplink, by the tables",
                    why,
                    remedy,
                )
            ]
        others = [
            (pair, carried)
            for test, pair, carried in alone
            if not ways.spread and carried.alone not in (ways.way(*test) or ())
        ]
        if others:
            why = (
                f"{said}, and data took other uplinks than the tables have that were read:"
                f" {_list_shares(ways, others)}. The switches were given others since."
            )
            remedy = (
                "Run the stages fabric and bandwidth again, in one run; if it stays, compare with ibtracert"
                " SOURCE-LID DESTINATION-LID."
            )
            return [
                _make_finding(
                    fabric,
                    FAIL,
                    f"another uplink in {len(others)} of {len(out)} tests",
                    "one uplink, by the tables",
                    why,
                    remedy,
                )
            ]
    if fabric.routing == "adaptive" and len(alone) > 1 and len(alone) == len(out):
        why = (
            f"{said}, and what each test sent left its leaf over one uplink alone, as with static routing:"
            f" {_list_shares(ways, [item[1:] for item in alone])}."
        )
        remedy = (
            f"See {_CONFIGURATION}. If it does not route adaptively, say routing: static. No action if its switches"
            " keep a burst of packets on one port (bounded), or if service level 0, on which tests run, is not"
            " routed so."
        )
        return [_make_finding(fabric, WARN, f"one uplink in {len(alone)} tests", "several uplinks", why, remedy)]
    several = sum(carried.spread for _test, _pair, carried in out)
    # a test whose uplinks are not known proves nothing
    if not out or len(alone) + several < len(out) or (fabric.routing == "adaptive" and not several):
        return []
    text = (
        f"{several} of {len(out)} tests took several uplinks" if several else f"{len(out)} tests took one uplink each"
    )
    said = (
        f"routing: {fabric.routing}, as the intent says"
        if fabric.routing
        else "anything: the intent does not say it (routing)"
    )
    return [ok("bandwidth.routing", fabric.name, text, said)]


def check_lids(fabric: Fabric, ways: PathTable, lmc: typing.Optional[int]) -> list[Finding]:
    """Report ports with several LIDs, since the tests use only the path to the first LID. The list is empty if LMC is 0
    or unknown, or if switches choose the path.

    :param lmc: LMC of the ports; None if unknown
    """
    if not lmc or ways.spread:
        return []
    measured, expected = (
        f"LMC {lmc}: {2**lmc} LIDs a port, of which tests use the first",
        "one LID a port, or traffic to the first",
    )
    why = (
        "Each LID has ways of its own in the forwarding tables. perftest and NCCL take the first one, so what is"
        " said of links holds for that."
    )
    remedy = (
        "No action if nothing takes others. MPI with UCX does where UCX_IB_LID_PATH_BITS is set: those links were"
        " not measured on these ways."
    )
    return [Finding("bandwidth.routing", f"{fabric.name} LMC", WARN, measured, expected, why, remedy)]


def _list_shares(ways: PathTable, found: typing.Iterable[tuple[CountedPair, UplinkShare]]) -> str:
    def name_port(number: int) -> str:
        return ways.name(number).split(" to ", 1)[0]

    return listed([f"{pair.client} -> {pair.server} by {carried.text(name_port)}" for pair, carried in found], "; ")


def _make_finding(
    fabric: Fabric, status: typing.Literal["fail", "warn"], measured: str, expected: str, why: str, remedy: str
) -> Finding:
    return Finding("bandwidth.routing", fabric.name, status, measured, expected, why, remedy)
