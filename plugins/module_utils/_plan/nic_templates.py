# SPDX-License-Identifier: GPL-3.0-or-later

"""Plan the templates for NVIDIA's NIC configuration operator. Each template matches only cards (HCAs) of one fabric.
Also determine the progress of the operator with each card. Pure.

The operator drains a node through its maintenance operator and reboots it without asking, even for a change that needs
no other firmware settings. Its drain deletes pods that no controller recreates [nic-configuration-operator
pkg/maintenance, internal/controller/nicdevice_controller.go].
"""

from __future__ import annotations

import dataclasses
import typing

from .._analysis.fleet.hcas_of_fabric import Membership
from .._check.platform.firmware_fleet import Fleet
from .._check.platform.firmware_settings import list_desired_settings
from .._model.intent.intent import Fabric
from .._model.kubernetes.node_roll import NodeDifferences
from .._model.node.firmware import BY_ADDRESS, HcaFirmware, NicDevices, NicState, NicTemplate
from .._model.node.platform import ObservedPlatform, PciEvidence
from .._render.cluster.names import Object, RenderError
from .._render.node.nic_configuration import render_templates
from .nic_serials import Card, find_strangers, leave_out, list_serials

OPERATOR = "NVIDIA's NIC configuration operator"
#: what the operator ends with, and what to do. It tries again by itself, and says so again
_CAUSES = {
    "IncorrectSpec": (
        "the card does not support the settings of the template. Correct rdma_cluster.firmware, or the link type of"
        " the fabric"
    ),
    "SpecValidationFailed": "the operator could not query the card. See the log of the operator's daemon on the node",
    "NonVolatileConfigUpdateFailed": "mlxconfig failed. See the log of the operator's daemon on the node",
    "RuntimeConfigUpdateFailed": (
        "the operator could not apply the settings that take effect without a reset. See the log of the operator's"
        " daemon on the node"
    ),
    "FirmwareError": (
        "the reboot did not apply the settings, and the operator does not reboot the node again for them. Power cycle"
        " the node, and check the card"
    ),
    "PartiallyApplied": "the card does not support some settings. Remove these settings from rdma_cluster.firmware",
}
_NO_SERIAL = (
    "the NicDevice reports no serial number, and a template without serial numbers would also select HCAs of nodes that"
    " join the cluster later. Read it with mstflint -d ADDRESS query full, and check the log of the operator's daemon"
    " on the node"
)
_LATER_NODES = (
    f"NicConfigurationTemplate {{}} {BY_ADDRESS}, because no NicDevice reports a serial number: {OPERATOR} will also"
    " drain and reboot a node of this kind that joins the cluster later. To prevent this, delete the template after"
    " this run"
)
#: settings of a template that the collection writes
_SETTINGS = ("numVfs", "linkType", "rawNvConfig")
_FIRMWARE_CAUSES = ("FirmwareUpdateFailed", "FirmwareSourceFailed", "DeviceFirmwareConfigMismatch")


@dataclasses.dataclass(frozen=True)
class ByOperator:
    """The firmware settings that NVIDIA's NIC configuration operator is to apply.

    :ivar objects: NicConfigurationTemplates, each with the name of its fabric
    :ivar cards: pairs of a template name and the name of a NicDevice that it configures, by node
    :ivar wanted: desired template values, by the name of the NicDevice
    :ivar notes: reasons why HCAs are left unchanged, by node
    :ivar going: nodes that the operator may reboot, because an HCA is not known to have its desired settings, or
        because the template of an HCA is new or changes
    """

    objects: tuple[tuple[str, Object], ...] = ()
    cards: typing.Mapping[str, tuple[tuple[str, str], ...]] = dataclasses.field(default_factory=dict)
    wanted: typing.Mapping[str, Object] = dataclasses.field(default_factory=dict)
    notes: typing.Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    going: tuple[str, ...] = ()


