# SPDX-License-Identifier: GPL-3.0-or-later

"""Renders all objects of all fabrics, each by the renderer of its profile. A new profile needs a row in
``RENDERERS``.
"""

from __future__ import annotations

import dataclasses
import json
import typing

from ..._model.base.load import to_data
from ..._model.base.marks import (
    DEFAULT_INTENT,
    NODES_ANNOTATION,
    build_user_label,
    format_nodes,
    mark_intent,
    replace_labels,
)
from ..._model.intent.intent import ClusterIntent, Fabric, Intent
from ..._model.intent.profiles import HOST_DEVICE, attachment_kind, find_traits, needs_nic_policy
from ..cluster.names import MANAGED_BY, Members, Object, RenderError
from . import attachments, nvidia, sriov
from .ipam import render_pools


def _render_host_device(fabric: Fabric, cluster: ClusterIntent) -> Object:
    """Render the network of the profile ``host_device``: a HostDeviceNetwork of NVIDIA's operator for functions from a
    pool, else a NetworkAttachmentDefinition for an interface given by name.
    """
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
    """Render a namespace for pods of jobs. It has a Pod Security level only if the intent sets one with a reason.
    Otherwise the level of an existing namespace is not changed.

    :param fabrics: fabrics whose networks are in the namespace
    """
    said = next((fabric.network.pod_security for fabric in fabrics if fabric.network.pod_security is not None), None)
    level = {"pod-security.kubernetes.io/enforce": said.enforce} if said is not None else {}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {**MANAGED_BY, **level}}}


def render_plugin(fabric: Fabric, cluster: ClusterIntent) -> Object:
    """Return the values that the first CNI plugin of a fabric's NetworkAttachmentDefinition must have if it was created
    from this intent, by key. Return an empty mapping for fabrics with virtual functions, whose attachments are compared
    elsewhere, and for profiles without a network.
    """
    if find_traits(fabric).functions or fabric.profile not in RENDERERS:
        return {}
    made = RENDERERS[fabric.profile](fabric, cluster)
    if "config" in made["spec"]:
        return dict(json.loads(made["spec"]["config"])["plugins"][0])
    said = {key: made["spec"][key] for key in ("master", "mode", "mtu") if key in made["spec"]}
    return {**said, "ipam": json.loads(made["spec"]["ipam"])}


@dataclasses.dataclass(frozen=True)
class Rendered:
    """The rendered objects of all fabrics, and the fabrics that could not be rendered.

    :ivar objects: pairs of fabric name and object, in the order in which they can be applied. The name is empty for
        objects that fabrics share
    :ivar unmade: fabrics that could not be rendered, each with the reason
    """

    objects: tuple[tuple[str, Object], ...]
    unmade: dict[str, str]


