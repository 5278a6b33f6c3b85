# SPDX-License-Identifier: GPL-3.0-or-later

"""From where nodes may pull images, as OpenShift's cluster configuration says. Filled by _parse/kubernetes/images.py,
read by _check/operators/images.py."""

from __future__ import annotations

import dataclasses
import re
import typing

Form = typing.Literal["digest", "tag"]
_DIGEST = re.compile(r".+@sha256:[0-9a-f]{64}")


def by_digest(image: str) -> bool:
    """Return whether the name of an image has a digest: what a tag names may differ from node to node, and from day to
    day."""
    return _DIGEST.fullmatch(image) is not None


@dataclasses.dataclass(frozen=True)
class ImageReference:
    """The name of an image, in full as far as its text says it.

    :ivar repository: with the registry's host in front; without one where the text names none
    :ivar host: of the registry, with its port; empty: the node searches its registries for the name
    :ivar version: digest, which counts where there is a tag as well; else the tag
    """

    repository: str
    host: str
    form: Form
    version: str

    @property
    def identity(self) -> str:
        """Return the whole name, as a list of registries may hold it."""
        return f"{self.repository}{'@' if self.form == 'digest' else ':'}{self.version}"


@dataclasses.dataclass(frozen=True)
class MirrorRule:
    """One source and its mirrors.

    :ivar owner: kind and name of the object that has it
    :ivar form: of the names that the rule is for
    :ivar source: host, namespace or repository; ``*.example.com`` is each host below that domain
    :ivar mirrors: what takes the source's place in the name, the one to try first in front
    :ivar never: the source itself may not be contacted, whatever the form of the name (NeverContactSource)
    """

    owner: str
    form: Form
    source: str
    mirrors: tuple[str, ...]
    never: bool = False


@dataclasses.dataclass(frozen=True)
class RegistrySources:
    """Lists of hosts, namespaces, repositories and ``*.example.com``.

    :ivar allowed: nothing else may be pulled; empty: everything may
    :ivar blocked: may not be pulled
    :ivar insecure: may be pulled without a certificate that the node trusts
    """

    allowed: tuple[str, ...] = ()
    blocked: tuple[str, ...] = ()
    insecure: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class ImageFacts:
    """The rules and lists by which the cluster pulls images. A cluster that does not serve these kinds has no rule and
    no list.

    :ivar named: images beside those of the fabrics, each by the variable that names it; an empty one is the default of
        its pods
    :ivar errors: what the API server did not let us read
    """

    rules: tuple[MirrorRule, ...] = ()
    registries: RegistrySources = RegistrySources()
    named: dict[str, str] = dataclasses.field(default_factory=dict)
    errors: tuple[str, ...] = ()
