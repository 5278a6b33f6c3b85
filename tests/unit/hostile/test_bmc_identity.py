# SPDX-License-Identifier: GPL-3.0-or-later

"""A BMC that is another's: addresses exchanged, one address for all nodes, one that moves while it is asked, machines
without an identity, nodes that lie. Nothing is written to it and nothing reset by it, and what it says of a BIOS proves
nothing."""

from __future__ import annotations

import ast
import copy
import dataclasses
import itertools
import json
import pathlib
import typing
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.fleet.bios import find_wanted
from ansible_collections.linerate.rdma.plugins.module_utils._ansible.bmc_modules import read_bmc_of_node
from ansible_collections.linerate.rdma.plugins.module_utils._check.platform import bmc as platform_bmc
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.node_roll import (
    NodeDifference,
    NodeDifferences,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.bios import NodeBios, ObservedBios
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.hca import NodeHcas
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.identity import (
    Claims,
    Identity,
    compare_identities,
    make_identity,
    serial_of,
    swap_byte_order,
    uuid_of,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import Finding
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.guard import Guard
from ansible_collections.linerate.rdma.plugins.module_utils._observe.node.platform import read_platform
from ansible_collections.linerate.rdma.plugins.module_utils._observe.redfish.bmc import Bmc, BmcError
from ansible_collections.linerate.rdma.plugins.module_utils._observe.redfish.trust import Trust
from ansible_collections.linerate.rdma.plugins.module_utils._parse.redfish.resources import parse_system
from ansible_collections.linerate.rdma.plugins.module_utils._run.node_changes.bios.read_bios import BiosQuery, read_one
from ansible_collections.linerate.rdma.plugins.module_utils._run.node_changes.bios.registries import Registries
from ansible_collections.linerate.rdma.plugins.module_utils._run.node_changes.bios.set_bios import May, set_one
from ansible_collections.linerate.rdma.tests.unit.bmc_server import PASSWORD, USER, Certificates, tree
from ansible_collections.linerate.rdma.tests.unit.roll_world import (
    ATTRIBUTE,
    NODES,
    REBOOT,
    Server,
    Site,
    World,
    merged,
    of,
    only,
    playing,
    states,
)
from ansible_collections.linerate.rdma.tests.unit.roll_world import uuid_of as uuid_of_node
from lab.bmc.server import Fault

ROOT = pathlib.Path(__file__).resolve().parents[3]
SYSTEM = "/redfish/v1/Systems/System.Embedded.1"
REGISTRY = f"{SYSTEM}/Bios/BiosRegistry"
A, B = "4c4c4544-0035-3510-8054-c6c04f503347", "00000000-0000-0000-0000-3cecef123456"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def site(certificates: Certificates) -> typing.Iterator[Site]:
    with playing(certificates, World()) as found:
        yield found


def untouched(site: Site, *names: str) -> bool:
    """Whether nothing was done to these nodes, nor by their BMCs."""
    done = [what for what in site.world.did if what.split()[1] in names]
    return not done and not any(site.servers[name].written or site.servers[name].resets for name in names)


def told(site: Site, name: str, uuid: typing.Any) -> None:
    """What the kubelet of a node tells."""
    site.world.put("Node", merged(site.world.seen(name), {"status": {"nodeInfo": {"systemUUID": uuid}}}))


# Before anything is written


def test_two_addresses_exchanged_write_and_reset_nothing(site: Site) -> None:
    site.exchanged = {"worker-1": "worker-2", "worker-2": "worker-1"}
    done = site.run()
    assert states(done) == {"worker-1": "unknown", "worker-2": "unknown", "worker-3": "done"}
    assert untouched(site, "worker-1", "worker-2") and site.resets() == {"worker-3": 1}
    assert (
        "the BMC belongs to a different machine (" in of(done, "worker-1").why
        and "the machine is worker-2" in of(done, "worker-1").why
    )
    assert "Correct rdma_bmc_address" in of(done, "worker-1").why


def test_exchanged_addresses_reset_nobody_where_no_bios_is_wanted(site: Site) -> None:
    """Kernel arguments and firmware wait for the same reset."""

    site.wanted = {}
    site.exchanged = {"worker-1": "worker-2", "worker-2": "worker-1"}
    site.facts = {
        name: NodeDifferences((NodeDifference("kernel argument", "iommu=pt", "absent", "set"),)) for name in NODES[:2]
    }
    done = site.run()
    assert (
        states(done) == {"worker-1": "blocked", "worker-2": "blocked"} and site.world.did == [] and site.resets() == {}
    )


def test_one_address_for_three_nodes_is_refused_before_the_first_write(site: Site) -> None:
    site.exchanged = dict.fromkeys(NODES, "worker-1")
    done = site.run()
    assert set(states(done).values()) == {"unknown"} and untouched(site, *NODES)
    assert (
        "the inventory has the same BMC for worker-3, worker-1, worker-2" in of(done, "worker-3").why
        and "rdma_bmc_system" in of(done, "worker-3").why
    )


def test_who_asserts_does_not_overrule_what_is_seen(site: Site) -> None:
    site.exchanged = {"worker-1": "worker-2", "worker-2": "worker-1"}
    site.asserted = set(NODES)
    done = site.run()
    assert untouched(site, "worker-1", "worker-2") and of(done, "worker-3").state == "done"


@pytest.mark.parametrize(
    "uuid",
    [None, "", "00000000-0000-0000-0000-000000000000", "Not Specified", 7, "03000200-0400-0500-0006-000700080009"],
)
def test_what_cannot_be_compared_is_refused_unless_it_is_asserted(site: Site, uuid: typing.Any) -> None:
    only(site, "worker-1")
    site.servers["worker-1"].bios.call(uuid, "To be filled by O.E.M.")
    done = site.run()
    assert (
        of(done, "worker-1").state == "unknown"
        and site.world.did == []
        and "could not determine whether this is the BMC of worker-1" in of(done, "worker-1").why
    )
    assert "rdma_bmc_identity: asserted for worker-1" in of(done, "worker-1").why
    site.asserted = {"worker-1"}
    done = site.run()
    assert of(done, "worker-1").state == "done" and site.resets() == {"worker-1": 1}
    (step,) = (step for step in done.plan.steps if step.node == "worker-1")
    assert any(
        "could not determine whether this is the BMC of worker-1" in note
        and "the inventory asserts that the BMC is correct" in note
        for note in step.notes
    ), "the plan says so"


def test_an_asserted_bmc_that_is_seen_to_be_another_node_s_is_refused(site: Site) -> None:
    """The node itself tells nothing, and the machine behind the address is one that the cluster knows."""
    only(site, "worker-1")
    told(site, "worker-1", "2f0c4e5d8a7b4c6d9e1f2a3b4c5d6e7f")
    site.exchanged, site.asserted = {"worker-1": "worker-2", "worker-2": "nobody"}, {"worker-1"}
    assert "the machine is worker-2" in of(site.run(), "worker-1").why and untouched(site, *NODES)


def test_two_names_of_one_bmc_are_no_two_bmcs(site: Site) -> None:
    """Nobody can be compared, all are asserted, and two addresses lead to one machine."""
    only(site, "worker-1")
    for name in NODES[:2]:
        told(site, name, "2f0c4e5d8a7b4c6d9e1f2a3b4c5d6e7f")
        site.servers[name].bios.call(A, "")
    site.asserted = set(NODES)
    done = site.run()
    assert "lead to the same machine" in of(done, "worker-1").why and untouched(site, "worker-1", "worker-2")


@pytest.mark.parametrize("order", [swap_byte_order, str.upper])
def test_the_other_order_of_bytes_is_the_same_machine(site: Site, order: typing.Callable[[str], str]) -> None:
    only(site, "worker-1")
    told(site, "worker-1", order(uuid_of_node("worker-1")))
    assert of(site.run(), "worker-1").state == "done" and site.resets() == {"worker-1": 1}


def test_two_nodes_with_one_identity_are_both_refused(site: Site) -> None:
    told(site, "worker-2", swap_byte_order(uuid_of_node("worker-1")))
    site.asserted = set(NODES)
    done = site.run()
    assert (
        untouched(site, "worker-1", "worker-2")
        and "report the same identity" in of(done, "worker-1").why
        and of(done, "worker-3").state == "done"
    )


def test_a_serial_number_that_another_node_tells_beside_its_uuid_proves_nothing(site: Site) -> None:
    """Root of worker-1 hides its UUID and says the serial number of worker-2, to whose BMC the address of its own
    leads."""
    told(site, "worker-1", "")
    serials = ("SERIAL-worker-2",)
    site.looked = {"worker-1": Identity("", serials), "worker-2": Identity(uuid_of_node("worker-2"), serials)}
    site.exchanged = {"worker-1": "worker-2", "worker-2": "worker-1"}
    only(site, "worker-2")
    done = site.run()
    assert (
        untouched(site, "worker-1", "worker-2")
        and "report the same identity" in of(done, "worker-1").why
        and "report the same identity" in of(done, "worker-2").why
    )


def test_a_serial_number_proves_a_machine_that_no_other_node_may_be() -> None:
    x, y, z = Identity("", ("SN-X",)), Identity(B, ("SN-Y",)), Identity(A, ("SN-Z",))
    claims = Claims(looked={"x": x, "y": y, "z": z})
    assert claims.judge("x", Identity(A, ("SN-X",)), False).state == "other", "z has the UUID of this machine"
    assert claims.judge("x", Identity("", ("SN-X", "SN-Z")), False).state == "other", "z has its serial number"
    assert claims.judge("y", Identity("", ("SN-Y",)), False).state == claims.judge("x", x, False).state == "proven"
    # blades of a chassis with one serial number, told apart by their UUIDs
    blades = Claims(looked={"y": Identity(B, ("CHASSIS",)), "z": Identity(A, ("CHASSIS",))})
    assert blades.judge("y", Identity(B, ("CHASSIS",)), False).state == "proven"
    assert blades.judge("y", Identity("", ("CHASSIS",)), False).refused, "nor does it tell which of them it is"


def test_a_node_outside_of_the_inventory_counts_as_well(site: Site) -> None:
    only(site, "worker-1")
    site.world.put("Node", {**site.world.seen("worker-1"), "metadata": {"name": "stranger", "labels": {}}})
    assert "worker-1, stranger report the same identity" in of(site.run(), "worker-1").why and site.world.did == []


def test_a_kubelet_that_contradicts_the_look_at_its_node_is_refused(site: Site) -> None:
    """It would have its roll done by the BMC of the machine that it names."""
    only(site, "worker-1")
    told(site, "worker-1", uuid_of_node("worker-2-of-old"))
    site.servers["worker-1"].bios.call(uuid_of_node("worker-2-of-old"), "")
    site.looked = {"worker-1": Identity(uuid_of_node("worker-1"))}
    site.asserted = {"worker-1"}
    assert "reports two different UUIDs: its kubelet reports" in of(site.run(), "worker-1").why and site.world.did == []


def test_the_look_alone_proves_it_where_the_kubelet_tells_a_machine_id(site: Site) -> None:
    only(site, "worker-1")
    told(site, "worker-1", "2f0c4e5d8a7b4c6d9e1f2a3b4c5d6e7f")
    site.looked = {"worker-1": Identity(uuid_of_node("worker-1"), ("SERIAL-worker-1",))}
    assert of(site.run(), "worker-1").state == "done"


# Between the plan and the write


def test_an_address_that_moved_after_the_plan_is_not_written_to(site: Site) -> None:
    only(site, "worker-1")
    roller = site.roller()
    planned = roller.plan(NODES, REBOOT)
    site.servers["worker-1"].bios.call(uuid_of_node("a stranger"), "X1234")
    done = roller.roll(planned)
    assert (
        of(done, "worker-1").state == "failed"
        and "the BMC belongs to a different machine (" in of(done, "worker-1").why
    )
    assert not site.servers["worker-1"].written and site.resets() == {}


def test_an_address_that_moved_after_the_write_resets_nobody(site: Site) -> None:
    only(site, "worker-1")
    server, world_do = site.servers["worker-1"], site.world.do

    def move(what: str) -> None:
        world_do(what)
        if what == "note worker-1 reset":
            server.bios.call(uuid_of_node("a stranger"), "X1234")

    site.world.do = move  # type: ignore[method-assign]
    done = site.run()
    assert (
        of(done, "worker-1").state == "failed"
        and site.resets() == {}
        and not site.world.cordoned("worker-1")
        and site.world.note("worker-1") is None
    )


def test_an_address_that_moves_in_the_middle_of_a_session_is_not_written_to(
    site: Site, certificates: Certificates
) -> None:
    """The system is read once when the session begins, and again right before the PATCH."""
    server = site.servers["worker-1"]
    get, seen = server.get, typing.cast(list[str], [])

    def move(path: str) -> typing.Any:
        seen.append(path)
        if seen.count(SYSTEM) == 2:
            server.bios.call(uuid_of_node("a stranger"), "X1234")
        return get(path)

    server.get = move  # type: ignore[method-assign]
    may = May(Claims({"worker-1": uuid_of_node("worker-1")}), Guard(lambda: 60.0))
    with pytest.raises(BmcError) as caught:
        set_one(_bmc(server), find_wanted({"sriov": True}), Trust(True, str(certificates.authority)), Registries(), may)
    assert caught.value.cause == "identity" and server.written == [] and seen[-1] == SYSTEM


# Several systems, and what vendors call them


def test_the_registry_of_another_bmc_is_not_that_of_a_node(site: Site) -> None:
    """The BMC of worker-1 says the same vendor, model and version as the others, and that BootMode is the switch of
    SR-IOV."""
    for server in site.servers.values():
        server.bios.answers[REGISTRY] = copy.deepcopy(server.bios.answers[REGISTRY])
    liar = site.servers["worker-1"].bios.answers[REGISTRY]["RegistryEntries"]
    values = [
        {"ValueName": name, "ValueDisplayName": shown} for name, shown in (("Bios", "Enabled"), ("Uefi", "Disabled"))
    ]
    entry = {
        "AttributeName": "BootMode",
        "DisplayName": "SR-IOV Global Enable",
        "Type": "Enumeration",
        "ReadOnly": False,
        "Hidden": False,
    }
    liar["Attributes"] = [{**entry, "ResetRequired": True, "Value": values}]
    liar.pop("Dependencies", None)
    site.run()
    for name in ("worker-2", "worker-3"):
        assert [body["Attributes"] for body in site.servers[name].written] == [{ATTRIBUTE: "Enabled"}] and site.servers[
            name
        ].value == "Enabled"


def test_of_several_systems_behind_one_bmc_that_of_the_node_is_taken(site: Site, certificates: Certificates) -> None:
    server = site.servers["worker-1"]
    other = "/redfish/v1/Systems/System.Embedded.2"
    server.bios.answers[other] = {
        **copy.deepcopy(server.bios.answers[SYSTEM]),
        "@odata.id": other,
        "UUID": A,
        "Model": "the other one",
    }
    server.bios.answers["/redfish/v1/Systems"]["Members"].append({"@odata.id": other})
    trust = Trust(True, str(certificates.authority))
    found = {}
    for one in (uuid_of_node("worker-1"), A):
        asked = BiosQuery(("sriov",), 30, Claims(looked={"worker-1": Identity(one)}))
        found[one] = read_one(_bmc(server), trust, asked, Registries()).model
    assert found == {uuid_of_node("worker-1"): "PowerEdge R750", A: "the other one"}
    with pytest.raises(BmcError, match="several systems of the BMC have a Bios resource:"):
        read_one(_bmc(server), trust, BiosQuery(("sriov",), 30, Claims(looked={"worker-1": Identity(B)})), Registries())


def add_other_system(site: Site) -> tuple[Server, str]:
    """Give the BMC of worker-1 the system of another machine, which the collection of its systems does not list yet.
    Return the BMC and the path of that system."""
    server = site.servers["worker-1"]
    other = "/redfish/v1/Systems/System.Embedded.2"
    for path in [path for path in server.bios.answers if path.startswith(SYSTEM)]:
        text = json.dumps(server.bios.answers[path]).replace(SYSTEM, other)
        server.bios.answers[path.replace(SYSTEM, other)] = json.loads(text)
    server.bios.answers[other]["UUID"] = A
    return server, other


def test_a_node_that_names_itself_after_another_machine_behind_its_bmc_has_nothing_written_and_nobody_reset(
    site: Site,
) -> None:
    server = site.servers["worker-1"]
    other = "/redfish/v1/Systems/System.Embedded.2"
    server.bios.answers[other] = {**copy.deepcopy(server.bios.answers[SYSTEM]), "@odata.id": other, "UUID": A}
    server.bios.answers["/redfish/v1/Systems"]["Members"].append({"@odata.id": other})
    done = site.run()
    assert states(done) == {"worker-1": "unknown", "worker-2": "done", "worker-3": "done"} and untouched(
        site, "worker-1"
    )
    assert (
        "several systems of the BMC have a Bios resource" in of(done, "worker-1").why
        and "rdma_bmc_system" in of(done, "worker-1").why
    )
    # nor where no BIOS is wanted, and the BMC is asked for the reset alone
    site.wanted = {}
    site.facts = {"worker-1": NodeDifferences((NodeDifference("kernel argument", "iommu=pt", "absent", "set"),))}
    assert states(site.run()) == {"worker-1": "blocked"} and untouched(site, "worker-1")


@pytest.mark.parametrize("status", [404, 500, 503])
def test_a_node_that_names_itself_after_another_machine_while_its_own_system_is_unreadable_has_nobody_reset(
    site: Site, status: int
) -> None:
    """The other machine is the only one that can be read, and has the identity that the kubelet reports."""
    server, other = add_other_system(site)
    server.bios.answers["/redfish/v1/Systems"]["Members"].append({"@odata.id": other})
    server.faults[SYSTEM] = Fault(status=status)
    told(site, "worker-1", A)
    done = site.run()
    assert states(done)["worker-1"] == "unknown" and untouched(site, "worker-1")
    why = of(done, "worker-1").why
    assert "these systems were not read: System.Embedded.1 (" in why and "Set rdma_bmc_system" in why
    # nor where no BIOS is wanted, and the BMC is asked for the reset alone
    site.wanted = {}
    site.facts = {"worker-1": NodeDifferences((NodeDifference("kernel argument", "iommu=pt", "absent", "set"),))}
    assert states(site.run()) == {"worker-1": "blocked"} and untouched(site, "worker-1")


def test_a_node_that_names_itself_after_another_machine_while_its_own_system_shows_no_bios_has_nobody_reset(
    site: Site,
) -> None:
    """The system of the node is off or starts, so the other machine is the only one with a BIOS."""
    server, other = add_other_system(site)
    server.bios.answers["/redfish/v1/Systems"]["Members"].append({"@odata.id": other})
    del server.bios.answers[SYSTEM]["Bios"]
    told(site, "worker-1", A)
    done = site.run()
    assert states(done)["worker-1"] == "unknown" and untouched(site, "worker-1")
    why = of(done, "worker-1").why
    assert "have no Bios resource at present: System.Embedded.1" in why and "Set rdma_bmc_system" in why
    site.wanted = {}
    site.facts = {"worker-1": NodeDifferences((NodeDifference("kernel argument", "iommu=pt", "absent", "set"),))}
    assert states(site.run()) == {"worker-1": "blocked"} and untouched(site, "worker-1")


@pytest.mark.parametrize(
    "more",
    [{"Members@odata.count": 2}, {"Members@odata.nextLink": "/redfish/v1/Systems?$skip=1"}],
    ids=["counted", "on a further page"],
)
def test_a_node_that_names_itself_after_another_machine_while_its_own_system_is_not_listed_has_nobody_reset(
    site: Site, more: dict[str, typing.Any]
) -> None:
    """The other machine is the only one on the page that the BMC returns."""
    server, other = add_other_system(site)
    server.bios.answers["/redfish/v1/Systems"].update({"Members": [{"@odata.id": other}], **more})
    told(site, "worker-1", A)
    done = site.run()
    assert states(done)["worker-1"] == "unknown" and untouched(site, "worker-1")
    why = of(done, "worker-1").why
    assert "the BMC lists only some of its systems (System.Embedded.2)" in why and "Set rdma_bmc_system" in why


def test_a_baseboard_without_a_bios_needs_the_system_of_the_node_by_name_to_write(
    site: Site, certificates: Certificates
) -> None:
    server = site.servers["worker-1"]
    board = "/redfish/v1/Systems/HGX_Baseboard_0"
    server.bios.answers[board] = {**copy.deepcopy(server.bios.answers[SYSTEM]), "@odata.id": board, "UUID": B}
    del server.bios.answers[board]["Bios"]
    server.bios.answers["/redfish/v1/Systems"]["Members"].append({"@odata.id": board})
    claims = Claims(looked={"worker-1": Identity(uuid_of_node("worker-1"))})
    trust, written = Trust(True, str(certificates.authority)), BiosQuery(("sriov",), 30, claims, to_write=True)
    assert read_one(_bmc(server), trust, BiosQuery(("sriov",), 30, claims), Registries()).vendor == "Dell Inc."
    with pytest.raises(BmcError, match="have no Bios resource at present: HGX_Baseboard_0") as caught:
        read_one(_bmc(server), trust, written, Registries())
    assert "Set rdma_bmc_system" in caught.value.remedy
    named = dataclasses.replace(_bmc(server), system="System.Embedded.1")
    assert read_one(named, trust, written, Registries()).vendor == "Dell Inc."


def test_systems_beyond_those_that_are_read_may_be_that_of_the_node(site: Site, certificates: Certificates) -> None:
    server = site.servers["worker-1"]
    boards = [f"/redfish/v1/Systems/Board_{number}" for number in range(8)]
    for board in boards:
        server.bios.answers[board] = {**copy.deepcopy(server.bios.answers[SYSTEM]), "@odata.id": board, "UUID": B}
        del server.bios.answers[board]["Bios"]
    server.bios.answers["/redfish/v1/Systems"]["Members"] += [{"@odata.id": board} for board in boards]
    claims = Claims(looked={"worker-1": Identity(uuid_of_node("worker-1"))})
    trust = Trust(True, str(certificates.authority))
    assert read_one(_bmc(server), trust, BiosQuery(("sriov",), 30, claims), Registries()).vendor == "Dell Inc."
    with pytest.raises(BmcError, match="these systems were not read: Board_7"):
        read_one(_bmc(server), trust, BiosQuery(("sriov",), 30, claims, to_write=True), Registries())


def test_a_system_that_is_not_there_leaves_the_one_that_is_the_node_s(site: Site, certificates: Certificates) -> None:
    """The baseboard of an HGX whose GPUs are not up answers 404; which BMC it is must not depend on that."""
    server = site.servers["worker-1"]
    server.bios.answers["/redfish/v1/Systems"]["Members"].insert(
        0, {"@odata.id": "/redfish/v1/Systems/HGX_Baseboard_0"}
    )
    trust = Trust(True, str(certificates.authority))
    asked = BiosQuery(("sriov",), 30, Claims(looked={"worker-1": Identity(uuid_of_node("worker-1"))}))
    assert read_one(_bmc(server), trust, asked, Registries()).identity.uuid == uuid_of_node("worker-1")
    for claims in (Claims(looked={"worker-1": Identity(B)}), Claims()):
        with pytest.raises(BmcError, match="HGX_Baseboard_0"):
            read_one(_bmc(server), trust, BiosQuery(("sriov",), 30, claims), Registries())


def test_the_service_tag_of_dell_is_its_serial_number_and_no_other_vendor_s_sku_is() -> None:
    told_by = {vendor: next(iter(_systems(vendor))) for vendor in ("dell", "hpe")}
    assert parse_system({**told_by["dell"], "SerialNumber": "CNFCP0079C00A3"}).identity.serials == (
        "CNFCP0079C00A3",
        "F54P1G3",
    )
    assert parse_system({**told_by["hpe"], "SerialNumber": "CZ20460FXX"}).identity.serials == ("CZ20460FXX",), (
        "SKU is one number for all of a model"
    )


@pytest.mark.parametrize(
    ("node", "machine", "same"),
    [
        (Identity(A), Identity(A), True),
        (Identity(A), Identity(swap_byte_order(A)), True),
        (Identity(A), Identity(B), False),
        (Identity(A, ("S1",)), Identity(A, ("S2",)), True),
        (Identity(A, ("F54P1G3",)), Identity(B, ("f54p1g3",)), None),
        (Identity("", ("F54P1G3",)), Identity(B, ("F54P1G3",)), True),
        (Identity("", ("F54P1G3",)), Identity("", ("F54P1G4",)), False),
        (Identity("", ("F54P1G3",)), Identity(B), None),
        (Identity(), Identity(), None),
    ],
)
def test_what_is_one_machine(node: Identity, machine: Identity, same: typing.Optional[bool]) -> None:
    for one, other in itertools.permutations((node, machine)):
        assert compare_identities(one, other) is same


@pytest.mark.parametrize(
    "text",
    [
        "",
        "00000000-0000-0000-0000-000000000000",
        "FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF",
        "Not Specified",
        "{4c4c4544-0035-3510-8054-c6c04f503347}",
        None,
        5,
        "4c4c454400353510805 4c6c04f503347",
        "03000200-0400-0500-0006-000700080009",
        "00020003-0004-0005-0006-000700080009",
        "12345678-1234-5678-90AB-CDDEEFAABBCC",
        "FEFEFEFE-FEFE-FEFE-FEFE-FEFEFEFEFEFE",
        "00010203-0405-0607-0809-0A0B0C0D0E0F",
        "4c4c4544-0035-3510-8054-c6c04f503347\n;x",
        "٤c4c4544-0035-3510-8054-c6c04f503347",
    ],
)
def test_what_is_no_uuid(text: typing.Any) -> None:
    assert uuid_of(text) == ""


@pytest.mark.parametrize(
    "text",
    [
        "",
        "None",
        "N/A",
        "Not Specified",
        "Not Available",
        "To be filled by O.E.M.",
        "To Be Filled By O.E.M.",
        "0123456789",
        "Default string",
        "00000000",
        "System Serial Number",
        "Unknown",
        "........",
        "XXXXXXXX",
        "Default_String",
        "$(DEFAULT_STRING)",
        "<Not Specified>",
        "(To be filled by O.E.M.)",
        "Filled by OEM",
        "Chassis Serial Number",
        "Base Board Serial Number",
        "No Asset Tag",
        "Undefined",
        "123456789",
        "1234567",
        "0123456789ABCDEF",
        "00-00-00-00",
        "--------",
        None,
        12345,
        "F54\x1b[2J",
        "S" * 200,
        "1",
    ],
)
def test_what_is_no_serial_number(text: typing.Any) -> None:
    assert serial_of(text) == ""


@pytest.mark.parametrize("text", ["F54P1G3", "S424242X9123456", "0123456789X", "SN-0042", "None-7", "SGH123ABCD"])
def test_a_serial_number_that_looks_like_a_default_one_is_one(text: str) -> None:
    assert serial_of(text) == text


@given(st.uuids())
def test_orders_of_bytes(one: uuid.UUID) -> None:
    text = str(one)
    assert swap_byte_order(swap_byte_order(text)) == text and swap_byte_order(text) == str(
        uuid.UUID(bytes=one.bytes_le)
    )
    assert Identity(text).keys == Identity(swap_byte_order(text)).keys


@given(st.text(max_size=80), st.text(max_size=80))
def test_texts_of_strangers_are_an_identity_or_none(one: str, other: str) -> None:
    found = make_identity(one, [other])
    assert str(found).isprintable() and compare_identities(found, found) in (True, None)
    assert Claims({"a": one, "b": other}).judge("a", found, False).state in ("proven", "other", "unknown")


# What is read


def finding(machine: Identity, nodes: typing.Mapping[str, Identity], asserted: bool = False) -> tuple[Finding, ...]:
    bios = ObservedBios(NodeBios("Dell Inc.", "R750", "1", identity=machine, asserted=asserted))
    said = platform_bmc.find_report("worker-1", bios, Claims(looked=nodes), {"sriov": (True,)}, True)
    return tuple(platform_bmc.check("worker-1", said, {"sriov": (True,)}, ()))


@pytest.mark.parametrize(
    ("machine", "nodes", "asserted", "status"),
    [
        (Identity(A), {"worker-1": Identity(A)}, False, "pass"),
        (Identity(B), {"worker-1": Identity(A)}, True, "fail"),
        (Identity(B), {"worker-1": Identity(A), "worker-2": Identity(B)}, False, "fail"),
        (Identity(A), {"worker-1": Identity(A), "worker-2": Identity(A)}, True, "fail"),
        (Identity(), {"worker-1": Identity(A)}, False, "unknown"),
        (Identity(A), {}, False, "unknown"),
        (Identity(), {"worker-1": Identity(A)}, True, "warn"),
    ],
)
def test_the_bios_of_another_machine_proves_nothing(
    machine: Identity, nodes: typing.Mapping[str, Identity], asserted: bool, status: str
) -> None:
    found = finding(machine, nodes, asserted)
    assert found[0].check == "platform.bmc_identity" and found[0].status == status
    assert [one.check for one in found[1:]] == (["platform.bios"] if status in ("pass", "warn") else []), (
        "nothing else is said by it"
    )
    if status != "pass":
        assert found[0].why and found[0].remedy


def test_dmi_of_a_node_is_in_its_look(tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "sys/class/dmi/id"
    folder.mkdir(parents=True)
    for name, text in (("product_uuid", A.upper()), ("product_serial", "F54P1G3"), ("board_serial", "Not Specified")):
        (folder / name).write_text(f"{text}\n")
    found = read_platform([str(tmp_path / "sys")], NodeHcas((), ()))
    assert found.identity == Identity(A, ("F54P1G3",)) and not any("dmi" in error for error in found.errors)
    assert read_platform([str(tmp_path / "nothing")], NodeHcas((), ())).identity == Identity()


# What the inventory says


def test_the_inventory_may_assert_and_nothing_else() -> None:
    told_of = {"address": "192.0.2.7", "user": "root", "password": "x"}
    assert (
        read_bmc_of_node("n", {**told_of, "identity": "asserted"}).asserted
        and not read_bmc_of_node("n", told_of).asserted
    )
    with pytest.raises(RdmaError, match="rdma_bmc_identity is not 'asserted'"):
        read_bmc_of_node("n", {**told_of, "identity": "yes"})


@pytest.mark.parametrize(
    ("one", "other"), [("BMC.example.com", "bmc.example.com."), ("[2001:db8::1]", "2001:db8:0:0::1")]
)
def test_one_place_in_two_forms(one: str, other: str) -> None:
    assert Bmc("a", one).place == Bmc("b", other).place and Bmc("a", one).place != Bmc("b", other, system="2").place


# How it stays so


def test_nothing_but_the_writer_sends_to_a_bmc_and_one_module_alone_has_no_lease() -> None:
    senders, unfenced = set(), set()
    for path in (ROOT / "plugins").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if "redfish" not in text and "unfenced" not in text:
            continue
        called = {
            node.func.attr
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        }
        senders |= {path.name} if "send" in called and "redfish" in str(path) else set()
        unfenced |= {path.name} if "unfenced" in called else set()
    assert senders == {"writer.py"} and unfenced == {"bios.py"}


def _bmc(server: Server) -> Bmc:
    return Bmc("worker-1", "localhost", server.port, USER, PASSWORD)


def _systems(vendor: str) -> typing.Iterator[dict[str, typing.Any]]:
    return (
        resource
        for resource in tree(vendor).values()
        if isinstance(resource, dict) and "SystemType" in resource and "Bios" in resource
    )
