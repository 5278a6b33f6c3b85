# SPDX-License-Identifier: GPL-3.0-or-later

"""Both modules as Ansible runs them: arguments in as JSON, one JSON answer out, and no secret in it."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import subprocess
import sys
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import load
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.bios import NodeBios
from ansible_collections.linerate.rdma.plugins.module_utils._store.facts import FactFolder
from ansible_collections.linerate.rdma.tests.unit.bmc_server import (
    BASIC,
    PASSWORD,
    TOKEN,
    USER,
    BmcServer,
    Certificates,
    tree,
)
from lab.bmc.server import Fault

Result = dict[str, typing.Any]
UUIDS = ("4c4c4544-0035-3510-8054-c6c04f503347", "4c4c4544-0035-3510-8054-c6c04f503348")


class Controller:
    """Runs a module, and looks for secrets in all that comes out of it."""

    def __init__(self, folder: pathlib.Path, authority: pathlib.Path) -> None:
        self.folder = folder
        self.ca = str(authority)

    def set(self, check_mode: bool = False, **arguments: typing.Any) -> Result:
        """bios, with the user and the password of the tests."""
        return self.run(
            module="bios", user=USER, password=PASSWORD, _ansible_check_mode=check_mode, _ansible_diff=True, **arguments
        )

    def run(
        self, environment: typing.Optional[dict[str, str]] = None, module: str = "bios_info", **arguments: typing.Any
    ) -> Result:
        data = self.folder / "arguments.json"
        data.write_text(json.dumps({"ANSIBLE_MODULE_ARGS": {"ca_path": self.ca, **arguments}}))
        name = f"ansible_collections.linerate.rdma.plugins.modules.{module}"
        variables = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **(environment or {})}
        finished = subprocess.run(
            [sys.executable, "-m", name, str(data)],
            capture_output=True,
            text=True,
            env=variables,
            timeout=120,
            check=False,
        )
        said = finished.stdout + finished.stderr
        assert not any(secret in said for secret in (PASSWORD, TOKEN, BASIC))
        answer: Result = json.loads(finished.stdout.strip().splitlines()[-1])
        return answer


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def controller(tmp_path: pathlib.Path, certificates: Certificates) -> Controller:
    return Controller(tmp_path, certificates.authority)


@pytest.fixture
def servers(certificates: Certificates) -> typing.Iterator[tuple[BmcServer, BmcServer]]:
    """A good one, and one that repeats in its refusals what it was sent."""
    certificate = certificates.of()
    with contextlib.ExitStack() as stack:
        good, bad = (stack.enter_context(BmcServer(tree("dell"), certificate)) for _number in range(2))
        good.bios.call(UUIDS[0], "SN-0")
        bad.bios.call(UUIDS[1], "SN-1")
        bad.faults["/redfish/v1/Systems"] = Fault(status=403)
        yield good, bad


def bmcs(servers: typing.Sequence[BmcServer]) -> list[Result]:
    return [
        {"node": f"worker-{number}", "address": "localhost", "port": server.port, "uuid": UUIDS[number]}
        for number, server in enumerate(servers)
    ]


def test_an_answer_for_each_node_and_an_error_for_one(
    controller: Controller, servers: tuple[BmcServer, BmcServer]
) -> None:
    asked = bmcs(servers)
    asked[0]["wanted"] = {"c_states": True}
    result = controller.run(
        bmcs=asked, user=USER, password=PASSWORD, wanted={"sriov": True, "ari": True}, keys=["sriov", "iommu"]
    )
    assert not result.get("failed") and result["changed"] is False
    assert (result["asked"], result["unanswered"]) == (2, 1)
    assert result["states"] == {"ok": 1, "wrong": 0, "pending": 0, "read_only": 1, "unknown": 1}
    good, bad = result["bmcs"]
    assert [one["state"] for one in good["states"]] == ["ok", "unknown", "read_only"] and good["error"] == good[
        "cause"
    ] == ""
    assert [one["key"] for one in good["bios"]["settings"]] == [
        "sriov",
        "iommu",
        "ari",
        "c_states",
    ], "what is wanted is shown, asked for or not"
    assert bad["bios"] is None and bad["cause"] == "rights" and bad["states"] == []
    assert bad["error"].startswith(
        f"the BMC of worker-1 (localhost:{servers[1].port}): the BMC responded to GET /redfish/v1/Systems with 403"
        " (Base.1.12.Fault)"
    )


def test_credentials_of_the_environment_and_of_one_bmc(
    controller: Controller, servers: tuple[BmcServer, BmcServer]
) -> None:
    good, _bad = servers
    (one,) = bmcs([good])
    environment = {"RDMA_BMC_USER": USER, "RDMA_BMC_PASSWORD": PASSWORD}
    assert controller.run(environment, bmcs=[one])["unanswered"] == 0
    assert controller.run({"RDMA_BMC_TOKEN": TOKEN}, bmcs=[one])["unanswered"] == 0
    # the user of a BMC goes before a token for all
    assert (
        controller.run({"RDMA_BMC_TOKEN": "old"}, bmcs=[{**one, "user": USER, "password": PASSWORD}])["unanswered"] == 0
    )
    assert controller.run(environment, bmcs=[{**one, "password": "another one"}])["bmcs"][0]["cause"] == "password"


def test_answers_become_facts(controller: Controller, servers: tuple[BmcServer, BmcServer]) -> None:
    report = controller.folder / "report"
    result = controller.run(
        bmcs=bmcs(servers), user=USER, password=PASSWORD, facts_dir=str(report), run="r1", wanted={"sriov": True}
    )
    assert "bmcs" not in result and result["states"]["ok"] == 1 and result["unanswered"] == 1
    folder = FactFolder(str(report), "r1")
    facts = folder.of_nodes("bios", ["worker-0", "worker-1"])
    assert load(NodeBios, facts["worker-0"]["value"]).model == "PowerEdge R750" and facts["worker-1"][
        "error"
    ].startswith("failed: the BMC of worker-1")
    written = "".join(path.read_text() for path in report.rglob("*.json"))
    assert PASSWORD not in written and USER not in written


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"password": None}, "has neither user and password nor a token"),
        (
            {"address": f"https://root:{PASSWORD}@bmc"},
            "worker-0: address: it is not the name or the IP address of a BMC",
        ),
        ({"fingerprint": "12:34"}, "is not a SHA-256"),
        ({"wanted": {"sr_iov": True}}, "'sr_iov' is not a supported BIOS key"),
        ({"wanted": {"sriov": None}}, "wanted.sriov: None is not a valid value"),
    ],
)
def test_what_cannot_be_asked_is_refused_before_anybody_is(
    change: Result, said: str, controller: Controller, servers: tuple[BmcServer, BmcServer]
) -> None:
    good, _bad = servers
    (one,) = bmcs([good])
    result = controller.run(bmcs=[{**one, "user": USER, "password": PASSWORD, **change}])
    assert result["failed"] and said in result["msg"] and good.asked == []


def test_a_node_has_one_bmc(controller: Controller, servers: tuple[BmcServer, BmcServer]) -> None:
    (one,) = bmcs(servers[:1])
    result = controller.run(bmcs=[one, one], user=USER, password=PASSWORD)
    assert result["failed"] and "bmcs: a node is listed more than once" in result["msg"]


SETTINGS = "/redfish/v1/Systems/System.Embedded.1/Bios/Settings"


def test_bios_in_check_mode_for_real_again_and_after_the_reset(
    controller: Controller, servers: tuple[BmcServer, BmcServer]
) -> None:
    good, _bad = servers
    asked = bmcs([good])
    wanted: Result = {"smt": False, "sriov": True}
    for check_mode in (True, False):
        result = controller.set(check_mode, bmcs=asked, wanted=wanted)
        assert result["changed"] and result["reset_required"] == 1 and len(good.written) == int(not check_mode)
        (one,) = result["bmcs"]
        assert one["writes"] == [
            {"key": "smt", "attribute": "LogicalProc", "before": "Enabled", "after": "Disabled", "reset_required": True}
        ]
        assert result["diff"] == [
            {
                "before_header": "worker-0",
                "after_header": "worker-0",
                "before": {"LogicalProc": "Enabled"},
                "after": {"LogicalProc": "Disabled"},
            }
        ]
        assert bool(one["job"]) != check_mode and one["error"] == one["cause"] == ""
    job = one["job"]
    again = controller.set(bmcs=asked, wanted=wanted)
    assert (
        not again["changed"] and again["reset_required"] == 1 and again["bmcs"][0]["job"] == job and again["diff"] == []
    )
    good.reset()
    after = controller.set(bmcs=asked, wanted=wanted)
    assert not after["changed"] and after["reset_required"] == 0 and len(good.written) == 1
    # a node may want something else
    other = controller.set(bmcs=[{**asked[0], "wanted": {"smt": True}}], wanted=wanted)
    assert (
        [write["after"] for write in other["bmcs"][0]["writes"]] == ["Enabled"]
        and len(good.written) == 2
        and good.resets == []
    )


def test_bios_fails_for_one_and_sets_the_other(controller: Controller, servers: tuple[BmcServer, BmcServer]) -> None:
    _good, bad = servers
    bad.faults = {SETTINGS: Fault(status=400, method="PATCH")}
    result = controller.set(bmcs=bmcs(servers), wanted={"smt": False})
    assert (
        result["failed"]
        and result["changed"]
        and result["msg"].startswith("1 of 2 BMCs were not set: the BMC of worker-1")
    )
    assert [(one["changed"], one["cause"]) for one in result["bmcs"]] == [(True, ""), (False, "not_taken")]
    assert "denied" not in str(result), "the BMC repeats what it was sent"


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        ({"ari": True}, "attribute"),
        ({"c_states": True}, "read_only"),
        ({"smt": "Perhaps"}, "value"),
        ({"numa_per_socket": 8}, "value"),
    ],
)
def test_bios_writes_nothing_where_one_thing_is_not_to_be_had(
    change: Result, cause: str, controller: Controller, servers: tuple[BmcServer, BmcServer]
) -> None:
    good, _bad = servers
    for check_mode in (True, False):
        result = controller.set(check_mode, bmcs=bmcs([good]), wanted={"iommu": False, **change})
        assert result["failed"] and not result["changed"] and result["bmcs"][0]["cause"] == cause and good.written == []


def test_bios_refuses_what_no_bios_has(controller: Controller, servers: tuple[BmcServer, BmcServer]) -> None:
    good, _bad = servers
    result = controller.set(bmcs=bmcs([good]), wanted={"sr_iov": True})
    assert result["failed"] and "'sr_iov' is not a supported BIOS key" in result["msg"] and good.asked == []
