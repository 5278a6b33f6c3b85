# SPDX-License-Identifier: GPL-3.0-or-later

"""Decides which configuration objects of operators that OLM has installed a run creates. It creates none for an
operator of another client, and no ClusterPolicy whose driver would disturb nodes that the intent protects.
"""

from __future__ import annotations

import json
import shlex
import typing

from ..._model.base.text import join_first
from ..._model.intent.intent import Intent
from ..._model.operators.drivers import OperatorUpgrade
from ..._model.operators.operators import GPU, LeftConfiguration, Operator, OperatorsSeen
from ..._observe.kubernetes.client import Cluster
from ..._observe.kubernetes.kinds import Resource
from ..._observe.operators.operators import list_examples
from ..._parse.kubernetes.resource import mapping_at, name_of
from ..._plan.operator_requests import OperatorRequests
from ..._plan.operators import is_installed_by_run, list_unconfigured_operators
from ..._render.cluster.operators import render_configuration
from .upgrade_effect import AskUpgrade


def plan_configurations(
    cluster: Cluster, intent: Intent, seen: OperatorsSeen, wishes: OperatorRequests, ask: typing.Optional[AskUpgrade]
) -> tuple[tuple[Resource, ...], dict[str, LeftConfiguration]]:
    """Return the configuration objects that the run creates, and those that it leaves to an admin, by operator.

    :param seen: state of the operators in the cluster
    :param wishes: settings with which the user changes the installation of the operators
    :param ask: function that reads on which nodes a driver is loaded, and what is against it; None if the run installs
        nothing, and nothing is asked
    :raises ApiError: the API server refuses, or cannot be reached
    :raises RdmaError: the annotation with the examples is not a list of objects
    """
    made, left = [], {}
    for operator, version in list_unconfigured_operators(intent, seen, wishes):
        examples = list_examples(cluster, operator, seen.packages.get(operator.name, ()))
        item = render_configuration(operator, version.namespace, intent, seen.job, examples)
        if item is None:
            continue
        why = "" if is_installed_by_run(version, seen) else _explain_other(operator)
        if not why and ask is not None:
            why = _refuse_driver(operator, item, ask)
        if why:
            left[operator.name] = LeftConfiguration(why, _write_command(item))
        else:
            made.append(item)
    return tuple(made), left


def _explain_other(operator: Operator) -> str:
    return (
        "No run of linerate.rdma installed the operator: its Subscription does not have the label of the collection. So"
        f" the run creates no {operator.configuration}, because the admin who installed the operator decides on it."
    )


def _refuse_driver(operator: Operator, item: Resource, ask: AskUpgrade) -> str:
    """Return why a configuration object must not be created now. Return an empty text if it may be.

    :param item: the rendered object
    """
    driver = mapping_at(item, "spec", "driver")
    if operator.name != GPU:
        return ""
    effect = ask(OperatorUpgrade(GPU, f"ClusterPolicy {name_of(item)} is created", driver, creates=name_of(item)))
    if not effect.refused:
        return ""
    return (
        f"The new ClusterPolicy {effect.text}, and must not be created now: {join_first(effect.refused, between=' ')}"
    )


def _write_command(item: Resource) -> str:
    """Return the command that creates an object with the fields that the run would set, without the label of the
    collection: an object that an admin creates is not removed by a teardown.
    """
    metadata = {key: value for key, value in item["metadata"].items() if key != "labels"}
    text = json.dumps({**item, "metadata": metadata}, separators=(",", ":"))
    return f"echo {shlex.quote(text)} | kubectl create -f -"
