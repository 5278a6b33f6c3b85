# SPDX-License-Identifier: GPL-3.0-or-later

"""The facts by which a teardown is judged."""

from __future__ import annotations

import dataclasses
import typing

from ..._model.boundary.form import Bound
from ..._model.boundary.numbers import MOST_MESSAGES
from ..._model.kubernetes.apply import MOST_REMOVED, AppliedObject
from ..._model.kubernetes.host import ObservedText, Roll
from ..._model.kubernetes.wait import SyncFacts
from ..._model.node.kernel_arguments import LeftArguments
from ..._model.node.node_tuning import ObservedSettings
from ..._model.operators.olm import RetainedObject
from ..._model.operators.operators import OperatorsSeen
from ..._model.operators.sriov_operator import OperatorFacts


@dataclasses.dataclass(frozen=True)
class Facts:
    """The input of the check besides the intent.

    :ivar nodes: names of the nodes that took part
    :ivar removed: result for each object; None when not every removal task reported its results
    :ivar sync: answer of sriov_sync after the removal; None when it did not run
    :ivar operators: result of sriov_operator_info after the removal; None if it did not run
    :ivar operator_removed: whether the SR-IOV operator was removed as well
    :ivar rolls: rolls of the MachineConfigPools after MachineConfigs and KubeletConfigs were removed; None when they
        were not read
    :ivar roll_error: reason why the pools were not ready for that
    :ivar hosts_unread: reasons why further MachineConfigs and KubeletConfigs of the collection may exist
    :ivar drop_ins: state of containerd's drop-in on each node, as the module file reports it
    :ivar kernel_arguments: arguments that the module kernel_arguments added and did not remove, on each node
    :ivar kernel_settings: settings that the module kernel_settings removed on each node, where the intent set some
    :ivar by_pods: names of the nodes that are reached by observers, which read a node but remove nothing from it
    :ivar check_mode: whether the run was in check mode, in which nothing is removed
    :ivar stays: objects that remain of the operators that OLM installed for linerate.rdma
    :ivar left: answer of operators_info after the removal, which shows the operators that a run installed by Helm; None
        when it did not run
    """

    nodes: tuple[str, ...] = ()
    removed: typing.Optional[typing.Annotated[tuple[AppliedObject, ...], Bound("objects", MOST_REMOVED)]] = None
    sync: typing.Optional[SyncFacts] = None
    operators: typing.Optional[OperatorFacts] = None
    operator_removed: bool = False
    rolls: typing.Optional[tuple[Roll, ...]] = None
    roll_error: str = ""
    hosts_unread: typing.Annotated[tuple[str, ...], Bound("messages", MOST_MESSAGES)] = ()
    drop_ins: dict[str, ObservedText] = dataclasses.field(default_factory=dict)
    kernel_arguments: dict[str, LeftArguments] = dataclasses.field(default_factory=dict)
    kernel_settings: dict[str, ObservedSettings] = dataclasses.field(default_factory=dict)
    by_pods: tuple[str, ...] = ()
    check_mode: bool = False
    stays: typing.Annotated[tuple[RetainedObject, ...], Bound("objects", MOST_REMOVED)] = ()
    left: typing.Optional[OperatorsSeen] = None
