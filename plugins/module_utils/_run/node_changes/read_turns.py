# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads which nodes other operators drain or reboot, or will in their next turns. The rules are in
_analysis/controllers/drains/operator_turns.py.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._analysis.controllers.drains.operator_turns import OperatorTurns, count_operations, find_turns
from ..._analysis.controllers.drains.room import DAEMON, RIGHTS
from ..._model.base.phrases import describe_unread_remedy
from ..._model.kubernetes.disruption import NodePool
from ..._model.kubernetes.mappings import find_mapping
from ..._model.kubernetes.objects import ClusterNode
from ..._model.operators.sriov_operator import NodeState
from ..._observe.kubernetes.client import Cluster
from ..._observe.kubernetes.errors import ApiError
from ..._observe.kubernetes.kinds import Resource
from ..._observe.operators.sriov_operator import find_namespace
from ..._parse.kubernetes.foreign import is_made_pod
from ..._parse.kubernetes.resource import ResourceError, items_of, labels_of, mapping_at, name_of, read_namespace
from ..._parse.operators import sriov_operator
from ..._parse.operators.maintenance_operator import NAME, parse_parallel_operations
from ..._parse.operators.nic_configuration_operator import is_reported, parse_turn

#: label of the pods of the SR-IOV operator's config daemon [sriov-network-operator bindata/manifests/daemon]
_DAEMON_KEY, _DAEMON_VALUE = "app", "sriov-network-config-daemon"
_DAEMON_LABEL = f"{_DAEMON_KEY}={_DAEMON_VALUE}"
_UNKNOWN = "it is unknown how many nodes NVIDIA's maintenance operator takes down at the same time"
#: characters of an id that count: a kubelet may write any text
_MOST_ID = 200
_STATE, _POOL, _CONFIG = "SriovNetworkNodeState", "SriovNetworkPoolConfig", "MaintenanceOperatorConfig"


@dataclasses.dataclass(frozen=True)
class _Reset:
    """A reset of a node by this roll.

    :ivar boot: boot ID of the node before the reset
    :ivar daemon: pods of the config daemon of the SR-IOV operator before the reset, with the ids of their containers
    :ivar unread: reason why these pods could not be read; empty if they were
    :ivar settled: whether the operator had finished its work on the node before the reset
    """

    boot: str
    daemon: frozenset[str]
    unread: str
    settled: bool


