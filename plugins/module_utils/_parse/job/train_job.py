# SPDX-License-Identifier: GPL-3.0-or-later

"""Resolve a TrainJob, which has no pod template of its own. It references a runtime that has one, and overrides parts
of it.

[src kubeflow/trainer v2.3.0 pkg/apis, pkg/runtime]
"""

from __future__ import annotations

import copy
import typing

from ..._model.boundary.form import describe_rejected
from ..._model.job.job import Replaced
from ..kubernetes.resource import (
    Resource,
    ResourceError,
    items_of,
    mapping_at,
    name_of,
    namespace_of,
    read_namespace,
    title_of,
)
from .pod_template import MOST_ENTRIES, Provenance, parse_amounts, parse_entries

RUNTIMES = ("TrainingRuntime", "ClusterTrainingRuntime")
ANCESTOR = "trainer.kubeflow.org/trainjob-ancestor-step"
_TRAINER = "node"


def find_runtime(job: Resource) -> tuple[str, str, str]:
    """Return the kind, the namespace and the name of the runtime that a TrainJob references. The default kind is
    ClusterTrainingRuntime, whose namespace is empty.

    :raises ResourceError: the TrainJob references no valid runtime
    """
    reference = mapping_at(job, "spec", "runtimeRef")
    kind, name = str(reference.get("kind") or "ClusterTrainingRuntime"), str(reference.get("name") or "")
    if kind not in RUNTIMES or not name:
        raise ResourceError(
            f"{title_of(job)}: spec.runtimeRef is {kind} '{name}'; expected the name of a {' or '.join(RUNTIMES)}"
        )
    return kind, read_namespace(job) if kind == "TrainingRuntime" else "", name


def add_runtime(job: Resource, runtimes: typing.Iterable[Resource]) -> tuple[Resource, Provenance]:
    """Return a copy of the runtime's template with the settings and patches of the TrainJob applied, and the resources
    of containers that the TrainJob replaced, by ``id`` of the container. [src kubeflow/trainer v2.3.0
    pkg/runtime/framework/plugins/jobset/builder.go]

    :param runtimes: TrainingRuntimes and ClusterTrainingRuntimes of the cluster, of which the TrainJob references one
    :raises ResourceError: the runtime does not exist, or a part of it has an unexpected form
    """
    kind, namespace, name = find_runtime(job)
    of_kind = [item for item in runtimes if item.get("kind") == kind and name_of(item) == name]
    found = [item for item in of_kind if not namespace or namespace_of(item) == namespace]
    if not found:
        raise ResourceError(f"{title_of(job)}: its {kind} {name}, which contains its pod template, does not exist")
    spec, trainer = copy.deepcopy(mapping_at(found[0], "spec")), mapping_at(job, "spec", "trainer")
    jobs = parse_entries(mapping_at(spec, "template", "spec"), "replicatedJobs", f"{kind} {name}")
    replaced: Provenance = {}
    patches = _list_patches(job)
    for item in jobs:
        if not item.get("name"):
            raise ResourceError(f"{kind} {name}: a job in spec.template.spec.replicatedJobs has no name")
        pod = mapping_at(item, "template", "spec", "template")
        if is_trainer(item):
            item["replicas"] = 1
            # EnforceMLPolicy: the number of nodes becomes the number of pods of this job
            nodes = trainer.get("numNodes") or mapping_at(spec, "mlPolicy").get("numNodes")
            if nodes is not None and pod:
                item["template"]["spec"]["parallelism"] = nodes
                # the trainer sets both numbers
                item["template"]["spec"].pop("completions", None)
            for container in items_of(mapping_at(pod, "spec"), "containers", name):
                if container.get("name") == _TRAINER:
                    if trainer.get("resourcesPerNode"):
                        before = {
                            **parse_amounts(container, "requests", name),
                            **parse_amounts(container, "limits", name),
                        }
                        replaced[id(container)] = Replaced(
                            before, f"{title_of(job)} spec.trainer.resourcesPerNode", f"{kind} {name}"
                        )
                    _apply_trainer(container, trainer, name)
        # of two jobs of one name, which the API server refuses, the first is patched
        for patch in patches.pop(str(item["name"]), ()):
            _apply_patch(pod, patch, name)
    return {"kind": "TrainJob", "spec": spec}, replaced


def is_trainer(item: Resource) -> bool:
    """Return whether a job of a runtime is the one that runs the training, according to its label.

    :param item: an entry of ``replicatedJobs`` of the runtime
    """
    return mapping_at(item, "template", "metadata", "labels").get(ANCESTOR) == "trainer"


