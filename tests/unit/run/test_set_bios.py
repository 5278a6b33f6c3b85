# SPDX-License-Identifier: GPL-3.0-or-later

"""The BIOS of a node, set through its BMC: each vendor's own way, again before and after the reset, what is refused
before anything is written, and BMCs that say yes and mean no."""

from __future__ import annotations

import contextlib
import json
import pathlib
import ssl
import subprocess
import sys
import typing
import urllib.request

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.fleet.bios import find_wanted, list_states
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.bios import BiosChange, BiosWrite
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.identity import Claims
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.guard import Guard
from ansible_collections.linerate.rdma.plugins.module_utils._observe.redfish.bmc import Bmc, BmcError
from ansible_collections.linerate.rdma.plugins.module_utils._observe.redfish.trust import Trust
from ansible_collections.linerate.rdma.plugins.module_utils._run.node_changes.bios.read_bios import BiosQuery, read_one
from ansible_collections.linerate.rdma.plugins.module_utils._run.node_changes.bios.registries import Registries
from ansible_collections.linerate.rdma.plugins.module_utils._run.node_changes.bios.set_bios import May, set_all, set_one
from ansible_collections.linerate.rdma.tests.unit.bmc_server import (
    BASIC,
    PASSWORD,
    TOKEN,
    USER,
    BmcServer,
    Certificates,
    tree,
)
from lab.bmc import bios
from lab.bmc.server import Fault

ROOT = pathlib.Path(__file__).parents[3]
DELL = "/redfish/v1/Systems/System.Embedded.1"
DELL_SETTINGS = f"{DELL}/Bios/Settings"
DELL_LOCKDOWN = "/redfish/v1/Managers/iDRAC.Embedded.1/Oem/Dell/DellAttributes/iDRAC.Embedded.1"
SUPERMICRO_LOCKDOWN = "/redfish/v1/Managers/1/Oem/Supermicro/SysLockdown"
Serve = typing.Callable[..., BmcServer]
UUID = "4c4c4544-0035-3510-8054-c6c04f503347"
MAY = May(Claims({"worker-1": UUID}), Guard(lambda: 60.0))

#: vendor: what SR-IOV is called there, and the word for off
SWITCHES: dict[str, dict[str, str]] = {
    "dell": {"SriovGlobalEnable": "Disabled"},
    "hpe": {"Sriov": "Disabled"},
    "lenovo": {"DevicesandIOPorts_SRIOV": "Disabled"},
    "supermicro": {"SR_IOVSupport_0047": "Disabled"},
    "dgx_h100": {"SriovSupport": "Disabled", "SRIOVEnable": "Disable"},
}


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def trusted(certificates: Certificates) -> pathlib.Path:
    return certificates.of()


@pytest.fixture
def trust(certificates: Certificates) -> Trust:
    return Trust(True, str(certificates.authority))


@pytest.fixture
def serve(trusted: pathlib.Path) -> typing.Iterator[Serve]:
    """Starts a BMC, which ends with the test; SR-IOV is off in its BIOS."""
    with contextlib.ExitStack() as servers:

        def start(vendor: str = "dell") -> BmcServer:
            server = servers.enter_context(BmcServer(tree(vendor), trusted))
            server.bios.call(UUID, "SN-1")
            for path in (server.bios.path, server.bios.settings):
                shown = server.answers[path].get("Attributes") or {}
                shown.update({name: value for name, value in SWITCHES[vendor].items() if name in shown})
            return server

        yield start


def bmc(server: BmcServer, **other: typing.Any) -> Bmc:
    access = {"node": "worker-1", "address": "localhost", "port": server.port, "user": USER, "password": PASSWORD}
    # beside the node this BMC has a baseboard, which is a system as well: the inventory says which one is the node
    system = "DGX" if "/DGX/" in server.bios.path else ""
    return Bmc(**{**access, "system": system, **other})


def put(server: BmcServer, trust: Trust, check_mode: bool = False, **wanted: typing.Any) -> BiosChange:
    return set_one(bmc(server), find_wanted(wanted or {"sriov": True}), trust, Registries(), MAY, check_mode, 30)