class TurnReader:
    """A reader of the nodes that other operators take down now or in their next turn. The namespace of the SR-IOV
    operator is determined once.

    :param cluster: client of the API server
    :param namespace: namespace of the SR-IOV operator; empty or None to search for it
    """

    def __init__(self, cluster: Cluster, namespace: typing.Optional[str] = None) -> None:
        self._cluster = cluster
        #: namespace of the SR-IOV operator; empty if nothing shows it, None if it was not determined yet
        self._place = namespace or None
        self._resets: dict[str, _Reset] = {}

    def read(self, nodes: typing.Sequence[ClusterNode]) -> tuple[tuple[OperatorTurns, ...], dict[str, str]]:
        """Return two values: the nodes that other operators take down, with the reasons, for each operator, and the
        reason for each kind that could not be read, by kind.

        :param nodes: nodes of the cluster
        :raises ApiError: the API server cannot be reached
        :raises ResourceError: a SriovNetworkNodeState is malformed
        """
        unread: dict[str, str] = {}
        states = [sriov_operator.node_state(item) for item in self._list_states(unread)]
        cards, places = self._list_card_turns(unread)
        waits = any(why for _node, why in cards)
        operations = self.read_operations(places, len(nodes))[0] if waits else 1
        turns = find_turns(nodes, states, cards, self._list_pools() if states else (), operations)
        return (*turns, *self._find_restarts(nodes, states, turns, unread)), unread

    def begin_reset(self, node: ClusterNode, ordered: bool = False) -> str:
        """Record the config daemon of the SR-IOV operator on a node. Call this immediately before the node is reset.
        Return the reason why the node must not be reset: the state of the daemon cannot be read, so that it could not
        be determined afterwards whether the operator is done with the node. Return an empty text if it may be reset.

        After the reset, ``read`` reports the node as taken by the SR-IOV operator until this daemon has started again
        and has finished its work, because the operator may then reboot the node once more. A node without the daemon is
        not reported.

        :param node: node that is about to be reset
        :param ordered: whether the reset was ordered already. It is then recorded although the daemon cannot be read
        :raises ApiError: the API server cannot be reached
        """
        unread: dict[str, str] = {}
        states = {name_of(item): item for item in self._list_states(unread)}
        why = f"{_STATE}: {unread[_STATE]}" if _STATE in unread else ""
        if not node.boot_id or not (why or node.name in states):
            return ""
        daemon: frozenset[str] = frozenset()
        settled = not why and sriov_operator.node_state(states[node.name]).sync_status == "Succeeded"
        if not why:
            daemon, why = self._read_daemon(node.name)
        if ordered or not why:
            self._resets[node.name] = _Reset(node.boot_id, daemon, why, settled)
        return why

    def _find_restarts(
        self,
        nodes: typing.Iterable[ClusterNode],
        states: typing.Iterable[NodeState],
        turns: tuple[OperatorTurns, ...],
        unread: dict[str, str],
    ) -> typing.Iterator[OperatorTurns]:
        """Yield, as turns of the SR-IOV operator, the nodes that were reset and on which its config daemon has not
        started again yet, or has not finished its work.

        :param nodes: nodes of the cluster
        :param states: SriovNetworkNodeStates of the operator
        :param turns: nodes that the operator takes down already
        :param unread: reasons by kind, to which the reason is added if it is unknown whether the daemon has started
            again
        """
        status = {state.node: state.sync_status for state in states}
        taken = {name for turn in turns for name in turn.nodes}
        found = {}
        for node in nodes:
            reset = self._resets.get(node.name)
            if reset is None or node.boot_id in ("", reset.boot) or node.name in taken or node.name not in status:
                continue
            daemon, why = self._read_daemon(node.name) if reset.daemon else (reset.daemon, reset.unread)
            if why:
                unread[DAEMON] = f"{node.name}: {why}"
            elif daemon and daemon == reset.daemon:
                found[node.name] = (
                    "the node was reset, and the config daemon of the SR-IOV operator has not started on it since, so"
                    " the operator may still reboot it (pods with the label app=sriov-network-config-daemon)"
                )
            elif reset.settled and status[node.name] == "InProgress":
                found[node.name] = (
                    "the node was reset, and the SR-IOV operator still configures it (SriovNetworkNodeState:"
                    " syncStatus InProgress)"
                )
        if found:
            yield OperatorTurns("sriov", found, reboots=frozenset(found))

    def _read_daemon(self, node: str) -> tuple[frozenset[str], str]:
        """Return two values: the pods of the config daemon on a node, each with the ids of its containers, which change
        with each start, and the reason if the pods could not be read. The set is empty if the node has none.

        :param node: name of the node
        :raises ApiError: the API server cannot be reached
        """
        try:
            pods = self._cluster.list("Pod", "", _DAEMON_LABEL, f"spec.nodeName={node}").items
        except ApiError as error:
            if error.status == 0:
                raise
            return frozenset(), "" if error.absent else error.no_answer
        return frozenset(map(_identify_pod, filter(_is_daemon, self._select_place(pods)))), ""

    def _list_states(self, unread: dict[str, str]) -> list[Resource]:
        """Return the SriovNetworkNodeStates in the namespace of the SR-IOV operator. Those in other namespaces are left
        out, because a tenant may have created them with the name of any node. If the namespace is not known, return
        those with a status, which only a daemon of the operator writes.

        :param unread: reason for each kind that could not be read, by kind. If the list is refused, the reason is added
        :raises ApiError: the API server cannot be reached
        """
        try:
            states = self._cluster.list(_STATE).items
        except ApiError as error:
            _add_reason(unread, _STATE, error)
            return []
        if self._place is None and states:
            self._place = find_namespace(self._cluster)
        if not self._place:
            return [state for state in states if find_mapping(state, "status").get("syncStatus")]
        return self._select_place(states)

    def read_operations(self, places: typing.Container[str], size: int) -> tuple[typing.Optional[int], str, str]:
        """Return three values: how many nodes NVIDIA's maintenance operator takes down at the same time (None for no
        limit, or if it is unknown), the origin of that number as text, and the reason with the remedy if the number is
        unknown (empty otherwise).

        The number is in a MaintenanceOperatorConfig, which a tenant may also have created in its own namespace. If a
        namespace with NicDevices contains such an object, only the objects in these namespaces count.

        :param places: names of the namespaces with NicDevices
        :param size: number of nodes of the cluster
        :raises ApiError: the API server cannot be reached
        """
        try:
            found = [item for item in self._cluster.list(_CONFIG).items if name_of(item) == NAME]
            found = [item for item in found if read_namespace(item) in places] or found
            at_once, limit = count_operations([parse_parallel_operations(item) for item in found], size)
        except ApiError as error:
            if error.status == 0:
                raise
            if error.absent:
                return (*count_operations((), size), "")
            how = describe_unread_remedy((error.no_answer,), RIGHTS)
            return None, "", f"{_UNKNOWN} ({_CONFIG}: {error.no_answer}). {how}."
        except ResourceError as error:
            return None, "", f"{_UNKNOWN} ({error.seen}). Correct this value."
        return at_once, limit, ""

    def _select_place(self, items: typing.Iterable[Resource]) -> list[Resource]:
        """Return the objects in the namespace of the SR-IOV operator. Return all objects if the namespace is not known.

        :param items: objects of one kind
        """
        return [item for item in items if self._place in (None, "", read_namespace(item))]

    def _list_pools(self) -> typing.Optional[list[NodePool]]:
        """Return the SriovNetworkPoolConfigs in the namespace of the SR-IOV operator. Return None if they cannot be
        read or one is malformed. The caller then treats each waiting node as one of the next turn.

        :raises ApiError: the API server cannot be reached
        """
        try:
            return list(map(sriov_operator.node_pool, self._select_place(self._cluster.list(_POOL).items)))
        except ApiError as error:
            if error.status == 0:
                raise
            return [] if error.absent else None
        except ResourceError:
            return None

    def _list_card_turns(self, unread: dict[str, str]) -> tuple[list[tuple[str, str]], set[str]]:
        """Return two values: the nodes that NVIDIA's NIC configuration operator reboots now or in its next turn, each
        with the reason, and the namespaces with NicDevices that have a status. A NicDevice without a status is not of
        the operator, because only its daemon writes the status. A malformed NicDevice is left out.

        :param unread: reason for each kind that could not be read, by kind. If the list is refused, the reason is added
        :raises ApiError: the API server cannot be reached
        """
        found: dict[str, str] = {}
        places: set[str] = set()
        try:
            for item in self._cluster.pages("NicDevice"):
                try:
                    node, why = parse_turn(item)
                    places |= {read_namespace(item)} if is_reported(item) else set()
                except ResourceError:
                    continue
                if node and why:
                    found[node] = why
        except ApiError as error:
            _add_reason(unread, "NicDevice", error)
        return list(found.items()), places


