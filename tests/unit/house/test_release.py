# SPDX-License-Identifier: GPL-3.0-or-later

"""A release is refused before anything is made, and its version stands where it must."""

from __future__ import annotations

import pathlib
import re
import shutil
import subprocess
import typing

import pytest
import yaml

from dev import release
from dev.steps import StepError

ROOT = pathlib.Path(__file__).resolve().parents[3]


def git(root: pathlib.Path, *arguments: str) -> None:
    who = ("-c", "user.name=nobody", "-c", "user.email=nobody@example.com", "-c", "core.hooksPath=/dev/null")
    subprocess.run(["git", *who, *arguments], cwd=root, check=True, capture_output=True)


@pytest.fixture
def root(tmp_path: pathlib.Path) -> pathlib.Path:
    """A checkout with what a release looks at, the last one being 1.2.0."""
    for name in release.PLACES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "changelogs/fragments").mkdir(parents=True)
    (tmp_path / "changelogs/fragments/one.yml").write_text("---\nbugfixes: [it was wrong.]\n", encoding="utf-8")
    (tmp_path / "changelogs/changelog.yaml").write_text(
        yaml.safe_dump({"ancestor": None, "releases": {"1.2.0": {}, "0.9.0": {}}}), encoding="utf-8"
    )
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", "--all")
    git(tmp_path, "commit", "--quiet", "--message", "all")
    return tmp_path


@pytest.mark.parametrize("version", ["1.2.1", "1.10.0", "2.0.0"])
def test_a_newer_version_of_a_clean_checkout_is_released(root: pathlib.Path, version: str) -> None:
    release.refuse(root, version)


@pytest.mark.parametrize(
    ("version", "said"),
    [
        ("", "is no version"),
        ("1.3", "is no version"),
        ("v1.3.0", "is no version"),
        ("1.2.0", "is not newer than 1.2.0"),
        ("1.1.9", "is not newer"),
    ],
)
def test_a_wrong_version_is_refused(root: pathlib.Path, version: str, said: str) -> None:
    with pytest.raises(StepError, match=said):
        release.refuse(root, version)


def tagged(root: pathlib.Path) -> None:
    git(root, "tag", "1.3.0")


def changed(root: pathlib.Path) -> None:
    (root / "galaxy.yml").write_text("---\n", encoding="utf-8")


def added(root: pathlib.Path) -> None:
    (root / "new.md").write_text("new\n", encoding="utf-8")


def without_fragments(root: pathlib.Path) -> None:
    git(root, "rm", "--quiet", "changelogs/fragments/one.yml")
    git(root, "commit", "--quiet", "--message", "none")


@pytest.mark.parametrize(
    ("what", "said"),
    [
        (tagged, "there is a tag 1.3.0 already"),
        (changed, "not committed:\n M galaxy.yml"),
        (added, r"not committed:\n\?\? new.md"),
        (without_fragments, "has no fragment"),
    ],
)
def test_a_checkout_that_is_not_ready_is_refused(
    root: pathlib.Path, what: typing.Callable[[pathlib.Path], None], said: str
) -> None:
    what(root)
    with pytest.raises(StepError, match=said):
        release.refuse(root, "1.3.0")


def test_a_dry_run_takes_a_checkout_with_changes(root: pathlib.Path) -> None:
    added(root)
    release.refuse(root, "1.3.0", dry_run=True)


def test_the_version_is_written_where_it_stands(root: pathlib.Path) -> None:
    release.write_version(root, "1.3.0")
    assert yaml.safe_load((root / "galaxy.yml").read_text(encoding="utf-8"))["version"] == "1.3.0"
    assert 'COLLECTION_VERSION = "1.3.0"' in (root / "plugins/module_utils/_model/base/version.py").read_text(
        encoding="utf-8"
    )
    (root / "galaxy.yml").write_text("---\nname: rdma\n", encoding="utf-8")
    with pytest.raises(StepError, match=r"galaxy\.yml has 0 lines"):
        release.write_version(root, "1.4.0")


#: how the matrix calls what the lab is built of: the Go module, and where its version is pinned
BUILT = {
    "SR-IOV network operator": ("cluster", "k8snetworkplumbingwg/sriov-network-operator"),
    "multus": ("cluster", "multus-cni.v4"),
    "whereabouts": ("cluster", "k8snetworkplumbingwg/whereabouts"),
    "OLM": ("olm", "operator-framework/operator-lifecycle-manager"),
    "NVIDIA's network operator": ("network-operator", "Mellanox/network-operator"),
    "Kubeflow's training operator": ("training-operator", "kubeflow/training-operator"),
    "Trainer, JobSet": ("trainer", "kubeflow/trainer/v2"),
    "Kueue": ("kueue", "sigs.k8s.io/kueue"),
}


@pytest.mark.parametrize("name", BUILT)
def test_the_support_matrix_has_the_versions_of_the_lab(name: str) -> None:
    folder, module = BUILT[name]
    pins = (ROOT / "lab/go" / folder / "go.mod").read_text(encoding="utf-8")
    (version,) = set(re.findall(rf"{re.escape(module)} v(\d+\.\d+\.\d+)(?=\s)", pins))
    row = re.search(
        rf"^\| {re.escape(name)} \| ([^|]+) \|", (ROOT / "docs/support.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert row and version in row[1], version
