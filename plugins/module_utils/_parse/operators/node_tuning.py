# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse the objects of OpenShift's Node Tuning Operator into facts. [cluster-node-tuning-operator pkg/apis/tuned/v1,
performanceprofile/v2; pkg/tuned/status.go]
"""

from __future__ import annotations

import typing

from ..._model.node.node_tuning import NodeProfile, Recommendation
from ..kubernetes.resource import Resource, ResourceError, excerpt_of, items_of, mapping_at, name_of, number_of

#: levels of conditions within conditions that are read
_DEEPEST = 32


def node_profile(resource: Resource) -> NodeProfile:
    """Parse a tuned.openshift.io/v1 Profile, whose name is that of its node: the desired and the active tuned profile,
    and whether it was applied. ``data`` is None if the object does not contain the text of the desired profile.

    :raises ResourceError: the object is not a valid Profile
    """
    name = name_of(resource)
    what = f"Profile {name}"
    spec, status = mapping_at(resource, "spec"), mapping_at(resource, "status")
    wanted = str(mapping_at(spec, "config").get("tunedProfile") or "")
    texts = {str(item.get("name")): str(item.get("data") or "") for item in items_of(spec, "profile", what)}
    applied, degraded = (_find_condition(status, kind, what) for kind in ("Applied", "Degraded"))
    seen, generation = status.get("observedGeneration"), mapping_at(resource, "metadata").get("generation")
    return NodeProfile(
        node=name,
        wanted=wanted,
        active=excerpt_of(status.get("tunedProfile")),
        data=texts.get(wanted),
        current=seen is None or generation is None or number_of(seen, what) >= number_of(generation, what),
        applied=applied.get("status") == "True",
        degraded=degraded.get("status") == "True",
        message=excerpt_of((degraded if degraded.get("status") == "True" else applied).get("message")),
    )


def explain_invalid(resource: Resource) -> str:
    """Return the reason why the Node Tuning Operator rejects a Tuned. Return an empty string if the operator accepts
    it, or has not judged it yet.

    :raises ResourceError: the object is not a valid Tuned
    """
    valid = _find_condition(mapping_at(resource, "status"), "Valid", f"Tuned {name_of(resource)}")
    if valid.get("status") != "False":
        return ""
    return excerpt_of(valid.get("message") or valid.get("reason")) or "no reason is reported"


def selected_nodes(resource: Resource) -> dict[str, str]:
    """Return the labels that a PerformanceProfile requires of its nodes (nodeSelector), as values by key. The result is
    empty if it requires none.

    :raises ResourceError: the object is not a valid PerformanceProfile
    """
    return {str(key): str(value) for key, value in mapping_at(resource, "spec", "nodeSelector").items()}


def parse_recommendations(resource: Resource) -> tuple[Recommendation, ...]:
    """Return the entries of ``spec.recommend`` of a Tuned. Conditions on labels of pods are left out, because the nodes
    on which they hold change with the pods. [cluster-node-tuning-operator pkg/operator/profilecalculator.go]

    :raises ResourceError: the object is not a valid Tuned
    """
    name = name_of(resource)
    what = f"Tuned {name}"
    found = []
    for item in items_of(mapping_at(resource, "spec"), "recommend", what):
        pools = {str(key): str(value) for key, value in mapping_at(item, "machineConfigLabels").items()}
        matches = _list_matches(item, {}, what, 0) if item.get("match") else () if pools else ({},)
        number = number_of(item.get("priority") or 0, what)
        found.append(Recommendation(name, str(item.get("profile") or ""), number, tuple(matches), pools))
    return tuple(found)


def _list_matches(
    parent: Resource, above: typing.Mapping[str, typing.Optional[str]], what: str, depth: int
) -> typing.Iterator[dict[str, typing.Optional[str]]]:
    """Yield alternative conditions on the labels of a node under ``match``, each as label values by label. The value
    None means that the label must exist with any value. A nested entry is combined with the entries around it.
    Conditions on pods, and combinations that contradict each other, are left out.

    :param parent: the mapping with ``match``
    :param above: conditions of ``parent`` and of the entries around it, in the form of the result
    :param what: name of the object in messages
    :param depth: number of entries around ``parent``
    :raises ResourceError: the entries are not valid, or are nested too deeply
    """
    if depth > _DEEPEST:
        raise ResourceError(f"{what}: match has more than {_DEEPEST} levels")
    for item in items_of(parent, "match", what):
        label, value = str(item.get("label") or ""), item.get("value")
        outer = above.get(label)
        text = outer if value is None else str(value)
        if str(item.get("type") or "node").lower() != "node" or (outer is not None and text != outer):
            continue
        here = {**above, label: text}
        if item.get("match"):
            yield from _list_matches(item, here, what, depth + 1)
        else:
            yield here


def _find_condition(status: typing.Mapping[str, typing.Any], kind: str, what: str) -> typing.Mapping[str, typing.Any]:
    return next((item for item in items_of(status, "conditions", what) if item.get("type") == kind), {})
