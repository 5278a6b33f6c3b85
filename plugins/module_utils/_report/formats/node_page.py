# SPDX-License-Identifier: GPL-3.0-or-later

"""Renders the section of the nodes in the HTML report: the groups of comparable nodes and HCAs with their differing
members, the problems of each node, and the sheets. Nodes with equal sheets are shown once.
"""

from __future__ import annotations

import re
import typing

from ..._model.base.text import join_first
from ..content.alike import ComparedGroup
from ..content.nodes import Nodes
from ..content.sheet_parts import Device, Sheet, Statement
from ..content.tree import SIGNS, render_picture
from ..markup.markup import Html, join_content, render_element
from ..markup.tables import render_row, render_table

#: sheets of a page; the first of each kind of trouble, of each group, and in a small fleet all
MOST_SHEETS = 40
#: things in the way of one sort of nodes, in the table; the sheet has more
_MOST_TOLD = 4
#: what a sheet lists of each sort; all of it is in the facts and the records
_MOST_LISTED = 60
#: what may be the name of a node
_WORD = re.compile(r"[\w.-]+")
_HCA_HEADS = ("Port", "Model", "PSID", "Firmware", "NUMA node", "Fabric and rail", "State", "LID", "PCIe link")
_GPU_HEADS = ("GPU", "Model", "NUMA node", "Link", "Path to the nearest HCA")


def render_section(nodes: Nodes) -> Html:
    alike = _group_equal_sheets(nodes.sheets)
    drawn = _choose_sheets(nodes, alike)
    anchors = {sheet.node: f"sheet-{number}" for number, sheet in enumerate(drawn, 1)}
    left = len(nodes.sheets) - len(drawn)
    more = (
        f"{left} nodes have no sheet here, because a sheet on this page has the same content or the tables above list"
        " them; facts/ contains all of their facts."
    )
    return render_element(
        "section",
        render_element("h2", "nodes"),
        _make_groups(nodes.groups, anchors),
        render_element("ul", *[render_element("li", note) for note in nodes.notes], class_="marked")
        if nodes.notes
        else None,
        _in_the_way(alike, anchors),
        render_element("h3", "Sheets", class_="sheets"),
        *[_render_sheet(sheet, anchors[sheet.node]) for sheet in drawn],
        render_element("p", more, class_="more") if left else None,
        id="nodes",
        class_="card stage",
    )


Alike = typing.Mapping[tuple[tuple[str, ...], ...], typing.Sequence[Sheet]]


def _group_equal_sheets(sheets: typing.Iterable[Sheet]) -> Alike:
    """Return the sheets in groups whose texts are equal apart from the name of the node. The key of a group is its
    problems, unknown values and differences, each as a tuple of texts. Groups with the worst sheets come first.
    """
    found: dict[tuple[tuple[str, ...], ...], list[Sheet]] = {}
    for sheet in sorted(sheets, key=lambda sheet: sheet.rank):
        said = tuple(
            tuple(_replace_node_name(text, sheet.node) for text in texts)
            for texts in (sheet.wrong, sheet.unknown, sheet.odd)
        )
        found.setdefault(said, []).append(sheet)
    return found


def _replace_node_name(text: str, node: str) -> str:
    """Return a text with the name of the node replaced by ``this node``. Only whole words are replaced, so that node-1
    does not match in node-10. One regular expression serves for all nodes, because an expression for each node would
    have to be compiled.
    """
    return _WORD.sub(lambda word: "this node" if word[0] == node else word[0], text) if node in text else text


