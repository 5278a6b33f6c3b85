# SPDX-License-Identifier: GPL-3.0-or-later

"""Forwarding tables by dump_fts, by opensm and by saquery: real captures of one fabric agree, and nothing that is
missing becomes a way."""

from __future__ import annotations

import pathlib
import typing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import ParseError
from ansible_collections.linerate.rdma.plugins.module_utils._model.infiniband.forwarding import UNTOLD, ForwardingTable
from ansible_collections.linerate.rdma.plugins.module_utils._parse.infiniband import dump_fts, ibnetdiscover, saquery
from ansible_collections.linerate.rdma.tests.unit.limit import bounded

FIXTURES = pathlib.Path(__file__).parents[1] / "fixtures" / "infiniband-diags"
LEAF_03 = "0xb83fd20301000030"


def text(name: str) -> str:
    return (FIXTURES / f"{name}.txt").read_text()


def told(ports: bytes) -> dict[int, int]:
    return {lid: port for lid, port in enumerate(ports) if port != UNTOLD}


def test_all_ways_to_the_tables_of_one_fabric_agree() -> None:
    full, brief, opensm = (dump_fts.parse(text(name)) for name in ("dump_fts", "dump_fts_brief", "opensm_lfts"))
    assert full == brief and len(full) == 6
    by_guid = {table.guid: told(table.ports) for table in full}
    assert by_guid == {table.guid: told(table.ports) for table in opensm}
    lids = {
        node.lid: node.guid for node in ibnetdiscover.parse(text("ibnetdiscover_lft")).nodes if node.kind == "Switch"
    }
    assert by_guid == {lids[lid]: told(ports) for lid, ports in saquery.parse_forwarding(text("saquery_lftr")).items()}
    table = next(table for table in full if table.guid == LEAF_03)
    assert [table.port(lid) for lid in (0, 1, 5, 0xBFFF)] == [None, 33, 34, None]


def test_each_lid_of_a_port_with_several_has_its_way() -> None:
    table = dump_fts.parse(text("dump_fts_lmc2"))[0]
    assert [table.port(lid) for lid in range(4, 8)] == [33, 34, 33, 34]


def test_the_last_lid_that_the_tool_forgets_is_not_known() -> None:
    """Of LIDs 0 to 64, dump_fts prints those to 63."""
    tables = dump_fts.parse(text("dump_fts_top64_brief"))
    assert len(tables) == 16 and all(
        table.port(64) is None and table.port(63) is not None and len(table.ports) == 65 for table in tables
    )


def test_what_a_switch_did_not_answer_is_not_known() -> None:
    """The tool prints what it read before, and complains elsewhere."""
    said = (
        "SubnGet(LFT) failed on switch 'MF0;leaf03:MQM9700/U1' DR path slid 0; dlid 0; 0,1,33,4 Node GUID"
        " 0xb83fd20301000030 SMA LID 9; MAD status 0x0 AM 0x0\n"
    )
    tables = dump_fts.parse(text("dump_fts"), "ibwarn: [1] some warning\n" + said)
    assert [(table.unread, bool(told(table.ports))) for table in tables if table.guid == LEAF_03] == [((0,), False)]
    assert all(told(table.ports) and not table.unread for table in tables if table.guid != LEAF_03)
    for wrong in (said.replace("b83fd20301000030", "1"), said.replace("AM 0x0", "")):
        with pytest.raises(ParseError):
            dump_fts.parse(text("dump_fts"), wrong)


@pytest.mark.parametrize(
    "broken",
    [
        "",
        "Failed to discover fabric\n",
        text("dump_fts")[:-20],
        text("dump_fts").replace("0x0002 033", "0x0001 033", 1),
        text("dump_fts").replace("0x0002 033", "0x00ff 033", 1),
        text("dump_fts").replace("0x0002 033 :", "0x0002 999 :", 1),
        text("dump_fts_brief").replace("0x0002 033 ", "0x0002 999 ", 1),
        text("dump_fts_brief").replace("0x0002 033 ", "0xzz02 033 ", 1),
        text("dump_fts_brief").replace("0x0002 033 \n", "", 1),
        text("dump_fts") * 2,
        text("opensm_lfts").replace("14 lids dumped", "13 lids dumped", 1),
    ],
)
def test_a_dump_that_is_not_whole_is_refused(broken: str) -> None:
    with pytest.raises(ParseError):
        dump_fts.parse(broken)


@pytest.mark.parametrize(
    "change",
    [
        ("\t\t5\t", "\t\t6\t"),
        ("\t\t5\t34", "\t\t5\t300"),
        ("Block", "Blok"),
        ("LFT Record dump:", "?\nLFT Record dump:"),
    ],
)
def test_records_of_another_form_are_refused(change: tuple[str, str]) -> None:
    with pytest.raises(ParseError):
        saquery.parse_forwarding(text("saquery_lftr").replace(*change))
    with pytest.raises(ParseError):
        saquery.parse_forwarding(text("saquery_lftr") * 2)


TABLES = st.dictionaries(
    st.integers(0, 2**64 - 1),
    st.dictionaries(st.integers(1, 200), st.integers(0, 254), max_size=20),
    min_size=1,
    max_size=4,
)
DESCRIPTION = st.text(st.characters(codec="utf-8", exclude_characters="\n\r"), max_size=20)


def printed(tables: typing.Mapping[int, typing.Mapping[int, int]], description: str, brief: bool) -> str:
    lines = []
    for guid, ports in tables.items():
        lines += [f"Unicast lids [0x0-0xc8] of switch DR path slid 0; dlid 0; 0,1 guid 0x{guid:016x} ({description}):"]
        lines += ["  Lid  Out   Destination", "       Port     Info "]
        lines += [
            f"0x{lid:04x} {ports[lid]:03d} " + ("" if brief else f": (Switch portguid 0x1: '{description}')")
            for lid in sorted(ports)
        ]
        lines += [f"{len(ports)} valid lids dumped "]
    return "\n".join(lines) + "\n"


@given(TABLES, DESCRIPTION, st.booleans())
def test_what_is_printed_is_read(
    tables: typing.Mapping[int, typing.Mapping[int, int]], description: str, brief: bool
) -> None:
    read = dump_fts.parse(printed(tables, description, brief))
    assert {int(table.guid, 16): told(table.ports) for table in read} == tables


@given(st.sampled_from(["dump_fts", "dump_fts_brief", "dump_fts_lmc2"]), st.data())
def test_of_a_dump_that_was_cut_nothing_is_made_up(name: str, data: st.DataObject) -> None:
    whole = text(name)
    known = {table.guid: table for table in dump_fts.parse(whole)}
    try:
        read: tuple[ForwardingTable, ...] = dump_fts.parse(whole[: data.draw(st.integers(0, len(whole) - 1))])
    except ParseError:
        return
    assert all(known[table.guid] == table for table in read)


def test_a_large_fabric_is_read_in_seconds() -> None:
    """100 switches of 10,000 LIDs: a million lines, a ninth of what 10,000 hosts have."""
    ports = {lid: lid % 64 for lid in range(1, 10_001)}
    made = printed(dict.fromkeys(range(100), ports), "leaf", True).replace("0xc8]", "0x2710]")
    with bounded(15):
        tables = dump_fts.parse(made)
    assert all(told(table.ports) == ports for table in tables[:2])
