# SPDX-License-Identifier: GPL-3.0-or-later

"""The mirror of a disconnected site (``rdma_cluster.mirror``): the names that images and charts have on it.

Two layouts are supported: that of ``skopeo sync --scoped``, which keeps the registry's host below one path, and that of
``oc-mirror`` and of ImageDigestMirrorSets, in which a source is replaced.
"""

from __future__ import annotations

import dataclasses
import typing

#: source: what takes its place. The source EVERYTHING keeps each name whole, and puts the mirror in front
Mirror = typing.Mapping[str, str]
EVERYTHING = "*"
_DOCKER = "docker.io/"


def on_mirror(name: str, mirror: Mirror) -> str:
    """Return the name of an image, or of a folder of images, on a mirror. Return the name unchanged if it has no
    registry, is already on the mirror, or has no mirror.

    :param name: ``registry/path``, with a tag, a digest or neither
    """
    host, slash, path = name.partition("/")
    if (
        not slash
        or not (set(".:") & set(host) or host == "localhost")
        or any(_is_below_place(name, place) for place in mirror.values())
    ):
        return name
    if name.startswith(_DOCKER) and "/" not in path:
        name = f"{_DOCKER}library/{path}"
    sources = [source for source in mirror if source != EVERYTHING and _is_below_place(name, source)]
    if sources:
        source = max(sources, key=len)
        return f"{mirror[source]}{name[len(source) :]}"
    return f"{mirror[EVERYTHING]}/{name}" if EVERYTHING in mirror else name


def _is_below_place(name: str, place: str) -> bool:
    # what follows a host alone is its port, and so another host
    return name == place or (name.startswith(place) and name[len(place)] in ("/:@" if "/" in place else "/"))


#: what a registry says of one image: it has it; it has none; it does not let us look; it gives no answer, or none that
#: says anything
State = typing.Literal["there", "missing", "refused", "silent"]


@dataclasses.dataclass(frozen=True)
class MirrorAnswer:
    """The answer of the mirror's registry about one image or chart.

    :ivar source: original name
    :ivar place: name on the mirror, from which nodes or Helm pull it
    :ivar needed_by: components that pull it: an operator, the pods of a fabric, a variable
    :ivar put: commands that copy it to the mirror, in order
    :ivar state: ``there``, ``missing``, ``refused`` (the registry denies access) or ``silent`` (no usable answer)
    :ivar said: message of the registry about a missing image, or the reason why the registry did not answer. Never a
        secret
    :ivar by_system: whether an operator appends the operating system of the node to the tag. A tag on the mirror that
        begins with this tag and a hyphen then counts as the image
    """

    source: str
    place: str
    needed_by: tuple[str, ...]
    put: tuple[str, ...]
    state: State
    said: str = ""
    by_system: bool = False


@dataclasses.dataclass(frozen=True)
class MirrorFacts:
    """The answers of the mirror's registry about all images and charts of a run (images_info).

    :ivar answers: answer for each image and chart
    :ivar unlisted: pulls of a run that could not be queried, each with cause and next step
    :ivar elsewhere: images whose name is fixed in a chart and not changed by its values, each with its operator
    """

    answers: tuple[MirrorAnswer, ...] = ()
    unlisted: tuple[str, ...] = ()
    elsewhere: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Return whether the mirror is proven to have everything that a run would pull."""
        return not self.unlisted and not self.elsewhere and all(answer.state == "there" for answer in self.answers)
