# SPDX-License-Identifier: GPL-3.0-or-later

"""The image of the observers in a proposal is the digest that all of them ran."""

from __future__ import annotations

import dataclasses
import typing

import pytest
import yaml

from ansible_collections.linerate.rdma.plugins.action import propose
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.proposal import Proposal, Section, Sections
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.observers import (
    PUBLIC_IMAGE,
    Observer,
    ObserversFacts,
)
from ansible_collections.linerate.rdma.plugins.module_utils._plan.propose.image import propose_image
from ansible_collections.linerate.rdma.plugins.module_utils._plan.propose.inputs import NamedImage
from ansible_collections.linerate.rdma.plugins.module_utils._render.cluster.proposal import render
from ansible_collections.linerate.rdma.plugins.plugin_utils import _variables

TAG = "registry.example:5000/site/rdma-tools:1"
ONE, OTHER = (f"registry.example:5000/site/rdma-tools@sha256:{letter * 64}" for letter in "ab")


def ran(*images: str, named: str = TAG) -> ObserversFacts:
    nodes = [
        Observer(f"worker-{number}", "ready", pod=f"observer-{number}", image_id=image)
        for number, image in enumerate(images)
    ]
    return ObserversFacts("linerate-observers", named, tuple(nodes))


def with_failed(seen: ObserversFacts, image: str = "") -> ObserversFacts:
    return dataclasses.replace(seen, nodes=(*seen.nodes, Observer("worker-9", "failed", "image", image_id=image)))


def proposed(named: str, seen: typing.Optional[ObserversFacts], inventory: bool = False) -> tuple[typing.Any, str]:
    value, notes = propose_image(NamedImage(named, inventory), seen)
    return (value and value.value), " ".join(notes)


def test_a_tag_becomes_the_digest_that_all_observers_ran() -> None:
    assert proposed(TAG, ran(ONE, ONE)) == (ONE, "")
    assert proposed(TAG, ran(ONE, ONE, ONE)) == (ONE, "")
    assert proposed(TAG, ran(ONE, f"docker-pullable://{ONE}")) == (ONE, "")


@pytest.mark.parametrize(
    ("named", "image"),
    [
        ("rdma-tools:1", "docker.io/library/rdma-tools"),
        ("rdma-tools", "docker.io/library/rdma-tools"),
        ("docker.io/rdma-tools:1", "docker.io/library/rdma-tools"),
        ("site/rdma-tools:1", "docker.io/site/rdma-tools"),
        ("site/rdma-tools:1", "registry.example:5000/site/rdma-tools"),
        ("localhost/rdma-tools:1", "localhost/rdma-tools"),
        ("registry.example:5000/rdma-tools", "registry.example:5000/rdma-tools"),
    ],
)
def test_a_runtime_reports_the_whole_name_of_a_short_one(named: str, image: str) -> None:
    digest = f"{image}@sha256:{'c' * 64}"
    assert proposed(named, ran(digest, digest, named=named)) == (digest, "")


@pytest.mark.parametrize(
    ("named", "image"),
    [
        (TAG, f"evil.example/{TAG.rpartition(':')[0]}"),
        (TAG, "evil.example/site/rdma-tools"),
        ("registry.example/site/tools:1", "registry.example:5000/site/tools"),
        ("localhost/rdma-tools:1", "evil.example/localhost/rdma-tools"),
        ("docker.io/site/tools:1", "evil.example/docker.io/site/tools"),
        ("rdma-tools:1", "evil.example/site/rdma-tools"),
        ("rdma-tools:1", "evil.example/library/rdma-tools"),
        ("rdma-tools:1", "rdma-tools"),
    ],
)
def test_an_image_of_another_repository_is_not_proposed(named: str, image: str) -> None:
    digest = f"{image}@sha256:{'e' * 64}"
    value, notes = proposed(named, ran(digest, digest, named=named))
    assert value == named and f"they ran {digest}" in notes
    value, notes = proposed(named, ran(digest, digest, named=named), inventory=True)
    assert value is None and "write that" not in notes


@pytest.mark.parametrize("inventory", [False, True])
def test_one_node_does_not_choose_the_image_of_all_nodes(inventory: bool) -> None:
    kept = None if inventory else TAG
    for seen, words in (
        (ran(ONE), f"they ran {ONE}, on one node, and a proposal needs two"),
        (with_failed(ran(ONE)), f"they ran {ONE}, and worker-9 did not report an image"),
        (with_failed(ran(ONE), ONE), f"they ran {ONE}, and worker-9 did not report an image"),
        (with_failed(ran(ONE, ONE)), f"they ran {ONE}, and worker-9 did not report an image"),
        (ran(ONE, ""), f"they ran {ONE}, and worker-1 did not report an image"),
        (ran(ONE, ONE, OTHER), f"they ran {ONE}, {OTHER}."),
    ):
        value, notes = proposed(TAG, seen, inventory)
        assert value == kept and words in notes and "write that" not in notes
        assert f"skopeo inspect docker://{TAG} prints it" in notes


@pytest.mark.parametrize(
    ("seen", "words"),
    [
        (ran(ONE, OTHER), f"they ran {ONE}, {OTHER}"),
        # loaded into the runtime by hand, and pulled from nowhere
        (ran(*["sha256:" + "d" * 64] * 2), "they ran sha256:dddd"),
        (
            ran(*[f"registry.example:5000/other/tools@sha256:{'e' * 64}"] * 2),
            "they ran registry.example:5000/other/tools@",
        ),
        (ran(ONE + "0", ONE + "0"), f"they ran {ONE}0"),
        (ran(""), "they did not report an image"),
        (None, "they did not report an image"),
    ],
    ids=["two", "local", "another", "longer", "unreported", "unread"],
)
def test_without_exactly_one_digest_the_tag_stays_and_a_note_says_why(
    seen: typing.Optional[ObserversFacts], words: str
) -> None:
    value, notes = proposed(TAG, seen)
    assert value == TAG
    assert words in notes and f"skopeo inspect docker://{TAG} prints it" in notes


def test_an_image_of_the_inventory_is_not_overridden() -> None:
    """The file of the proposal would be read after the one with the name, and would hide each later change of it."""
    assert proposed(ONE, ran(ONE), inventory=True) == (None, "")
    value, notes = proposed(TAG, ran(ONE, ONE), inventory=True)
    assert value is None and f"is {TAG}, a tag. All observers ran {ONE}: write that" in notes
    value, notes = proposed(TAG, None, inventory=True)
    assert value is None and "did not report" in notes


def test_what_the_command_sets_is_not_of_the_inventory(monkeypatch: pytest.MonkeyPatch) -> None:
    action = object.__new__(propose.ActionModule)
    action._loader = None
    given: dict[str, str] = {}
    monkeypatch.setattr(_variables, "load_extra_vars", lambda loader: given)
    assert action._find_image("") is None
    assert action._find_image(TAG) == NamedImage(TAG, in_inventory=True)
    given["rdma_observers_image"] = TAG
    assert action._find_image(TAG) == NamedImage(TAG)


def test_without_a_name_nothing_is_proposed() -> None:
    """The cluster's own image of OpenShift changes with its release."""
    assert propose_image(None, ran(ONE)) == (None, ())


def test_the_file_has_the_image_beside_the_intent() -> None:
    value, notes = propose_image(NamedImage(PUBLIC_IMAGE), None)
    assert notes == ()
    text = render(Proposal(Sections((), ""), Section((), ""), image=value))
    assert yaml.safe_load(text)["rdma_observers_image"] == PUBLIC_IMAGE
    assert "rdma_observers_image" not in render(Proposal(Sections((), ""), Section((), "")))
