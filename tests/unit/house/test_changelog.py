# SPDX-License-Identifier: GPL-3.0-or-later

"""The changelog of the next release is made from the fragments of a copy."""

from __future__ import annotations

import pathlib
import shutil

import pytest
import yaml

from dev import changelog
from dev.steps import StepError

ROOT = pathlib.Path(__file__).resolve().parents[3]


@pytest.fixture
def copy(tmp_path: pathlib.Path) -> pathlib.Path:
    """A collection without plugins, whose last release is 0.9.0, with a fragment."""
    made = tmp_path / "ansible_collections/linerate/rdma"
    (made / "changelogs/fragments").mkdir(parents=True)
    for name in ("galaxy.yml", "changelogs/config.yaml"):
        shutil.copy(ROOT / name, made / name)
    releases = {"ancestor": None, "releases": {"0.9.0": {"release_date": "2026-01-01"}}}
    (made / "changelogs/changelog.yaml").write_text(yaml.safe_dump(releases), encoding="utf-8")
    (made / "changelogs/fragments/one.yml").write_text(
        "---\nbugfixes:\n  - node_info - reads the PSID.\n", encoding="utf-8"
    )
    return made


def test_changelog_has_the_fragments_below_the_version_of_galaxy_yml(
    copy: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    version = yaml.safe_load((ROOT / "galaxy.yml").read_text(encoding="utf-8"))["version"]
    paths = changelog.write(copy, [], tmp_path)
    assert paths == [tmp_path / "CHANGELOG.md", tmp_path / "CHANGELOG.rst"]
    text = (tmp_path / "CHANGELOG.rst").read_text(encoding="utf-8")
    assert f"\nv{version}\n" in text and "- node_info - reads the PSID." in text


def test_changelog_of_a_released_version_is_refused(copy: pathlib.Path, tmp_path: pathlib.Path) -> None:
    with pytest.raises(StepError, match=r"has version 0\.9\.0 already"):
        changelog.write(copy, ["0.9.0"], tmp_path)
    assert list(tmp_path.glob("CHANGELOG.*")) == [] and (copy / "changelogs/fragments/one.yml").exists()
