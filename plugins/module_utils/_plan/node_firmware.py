# SPDX-License-Identifier: GPL-3.0-or-later

"""Compare the firmware settings of a node's HCAs with the desired ones, and plan the settings that the host writes.
Pure.

The host leaves an HCA unchanged if its settings are managed elsewhere: by the Arm cores of a BlueField in DPU mode, or
by NVIDIA's NIC configuration operator, which manages each HCA with a NicDevice. Two managers of one HCA would overwrite
the settings of each other.
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
    """A firmware setting of an HCA that does not have its desired value now, or will not have it after the next reset.

    :ivar address: PCI address of the HCA
    :ivar wish: desired value, with the name of the firmware parameter
    :ivar setting: values of the parameter that the HCA reports: current, after the next reset, and default
    :ivar in_force: whether the desired value is in force now; None if the firmware does not report it
    :ivar stored: whether the desired value is stored, so that the next reset applies it
    """

    address: str
    wish: DesiredSetting
    setting: FirmwareSetting
    in_force: typing.Optional[bool]
    stored: bool

    @property
    def difference(self) -> NodeDifference:
        """Return the setting as a difference of its node, which a roll corrects by a reset. The reset is a power cycle:
        a warm reboot does not always load settings, and a BlueField loads them only at a power cycle.
        """
        wanted = f"{self.wish.value} or more" if self.wish.least else self.wish.value
        return NodeDifference(
            FIRMWARE, f"{self.address} {self.wish.name}", self.setting.current or "unknown", wanted, "power_cycle"
        )


@dataclasses.dataclass(frozen=True)
class OfHost:
    """The firmware settings of a node that are set by programs on the node, not through the API server.

    :ivar unmet: settings that differ from the desired ones
    :ivar asked: whether a tool has reported the settings of at least one HCA, or has failed to do so
    :ivar errors: errors of the tools
    :ivar left: reasons why HCAs are left unchanged although their settings differ, in words
    """

    unmet: tuple[Unmet, ...] = ()
    asked: bool = False
    errors: tuple[str, ...] = ()
    left: tuple[str, ...] = ()


def plan_host(node: str, memberships: typing.Iterable[Membership], platform: NodePlatform, fleet: Fleet) -> OfHost:
    """Return the firmware settings of a node's HCAs that differ from the desired ones, and that the host is to write.
    Settings that no tool reports are left out, and so are HCAs that have a NicDevice, because the NIC configuration
    operator manages them.

    :param memberships: HCAs that belong to each fabric
    :param platform: observed PCI functions of the node
    :param fleet: intent, NicDevices and firmware settings of all nodes
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
                        f"{function.address} is a BlueField in DPU mode: its Arm cores manage {names}, so the host"
                        " does not change these settings"
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
    """The earlier resets of a node, as far as they are known.

    :ivar identities: identities of the differences for which the node was reset
    :ivar error: reason why the earlier resets are not known; empty if they are known
    """

    identities: tuple[str, ...] = ()
    error: str = ""


def collect_hosts(
    memberships: typing.Sequence[Membership], platforms: typing.Mapping[str, ObservedPlatform], fleet: Fleet
) -> dict[str, OfHost]:
    """Return the firmware settings of each node that the host manages, with their differences from the desired ones.
    They are empty for a node whose platform could not be observed.

    :param memberships: HCAs of each fabric
    :param platforms: observed platform of each node
    :param fleet: intent, NicDevices and firmware settings of all nodes
    """
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
    """Plan the firmware settings to write on all nodes. Nodes with nothing to write or to report are left out.

    :param hosts: settings of each node that the host manages
    :param before: earlier resets by node. A node that is absent was never reset
    :param operator: settings that NVIDIA's NIC configuration operator applies
    :param unread: reason why no setting may be written on any node; empty if settings may be written
    :param pods: names of the nodes that are observed through a pod, which cannot write settings
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
    """Return the firmware settings to write, by the PCI address of the HCA. If the fabric and the intent both require a
    minimum for a setting, the larger value is used.

    :param host: settings of the node that differ from the desired ones
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
    """Yield the desired firmware settings of an HCA that the tool reports, each as a tuple: the desired setting, the
    reported setting, and whether the desired value is stored, so that the next reset applies it.

    :param wished: desired settings
    :param seen: settings that the HCA reports
    """
    for wish in wished:
        setting = seen.setting(wish.name)
        stored = wish.met(setting.next) if setting is not None else None
        if setting is not None and stored is not None:
            yield wish, setting, stored
