# SPDX-License-Identifier: GPL-3.0-or-later

"""The mirror of a disconnected site (``rdma_cluster.mirror``): the one place that says under which name it has an image
or a chart.

Two layouts: that of ``skopeo sync --scoped``, which keeps the registry's host below one place, and that of
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
    """Return the name that an image, or a folder of images, has on a mirror. What names no registry, is on the mirror
    already, or has none, keeps its name.

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
    """The registry's answer for one image or chart.

    :ivar source: its own name
    :ivar place: its name there, by which nodes or Helm pull it
    :ivar needed_by: what pulls it
    :ivar put: commands that put it there, in their order
    :ivar said: of what is not there: the registry's words, or why there are none. Never a secret
    :ivar by_system: each tag that begins so was looked for
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
    """Answer of images_info that has asked the mirror.

    :ivar unlisted: what a run would pull and nobody could ask for, each with the cause and the next step
    :ivar elsewhere: images that a chart names in a way that its values do not change, each with its operator
    """

    answers: tuple[MirrorAnswer, ...] = ()
    unlisted: tuple[str, ...] = ()
    elsewhere: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Return whether all that a run would pull is proven to be there."""
        return not self.unlisted and not self.elsewhere and all(answer.state == "there" for answer in self.answers)