def render(fabrics: typing.Iterable[Fabric], cluster: ClusterIntent, members: typing.Mapping[str, Members]) -> Rendered:
    """Render all objects of all fabrics. If one fabric cannot be rendered, its reason is stored and the remaining
    fabrics are rendered.

    :param members: PCI addresses of each fabric on each node, by the name of the fabric
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
    taken: dict[str, Fabric] = {}
    for fabric in functions:
        try:
            policies = tuple(sriov.render_policies(fabric, cluster, members.get(fabric.name, {})))
            _refuse_taken_names(fabric, policies, taken)
            objects.extend((fabric.name, policy) for policy in policies)
        except RenderError as error:
            unmade[fabric.name] = str(error)
    objects.extend(("", policy) for policy in nvidia.render_nic_policy(fabrics, cluster))
    objects.extend((fabric.name, pool) for fabric in fabrics for pool in render_pools(fabric, cluster))
    for fabric in (fabric for fabric in fabrics if fabric.profile in RENDERERS):
        try:
            objects.append((fabric.name, RENDERERS[fabric.profile](fabric, cluster)))
        except RenderError as error:
            unmade[fabric.name] = str(error)
    # no object of these fabrics selects nodes, so nothing else tells two intents with the default name apart
    unnamed = cluster.intent_name in ("", DEFAULT_INTENT)
    alike = {fabric.name: fabric for fabric in fabrics if unnamed and not find_traits(fabric).functions}
    marked = [(name, _mark_object(item, cluster)) for name, item in objects]
    marked = [(name, _add_record(item, alike[name], cluster) if name in alike else item) for name, item in marked]
    # with another name, an inventory that is a copy may have it too
    named = {fabric.name for fabric in fabrics if not unnamed and not find_traits(fabric).functions}
    return Rendered(
        tuple((name, _add_nodes(item, cluster) if name in named else item) for name, item in marked), unmade
    )


def _refuse_taken_names(fabric: Fabric, policies: typing.Iterable[Object], taken: dict[str, Fabric]) -> None:
    """Verify that no policy of a fabric has the same name as a policy of another fabric. This can happen if the names
    of two fabrics differ only in ``_`` and ``-``, or if a fabric is named like another fabric followed by the name of a
    node.

    :param policies: policies of the fabric
    :param taken: fabrics by the names of their policies. The names of this fabric are added
    :raises RenderError: a policy has the name of a policy of another fabric
    """
    for policy in policies:
        other = taken.setdefault(policy["metadata"]["name"], fabric)
        if other is not fabric:
            raise RenderError(
                f"rdma_fabrics '{fabric.name}': its policy {policy['metadata']['name']} has the name of a policy of"
                f" fabric '{other.name}', and one would overwrite the other; rename one of these fabrics"
            )


def _add_record(made: Object, fabric: Fabric, cluster: ClusterIntent) -> Object:
    """Return an object of a fabric with the label by which an intent with the default name recognizes it later."""
    return replace_labels(made, {**made["metadata"]["labels"], **build_record(fabric, cluster)})


def _mark_object(made: Object, cluster: ClusterIntent) -> Object:
    """Return an object with the label of its intent. A cluster has a single NicClusterPolicy for all intents. It
    therefore also gets a label that records that an intent with the default name needs the policy.
    """
    marked = mark_intent(made, cluster.intent_name)
    if made["kind"] != "NicClusterPolicy" or cluster.intent_name not in ("", DEFAULT_INTENT):
        return marked
    user = build_user_label(cluster.intent_name, cluster.node_selector)
    return replace_labels(marked, {**marked["metadata"]["labels"], **user})


def _add_nodes(made: Object, cluster: ClusterIntent) -> Object:
    """Return an object with an annotation that contains the node selector of its intent."""
    notes = {**made["metadata"].get("annotations", {}), NODES_ANNOTATION: format_nodes(cluster.node_selector)}
    return {**made, "metadata": {**made["metadata"], "annotations": notes}}


def build_record(fabric: Fabric, cluster: ClusterIntent) -> dict[str, str]:
    """Return the label by which an intent with the default name recognizes its network of a fabric. The label contains
    a digest of the node selector and of the HCA selection of the fabric. The result is a mapping with this single
    label.
    """
    selected = {**cluster.node_selector, f"select of {fabric.name}": json.dumps(to_data(fabric.select), sort_keys=True)}
    return build_user_label(cluster.intent_name, selected)


def drop_held(
    objects: typing.Sequence[Object],
    intent: Intent,
    held: typing.Container[str],
    before: typing.Optional[typing.Mapping[str, typing.Sequence[Object]]],
) -> list[Object]:
    """Return the objects that may be applied now while some fabrics are held back. All fabrics share the
    NicClusterPolicy, so it is rendered again for the remaining fabrics. Entries of the existing policy for a fabric
    that is held back are copied to the new one, because server-side apply would otherwise remove the resource of that
    fabric from all nodes.

    :param objects: objects of the fabrics that are not held back, and shared objects, each as a dictionary with
        ``fabric`` (name of the fabric, empty for a shared object) and ``object``
    :param held: names of the fabrics that are held back
    :param before: entries of device plugins in the existing policy, by the name of the fabric. A list is empty if the
        policy contains only another component for the fabric. None if the existing policy could not be read: then the
        policy is left out if a fabric that needs it is held back
    """
    kept = [item for item in objects if item["object"]["kind"] != "NicClusterPolicy"]
    there = {item["fabric"] for item in kept}
    live = [fabric.name for fabric in intent.fabrics if fabric.name in there and fabric.name not in held]
    waiting = [fabric for fabric in intent.fabrics if fabric.name not in live and needs_nic_policy(fabric)]
    remain = {fabric.name: before[fabric.name] for fabric in waiting if before and fabric.name in before}
    shown = [fabric for fabric in intent.fabrics if fabric.name in live or fabric.name in remain]
    policy = () if waiting and before is None else nvidia.render_nic_policy(shown, intent.cluster, remain)
    # before what needs it, behind the namespaces
    first = next((index for index, item in enumerate(kept) if item["fabric"]), len(kept))
    return [
        *kept[:first],
        *({"fabric": "", "object": _mark_object(item, intent.cluster)} for item in policy),
        *kept[first:],
    ]
