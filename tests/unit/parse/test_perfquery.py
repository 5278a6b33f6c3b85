# SPDX-License-Identifier: GPL-3.0-or-later

"""Counters of ports by perfquery: real captures of rdma-core 44, the forms of other versions by their source, and that
nothing that is missing becomes a 0."""

from __future__ import annotations

import pathlib
import typing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import ParseError
from ansible_collections.linerate.rdma.plugins.module_utils._model.infiniband.counters import (
    BITS,
    PortCounters,
    compute_growth,
)
from ansible_collections.linerate.rdma.plugins.module_utils._parse.infiniband.perfquery import (
    ASKED,
    list_answers,
    parse,
)

FIXTURES = pathlib.Path(__file__).parents[1] / "fixtures" / "infiniband-diags"
GUID = "0x0000000000200000"
#: as a switch of HDR and newer answers: all counters with 64 bits (perfquery.c, libibmad/fields.c)
WIDE_FIELDS = (
    "PortSelect:......................7",
    "CounterSelect:...................0x0000",
    "PortXmitData:....................36298026860928",
    "PortRcvData:.....................12279028775751",
    "PortXmitPkts:....................101733204203",
    "PortRcvPkts:.....................32262508468",
    "PortUnicastXmitPkts:.............101708165289",
    "PortUnicastRcvPkts:..............26677661727",
    "PortMulticastXmitPkts:...........25038914",
    "PortMulticastRcvPkts:............5584846741",
    "CounterSelect2:..................0x00000000",
    "SymbolErrorCounter:..............70000",
    "LinkErrorRecoveryCounter:........0",
    "LinkDownedCounter:...............300",
    "PortRcvErrors:...................0",
    "PortRcvRemotePhysicalErrors:.....0",
    "PortRcvSwitchRelayErrors:........0",
    "PortXmitDiscards:................0",
    "PortXmitConstraintErrors:........0",
    "PortRcvConstraintErrors:.........0",
    "LocalLinkIntegrityErrors:........0",
    "ExcessiveBufferOverrunErrors:....0",
    "VL15Dropped:.....................0",
    "PortXmitWait:....................22730501000",
    "QP1Dropped:......................0",
)


def wide(masks: str = "(CapMask: 0x5300 CapMask2: 0x0000002)", fields: typing.Sequence[str] = WIDE_FIELDS) -> str:
    return "\n".join((f"# Port extended counters: Lid 2 port 7 {masks}".rstrip(), *fields, ""))


def text(name: str) -> str:
    return (FIXTURES / f"{name}.txt").read_text()


def test_several_ports_of_a_switch_are_read_each_with_the_wider_of_its_counters() -> None:
    narrow = parse(text("perfquery_after"))
    assert [(port.lid, port.port, port.wide) for port in narrow] == [(2, 7, ()), (2, 8, ())]
    assert (
        narrow[0].counters["SymbolErrorCounter"] == 12
        and narrow[0].counters["PortXmitWait"] == 4000000
        and set(narrow[0].counters) == set(BITS)
    )
    both = parse(text("perfquery_after") + text("perfquery_x_after"))
    assert both == parse(text("perfquery_x_after") + text("perfquery_after"))
    assert both[0].wide == ("PortXmitData", "PortRcvData") and both[0].counters["PortXmitWait"] == 4000000
    (single,) = parse(text("perfquery_single"))
    assert (single.lid, single.port, set(single.counters)) == (3, 1, {"PortXmitData", "PortRcvData"})


def test_what_rose_between_two_captures_is_told() -> None:
    before, after = (parse(text(f"perfquery_{name}") + text(f"perfquery_x_{name}")) for name in ("before", "after"))
    assert compute_growth(GUID, 7, before[0], after[0]).grown == {"SymbolErrorCounter": 12, "PortXmitWait": 4000000}
    assert compute_growth(GUID, 8, before[1], after[1]).grown == {}
    assert compute_growth(GUID, 8, before[1], after[1]).rise("PortXmitWait") == 0


