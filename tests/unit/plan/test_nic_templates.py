# SPDX-License-Identifier: GPL-3.0-or-later

"""Templates for NVIDIA's operator match no card but those of their fabric, and how far it is with a card is told with
the cause."""

from __future__ import annotations

import dataclasses
import typing

import hypothesis
import hypothesis.strategies as some
import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.fleet.hcas_of_fabric import resolve_members
from ansible_collections.linerate.rdma.plugins.module_utils._check.platform.firmware_fleet import (
    collect_fleet as compared,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.firmware import (
    BY_ADDRESS,
    FirmwareIntent,
    FirmwareSetting,
    NicDevice,
    NicDevices,
    NicState,
    NicTemplate,
    NodeFirmware,
    ObservedFirmware,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.platform import ObservedPlatform
from ansible_collections.linerate.rdma.plugins.module_utils._plan.nic_templates import (
    ByOperator,
    by_operator,
    find_progress,
    of_operator,
)
from ansible_collections.linerate.rdma.tests.unit.truth.fleet import PAIR, healthy

FLEET = healthy(PAIR)
FACTS = FLEET.of("platform")
NODES = {name: observed.value for name, observed in FACTS.nodes.items()}
MEMBERSHIPS = [
    resolve_members(fabric, NODES, {name: observed.value for name, observed in FACTS.subnets.items()})
    for fabric in FLEET.intent.fabrics
]
HCAS = {
    node: [member.hca.pci for one in MEMBERSHIPS for member in one.members[node] if member.hca.pci] for node in NODES
}
NAMESPACE = "nvidia-network-operator"


def cards() -> list[NicDevice]:
    """One of each HCA of the fleet."""
    return [
        NicDevice(f"{node}-{pci.address}", node, (pci.address,), namespace=NAMESPACE, type=pci.device)
        for node, found in HCAS.items()
        for pci in found
    ]


def planned(
    nics: NicDevices,
    there: typing.Sequence[NicTemplate] = (),
    tools: bool = True,
    unread: str = "",
    firmware: typing.Optional[typing.Mapping[str, ObservedFirmware]] = None,
    **wishes: typing.Any,
) -> ByOperator:
    intent = dataclasses.replace(
        FLEET.intent, cluster=dataclasses.replace(FLEET.intent.cluster, firmware=FirmwareIntent(**wishes))
    )
    told = FACTS.firmware if firmware is None else firmware
    seen = told if tools else {name: ObservedFirmware(NodeFirmware()) for name in told}
    return by_operator(MEMBERSHIPS, FACTS.platforms, compared(intent, MEMBERSHIPS, seen, nics), nics, there, unread)


def test_nothing_is_made_where_all_is_proven_to_be_as_wanted() -> None:
    assert planned(NicDevices(tuple(cards()))) == planned(NicDevices(tuple(cards())), tools=False) == ByOperator()
    assert planned(NicDevices(), ats_enabled=False) == ByOperator(), "no operator, no template"


def test_what_no_tool_shows_is_asked_of_the_operator() -> None:
    known = cards()
    found = planned(NicDevices(tuple(known)), tools=False, ats_enabled=False)
    assert {*found.wanted} == {card.name for card in known} and {*found.cards} == {*HCAS}
    for _fabric, template in found.objects:
        addresses = set(template["spec"]["nicSelector"]["pciAddresses"])
        assert template["metadata"]["namespace"] == NAMESPACE and addresses <= {card.ports[0] for card in known}
        assert template["spec"]["template"]["rawNvConfig"] == [{"name": "ATS_ENABLED", "value": "0"}]


def test_a_template_that_is_there_is_kept() -> None:
    name, *_rest = [
        template["metadata"]["name"]
        for _fabric, template in planned(NicDevices(tuple(cards())), tools=False, ats_enabled=False).objects
    ]
    found = planned(NicDevices(tuple(cards())), [NicTemplate(name, ours=True, namespace=NAMESPACE)])
    assert [template["metadata"]["name"] for _fabric, template in found.objects] == [name]
    assert planned(NicDevices(tuple(cards())), [NicTemplate(name, ours=False)]) == ByOperator()
    # of a tenant, who took its name, its label and the field manager
    theirs = NicTemplate(name, ours=True, namespace="aaa-team-x")
    assert planned(NicDevices(tuple(cards())), [theirs]) == ByOperator()


def test_template_of_a_tenant_does_not_hide_the_cards_of_the_own_one() -> None:
    now = min(fabric.virtual_functions for fabric in FLEET.intent.fabrics)
    there = _there(_planned_with(1_000, ()), numbered())
    there = _there(_planned_with(now, there), numbered())
    theirs = [dataclasses.replace(item, namespace="aaa-team-x", cards=()) for item in there]
    assert there and _planned_with(now, [*theirs, *there]).going == ()


def _refused(found: ByOperator, text: str) -> None:
    assert any(text in note for notes in found.notes.values() for note in notes), found.notes
    assert len(found.objects) < len(planned(NicDevices(tuple(cards())), tools=False, ats_enabled=False).objects)


@pytest.mark.parametrize(
    "stranger",
    [
        # a node that is not of the run, a second port that is of no fabric, a BlueField whose Arm cores own it
        lambda card: [card, dataclasses.replace(card, name="elsewhere", node="node-99")],
        lambda card: [dataclasses.replace(card, ports=(*card.ports, "0000:fe:00.1"))],
        lambda card: [dataclasses.replace(card, dpu=True)],
    ],
)
def test_no_template_matches_a_card_that_is_not_of_the_fabric(
    stranger: typing.Callable[[NicDevice], list[NicDevice]],
) -> None:
    first, *rest = cards()
    _refused(
        planned(NicDevices((*stranger(first), *rest)), tools=False, ats_enabled=False),
        ", which do not belong to the fabric or to this run",
    )


def numbered() -> list[NicDevice]:
    """Return the cards, each with its serial number."""
    return [dataclasses.replace(card, serial=f"MT{number:04}") for number, card in enumerate(cards())]


def _serials(found: ByOperator) -> set[str]:
    return {
        serial for _fabric, made in found.objects for serial in made["spec"]["nicSelector"].get("serialNumbers", ())
    }


def _noted(found: ByOperator) -> set[str]:
    return {*found.notes}


def test_a_card_of_another_node_with_the_address_of_ours_keeps_none_from_its_template() -> None:
    """Any node may show a card at any address: the serial numbers tell ours from it."""
    known = numbered()
    other = dataclasses.replace(known[0], name="elsewhere", node="node-99", serial="MT9999")
    found = planned(NicDevices((*known, other)), tools=False, ats_enabled=False)
    sound = planned(NicDevices(tuple(known)), tools=False, ats_enabled=False)
    assert found.notes == {} and found.cards == sound.cards and _serials(found) == _serials(sound)
    for _fabric, made in found.objects:
        selector = made["spec"]["nicSelector"]
        ours = {card.serial for card in known if card.ports[0] in selector["pciAddresses"]}
        assert set(selector["serialNumbers"]) == ours


def _selects(template: typing.Any, card: NicDevice) -> bool:
    """Return whether the operator applies a template to a card, by its model, addresses and serial number."""
    selector = template["spec"]["nicSelector"]
    return (
        selector["nicType"] == card.type
        and bool(set(selector["pciAddresses"]) & set(card.ports))
        and card.serial in selector.get("serialNumbers", [card.serial])
    )


def test_template_does_not_select_cards_of_nodes_that_join_later() -> None:
    known = numbered()
    found = planned(NicDevices(tuple(known)), tools=False, ats_enabled=False)
    later = dataclasses.replace(known[0], name="elsewhere", node="node-99", serial="MT9999")
    assert found.notes == {} and all(any(_selects(made, card) for _of, made in found.objects) for card in known)
    assert not any(_selects(made, later) for _of, made in found.objects)


def test_plan_names_templates_without_serial_numbers() -> None:
    found = planned(NicDevices(tuple(cards())), tools=False, ats_enabled=False)
    assert _noted(found) == {*HCAS} and _serials(found) == set()
    names = {made["metadata"]["name"] for _fabric, made in found.objects}
    for notes in found.notes.values():
        assert all(BY_ADDRESS in note and "a node of this kind that joins the cluster later" in note for note in notes)
        assert {name for name in names if any(f" {name} " in note for note in notes)} == names


def test_card_without_a_serial_number_beside_others_is_left_out() -> None:
    first, *rest = numbered()
    found = planned(NicDevices((dataclasses.replace(first, serial=""), *rest)), tools=False, ats_enabled=False)
    assert _noted(found) == {first.node} and "reports no serial number" in found.notes[first.node][0]
    assert {*found.wanted} == {card.name for card in rest} and _serials(found) == {card.serial for card in rest}


def _applied(known: typing.Sequence[NicDevice]) -> list[NicTemplate]:
    """Return the templates in the cluster after a run that read all nodes."""
    return [
        NicTemplate(
            template["metadata"]["name"],
            ours=True,
            cards=tuple(card.name for card in known if _selects(template, card)),
            serials=tuple(template["spec"]["nicSelector"]["serialNumbers"]),
            namespace=NAMESPACE,
        )
        for _fabric, template in planned(NicDevices(tuple(known)), tools=False, ats_enabled=False).objects
    ]


def _there(found: ByOperator, known: typing.Sequence[NicDevice]) -> list[NicTemplate]:
    """Return the templates of a plan after the operator has applied them."""
    return [
        NicTemplate(
            made["metadata"]["name"],
            ours=True,
            cards=tuple(card.name for card in known if _selects(made, card)),
            template=made["spec"]["template"],
            namespace=NAMESPACE,
        )
        for _fabric, made in found.objects
    ]


def _planned_with(functions: int, there: typing.Sequence[NicTemplate], **wishes: typing.Any) -> ByOperator:
    """Plan the templates of fabrics with a number of virtual functions, which all HCAs of the fleet offer."""
    cluster = dataclasses.replace(FLEET.intent.cluster, firmware=FirmwareIntent(**wishes))
    fabrics = tuple(dataclasses.replace(one, virtual_functions=functions) for one in FLEET.intent.fabrics)
    intent = dataclasses.replace(FLEET.intent, cluster=cluster, fabrics=fabrics)
    nics = NicDevices(tuple(numbered()))
    fleet = compared(intent, MEMBERSHIPS, FACTS.firmware, nics)
    return by_operator(MEMBERSHIPS, FACTS.platforms, fleet, nics, there)


def test_changed_template_of_settled_cards_may_reboot_their_nodes() -> None:
    now = min(fabric.virtual_functions for fabric in FLEET.intent.fabrics)
    there = _there(_planned_with(1_000, ()), numbered())
    there = _there(_planned_with(now, there), numbered())
    same, fewer = _planned_with(now, there), _planned_with(1, there)
    assert {*same.cards} == {*fewer.cards} == {*HCAS}
    assert same.going == () and {*fewer.going} == {*HCAS}
    # a setting that the intent no longer has
    raw = [{"name": "ATS_ENABLED", "value": "0"}]
    before = [dataclasses.replace(one, template={**one.template, "rawNvConfig": raw}) for one in there]
    assert {*_planned_with(now, before).going} == {*HCAS}


def test_settled_card_that_the_template_does_not_select_yet_may_reboot_its_node() -> None:
    now = min(fabric.virtual_functions for fabric in FLEET.intent.fabrics)
    known, there = numbered(), _there(_planned_with(1_000, ()), numbered())
    there = _there(_planned_with(now, there), [card for card in known if card.node != known[0].node])
    assert _planned_with(now, there).going == (known[0].node,)


def _planned_without(
    lost: str, devices: typing.Iterable[NicDevice], there: typing.Sequence[NicTemplate], of_run: bool = True
) -> ByOperator:
    """Plan the templates while a node cannot be read.

    :param of_run: whether the node belongs to the run
    """
    intent = dataclasses.replace(
        FLEET.intent, cluster=dataclasses.replace(FLEET.intent.cluster, firmware=FirmwareIntent(ats_enabled=False))
    )
    memberships = [
        dataclasses.replace(one, members={name: of for name, of in one.members.items() if name != lost})
        for one in MEMBERSHIPS
    ]
    nothing = {name: ObservedFirmware(NodeFirmware()) for name in FACTS.firmware}
    nics = NicDevices(tuple(devices))
    platforms = {name: one for name, one in FACTS.platforms.items() if name != lost}
    if of_run:
        platforms[lost] = ObservedPlatform(error="unreachable")
    return by_operator(memberships, platforms, compared(intent, memberships, nothing, nics), nics, there)


def test_card_of_a_node_that_cannot_be_read_stays_selected() -> None:
    known = numbered()
    lost, there = known[0].node, _applied(known)
    assert _serials(_planned_without(lost, known, there)) == {card.serial for card in known}
    gone = _planned_without(lost, known, there, of_run=False)
    assert _serials(gone) == {card.serial for card in known if card.node != lost}


@pytest.mark.parametrize("kind", [None, "", "1015"])
@pytest.mark.parametrize("applied", [False, True])
def test_silent_node_does_not_select_the_card_of_a_node_outside_of_the_run(
    applied: bool, kind: typing.Optional[str]
) -> None:
    """The NicDevice of a compromised node that does not answer repeats the serial number of that card.

    :param applied: whether the template contains this serial number already
    :param kind: PCI device id in the NicDevice of the card; None for that of the other card
    """
    first, *rest = numbered()
    there = _applied([first, *rest])
    claim = dataclasses.replace(first, serial="MT9999")
    victim = dataclasses.replace(claim, name="elsewhere", node="node-99", type=first.type if kind is None else kind)
    if applied:
        there = [dataclasses.replace(one, serials=(*one.serials, "MT9999")) for one in there]
    found = _planned_without(first.node, [claim, *rest, victim], there)
    assert _serials(found) == {card.serial for card in rest}
    assert not any(_selects(made, victim) for _fabric, made in found.objects)


def test_silent_node_does_not_select_a_card_that_the_template_did_not_select() -> None:
    """The NicDevice of the card may appear later, when its node joins."""
    first, *rest = numbered()
    there = _applied([first, *rest])
    found = _planned_without(first.node, [dataclasses.replace(first, serial="MT9999"), *rest], there)
    assert _serials(found) == {card.serial for card in rest}


def test_a_card_that_is_not_known_keeps_none_with_a_serial_number_from_its_template() -> None:
    found = planned(NicDevices(tuple(numbered()), ("NicDevice x: its form",)), tools=False, ats_enabled=False)
    assert found.notes == {} and _serials(found) == {card.serial for card in numbered()}


def test_a_node_that_claims_the_serial_numbers_of_others_is_left_out_alone() -> None:
    known = numbered()
    forger, honest = sorted({card.node for card in known})
    elsewhere = dataclasses.replace(known[0], name="elsewhere", node="node-99", serial="MT9999")
    claimed = [elsewhere, *(card for card in known if card.node == honest)]
    claims = [dataclasses.replace(card, name=f"forged-{card.name}", node=forger) for card in claimed]
    found = planned(NicDevices((*known, elsewhere, *claims)), tools=False, ats_enabled=False)
    assert _noted(found) == {forger}
    assert _serials(found) == {card.serial for card in known if card.node == honest}


def test_a_node_that_is_not_of_the_run_and_claims_all_serial_numbers_keeps_none_from_its_template() -> None:
    known = numbered()
    claims = [dataclasses.replace(card, name=f"forged-{card.name}", node="node-99") for card in known]
    found = planned(NicDevices((*known, *claims)), tools=False, ats_enabled=False)
    assert found.notes == {} and _serials(found) == {card.serial for card in known}


def test_of_two_nodes_with_one_serial_number_neither_gets_a_template() -> None:
    known = numbered()
    one, other, *_rest = sorted({card.node for card in known})
    mine = next(card for card in known if card.node == one)
    claim = dataclasses.replace(mine, name="forged", node=other)
    found = planned(NicDevices((*known, claim)), tools=False, ats_enabled=False)
    assert _noted(found) == {one, other}
    assert any(f"have the same serial number (forged and {mine.name})" in note for note in found.notes[one])
    assert mine.serial not in _serials(found)


def test_a_card_with_a_port_of_no_fabric_is_left_out_alone() -> None:
    first, *rest = numbered()
    wide = dataclasses.replace(first, ports=(*first.ports, "0000:fe:00.1"))
    found = planned(NicDevices((wide, *rest)), tools=False, ats_enabled=False)
    assert _noted(found) == {first.node} and first.name not in found.wanted
    assert {card.name for card in rest} == {*found.wanted}


def test_a_card_of_another_model_at_the_same_address_is_no_stranger() -> None:
    known = numbered()
    other = dataclasses.replace(known[0], name="elsewhere", node="node-99", type="1015")
    assert planned(NicDevices((*known, other)), tools=False, ats_enabled=False).notes == {}


def test_somebody_else_s_template_is_left_alone() -> None:
    theirs = NicTemplate("tuned-by-hand", cards=(cards()[0].name,))
    _refused(
        planned(NicDevices(tuple(cards())), [theirs], tools=False, ats_enabled=False),
        "NicConfigurationTemplate tuned-by-hand also selects these HCAs",
    )


def test_what_is_not_known_is_not_matched() -> None:
    _refused(
        planned(NicDevices(tuple(cards()), ("GET nicdevices: forbidden",)), tools=False, ats_enabled=False), "forbidden"
    )
    _refused(
        planned(
            NicDevices(tuple(cards())), tools=False, unread="which templates there are is not known", ats_enabled=False
        ),
        "is not known",
    )


def test_a_setting_that_is_not_as_wanted_makes_a_template_though_vfs_are_there() -> None:
    node = next(iter(HCAS))
    first, *rest = FACTS.firmware[node].value.hcas
    settings = tuple(one for one in first.settings if one.name != "ATS_ENABLED")
    lacks = dataclasses.replace(first, settings=(*settings, FirmwareSetting("ATS_ENABLED", "True(1)", "True(1)")))
    firmware = {**FACTS.firmware, node: ObservedFirmware(NodeFirmware((lacks, *rest)))}
    assert planned(NicDevices(tuple(cards())), ats_enabled=False) == ByOperator()
    ((fabric, _template),) = planned(NicDevices(tuple(cards())), firmware=firmware, ats_enabled=False).objects
    assert fabric == FLEET.intent.fabrics[0].name


TEMPLATE = {"numVfs": 8, "linkType": "Infiniband"}


def state(**changes: typing.Any) -> NicState:
    return dataclasses.replace(NicState("card", {**TEMPLATE, "force": False}, True, "UpdateSuccessful"), **changes)


@pytest.mark.parametrize(
    ("seen", "stage", "text"),
    [
        (state(), "done", ""),
        # through with the settings before
        (state(seen=False), "waits", "the operator's daemon on the node has not processed the card yet"),
        (state(template={"numVfs": 4, "linkType": "Infiniband"}), "failed", "node_selector"),
        (state(reason="UpdateStarted"), "waits", "UpdateStarted"),
        (state(reason="PendingReboot"), "waits", "PendingReboot"),
        (state(reason="PendingFirmwareUpdate", firmware="FirmwareUpdateStarted"), "waits", "PendingFirmwareUpdate"),
        (state(reason="PendingFirmwareUpdate", firmware="FirmwareUpdateFailed"), "failed", "FirmwareUpdateFailed"),
        (
            state(reason="IncorrectSpec", message="device does not support link type change"),
            "failed",
            "link type change): the card does not support the settings of the template",
        ),
        (state(reason="NonVolatileConfigUpdateFailed"), "failed", "mlxconfig failed"),
        (
            state(reason="SpecValidationFailed"),
            "failed",
            "the operator could not query the card. See the log of the operator's daemon on the node",
        ),
        (
            state(reason="RuntimeConfigUpdateFailed"),
            "failed",
            (
                "the operator could not apply the settings that take effect without a reset. See"
                " the log of the operator's daemon on the node"
            ),
        ),
        (
            state(reason="FirmwareError"),
            "failed",
            (
                "the reboot did not apply the settings, and the operator does not reboot the"
                " node again for them. Power cycle the node, and check the card"
            ),
        ),
        (state(reason="PartiallyApplied", message="skipped: ATS_ENABLED"), "failed", "skipped: ATS_ENABLED"),
        (state(reason=""), "waits", "the operator reports no reason"),
        (None, "waits", "the NicDevice does not exist"),
    ],
)
def test_how_far_the_operator_is(seen: typing.Optional[NicState], stage: str, text: str) -> None:
    found, why = find_progress(seen, TEMPLATE)
    assert found == stage and text in why and bool(why) is (stage != "done")


@hypothesis.given(
    some.builds(
        NicState,
        template=some.just(TEMPLATE) | some.just({}),
        reason=some.text(max_size=20) | some.just("UpdateSuccessful"),
    )
)
def test_done_is_said_of_nothing_but_success(seen: NicState) -> None:
    done = find_progress(seen, TEMPLATE)[0] == "done"
    assert done == (seen.template == TEMPLATE and seen.seen and seen.reason == "UpdateSuccessful")
    assert find_progress(seen, {})[0] != "done"


def test_what_became_of_templates() -> None:
    def of(
        action: str,
        why: str = "",
        left: typing.Optional[typing.Mapping[str, str]] = None,
        allowed: bool = True,
        dry: bool = False,
    ) -> typing.Any:
        return of_operator(["t"], ["card"], {"t": (action, why)} if action else {}, left or {}, allowed, dry)

    assert (
        of("unchanged").refusals == of("unchanged").notes == ()
        and "It is unknown whether NicConfigurationTemplate" in of("").refusals[0]
    )
    assert "The API server rejected NicConfigurationTemplate t: no." in of("refused", "no").refusals[0]
    held = of("created", allowed=False)
    assert "was not applied" in held.refusals[0] and "set rdma_cluster.disruption to reboot" in held.refusals[0]
    assert of("unchanged", allowed=False).refusals == ()
    assert (
        "drains and reboots the node through its maintenance operator" in of("created", dry=True).notes[0]
        and of("created", dry=True).refusals == ()
    )
    assert "has configured its HCAs, and drained and rebooted the node if required" in of("changed").notes[0]
    assert (
        "has not configured NicDevice card: PendingReboot."
        in of("unchanged", left={"card": "PendingReboot", "other": "x"}).refusals[0]
    )
