# SPDX-License-Identifier: GPL-3.0-or-later

"""Names of images as container runtimes read them, and what OpenShift's objects say of where they are pulled from."""

from __future__ import annotations

import typing

import hypothesis
import hypothesis.strategies as some
import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.images.pull_rules import (
    ImageReference,
    MirrorRule,
    RegistrySources,
)
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.images import (
    mirror_rules,
    parse_reference,
    registry_sources,
)
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.resource import ResourceError

DIGEST = f"sha256:{'a' * 64}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("quay.io/site/tools:1", ImageReference("quay.io/site/tools", "quay.io", "tag", "1")),
        ("quay.io/site/tools", ImageReference("quay.io/site/tools", "quay.io", "tag", "latest")),
        (f"quay.io/site/tools@{DIGEST}", ImageReference("quay.io/site/tools", "quay.io", "digest", DIGEST)),
        (f"quay.io/site/tools:1@{DIGEST}", ImageReference("quay.io/site/tools", "quay.io", "digest", DIGEST)),
        (
            "mirror.example:5000/tools",
            ImageReference("mirror.example:5000/tools", "mirror.example:5000", "tag", "latest"),
        ),
        ("mirror.example:5000/tools:2", ImageReference("mirror.example:5000/tools", "mirror.example:5000", "tag", "2")),
        ("mirror:5000/tools", ImageReference("mirror:5000/tools", "mirror:5000", "tag", "latest")),
        ("localhost/absent:1", ImageReference("localhost/absent", "localhost", "tag", "1")),
        ("pytorch/pytorch:2.13.0", ImageReference("pytorch/pytorch", "", "tag", "2.13.0")),
        ("debian:12", ImageReference("debian", "", "tag", "12")),
        ("docker.io/debian:12", ImageReference("docker.io/library/debian", "docker.io", "tag", "12")),
        ("index.docker.io/pytorch/pytorch", ImageReference("docker.io/pytorch/pytorch", "docker.io", "tag", "latest")),
        ("site/tools", ImageReference("site/tools", "", "tag", "latest")),
        ("[fd00::1]:5000/tools:1", ImageReference("[fd00::1]:5000/tools", "[fd00::1]:5000", "tag", "1")),
    ],
)
def test_names_of_images(text: str, expected: ImageReference) -> None:
    assert parse_reference(text) == expected


PART = some.from_regex(r"[a-z0-9]+([._-][a-z0-9]+)?", fullmatch=True)
HOST = some.one_of(
    some.just("localhost"),
    some.from_regex(r"[a-z0-9]+\.[a-z]{2,4}(:[0-9]{1,5})?", fullmatch=True).filter(lambda host: host != "docker.io"),
)
VERSION = some.one_of(some.from_regex(r":[0-9A-Za-z_][0-9A-Za-z_.-]{0,20}", fullmatch=True), some.just(f"@{DIGEST}"))


@hypothesis.given(HOST, some.lists(PART, min_size=1, max_size=3), VERSION)
def test_a_full_name_comes_back_as_it_was(host: str, path: list[str], version: str) -> None:
    name = "/".join([host, *path])
    found = parse_reference(name + version)
    assert (found.host, found.repository, found.identity) == (host, name, name + version)
    assert found.form == ("digest" if version.startswith("@") else "tag")


@hypothesis.given(some.text() | some.from_regex(r"[a-z./:@-]{1,12}", fullmatch=True))
def test_any_text_is_a_name_or_an_error(text: str) -> None:
    try:
        found = parse_reference(text)
    except ResourceError as error:
        assert "' is not a name of an image" in str(error)
    else:
        assert found.version and found.repository.startswith(found.host) and found.repository.isascii()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "quay.io/",
        "quay.io/Site/tools",
        "https://quay.io/site/tools",
        "a b",
        f"quay.io/a@sha256:{'a' * 31}",
        "quay.io/a:",
        "a\n",
    ],
)
def test_what_is_no_name_is_an_error(text: str) -> None:
    with pytest.raises(ResourceError, match="' is not a name of an image"):
        parse_reference(text)


def of(kind: str, **spec: typing.Any) -> dict[str, typing.Any]:
    return {"kind": kind, "metadata": {"name": "site"}, "spec": spec}


def test_rules_of_each_kind() -> None:
    pair = {"source": "quay.io/site", "mirrors": ["a.example/site", "b.example"]}
    never = {"source": "quay.io", "mirrors": ["a.example"], "mirrorSourcePolicy": "NeverContactSource"}
    allow = {"source": "quay.io", "mirrorSourcePolicy": "AllowContactingSource"}
    assert mirror_rules(of("ImageDigestMirrorSet", imageDigestMirrors=[pair, never, allow])) == (
        MirrorRule("ImageDigestMirrorSet site", "digest", "quay.io/site", ("a.example/site", "b.example")),
        MirrorRule("ImageDigestMirrorSet site", "digest", "quay.io", ("a.example",), True),
        MirrorRule("ImageDigestMirrorSet site", "digest", "quay.io", ()),
    )
    (tag,) = mirror_rules(of("ImageTagMirrorSet", imageTagMirrors=[never]))
    assert (tag.form, tag.never) == ("tag", True)
    (old,) = mirror_rules(of("ImageContentSourcePolicy", repositoryDigestMirrors=[pair]))
    assert (old.form, old.never, old.owner) == ("digest", False, "ImageContentSourcePolicy site")
    assert mirror_rules(of("ImageTagMirrorSet")) == ()


@pytest.mark.parametrize(
    "resource",
    [
        of("ImageDigestMirrorSet", imageDigestMirrors=[{"mirrors": ["a.example"]}]),
        of("ImageDigestMirrorSet", imageDigestMirrors=[{"source": ""}]),
        of("ImageDigestMirrorSet", imageDigestMirrors="quay.io"),
        of("ImageDigestMirrorSet", imageDigestMirrors=[{"source": "quay.io", "mirrors": "a.example"}]),
        of("Image"),
        {"kind": "ImageDigestMirrorSet"},
    ],
)
def test_what_is_no_rule_is_an_error(resource: dict[str, typing.Any]) -> None:
    with pytest.raises(ResourceError):
        mirror_rules(resource)


def test_lists_of_registries() -> None:
    lists = {
        "allowedRegistries": ["quay.io"],
        "blockedRegistries": ["docker.io", "*.example"],
        "insecureRegistries": ["m:5000"],
    }
    assert registry_sources(of("Image", registrySources=lists)) == RegistrySources(
        ("quay.io",), ("docker.io", "*.example"), ("m:5000",)
    )
    assert registry_sources(of("Image")) == RegistrySources()
    with pytest.raises(ResourceError, match="Image site: blockedRegistries is not a list"):
        registry_sources(of("Image", registrySources={"blockedRegistries": "docker.io"}))
