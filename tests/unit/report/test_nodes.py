# SPDX-License-Identifier: GPL-3.0-or-later

"""Sheets of nodes, and groups with their odd ones: what is in the way is marked and said, what nobody knows never looks
healthy; checks say who is odd."""

from __future__ import annotations

import dataclasses
import json
import pathlib
import typing
from xml.etree import ElementTree

import hypothesis
import hypothesis.strategies as some
import jsonschema
import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.node.hca import (
    Hca,
    NodeHcas,
    ObservedHcas,
    PcieLink,
    PciFunction,
    Port,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.tuning import (
    NodeTuning,
    ObservedTuning,
    RowReading,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import Finding, Judged, Waiver
from ansible_collections.linerate.rdma.plugins.module_utils._report.content.exhibits import Undrawable
from ansible_collections.linerate.rdma.plugins.module_utils._report.content.nodes import Nodes, build_nodes
from ansible_collections.linerate.rdma.plugins.module_utils._report.content.sheet import make_sheet
from ansible_collections.linerate.rdma.plugins.module_utils._report.content.sheet_parts import (
    MOST_GPUS,
    Block,
    Sheet,
    SheetInputs,
    SheetItem,
    Statement,
)
from ansible_collections.linerate.rdma.plugins.module_utils._report.content.tree import render_picture
from ansible_collections.linerate.rdma.plugins.module_utils._report.content.verdict import build_report
from ansible_collections.linerate.rdma.plugins.module_utils._report.formats.data import render_json
from ansible_collections.linerate.rdma.plugins.module_utils._report.formats.node_page import MOST_SHEETS, render_section
from ansible_collections.linerate.rdma.plugins.module_utils._report.formats.page import render_html
from ansible_collections.linerate.rdma.tests.unit.limit import limited
from ansible_collections.linerate.rdma.tests.unit.render.test_render_host import same_as_golden
from ansible_collections.linerate.rdma.tests.unit.report.node_world import Servers, bridges, gpu, run, servers
from ansible_collections.linerate.rdma.tests.unit.report.report_world import RUN, Made, World
from ansible_collections.linerate.rdma.tests.unit.report.test_report import HOSTILE, NOW, Page

WORLD = World(nodes=4, rails=4, on_leaf=2, rounds=1)
ILL = "node-2"
Change = typing.Callable[[Servers], Servers]


def found(made: Made) -> Nodes:
    seen = build_nodes(made.records, made.seen, {})
    assert seen is not None
    return seen


def sheets(change: Change = lambda shown: shown, world: World = WORLD) -> dict[str, Sheet]:
    return {one.node: one for one in found(run(world, change(servers(world)))).sheets}


def page(made: Made) -> str:
    return render_html(build_report(made.records, {}, RUN, NOW, facts=made.source))


def well_formed(html: str) -> ElementTree.Element:
    """As XML, which knows no attribute without a value."""
    return ElementTree.fromstring(html.replace(" open>", ">"))


def items(blocks: typing.Iterable[typing.Union[Block, SheetItem]]) -> typing.Iterator[SheetItem]:
    for block in blocks:
        below = block.items if isinstance(block, Block) else block.below
        yield from below
        yield from items(below)


def port(**changes: typing.Any) -> Change:
    return lambda shown: shown.hca(
        ILL, 0, lambda hca: dataclasses.replace(hca, ports=(dataclasses.replace(hca.ports[0], **changes),))
    )


def link(*values: typing.Any) -> Change:
    def changed(hca: Hca) -> Hca:
        assert hca.pci is not None
        return dataclasses.replace(hca, pci=dataclasses.replace(hca.pci, link=PcieLink(*values)))

    return lambda shown: shown.hca(ILL, 1, changed)


def row(name: str, *readings: RowReading) -> Change:
    return lambda shown: shown.row(ILL, name, *readings)


def without(name: str) -> Change:
    return lambda shown: shown.unread(ILL, name, "Permission denied")


def test_a_healthy_node_is_drawn_whole_by_its_numa_nodes() -> None:
    drawn = sheets()
    assert [one.node for one in drawn.values()] == list(WORLD.names)
    healthy = drawn[ILL]
    assert (healthy.wrong, healthy.unknown, healthy.odd, healthy.rank) == ((), (), (), 3)
    assert [(block.name, block.cpus.text) for block in healthy.blocks] == [
        ("NUMA node 0", "CPUs 0-95,192-287"),
        ("NUMA node 1", "CPUs 96-191,288-383"),
    ]
    ends = [[item.name for item in items([block]) if item.kind in ("gpu", "hca")] for block in healthy.blocks]
    assert ends == [
        [f"GPU {gpu(first)}", f"HCA mlx5_{first}", f"GPU {gpu(first + 1)}", f"HCA mlx5_{first + 1}"] for first in (0, 2)
    ]
    # from host bridge by root port, switch and its port downward to the HCA
    (host_bridge,) = healthy.blocks[0].items
    (root_port,) = host_bridge.below
    (switch,) = root_port.below
    assert [item.name for item in switch.below] == [f"bridge {address}" for rail in (0, 1) for address in bridges(rail)]
    assert [item.name for item in switch.below[1].below] == ["HCA mlx5_0"]
    cells = {device.name: [said.text for said in device.cells] for device in (*healthy.hcas, *healthy.gpus)}
    hca = [
        "MT4129",
        "MT_0000000838",
        "28.43.1014",
        "0",
        "compute rail 0",
        "port 1 ACTIVE, 400 Gb/s",
        "104",
        "0000:10:00.0: PCIe 32 GT/s x16",
    ]
    assert cells["mlx5_0 port 1"] == hca
    assert cells[gpu(3)] == ["10de:2330", "1", "all lanes", "PIX to mlx5_3"]


REDIRECT, DIRECT = bridges(1)
FAULTS: dict[str, tuple[Change, str, str]] = {
    "port down": (port(state="DOWN", physical_state="Polling"), "HCA mlx5_0", "port 1 DOWN, Polling"),
    "no subnet manager": (port(state="INIT", sm_lid=None), "HCA mlx5_0", "port 1 INIT, LinkUp, no subnet manager"),
    "link narrower": (
        link(32.0, 8, 32.0, 16, 32.0, 16),
        "HCA mlx5_1",
        "PCIe 32 GT/s x8, below the capability of card (32 GT/s x16) and slot",
    ),
    "link slower": (
        link(16.0, 16, 32.0, 16, 32.0, 16),
        "HCA mlx5_1",
        "PCIe 16 GT/s x16, below the capability of card (32 GT/s x16) and slot",
    ),
    "slot too small": (
        link(16.0, 16, 32.0, 16, 16.0, 16),
        "HCA mlx5_1",
        "PCIe 16 GT/s x16, limited by its slot; the card supports 32 GT/s x16",
    ),
    "ACS": (
        row(
            "acs",
            RowReading("redirect", (REDIRECT,)),
            RowReading("direct", tuple(end for rail in range(4) for end in bridges(rail) if end != REDIRECT)),
        ),
        f"bridge {REDIRECT}",
        "ACS redirect: packets between GPU and HCA pass through the host",
    ),
    "across sockets": (
        row(
            "gpu_nic_path",
            RowReading("PIX", tuple(f"{gpu(rail)} mlx5_{rail}" for rail in (1, 2, 3))),
            RowReading("SYS", (f"{gpu(0)} mlx5_3",)),
        ),
        f"GPU {gpu(0)}",
        "path to the nearest HCA mlx5_3 crosses the CPU sockets (SYS)",
    ),
    "GPU link": (
        row("gpu_link_width", RowReading("full", tuple(map(gpu, (0, 1, 2)))), RowReading("x8 of x16", (gpu(3),))),
        f"GPU {gpu(3)}",
        "link x8 of x16",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_what_is_in_the_way_is_marked_where_it_is_and_said(name: str) -> None:
    change, where, text = FAULTS[name]
    drawn = sheets(change)
    assert f"{where}: {text}" in drawn[ILL].wrong
    assert {item.name for item in items(drawn[ILL].blocks) if item.tone == "bad"} == {where}
    assert all(drawn[other].wrong == () for other in WORLD.names if other != ILL), (
        "the others have nothing to do with it"
    )
    shown = render_picture(drawn[ILL])
    assert shown is not None
    root = ElementTree.fromstring(shown)
    lines = ["".join(line.itertext()) for line in root.iter("text") if line.get("class") == "bad"]
    assert len(lines) == 1 and lines[0].startswith("\u2715 ") and text[:40] in lines[0], "by colour, sign and words"
    assert any((rect.get("class") or "").endswith(" bad") for rect in root.iter("rect"))


UNREAD = ("gpus", "gpu_model", "gpu_numa", "gpu_link_width", "gpu_nic_path", "acs", "pci_way", "numa_cpus")


@pytest.mark.parametrize(
    "change",
    [
        *map(without, UNREAD),
        row("gpus", RowReading("5")),
        row("gpu_nic_path", RowReading("what nobody knows", (f"{gpu(0)} mlx5_0",))),
        row("acs", RowReading("direct", bridges(0)[:1])),
        row("pci_way", RowReading("pci0000:00 " + "0000:00:00.0 " * 5000, ("mlx5_0",))),
        link(),
        link(32.0, 16),
        port(state=None),
        port(rate_gbps=None),
        lambda shown: shown.hca(ILL, 0, lambda hca: dataclasses.replace(hca, ports=())),
    ],
)
def test_what_nobody_knows_never_looks_healthy(change: Change) -> None:
    drawn = sheets(change)
    assert drawn[ILL].rank < 2 and drawn[ILL].unknown
    text = "".join(Page(page(run(WORLD, change(servers(WORLD))))).text)
    assert "? " in text and "unknown" in text


def test_a_node_without_facts_says_what_is_missing_and_the_next_step() -> None:
    made = run(WORLD, servers(WORLD).silent(ILL, "ssh: no route to host"))
    drawn = {one.node: one for one in found(made).sheets}[ILL]
    assert (drawn.blocks, drawn.hcas, drawn.gpus, drawn.rank) == ((), (), (), 1)
    assert drawn.unknown[:2] == ("HCAs: ssh: no route to host", "GPUs, NUMA nodes and PCI: ssh: no route to host")
    assert drawn.steps == (
        "Run ansible rdma_nodes --become -m ansible.builtin.ping, and correct the error that it shows for this node:"
        " Ansible must reach the node by ssh and become root there. The node must also provide Python 3.9 or later."
        " If the ping passes, run the same command with -m linerate.rdma.node_info, and correct the error that it"
        " prints for this node. Then run ansible-playbook linerate.rdma.site again. To continue without this node,"
        " remove it from the group rdma_nodes.",
    )
    assert found(made).notes == (f"These nodes are in no group because their tuning is unknown: {ILL}.",)
    unlooked = make_sheet(SheetInputs("node-9", ObservedHcas(), ObservedTuning(), {}, ()))
    assert unlooked.steps == (
        ("Run stages discover and tuning on node-9: run site.yml again with --tags discover,tuning."),
    )


def test_a_port_that_the_intent_does_not_ask_for_is_in_nobodys_way() -> None:
    down = Hca(
        "mlx5_9",
        "mlx5_9",
        (),
        PciFunction("0000:99:00.0", "15b3", "1017", "0200"),
        ports=(Port(1, "DOWN", "Disabled", "Ethernet"),),
    )

    def more(shown: Servers) -> Servers:
        value = shown.hcas[ILL].value
        assert value is not None
        return dataclasses.replace(shown, hcas={**shown.hcas, ILL: ObservedHcas(NodeHcas((*value.hcas, down)))})

    drawn = sheets(more)[ILL]
    assert drawn.wrong == () and drawn.unknown == ("NUMA node unknown: CPUs unknown",)
    (item,) = [item for item in items(drawn.blocks) if item.name == "HCA mlx5_9"]
    assert item.tone == "" and [said.text for said in item.said][:2] == [
        "on no fabric of the intent",
        "port 1 DOWN, Disabled",
    ]


@pytest.mark.parametrize(("members", "tone"), [(4, ""), (3, "bad")])
def test_an_infiniband_port_that_is_down_counts_where_members_are_missing(members: int, tone: str) -> None:
    """Which fabric it would be on nobody knows; with all members there it is one too many."""
    down = Hca(
        "mlx5_9",
        "mlx5_9",
        (),
        PciFunction("0000:99:00.0", "15b3", "1021", "0207", numa_node=1),
        ports=(Port(1, "DOWN", "Polling", "InfiniBand"),),
    )

    def spare(shown: Servers) -> Servers:
        value = shown.hcas[ILL].value
        assert value is not None
        return dataclasses.replace(
            shown, hcas={**shown.hcas, ILL: ObservedHcas(NodeHcas((*value.hcas[:members], down)))}
        )

    (item,) = [item for item in items(sheets(spare)[ILL].blocks) if item.name == "HCA mlx5_9"]
    assert item.tone == tone and "port 1 DOWN, Polling" in [said.text for said in item.said]


def test_where_there_is_one_numa_node_all_is_on_it() -> None:
    def single(shown: Servers) -> Servers:
        shown = shown.row(ILL, "numa_cpus", RowReading("0-3", ("node 0",))).row(
            ILL, "gpu_numa", RowReading("none", tuple(map(gpu, range(4))))
        )
        for number in range(WORLD.rails):
            shown = shown.hca(
                ILL,
                number,
                lambda hca: dataclasses.replace(hca, pci=hca.pci and dataclasses.replace(hca.pci, numa_node=None)),
            )
        return shown

    drawn = sheets(single)[ILL]
    assert [block.name for block in drawn.blocks] == ["NUMA node 0"] and drawn.unknown == ()
    assert {device.cells[3].text for device in drawn.hcas} == {"0"}


def says(check: str, subject: str, status: str, waived: bool = False) -> Judged:
    finding = Finding(check, subject, status, "bad", "good", "why", "remedy")  # type: ignore[arg-type]
    return Judged(finding, Waiver(check, "known") if waived else None)


def test_failed_findings_are_on_the_sheet_of_the_node_that_they_name() -> None:
    made = run(WORLD)
    told = (
        says("bandwidth.suspect", f"compute {ILL} mlx5_1", "fail"),
        says("host.memlock", ILL, "unknown"),
        says("host.memlock", ILL, "fail", waived=True),
        says("bandwidth.floor", f"compute {ILL} -> node-3 rail 0", "fail"),
        says("tuning.cpu", f"governor of node-1, {ILL}", "warn"),
        says("fabric.hcas", "node-22", "fail"),
    )
    drawn = {one.node: one for one in found(made.change("bandwidth", judged=told)).sheets}
    assert drawn[ILL].wrong == (f"bandwidth.suspect on compute {ILL} mlx5_1: bad",)
    assert drawn[ILL].unknown == (f"host.memlock on {ILL}: why",)
    assert all(drawn[other].rank == 3 for other in WORLD.names if other != ILL)


def test_who_is_odd_say_the_checks_and_the_table_says_the_same() -> None:
    shown = (
        servers(WORLD)
        .row(ILL, "thp", RowReading("never"))
        .runs("node-3", "0000:12:00.0", "28.40.0")
        .row("node-4", "governor", RowReading("powersave"))
    )
    made = run(WORLD, shown)
    of_nodes, of_hcas = found(made).groups
    assert (of_nodes.members, of_hcas.members[:2]) == (WORLD.names, ("node-1 mlx5_0", "node-1 mlx5_1"))
    (governor, thp), (version,) = of_nodes.odd, of_hcas.odd
    # advice tells of it as well, and the table has all
    assert (governor.members, governor.value, governor.others) == (("node-4",), "powersave", "performance on 3 of 4")
    assert (thp.members, thp.value, thp.others) == ((ILL,), "never", "none on 3 of 4")
    assert (version.members, version.what, version.value, version.others) == (
        ("node-3 mlx5_2",),
        "firmware",
        "28.40.0",
        "28.43.1014 on 15 of 16",
    )
    findings = [
        item.finding
        for record in made.records.values()
        for item in record.judged
        if item.finding.check in ("tuning.alike", "platform.firmware")
    ]
    told = [(finding.subject, finding.measured) for finding in findings if finding.status == "warn"]
    assert told == [("node-3 mlx5_2", "firmware 28.40.0"), (f"thp of {ILL}", "never")]
    drawn = {one.node: one for one in found(made).sheets}
    assert drawn[ILL].odd == ("transparent hugepages: never; comparable members: none on 3 of 4",)
    assert drawn["node-3"].odd == ("mlx5_2 firmware: 28.40.0; comparable members: 28.43.1014 on 15 of 16",)
    assert [one.rank for one in drawn.values()] == [3, 2, 2, 2]


def test_programs_get_the_groups_and_why_there_are_none(root: pathlib.Path) -> None:
    shown = servers(WORLD).row(ILL, "thp", RowReading("never")).runs("node-3", "0000:12:00.0", "28.40.0")
    made = run(WORLD, shown)
    data = json.loads(render_json(build_report(made.records, {}, RUN, NOW, facts=made.source)))
    jsonschema.validate(data, json.loads((root / "docs" / "report.schema.json").read_text(encoding="utf-8")))
    of_nodes, of_hcas = data["groups"]
    assert (of_nodes["what"], of_nodes["members"], of_hcas["what"], len(of_hcas["members"])) == (
        "nodes",
        list(WORLD.names),
        "HCAs",
        16,
    )
    assert of_nodes["odd"] == [
        {"members": [ILL], "row": "thp", "what": "transparent hugepages", "value": "never", "others": "none on 3 of 4"},
    ]
    assert [(odd["members"], odd["row"], odd["value"]) for odd in of_hcas["odd"]] == [
        (["node-3 mlx5_2"], "firmware", "28.40.0")
    ]
    assert data["groups_unknown"] == []
    for stage in ("tuning", "platform"):
        made = made.change(stage, facts={})
    data = json.loads(render_json(build_report(made.records, {}, RUN, NOW, facts=made.source)))
    assert data["groups"] == [] and [
        note.split(" wrote no facts in this run, so the groups that the stage compares are unknown.")[0]
        for note in data["groups_unknown"]
    ] == [
        "Stage tuning",
        "Stage platform",
    ]


def test_where_as_many_show_one_thing_as_another_neither_is_called_usual() -> None:
    shown = servers(WORLD).row("node-1", "thp", RowReading("never")).row(ILL, "thp", RowReading("never"))
    (odd,) = found(run(WORLD, shown)).groups[0].odd
    assert odd.members == WORLD.names and odd.others == "no value is usual"


def test_without_the_facts_of_a_stage_nobody_is_called_alike() -> None:
    made = run(WORLD)
    seen = found(made.change("tuning", facts={}).change("platform", facts={}))
    assert seen.groups == () and all(one.rank == 1 for one in seen.sheets)
    assert [
        note.split(" wrote no facts in this run, so the groups that the stage compares are unknown.")[0]
        for note in seen.notes
    ] == ["Stage tuning", "Stage platform"]
    assert (
        build_nodes({stage: record for stage, record in made.records.items() if stage != "discover"}, made.seen, {})
        is None
    )
    broken = {"nodes": {"a": {"hcas": 7}}}
    with pytest.raises(Undrawable, match="The facts of stage discover could not be shown"):
        build_nodes(made.records, made.change("discover", facts=broken).seen, {})
    for stage in ("discover", "fabric", "reachability", "bandwidth"):
        made = made.change(stage, facts=broken)
    assert "The facts of stage discover could not be shown" in page(made)


def test_of_a_large_fleet_those_that_show_the_same_are_drawn_once() -> None:
    world = World(nodes=60, rails=2, on_leaf=8, rounds=1)
    shown = servers(world)
    for name in world.names[10:50]:
        shown = shown.row(name, "gpu_link_width", RowReading("x8 of x16", (gpu(0),)), RowReading("full", (gpu(1),)))
    shown = shown.silent("node-55", "no ssh")
    html = render_section(found(run(world, shown)))
    root = well_formed(html)
    drawn = list(root.iter("details"))
    # the first of 40 narrow ones, the silent one, and one that is as it should be
    summaries = [one.find("summary") for one in drawn]
    assert ["".join(one.itertext()).partition(" - ")[0] for one in summaries if one is not None] == [
        "node-11",
        "node-55",
        "node-01",
    ]
    text = "".join(root.itertext())
    assert "40 node-11, node-12" in text and "and 28 more" in text and "57 nodes have no sheet here" in text
    assert root.find(f".//a[@href='#{drawn[0].get('id')}']") is not None


def test_a_fleet_in_which_each_node_has_trouble_of_its_own_stays_small() -> None:
    world = World(nodes=100, rails=1, on_leaf=8, rounds=1)
    shown = servers(world)
    for number, name in enumerate(world.names):
        shown = shown.row(name, "gpu_link_width", RowReading(f"x8 of x{number + 9}", (gpu(0),)))
    html = render_section(found(run(world, shown)))
    assert html.count("<details") == MOST_SHEETS and len(html) < 400_000


def test_the_page_has_the_sheets_and_is_the_same_each_time() -> None:
    made = run(WORLD, FAULTS["ACS"][0](servers(WORLD)))
    html = page(made)
    assert html == page(run(WORLD, FAULTS["ACS"][0](servers(WORLD))))
    assert (
        'id="nodes"' in html
        and "Groups of comparable nodes and HCAs, and their differences" in html
        and html.count('class="tree"') == WORLD.nodes
    )
    links = {link for link in Page(html).links if link.startswith("#sheet-")}
    assert links and all(f'id="{link[1:]}"' in html for link in links)


def test_golden() -> None:
    world = World(nodes=2, rails=2, on_leaf=2, rounds=1)
    shown = servers(world).hca(
        "node-1", 1, lambda hca: dataclasses.replace(hca, ports=(Port(1, "DOWN", "Polling", "InfiniBand"),))
    )
    shown = shown.row("node-1", "acs", RowReading("redirect", bridges(0)[:1])).silent("node-2", "ssh: timed out")
    html = render_section(found(run(world, shown)))
    well_formed(html)
    same_as_golden("report-nodes.golden", html.replace("><", ">\n<") + "\n")


def anything(text: str) -> Nodes:
    """All texts of facts and findings are this one."""
    ill = Port(1, text, text, "InfiniBand", 1.0)
    pci = PciFunction(text, text, text, text, text, 0, PcieLink(1.0, 1, 2.0, 2, 2.0, 2))
    hca = Hca(text, text, (), pci, text, text, text, text, text, (ill,))
    names = ("gpu_model", "gpu_numa", "gpu_link_width", "gpu_nic_path", "acs", "pci_way", "numa_cpus", "gpus")
    rows: dict[str, tuple[RowReading, ...]] = {
        name: (RowReading(text, (text, f"{text} {text}", f"node {text}")),) for name in names
    }
    seen = SheetInputs(
        text,
        ObservedHcas(NodeHcas((hca,), (text,))),
        ObservedTuning(NodeTuning(rows, {text: text})),
        {text: text},
        {text},
    )
    silent = SheetInputs(f"{text}!", ObservedHcas(error=text), ObservedTuning(error=text), {}, ())
    told = dataclasses.replace(
        seen, judged=[says("a.b", text, "fail"), says("a.b", text, "unknown")], kind=text, odd=(text,)
    )
    return Nodes((make_sheet(told), make_sheet(silent)), (), (text,))


TAGS = {
    "section",
    "h2",
    "h3",
    "h4",
    "ul",
    "li",
    "figure",
    "figcaption",
    "b",
    "bdi",
    "span",
    "div",
    "table",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
    "a",
    "p",
}
SVG = {"details", "summary", "svg", "title", "rect", "path", "text"}


def check_harmless(text: str) -> None:
    html = render_section(anything(text))
    root = well_formed(html)
    assert {element.tag for element in root.iter()} <= TAGS | SVG
    assert not any(name.startswith("on") or name == "style" for element in root.iter() for name in element.attrib)
    Page(html)


def test_hostile_text_stays_text() -> None:
    check_harmless(HOSTILE)
    assert "\u202e" not in render_section(anything("a\u202eb")) and "a\\u202eb" in render_section(anything("a\u202eb"))


@hypothesis.given(some.text(min_size=1, max_size=60))
def test_any_text_stays_text(text: str) -> None:
    check_harmless(text)


def test_no_secret_is_on_a_sheet() -> None:
    token = "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJrdWJlcm5ldGVzIn0.c2lnbmF0dXJl"
    html = render_section(anything(token))
    assert token not in html and html.count("<details") == 2


def test_facts_of_another_form_are_told_and_not_drawn() -> None:
    made = run(WORLD)
    seen = found(made.change("tuning", facts={"tunings": {"a": 7}}))
    assert any("The facts of stage tuning could not be read" in note for note in seen.notes) and all(
        one.rank == 1 for one in seen.sheets
    )


def test_gpus_that_a_node_claims_beyond_what_a_machine_has_are_counted() -> None:
    many = tuple(f"g{number:06d}" for number in range(200_000))
    claimed = ObservedTuning(
        NodeTuning({"gpu_model": (RowReading("10de:2330", many),), "gpus": (RowReading(str(len(many))),)})
    )
    with limited("the sheet"):
        made = make_sheet(SheetInputs("node-1", ObservedHcas(NodeHcas(())), claimed, {}, ()))
    (block,) = made.blocks
    assert [item.name for item in block.items] == [f"GPU {name}" for name in many[:MOST_GPUS]] and len(
        made.gpus
    ) == MOST_GPUS
    assert (
        made.unknown[0] == f"GPUs: 200000 reported, more than a node can have; {200_000 - MOST_GPUS} of them not shown"
    )
    assert not any("on PCI, but only" in text for text in made.unknown), "all that are on PCI have a model"


def drawn_lines(*blocks: Block) -> tuple[list[str], list[str]]:
    """The lines of a picture, and those of them in the colour of harm."""
    shown = render_picture(Sheet("node-1", blocks=blocks))
    assert shown is not None
    texts = [("".join(line.itertext()), line.get("class") or "") for line in ElementTree.fromstring(shown).iter("text")]
    return [text for text, _class in texts], [text for text, class_ in texts if "bad" in class_]


CPUS = Statement("CPUs 0-7")
BAD = SheetItem("gpu", "GPU 0000:18:00.0", (Statement("link x8 of x16", "bad"),))


def test_a_picture_goes_down_as_far_as_there_is_room_and_says_what_is_below() -> None:
    deep = BAD
    for number in range(63):
        deep = SheetItem("bridge", f"bridge {number}", (), (deep,))
    lines, bad = drawn_lines(Block("NUMA node 0", CPUS, (deep,)))
    assert lines == [
        "\u2715 NUMA node 0, CPUs 0-7",
        *(f"bridge {number}" for number in range(62, 38, -1)),
        "✕ and the devices below; the tables contain all of them",
    ]
    assert bad == lines[-1:]


def test_a_picture_has_a_bounded_number_of_lines_and_says_how_many_more_there_are() -> None:
    many = Block("NUMA node 0", CPUS, (*(SheetItem("bridge", f"bridge {number}") for number in range(1000)), BAD))
    lines, bad = drawn_lines(many)
    # one of the bad item, and one of what is said of it
    assert len(lines) == 402 and lines[-1] == bad[-1] == "✕ and 602 more lines; the tables contain all of them"
    lines, _bad = drawn_lines(*[many] * 300)
    assert len(lines) == 256 * 2 + 4000 + 1 and lines[-1] == "and 44 more NUMA nodes; the tables contain all of them"
    assert lines.count("✕ and 1002 more lines; the tables contain all of them") == 246


def test_marks_are_in_the_order_of_the_tree() -> None:
    one, other = "0000:18:00.0", "0000:19:00.0"
    rows = {
        "gpu_model": (RowReading("10de:2330", (one, other)),),
        "pci_way": (
            RowReading(f"pci0000:17 0000:17:01.0 {one}", (one,)),
            RowReading(f"pci0000:17 0000:17:02.0 {other}", (other,)),
        ),
        "acs": (RowReading("redirect", ("0000:17:01.0", "0000:17:02.0")),),
        "gpu_link_width": (RowReading("x8 of x16", (one, other)),),
    }
    shown = make_sheet(SheetInputs("node-1", ObservedHcas(NodeHcas(())), ObservedTuning(NodeTuning(rows)), {}, ()))
    assert [text.partition(":  ")[0][:19] for text in shown.wrong] == [
        "bridge 0000:17:01.0",
        f"GPU {one}: l",
        "bridge 0000:17:02.0",
        f"GPU {other}: l",
    ]
