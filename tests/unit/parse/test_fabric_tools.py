# SPDX-License-Identifier: GPL-3.0-or-later

"""sminfo, saquery, ibping and ibnetdiscover: real captures, hostile text, and that nothing is ever made up."""

from __future__ import annotations

import contextlib
import gc
import pathlib
import typing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import ParseError
from ansible_collections.linerate.rdma.plugins.module_utils._model.infiniband.error_counters import UnreadPort
from ansible_collections.linerate.rdma.plugins.module_utils._model.infiniband.fabric import SubnetManager
from ansible_collections.linerate.rdma.plugins.module_utils._parse.infiniband import (
    iblinkinfo,
    ibnetdiscover,
    ibping,
    ibqueryerrors,
    saquery,
    sminfo,
    smpquery,
)

FIXTURES = pathlib.Path(__file__).parents[1] / "fixtures" / "infiniband-diags"


def text(name: str) -> str:
    return (FIXTURES / f"{name}.txt").read_text()


def test_sminfo_reads_master_and_standby() -> None:
    assert sminfo.parse(text("sminfo_master")) == SubnetManager(4, "0xb83fd20300e00001", "MASTER", 8, 456)
    assert sminfo.parse(text("sminfo_standby")).state == "STANDBY"


@pytest.mark.parametrize(
    "output", [text("sminfo_no_sm"), text("sminfo_bad_lid"), "", text("sminfo_master") * 2, text("sminfo_master")[:60]]
)
def test_sminfo_without_one_answer_is_refused(output: str) -> None:
    with pytest.raises(ParseError):
        sminfo.parse(output)


@pytest.mark.parametrize(("number", "state"), [(0, "NOTACT"), (1, "DISCOVER"), (2, "STANDBY"), (3, "MASTER")])
def test_sminfo_takes_the_number_of_the_state(number: int, state: str) -> None:
    assert (
        sminfo.parse(f"sminfo: sm lid 1 sm guid 0x1, activity count 1 priority 0 state {number} ???\n").state == state
    )


def test_sminfo_refuses_a_state_out_of_the_specification() -> None:
    with pytest.raises(ParseError, match="state from 0 to 3"):
        sminfo.parse("sminfo: sm lid 1 sm guid 0x1, activity count 1 priority 0 state 9 ???\n")


def test_saquery_reads_the_records() -> None:
    assert saquery.parse_sm_records(text("saquery_smir")) == (SubnetManager(4, "0xb83fd20300e00001", "MASTER", 8, 457),)
    both = text("saquery_smir") + text("saquery_smir").replace(
        "LID...................4", "LID...................10"
    ).replace("e00001", "e00061").replace("SMState...............3", "SMState...............2")
    assert [(manager.lid, manager.state) for manager in saquery.parse_sm_records(both)] == [
        (4, "MASTER"),
        (10, "STANDBY"),
    ]


@pytest.mark.parametrize(
    "output",
    [
        text("saquery_no_sm"),
        "Query SA failed: Connection timed out\n",
        text("saquery_smir").replace("ActCount..............457\n", ""),
    ],
)
def test_saquery_without_a_whole_record_is_refused(output: str) -> None:
    with pytest.raises(ParseError):
        saquery.parse_sm_records(output)


def test_saquery_reads_the_ports_with_a_manager() -> None:
    assert saquery.parse_manager_ports(text("saquery_issm")) == (4, 10)


@pytest.mark.parametrize(
    "output",
    [
        "",
        "IsSM ports\n\nIsSMdisabled ports\n",
        text("saquery_issm").partition("IsSMdisabled")[0],
        text("saquery_issm").replace("EndPortLid..............10\n", ""),
        "Query SA failed: Connection timed out\n",
    ],
)
def test_saquery_without_all_ports_with_a_manager_is_refused(output: str) -> None:
    with pytest.raises(ParseError):
        saquery.parse_manager_ports(output)


def test_saquery_leaves_out_ports_whose_manager_is_switched_off() -> None:
    disabled = text("saquery_issm") + text("saquery_issm").split("\n", 1)[1].partition("IsSMdisabled")[0].replace(
        "Lid..............10", "Lid..............11"
    )
    assert saquery.parse_manager_ports(disabled) == (4, 10)


