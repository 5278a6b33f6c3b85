# SPDX-License-Identifier: GPL-3.0-or-later

"""What is set of the host under the network without a reboot, who sets it, and how each node took it."""

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
    """The settings of the intent, key by key as TuneD writes them.

    :ivar cpu: section of a profile of TuneD, as are the others
    :ivar rows: names of the rows that it is for
    """

    cpu: dict[str, str] = dataclasses.field(default_factory=dict)
    vm: dict[str, str] = dataclasses.field(default_factory=dict)
    sysctl: dict[str, str] = dataclasses.field(default_factory=dict)
    modules: dict[str, str] = dataclasses.field(default_factory=dict)
    rows: tuple[str, ...] = ()

    @property
    def sections(self) -> dict[str, dict[str, str]]:
        """Return those that have a key."""
        found = {"cpu": self.cpu, "vm": self.vm, "sysctl": self.sysctl, "modules": self.modules}
        return {name: keys for name, keys in found.items() if keys}


@dataclasses.dataclass(frozen=True)
class NodeProfile:
    """A Profile of the Node Tuning Operator: what one node shall have, and has.

    :ivar wanted: name of the profile that the operator has chosen
    :ivar active: name of the profile that TuneD has
    :ivar data: text of the wanted profile as the operator has handed it over; None where this version of it shows none
    :ivar current: the conditions are about what is wanted now, as far as this version of the operator tells
    :ivar applied: condition Applied
    :ivar degraded: condition Degraded
    :ivar message: of Degraded or Applied, whichever is wrong
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
class NodeSetting:
    """The state of the settings on one node.

    :ivar state: set, as a dry run finds it, still to come, or such that it does not come by itself
    """

    state: typing.Literal["set", "planned", "coming", "stuck"]
    why: str = ""
    remedy: str = ""


@dataclasses.dataclass(frozen=True)
class TuningSet:
    """The outcome of setting the desired values.

    :ivar way: a Tuned of the Node Tuning Operator, the module kernel_settings on each node, or nothing is to be set
    :ivar nodes: of the way ``tuned``
    :ivar refusal: why nothing was set on any node; empty: it was
    """

    way: typing.Literal["tuned", "kernel_settings", "nothing"]
    nodes: dict[str, NodeSetting] = dataclasses.field(default_factory=dict)
    refusal: str = ""
    remedy: str = ""


#: changes of the module kernel_settings on one node (``changes``, a line for each)
ObservedSettings = Observed[typing.Annotated[dict[str, typing.Any], Bound("keys of an answer", 1024)]]
