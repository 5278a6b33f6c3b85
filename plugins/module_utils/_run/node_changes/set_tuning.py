# SPDX-License-Identifier: GPL-3.0-or-later

"""Sets the host tuning of the intent through OpenShift's Node Tuning Operator, and waits until the operator has applied
it on each node.

The wait reads the objects repeatedly instead of watching them, because the operator writes only one object for each
node, within seconds.
"""

from __future__ import annotations

import typing

from ..._analysis.controllers.node_tuning import TuningState, explain_refusal, find_setting, get_parent_profile
from ..._analysis.controllers.tuned_profiles import explain_replaced, find_selected_nodes
from ..._model.base.marks import DEFAULT_INTENT, mark_intent
from ..._model.intent.intent import Intent
from ..._model.kubernetes.disruption import MachinePool
from ..._model.kubernetes.objects import ClusterNode
from ..._model.kubernetes.scope import Scope
from ..._model.node.node_tuning import GROUP, NAMESPACE, TUNED, NodeSetting, Settings, TuningSet
from ..._observe.kubernetes.apply import apply_all
from ..._observe.kubernetes.client import Cluster
from ..._observe.kubernetes.errors import ApiError
from ..._observe.kubernetes.kinds import Resource
from ..._observe.kubernetes.outcome import Outcome, has_our_label, read_existing
from ..._observe.kubernetes.shell import Clock
from ..._observe.kubernetes.whose_scope import learn_scope
from ..._parse.kubernetes import core
from ..._parse.kubernetes.foreign import is_made_pod
from ..._parse.kubernetes.resource import name_of
from ..._parse.operators import machine_config, node_tuning
from ..._render.node.tuned import PRIORITY, render_profile, render_tuned

PAUSE_SECONDS = 2.0
Say = typing.Callable[[str], None]