def test_smpquery_tells_a_port_with_a_manager() -> None:
    assert smpquery.parse_is_manager(text("smpquery_portinfo_manager")) is True
    assert smpquery.parse_is_manager(text("smpquery_portinfo")) is False
    assert smpquery.parse_description(text("smpquery_nodedesc")) == "sm-1 mlx5_0"
    for parse in (smpquery.parse_is_manager, smpquery.parse_description):
        with pytest.raises(ParseError):
            parse(text("smpquery_no_answer"))


def test_ibqueryerrors_reads_the_counters_and_leaves_out_the_sums() -> None:
    report = ibqueryerrors.parse(text("ibqueryerrors_errors"))
    assert {(port.guid, port.port): port.counters for port in report.ports} == {
        ("0xb83fd20300e00021", 1): {"PortRcvErrors": 277},
        ("0xb83fd20300e00011", 1): {"SymbolErrorCounter": 123, "LinkDownedCounter": 3},
        ("0xb83fd20300000000", 5): {"PortXmitDiscards": 9},
        ("0xb83fd20300000100", 1): {"PortRcvSwitchRelayErrors": 9},
    }
    assert (report.checked, report.failures) == (65, 0)
    assert len(ibqueryerrors.parse(text("ibqueryerrors_clean")).ports) == 1


def test_ibqueryerrors_reads_64_bit_counters_and_counts_what_did_not_answer() -> None:
    output = text("ibqueryerrors_errors").replace("== 277]", "== 4294967299 (4.000G)]")
    output = output.replace("## Thresholds: ", "## Thresholds: \n##          2 PMA query failures")
    report = ibqueryerrors.parse(output)
    assert report.ports[0].counters == {"PortRcvErrors": 4294967299} and report.failures == 2


@pytest.mark.parametrize(
    "output",
    [
        "",
        "Query SA failed: Connection timed out\n",
        text("ibqueryerrors_errors").partition("## Summary")[0],
        text("ibqueryerrors_errors").replace("[LinkDownedCounter == 3]", "[LinkDownedCounter == x]"),
        text("ibqueryerrors_errors").replace("   GUID 0xb83fd20300e00021 port 1: [PortRcvErrors == 277]\n", ""),
    ],
)
def test_ibqueryerrors_that_did_not_do_its_work_is_refused(output: str) -> None:
    """Also with exit code 0, as when the subnet manager is dead."""
    with pytest.raises(ParseError):
        ibqueryerrors.parse(output)


def test_iblinkinfo_reads_what_a_link_could_be() -> None:
    # ibsim says of all its ports that they are capable of 12 lanes
    seen = iblinkinfo.parse(text("iblinkinfo_line"))
    assert seen.links == len(seen.slow) == 56 and {port.could_be for port in seen.slow} == {"12X"}
    assert (seen.slow[0].guid, seen.slow[0].port) == ("0xb83fd20300e00071", 1)
    sound = (
        text("iblinkinfo_line")
        .replace("(Could be 12X )", "( )", 55)
        .replace("(Could be 12X )", "(Could be 4X Could be 106.25 Gbps)")
    )
    (slow,) = iblinkinfo.parse(sound).slow
    assert slow.could_be == "4X, 106.25 Gbps"


def test_iblinkinfo_of_a_link_whose_far_end_just_went_away() -> None:
    line = (
        '0xb83fd20301100010 "MF0;fabric-1-leaf-2:MQM9700/U1"      2    3[  ] ==( 4X        106.25 Gbps Active/'
        ' Polling)==>      "Port not available"\n'
    )
    seen = iblinkinfo.parse(text("iblinkinfo_line") + line)
    assert seen.links == 56


@pytest.mark.parametrize(
    "output", ["", text("iblinkinfo_line")[:-30], "garbage\n", text("iblinkinfo_line") + "discover failed\n"]
)
def test_iblinkinfo_of_another_form_is_refused(output: str) -> None:
    with pytest.raises(ParseError):
        iblinkinfo.parse(output)


def iblinkinfo_line(width: str, speed: str, could_be: str = " ", port: int = 9) -> str:
    """As print_port() of iblinkinfo.c prints it in line mode; the words are those of libibmad's dump.c."""
    link = f"({width:>3} {speed:>18} Active/  LinkUp)"
    return (
        f'0xb83fd20300000000 "{"leaf-1":>30}" {1:6d} {port:4d}[  ] =={link}==>  0xb83fd20300000200 {3:6d} {1:4d}[  ]'
        f' "leaf-2" ({could_be})\n'
    )


