# SPDX-License-Identifier: GPL-3.0-or-later

"""The image of the observers in a proposal: the digest that the nodes really ran, so that later runs start the same
image on each node.
"""

from __future__ import annotations

import typing

from ..._model.base.text import join_first
from ..._model.intent.proposal import Value
from ..._model.kubernetes.images.pull_rules import by_digest
from ..._model.kubernetes.observers import ObserversFacts
from .inputs import NamedImage

#: images that a note names: a tag that changes with each pull is another one on each node
_MOST_IMAGES = 3
#: how older kubelets begin the name of a pulled image
_PULLED = "docker-pullable://"


def propose_image(
    named: typing.Optional[NamedImage], observers: typing.Optional[ObserversFacts]
) -> tuple[typing.Optional[Value], tuple[str, ...]]:
    """Return the proposed ``rdma_observers_image``, and notes about it. It is the digest that all observers ran. If the
    nodes report no digest of the named repository, or several, it remains as it was named. An image that the inventory
    names is not proposed, because the file of the proposal would override a later change of it; only a note has its
    digest.

    :param named: image of the observers; None if the user named none
    :param observers: observers of this run; None if there were none
    """
    if named is None:
        return None, ()
    if by_digest(named.name):
        return (None if named.in_inventory else Value(named.name, "the image of this run")), ()
    nodes = observers.nodes if observers is not None else ()
    ran = sorted({item.image_id.removeprefix(_PULLED) for item in nodes if item.phase == "ready" and item.image_id})
    repository = _repository_of(named.name)
    pinned = [image for image in ran if by_digest(image) and _is_of(image.partition("@")[0], repository)]
    if len(ran) == len(pinned) == 1 and named.in_inventory:
        note = (
            f"rdma_observers_image of the inventory is {named.name}, a tag. All observers ran {pinned[0]}: write that."
        )
        return None, (note,)
    if len(ran) == len(pinned) == 1:
        return Value(pinned[0], f"all observers of this run ran this image, which the command named {named.name}"), ()
    seen = f"they ran {join_first(ran, _MOST_IMAGES)}" if ran else "they did not report an image"
    note = (
        f"rdma_observers_image is {named.name}, a tag, and the nodes did not report exactly one digest of it: {seen}."
        f" Write the digest into rdma_observers_image; skopeo inspect docker://{named.name} prints it."
    )
    return (None if named.in_inventory else Value(named.name, "the image of this run, by a tag")), (note,)


def _repository_of(named: str) -> str:
    """Return the repository in the name of an image, without its tag. The port of a registry is not a tag."""
    path, _colon, tag = named.rpartition(":")
    return path if path and "/" not in tag else named


def _is_of(repository: str, named: str) -> bool:
    """Return whether a repository is the named one. A container runtime adds a registry to a name that has none."""
    return repository == named or repository.endswith(f"/{named}")