def refused(server: BmcServer, trust: Trust, **wanted: typing.Any) -> BmcError:
    with pytest.raises(BmcError) as caught:
        put(server, trust, **wanted)
    said = f"{caught.value} {caught.value.remedy}"
    assert caught.value.remedy and not any(secret in said for secret in (PASSWORD, TOKEN, BASIC))
    return caught.value


def state(server: BmcServer, trust: Trust, **wanted: typing.Any) -> str:
    bios = read_one(bmc(server), trust, BiosQuery(), Registries())
    (one,) = list_states(bios, find_wanted(wanted or {"sriov": True}))
    return one.state


@pytest.mark.parametrize("vendor", SWITCHES)
def test_set_again_before_the_reset_and_again_after_it(vendor: str, serve: Serve, trust: Trust) -> None:
    server = serve(vendor)
    assert state(server, trust) == "wrong"
    would = put(server, trust, check_mode=True)
    assert server.written == [] and would.reset_required and would.job == ""
    done = put(server, trust)
    assert done.writes == would.writes and done.reset_required, "check mode says what is done"
    assert {write.attribute: write.before for write in done.writes} == SWITCHES[vendor]
    assert {write.after for write in done.writes} <= {"Enabled", "Enable"} and {write.key for write in done.writes} == {
        "sriov"
    }
    assert bool(done.job) == (vendor == "dell")
    again = put(server, trust)
    assert again == BiosChange((), True, done.job) and len(server.written) == 1 and state(server, trust) == "pending"
    server.reset()
    assert put(server, trust) == BiosChange() and len(server.written) == 1 and state(server, trust) == "ok"
    assert server.resets == [], "only who asks for a reset gets one"


def test_what_is_sent_to_each_vendor(serve: Serve, trust: Trust) -> None:
    sent = {}
    for vendor in SWITCHES:
        server = serve(vendor)
        put(server, trust)
        (sent[vendor],) = server.written
    on_reset = {"@Redfish.SettingsApplyTime": {"ApplyTime": "OnReset"}}
    assert sent["dell"] == {"Attributes": {"SriovGlobalEnable": "Enabled"}, **on_reset}
    assert sent["lenovo"] == {"Attributes": {"DevicesandIOPorts_SRIOV": "Enabled"}, **on_reset}
    assert sent["dgx_h100"]["Attributes"] == {
        "SriovSupport": "Enabled",
        "SRIOVEnable": "Enable",
    }, "each in the words that it shows"
    assert sent["supermicro"]["Attributes"] == {"SR_IOVSupport_0047": "Enabled"}


def test_values_in_the_words_of_each_bios(serve: Serve, trust: Trust) -> None:
    supermicro = put(
        serve("supermicro"), trust, max_read_request=4096, numa_per_socket=1, smt=False, relaxed_ordering=True, acs=True
    )
    assert {write.attribute: write.after for write in supermicro.writes} == {
        "PCIeMaxReadRequestSize_00AE": "4096B",
        "SNC_F300": "Disable",
        "Hyper_Threading_ALL__F27F": "Disable",
        "RelaxedOrdering_1DD1": "Yes",
        "PCIeACSCTL_1E3C": "Enable",
    }
    # no registry: the words of the current value, or the user's own
    lenovo = put(serve("lenovo"), trust, smt=False, acs=False, profile="MaximumPerformance")
    assert {write.attribute: write.after for write in lenovo.writes} == {
        "Processors_HyperThreading": "Disabled",
        "Processors_PCIeACSCTL": "Disabled",
        "OperatingModes_ChooseOperatingMode": "MaximumPerformance",
    }
    dell = put(serve(), trust, sriov=True, profile=["MaximumPerformance", "custom"], numa_per_socket=2)
    assert [(write.attribute, write.after) for write in dell.writes] == [
        ("SriovGlobalEnable", "Enabled"),
        ("SysProfile", "Custom"),
        ("SubNumaCluster", "2-Way"),
    ]


