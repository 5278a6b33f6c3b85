# SPDX-License-Identifier: GPL-3.0-or-later

"""All objects of all fabrics, each by the renderer of its kind. A new profile gets its row here."""

from __future__ import annotations

import dataclasses
import json
import typing

from ..._model.intent.intent import ClusterIntent, Fabric, Intent
from ..._model.intent.profiles import HOST_DEVICE, attachment_kind, find_traits
from ..cluster.names import MANAGED_BY, Members, Object, RenderError
from . import attachments, nvidia, sriov
from .ipam import render_pools


def _render_host_device(fabric: Fabric, cluster: ClusterIntent) -> Object:
    """A function out of a pool is NVIDIA's operator's; an interface by its name needs nobody."""
    return (nvidia.render_network if attachment_kind(fabric) == HOST_DEVICE else attachments.render_host_device)(
        fabric, cluster
    )


#: from which object pods get their interface; pods of a profile that is not here need none
RENDERERS: dict[str, typing.Callable[[Fabric, ClusterIntent], Object]] = {
    "sriov_infiniband": sriov.render_network,
    "sriov_ethernet": sriov.render_network,
    "rdma_shared": nvidia.render_network,
    "host_device": _render_host_device,
    "macvlan": attachments.render_macvlan,
    "ipoib": nvidia.render_network,
}


def render_namespace(name: str, fabrics: typing.Iterable[Fabric] = ()) -> Object:
    """Render a namespace of jobs. It keeps its own level of Pod Security, unless the intent says one with a reason.

    :param fabrics: whose networks are in it
    """
    said = next((fabric.network.pod_security for fabric in fabrics if fabric.network.pod_security is not None), None)
    level = {"pod-security.kubernetes.io/enforce": said.enforce} if said is not None else {}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {**MANAGED_BY, **level}}}


def render_plugin(fabric: Fabric, cluster: ClusterIntent) -> Object:
    """Render what the first CNI plugin of a fabric's NetworkAttachmentDefinition must contain to be of this intent;
    nothing for virtual functions, which have their own means."""
    if find_traits(fabric).functions or fabric.profile not in RENDERERS:
        return {}
    made = RENDERERS[fabric.profile](fabric, cluster)
    if "config" in made["spec"]:
        return dict(json.loads(made["spec"]["config"])["plugins"][0])
    said = {key: made["spec"][key] for key in ("master", "mode", "mtu") if key in made["spec"]}
    return {**said, "ipam": json.loads(made["spec"]["ipam"])}


@dataclasses.dataclass(frozen=True)
class Rendered:
    """:ivar objects: each with its fabric's name (empty for what fabrics share), in the order in which they can be
    applied
    :ivar unmade: fabrics that could not be written, each with the reason
    """

    objects: tuple[tuple[str, Object], ...]
    unmade: dict[str, str]


def render(fabrics: typing.Iterable[Fabric], cluster: ClusterIntent, members: typing.Mapping[str, Members]) -> Rendered:
    """Render all objects of all fabrics. One fabric that cannot be written does not keep the others back.

    :param members: of each fabric by its name
    """
    fabrics = tuple(fabrics)
    names = dict.fromkeys(fabric.network.namespace for fabric in fabrics)
    objects: list[tuple[str, Object]] = [
        ("", render_namespace(name, [fabric for fabric in fabrics if fabric.network.namespace == name]))
        for name in names
    ]
    functions = [fabric for fabric in fabrics if find_traits(fabric).functions]
    objects += [("", pool) for pool in sriov.render_node_pools(cluster)] if functions else []
    unmade: dict[str, str] = {}
    for fabric in functions:
        try:
            objects.extend(
                (fabric.name, policy) for policy in sriov.render_policies(fabric, cluster, members.get(fabric.name, {}))
            )
        except RenderError as error:
            unmade[fabric.name] = str(error)
    objects.extend(("", policy) for policy in nvidia.render_nic_policy(fabrics, cluster))
    objects.extend((fabric.name, pool) for fabric in fabrics for pool in render_pools(fabric, cluster))
    for fabric in (fabric for fabric in fabrics if fabric.profile in RENDERERS):
        try:
            objects.append((fabric.name, RENDERERS[fabric.profile](fabric, cluster)))
        except RenderError as error:
            unmade[fabric.name] = str(error)
    return Rendered(tuple(objects), unmade)


def without(objects: typing.Sequence[Object], intent: Intent, held: typing.Container[str]) -> list[Object]:
    """Objects that may be applied, each with its fabric's name: what fabrics share is written anew, without those that
    are held back."""
    kept = [item for item in objects if item["object"]["kind"] != "NicClusterPolicy"]
    there = {item["fabric"] for item in kept}
    policy = nvidia.render_nic_policy(
        [fabric for fabric in intent.fabrics if fabric.name in there and fabric.name not in held], intent.cluster
    )
    # before what needs it, behind the namespaces
    first = next((index for index, item in enumerate(kept) if item["fabric"]), len(kept))
    return [*kept[:first], *({"fabric": "", "object": item} for item in policy), *kept[first:]]