def test_a_port_without_an_answer_ends_the_list_and_what_came_before_it_is_true() -> None:
    assert [port.port for port in parse(text("perfquery_bad_port"))] == [7]
    assert parse(text("perfquery_bad_lid")) == () == parse("")


def test_a_port_with_all_counters_of_64_bits_is_read_by_them() -> None:
    (port,) = parse(text("perfquery_after").partition("# Port counters: Lid 2 port 8")[0] + wide())
    assert (
        port.counters["PortXmitWait"] == 22730501000
        and port.counters["LinkDownedCounter"] == 300
        and set(port.wide) == set(BITS)
    )


def test_what_a_port_does_not_promise_is_not_taken() -> None:
    """Up to rdma-core 28 zeros are printed for counters that a port does not have; much older versions say nothing of
    what it has."""
    (port,) = parse(wide("(CapMask: 0x5A00 CapMask2: 0x0000000)"))
    assert set(port.counters) == {"PortXmitData", "PortRcvData"}
    assert [set(one.counters) for one in parse(wide("(CapMask: 0x200)", WIDE_FIELDS[:10]))] == [
        {"PortXmitData", "PortRcvData"}
    ]
    for masks in ("", "(CapMask: 0x100 CapMask2: 0x0000002)"):
        assert parse(wide(masks))[0].counters == {}
    without = text("perfquery_after").replace(" (CapMask: 0x1300)", "")
    assert all(set(BITS) - set(port.counters) == {"PortXmitWait"} for port in parse(without))
    assert all(
        "PortXmitWait" not in port.counters for port in parse(text("perfquery_after").replace("0x1300", "0x0300"))
    )


@pytest.mark.parametrize(
    "broken",
    [
        text("perfquery_after")[:-8],
        text("perfquery_after")[:-1],
        text("perfquery_after").replace("PortXmitWait:....................4000000\n", ""),
        text("perfquery_after").replace("PortSelect:......................8", "PortSelect:......................9"),
        text("perfquery_after").replace(
            "SymbolErrorCounter:..............12\n", "SymbolErrorCounter:..............12\n" * 2
        ),
        text("perfquery_after").replace(
            "SymbolErrorCounter:..............12", "SymbolErrorCounter:..............65536"
        ),
        text("perfquery_after").replace("SymbolErrorCounter:..............12", "SymbolErrorCounter:..............-1"),
        text("perfquery_after").replace(
            "# Port counters: Lid 2 port 8", "# Port counters: DR path slid 65535; dlid 65535; 0,1 port 8"
        ),
        wide(fields=WIDE_FIELDS[:-1]),
        wide(fields=WIDE_FIELDS[:5]),
        wide(fields=(*WIDE_FIELDS[:2], "PortXmitData:....................18446744073709551616", *WIDE_FIELDS[3:])),
    ],
)
def test_a_port_that_is_not_whole_or_another_is_refused(broken: str) -> None:
    with pytest.raises(ParseError):
        parse(broken)


def test_each_node_answers_for_itself() -> None:
    read = list_answers(
        f"{ASKED} 2\n{text('perfquery_after')}{text('perfquery_x_after')}{ASKED} 77\nibwarn: [1] mad_rpc: _do_madrpc"
        f" failed; dport (Lid 77)\n{text('perfquery_bad_lid')}{ASKED} 3\n{text('perfquery_after')}{ASKED}"
        f" 4\n{text('perfquery_after')[:-9]}\n{ASKED} 5\n"
    )
    assert [port.port for port in read[2][0]] == [7, 8] and read[2][1] == ""
    assert read[77] == (
        (),
        "ibwarn: [1] mad_rpc: _do_madrpc failed; dport (Lid 77); perfquery: iberror: failed: classportinfo query",
    )
    assert (
        read[3] == ((), "LID 2 responded instead")
        and not read[4][0]
        and "PortXmitWait" in read[4][1]
        and read[5] == ((), "")
    )
    assert list_answers("sh: perfquery: not found\n") == {}