def test_iblinkinfo_with_every_speed_that_there_is() -> None:
    speeds = (
        "2.5 Gbps",
        "5.0 Gbps",
        "10.0 Gbps",
        "10.0 Gbps (FDR10)",
        "14.0625 Gbps",
        "25.78125 Gbps",
        "53.125 Gbps",
        "106.25 Gbps",
        "212.5 Gbps",
    )
    odd = (
        ("4X", "undefined (8)"),
        ("undefined (32)", "106.25 Gbps"),
        ("4X", "Extended speed"),
        ("4X", "undefined (0)"),
    )
    lines = [
        iblinkinfo_line(width, speed, port=port)
        for port, (width, speed) in enumerate((*(("4X", speed) for speed in speeds), *odd), 1)
    ]
    seen = iblinkinfo.parse("".join(lines))
    assert (seen.links, seen.slow, seen.unread) == (len(lines), (), ())
    qdr = iblinkinfo_line("4X", "10.0 Gbps", " Could be FDR10 (Found link at QDR but expected speed is FDR10)")
    assert iblinkinfo.parse(qdr).slow[0].could_be == "FDR10 (Found link at QDR but expected speed is FDR10)"


def test_one_odd_line_of_iblinkinfo_costs_one_port() -> None:
    odd = '0xb83fd20300000000 "leaf-1" of another tool\n'
    seen = iblinkinfo.parse(
        iblinkinfo_line("4X", "106.25 Gbps") + odd + iblinkinfo_line("4X", "106.25 Gbps", "Could be 12X  ")
    )
    assert (seen.links, len(seen.slow), seen.unread) == (2, 1, (odd.strip(),))
    many = iblinkinfo.parse(iblinkinfo_line("4X", "106.25 Gbps") + odd.replace("of another", "x" * 5000) * 500)
    assert len(many.unread) == 20 and max(map(len, many.unread)) == 300
    with pytest.raises(ParseError):
        iblinkinfo.parse(odd * 3)


def test_ibqueryerrors_names_the_ports_that_did_not_answer() -> None:
    """On stderr, by IBWARN of ibqueryerrors.c; the destination as portid2str() of libibmad prints it."""
    output = text("ibqueryerrors_clean").replace("## Thresholds", "##          3 PMA query failures\n## Thresholds")
    stderr = (
        "ibwarn: [4711] query_cap_mask: classportinfo query failed on worker-1 mlx5_0, Lid 7 port 1\n"
        "ibwarn: [4711] print_errors: IB_GSI_PORT_COUNTERS query failed on worker-1 mlx5_0, Lid 7 port 1\n"
        "ibwarn: [4711] print_errors: IB_GSI_PORT_COUNTERS_EXT query failed on a, b, Lid 9 Gid fe80::1 port 255\n"
        "ibwarn: [4711] mad_rpc: timeout\n"
    )
    report = ibqueryerrors.parse(output, stderr)
    # that of classportinfo costs nothing: the counters are asked for all the same
    assert (report.failures, report.unread) == (2, (UnreadPort(7, 1), UnreadPort(9, 255)))
    assert ibqueryerrors.parse(output).failures == 3 and ibqueryerrors.parse(output).unread == ()
    # named and not counted
    assert ibqueryerrors.parse(text("ibqueryerrors_clean"), stderr).failures == 2


def test_ibqueryerrors_tells_64_bit_counters_from_small_ones() -> None:
    wide = text("ibqueryerrors_errors").replace("[PortRcvErrors == 277]", "[PortRcvErrors == 65535 (65.535K)]")
    ports = {port.guid: port for port in ibqueryerrors.parse(wide).ports}
    assert ports["0xb83fd20300e00021"].wide and ports["0xb83fd20300e00021"].counters == {"PortRcvErrors": 65535}
    assert not ports["0xb83fd20300e00011"].wide


