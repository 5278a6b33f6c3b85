# SPDX-License-Identifier: GPL-3.0-or-later

"""An image that is named by tag is whatever the registry says: it is told, and refused where the user asks for
that."""

from __future__ import annotations

import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._check.validate import check as validate
from ansible_collections.linerate.rdma.plugins.module_utils._check.validate.images import check
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import Finding, judge
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent

DIGEST = "registry.example/rdma-tools@sha256:" + "0" * 64
FABRIC: dict[str, typing.Any] = {
    "name": "storage",
    "profile": "sriov_ethernet",
    "select": {"hcas_per_node": 1, "vendor": "15b3", "device": "1021"},
    "virtual_functions": 4,
    "resource_name": "mlx",
    "network": {"name": "net", "namespace": "test"},
    "ipam": {"type": "whereabouts", "range": "10.0.0.0/24"},
}


def judged(image: str, strict: bool, variables: typing.Optional[dict[str, str]] = None) -> dict[str, Finding]:
    pods = {"pods": {"image": image}} if image else {}
    return {item.subject: item for item in check(parse_intent([{**FABRIC, **pods}]), variables or {}, strict)}


@pytest.mark.parametrize(
    "image",
    [
        "registry.example/rdma-tools:1",
        "registry.example/rdma-tools",
        f"registry.example/rdma-tools:1@sha256:{'0' * 63}",
        "",
    ],
)
def test_a_tag_is_named_and_an_error_where_the_user_is_strict(image: str) -> None:
    """The empty one is the default of the intent."""
    place = "rdma_fabrics[0].pods.image"
    assert [judged(image, strict)[place].status for strict in (False, True)] == ["pass", "fail"]
    assert "by tag" in judged(image, False)[place].measured
    found = judged(image, True)[place]
    assert f"docker://{found.measured} " in found.remedy and found.remedy.startswith(
        "Run skopeo inspect --format '{{.Name}}@{{.Digest}}' "
    )


def test_a_digest_passes() -> None:
    assert [judged(DIGEST, strict)["rdma_fabrics[0].pods.image"].status for strict in (False, True)] == ["pass", "pass"]
    assert judged(DIGEST.replace("@", ":1@"), True)["rdma_fabrics[0].pods.image"].status == "pass"


def test_the_image_of_the_observers_counts_and_the_cluster_s_own_has_a_digest() -> None:
    found = judged(DIGEST, True, {"rdma_observers_image": "registry.example/rdma-tools:1"})
    assert {subject: item.status for subject, item in found.items()} == {
        "rdma_observers_image": "fail",
        "rdma_fabrics[0].pods.image": "pass",
    }
    assert set(judged(DIGEST, True, {"rdma_observers_image": ""})) == {"rdma_fabrics[0].pods.image"}


@pytest.mark.parametrize("strict", [False, True])
def test_the_gate_of_validate_is_closed_by_it(strict: bool) -> None:
    intent = parse_intent([FABRIC])
    assert judge(validate.check(intent, validate.Facts(("worker-1",), strict_images=strict)), ()).open is not strict
