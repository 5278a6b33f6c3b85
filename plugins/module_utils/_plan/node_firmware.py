# SPDX-License-Identifier: GPL-3.0-or-later

"""The firmware settings of a node's HCAs that differ from the desired ones, and those of them that the host sets. Pure.

The host leaves HCAs unchanged that another component manages: the Arm cores of a BlueField in DPU mode, and NVIDIA's
NIC configuration operator, which manages each HCA with a NicDevice. Two managers of one HCA would overwrite each
other's settings.
"""

from __future__ import annotations

import dataclasses
import typing

from .._analysis.fleet.hcas_of_fabric import Membership
from .._check.platform.firmware_fleet import Fleet
from .._check.platform.firmware_settings import DesiredSetting, is_in_force, list_desired_settings
from .._model.kubernetes.node_roll import NodeDifference
from .._model.kubernetes.observers import LOOKS_ONLY
from .._model.node.firmware import FirmwareSetting, HcaFirmware, NodeFirmwarePlan
from .._model.node.platform import NodePlatform, ObservedPlatform
from .nic_templates import ByOperator

FIRMWARE = "firmware"


@dataclasses.dataclass(frozen=True)
class Unmet:
    """A setting that does not have its desired value now, or will not have it after the next reset.

    :ivar address: PCI address of the HCA
    :ivar in_force: whether the desired value is in force now; None if the firmware does not report it
    :ivar stored: whether the next reset applies the desired value
    """

    address: str
    wish: DesiredSetting
    setting: FirmwareSetting
    in_force: typing.Optional[bool]
    stored: bool

    @property
    def difference(self) -> NodeDifference:
        """The setting as a difference for a roll. It needs a power cycle: a warm reboot does not always load settings,
        and a BlueField loads them only at a power cycle.
        """
        wanted = f"{self.wish.value} or more" if self.wish.least else self.wish.value
        return NodeDifference(
            FIRMWARE, f"{self.address} {self.wish.name}", self.setting.current or "not known", wanted, "power_cycle"
        )


@dataclasses.dataclass(frozen=True)
class OfHost:
    """The HCAs of a node whose settings the host manages.

    :ivar unmet: settings that differ from the desired ones
    :ivar asked: whether a tool reported settings, or failed, for at least one of them
    :ivar errors: errors of the tools
    :ivar left: HCAs that differ but are left unchanged, each with the reason, in words
    """

    unmet: tuple[Unmet, ...] = ()
    asked: bool = False
    errors: tuple[str, ...] = ()
    left: tuple[str, ...] = ()


def plan_host(node: str, memberships: typing.Iterable[Membership], platform: NodePlatform, fleet: Fleet) -> OfHost:
    """Compare the desired settings of a node's HCAs with the reported ones. Settings that no tool reports are left out,
    and so are HCAs with a NicDevice.
    """
    functions = {function.address: function for function in platform.functions}
    fabrics = {fabric.name: fabric for fabric in fleet.intent.fabrics}
    found, asked, errors, left = (
        typing.cast(list[Unmet], []),
        False,
        typing.cast(list[str], []),
        typing.cast(list[str], []),
    )
    for membership in memberships:
        fabric = fabrics[membership.fabric]
        for hca in (member.hca for member in membership.members.get(node, ())):
            function = functions.get(hca.pci.address) if hca.pci else None
            seen = fleet.firmware_of(node, function.address) if function is not None else None
            if function is None or seen is None or fleet.nic_of(node, function.address) is not None:
                continue
            lacks = [
                Unmet(function.address, wish, setting, now, stored)
                for wish, setting, stored in _list_known_settings(
                    list_desired_settings(fabric, seen, fleet.intent), seen
                )
                for now in [is_in_force(wish, setting, fabric, function)]
                if not (now and stored)
            ]
            if seen.dpu:
                names = ", ".join(dict.fromkeys(one.wish.name for one in lacks))
                left += (
                    [
                        f"{function.address} is a BlueField in DPU mode: its Arm cores set {names}, and the host leaves"
                        " it alone"
                    ]
                    if lacks
                    else []
                )
                continue
            asked = asked or bool(seen.settings or seen.errors)
            errors += seen.errors
            found += lacks
    return OfHost(tuple(dict.fromkeys(found)), asked, tuple(dict.fromkeys(errors)), tuple(dict.fromkeys(left)))


@dataclasses.dataclass(frozen=True)
class Before:
    """The differences for which a node was reset before.

    :ivar identities: identities of these differences
    :ivar error: why they are not known; empty if they are known
    """

    identities: tuple[str, ...] = ()
    error: str = ""


def collect_hosts(
    memberships: typing.Sequence[Membership], platforms: typing.Mapping[str, ObservedPlatform], fleet: Fleet
) -> dict[str, OfHost]:
    """Return the result of ``plan_host`` by node. The result is empty for a node whose platform was not observed."""
    return {
        node: plan_host(node, memberships, platform.value, fleet) if platform.value is not None else OfHost()
        for node, platform in platforms.items()
    }


def plan_nodes(
    hosts: typing.Mapping[str, OfHost],
    before: typing.Mapping[str, Before],
    operator: ByOperator,
    unread: str,
    pods: typing.Container[str],
) -> dict[str, NodeFirmwarePlan]:
    """Plan the settings of each node's HCAs. Nodes with an empty plan are left out.

    :param before: earlier resets by node. A node that is absent was never reset
    :param unread: why no setting may be written on any node; empty if settings may be written
    :param pods: names of the nodes that are observed through a pod
    """
    found = {}
    for node, host in hosts.items():
        known = before.get(node, Before())
        settings = to_set(host, known.identities)
        refusal = (unread or known.error or (LOOKS_ONLY if node in pods else "")) if settings else ""
        by = operator.cards.get(node, ())
        names, cards = (tuple(dict.fromkeys(pair[of] for pair in by)) for of in (0, 1))
        found[node] = NodeFirmwarePlan({} if refusal else settings, refusal, names, cards, operator.notes.get(node, ()))
    return {node: one for node, one in found.items() if one != NodeFirmwarePlan()}


def to_set(host: OfHost, reset_for: typing.Container[str]) -> dict[str, dict[str, str]]:
    """Return the settings to write, by the PCI address of the HCA. If the fabric and the intent both require a minimum,
    the larger value is used.

    :param reset_for: identities of differences for which the node was reset before. A setting that had no effect then
        is not written again
    """
    found: dict[str, dict[str, str]] = {}
    for one in host.unmet:
        if not one.stored and one.difference.identity not in reset_for:
            of_hca = found.setdefault(one.address, {})
            # the fabric and the intent may both ask for VFs
            of_hca[one.wish.name] = (
                max(of_hca.get(one.wish.name, one.wish.value), one.wish.value, key=int)
                if one.wish.least
                else one.wish.value
            )
    return found


def _list_known_settings(
    wished: typing.Iterable[DesiredSetting], seen: HcaFirmware
) -> typing.Iterator[tuple[DesiredSetting, FirmwareSetting, bool]]:
    """Yield each desired setting with the reported setting, and whether the next reset applies the desired value.
    Settings that the tool does not report are left out.
    """
    for wish in wished:
        setting = seen.setting(wish.name)
        stored = wish.met(setting.next) if setting is not None else None
        if setting is not None and stored is not None:
            yield wish, setting, stored