def test_two_hcas_back_to_back() -> None:
    """out_ca_port() of ibnetdiscover.c prints a blank before the GUID of a far end that is no switch, since v28 at
    least."""
    ends = (
        ("b83fd20300e00000", "b83fd20300e00001", 1, "worker-1 mlx5_0"),
        ("b83fd20300e00010", "b83fd20300e00011", 2, "worker-2 mlx5_0"),
    )
    for more in ("", " s=4 w=2 v=4", " s=4 w=2 v=4 e=8"):
        lines = ["#", "# Topology file: generated on Mon Jan  2 03:04:05 2026", "#"]
        for (guid, port_guid, lid, name), (far, far_port, far_lid, far_name) in (ends, ends[::-1]):
            lines += ["", "vendid=0x2c9", "devid=0x1021", f"caguid=0x{guid}", f'Ca\t1 "H-{guid}"\t\t# "{name}"']
            lines += [
                f'[1]({port_guid}) \t"H-{far}"[1] ({far_port}) \t\t# lid {lid} lmc 0 "{far_name}" lid {far_lid}'
                f" 4xNDR{more}"
            ]
        topology = ibnetdiscover.parse("\n".join(lines) + "\n")
        (link,) = topology.links
        assert (link.a.port_guid, link.b.port_guid, link.width, link.speed) == (
            "0xb83fd20300e00001",
            "0xb83fd20300e00011",
            4,
            "NDR",
        )
        assert (link.a.kind, link.b.kind, link.a.lid, link.b.lid) == ("Ca", "Ca", 1, 2)


@pytest.mark.parametrize("description", ["", "a, b", 'say "hello" ( )', "x ==( 4X )==> y", "$(reboot) [1] ==("])
def test_iblinkinfo_with_a_hostile_description(description: str) -> None:
    far = f'0xb83fd20300000200      3    1[  ] "{description}" ( )'
    line = (
        f'0xb83fd20300000000 "{description:>30}"      1    9[  ] ==( 4X        106.25 Gbps Active/  LinkUp)==>  {far}\n'
    )
    seen = iblinkinfo.parse(line + line.replace("( )\n", "(Could be 106.25 Gbps)\n"))
    assert [(port.guid, port.port, port.could_be) for port in seen.slow] == [("0xb83fd20300000000", 9, "106.25 Gbps")]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ibping_ok", (6, 4, 4)),
        ("ibping_ok_guid", (6, 2, 2)),
        ("ibping_loss", (6, 300, 259)),
        ("ibping_flood", (6, 500, 500)),
        ("ibping_resent", (13, 200, 190)),
        ("ibping_no_server", (13, 2, 0)),
        ("ibping_bad_lid", (99, 2, 0)),
    ],
)
def test_ibping_counts(name: str, expected: tuple[typing.Any, ...]) -> None:
    assert ibping.parse(text(name)) == expected
    assert (FIXTURES / f"{name}.rc").read_text().strip() == "0", (
        "exit code 0 says nothing: all of these have it, also with 100 % loss"
    )


@pytest.mark.parametrize(("name", "expected"), [("ibping_resent", 81), ("ibping_no_server", 0)])
def test_ibping_tells_what_it_sent_again(name: str, expected: int) -> None:
    """``ibping -f -e -c 200 -t 200`` where 30 % of the messages are lost: its loss line says 5 %."""
    assert ibping.count_resent((FIXTURES / f"{name}.stderr").read_text()) == expected


@given(st.text())
def test_any_text_tells_what_was_sent_again(words: str) -> None:
    assert ibping.count_resent(words) <= words.count("retry")


@pytest.mark.parametrize(
    "output",
    [
        "",
        "Pong from vm.(none) (Lid 6): time 0.023 ms\n",
        text("ibping_ok") * 2,
        text("ibping_ok").replace("4 received", "5 received"),
        text("ibping_ok").replace("4 packets", "0 packets").replace("4 received", "0 received"),
    ],
)
def test_ibping_without_a_possible_count_is_refused(output: str) -> None:
    with pytest.raises(ParseError):
        ibping.parse(output)


