# SPDX-License-Identifier: GPL-3.0-or-later

"""From where images are pulled: a kind that is not served has no objects, and one that may not be read is an error."""

from __future__ import annotations

import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.images.pull_rules import (
    ImageFacts,
    MirrorRule,
    RegistrySources,
)
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.cluster_reader import Listing
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.errors import ApiError
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.images.mirrors import observe

FORBIDDEN = ApiError(403, "Forbidden", "may not list", "GET")
IMAGE = "Image.config.openshift.io"


class Api:
    """Each kind answers with its list or with an error; ``groups`` are those that are served, or the error of who asks
    for them."""

    def __init__(self, groups: typing.Any = (), **kinds: typing.Any) -> None:
        self.kinds = {**kinds, IMAGE: kinds.get("Image", [])} if "Image" in kinds else kinds
        self.groups = groups

    def list(self, kind: str) -> Listing:
        answer = self.kinds.get(kind, ApiError(404, "NotFound", "unknown", kind))
        if isinstance(answer, Exception):
            raise answer
        return Listing(tuple(answer), "1")

    def serves(self, group: str) -> bool:
        if isinstance(self.groups, Exception):
            raise self.groups
        return group in self.groups


def look(api: Api) -> ImageFacts:
    return observe(typing.cast(Cluster, api), {"rdma_job.image": "x"})


def of(kind: str, name: str = "site", **spec: typing.Any) -> dict[str, typing.Any]:
    return {"kind": kind, "metadata": {"name": name}, "spec": spec}


def test_a_cluster_of_another_kind_has_no_rules() -> None:
    assert look(Api()) == ImageFacts(named={"rdma_job.image": "x"})


def test_rules_of_all_kinds_and_the_lists_of_the_image_named_cluster() -> None:
    pair = {"source": "quay.io", "mirrors": ["m.example"]}
    seen = look(
        Api(
            ImageDigestMirrorSet=[of("ImageDigestMirrorSet", imageDigestMirrors=[pair])],
            ImageContentSourcePolicy=[of("ImageContentSourcePolicy", repositoryDigestMirrors=[pair])],
            Image=[
                of("Image", "other", registrySources={"blockedRegistries": ["quay.io"]}),
                of("Image", "cluster", registrySources={"allowedRegistries": ["m.example"]}),
            ],
        )
    )
    owners = ("ImageDigestMirrorSet site", "ImageContentSourcePolicy site")
    assert seen.rules == tuple(MirrorRule(owner, "digest", "quay.io", ("m.example",)) for owner in owners)
    assert (seen.registries, seen.errors) == (RegistrySources(allowed=("m.example",)), ())


@pytest.mark.parametrize("groups", [("config.openshift.io",), FORBIDDEN])
def test_a_kind_that_may_not_be_read_is_an_error(groups: typing.Any) -> None:
    assert look(Api(groups, ImageTagMirrorSet=FORBIDDEN)).errors == (FORBIDDEN.seen,)


def test_who_may_not_list_a_kind_that_nobody_serves_misses_nothing() -> None:
    assert (
        look(Api(("apps",), ImageTagMirrorSet=FORBIDDEN, ImageContentSourcePolicy=FORBIDDEN, Image=FORBIDDEN)).errors
        == ()
    )


def test_an_object_that_is_none_is_an_error() -> None:
    (error,) = look(Api(ImageTagMirrorSet=[of("ImageTagMirrorSet", imageTagMirrors=[{"mirrors": []}])])).errors
    assert "ImageTagMirrorSet site" in error


@pytest.mark.parametrize(
    "api",
    [
        Api(ImageTagMirrorSet=ApiError(0, "Unreachable", "gone", "GET")),
        Api(ApiError(0, "x", "gone", "GET"), Image=FORBIDDEN),
    ],
)
def test_a_server_that_is_gone_is_no_answer(api: Api) -> None:
    with pytest.raises(ApiError, match="gone"):
        look(api)
