# SPDX-License-Identifier: GPL-3.0-or-later

"""The facts by which stage network is judged."""

from __future__ import annotations

import dataclasses
import typing

from ..._analysis.addresses.host_networks import Hosts
from ..._model.kubernetes.addresses import AddressFacts
from ..._model.kubernetes.apply import AppliedObject, Leftovers
from ..._model.kubernetes.disruption import DisruptionPlan
from ..._model.kubernetes.host import KubeletStatus, Roll
from ..._model.kubernetes.wait import SyncFacts
from ..._model.node.hca import ObservedHcas
from ..._model.node.platform import ObservedPlatform
from ..._model.run.findings import Finding


@dataclasses.dataclass(frozen=True)
class LintFacts:
    """The result of the linter, which judges the objects of the fabrics before they are applied.

    :ivar findings: findings of the linter
    :ivar held: fabrics whose objects were not applied, each with the reason
    :ivar errors: data that the linter could not read, each with the reason
    """

    findings: tuple[Finding, ...] = ()
    held: dict[str, str] = dataclasses.field(default_factory=dict)
    errors: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Facts:
    """The facts by which stage network is judged, besides the intent.

    :ivar nodes: names of the nodes that must take part
    :ivar applied: outcome of each object
    :ivar sync: answer of sriov_sync: progress of each node of each fabric; None if it did not run
    :ivar unmade: fabrics whose objects could not be generated, each with the reason
    :ivar check_mode: whether ansible-playbook ran with --check
    :ivar plan: answer of sriov_plan: drains and reboots; None if it did not run
    :ivar ipam: answer of address_info: addresses in use; None if it did not run
    :ivar lint: result of the linter before the objects were applied; None if it did not run
    :ivar rolls: result of the roll of each MachineConfigPool to its new configuration
    :ivar kubelet: state of the KubeletConfigs after these rolls; None if it was not read
    :ivar roll_error: why the pools did not finish the new configuration; empty if they did
    :ivar leftovers: objects of the collection that the intent does not contain; None if they were not searched for
    :ivar platforms: platform of each node, with the networks of its interfaces
    :ivar hcas: HCAs of each node
    :ivar allowed: whether the plan permitted writing; if not, all later steps were a dry run
    """

    nodes: tuple[str, ...] = ()
    applied: tuple[AppliedObject, ...] = ()
    sync: typing.Optional[SyncFacts] = None
    unmade: dict[str, str] = dataclasses.field(default_factory=dict)
    check_mode: bool = False
    plan: typing.Optional[DisruptionPlan] = None
    ipam: typing.Optional[AddressFacts] = None
    lint: typing.Optional[LintFacts] = None
    rolls: tuple[Roll, ...] = ()
    kubelet: typing.Optional[KubeletStatus] = None
    roll_error: str = ""
    leftovers: typing.Optional[Leftovers] = None
    allowed: bool = True
    platforms: dict[str, ObservedPlatform] = dataclasses.field(default_factory=dict)
    hcas: dict[str, ObservedHcas] = dataclasses.field(default_factory=dict)

    @property
    def unwritten(self) -> bool:
        """Return whether the run wrote nothing to the cluster, in check mode or because the plan did not permit it."""
        return self.check_mode or not self.allowed

    @property
    def hosts(self) -> typing.Optional[Hosts]:
        """Return the networks of the interfaces of the nodes; None if no platform was observed."""
        read = {node: seen.value for node, seen in self.hcas.items() if seen.value is not None and seen.error is None}
        return Hosts(self.platforms, read) if self.platforms else None

    @property
    def linted(self) -> LintFacts:
        """Return the result of the linter; an empty result if it did not run."""
        return self.lint or LintFacts()