def by_operator(
    memberships: typing.Iterable[Membership],
    platforms: typing.Mapping[str, ObservedPlatform],
    fleet: Fleet,
    nics: NicDevices,
    there: typing.Sequence[NicTemplate],
    unread: str = "",
) -> ByOperator:
    """Plan the templates. Each fabric gets a template for each model of HCA, if an HCA of the model is not known to
    have its desired settings, or if the collection created that template before.

    :param memberships: HCAs of each fabric
    :param platforms: observed platform of each node
    :param fleet: intent, NicDevices and firmware settings of all nodes
    :param nics: all NicDevices of the cluster, from which it is determined whether a template would match an HCA
        outside of its fabric
    :param there: existing templates of the cluster
    :param unread: reason why the existing templates are not known; empty if they are known
    """
    fabrics = {fabric.name: fabric for fabric in fleet.intent.fabrics}
    objects: list[tuple[str, Object]] = []
    cards: dict[str, dict[tuple[str, str], None]] = {}
    wanted: dict[str, Object] = {}
    notes: dict[str, dict[str, None]] = {}
    going: dict[str, None] = {}
    for membership in memberships:
        fabric = fabrics[membership.fabric]
        for kind, group in _make_groups(membership, fabric, platforms, fleet).items():
            made = _build_nic_template(fabric, kind, group, fleet)
            named = made["metadata"]["name"] if isinstance(made, dict) else ""
            place = group[0].nic.namespace
            ours = next(
                (item for item in there if (item.ours, item.name, item.namespace) == (True, named, place)), None
            )
            if all(card.settled for card in group) and ours is None:
                continue
            why = made if isinstance(made, str) else unread or _explain_other_templates(group, there)
            strangers = find_strangers(kind, group, nics)
            # then the addresses of these cards do not suffice to tell them from others
            doubtful = bool(strangers or nics.errors)
            numbered = any(card.nic.serial for card in group)
            if why:
                left_out = {card.nic.name: why for card in group}
            elif doubtful:
                left_out = leave_out(kind, group, nics, strangers)
            else:
                left_out = {card.nic.name: _NO_SERIAL for card in group if numbered and not card.nic.serial}
            for card in group:
                if card.nic.name in left_out:
                    notes.setdefault(card.node, {})[
                        (
                            f"this collection creates no template of {OPERATOR} for the HCAs of fabric '{fabric.name}'"
                            f" on this node: {left_out[card.nic.name]}"
                        )
                    ] = None
            chosen = [card for card in group if card.nic.name not in left_out]
            if chosen and not isinstance(made, str):
                serials = list_serials(kind, chosen, nics, ours, platforms)
                made = _build_nic_template(fabric, kind, chosen, fleet, serials)
            if isinstance(made, str) or not chosen or (all(card.settled for card in chosen) and ours is None):
                continue
            if not numbered:
                for card in chosen:
                    notes.setdefault(card.node, {})[_LATER_NODES.format(made["metadata"]["name"])] = None
            objects.append((fabric.name, made))
            going.update(dict.fromkeys(card.node for card in chosen if not _is_kept(card, made, ours)))
            for card in chosen:
                cards.setdefault(card.node, {})[made["metadata"]["name"], card.nic.name] = None
                wanted[card.nic.name] = made["spec"]["template"]
    return ByOperator(
        tuple(objects),
        {node: tuple(of) for node, of in cards.items()},
        wanted,
        {node: tuple(of) for node, of in notes.items()},
        tuple(going),
    )


def _is_kept(card: Card, made: Object, ours: typing.Optional[NicTemplate]) -> bool:
    """Return whether the operator has nothing to do for a card: the card is known to have its desired settings, and the
    existing template selects it already and requires the same settings. The operator sets a number of VFs exactly: if
    the template requires fewer VFs than the card offers, the operator reboots the node.

    :param made: desired template of the card
    :param ours: existing template of this name that the collection created; None if there is no such template
    """
    if ours is None or not card.settled or card.nic.name not in ours.cards:
        return False
    wanted = made["spec"]["template"]
    return all(wanted.get(name) == ours.template.get(name) for name in _SETTINGS)


def find_progress(
    state: typing.Optional[NicState], template: Object
) -> tuple[typing.Literal["done", "waits", "failed"], str]:
    """Return how far the operator has applied a template to a card, and why it waits or failed (empty for ``done``).

    :param state: state of the card; None if its NicDevice no longer exists
    :param template: template values that the card must have
    """
    if state is None:
        return "waits", "the NicDevice does not exist"
    if not _has_template_values(state.template, template):
        return (
            "failed",
            (
                "the operator has not applied the template of this collection to the card. Check whether the node has"
                " the labels of rdma_cluster.node_selector, and whether the operator runs"
            ),
        )
    if not state.seen:
        return "waits", "the operator's daemon on the node has not processed the card yet"
    said = f" ({state.message})" if state.message else ""
    if state.reason in _CAUSES:
        return "failed", f"{state.reason}{said}: {_CAUSES[state.reason]}"
    if state.reason == "PendingFirmwareUpdate" and state.firmware in _FIRMWARE_CAUSES:
        return (
            "failed",
            (
                f"{state.firmware}: the firmware update of the card failed, and the operator applies the settings"
                f" only after that update. Run kubectl describe nicdevice {state.name} to see the error"
            ),
        )
    if state.reason == "UpdateSuccessful":
        return "done", ""
    return "waits", f"{state.reason or 'the operator reports no reason'}{said}"


