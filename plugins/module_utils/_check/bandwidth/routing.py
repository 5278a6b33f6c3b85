# SPDX-License-Identifier: GPL-3.0-or-later

"""Compare the routing in the intent, static or adaptive, with the uplinks that carried the data of the tests. Check id:
``bandwidth.routing``.
"""

from __future__ import annotations

import typing

from ..._analysis.fleet.paths.routes import join_names
from ..._analysis.schedule.link_coverage_rounds import Test
from ..._analysis.schedule.paths import PathTable
from ..._model.base.phrases import count_of
from ..._model.intent.intent import Fabric
from ..._model.measurement.bandwidth import CountedPair
from ..._model.run.findings import FAIL, WARN, Finding, build_pass
from .uplink_shares import UplinkShare, compute_shares

#: settings that show how an NVIDIA subnet manager routes; by default it routes adaptively (docs.nvidia.com, InfiniBand
#: Cluster Bring-up Procedure)
_CONFIGURATION = (
    "routing_engine (ar_updn and similar engines are adaptive), ar_mode and ar_sl_mask in opensm.conf of the subnet"
    " manager, or the settings of UFM"
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
    said = f"The intent sets routing: {fabric.routing}"
    if fabric.routing == "static":
        spread = [(pair, carried) for _test, pair, carried in out if carried.spread]
        if spread:
            why = (
                f"{said}, but the data of one test left its leaf over several uplinks: {_list_shares(ways, spread)}."
                " The links that other findings name may therefore not be the links in use."
            )
            remedy = (
                f"Check {_CONFIGURATION}. If the subnet manager routes adaptively, set routing: adaptive in the intent."
                " Then run stage bandwidth again."
            )
            return [
                _make_finding(
                    fabric,
                    FAIL,
                    f"several uplinks in {len(spread)} of {len(out)} tests",
                    "one uplink, as in the forwarding tables",
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
                f"{said}, but the data used other uplinks than those in the forwarding tables that were read:"
                f" {_list_shares(ways, others)}. The tables of the switches have changed since then."
            )
            remedy = (
                "Run stages fabric and bandwidth again in one run. If the finding stays, run ibtracert SOURCE-LID"
                " DESTINATION-LID, and correct the forwarding of the switch at which the path differs. Then run"
                " stages fabric and bandwidth again."
            )
            return [
                _make_finding(
                    fabric,
                    FAIL,
                    f"different uplink in {len(others)} of {len(out)} tests",
                    "one uplink, as in the forwarding tables",
                    why,
                    remedy,
                )
            ]
    if fabric.routing == "adaptive" and len(alone) > 1 and len(alone) == len(out):
        why = (
            f"{said}, but the data of each test left its leaf over a single uplink, as with static routing:"
            f" {_list_shares(ways, [item[1:] for item in alone])}."
        )
        remedy = (
            f"Check {_CONFIGURATION}. If the subnet manager does not route adaptively, set routing: static in the"
            " intent. No action is required if the switches keep a burst of packets on one port (bounded), or if"
            " service level 0, which the tests use, is not routed adaptively."
        )
        return [
            _make_finding(fabric, WARN, f"one uplink in {count_of(len(alone), 'test')}", "several uplinks", why, remedy)
        ]
    several = sum(carried.spread for _test, _pair, carried in out)
    # a test whose uplinks are not known proves nothing
    if not out or len(alone) + several < len(out) or (fabric.routing == "adaptive" and not several):
        return []
    text = (
        f"{several} of {len(out)} tests used several uplinks"
        if several
        else f"{count_of(len(out), 'test')} used one uplink each"
    )
    said = f"routing: {fabric.routing}, as in the intent" if fabric.routing else "any: the intent does not set routing"
    return [build_pass("bandwidth.routing", fabric.name, text, said)]


def check_lids(fabric: Fabric, ways: PathTable, lmc: typing.Optional[int]) -> list[Finding]:
    """Report ports with several LIDs, since the tests use only the path to the first LID. The list is empty if LMC is 0
    or unknown, or if switches choose the path.

    :param ways: paths between the ports
    :param lmc: LMC of the ports; None if unknown
    """
    if not lmc or ways.spread:
        return []
    measured, expected = (
        f"LMC {lmc}: {count_of(2**lmc, 'LID')} per port, of which the tests use the first",
        "one LID per port, or traffic only to the first LID",
    )
    why = (
        "Each LID has its own paths in the forwarding tables. perftest and NCCL use the first LID, so the findings on"
        " links apply only to the paths of that LID."
    )
    remedy = (
        "No action is required if no program uses the other LIDs. MPI with UCX uses them only if"
        " UCX_IB_LID_PATH_BITS is set: remove this variable from such jobs, because the links were not measured"
        " on the paths of these LIDs."
    )
    return [Finding("bandwidth.routing", f"{fabric.name} LMC", WARN, measured, expected, why, remedy)]


def _list_shares(ways: PathTable, found: typing.Iterable[tuple[CountedPair, UplinkShare]]) -> str:
    def name_port(number: int) -> str:
        return ways.name(number).split(" to ", 1)[0]

    return join_names([f"{pair.client} -> {pair.server} by {carried.text(name_port)}" for pair, carried in found], "; ")


def _make_finding(
    fabric: Fabric, status: typing.Literal["fail", "warn"], measured: str, expected: str, why: str, remedy: str
) -> Finding:
    return Finding("bandwidth.routing", fabric.name, status, measured, expected, why, remedy)
