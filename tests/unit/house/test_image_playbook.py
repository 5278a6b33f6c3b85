# SPDX-License-Identifier: GPL-3.0-or-later

"""Playbook image under a real ansible-playbook, with a stand-in for podman."""

from __future__ import annotations

import json
import os
import pathlib
import sys

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.observers import PUBLIC_IMAGE
from ansible_collections.linerate.rdma.tests.unit.house.test_images_playbook import play

ROOT = pathlib.Path(__file__).resolve().parents[3]
PLAYBOOK = ROOT / "playbooks/image.yml"
CONTAINERFILE = ROOT / "roles/observers/files/Containerfile"
DIGEST = "sha256:" + "a" * 64
#: writes down how it was called, and the digest of what it pushes
PODMAN = """#!{python}
import json, os, sys
words = sys.argv[1:]
with open({log!r}, "a") as log:
    log.write(json.dumps([words, os.listdir(words[-1]) if words[0] == "build" else []]) + "\\n")
if words[:2] == ["manifest", "push"]:
    if {refused}:
        sys.exit("denied: requested access to the resource is denied")
    with open(words[words.index("--digestfile") + 1], "w") as digest:
        digest.write("{digest}")
"""


def podman(folder: pathlib.Path, refused: bool = False) -> tuple[str, pathlib.Path]:
    """The program, and what it was called with."""
    program, log = folder / "podman", folder / "log"
    program.write_text(
        PODMAN.format(python=sys.executable, log=str(log), digest=DIGEST, refused=refused), encoding="utf-8"
    )
    program.chmod(0o755)
    return str(program), log


def calls(log: pathlib.Path) -> list[list[str]]:
    lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    assert all(sent == [] for _words, sent in lines), "nothing of this machine is sent to the builder"
    return [words for words, _sent in lines]


@pytest.mark.processes
def test_the_image_is_pushed_and_named_with_its_digest(tmp_path: pathlib.Path) -> None:
    program, log = podman(tmp_path)
    given = {
        "observers_build_program": program,
        "observers_push_image": "registry.example:5000/site/rdma-tools:1",
        "observers_platforms": ["linux/amd64", "linux/arm64"],
        "observers_base_image": "mirror.example/debian:13",
    }
    code, text = play(tmp_path, PLAYBOOK, given, "--check")
    assert code == 0 and calls(log) == [["--version"]], text
    log.unlink()
    code, text = play(tmp_path, PLAYBOOK, given)
    words = " ".join(text.split())
    assert code == 0, text
    assert f"rdma_observers_image: registry.example:5000/site/rdma-tools@{DIGEST}" in words
    asked, built, pushed, removed = calls(log)
    (name,) = {built[3], pushed[-2], removed[-1]}
    assert asked == ["--version"] and name.startswith("localhost/linerate-rdma-tools:")
    assert built[:5] == ["build", "--no-cache", "--manifest", name, "--file"]
    assert os.path.samefile(built[5], CONTAINERFILE)
    assert built[6:10] == ["--platform", "linux/amd64,linux/arm64", "--build-arg", "BASE=mirror.example/debian:13"]
    assert pushed[:4] == ["manifest", "push", "--all", "--digestfile"]
    assert pushed[-1] == "docker://registry.example:5000/site/rdma-tools:1" and removed == ["manifest", "rm", name]
    assert not os.path.exists(built[-1])


@pytest.mark.processes
def test_what_prevents_it_is_the_last_message(tmp_path: pathlib.Path) -> None:
    program, log = podman(tmp_path, refused=True)
    name = {"observers_push_image": "registry.example/rdma-tools:1"}
    code, text = play(tmp_path, PLAYBOOK, {"observers_build_program": program})
    assert code == 2 and "-e observers_push_image=registry.example/site/rdma-tools:1" in " ".join(text.split()), text
    code, text = play(tmp_path, PLAYBOOK, {**name, "observers_build_program": str(tmp_path / "none")})
    assert code == 2 and f"{tmp_path}/none cannot be run: " in " ".join(text.split()), text
    code, text = play(tmp_path, PLAYBOOK, {**name, "observers_build_program": program})
    assert code == 2 and "denied: requested access" in text and "rdma_observers_image:" not in text, text
    assert calls(log)[-1][:2] == ["manifest", "rm"], "a list of this build does not stay"
    assert not os.path.exists(calls(log)[1][-1])


def test_the_containerfile_has_each_package_of_the_page() -> None:
    """The page says what each of them is for, and what lacks without it."""
    page = (ROOT / "docs/observers.md").read_text(encoding="utf-8")
    rows = page.partition("| package | contains |")[2].partition("\n\n")[0]
    firsts = [row.split("|")[1] for row in rows.splitlines() if row.startswith("| `")]
    named = {name for first in firsts for name in first.split("`")[1::2] if not name.startswith("/")}
    _start, _install, rest = CONTAINERFILE.read_text(encoding="utf-8").partition("--no-install-recommends")
    installed = set(rest.partition("&&")[0].replace("\\", " ").split())
    assert named == installed and "python3" in named
    assert PUBLIC_IMAGE in page, "what a message names is explained"
