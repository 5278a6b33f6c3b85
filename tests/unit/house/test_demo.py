# SPDX-License-Identifier: GPL-3.0-or-later

"""The first look, under a real ansible-playbook: what was drawn into the made-up fleet is found by the checks, and
nothing else."""

from __future__ import annotations

import json
import os
import pathlib
import sys
import tarfile
import typing

import pytest
import yaml

from dev import demo
from tests.unit.truth import demo as made

ROOT = pathlib.Path(__file__).resolve().parents[3]
ANEW = "the archives are of an older form; make them anew: build/venv/bin/python -m tests.unit.truth.demo"


@pytest.mark.processes
def test_the_healthy_fleet_is_green_and_the_other_one_shows_each_fault_and_no_other(
    tmp_path: pathlib.Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if name.startswith("ANSIBLE_")]:
        monkeypatch.delenv(name)
    program = os.environ.get("LINERATE_ANSIBLE_PLAYBOOK") or str(
        pathlib.Path(sys.executable).parent / "ansible-playbook"
    )
    code = demo.play(pathlib.Path(program), tmp_path)
    lines = capfd.readouterr().out.splitlines()
    assert code == 0 and demo.differing(tmp_path) == [], "\n".join(lines)
    shown = [line for line in lines if line.startswith("[")]
    assert shown == [
        "[warn] discover.pcie on demo-07 mlx5_6",
        "[fail] fabric.uplinks on demo-leaf-5-2",
        "[fail] fabric.rate on demo-12 mlx5_3",
        "[warn] fabric.capability on compute",
        (
            "[fail] platform.bios on demo-23 mlx5_0, demo-23 mlx5_1, demo-23 mlx5_2 and 5 more,"
            " which the record lists in full"
        ),
    ]
    assert "demo-spine-3 (0 of 1)" in "".join(lines) and "SriovGlobalEnable Disabled" in "".join(lines), (
        "a finding names its cause"
    )
    looked = ["== validate", "== discover", "== fabric", "== reachability", "== platform"]
    assert [line for line in lines if line.startswith("== ") and line in looked] == looked and "== tuning" not in lines
    assert "tuning: 1 skipped - not run" in lines
    green, not_green, like_it = lines[-3:]
    assert green.startswith("linerate.rdma: GREEN - 13 stages, ") and green.endswith(
        f"report: {tmp_path}/healthy/judged/report.html"
    )
    assert not_green.startswith(
        "linerate.rdma: NOT GREEN - stage fabric: 2 fail (fabric.uplinks on demo-leaf-5-2 and 1 more) - "
    )
    assert not_green.endswith(f"report: {tmp_path}/faulty/judged/report.html") and "linerate.rdma.site" in like_it
    assert "\n".join(lines[-3:]).replace(str(tmp_path), "build/demo") in (ROOT / "README.md").read_text(
        encoding="utf-8"
    ), "the README shows how it ends"
    for name in ("healthy", "faulty"):
        page = (tmp_path / name / "judged" / "report.html").read_text(encoding="utf-8")
        assert f"made-up-{name}" in page and "made up, of no hardware" in page


def contents(archive: pathlib.Path) -> dict[str, typing.Optional[bytes]]:
    """What is in it: how it is compressed is for the Python that packs it to say."""
    with tarfile.open(archive) as tar:
        files = {member.name: tar.extractfile(member) for member in tar.getmembers()}
        return {name: None if file is None else file.read() for name, file in files.items()}


def test_the_archives_are_what_their_generator_makes(tmp_path: pathlib.Path) -> None:
    for archive in made.make(tmp_path):
        there, anew = contents(made.SHIPPED / archive.name), contents(archive)
        assert sorted(there) == sorted(anew), ANEW
        assert [name for name, text in anew.items() if there[name] != text] == [], ANEW
        assert (made.SHIPPED / archive.name).stat().st_size < 500_000


def test_what_is_expected_is_what_was_drawn_in() -> None:
    cables = {
        ("fabric.rate", " ".join(made.CABLE)),
        ("fabric.uplinks", made.LEAF),
        ("discover.pcie", " ".join(made.SLOT)),
    }
    assert (
        cables | {("platform.bios", f"{made.BIOS} mlx5_{number}") for number in range(made.SHAPE.rails)} == demo.DRAWN
    )


def test_what_differs_from_it_is_said(tmp_path: pathlib.Path) -> None:
    def write(name: str, *findings: tuple[str, str]) -> None:
        stage = {
            "state": "closed",
            "findings": [{"check": check, "subject": subject, "status": "fail"} for check, subject in findings],
        }
        skipped = {
            "state": "skipped",
            "findings": [{"check": "host.run", "subject": "stage host", "status": "skipped"}],
        }
        path = tmp_path / name / "judged" / "report.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"stages": [stage, skipped]}), encoding="utf-8")

    write("healthy")
    write("faulty", *demo.DRAWN)
    assert demo.differing(tmp_path) == []
    write("healthy", ("host.memlock", "demo-01"))
    write("faulty", *demo.DRAWN - {("fabric.rate", "demo-12 mlx5_3")}, ("fabric.rails", "demo-02 compute"))
    assert demo.differing(tmp_path) == [
        "fabric.rate on demo-12 mlx5_3: is not found, and was drawn in",
        "fabric.rails on demo-02 compute: is found, and was not drawn in",
        "host.memlock on demo-01: is found in the fleet that is as it should be",
    ]


def test_the_archives_are_in_the_tarball_and_their_generator_is_not() -> None:
    ignored = yaml.safe_load((ROOT / "galaxy.yml").read_text(encoding="utf-8"))["build_ignore"]
    left_out = {pattern for pattern in ignored if not pattern.startswith(".")}
    assert {"dev", "tests"} <= left_out
    for archive in made.SHIPPED.glob("demo-*"):
        parts = archive.relative_to(ROOT).parts
        places = ["/".join(parts[:depth]) for depth in range(1, len(parts) + 1)]
        assert not any(pathlib.PurePath(place).match(pattern) for place in places for pattern in left_out), archive
