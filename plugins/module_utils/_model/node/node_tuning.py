# SPDX-License-Identifier: GPL-3.0-or-later

"""The tuning of hosts that needs no reboot, such as sysctls: the settings, the tool that applies them, and the result
on each node.
"""

from __future__ import annotations

import dataclasses
import typing

from ..base.observed import Observed
from ..boundary.form import Bound

#: API group of the Node Tuning Operator, which OpenShift has
GROUP = "tuned.openshift.io"
NAMESPACE = "openshift-cluster-node-tuning-operator"
#: of the Tuned, and of the profile in it
TUNED = "linerate-rdma"


@dataclasses.dataclass(frozen=True)
class Settings:
    """The tuning settings of the intent that need no reboot, in the format of TuneD.

    :ivar cpu: section ``cpu`` of a TuneD profile: value by setting
    :ivar vm: section ``vm`` of a TuneD profile
    :ivar sysctl: section ``sysctl`` of a TuneD profile
    :ivar modules: section ``modules`` of a TuneD profile: options by kernel module
    :ivar rows: names of the tuning rows (observable properties of a node) that these settings bring to their expected
        values
    """

    cpu: dict[str, str] = dataclasses.field(default_factory=dict)
    vm: dict[str, str] = dataclasses.field(default_factory=dict)
    sysctl: dict[str, str] = dataclasses.field(default_factory=dict)
    modules: dict[str, str] = dataclasses.field(default_factory=dict)
    rows: tuple[str, ...] = ()

    @property
    def sections(self) -> dict[str, dict[str, str]]:
        """Return the sections of the TuneD profile that are not empty, by name. Each section has the value of each
        setting.
        """
        found = {"cpu": self.cpu, "vm": self.vm, "sysctl": self.sysctl, "modules": self.modules}
        return {name: keys for name, keys in found.items() if keys}


@dataclasses.dataclass(frozen=True)
class NodeProfile:
    """A Profile of the Node Tuning Operator: the desired and the active TuneD profile of one node.

    :ivar node: name of the node
    :ivar wanted: name of the profile that the operator selected
    :ivar active: name of TuneD's active profile
    :ivar data: text of the selected profile; None if this version of the operator does not include it
    :ivar current: whether the conditions refer to the selected profile, as far as this version of the operator reports
        it
    :ivar applied: condition Applied
    :ivar degraded: condition Degraded
    :ivar message: message of the condition that is wrong, Degraded or Applied
    """

    node: str
    wanted: str = ""
    active: str = ""
    data: typing.Optional[str] = None
    current: bool = True
    applied: bool = False
    degraded: bool = False
    message: str = ""


@dataclasses.dataclass(frozen=True)
class Recommendation:
    """An entry of ``spec.recommend`` of a Tuned: a profile, and the nodes for which it is recommended.

    :ivar tuned: name of the Tuned
    :ivar profile: name of the recommended profile
    :ivar priority: the lowest number wins
    :ivar matches: conditions on labels of a node, by label, of which one mapping must hold; a value of None stands for
        any value. An empty mapping holds for each node
    :ivar pool_labels: labels of MachineConfigs; the entry also holds for the nodes of the MachineConfigPools that
        select these MachineConfigs. Empty for none
    """

    tuned: str
    profile: str
    priority: int
    matches: tuple[dict[str, typing.Optional[str]], ...] = ()
    pool_labels: dict[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class NodeSetting:
    """The progress of applying the tuning settings on one node.

    :ivar state: ``set``, ``planned`` (check mode), ``coming`` (in progress) or ``stuck`` (does not resolve itself)
    :ivar why: cause of any state but ``set``
    :ivar remedy: instruction to the user that resolves the cause
    """

    state: typing.Literal["set", "planned", "coming", "stuck"]
    why: str = ""
    remedy: str = ""


@dataclasses.dataclass(frozen=True)
class TuningSet:
    """The result of applying the tuning settings on all nodes (node_tuning).

    :ivar way: tool that sets the values: ``tuned`` (a Tuned of the Node Tuning Operator), ``kernel_settings`` (that
        module on each node) or ``nothing`` (there is nothing to set)
    :ivar nodes: result on each node, with ``tuned`` only
    :ivar refusal: why nothing was set on any node; empty on success
    :ivar remedy: next step of the user after a refusal
    """

    way: typing.Literal["tuned", "kernel_settings", "nothing"]
    nodes: dict[str, NodeSetting] = dataclasses.field(default_factory=dict)
    refusal: str = ""
    remedy: str = ""


#: below the root of a node: the files of the module kernel_settings
SYSCTL, TMPFILES = "etc/sysctl.d/90-linerate-rdma.conf", "etc/tmpfiles.d/linerate-rdma.conf"
#: answer of the module kernel_settings on one node: its changes (``changes``, a line for each), why it set nothing
#: (``refusal``: a file of another intent), and the files of other intents that a teardown left (``stays``)
ObservedSettings = Observed[typing.Annotated[dict[str, typing.Any], Bound("keys of an answer", 1024)]]