class TuningSetter:
    """A client that sets and verifies the tuning of nodes through OpenShift's Node Tuning Operator.

    :param cluster: client of the API server
    :param intent: the intent, with its tuning and the labels of its nodes
    :param nodes: names of the nodes of the run
    :param clock: function that returns the time of a monotonic clock, in seconds
    :param pause: function that sleeps for a number of seconds
    :param say: function that shows a line of progress to the user
    :param refusal: reason why the Tuned must not be changed, and the remedy; empty texts if it may be changed
    """

    def __init__(
        self,
        cluster: Cluster,
        intent: Intent,
        nodes: typing.Sequence[str],
        clock: Clock,
        pause: typing.Callable[[float], None],
        say: Say,
        refusal: tuple[str, str] = ("", ""),
    ) -> None:
        self._cluster, self._intent, self._nodes = cluster, intent, nodes
        self._clock, self._pause, self._say = clock, pause, say
        self._selector, self._refusal = intent.cluster.node_selector, refusal

    def run(
        self, settings: Settings, check_mode: bool, limit: float
    ) -> tuple[TuningSet, tuple[Outcome, ...], tuple[str, ...]]:
        """Apply the host tuning as a Tuned, and wait until the operator has applied it on each node. If there is
        nothing to set, the operator is missing, or the Tuned must not be changed, return a result that says so.

        :param settings: desired values
        :param check_mode: whether nothing is changed
        :param limit: longest wait in seconds
        :returns: the result, the changes of the Tuned, and the nodes whose settings may have changed
        :raises ApiError: the API server cannot be reached, or refuses to read an object
        """
        if not settings.rows:
            return TuningSet("nothing"), (), ()
        if not self._cluster.serves(GROUP):
            return TuningSet("kernel_settings"), (), ()
        there = [core.parse_node(item) for item in self._cluster.list("Node").items]
        pools = [machine_config.machine_pool(item) for item in self._list_if_served("MachineConfigPool")]
        cluster = self._intent.cluster
        role = cluster.host.machine_role
        selected = find_selected_nodes(there, self._selector, role, pools)
        touched = [node for node in there if node.name in self._nodes or node in selected]
        parent = get_parent_profile(touched)
        wanted = mark_intent(render_tuned(settings, self._selector, role, parent), cluster.intent_name)
        why, remedy = self._explain_tuned_refusal(wanted, touched)
        if not why:
            why, remedy = self._explain_replaced_profile(selected, pools)
        if why:
            return TuningSet("tuned", refusal=why, remedy=remedy), (), ()
        text = render_profile(settings, parent)
        before = self._find_node_settings(text, 0.0)
        dry = check_mode or bool(self._refusal[0])
        known = Scope(
            cluster.intent_name or DEFAULT_INTENT, selector=self._selector, operator=cluster.operator_namespace or ""
        )
        scope = learn_scope(self._cluster, known)
        (outcome,) = apply_all(self._cluster, [("", wanted)], dry, self._clock, self._pause, scope=scope)
        if outcome.changed and not check_mode and dry:
            why, remedy = self._refusal
            return TuningSet("tuned", refusal=why, remedy=remedy), (), ()
        if outcome.applied.action == "refused":
            remedy = (
                "Correct the error in this message, or give the user of the kubeconfig the rights of"
                " docs/rbac/tuning.yml, then run stage tuning again."
            )
            return (
                TuningSet(
                    "tuned", refusal=f"the API server rejected the Tuned: {outcome.applied.refusal}", remedy=remedy
                ),
                (outcome,),
                (),
            )
        if check_mode:
            stand = dict.fromkeys(self._nodes, NodeSetting("planned")) if outcome.changed else before
            return TuningSet("tuned", stand), (outcome,), ()
        new = self._nodes if outcome.changed else [name for name in self._nodes if before[name].state != "set"]
        return TuningSet("tuned", self._wait_for_settings(text, limit)), (outcome,), tuple(new)

    def _explain_tuned_refusal(self, wanted: Resource, nodes: typing.Sequence[ClusterNode]) -> tuple[str, str]:
        """Return two texts: the reason why the Tuned must not be applied, and the remedy. Both are empty if it may be
        applied. Call this before anything is written.

        :param wanted: the rendered Tuned
        :param nodes: nodes of the run, and all nodes that the Tuned selects
        :raises ApiError: the API server cannot be reached, or refuses to read an object
        """
        found = read_existing(self._cluster, wanted)
        if found is not None and not has_our_label(found):
            return (
                (
                    f"Tuned {TUNED} in {NAMESPACE} does not belong to this collection: it does not have the label of"
                    " this collection"
                ),
                (
                    f"Rename or delete the Tuned, then run stage tuning again: oc -n {NAMESPACE} get tuned {TUNED} -o"
                    " yaml."
                ),
            )
        performance = self._list_if_served("PerformanceProfile")
        profiles = {name_of(item): node_tuning.selected_nodes(item) for item in performance}
        return explain_refusal(profiles, nodes, self._nodes)

    def _explain_replaced_profile(
        self, selected: typing.Sequence[ClusterNode], pools: typing.Sequence[MachinePool]
    ) -> tuple[str, str]:
        """Return two texts: which profile of another Tuned the collection's Tuned would replace, and the remedy. Both
        are empty if it replaces only the defaults of OpenShift.

        :param selected: all nodes that the Tuned selects
        :param pools: MachineConfigPools of the cluster
        :raises ApiError: the API server cannot be reached, or refuses to read an object
        """
        profiles = [node_tuning.node_profile(item) for item in self._cluster.list("Profile", NAMESPACE).items]
        entries = [
            entry
            for item in self._cluster.list("Tuned", NAMESPACE).items
            for entry in node_tuning.parse_recommendations(item)
        ]
        by_node = {profile.node: profile for profile in profiles}
        return explain_replaced(selected, by_node, entries, pools, PRIORITY, self._nodes)

    def _list_if_served(self, kind: str) -> list[Resource]:
        """Return all objects of a kind in all namespaces. Return an empty list if the API server does not serve the
        kind.

        :raises ApiError: the API server cannot be reached, or refuses the list
        """
        try:
            return list(self._cluster.list(kind).items)
        except ApiError as error:
            if not error.absent:
                raise
            return []

    def _find_node_settings(self, text: str, seconds: float) -> dict[str, NodeSetting]:
        seen = self._read_tuning_state()
        return {name: find_setting(name, text, self._selector, seen, seconds) for name in self._nodes}

    def _read_tuning_state(self) -> TuningState:
        tuneds = self._cluster.list("Tuned", NAMESPACE).items
        return TuningState(
            {name_of(item): core.parse_node(item) for item in self._cluster.list("Node").items},
            {name_of(item): node_tuning.node_profile(item) for item in self._cluster.list("Profile", NAMESPACE).items},
            tuple(
                core.parse_pod(item)
                for item in self._cluster.list("Pod", NAMESPACE, "openshift-app=tuned", only=is_made_pod).items
            ),
            next((node_tuning.explain_invalid(item) for item in tuneds if name_of(item) == TUNED), ""),
            tuple(entry for item in tuneds for entry in node_tuning.parse_recommendations(item)),
            tuple(machine_config.machine_pool(item) for item in self._list_if_served("MachineConfigPool")),
        )

    def _wait_for_settings(self, text: str, limit: float) -> dict[str, NodeSetting]:
        """Wait until the operator still has to apply the settings on no node, or until the limit. Return the state of
        each node, by name.

        :param text: text of the desired TuneD profile
        :param limit: longest wait in seconds
        """
        start, told = self._clock(), ""
        while True:
            seconds = self._clock() - start
            stand = self._find_node_settings(text, seconds)
            coming = [f"{name}: {item.why}" for name, item in stand.items() if item.state == "coming"]
            line = (
                f"{sum(item.state == 'set' for item in stand.values())} of {len(stand)} nodes have the"
                f" settings{f'; {coming[0]}' if coming else ''}"
            )
            if line != told:
                self._say(f"{seconds:.0f} s  {line}")
                told = line
            if not coming or seconds >= limit:
                return stand
            self._pause(PAUSE_SECONDS)
