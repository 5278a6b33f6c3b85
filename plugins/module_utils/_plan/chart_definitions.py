# SPDX-License-Identifier: GPL-3.0-or-later

"""Plan the upgrade of the CustomResourceDefinitions of a chart. Several tools can install the same definition, and a
definition of another owner is not changed: its operator has other fields, and the tool would restore it.
"""

from __future__ import annotations

import typing

from .._model.base.errors import RdmaError
from .._model.kubernetes.owner_marks import find_owner_mark
from .._model.operators.operators import OperatorChart
from .._parse.kubernetes.resource import Resource, items_of, labels_of, mapping_at, name_of, title_of

#: annotations of the objects of a Helm release
_RELEASE, _RELEASE_NAMESPACE = "meta.helm.sh/release-name", "meta.helm.sh/release-namespace"
#: beginnings of the labels that OLM writes
_OF_OLM = ("olm.managed", "operators.coreos.com/")
#: field of a definition that the API server does not store [k8s.io/apiextensions-apiserver pkg/apis/apiextensions/v1:
#: omitempty]
_NOT_STORED = ("preserveUnknownFields", False)
#: beginnings of the names of field managers, each with the tool. Hooks of charts write definitions as kubectl or as
#: apply-crds, so these prove no other owner
_MANAGERS = {
    "argocd": "Argo CD",
    "kustomize-controller": "Flux",
    "helm-controller": "Flux",
    "flux": "Flux",
    "fleet": "Fleet",
    "olm": "OLM",
    "catalog": "OLM",
    "operator-lifecycle-manager": "OLM",
}


def select_definitions(
    operator: str,
    chart: OperatorChart,
    pairs: typing.Iterable[tuple[Resource, typing.Optional[Resource]]],
) -> tuple[Resource, ...]:
    """Return the definitions of a chart that a run may apply. A definition of another owner that has all fields of the
    chart needs no change, and is left out.

    :param operator: name of the operator
    :param chart: chart of the operator
    :param pairs: each definition of the chart, and the definition of its name in the cluster; None if there is none
    :raises RdmaError: a definition of another owner differs
    :raises ResourceError: a definition has an unexpected form
    """
    found = []
    for wanted, there in pairs:
        owner = "" if there is None else find_owner(there, chart.release, chart.namespace)
        if not owner:
            found.append(wanted)
        elif there is not None and not _has_fields(mapping_at(there, "spec"), mapping_at(wanted, "spec")):
            name = name_of(wanted)
            repository = f" --repo {chart.repository}" if chart.repository else ""
            version = f" --version {chart.version}" if chart.version else ""
            raise RdmaError(
                f"CustomResourceDefinition {name} belongs to {owner}, and it differs from that of the chart of"
                f" {operator}. No definition and no release of {operator} were changed",
                f"To see the owner: kubectl get customresourcedefinition {name} -o yaml --show-managed-fields. Upgrade"
                f" the definition where {owner.partition(' (')[0]} has it, or add {operator} to operators_leave. If the"
                f" definitions of the chart may replace it: helm show crds{repository}{version} {chart.reference} |"
                " kubectl apply --server-side --force-conflicts -f -. Then run stage operators again",
            )
    return tuple(found)


def find_owner(definition: Resource, release: str, namespace: str) -> str:
    """Return the owner of a CustomResourceDefinition and the mark that shows it, such as ``OLM (label olm.managed)``.
    An owner is a GitOps tool, OLM, or another Helm release. Return an empty text if no mark shows an owner.

    The marks are labels, annotations, and the managers of the field ``spec.versions``. A definition from the folder
    ``crds`` of another chart has no mark of its release.

    :param definition: definition in the cluster
    :param release: name of the Helm release of the run
    :param namespace: namespace of this release
    :raises ResourceError: the definition has an unexpected form
    """
    mark = find_owner_mark(definition)
    if mark:
        return mark
    metadata = mapping_at(definition, "metadata")
    label = next((key for key in labels_of(definition) if key.startswith(_OF_OLM)), "")
    if label:
        return f"OLM (label {label})"
    notes = mapping_at(metadata, "annotations")
    place = (str(notes.get(_RELEASE_NAMESPACE) or ""), str(notes.get(_RELEASE) or ""))
    if place[1] and place != (namespace, release):
        return f"Helm release {'/'.join(place)}"
    for record in items_of(metadata, "managedFields", title_of(definition)):
        manager = str(record.get("manager") or "")
        tool = next((tool for prefix, tool in _MANAGERS.items() if manager.startswith(prefix)), "")
        if tool and "f:versions" in mapping_at(record, "fieldsV1", "f:spec"):
            return f"{tool} (field manager {manager})"
    return ""


def _has_fields(there: typing.Any, wanted: typing.Any) -> bool:
    """Return whether a value in the cluster has all fields of the desired value. Additional fields are accepted,
    because the API server adds fields. A desired null or ``preserveUnknownFields: false`` is accepted without such a
    field in the cluster, because the API server stores neither. Lists must have the same length.

    :param there: value in the cluster
    :param wanted: desired value
    """
    if isinstance(wanted, dict):
        return isinstance(there, dict) and all(
            value is None or (_has_fields(there[key], value) if key in there else (key, value) == _NOT_STORED)
            for key, value in wanted.items()
        )
    if isinstance(wanted, list):
        same = isinstance(there, list) and len(there) == len(wanted)
        return same and all(map(_has_fields, there, wanted))
    return bool(there == wanted)