def _apply_trainer(container: dict[str, typing.Any], trainer: Resource, what: str) -> None:
    container.update({key: trainer[key] for key in ("image", "command", "args") if trainer.get(key)})
    if trainer.get("resourcesPerNode"):
        container["resources"] = trainer["resourcesPerNode"]
    _merge_lists(container, trainer, "env", what)


def _list_patches(job: Resource) -> dict[str, list[Resource]]:
    """Return the patches of pod templates, by the names of the runtime's jobs. A TrainJob has them in
    ``runtimePatches`` since v2.2, in ``podTemplateOverrides`` before, and as pod specifications in ``podSpecOverrides``
    of v2.0.

    :raises ResourceError: a patch has an unexpected form, or there are more than ``MOST_ENTRIES`` patches
    """
    what = title_of(job)
    found = [
        (item.get("name"), mapping_at(item, "template", "spec", "template"))
        for patch in parse_entries(mapping_at(job, "spec"), "runtimePatches", what)
        for item in parse_entries(mapping_at(patch, "trainingRuntimeSpec", "template", "spec"), "replicatedJobs", what)
    ]
    overrides = [(item, item) for item in parse_entries(mapping_at(job, "spec"), "podTemplateOverrides", what)]
    overrides += [(item, {"spec": item}) for item in parse_entries(mapping_at(job, "spec"), "podSpecOverrides", what)]
    for override, patch in overrides:
        found += [
            (name, patch)
            for name in {str(target.get("name")) for target in parse_entries(override, "targetJobs", what)}
        ]
    if len(found) > MOST_ENTRIES:
        raise ResourceError(f"{what}: {len(found)} pod templates are patched; the limit is {MOST_ENTRIES}")
    by_name: dict[str, list[Resource]] = {}
    for name, patch in found:
        by_name.setdefault(str(name), []).append(patch)
    return by_name


def _apply_patch(pod: dict[str, typing.Any], patch: Resource, what: str) -> None:
    """Change a pod template as a patch of a TrainJob does: annotations, volumes, security contexts, node selection, and
    variables and mounts of containers.

    :param pod: the template, which this function changes
    :param what: name of the object, for messages
    :raises ResourceError: the patch has another form, or names a container twice
    """
    annotations = {**mapping_at(pod, "metadata", "annotations"), **mapping_at(patch, "metadata", "annotations")}
    pod["metadata"] = {**mapping_at(pod, "metadata"), "annotations": annotations}
    spec, changed = mapping_at(pod, "spec"), mapping_at(patch, "spec")
    _merge_lists(spec, changed, "volumes", what)
    if changed.get("securityContext"):
        spec["securityContext"] = changed["securityContext"]
    _patch_node_choice(spec, changed, what)
    by_name: dict[str, dict[str, typing.Any]] = {}
    for wanted in parse_entries(changed, "containers", what):
        name = str(wanted.get("name"))
        if name in by_name:
            raise ResourceError(f"{what}: a patch names the container {describe_rejected(name)} twice")
        by_name[name] = wanted
    for container in parse_entries(spec, "containers", what):
        wanted = by_name.get(str(container.get("name")), {})
        _merge_lists(container, wanted, "env", what)
        _merge_lists(container, wanted, "volumeMounts", what, "mountPath")
        if wanted.get("securityContext"):
            container["securityContext"] = wanted["securityContext"]


def _patch_node_choice(spec: dict[str, typing.Any], changed: Resource, what: str) -> None:
    """Apply the part of a patch that decides on which nodes the pods run. The tolerations of the patch are added to the
    existing ones, because some releases add them and others replace them.

    :param spec: specification of the pods, which is changed
    :param changed: specification of the pods in the patch
    :param what: name of the object in messages
    """
    if changed.get("nodeSelector"):
        spec["nodeSelector"] = {**mapping_at(spec, "nodeSelector"), **mapping_at(changed, "nodeSelector")}
    if changed.get("affinity"):
        spec["affinity"] = {**mapping_at(spec, "affinity"), **mapping_at(changed, "affinity")}
    if changed.get("tolerations"):
        spec["tolerations"] = [
            *parse_entries(spec, "tolerations", what),
            *parse_entries(changed, "tolerations", what),
        ]


def _merge_lists(target: dict[str, typing.Any], change: Resource, key: str, what: str, by: str = "name") -> None:
    """Merge the list at ``key`` of ``change`` into the list at ``key`` of ``target``, as the API server merges lists of
    mappings. An item of ``target`` is removed if a new item has the same value at the key ``by``. The new items are
    appended.

    :param target: mapping that is changed
    :param what: name of the object in messages
    :param by: key that identifies an item
    :raises ResourceError: one of the values is not a list of mappings
    """
    new = items_of(change, key, what)
    if new:
        names = {item.get(by) for item in new}
        target[key] = [*(item for item in items_of(target, key, what) if item.get(by) not in names), *new]