VALUES = st.fixed_dictionaries({name: st.integers(0, (1 << bits) - 1) for name, bits in BITS.items()})


@given(st.integers(1, 49151), st.integers(0, 254), VALUES, st.integers(0, 40))
def test_what_is_printed_is_read_and_a_part_of_it_is_refused(
    lid: int, number: int, values: dict[str, int], cut: int
) -> None:
    fields = text("perfquery_after").partition("# Port counters: Lid 2 port 8")[0].split("\n")[1:-1]
    lines = [f"# Port counters: Lid {lid} port {number} (CapMask: 0x1300)"]
    for field in fields:
        name, dots = field.split(":", 1)
        lines.append(f"{name}:{'.' * dots.count('.')}{number if name == 'PortSelect' else values.get(name, '0x0000')}")
    whole = "\n".join(lines) + "\n"
    assert parse(whole) == (PortCounters(lid, number, values),)
    # a text that ends before the last line does is no port
    if cut:
        with pytest.raises(ParseError):
            parse(whole[:-cut])


@given(
    st.text(max_size=300),
    st.sampled_from(["perfquery_after", "perfquery_x_after", "perfquery_bad_port"]),
    st.integers(0, 1600),
    st.integers(0, 60),
)
def test_hostile_text_is_refused_or_read_and_nothing_else(more: str, name: str, at: int, without: int) -> None:
    said = text(name)
    broken = said[:at] + more + said[at + without :]
    try:
        ports = parse(broken)
    except ParseError:
        ports = ()
    assert all(0 <= value < 1 << 64 and name in BITS for port in ports for name, value in port.counters.items())
    assert all(isinstance(words, str) for _ports, words in list_answers(f"{ASKED} 2\n{broken}").values())


FEW = PortCounters(
    2,
    7,
    {"SymbolErrorCounter": 5, "LocalLinkIntegrityErrors": 15, "PortXmitWait": 100, "PortXmitData": 1000},
    ("PortXmitData",),
)


@pytest.mark.parametrize(
    ("later", "grown", "cleared", "stuck"),
    [
        ({}, {}, (), ("LocalLinkIntegrityErrors",)),
        ({"SymbolErrorCounter": 9}, {"SymbolErrorCounter": 4}, (), ("LocalLinkIntegrityErrors",)),
        # somebody cleared them, and they went on from 0
        (
            {"SymbolErrorCounter": 2, "LocalLinkIntegrityErrors": 0},
            {"SymbolErrorCounter": 2},
            ("SymbolErrorCounter", "LocalLinkIntegrityErrors"),
            (),
        ),
        ({"PortXmitWait": 2**32 - 1}, {"PortXmitWait": 2**32 - 101}, (), ("LocalLinkIntegrityErrors", "PortXmitWait")),
        ({"PortXmitData": 2**33}, {"PortXmitData": 2**33 - 1000}, (), ("LocalLinkIntegrityErrors",)),
    ],
)
def test_growth_is_what_the_two_readings_prove(
    later: dict[str, int], grown: dict[str, int], cleared: tuple[str, ...], stuck: tuple[str, ...]
) -> None:
    found = compute_growth(GUID, 7, FEW, PortCounters(2, 7, {**FEW.counters, **later}, FEW.wide))
    assert (found.grown, found.cleared, found.stuck) == (grown, cleared, stuck)
    assert all(found.rise(name) is None for name in (*cleared, *stuck, "QP1Dropped")) and "QP1Dropped" in found.lacking


def test_what_was_not_read_twice_alike_is_not_known() -> None:
    narrow = PortCounters(2, 7, FEW.counters)
    assert compute_growth(GUID, 7, narrow, FEW).rise("PortXmitData") is None
    assert (
        compute_growth(GUID, 7, None, FEW, "no answer").why == "no answer"
        and compute_growth(GUID, 7, FEW, None).rise("PortXmitWait") is None
    )
