# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the state of all supported operators: which are installed, their owner, and the objects that configure them."""

from __future__ import annotations

import dataclasses
import typing

from ..._model.base.marks import SELECTOR, is_ours
from ..._model.intent.intent import Intent
from ..._model.job.stack import Controller, PolicyState
from ..._model.kubernetes.admission import OPENSHIFT_GROUP
from ..._model.kubernetes.objects import ClusterNode
from ..._model.operators.drivers import OF_GPUS, OF_NICS, DriverPolicy
from ..._model.operators.olm import GROUP, ORIGINALS
from ..._model.operators.operators import (
    MADE_FOR,
    OPERATORS,
    SRIOV,
    TABLE,
    JobNeeds,
    Operator,
    OperatorsSeen,
    collect_needed_labels,
)
from ..._model.operators.sriov_operator import OlmObject
from ..._parse.job.stack import parse_policy_state
from ..._parse.kubernetes.core import parse_node
from ..._parse.kubernetes.resource import labels_of, mapping_at, name_of
from ..._parse.operators.charts import olm_examples
from ..._parse.operators.drivers import driver_host, driver_policy, driver_selector
from ..._parse.operators.nfd_and_olm import olm_object
from ..kubernetes.client import Cluster
from ..kubernetes.job_reader import JobReader
from ..kubernetes.kinds import Resource


def by_olm(cluster: Cluster) -> bool:
    """Return whether operators are to be installed by OLM in this cluster. This is the case on OpenShift with OLM,
    where OLM is the documented installer. On other clusters the result is False, because OLM may be present for other
    purposes.

    :raises ApiError: the server refuses or does not answer
    """
    return cluster.serves(OPENSHIFT_GROUP) and cluster.serves(GROUP)


def observe(
    cluster: Cluster,
    intent: Intent,
    job: typing.Optional[JobNeeds],
    nodes: typing.Collection[str],
    olm: bool,
    named: typing.Optional[typing.Mapping[str, str]] = None,
) -> OperatorsSeen:
    """Return the state of all operators that the collection works with. Errors are stored in ``errors`` of the result.
    A kind that the API server does not know counts as a kind without objects.

    :param intent: settings of the intent, which tell the labels that its nodes need
    :param job: needs of the job to run; None for no job
    :param nodes: names of the nodes that the run includes
    :param olm: whether operators are installed by OLM in this cluster
    :param named: name of the package of each operator in the settings, by operator; None for the default names
    :raises ApiError: the API server cannot be reached
    """
    reader = JobReader(cluster)
    labels = collect_needed_labels(intent)
    configurations = [
        reader.all(operator.configuration, _read_configuration) for operator in TABLE if operator.configuration
    ]
    packages: dict[str, list[OlmObject]] = {}
    for kind in ("ClusterServiceVersion", "Subscription"):
        for rows in reader.all(kind, lambda item: _list_operators(item, named), selector=ORIGINALS):
            for name, seen in rows:
                packages.setdefault(name, []).append(seen)
    drivers = [
        item
        for kind in (*OF_NICS, *OF_GPUS)
        for item in reader.all(kind, lambda found: (driver_policy(found), driver_selector(found)))
    ]
    seen_nodes = (
        list(reader.all("Node", lambda item: (parse_node(item), driver_host(item)))) if labels or drivers else []
    )
    controllers = reader.controllers()
    made = set(filter(None, reader.all("Namespace", _made_for, selector=MADE_FOR)))
    # the namespace of this operator has the label by which a teardown removes it
    mine = set(filter(None, reader.all("Namespace", _our_namespace, selector=SELECTOR)))
    made |= {SRIOV for item in controllers if item.operator == SRIOV and item.name.partition("/")[0] in mine}
    return OperatorsSeen(
        olm=olm,
        job=job,
        controllers=controllers,
        configurations=_select_configurations(
            (item for items in configurations for item in items), controllers, packages
        ),
        packages={name: tuple(items) for name, items in sorted(packages.items())},
        labelled=tuple(
            node.name
            for node, _host in seen_nodes
            if node.name in nodes and all(node.labels.get(key) == value for key, value in labels.items())
        ),
        made=tuple(sorted(made)),
        drivers=tuple(
            _select_policy_nodes(policy, selector, (node for node, _host in seen_nodes)) for policy, selector in drivers
        ),
        hosts=tuple(host for node, host in seen_nodes if node.name in nodes),
        errors=reader.errors,
    )


