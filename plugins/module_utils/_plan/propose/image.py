# SPDX-License-Identifier: GPL-3.0-or-later

"""The image of the observers in a proposal: the digest that the nodes really ran, so that later runs start the same
image on each node.
"""

from __future__ import annotations

import typing

from ..._model.base.text import join_first
from ..._model.intent.proposal import Value
from ..._model.kubernetes.images.pull_rules import ImageReference, by_digest
from ..._model.kubernetes.observers import Observer, ObserversFacts
from ..._parse.kubernetes.images import parse_reference
from ..._parse.kubernetes.resource import ResourceError
from .inputs import NamedImage

#: images and nodes that a note names: a tag that changes with each pull is another one on each node
_MOST_NAMED = 3
#: nodes that must report the same digest. The kubelet of a node reports it, and the image runs privileged on all nodes
_LEAST_NODES = 2
#: how older kubelets begin the name of a pulled image
_PULLED = "docker-pullable://"
_DOCKER, _OFFICIAL = "docker.io", "docker.io/library"


def propose_image(
    named: typing.Optional[NamedImage], observers: typing.Optional[ObserversFacts]
) -> tuple[typing.Optional[Value], tuple[str, ...]]:
    """Return the proposed value of ``rdma_observers_image``, and notes about it for the user.

    The value is the digest that all observers ran, if they ran on at least two nodes: one compromised node must not
    choose the image of the others. If a node reports no digest of the named repository, or the nodes report several,
    the value is the name that the user gave. The value is None if the inventory names the image, because the proposal
    would override later changes of the inventory; the digest is then in a note.

    :param named: image of the observers; None if the user named no image
    :param observers: observers of this run; None if the run had no observers
    """
    if named is None:
        return None, ()
    if by_digest(named.name):
        return (None if named.in_inventory else Value(named.name, "the image of this run")), ()
    nodes = observers.nodes if observers is not None else ()
    ran = {item.node: item.image_id.removeprefix(_PULLED) for item in nodes if item.phase == "ready" and item.image_id}
    images = sorted(set(ran.values()))
    agreed = len(images) == 1 and len(ran) == len(nodes) >= _LEAST_NODES and _is_of(images[0], named.name)
    if agreed and named.in_inventory:
        note = (
            f"rdma_observers_image of the inventory is {named.name}, a tag. All observers ran {images[0]}: write that."
        )
        return None, (note,)
    if agreed:
        return Value(images[0], f"all observers of this run ran this image, which the command named {named.name}"), ()
    note = (
        f"rdma_observers_image is {named.name}, a tag, and the nodes did not report exactly one digest of it:"
        f" {_describe(ran, images, nodes)}. Write the digest into rdma_observers_image;"
        f" skopeo inspect docker://{named.name} prints it."
    )
    return (None if named.in_inventory else Value(named.name, "the image of this run, by a tag")), (note,)


def _describe(ran: typing.Mapping[str, str], images: typing.Sequence[str], nodes: typing.Sequence[Observer]) -> str:
    """Return the images that the nodes reported, and the nodes that reported none, as text.

    :param ran: image of each observer that is ready, by node
    :param images: these images, each once
    :param nodes: all observers of the run
    """
    if not images:
        return "they did not report an image"
    seen = f"they ran {join_first(images, _MOST_NAMED)}"
    silent = sorted(item.node for item in nodes if item.node not in ran)
    if silent:
        return f"{seen}, and {join_first(silent, _MOST_NAMED)} did not report an image"
    return f"{seen}, on one node, and a proposal needs two" if len(nodes) < _LEAST_NODES else seen


def _is_of(image: str, named: str) -> bool:
    """Return whether an image has a digest and belongs to the named repository. A container runtime adds a registry to
    a name without a registry, so such a name matches several registries. A name with a registry must match exactly.

    :param image: image that a node reports
    :param named: image that the user named
    """
    try:
        found, wanted = parse_reference(image), parse_reference(named)
    except ResourceError:
        return False
    if not by_digest(image) or not found.host:
        return False
    return found.repository in ((wanted.repository,) if wanted.host else _list_full_names(found, wanted))


def _list_full_names(found: ImageReference, wanted: ImageReference) -> tuple[str, ...]:
    """Return the repositories that a container runtime may have meant by a name without a registry.

    :param found: image that a node reports
    :param wanted: image without a registry
    """
    full = f"{found.host}/{wanted.repository}"
    return (full, f"{_OFFICIAL}/{wanted.repository}") if found.host == _DOCKER else (full,)
