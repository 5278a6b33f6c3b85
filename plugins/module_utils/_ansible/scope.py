# SPDX-License-Identifier: GPL-3.0-or-later

"""The options by which a module learns which objects of the collection belong to the intent of the run."""

from __future__ import annotations

import typing

from .._model.base.load import load
from .._model.intent.intent import ClusterIntent
from .._model.kubernetes.scope import Scope
from .._observe.kubernetes.client import Cluster
from .._observe.kubernetes.whose_scope import learn_scope
from .._parse.intent import parse_intent
from .._plan.scope import build_scope

#: the doc fragment is linerate.rdma._options.scope
SCOPE_SPEC: dict[str, typing.Any] = {"fabrics": {"type": "raw"}, "cluster": {"type": "raw"}}


def read_scope(options: typing.Mapping[str, typing.Any], cluster: Cluster) -> typing.Optional[Scope]:
    """Return which objects in the cluster belong to the intent. The result also contains what the cluster shows about
    other owners: whether another intent may have the same name, and the fabrics whose policies are not of this intent.
    Return None if the module was given no intent: the label selector of the module alone then selects objects.

    :param options: options of the module
    :param cluster: client of the API server
    :raises ApiError: the API server refuses a list, or cannot be reached
    :raises IntentError: a variable of the intent is invalid
    :raises LoadError: ``cluster`` is invalid and there are no fabrics
    """
    fabrics, settings = options.get("fabrics"), options.get("cluster")
    if fabrics is None and settings is None:
        return None
    if fabrics is None:
        return learn_scope(cluster, build_scope((), load(ClusterIntent, settings, "rdma_cluster")))
    intent = parse_intent(fabrics, None, settings)
    return learn_scope(cluster, build_scope(intent.fabrics, intent.cluster))
