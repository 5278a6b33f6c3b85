# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import dataclasses
import hashlib
import html
import pathlib
import re
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._app.again import sign_sheet
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.facts import RunStart, intent_checksum
from ansible_collections.linerate.rdma.plugins.module_utils._report.content.verdict import Report, build_report
from ansible_collections.linerate.rdma.plugins.module_utils._report.formats.signature import (
    MOST_WAIVERS,
    SignedEvidence,
    build_figures,
    render_signature,
)
from ansible_collections.linerate.rdma.plugins.module_utils._store.evidence import pack
from ansible_collections.linerate.rdma.plugins.module_utils._store.files import FileError
from ansible_collections.linerate.rdma.plugins.module_utils._store.unpacking import unpack

from . import test_history
from .report_world import World, fabrics, records

EVIDENCE = SignedEvidence(
    "rdma-evidence-x.tar.gz", "ab" * 32, "cd" * 32, 8, "Example University", "training-1", "Example Systems"
)


def report(world: World, waivers: typing.Sequence[typing.Mapping[str, str]] = ()) -> Report:
    made = records(world, waivers)
    return build_report(made.records, {}, "", "2026-01-02T03:10:00+00:00", {"linerate.rdma": "1.0.0"}, made.source)


def words(page: str) -> str:
    """What a reader sees of the body."""
    body = page.partition("<body>")[2]
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", body)))


def test_a_sheet_says_what_is_accepted() -> None:
    shown = words(render_signature(report(World()), EVIDENCE))
    for part in (
        "GREEN",
        "Example University",
        "training-1",
        "Example Systems",
        "Nodes 8",
        "14 of 14",
        "linerate.rdma 1.0.0",
        "ab" * 32,
        "cd" * 32,
    ):
        assert part in shown, part
    assert "Measured 2026-01-02 03:04 to 03:04 UTC" in shown and "Nothing is waived." in shown
    assert shown.count("name, place, date, signature") == 2


def test_figures_are_those_of_the_pairs_and_their_floor() -> None:
    world = World(slow=3)
    (found,) = build_figures(report(world))
    averages = sorted(
        world.average(rail, client, server) for rail in range(world.rails) for client, server in world.pairs()
    )
    assert sorted(found.figures) == averages and found.pairs == len(averages)
    assert found.floors and min(found.floors) > min(averages), "the slow node is below its floor"
    shown = words(render_signature(report(world), EVIDENCE))
    assert f"compute {len(averages)} of {len(averages)} {averages[0]:.1f}" in shown and f"{averages[-1]:.1f}" in shown


def test_a_run_that_is_not_green_is_nothing_to_accept() -> None:
    shown = words(render_signature(report(World(slow=3)), EVIDENCE))
    assert "NOT GREEN" in shown and "nothing to accept yet" in shown
    assert "nothing to accept yet" not in words(render_signature(report(World()), EVIDENCE))


def test_waivers_are_there_with_their_reasons_and_many_are_counted() -> None:
    many = [
        {"check": "bandwidth.*", "subject": f"*node-{number}*", "reason": f"reason {number} {'long ' * 99}"}
        for number in (1, 2, 4, 5, 6, 7, 8)
    ]
    one = report(World(slow=3), many)
    used = [item for item in one.waivers if item.covered]
    assert len(used) > MOST_WAIVERS
    shown = words(render_signature(one, EVIDENCE))
    assert f"waived: {one.waived} findings" in shown
    assert (
        len(re.findall(r"reason \d", shown)) == MOST_WAIVERS and f"and {len(used) - MOST_WAIVERS} more waivers" in shown
    )


def test_what_nobody_gave_is_a_line_to_fill_in() -> None:
    page = render_signature(report(World()), dataclasses.replace(EVIDENCE, customer="", cluster="<b>"))
    assert page.count('<dd class="blank"></dd>') == 1 and "<b>" not in page.partition("<main>")[2].partition("</dl>")[0]


def test_a_run_without_figures_says_so() -> None:
    made = records(World()).change("bandwidth", intent=None)
    one = build_report(made.records, {}, "", "2026-01-02T03:10:00+00:00", {}, made.source)
    assert build_figures(one) == () and "No pair has a measured bandwidth in this run." in words(
        render_signature(one, EVIDENCE)
    )


def test_the_archive_is_the_one_that_was_signed(tmp_path: pathlib.Path) -> None:
    test_history.a_run(tmp_path / "report", 1)
    archive, sheet = tmp_path / "evidence.tar.gz", tmp_path / "evidence.signature.html"
    digest = pack(str(tmp_path / "report"), str(archive), "evidence").sha256
    assert digest == hashlib.sha256(archive.read_bytes()).hexdigest()
    sign_sheet(str(tmp_path / "report"), str(sheet), archive.name, digest, {"customer": "Example University"})
    shown = words(sheet.read_text(encoding="utf-8"))
    assert digest in shown and test_history.run_of(1) in shown and "Example University" in shown and "Nodes 1" in shown
    assert unpack(str(archive), str(tmp_path / "back"), signed=f" {digest.upper()}\n").sha256 == digest
    archive.write_bytes(archive.read_bytes() + b"\x00")
    with pytest.raises(FileError, match="is not the signed archive: its SHA-256 is"):
        unpack(str(archive), str(tmp_path / "other"), signed=digest)
    with pytest.raises(FileError, match="gone could not be read: No such file or directory"):
        unpack(str(tmp_path / "gone"), str(tmp_path / "other"), signed=digest)
    assert not (tmp_path / "other").exists()


def test_the_checksum_of_an_intent_is_of_what_was_asked_for() -> None:
    asked = fabrics(World())
    one = RunStart("run", "", fabrics=asked, waivers=[], cluster={"disruption": "none", "tuning": {}})
    same = RunStart(
        "another", "later", nodes=("worker-1",), fabrics=asked, waivers=[], cluster={"tuning": {}, "disruption": "none"}
    )
    assert intent_checksum(one) == intent_checksum(same) and re.fullmatch("[0-9a-f]{64}", intent_checksum(one))
    wishes: tuple[dict[str, typing.Any], ...] = (
        {"waivers": [{}]},
        {"cluster": None},
        {"fabrics": fabrics(World(rails=2))},
    )
    others = [dataclasses.replace(one, **wish) for wish in wishes]
    assert len({intent_checksum(one), *map(intent_checksum, others)}) == 4
