# SPDX-License-Identifier: GPL-3.0-or-later

"""Observers as objects, against golden files, and what must hold of them whatever is asked for."""

from __future__ import annotations

import dataclasses
import typing

import hypothesis
import hypothesis.strategies as some
import pytest
import yaml

from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.images.pull_rules import by_digest
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.observers import Wanted
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.observers import (
    observer_set,
    owned_namespace,
)
from ansible_collections.linerate.rdma.plugins.module_utils._render.cluster.names import RenderError
from ansible_collections.linerate.rdma.plugins.module_utils._render.cluster.observers import render_objects
from ansible_collections.linerate.rdma.tests.unit.render.test_render_host import same_as_golden

IMAGE = "registry.example/rdma-tools@sha256:" + "ab" * 32
PLAIN = Wanted(IMAGE, run="20260102T030405Z-a1b2c3", nodes=("worker-2", "worker-1"))
WHOLE = Wanted(
    IMAGE,
    namespace="seen",
    node_selector={"nvidia.com/gpu.present": "true"},
    pull_secrets=("site",),
    pull_policy="Always",
    priority_class="system-node-critical",
    lifetime=3600,
    resources={"requests": {"cpu": "1"}},
    openshift=True,
    recursive=True,
)


@pytest.mark.parametrize(("name", "wanted"), [("observers", PLAIN), ("observers-openshift", WHOLE)])
def test_golden(name: str, wanted: Wanted) -> None:
    same_as_golden(f"{name}.golden", yaml.safe_dump_all(render_objects(wanted), sort_keys=False))


def test_in_a_prepared_namespace_only_what_is_in_it_is_made() -> None:
    assert [item["kind"] for item in render_objects(WHOLE, prepared=True)] == ["ServiceAccount", "DaemonSet"]


def daemon(wanted: Wanted) -> dict[str, typing.Any]:
    return render_objects(wanted)[-1]


texts = some.text("abc-", min_size=1, max_size=5)


@hypothesis.given(
    wanted=some.builds(
        Wanted,
        image=some.just(IMAGE),
        run=some.text(max_size=8),
        nodes=some.lists(texts, max_size=4).map(tuple),
        node_selector=some.dictionaries(texts, texts, max_size=3),
        priority_class=texts,
        lifetime=some.integers(60, 10**6),
        openshift=some.booleans(),
    )
)
def test_they_may_do_nothing_in_the_cluster_and_write_nothing_on_the_host(wanted: Wanted) -> None:
    made = render_objects(wanted)
    assert {item["metadata"].get("namespace", wanted.namespace) for item in made} == {wanted.namespace}
    (account,) = (item for item in made if item["kind"] == "ServiceAccount")
    spec = daemon(wanted)["spec"]["template"]["spec"]
    assert account["automountServiceAccountToken"] is False and spec["automountServiceAccountToken"] is False
    mounts = {item["name"]: item for item in spec["containers"][0]["volumeMounts"]}
    for volume in spec["volumes"]:
        assert "hostPath" not in volume or (mounts[volume["name"]]["readOnly"] and "type" not in volume["hostPath"])
    assert {(rule["resources"][0], *rule["resourceNames"]) for item in made for rule in item.get("rules", [])} <= {
        ("securitycontextconstraints", "privileged")
    }
    assert spec["tolerations"] == [{"operator": "Exists"}]
    # what is asked for is read back as it was asked for
    read = observer_set(daemon(wanted))
    assert read.nodes == tuple(sorted(set(wanted.nodes)))
    assert {**read.node_selector} == {"kubernetes.io/os": "linux", **wanted.node_selector}
    assert owned_namespace(made[0])[0] == "own"


def template(wanted: Wanted) -> str:
    return observer_set(daemon(wanted)).template


def test_the_order_of_names_and_the_run_make_no_other_pods() -> None:
    assert template(PLAIN) == template(dataclasses.replace(PLAIN, nodes=("worker-1", "worker-2"), run="another"))


@pytest.mark.parametrize(
    "change",
    [{"image": IMAGE.replace("ab", "cd")}, {"nodes": ("worker-1",)}, {"lifetime": 60}, {"pull_secrets": ("a",)}],
)
def test_other_options_make_other_pods(change: dict[str, typing.Any]) -> None:
    assert template(PLAIN) != template(dataclasses.replace(PLAIN, **change))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"namespace": "kube/system"},
            "' is not a valid name of a namespace; write up to 63 lower-case letters, digits and hyphens",
        ),
        (
            {"namespace": ""},
            "' is not a valid name of a namespace; write up to 63 lower-case letters, digits and hyphens",
        ),
        (
            {"image": ""},
            (
                "' is not a valid name of an image; write it with its digest, such as"
                " registry.example/rdma-tools@sha256:..."
            ),
        ),
        (
            {"image": "a b"},
            (
                "' is not a valid name of an image; write it with its digest, such as"
                " registry.example/rdma-tools@sha256:..."
            ),
        ),
        ({"lifetime": 0}, "set the seconds after which a container ends itself, at least 60"),
    ],
)
def test_what_cannot_be_written_is_named(change: dict[str, typing.Any], said: str) -> None:
    with pytest.raises(RenderError, match=said):
        render_objects(dataclasses.replace(PLAIN, **change))


@pytest.mark.parametrize(
    ("image", "exact"),
    [(IMAGE, True), ("a/b:1", False), ("a/b", False), ("a/b:1@sha256:" + "0" * 64, True), ("a@sha256:12", False)],
)
def test_a_digest_is_told_from_a_tag(image: str, exact: bool) -> None:
    assert by_digest(image) is exact