def _choose_sheets(nodes: Nodes, alike: Alike) -> list[Sheet]:
    first = [sheets[0] for said, sheets in alike.items() if any(said)]
    plain = {sheet.node: sheet for sheet in nodes.sheets if sheet.rank == 3}
    # of a group the example is a node with which nothing is wrong, where it has one
    examples = [
        next((plain[member] for member in group.members if member in plain), None)
        for group in nodes.groups
        if group.what == "nodes"
    ]
    # a fleet with many sorts of trouble keeps room for its examples, half of it at most
    others = nodes.sheets if len(nodes.sheets) <= MOST_SHEETS else ()
    chosen = {
        sheet.node: sheet
        for sheet in (*first[: MOST_SHEETS - min(len(examples), MOST_SHEETS // 2)], *examples, *first, *others)
        if sheet is not None
    }
    return sorted(list(chosen.values())[:MOST_SHEETS], key=lambda sheet: sheet.rank)


def _make_groups(groups: typing.Sequence[ComparedGroup], anchors: typing.Mapping[str, str]) -> typing.Optional[Html]:
    if not groups:
        return None
    rows = []
    # who is odd is not lost behind groups in which nobody is
    for group in sorted(groups, key=lambda group: not group.odd):
        size = join_content(
            render_element("b", str(len(group.members))),
            f" {group.what[: -1 if len(group.members) == 1 else None]}: ",
            render_element("bdi", join_first(group.members)),
        )
        if not group.odd:
            alone = "no comparable member" if len(group.members) == 1 else "no differences"
            rows.append(render_row(group.name, size, alone, None, None, None))
        rows += [
            render_row(group.name, size, odd.what, _list_names(odd.members, anchors), odd.value, odd.others)
            for odd in group.odd
        ]
    note = (
        "stage tuning compares nodes of the same kind; stage platform compares the firmware of HCAs of the same model"
    )
    return render_table(
        "Groups of comparable nodes and HCAs, and their differences",
        note,
        ("Group", "Members", "Difference", "On", "Value", "Value of the other members"),
        rows,
    )


def _list_names(members: typing.Sequence[str], anchors: typing.Mapping[str, str]) -> Html:
    parts: list[Html] = []
    for member in members[:12]:
        anchor = anchors.get(member) or anchors.get(member.rpartition(" ")[0])
        parts += [join_content(", ") if parts else join_content(""), _render_node_link(member, anchor)]
    return join_content(*parts, f" and {len(members) - 12} more" if len(members) > 12 else None)


def _render_node_link(name: str, anchor: typing.Optional[str]) -> Html:
    shown = render_element("bdi", name)
    return render_element("a", shown, href=f"#{anchor}") if anchor else shown


def _in_the_way(alike: Alike, anchors: typing.Mapping[str, str]) -> typing.Optional[Html]:
    rows = []
    for (wrong, unknown, _odd), sheets in alike.items():
        told = [Statement(text, "bad") for text in wrong] + [Statement(text, "unknown") for text in unknown]
        if told:
            more = f"and {len(told) - _MOST_TOLD} more" if len(told) > _MOST_TOLD else None
            words = [render_element("li", _render_statement(one)) for one in told[:_MOST_TOLD]] + (
                [render_element("li", more)] if more else []
            )
            rows.append(
                render_row(
                    join_content(
                        render_element("b", str(len(sheets))),
                        " ",
                        _list_names([sheet.node for sheet in sheets], anchors),
                    ),
                    render_element("ul", *words),
                )
            )
    if not rows:
        return None
    total = sum(map(len, alike.values()))
    fine = sum(len(sheets) for (wrong, unknown, _odd), sheets in alike.items() if not wrong and not unknown)
    return render_table(
        "Problems by node",
        f"nodes with the same problems share a row; {fine} of {total} nodes have no problems",
        ("Nodes", "Problems"),
        rows,
    )


def _render_sheet(sheet: Sheet, anchor: str) -> Html:
    words = [
        f"{what}: {len(texts)}"
        for texts, what in ((sheet.wrong, "problems"), (sheet.unknown, "unknown"), (sheet.odd, "differences"))
        if texts
    ]
    drawn = render_picture(sheet)
    return render_element(
        "details",
        render_element(
            "summary", render_element("b", render_element("bdi", sheet.node)), f" - {', '.join(words) or 'no problems'}"
        ),
        render_element("p", sheet.kind or "The kind of the node is unknown.", class_="more"),
        _render_statement_list("Problems", sheet.wrong, "bad"),
        _render_statement_list("Unknown", sheet.unknown, "unknown"),
        _render_statement_list("Differences from comparable nodes and HCAs", sheet.odd, ""),
        render_element("p", render_element("b", "Do: "), " ".join(sheet.steps), class_="remedy")
        if sheet.steps
        else None,
        (
            render_element(
                "div", drawn, class_="scroll", tabindex=0, role="region", aria_label=f"PCI tree of {sheet.node}"
            )
            if drawn
            else None
        ),
        _collect_devices("HCAs", _HCA_HEADS, sheet.hcas, sheet.node),
        _collect_devices("GPUs", _GPU_HEADS, sheet.gpus, sheet.node),
        id=anchor,
        class_="sheet",
        # one alone, or one that has trouble, is what a reader came for
        open=sheet.rank == 0 and anchor == "sheet-1",
    )


def _render_statement_list(
    title: str, texts: typing.Sequence[str], tone: typing.Literal["", "bad", "unknown"]
) -> typing.Optional[Html]:
    if not texts:
        return None
    more = (
        [render_element("li", f"and {len(texts) - _MOST_LISTED} more, all of them in the records")]
        if len(texts) > _MOST_LISTED
        else []
    )
    return render_element(
        "div",
        render_element("h4", title),
        render_element(
            "ul",
            *[render_element("li", _render_statement(Statement(text, tone))) for text in texts[:_MOST_LISTED]],
            *more,
        ),
        class_="marked",
    )


def _collect_devices(
    title: str, heads: typing.Sequence[str], devices: typing.Sequence[Device], node: str
) -> typing.Optional[Html]:
    rows = [render_row(device.name, *map(_render_statement, device.cells)) for device in devices]
    return render_table(title, "", heads, rows, of=node) if rows else None


def _render_statement(one: Statement) -> Html:
    return (
        render_element("span", f"{SIGNS[one.tone]}{one.text}", class_=f"said {one.tone}")
        if one.tone
        else join_content(one.text)
    )