@pytest.mark.parametrize(
    ("vendor", "wanted", "cause", "said"),
    [
        ("dell", {"sriov": True, "ari": True}, "attribute", "ari: No such attribute in the registry"),
        ("hpe", {"sriov": True, "relaxed_ordering": True}, "attribute", "whose registry is missing"),
        (
            "dell",
            {"sriov": True, "c_states": True},
            "read_only",
            ("ProcCStates is Disabled, not on; dependency: the attribute cannot be written while SysProfile"),
        ),
        (
            "dell",
            {"sriov": True, "profile": "Turbo"},
            "value",
            "SysProfile cannot be set to Turbo: the allowed values are",
        ),
        ("hpe", {"sriov": True, "numa_per_socket": 2}, "value", "no attribute registry lists its allowed values"),
    ],
)
def test_one_thing_that_is_not_to_be_had_keeps_all_from_being_written(
    vendor: str, wanted: dict[str, typing.Any], cause: str, said: str, serve: Serve, trust: Trust
) -> None:
    server = serve(vendor)
    error = refused(server, trust, **wanted)
    assert error.cause == cause and said in str(error) and server.written == []


def test_what_is_right_already_needs_nobody_to_write_it(serve: Serve, trust: Trust) -> None:
    """Read-only and held settings are no obstacle where nothing is to be written."""
    server = serve()
    server.answers[DELL_LOCKDOWN]["Attributes"]["Lockdown.1.SystemLockdown"] = "Enabled"
    assert put(server, trust, iommu=True, c_states=False) == BiosChange()


def test_a_job_holds_the_bios(serve: Serve, trust: Trust) -> None:
    server = serve()
    job = put(server, trust).job
    error = refused(server, trust, smt=False)
    assert (error.cause, len(server.written)) == ("job", 1) and f"job scheduled: {job} (Scheduled)" in str(error)
    assert f"racadm jobqueue delete -i {job}" in error.remedy and "Reset the node" in error.remedy
    # to have it off again is a change as well
    assert refused(server, trust, sriov=False).cause == "job"
    server.reset()
    assert put(server, trust, smt=False).writes == (BiosWrite("smt", "LogicalProc", "Enabled", "Disabled"),)


def test_values_that_no_job_would_apply_are_written_again(serve: Serve, trust: Trust) -> None:
    """An iDRAC keeps what came without a time, and never applies it."""
    server = serve()
    server.answers[DELL_SETTINGS]["Attributes"] = {"SriovGlobalEnable": "Enabled"}
    bios = read_one(bmc(server), trust, BiosQuery(), Registries())
    (one,) = list_states(bios, find_wanted({"sriov": True}))
    assert one.state == "pending" and "no job exists that applies it" in one.why
    done = put(server, trust)
    assert [write.after for write in done.writes] == ["Enabled"] and done.job and done.reset_required
    server.reset()
    assert state(server, trust) == "ok"


@pytest.mark.parametrize(
    ("vendor", "path", "change"),
    [
        ("dell", DELL_LOCKDOWN, {"Attributes": {"Lockdown.1.SystemLockdown": "Enabled"}}),
        ("supermicro", SUPERMICRO_LOCKDOWN, {"SysLockdownEnabled": True}),
    ],
)
def test_lockdown_is_seen_before_anything_is_written(
    vendor: str, path: str, change: dict[str, typing.Any], serve: Serve, trust: Trust
) -> None:
    server = serve(vendor)
    server.answers[path].update(change)
    error = refused(server, trust)
    assert error.cause == "lockdown" and "Disable the lockdown mode" in error.remedy and server.written == []


@pytest.mark.parametrize("vendor", ["dell", "hpe", "supermicro"])
def test_a_bmc_that_says_yes_and_keeps_nothing(vendor: str, serve: Serve, trust: Trust) -> None:
    server = serve(vendor)
    server.bios.forgets = True
    error = refused(server, trust)
    (name,) = SWITCHES[vendor]
    assert (
        error.cause == "not_kept"
        and f"the BMC accepted the settings, but these settings are not pending: {name} (still Disabled)" in str(error)
    )


def test_what_waits_can_t_be_read(serve: Serve, trust: Trust) -> None:
    server = serve("lenovo")
    server.faults[server.bios.settings] = Fault(status=500, method="GET")
    error = refused(server, trust)
    assert (
        error.cause == "not_understood"
        and "the settings that wait for a reset are unknown:" in str(error)
        and server.written == []
    )


