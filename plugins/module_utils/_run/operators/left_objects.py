# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads, right before an operator is installed, which of its objects an earlier installation has left in the cluster.

Helm and OLM keep the definitions of an operator, and the objects of these definitions, when they remove it. A new
operator applies such objects as soon as it starts, on all nodes that they select: it drains nodes, or loads drivers,
before stage network has asked for any of these nodes.
"""

from __future__ import annotations

import typing

from ..._model.base.phrases import count_of
from ..._model.base.text import join_first
from ..._model.operators.drivers import OF_GPUS, OF_NICS, OperatorUpgrade
from ..._model.operators.operators import GPU, NETWORK, SRIOV
from ..._observe.kubernetes.client import Cluster
from ..._observe.kubernetes.errors import ApiError
from ..._observe.kubernetes.kinds import Resource
from ..._parse.kubernetes.resource import mapping_at, name_of

#: kinds whose objects change nodes, by operator
_KINDS: typing.Mapping[str, tuple[str, ...]] = {SRIOV: ("SriovNetworkNodePolicy",), NETWORK: OF_NICS, GPU: OF_GPUS}
#: policy that the operator itself creates, and that selects no NIC [pkg/consts/constants.go DefaultPolicyName]
_DEFAULT_POLICY = "default"
#: annotation by which Helm knows the objects of a release [helm.sh/helm pkg/action/validate.go]
_RELEASE = "meta.helm.sh/release-name"


def explain_left_objects(cluster: Cluster, upgrade: OperatorUpgrade) -> tuple[str, ...]:
    """Return why an operator must not be installed while objects of an earlier installation are left, each reason with
    its remedy. Objects of a release of Helm belong to an installation that has begun, and do not count.

    :param upgrade: the installation
    :raises ApiError: the API server cannot be reached
    """
    reasons = []
    for kind in _KINDS.get(upgrade.operator, ()):
        try:
            found = cluster.list(kind, upgrade.namespace).items
        except ApiError as error:
            if error.status == 0:
                raise
            if not error.absent:
                reasons.append(
                    f"{kind} objects not read ({error.no_answer}), so it is not known whether an earlier installation"
                    f" has left some. Permit the run to list {kind}."
                )
            continue
        left = [item for item in found if _is_left(kind, item)]
        if left:
            reasons.append(_explain_left(kind, left, upgrade))
    return tuple(reasons)


def _is_left(kind: str, item: Resource) -> bool:
    of_operator = kind == "SriovNetworkNodePolicy" and name_of(item) == _DEFAULT_POLICY
    return not of_operator and not mapping_at(item, "metadata", "annotations").get(_RELEASE)


def _explain_left(kind: str, left: typing.Sequence[Resource], upgrade: OperatorUpgrade) -> str:
    space = f" -n {upgrade.namespace}" if upgrade.namespace else ""
    names = join_first([name_of(item) for item in left])
    return (
        f"{count_of(len(left), f'{kind} object')} of an earlier installation: {names}. The new operator applies them on"
        " all nodes that they select as soon as it starts, which can drain these nodes or load drivers on them. Save"
        f" them (kubectl get {kind.lower()}{space} -o yaml > {kind.lower()}.yaml), then delete them while no operator"
        f" runs (kubectl delete {kind.lower()}{space} NAME). Stage network creates the objects of the intent again,"
        " after it has asked for the nodes."
    )