class _Configuration(typing.NamedTuple):
    """An object that configures an operator.

    :ivar namespace: namespace of the object; empty if its kind is cluster-scoped
    :ivar reported: whether the object has a status, which only the operator writes
    :ivar state: name, kind and state of the object
    """

    namespace: str
    reported: bool
    state: PolicyState


def _read_configuration(item: Resource) -> _Configuration:
    place = mapping_at(item, "metadata").get("namespace") or ""
    return _Configuration(str(place), bool(mapping_at(item, "status")), parse_policy_state(item))


def _select_configurations(
    found: typing.Iterable[_Configuration],
    controllers: typing.Iterable[Controller],
    packages: typing.Mapping[str, typing.Iterable[OlmObject]],
) -> tuple[PolicyState, ...]:
    """Return the objects that configure an operator: cluster-scoped objects, objects in a namespace of the operator,
    and objects with a status of the operator. Other objects are left out, because a user with rights in another
    namespace can create them there.

    :param found: objects of the kinds that configure operators
    :param controllers: running operators
    :param packages: ClusterServiceVersions and Subscriptions, by operator
    """
    places = {(item.operator, item.name.partition("/")[0]) for item in controllers}
    places |= {
        (operator, item.namespace)
        for operator, items in packages.items()
        for item in items
        if item.kind == "ClusterServiceVersion"
    }
    kinds = {operator.configuration: operator.name for operator in TABLE if operator.configuration}
    return tuple(
        item.state
        for item in found
        if item.reported or not item.namespace or (kinds.get(item.state.kind), item.namespace) in places
    )


def _select_policy_nodes(
    policy: DriverPolicy, selector: typing.Mapping[str, str], nodes: typing.Iterable[ClusterNode]
) -> DriverPolicy:
    """Return the driver policy with the names of the nodes that have all labels of its selector. With an empty selector
    the policy is returned unchanged, because it applies to all nodes.

    :param selector: labels, by key
    """
    if not selector:
        return policy
    return dataclasses.replace(
        policy,
        nodes=tuple(
            node.name for node in nodes if all(node.labels.get(key) == value for key, value in selector.items())
        ),
    )


def _list_operators(
    resource: Resource, named: typing.Optional[typing.Mapping[str, str]]
) -> list[tuple[str, OlmObject]]:
    """Return each operator to which a ClusterServiceVersion or Subscription belongs, with the parsed object. The list
    is usually empty or has one entry.

    :param named: name of the package of each operator in the settings, by operator; None for the default names
    """
    found = ((operator.name, olm_object(resource, operator.name, named)) for operator in TABLE)
    return [(name, seen) for name, seen in found if seen is not None]


def _made_for(namespace: Resource) -> str:
    name = labels_of(namespace).get(MADE_FOR, "")
    return name if name in OPERATORS else ""


def _our_namespace(namespace: Resource) -> str:
    """Return the name of a namespace that has the label of the collection. Return an empty text for any other
    namespace.
    """
    return name_of(namespace) if is_ours(labels_of(namespace)) else ""


def list_examples(cluster: Cluster, operator: Operator, packages: typing.Iterable[OlmObject]) -> tuple[Resource, ...]:
    """Return the example objects in the ClusterServiceVersions of an operator whose kind is that of the object that
    configures the operator. The console of OpenShift offers these examples.

    :param packages: objects of OLM that belong to the operator
    :raises ApiError: the API server refuses, or cannot be reached
    :raises RdmaError: the annotation with the examples is not a list of objects
    """
    return tuple(
        example
        for item in packages
        if item.kind == "ClusterServiceVersion"
        for example in olm_examples(cluster.get(item.kind, item.namespace, item.name))
        if example.get("kind") == operator.configuration
    )