def test_a_setting_that_does_not_take_is_wrong_after_the_reset(serve: Serve, trust: Trust) -> None:
    for vendor in SWITCHES:
        server = serve(vendor)
        server.bios.stubborn = frozenset(SWITCHES[vendor])
        put(server, trust)
        server.reset()
        bios = read_one(bmc(server), trust, BiosQuery(), Registries())
        (one,) = list_states(bios, find_wanted({"sriov": True}))
        assert one.state == "wrong" and "the last attempt to apply values reported: The BIOS did not take" in one.why
        assert ("the job JID_" in one.why and "ended with state Failed" in one.why) == (vendor == "dell")
        assert len(put(server, trust).writes) == len(SWITCHES[vendor])
        # the next time it does
        server.bios.stubborn = frozenset()
        server.reset()
        assert read_one(bmc(server), trust, BiosQuery(), Registries()).last_apply == "" and state(server, trust) == "ok"


@pytest.mark.parametrize("vendor", ["hpe", "dgx_h100"])
def test_somebody_else_writes_at_the_same_time(vendor: str, serve: Serve, trust: Trust) -> None:
    """The first time the BIOS is read again and decided anew; the second time it is an error."""
    server = serve(vendor)
    server.faults[f"{server.bios.settings}"] = Fault(times=1, status=412, method="PATCH")
    slash = server.answers[server.bios.path]["@Redfish.Settings"]["SettingsObject"]["@odata.id"]
    server.faults[slash] = Fault(times=1, status=412, method="PATCH")
    assert put(server, trust).writes and len(server.written) == 1
    other = serve(vendor)
    other.faults[slash] = Fault(status=412, method="PATCH")
    contended = serve(vendor)
    contended.bios.contended = True
    for error in (refused(other, trust), *([refused(contended, trust)] if contended.bios.etag else [])):
        assert error.cause == "changed" and "another client changes its settings at the same time" in str(error)


def test_an_old_etag_is_refused_and_read_again(serve: Serve, trust: Trust) -> None:
    server = serve("hpe")
    slash = server.answers[server.bios.path]["@Redfish.Settings"]["SettingsObject"]["@odata.id"]
    body = json.dumps({**server.answers[server.bios.settings], "@odata.etag": '"old"'}).encode()
    server.faults[slash] = Fault(times=1, body=body, method="GET")
    assert put(server, trust).writes
    assert len(server.written) == 2 and server.asked.count(slash) == 3, "read, refused, read again, taken, read"


def test_the_connection_breaks_and_nobody_knows_whether_it_was_taken(serve: Serve, trust: Trust) -> None:
    for vendor in ("dell", "dgx_h100"):
        for late in (False, True):
            server = serve(vendor)
            server.faults[server.bios.settings] = Fault(times=1, drop=True, late=late, method="PATCH")
            done = put(server, trust)
            assert {write.attribute for write in done.writes} == set(SWITCHES[vendor]) and done.reset_required
            assert bool(done.job) == (vendor == "dell") and len(server.written) == 1
    server.faults[server.bios.settings] = Fault(drop=True, method="PATCH")
    assert refused(server, trust, acs=True).cause == "attribute"
    assert refused(server, trust, ari=False).cause == "closed"


def test_a_busy_bmc_is_asked_again(serve: Serve, trust: Trust) -> None:
    server = serve()
    server.faults[DELL_SETTINGS] = Fault(times=1, status=503, headers=(("Retry-After", "0"),), method="PATCH")
    assert put(server, trust).job


def extended(text: str) -> bytes:
    return json.dumps(
        {"error": {"@Message.ExtendedInfo": [{"MessageId": "IDRAC.2.8.SYS428", "Message": text}]}}
    ).encode()


