# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse the names of images, and the kinds of OpenShift that configure the registries of images.

Sources: openshift/api config/v1 types_image_digest_mirror_set.go, types_image_tag_mirror_set.go and types_image.go,
operator/v1alpha1 types_image_content_source_policy.go; distribution/reference reference.go (the grammar of names) and
normalize.go (splitDockerDomain).
"""

from __future__ import annotations

import re
import typing

from ..._model.kubernetes.images.pull_rules import Form, ImageReference, MirrorRule, RegistrySources
from .resource import Resource, ResourceError, items_of, mapping_at, name_of, texts_of

#: kinds of mirror rules: the list of the rules in spec, and the form of the names that they are for
RULES: typing.Mapping[str, tuple[str, Form]] = {
    "ImageDigestMirrorSet": ("imageDigestMirrors", "digest"),
    "ImageTagMirrorSet": ("imageTagMirrors", "tag"),
    # the older one of digests, which machine config operators turn into the first
    "ImageContentSourcePolicy": ("repositoryDigestMirrors", "digest"),
}
_REFERENCE = re.compile(
    r"(?:(?P<host>[A-Za-z0-9.-]+(?::[0-9]+)?|\[[0-9A-Fa-f:]+\](?::[0-9]+)?)/)?(?P<path>[a-z0-9](?:[a-z0-9._/-]*[a-z0-9])?)"
    r"(?::(?P<tag>\w[\w.-]{0,127}))?(?:@(?P<digest>[A-Za-z][A-Za-z0-9.+_-]*:[0-9A-Fa-f]{32,}))?",
    re.ASCII,
)
#: how a name of Docker's own registry may begin; its images without a namespace are in this one
_DOCKER, _ALIAS, _OFFICIAL = "docker.io", "index.docker.io", "library"


def parse_reference(text: str) -> ImageReference:
    """Parse the name of an image, ``[host[:port]/]path[:tag][@digest]``. A digest has precedence over a tag, and the
    default tag is ``latest``. The host is empty if the name has none.

    :raises ResourceError: the text is not the name of an image
    """
    found = _REFERENCE.fullmatch(text)
    if found is None:
        raise ResourceError(f"'{text[:200]}' is not a name of an image")
    host, path, digest = found["host"] or "", found["path"], found["digest"]
    # any other first part is a namespace, of a registry that is not named
    if host and not set(".:") & set(host) and host != "localhost" and host == host.lower():
        host, path = "", f"{host}/{path}"
    if host in (_DOCKER, _ALIAS):
        host, path = _DOCKER, path if "/" in path else f"{_OFFICIAL}/{path}"
    name = f"{host}/{path}" if host else path
    return (
        ImageReference(name, host, "digest", digest)
        if digest
        else ImageReference(name, host, "tag", found["tag"] or "latest")
    )


def mirror_rules(resource: Resource) -> tuple[MirrorRule, ...]:
    """Return the mirror rules of an ImageDigestMirrorSet or ImageTagMirrorSet (config.openshift.io/v1), or an
    ImageContentSourcePolicy (operator.openshift.io/v1alpha1). A rule names a source registry or repository and its
    mirrors.

    :raises ResourceError: the object is of another kind or form, or a rule has no source
    """
    name, kind = name_of(resource), str(resource.get("kind"))
    what = f"{kind} {name}"
    if kind not in RULES:
        raise ResourceError(f"{what} has no mirror rules")
    key, form = RULES[kind]
    rules = []
    for item in items_of(mapping_at(resource, "spec"), key, what):
        source = item.get("source")
        if not isinstance(source, str) or not source:
            raise ResourceError(f"{what}: a rule of {key} has no source")
        rules.append(
            MirrorRule(
                what,
                form,
                source,
                texts_of(item, "mirrors", what),
                item.get("mirrorSourcePolicy") == "NeverContactSource",
            )
        )
    return tuple(rules)


def registry_sources(resource: Resource) -> RegistrySources:
    """Parse the allowed, blocked and insecure registries of an Image (config.openshift.io/v1). A list that is not set
    is empty. OpenShift uses only the Image with the name ``cluster``.

    :raises ResourceError: the object is not a valid Image
    """
    what = f"Image {name_of(resource)}"
    lists = mapping_at(resource, "spec", "registrySources")
    return RegistrySources(*(texts_of(lists, f"{name}Registries", what) for name in ("allowed", "blocked", "insecure")))
