# SPDX-License-Identifier: GPL-3.0-or-later

"""The BIOS of a node by its BMC: each vendor's answers over TLS, what goes wrong with BMCs, and many of them at
once."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import pathlib
import socket
import threading
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.fleet.bios import find_wanted, list_states
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import ParseError, RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import load, to_data
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.bios import BiosSetting, NodeBios
from ansible_collections.linerate.rdma.plugins.module_utils._observe.redfish.bmc import (
    Bmc,
    BmcError,
    address_of,
    fingerprint_of,
)
from ansible_collections.linerate.rdma.plugins.module_utils._observe.redfish.session import Session
from ansible_collections.linerate.rdma.plugins.module_utils._observe.redfish.trust import Trust
from ansible_collections.linerate.rdma.plugins.module_utils._parse.redfish.registry import Registry
from ansible_collections.linerate.rdma.plugins.module_utils._parse.redfish.registry import parse as parse_registry
from ansible_collections.linerate.rdma.plugins.module_utils._parse.redfish.resources import cut_jobs
from ansible_collections.linerate.rdma.plugins.module_utils._run.node_changes.bios.read_bios import (
    BiosQuery,
    read,
    read_one,
)
from ansible_collections.linerate.rdma.plugins.module_utils._run.node_changes.bios.registries import Registries
from ansible_collections.linerate.rdma.tests.unit import bmc_server
from ansible_collections.linerate.rdma.tests.unit.bmc_server import PASSWORD, TOKEN, USER, BmcServer, Certificates, tree
from lab.bmc.server import Fault

SYSTEM = "/redfish/v1/Systems/System.Embedded.1"
MANAGER = "/redfish/v1/Managers/iDRAC.Embedded.1"
JOBS = f"{MANAGER}/Oem/Dell/Jobs"
REGISTRY = f"{SYSTEM}/Bios/BiosRegistry"
JOB = {"Id": "JID_1", "Name": "Configure: BIOS.Setup.1-1", "JobType": "BIOSConfiguration", "JobState": "Scheduled"}
Serve = typing.Callable[..., BmcServer]


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def trusted(certificates: Certificates) -> pathlib.Path:
    return certificates.of()


@pytest.fixture
def serve(trusted: pathlib.Path) -> typing.Iterator[Serve]:
    """Starts a BMC, which ends with the test."""
    with contextlib.ExitStack() as servers:
        yield lambda vendor="dell", certificate=trusted, latency=0.0: servers.enter_context(
            BmcServer(tree(vendor), certificate, latency)
        )


@pytest.fixture
def trust(certificates: Certificates) -> Trust:
    return Trust(True, str(certificates.authority))


def bmc(server: BmcServer, **other: typing.Any) -> Bmc:
    return Bmc(
        **{"node": "worker-1", "address": "localhost", "port": server.port, "user": USER, "password": PASSWORD, **other}
    )


def seen(server: BmcServer, trust: Trust, **other: typing.Any) -> NodeBios:
    return read_one(bmc(server, **other), trust, BiosQuery(), Registries())


def failed(server: BmcServer, trust: Trust, seconds: float = 20.0, **other: typing.Any) -> BmcError:
    with pytest.raises(BmcError) as caught:
        read_one(bmc(server, **other), trust, BiosQuery(seconds=seconds), Registries())
    assert PASSWORD not in str(caught.value) and TOKEN not in str(caught.value)
    assert caught.value.remedy or caught.value.cause == "not_found"
    return caught.value


def values(bios: NodeBios) -> dict[str, dict[str, typing.Any]]:
    """By key the attributes with their values; keys without one are left out."""
    return {
        one.key: {attribute.name: attribute.current for attribute in one.attributes}
        for one in bios.settings
        if one.attributes
    }


def setting(bios: NodeBios, key: str) -> BiosSetting:
    return next(one for one in bios.settings if one.key == key)


def state(bios: NodeBios, **wanted: typing.Any) -> str:
    (one,) = list_states(bios, find_wanted(wanted))
    return one.state


def test_dell_registry_of_another_name_and_version(serve: Serve, trust: Trust) -> None:
    bios = seen(serve(), trust)
    assert (bios.vendor, bios.model, bios.version) == ("Dell Inc.", "PowerEdge R750", "1.8.2")
    assert bios.registry == REGISTRY and bios.settings_uri == f"{SYSTEM}/Bios/Settings"
    assert bios.apply_times == ("OnReset", "AtMaintenanceWindowStart", "InMaintenanceWindowOnReset")
    assert (bios.jobs, bios.lockdown, bios.errors, bios.pending_error) == ((), False, (), "")
    assert values(bios) == {
        "sriov": {"SriovGlobalEnable": "Enabled"},
        "iommu": {"ProcVirtualization": "Enabled"},
        "above_4g": {"MmioAbove4Gb": "Enabled"},
        "numa_per_socket": {"SubNumaCluster": "Disabled"},
        "smt": {"LogicalProc": "Enabled"},
        "c_states": {"ProcC1E": "Disabled", "ProcCStates": "Disabled"},
        "profile": {"SysProfile": "PerfOptimized", "WorkloadProfile": "NotConfigured"},
    }
    (sriov,) = setting(bios, "sriov").attributes
    assert (sriov.display_name, sriov.read_only, sriov.reset_required) == ("SR-IOV Global Enable", "", True)
    assert [one.value for one in sriov.allowed] == ["Enabled", "Disabled"]


def test_dell_follows_what_depends_on_the_values_of_this_node(serve: Serve, trust: Trust) -> None:
    server = serve()
    _c1e, c_states = setting(seen(server, trust), "c_states").attributes
    assert c_states.read_only == "dependency: the attribute cannot be written while SysProfile is PerfOptimized"
    server.answers[f"{SYSTEM}/Bios"]["Attributes"]["SysProfile"] = "Custom"
    # the registry still calls it read-only, as it did on the node that it was read from
    assert [one.read_only for one in setting(seen(server, trust), "c_states").attributes] == ["", ""]


def test_hpe_without_a_body_of_its_registry(serve: Serve, trust: Trust) -> None:
    server = serve("hpe")
    bios = seen(server, trust)
    assert (
        bios.registry == ""
        and "404 (Base.1.12.ResourceMissingAtURI)" in bios.registry_error
        and "worker-1" not in bios.registry_error
    )
    assert bios.settings_uri == "/redfish/v1/systems/1/bios/settings/" and bios.settings_uri in server.asked
    assert values(bios) == {
        "sriov": {"Sriov": "Enabled"},
        "iommu": {"ProcAmdIoVt": "Enabled"},
        "acs": {"AccessControlService": "Enabled"},
        "numa_per_socket": {"NumaMemoryDomainsPerSocket": "Auto"},
        "smt": {"ProcSMT": "Enabled"},
        "c_states": {"MinProcIdlePower": "C6", "DataFabricCStateEnable": "Auto"},
        "profile": {"WorkloadProfile": "GeneralPowerEfficientCompute"},
    }
    # a full copy of the current values waits for nothing
    assert all(attribute.pending is None for one in bios.settings for attribute in one.attributes)


def test_lenovo_pending_is_another_resource(serve: Serve, trust: Trust) -> None:
    server = serve("lenovo")
    server.answers["/redfish/v1/Systems/1/Bios/Pending"]["Attributes"]["DevicesandIOPorts_SRIOV"] = "Disabled"
    bios = seen(server, trust)
    assert values(bios) == {
        "sriov": {"DevicesandIOPorts_SRIOV": "Enabled"},
        "iommu": {"DevicesandIOPorts_IntelVTforDirectedIOVTd": "Enabled"},
        "acs": {"Processors_PCIeACSCTL": "Enabled"},
        "numa_per_socket": {"Processors_SNC": "Disabled"},
        "smt": {"Processors_HyperThreading": "Enabled"},
        "c_states": {"Processors_CStates": "Autonomous", "Processors_C1EnhancedMode": "Enabled"},
        "profile": {"OperatingModes_ChooseOperatingMode": "Efficiency_FavorPerformance"},
    }
    assert setting(bios, "sriov").attributes[0].pending == "Disabled"
    (against,) = list_states(bios, find_wanted({"sriov": True}))
    assert (against.state, against.why) == (
        "wrong",
        "DevicesandIOPorts_SRIOV: the value Disabled, which takes effect at the next reset, does not mean on",
    )


def test_supermicro_values_by_their_display_names(serve: Serve, trust: Trust) -> None:
    bios = seen(serve("supermicro"), trust)
    assert bios.registry == "/registries/BiosAttributeRegistry.1.0.0.json" and bios.lockdown is False
    assert values(bios) == {
        "sriov": {"SR_IOVSupport_0047": "Enabled"},
        "iommu": {"IntelVTforDirectedI_O_VT_d__1E32": "Enable"},
        "acs": {"PCIeACSCTL_1E3C": "Disable"},
        "ari": {"ARISupport_0049": "Enabled"},
        "above_4g": {"Above4GDecoding_0041": "Enabled"},
        "numa_per_socket": {"SNC_F300": "Auto"},
        "smt": {"Hyper_Threading_ALL__F27F": "Enable"},
        "c_states": {"CPUC6Report_3D22": "Auto", "EnhancedHaltState_C1E__3D23": "Enable", "PackageCState_3D25": "Auto"},
        "relaxed_ordering": {"RelaxedOrdering_1DD1": "No"},
        "max_read_request": {"PCIeMaxReadRequestSize_00AE": "Auto"},
    }
    # what GET shows is what is written; in the registry '0' is Enable here
    assert [(one.value, one.label) for one in setting(bios, "smt").attributes[0].allowed] == [
        ("Enable", "0"),
        ("Disable", "1"),
    ]
    assert state(bios, smt=True) == "ok" and state(bios, smt=False) == state(bios, smt=0) == "wrong"
    assert state(bios, max_read_request=4096) == state(bios, numa_per_socket=1) == "unknown"
    assert state(bios, acs=False) == "ok" and state(bios, relaxed_ordering=True) == "wrong"


def test_dgx_has_two_switches_of_sriov(serve: Serve, trust: Trust) -> None:
    server = serve("dgx_h100")
    bios = seen(server, trust)
    assert values(bios) == {
        "sriov": {"SriovSupport": "Enabled", "SRIOVEnable": "Enable"},
        "iommu": {"VTdSupport": "Enable"},
        "ari": {"ARIEnable": "Enable"},
        "smt": {"ProcessorHyperThreadingDisable": "Enabled"},
        "c_states": {"PackageCState": "C6(Retention) state"},
        "relaxed_ordering": {"PcieRootPortRO": "Enabled", "PcieRelaxedOrdering": "Yes", "CbRelaxedOrdering": "No"},
        "max_read_request": {"PcieMaxReadRequestSize": "4096B"},
        "profile": {"ApplicationProfile": "Auto"},
    }
    assert (bios.jobs, bios.lockdown) == (None, None), "its BMC has neither"
    assert state(bios, sriov=True) == state(bios, smt=True) == state(bios, max_read_request=4096) == "ok"
    server.answers["/redfish/v1/Systems/DGX/Bios"]["Attributes"]["SRIOVEnable"] = "Disable"
    server.answers["/redfish/v1/Systems/DGX/Bios/SD"]["Attributes"]["SRIOVEnable"] = "Disable"
    (half,) = list_states(seen(server, trust), find_wanted({"sriov": True}))
    assert (half.state, half.why) == ("wrong", "SRIOVEnable: the value is Disable, not on")


def test_gb200_names_no_registry_and_has_a_switch_for_each_root_port(serve: Serve, trust: Trust) -> None:
    server = serve("gb200")
    bios = seen(server, trust)
    assert (bios.vendor, bios.model, bios.version) == ("", "", "")
    assert (
        list(values(bios)) == ["acs"] and len(values(bios)["acs"]) == 20 and set(values(bios)["acs"].values()) == {True}
    )
    assert state(bios, acs=True) == "ok" and state(bios, acs=False) == "wrong"
    (missing,) = list_states(bios, find_wanted({"sriov": True}))
    assert missing.state == "unknown" and missing.measured == "not found" and "Searched for: SR-?IOV" in missing.why


def test_names_take_the_place_of_a_registry_on_each_vendor(serve: Serve, trust: Trust) -> None:
    """What the registry finds, its names find as well; they find more where the screen calls it otherwise."""
    for vendor, body in (
        ("dell", REGISTRY),
        ("supermicro", "/registries/BiosAttributeRegistry.1.0.0.json"),
        ("dgx_h100", "/redfish/v1/Registries/BiosAttributeRegistry113.en-US.1.1.3.json"),
        ("gb200", "/redfish/v1/Registries/BiosAttributeRegistry/BiosAttributeRegistry"),
    ):
        server = serve(vendor)
        by_registry = values(seen(server, trust))
        del server.answers[body]
        by_names = values(seen(server, trust))
        assert {key: set(found) for key, found in by_names.items()} == {
            key: set(found) for key, found in by_registry.items()
        }, vendor


def test_a_job_holds_the_bios(serve: Serve, trust: Trust) -> None:
    server = serve()
    server.answers[f"{JOBS}/JID_1"] = JOB
    server.answers[JOBS]["Members"].append({"@odata.id": f"{JOBS}/JID_1"})
    server.answers[f"{SYSTEM}/Bios"]["Attributes"]["SriovGlobalEnable"] = "Disabled"
    # with a job an iDRAC calls each attribute read-only
    for row in server.answers[REGISTRY]["RegistryEntries"]["Attributes"]:
        row["ReadOnly"] = True
    for server.expands in (False, True):
        bios = seen(server, trust)
        assert bios.jobs is not None and [(one.id, one.state) for one in bios.jobs] == [("JID_1", "Scheduled")], (
            "the one that is over holds nothing"
        )
        (held,) = list_states(bios, find_wanted({"sriov": True}))
        assert (held.state, held.job) == ("read_only", "JID_1") and "job scheduled: JID_1 (Scheduled)" in held.why
    server.answers[f"{SYSTEM}/Bios/Settings"]["Attributes"] = {"SriovGlobalEnable": "Enabled"}
    (waits,) = list_states(seen(server, trust), find_wanted({"sriov": True}))
    assert (waits.state, waits.job, waits.measured) == (
        "pending",
        "JID_1",
        "SriovGlobalEnable Disabled (Enabled after a reset)",
    )
    assert (
        waits.why == "SriovGlobalEnable: the value Enabled takes effect at the next reset by the job JID_1 (Scheduled)"
    )
    server.answers[f"{JOBS}/JID_1"] = {**JOB, "JobState": "Completed"}
    bios = seen(server, trust)
    assert bios.jobs == () and state(bios, sriov=True) == "pending"
    # the registry was read while there was a job: that all is read-only says nothing about an attribute
    assert setting(bios, "sriov").attributes[0].read_only == ""


def test_jobs_of_any_size_are_cut_as_they_come(serve: Serve, trust: Trust) -> None:
    """A BMC that told 96 jobs of 4 MiB took 2 GiB of the controller."""
    server = serve()
    large = {"Oem": ["x" * 100] * 10_000, "Message": "y" * 100_000}
    jobs = [{**JOB, **large, "Id": f"JID_{number}"} for number in range(3)]
    server.faults[f"{JOBS}?$expand=*($levels=1)"] = Fault(body=json.dumps({"Members": jobs}).encode())
    assert [one.id for one in seen(server, trust).jobs or ()] == ["JID_0", "JID_1", "JID_2"]
    (kept, *_rest) = cut_jobs(jobs)
    assert sorted(kept) == ["@odata.id", "CompletionTime", "Id", "JobState", "JobType", "Message", "Name"]
    assert len(json.dumps(kept)) < 1_000
    server.faults[f"{JOBS}?$expand=*($levels=1)"] = Fault(body=json.dumps({"Members": [JOB] * 1_001}).encode())
    assert "more than 1000 jobs of the BIOS" in seen(server, trust).errors[0]


def test_a_queue_of_jobs_in_pages(serve: Serve, trust: Trust) -> None:
    server = serve()
    first, second = f"{JOBS}?$expand=*($levels=1)", f"{JOBS}?$skip=1"
    over, scheduled = {**JOB, "JobState": "Completed"}, {**JOB, "Id": "JID_2"}
    server.faults[first] = Fault(body=json.dumps({"Members": [over], "Members@odata.nextLink": second}).encode())
    server.faults[second] = Fault(body=json.dumps({"Members": [scheduled]}).encode())
    assert [one.id for one in seen(server, trust).jobs or ()] == ["JID_2"]
    for following in (second, "https://example.com/jobs"):
        server.faults[second] = Fault(
            body=json.dumps({"Members": [over], "Members@odata.nextLink": following}).encode()
        )
        bios = seen(server, trust)
        assert bios.jobs is None and bios.errors[0].startswith("jobs could not be read"), (
            "who did not see all of them does not know that there is none"
        )
    del server.faults[first]
    server.answers[JOBS]["Members"] *= 33
    assert "33 jobs and lists them only one by one" in seen(server, trust).errors[0]


@pytest.mark.parametrize(
    ("vendor", "path", "change", "attribute"),
    [
        (
            "dell",
            f"{MANAGER}/Oem/Dell/DellAttributes/iDRAC.Embedded.1",
            {"Attributes": {"Lockdown.1.SystemLockdown": "Enabled"}},
            ("System.Embedded.1", "SriovGlobalEnable"),
        ),
        (
            "supermicro",
            "/redfish/v1/Managers/1/Oem/Supermicro/SysLockdown",
            {"SysLockdownEnabled": True},
            ("1", "SR_IOVSupport_0047"),
        ),
    ],
)
def test_a_bmc_that_is_locked_down(
    vendor: str, path: str, change: dict[str, typing.Any], attribute: tuple[str, str], serve: Serve, trust: Trust
) -> None:
    server = serve(vendor)
    server.answers[path].update(change)
    system, name = attribute
    server.answers[f"/redfish/v1/Systems/{system}/Bios"]["Attributes"][name] = "Disabled"
    (held,) = list_states(seen(server, trust), find_wanted({"sriov": True}))
    assert held.state == "read_only" and "lockdown: the BMC is locked down" in held.why


def test_a_setting_that_depends_on_another_one(serve: Serve, trust: Trust) -> None:
    (held,) = list_states(seen(serve(), trust), find_wanted({"c_states": True}))
    assert held.state == "read_only" and "while SysProfile is PerfOptimized" in held.why and not held.job


def test_parts_that_cannot_be_read_are_named_and_pass_for_nothing(serve: Serve, trust: Trust) -> None:
    server = serve()
    server.faults[f"{SYSTEM}/Bios/Settings"] = Fault(status=500)
    server.faults[f"{JOBS}?$expand=*($levels=1)"] = Fault(status=403)
    server.answers[f"{MANAGER}/Oem/Dell/DellAttributes/iDRAC.Embedded.1"] = {"Attributes": {}}
    bios = seen(server, trust)
    assert (
        bios.pending_error.startswith("the settings object could not be read: the BMC responded to GET")
        and "500" in bios.pending_error
    )
    assert bios.jobs is None and bios.lockdown is None
    assert [error.partition(" could")[0] for error in bios.errors] == ["jobs", "lockdown mode"]
    (unknown,) = list_states(bios, find_wanted({"sriov": True}))
    assert (
        unknown.state == "unknown"
        and "the current value is correct, but the settings object could not be read" in unknown.why
    )
    assert state(bios, sriov=False) == "wrong"


def test_system_of_the_node(serve: Serve, trust: Trust) -> None:
    server = serve("dgx_h100")
    assert seen(server, trust, system="DGX").model == "DGXH100"
    assert "no system GB" in str(failed(server, trust, system="GB")) and "DGX, HGX_Baseboard_0" in str(
        failed(server, trust, system="GB")
    )
    assert failed(server, trust, system="HGX_Baseboard_0").cause == "not_found"
    server.answers["/redfish/v1/Systems/HGX_Baseboard_0"]["Bios"] = {"@odata.id": "/x"}
    assert "several systems of the BMC have a Bios resource: DGX, HGX_Baseboard_0" in str(failed(server, trust))


def test_several_registries_and_one_for_this_model(serve: Serve, trust: Trust) -> None:
    server = serve()
    other = "/redfish/v1/Registries/BiosAttributeRegistry.v1_0_9"
    server.answers["/redfish/v1/Registries"]["Members"].insert(0, {"@odata.id": other})
    server.answers[other] = {
        "Location": [
            {"Language": "de", "Uri": "/de"},
            {"Language": "en", "PublicationUri": "https://example.com/", "Uri": "/other"},
        ]
    }
    server.answers["/other"] = {**server.answers[REGISTRY], "SupportedSystems": [{"ProductName": "PowerEdge R650"}]}
    assert seen(server, trust).registry == REGISTRY and "/de" not in server.asked
    server.answers[REGISTRY]["SupportedSystems"] = []
    bios = seen(server, trust)
    assert (
        bios.registry == "" and "applies to PowerEdge R750" in bios.registry_error and state(bios, sriov=True) == "ok"
    )


def test_a_registry_that_is_sent_compressed(serve: Serve, trust: Trust) -> None:
    server = serve()
    server.faults[REGISTRY] = bmc_server.packed(server.answers[REGISTRY])
    assert seen(server, trust).registry == REGISTRY
    server.faults[REGISTRY] = bmc_server.packed({"x": "0" * 5_000_000})
    assert "more than 4 MiB" in seen(server, trust).registry_error


@pytest.mark.parametrize(
    ("fault", "cause"),
    [
        (Fault(status=403), "rights"),
        (Fault(status=404), "not_found"),
        (Fault(status=500), "status"),
        (Fault(body=b"<html>login</html>"), "not_json"),
        (Fault(body=b"[" * 200_000), "not_json"),
        (Fault(body=b'{"Members": "\\ud800"}'), "not_json"),
        (Fault(body=b"[]"), "not_json"),
        (Fault(body=b"{}"), "not_understood"),
        (Fault(body=b" " * 5_000_000), "too_large"),
        (Fault(status=302, headers=(("Location", "https://example.com/redfish/v1/Systems"),)), "status"),
        (Fault(status=302, headers=(("Location", "/redfish/v1/Systems"),)), "status"),
        (Fault(status=302, headers=(("Location", "https://[x"),)), "status"),
        (Fault(drip=True), "timeout"),
    ],
)
def test_answers_that_are_none(fault: Fault, cause: str, serve: Serve, trust: Trust) -> None:
    server = serve()
    server.faults["/redfish/v1/Systems"] = fault
    error = failed(server, trust, seconds=0.3 if fault.drip else 20.0)
    assert error.cause == cause and str(error).startswith(f"the BMC of worker-1 (localhost:{server.port}): ")


def test_a_wrong_password_is_sent_once(serve: Serve, trust: Trust) -> None:
    server = serve()
    error = failed(server, trust, password="wrong")
    assert error.cause == "password" and len(server.asked) == 1 and "wrong." in str(error)
    assert failed(server, trust, token="old").cause == "password"
    assert seen(server, trust, user="", password="", token=TOKEN).model == "PowerEdge R750"


def test_a_redirection_on_the_same_bmc_is_followed(serve: Serve, trust: Trust) -> None:
    server = serve()
    server.faults["/redfish/v1/Systems"] = Fault(status=308, headers=(("Location", "/redfish/v1/Systems/"),))
    assert seen(server, trust).model == "PowerEdge R750"


def test_a_connection_that_breaks_and_a_bmc_that_is_busy_are_asked_again(serve: Serve, trust: Trust) -> None:
    server = serve()
    pauses: list[float] = []
    server.faults["/redfish/v1/Systems"] = Fault(times=1, drop=True)
    server.faults[SYSTEM] = Fault(times=2, status=503)
    server.faults[f"{SYSTEM}/Bios"] = Fault(times=1, status=200, body=b'{"Attributes": {}}', cut=5)
    server.faults[MANAGER] = Fault(times=1, status=429, headers=(("Retry-After", "7"),))
    with Session(bmc(server), trust, 60, pauses.append) as session:
        for path in ("/redfish/v1/Systems", SYSTEM, f"{SYSTEM}/Bios", MANAGER):
            assert session.get(path)["@odata.id"] == path
        server.faults[SYSTEM] = Fault(status=503, headers=(("Retry-After", "70"),))
        with pytest.raises(
            BmcError, match=r"postponed GET /redfish/v1/Systems/System\.Embedded\.1 until the limit of 60 s was reached"
        ):
            session.get(SYSTEM)
        server.faults[SYSTEM] = Fault(drop=True)
        with pytest.raises(BmcError, match="the connection broke") as caught:
            session.get(SYSTEM)
    assert caught.value.cause == "closed" and pauses == [0.0, 1.0, 2.0, 0.0, 7.0, 0.0, 1.0]


def test_one_connection_serves_all(serve: Serve, trust: Trust) -> None:
    server = serve()
    seen(server, trust)
    assert server.connections == 1 and len(server.asked) == 11 == len(set(server.asked))


def test_certificates_that_are_not_believed(
    certificates: Certificates, trusted: pathlib.Path, serve: Serve, trust: Trust
) -> None:
    expired, other, own = certificates.of(days=-1), certificates.of("bmc.example.com"), certificates.of(signed=False)
    for certificate, cause in ((expired, "tls_expired"), (other, "tls_name"), (own, "tls_authority")):
        server = serve(certificate=certificate)
        error = failed(server, trust)
        assert (
            error.cause == cause
            and f"openssl s_client -connect localhost:{server.port}" in error.remedy
            and server.asked == []
        )
        assert (
            seen(server, Trust(), fingerprint=fingerprint_of(bmc_server.fingerprint(certificate))).model
            == "PowerEdge R750"
        )
        assert seen(server, Trust(validate=False)).model == "PowerEdge R750"
        # the pin is checked whatever else is not
        pinned = failed(server, Trust(validate=False), fingerprint=fingerprint_of(bmc_server.fingerprint(trusted)))
        assert pinned.cause == "tls_pin" and fingerprint_of(bmc_server.fingerprint(certificate)) in str(pinned)
    assert failed(serve(), Trust()).cause == "tls_authority", "the authorities of this machine do not know the tests'"


def test_nobody_answers(trust: Trust, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as quiet:
        quiet.bind(("127.0.0.1", 0))
        port = quiet.getsockname()[1]
        target = Bmc("worker-1", "localhost", port, USER, PASSWORD)
        assert cause_of(target, trust) == "refused"
        # it takes the connection, and says nothing
        quiet.listen()
        assert cause_of(target, trust, 0.2) == "timeout"
    assert cause_of(dataclasses.replace(target, address="bmc.invalid"), trust) == "address"
    for error, cause in (
        (OSError(113, "No route to host"), "no_route"),
        (TimeoutError(), "timeout"),
        (OSError(24, "Too many open files"), "controller"),
    ):

        def fail(*_arguments: typing.Any, error: OSError = error) -> typing.NoReturn:
            raise error

        monkeypatch.setattr(socket, "create_connection", fail)
        assert cause_of(target, trust) == cause


def cause_of(target: Bmc, trust: Trust, seconds: float = 5.0) -> str:
    with pytest.raises(BmcError) as caught:
        read_one(target, trust, BiosQuery(seconds=seconds), Registries())
    return caught.value.cause


def test_a_port_that_does_not_speak_tls(trust: Trust) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()

        def answer() -> None:
            connection, _address = listener.accept()
            with connection:
                connection.recv(100)
                connection.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        assert cause_of(Bmc("worker-1", "localhost", listener.getsockname()[1], USER, PASSWORD), trust) == "tls"
        thread.join()


def test_a_registry_is_parsed_once_for_a_model() -> None:
    registries, parsed = Registries(most=2), []

    def of(body: bytes, path: str = "/a") -> Registry:
        def parse() -> Registry:
            parsed.append(body)
            return Registry("/first", ())

        return registries.parsed(body, path, parse)

    assert of(b"1").path == "/a" and of(b"1", "/b").path == "/b" and of(b"2") and parsed == [b"1", b"2"]
    of(b"3")
    of(b"2")
    of(b"1")
    assert parsed == [b"1", b"2", b"3", b"1"], "two of them are kept"
    with pytest.raises(ParseError):
        registries.parsed(b"4", "/a", lambda: parse_registry({}, "/a"))
    assert of(b"4") and parsed[-1] == b"4", "what is no registry is not kept"


def test_a_registry_that_takes_long_keeps_only_those_that_have_the_same() -> None:
    registries, parsed = Registries(), []
    gate, begun, done = threading.Event(), threading.Event(), threading.Event()

    def slow() -> Registry:
        parsed.append("slow")
        begun.set()
        assert gate.wait(60)
        return Registry("/slow", ())

    def other() -> None:
        registries.parsed(b"other", "/other", lambda: Registry("/other", ()))
        done.set()

    same = [threading.Thread(target=registries.parsed, args=(b"slow", "/slow", slow)) for _number in range(2)]
    threads = [*same, threading.Thread(target=other)]
    for thread in same:
        thread.start()
    assert begun.wait(20)
    threads[-1].start()
    ended = done.wait(20)
    gate.set()
    for thread in threads:
        thread.join()
    assert ended and parsed == ["slow"]


@pytest.mark.parametrize(
    ("name", "display", "count"),
    [("Sriov", "SR-IOV" + " " * 250, 1), ("Sriov", "SR-IOV" + " " * 251, 0), ("S" * 257, "SR-IOV", 0)],
)
def test_an_attribute_with_an_endless_name_is_none(name: str, display: str, count: int) -> None:
    found = parse_registry({"RegistryEntries": {"Attributes": [{"AttributeName": name, "DisplayName": display}]}}, "/a")
    assert [entry.display_name for entry in found.entries] == [display] * count


def test_each_bmc_is_asked_for_its_own_registry(serve: Serve, trust: Trust) -> None:
    server = serve()
    bmcs = [bmc(server, node=f"worker-{number}") for number in range(8)]
    found = {one.node: outcome for one, outcome in read(bmcs, trust, BiosQuery(), 8)}
    assert set(found) == {one.node for one in bmcs} and all(
        isinstance(outcome, NodeBios) and outcome.registry for outcome in found.values()
    )
    assert server.asked.count(REGISTRY) == server.asked.count(f"{SYSTEM}/Bios") == 8


def test_a_slow_and_a_dead_bmc_delay_nobody(serve: Serve, trust: Trust) -> None:
    """The slow one is the first of its model, and hangs in its registry."""
    slow, dead, good = serve(), serve(), serve()
    gate, slow_hangs, dead_hangs = threading.Event(), threading.Event(), threading.Event()
    slow.faults[REGISTRY] = Fault(gate=gate, reached=slow_hangs)
    dead.faults["/redfish/v1/Systems"] = Fault(gate=gate, reached=dead_hangs)
    registries, ended = Registries(), []

    def ask(node: str, server: BmcServer) -> None:
        read_one(bmc(server, node=node), trust, BiosQuery(), registries)
        ended.append(node)

    hanging = [threading.Thread(target=ask, args=(name, server)) for name, server in (("slow", slow), ("dead", dead))]
    for thread in hanging:
        thread.start()
    assert slow_hangs.wait(20) and dead_hangs.wait(20)
    for number in range(3):
        ask(f"good-{number}", good)
    assert ended == ["good-0", "good-1", "good-2"]
    gate.set()
    for thread in hanging:
        thread.join()
    assert len(ended) == 5


def test_who_reads_a_registry_and_fails_fails_alone(serve: Serve, trust: Trust) -> None:
    server = serve()
    server.faults[REGISTRY] = Fault(times=1, status=403)
    bmcs = [bmc(server, node=f"worker-{number}") for number in range(4)]
    found = [outcome for _bmc, outcome in read(bmcs, trust, BiosQuery(), 1)]
    assert [bool(isinstance(one, NodeBios) and one.registry) for one in found] == [False, True, True, True]


def test_facts_hold_no_secret_and_come_back_as_they_were(serve: Serve, trust: Trust) -> None:
    bios = seen(serve(), trust)
    data = to_data(bios)
    assert load(NodeBios, data) == bios
    assert PASSWORD not in str(data) and USER not in str(data)
    assert PASSWORD not in repr(Bmc("a", "b", 1, USER, PASSWORD, TOKEN)) and TOKEN not in repr(
        Bmc("a", "b", 1, USER, PASSWORD, TOKEN)
    )


@pytest.mark.parametrize(
    "address", ["https://bmc.example.com", "root:calvin@10.0.0.1", "", "10.0.0.1/redfish", "a b", "bmc\r\n"]
)
def test_an_address_is_a_name_or_an_address(address: str) -> None:
    with pytest.raises(RdmaError) as caught:
        address_of(address)
    assert "calvin" not in str(caught.value)
    assert address_of("fd00::12") == "fd00::12"


@pytest.mark.parametrize("text", ["", "sha1:00", "zz" * 32, "AA:BB"])
def test_a_fingerprint_is_one(text: str) -> None:
    with pytest.raises(RdmaError, match="fingerprint"):
        fingerprint_of(text)


def test_authorities_that_are_none(tmp_path: pathlib.Path) -> None:
    empty = tmp_path / "ca.pem"
    empty.write_text("no certificate")
    for path in (empty, tmp_path / "absent"):
        with pytest.raises(RdmaError, match="ca_path"):
            Trust(True, str(path))