@pytest.mark.parametrize(
    ("status", "words", "cause", "said"),
    [
        (
            400,
            "Unable to set the value of SR-IOV.",
            "not_taken",
            "400 (IDRAC.2.8.SYS428); the BMC reports: Unable to set the value of SR-IOV.",
        ),
        (400, f"denied: {PASSWORD}", "not_taken", "400 (IDRAC.2.8.SYS428)"),
        (400, f"denied: {BASIC}", "not_taken", "400 (IDRAC.2.8.SYS428)"),
        (403, "Insufficient privilege.", "rights", "the BMC reports: Insufficient privilege."),
        (401, "", "password", "user or password is wrong"),
        (404, "", "not_found", "404"),
        (500, "Internal.", "not_taken", "the BMC reports: Internal."),
    ],
)
def test_a_refusal_is_told_in_the_words_of_the_bmc(
    status: int, words: str, cause: str, said: str, serve: Serve, trust: Trust
) -> None:
    server = serve()
    server.faults[DELL_SETTINGS] = Fault(status=status, body=extended(words), method="PATCH")
    error = refused(server, trust)
    assert error.cause == cause and said in str(error) and "denied" not in str(error)


def test_many_at_once_and_one_that_is_dead(serve: Serve, trust: Trust) -> None:
    good, bad = serve(), serve("hpe")
    bad.faults["/redfish/v1/Systems"] = Fault(status=401)
    bmcs = [bmc(good), bmc(bad, node="worker-2")]
    wanted = {one.node: find_wanted({"sriov": True}) for one in bmcs}
    found = {one.node: outcome for one, outcome in set_all(bmcs, wanted, trust, MAY, parallel=2)}
    assert isinstance(found["worker-1"], BiosChange) and found["worker-1"].writes
    assert isinstance(found["worker-2"], BmcError) and found["worker-2"].cause == "password" and bad.written == []


def ask(port: int, authority: pathlib.Path, path: str, body: typing.Any = None, method: str = "GET") -> typing.Any:
    request = urllib.request.Request(
        f"https://localhost:{port}{path}", json.dumps(body).encode() if body else None, method=method
    )
    request.add_header("Authorization", BASIC)
    request.add_header("Content-Type", "application/json")
    with urllib.request.urlopen(
        request, context=ssl.create_default_context(cafile=str(authority)), timeout=20
    ) as answer:
        read = answer.read()
        return json.loads(read) if read else None


def test_as_a_program_it_keeps_its_bios_and_resets_the_node(
    tmp_path: pathlib.Path, certificates: Certificates, trusted: pathlib.Path, trust: Trust
) -> None:
    """What waits outlives the program; the reset applies it and calls whoever really restarts the node."""
    credentials, state_folder, marks = tmp_path / "credentials.json", tmp_path / "state", tmp_path / "marks"
    credentials.write_text(json.dumps({"user": USER, "password": PASSWORD}), encoding="utf-8")
    state_folder.mkdir()
    (state_folder / "faults.json").write_text(json.dumps({"stubborn": ["LogicalProc"]}), encoding="utf-8")
    mark = [sys.executable, "-c", f"import sys; open({str(marks)!r}, 'a').write(sys.argv[1])"]
    answers = tree("dell")
    bios.Bios(answers).call(UUID, "SN-1")
    (tmp_path / "tree.json").write_text(json.dumps(answers), encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "lab.bmc.server",
        "--tree",
        str(tmp_path / "tree.json"),
        "--certificate",
        str(trusted),
    ]
    command += ["--credentials", str(credentials), "--state", str(state_folder), "--reset", *mark]

    @contextlib.contextmanager
    def running() -> typing.Iterator[Bmc]:
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT) as program:
            try:
                assert program.stdout is not None
                yield Bmc("worker-1", "localhost", json.loads(program.stdout.readline())["port"], USER, PASSWORD)
            finally:
                program.kill()

    wanted = find_wanted({"sriov": False, "smt": False})
    with running() as one:
        assert set_one(one, wanted, trust, Registries(), MAY).job
    with running() as one:
        assert [entry.state for entry in list_states(read_one(one, trust, BiosQuery(), Registries()), wanted)] == [
            "pending",
            "pending",
        ]
        ask(
            one.port,
            certificates.authority,
            f"{DELL}/Actions/ComputerSystem.Reset",
            {"ResetType": "ForceRestart"},
            "POST",
        )
        assert marks.read_text() == "ForceRestart"
    with running() as one:
        assert [entry.state for entry in list_states(read_one(one, trust, BiosQuery(), Registries()), wanted)] == [
            "ok",
            "wrong",
        ], "one of them does not take"