def test_topology_of_a_capture() -> None:
    topology = ibnetdiscover.parse(text("ibnetdiscover"))
    assert sum(node.kind == "Switch" for node in topology.nodes) == 3
    assert sum(node.kind == "Ca" for node in topology.nodes) == 12
    # 12 HCAs and 2 x 8 links between the switches; each was printed at both ends
    assert len(topology.links) == 28
    assert {(link.width, link.speed) for link in topology.links} == {(4, "NDR")}
    (leaf,) = [node for node in topology.nodes if node.description == "MF0;leaf00:MQM9700/U1"]
    assert (leaf.guid, leaf.lid, leaf.ports) == ("0xb83fd20300000000", 1, 17)
    (link,) = [link for link in topology.links if "0xb83fd20300e00001" in (link.a.port_guid, link.b.port_guid)]
    ca, switch = (link.a, link.b) if link.a.kind == "Ca" else (link.b, link.a)
    assert (ca.guid, ca.port, ca.lid) == ("0xb83fd20300e00000", 1, 4)
    assert (switch.guid, switch.port, switch.lid) == (leaf.guid, 1, 1)


SMALL = """\
# Topology file
vendid=0x2c9
switchguid=0x10(10)
Switch	41 "S-0000000000000010"		# "{switch}" enhanced port 0 lid 1 lmc 0
[1]	"H-0000000000000020"[1](21) 		# "{ca}" lid 8 {rate}
[41]	"H-0000000000000030"[1](31) 		# "Mellanox Technologies Aggregation Node" lid 14 4xHDR

caguid=0x20
Ca	1 "H-0000000000000020"		# "{ca}"
[1](21) 	"S-0000000000000010"[1]		# lid 8 lmc 2 "{switch}" lid 1 {rate}

caguid=0x30
Ca	1 "H-0000000000000030"		# "Mellanox Technologies Aggregation Node"
[1](31) 	"S-0000000000000010"[41]		# lid 14 lmc 0 "{switch}" lid 1 4xHDR
"""


@pytest.mark.parametrize(
    "description",
    [
        "",
        "a, b; c",
        'say "hello" lid 9 4xQDR',
        '"',
        '[1]\t"S-0000000000000099"[1]',
        "$(reboot) `id` {{ 7*7 }}",
        "x\u2028y\x0bz",
        'Switch	2 "S-1"# "q" enhanced port 0 lid 1 lmc 0',
        'q" # lid 8 lmc 7 "r',
    ],
)
def test_topology_with_a_hostile_description(description: str) -> None:
    topology = ibnetdiscover.parse(SMALL.format(switch=description, ca=description, rate="4xNDR"))
    assert [node.description for node in topology.nodes[:2]] == [description, description]
    assert len(topology.nodes) == 3 and len(topology.links) == 2
    assert topology.links[0].a.lid == 1 and topology.links[0].b.lid == 8 and topology.lmc == 2


def test_topology_marks_aggregation_nodes() -> None:
    topology = ibnetdiscover.parse(SMALL.format(switch="s", ca="worker-1 mlx5_0", rate="4xNDR"))
    assert [node.aggregation for node in topology.nodes] == [False, False, True]


@pytest.mark.parametrize(
    ("rate", "expected"),
    [
        ("4x???", (4, None)),
        ("??XDR", (None, "XDR")),
        ("2xHDR", (2, "HDR")),
        ("4xFDR10", (4, "FDR10")),
        ("4xNDR s=4 w=2 v=4 e=4", (4, "NDR")),
    ],
)
def test_topology_does_not_guess_a_rate(rate: str, expected: tuple[typing.Any, ...]) -> None:
    link = ibnetdiscover.parse(SMALL.format(switch="s", ca="c", rate=rate)).links[0]
    assert (link.width, link.speed) == expected


@pytest.mark.parametrize(
    ("old", "new", "number", "expected"),
    [
        ("[1](21)", "[1](2x)", 5, "the line of a port"),
        ("Ca\t1", "Ca\tone", 9, "the line of a switch with its LID, or of a CA or router without one"),
        (" enhanced port 0 lid 1 lmc 0", "", 4, "the line of a switch with its LID, or of a CA or router without one"),
        ("lmc 2", "lmc 8", 10, "the line of a port"),
        ("lmc 2", "lmc 999", 10, "the line of a port"),
        ("caguid=0x30", "cagui=0x30", 12, "the line of a node or a port"),
        (
            "# Topology file",
            '[1]\t"H-0000000000000020"[1](21) \t\t# "c" lid 8 4xNDR',
            1,
            "the line of a port after the line of its node",
        ),
        (' \t"S-0000000000000010"[1]', '\u2028"S-0000000000000010"[1]', 10, "the line of a port"),
    ],
)
def test_topology_names_the_line_of_another_form(old: str, new: str, number: int, expected: str) -> None:
    whole = SMALL.format(switch="s", ca="c", rate="4xNDR")
    assert old in whole
    with pytest.raises(ParseError) as raised:
        ibnetdiscover.parse(whole.replace(old, new, 1))
    line = whole.replace(old, new, 1).split("\n")[number - 1]
    assert str(raised.value) == f"ibnetdiscover, line {number}: {line!r} is not {expected}"


