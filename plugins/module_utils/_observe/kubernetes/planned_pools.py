# SPDX-License-Identifier: GPL-3.0-or-later

"""Hold SriovNetworkNodePolicies back unless the SriovNetworkPoolConfigs are as rendered. The plan of the drains counts
on the rendered pools, and the SR-IOV operator drains as many nodes at the same time as the pool in the cluster permits.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._model.kubernetes.apply import OTHER_POOL, AppliedObject
from ..._model.kubernetes.disruption import NodePool
from ..._parse.kubernetes.resource import ResourceError
from ..._parse.operators.sriov_operator import node_pool
from .kinds import Resource
from .outcome import Outcome

_POOL, _POLICY = "SriovNetworkPoolConfig", "SriovNetworkNodePolicy"


class PlannedPools:
    """The SriovNetworkPoolConfigs of a run whose limits in the cluster are not as rendered."""

    def __init__(self) -> None:
        self._differing: dict[tuple[str, str], AppliedObject] = {}

    def add(self, definition: Resource, outcome: Outcome) -> None:
        """Record whether a SriovNetworkPoolConfig is as rendered. An object of another kind is ignored. A later outcome
        of an object replaces an earlier one.

        :param definition: the rendered object
        :param outcome: planned or real outcome of the object
        """
        applied = outcome.applied
        if applied.kind != _POOL:
            return
        key = applied.namespace, applied.name
        self._differing.pop(key, None)
        there = outcome.before if applied.action == "refused" else outcome.after
        if there is None or _read_limits(there) != _read_limits(definition):
            self._differing[key] = applied

    def refuse(self, outcome: Outcome) -> Outcome:
        """Return the planned outcome of an object. It becomes a refusal if it would change a SriovNetworkNodePolicy
        while a SriovNetworkPoolConfig is not as rendered.
        """
        applied = outcome.applied
        if applied.kind != _POLICY or not outcome.changed or not self._differing:
            return outcome
        pool = next(iter(self._differing.values()))
        cause = (
            f"was refused. Follow the message about this {_POOL}"
            if pool.action == "refused"
            else "has other limits after it was applied than linerate.rdma applied, from a webhook or another field"
            f" manager: kubectl get -n {pool.namespace} sriovnetworkpoolconfigs.sriovnetwork.openshift.io {pool.name}"
            " -o yaml --show-managed-fields"
        )
        why = f"no policy is changed, because {_POOL} {pool.namespace}/{pool.name} {cause}"
        return Outcome(
            dataclasses.replace(applied, action="refused", reason=OTHER_POOL, refusal=why),
            outcome.before,
            outcome.before,
        )


def _read_limits(pool: Resource) -> typing.Optional[NodePool]:
    """Return the nodes and limits of a SriovNetworkPoolConfig; None if the object is malformed."""
    try:
        return node_pool(pool)
    except ResourceError:
        return None