def of_operator(
    templates_of_node: typing.Iterable[str],
    cards: typing.Iterable[str],
    actions: typing.Mapping[str, tuple[str, str]],
    left: typing.Mapping[str, str],
    allowed: bool,
    dry: bool,
) -> NodeDifferences:
    """Return the state of the cards of one node that the NIC configuration operator configures: the reasons why
    settings are not applied (refusals), and the progress (notes).

    :param templates_of_node: names of the templates that select cards of the node
    :param cards: names of the NicDevices of the node
    :param actions: result of applying each template, and the reason of a refusal, by the name of the template
    :param left: reason why a card does not have its template's settings, by the name of the NicDevice
    :param allowed: whether the intent allows reboots. Otherwise no template was applied
    :param dry: whether the run is in check mode, where no template is applied
    """
    refusals, notes = typing.cast(list[str], []), typing.cast(list[str], [])
    for name in templates_of_node:
        action, why = actions.get(name, ("", ""))
        if action == "refused":
            refusals.append(f"The API server rejected NicConfigurationTemplate {name}: {why.rstrip('.')}.")
        elif not action:
            refusals.append(
                f"It is unknown whether NicConfigurationTemplate {name} was applied. See the errors of the earlier"
                " tasks of this run."
            )
        elif action != "unchanged" and not allowed:
            what = f"NicConfigurationTemplate {name} was not applied: {OPERATOR} would drain and reboot the node for it"
            refusals.append(
                f"{what}. When the nodes may be rebooted, set rdma_cluster.disruption to reboot, then rerun."
            )
        elif action != "unchanged":
            told = (
                "drains and reboots the node through its maintenance operator and within the limits of that operator;"
                " pods without a controller are deleted and not recreated"
            )
            notes.append(
                f"{OPERATOR}"
                f" {told if dry else 'has configured its HCAs, and drained and rebooted the node if required'}"
                f" ({action} {name})"
            )
    refusals += [
        f"{OPERATOR} has not configured NicDevice {card}: {left[card].rstrip('.')}." for card in cards if card in left
    ]
    return NodeDifferences(refusals=tuple(refusals), notes=tuple(notes))


def _make_groups(
    membership: Membership, fabric: Fabric, platforms: typing.Mapping[str, ObservedPlatform], fleet: Fleet
) -> dict[str, list[Card]]:
    """Return the cards of one fabric by their PCI device id. BlueFields in DPU mode are left out.

    :param platforms: observed PCI functions of each node, by node
    """
    found: dict[str, list[Card]] = {}
    for node, members in membership.members.items():
        platform = platforms.get(node, ObservedPlatform()).value
        functions = {function.address: function for function in platform.functions} if platform is not None else {}
        for pci in (member.hca.pci for member in members):
            nic, seen = (fleet.nic_of(node, pci.address), fleet.firmware_of(node, pci.address)) if pci else (None, None)
            if pci is not None and nic is not None and not nic.dpu and not (seen is not None and seen.dpu):
                found.setdefault(pci.device.lower(), []).append(
                    Card(node, pci.address, nic, _settled(fabric, functions.get(pci.address), seen, fleet))
                )
    return found


def _settled(
    fabric: Fabric, function: typing.Optional[PciEvidence], seen: typing.Optional[HcaFirmware], fleet: Fleet
) -> bool:
    """Return whether a card is known to have its desired settings. Besides the reported firmware settings, the VFs that
    the function offers prove the settings that they need, and the membership of the fabric proves the link type.

    :param function: PCI state of the card's function; None if unknown
    :param seen: firmware settings that the card reports; None if unknown
    """
    if function is None:
        return False
    shown = seen if seen is not None else HcaFirmware(function.address)
    for wish in list_desired_settings(fabric, shown, fleet.intent):
        setting = shown.setting(wish.name)
        if setting is not None and wish.met(setting.next) is False:
            return False
        proven = (wish.needed and (not wish.least or (function.sriov_total or 0) >= int(wish.value))) or (
            setting is not None and wish.met(setting.current)
        )
        if not proven:
            return False
    return (function.sriov_total or 0) >= fabric.virtual_functions


def _build_nic_template(
    fabric: Fabric, kind: str, group: typing.Sequence[Card], fleet: Fleet, serials: typing.Sequence[str] = ()
) -> typing.Union[Object, str]:
    """Return the template for a group of cards. Its selector contains their PCI addresses, so that it matches no other
    card of their nodes. If no template can be rendered, return the reason as a text.

    :param kind: PCI device id of the cards
    :param serials: serial numbers of the selector; empty if the serial number of no card is known
    """
    narrowed = dataclasses.replace(
        fabric, select=dataclasses.replace(fabric.select, pci=tuple(sorted({card.address for card in group})))
    )
    try:
        (made,) = render_templates([narrowed], fleet.intent.cluster, {fabric.name: [kind]}, group[0].nic.namespace)
    except RenderError as error:
        return str(error)
    if serials:
        made["spec"]["nicSelector"]["serialNumbers"] = list(serials)
    return made


def _explain_other_templates(group: typing.Sequence[Card], there: typing.Sequence[NicTemplate]) -> str:
    """Return the reason why no template must be applied to a group of cards: a template that the collection did not
    create configures them already. Return an empty text if there is no such template.

    :param there: existing templates of the cluster
    """
    names = {card.nic.name for card in group}
    theirs = sorted(item.name for item in there if not item.ours and names & {*item.cards})
    if theirs:
        return (
            f"NicConfigurationTemplate {', '.join(theirs)} also selects these HCAs, and the operator applies no"
            " template to an HCA that two templates select. Add the required settings to that template"
        )
    return ""


def _has_template_values(has: typing.Mapping[str, typing.Any], template: Object) -> bool:
    return bool(template) and all(has.get(key) == value for key, value in template.items())
