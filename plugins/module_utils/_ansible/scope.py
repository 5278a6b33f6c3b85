# SPDX-License-Identifier: GPL-3.0-or-later

"""The options by which a module learns which objects of the collection belong to the intent of the run."""

from __future__ import annotations

import typing

from .._model.base.load import load
from .._model.intent.intent import ClusterIntent
from .._model.kubernetes.scope import Scope
from .._parse.intent import parse_intent
from .._plan.scope import build_scope

#: the doc fragment is linerate.rdma._options.scope
SCOPE_SPEC: dict[str, typing.Any] = {"fabrics": {"type": "raw"}, "cluster": {"type": "raw"}}


def read_scope(options: typing.Mapping[str, typing.Any]) -> typing.Optional[Scope]:
    """Return the objects of the intent. Return None if the module was given no intent: then its selector alone decides.

    :param options: options of the module
    :raises IntentError: a variable of the intent is invalid
    :raises LoadError: ``cluster`` is invalid and there are no fabrics
    """
    fabrics, cluster = options.get("fabrics"), options.get("cluster")
    if fabrics is None and cluster is None:
        return None
    if fabrics is None:
        return build_scope((), load(ClusterIntent, cluster, "rdma_cluster"))
    intent = parse_intent(fabrics, None, cluster)
    return build_scope(intent.fabrics, intent.cluster)