def _add_reason(unread: dict[str, str], kind: str, error: ApiError) -> None:
    """Record the reason why the objects of a kind could not be read. If the API server does not serve the kind, there
    are no objects, and nothing is recorded.

    :param unread: reason for each kind that could not be read, by kind
    :raises ApiError: the error is that the API server cannot be reached
    """
    if error.status == 0:
        raise error
    if not error.absent:
        unread[kind] = error.no_answer


def _is_daemon(pod: Resource) -> bool:
    """Return whether a pod has the label of the SR-IOV operator's config daemon and is not a mirror pod, which any
    kubelet can create.
    """
    return is_made_pod(pod) and labels_of(pod).get(_DAEMON_KEY) == _DAEMON_VALUE


def _identify_pod(pod: Resource) -> str:
    """Return the uid of a pod and the ids of its containers as text, separated by spaces. Each is cut to ``_MOST_ID``
    characters.
    """
    try:
        statuses = items_of(mapping_at(pod, "status"), "containerStatuses", name_of(pod))
    except ResourceError:
        # only the kubelet of the node writes it
        statuses = []
    ids = sorted(str(status.get("containerID", ""))[:_MOST_ID] for status in statuses)
    return " ".join((str(mapping_at(pod, "metadata").get("uid", ""))[:_MOST_ID], *ids))
