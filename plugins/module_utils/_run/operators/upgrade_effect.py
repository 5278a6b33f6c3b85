# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads, right before an operator is installed or upgraded, on which nodes that restarts a driver of NVIDIA or the
config daemon of the SR-IOV network operator, and whether it may begin. The decision is the one of stage network:
_analysis/disruption/judge_plan.py.
"""

from __future__ import annotations

import typing

from ..._analysis.disruption.judge_plan import list_refusals
from ..._analysis.disruption.operator_upgrade import describe_sriov_upgrade
from ..._model.intent.intent import ClusterIntent
from ..._model.operators.drivers import OperatorUpgrade, UpgradeEffect
from ..._model.operators.operators import SRIOV
from ..._model.run.findings import Waiver
from ..._observe.kubernetes.client import Cluster
from ..._plan.olm import refuse_effect
from ..node_changes.read_disruption_plan import RenderedObjects, read_plan
from .left_objects import explain_left_objects

AskUpgrade = typing.Callable[[OperatorUpgrade], UpgradeEffect]


def read_upgrade_effect(
    cluster: Cluster,
    upgrade: OperatorUpgrade,
    inventory: typing.Sequence[str],
    intent: ClusterIntent,
    waivers: typing.Sequence[Waiver] = (),
) -> UpgradeEffect:
    """Return the nodes that the upgrade or the installation changes, and the reasons against it. Nothing is changed.

    :param inventory: names of the nodes of the run
    :param intent: settings of the intent that all fabrics share
    :param waivers: waivers of the intent
    :raises ApiError: the API server cannot be reached
    :raises ResourceError: an object is malformed
    """
    if upgrade.installs:
        left = explain_left_objects(cluster, upgrade)
        if left or not upgrade.creates:
            return UpgradeEffect(refused=left)
    planned = read_plan(cluster, upgrade.namespace, RenderedObjects(upgrade=upgrade), inventory, intent)
    refused = list_refusals(intent, planned, inventory, waivers, "operators")
    if upgrade.operator == SRIOV:
        return describe_sriov_upgrade(planned, refused)
    return UpgradeEffect(tuple(node.title for node in planned.nodes if node.driver), refused)


class UpgradeGate:
    """The installations and upgrades by OLM that can change nodes, and whether they may begin.

    :param ask: function that reads which nodes an upgrade changes, and what is against it
    """

    def __init__(self, ask: AskUpgrade) -> None:
        self._ask = ask
        self._found: dict[tuple[str, str], tuple[OperatorUpgrade, UpgradeEffect]] = {}

    def read(self, upgrades: typing.Mapping[tuple[str, str], OperatorUpgrade]) -> dict[str, tuple[str, str]]:
        """Return why packages must not be upgraded, each with the remedy. A package that may be upgraded is left out.

        :param upgrades: upgrades, by the namespace of the operator and its package
        :raises ApiError: the API server cannot be reached
        """
        self._found = {place: (upgrade, self._ask(upgrade)) for place, upgrade in upgrades.items()}
        refusals = {package: refuse_effect(*pair) for (_space, package), pair in self._found.items()}
        return {package: refusal for package, refusal in refusals.items() if refusal is not None}

    def describe(self, package: str) -> str:
        """Return the nodes that the upgrade of a package changes, as the end of a text; empty if there are none."""
        return "".join(
            f"; {upgrade.title} {effect.text}"
            for (_space, name), (upgrade, effect) in self._found.items()
            if name == package and effect.nodes
        )

    def ask_again(self, namespace: str) -> typing.Optional[tuple[str, str]]:
        """Return why an InstallPlan of a namespace must not be approved now, and the remedy. Return None if it may be.
        One InstallPlan can upgrade all operators of its namespace.

        :raises ApiError: the API server cannot be reached
        """
        upgrades = [upgrade for (space, _package), (upgrade, _effect) in self._found.items() if space == namespace]
        refusals = (refuse_effect(upgrade, self._ask(upgrade)) for upgrade in upgrades)
        return next((refusal for refusal in refusals if refusal is not None), None)
