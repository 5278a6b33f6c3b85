# SPDX-License-Identifier: GPL-3.0-or-later

"""The rules for pulling images on the nodes, from OpenShift's cluster configuration. Created by
_parse/kubernetes/images.py, read by _check/operators/images.py.
"""

from __future__ import annotations

import dataclasses
import re
import typing

Form = typing.Literal["digest", "tag"]
_DIGEST = re.compile(r".+@sha256:[0-9a-f]{64}")


def by_digest(image: str) -> bool:
    """Return whether the name of an image has a digest. The image behind a tag may differ from node to node and change
    over time.
    """
    return _DIGEST.fullmatch(image) is not None


@dataclasses.dataclass(frozen=True)
class ImageReference:
    """The parsed name of an image.

    :ivar repository: path of the image, preceded by the registry's host if the name contains it
    :ivar host: host of the registry, with its port; empty: the node searches its configured registries
    :ivar form: whether the name has a tag or a digest
    :ivar version: digest, which takes precedence over a tag; else the tag
    """

    repository: str
    host: str
    form: Form
    version: str

    @property
    def identity(self) -> str:
        """Return the whole name, in the form of an entry in a list of registries."""
        return f"{self.repository}{'@' if self.form == 'digest' else ':'}{self.version}"


@dataclasses.dataclass(frozen=True)
class MirrorRule:
    """A source of images and the mirrors from which nodes pull instead.

    :ivar owner: kind and name of the object that defines it
    :ivar form: form of image names to which the rule applies: with a tag or with a digest
    :ivar source: host, namespace or repository; ``*.example.com`` is each host below that domain
    :ivar mirrors: names that replace the source, in the order in which they are tried
    :ivar never: whether the source itself must not be contacted, for any form of the name (NeverContactSource)
    """

    owner: str
    form: Form
    source: str
    mirrors: tuple[str, ...]
    never: bool = False


@dataclasses.dataclass(frozen=True)
class RegistrySources:
    """The lists that restrict from where nodes may pull images. Items are hosts, namespaces, repositories and
    ``*.example.com``.

    :ivar allowed: the only sources from which images may be pulled; empty: all are allowed
    :ivar blocked: sources from which images may not be pulled
    :ivar insecure: sources that do not need a certificate trusted by the node
    """

    allowed: tuple[str, ...] = ()
    blocked: tuple[str, ...] = ()
    insecure: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class ImageFacts:
    """The mirror rules and registry lists by which the nodes of the cluster pull images. They are empty for a cluster
    that does not serve these kinds.

    :ivar rules: mirror rules
    :ivar registries: registry lists
    :ivar named: images other than those of the fabrics, by variable; an empty one is the default of its pods
    :ivar errors: reads that the API server refused
    """

    rules: tuple[MirrorRule, ...] = ()
    registries: RegistrySources = RegistrySources()
    named: dict[str, str] = dataclasses.field(default_factory=dict)
    errors: tuple[str, ...] = ()