@pytest.mark.parametrize("enabled", [True, False])
@pytest.mark.parametrize("output", [SMALL.format(switch="s", ca="c", rate="4xNDR"), "garbage\n"])
def test_topology_leaves_the_garbage_collector_as_it_was(output: str, enabled: bool) -> None:
    before = gc.isenabled()
    (gc.enable if enabled else gc.disable)()
    try:
        with contextlib.suppress(ParseError):
            ibnetdiscover.parse(output)
        assert gc.isenabled() is enabled
    finally:
        (gc.enable if before else gc.disable)()


def test_topology_takes_a_link_once_whichever_end_comes_first() -> None:
    small = SMALL.format(switch="s", ca="c", rate="4xNDR")
    doubled = small + small[small.index("Switch") :]
    assert ibnetdiscover.parse(doubled) == ibnetdiscover.parse(small)
    head, *blocks = small.split("\n\n")
    others_first = "\n\n".join([*blocks, head]) + "\n"
    ends = {frozenset((link.a, link.b)) for link in ibnetdiscover.parse(others_first).links}
    assert ends == {frozenset((link.a, link.b)) for link in ibnetdiscover.parse(small).links}


@given(st.integers(min_value=0, max_value=len(SMALL) + 20))
def test_a_cut_topology_is_refused_or_whole(length: int) -> None:
    """Cut anywhere: either the whole text was there, or it is refused, or no node was lost that a link names."""
    whole = SMALL.format(switch="s", ca="c", rate="4xNDR")
    try:
        topology = ibnetdiscover.parse(whole[:length])
    except ParseError:
        return
    assert topology.nodes == ibnetdiscover.parse(whole).nodes


CAPTURES = [
    text(name)
    for name in (
        "ibnetdiscover",
        "sminfo_master",
        "saquery_smir",
        "saquery_issm",
        "ibping_ok",
        "ibqueryerrors_errors",
        "iblinkinfo_line",
        "smpquery_portinfo",
    )
]


@given(st.data())
@pytest.mark.parametrize(
    "parser",
    [
        ibnetdiscover.parse,
        sminfo.parse,
        saquery.parse_sm_records,
        saquery.parse_manager_ports,
        smpquery.parse_is_manager,
        smpquery.parse_description,
        ibqueryerrors.parse,
        iblinkinfo.parse,
        ibping.parse,
    ],
)
def test_parsers_raise_nothing_but_their_error(parser: typing.Callable[..., typing.Any], data: st.DataObject) -> None:
    """Any text, and captures that were mutated, shuffled and doubled."""
    capture = data.draw(st.sampled_from(CAPTURES))
    lines = data.draw(st.permutations(capture.split("\n")[:12]))
    noise = data.draw(st.text(max_size=80))
    cut = data.draw(st.integers(min_value=0, max_value=len(capture)))
    for output in (noise, "\n".join(lines), capture[:cut] + noise + capture[cut:], capture + capture):
        try:
            parser(output)
        except ParseError as error:
            assert len(str(error)) < 600, "an error must not repeat a whole output"


@given(st.integers(min_value=0, max_value=10**6), st.integers(min_value=0, max_value=10**6))
def test_ibping_never_invents_a_packet(transmitted: int, received: int) -> None:
    output = (
        f"--- h (Lid 1) ibping statistics ---\n{transmitted} packets transmitted, {received} received, 0% packet loss,"
        " time 1 ms\n"
    )
    try:
        counts = ibping.parse(output)
    except ParseError:
        assert transmitted == 0 or received > transmitted
    else:
        assert counts == (1, transmitted, received)
