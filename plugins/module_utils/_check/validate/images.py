# SPDX-License-Identifier: GPL-3.0-or-later

"""Check that each image that a run starts is named by digest. Check id: ``validate.images``."""

from __future__ import annotations

import typing

from ..._model.intent.intent import Intent
from ..._model.kubernetes.images.pull_rules import by_digest
from ..._model.run.findings import Finding, build_pass
from .refusal import refuse_value

_EXPECTED = "a name with its digest: registry.example/rdma-tools@sha256:..."


def check(intent: Intent, variables: typing.Mapping[str, str], strict: bool) -> typing.Iterator[Finding]:
    """Yield a finding for each variable and each key of the intent that names an image.

    It fails if ``strict`` is set and the image is not named by digest, and passes otherwise.

    :param variables: images besides those of the intent, by variable. An empty name is skipped: the cluster's own image
        is used, which has a digest
    :param strict: whether an image without a digest is a failure; otherwise it passes
    """
    for variable, image in variables.items():
        if image:
            yield _check_image(variable, image, strict)
    for index, fabric in enumerate(intent.fabrics):
        yield _check_image(f"rdma_fabrics[{index}].pods.image", fabric.pods.image, strict)
    if intent.cluster.collectives is not None:
        yield _check_image("rdma_cluster.collectives.image", intent.cluster.collectives.image, strict)


def _check_image(place: str, image: str, strict: bool) -> Finding:
    if by_digest(image):
        return build_pass("validate.images", place, image, _EXPECTED)
    if not strict:
        return build_pass(
            "validate.images",
            place,
            f"{image}, by tag: the registry determines the image",
            "any name, because rdma_strict_images is not set",
        )
    why = (
        "rdma_strict_images: true requires a digest. A tag can refer to different images on different nodes or at"
        " different times, and the image runs as root on the nodes or in pods."
    )
    remedy = (
        f"Run skopeo inspect --format '{{{{.Name}}}}@{{{{.Digest}}}}' docker://{image} to print the name with its"
        f" digest. Set {place} to this name."
    )
    return refuse_value("images", place, image, _EXPECTED, why, remedy)
