# SPDX-License-Identifier: GPL-3.0-or-later

"""Stage operators before the real OLM: it installs, changes nothing in a second run, is taken back, and names what OLM
cannot do.

These are no part of ``make test`` nor of ``make faults``, since they compile OLM and leave the lab without the
operator: ``make openshift``.
"""

from __future__ import annotations

import contextlib
import pathlib
import typing

import pytest

from lab import bundle

from .conftest import ROOT, SETTINGS, Lab
from .named import assert_named
from .olm_scenarios import NAMESPACE, OLM_SCENARIOS, OlmScenario
from .scenarios import OPERATORS
from .test_machine_config import CAPABLE, WORKERS, boots, ours, pool, pools

pytestmark = pytest.mark.thorough

INVENTORY = ROOT / "inventory/lab-olm"
#: OLM's pods have emptyDir volumes
DRAIN = {"delete_empty_dir_data": True, "force": True}
VERSION = f"{bundle.PACKAGE}.v{bundle.VERSION}"
_GROUP = "operators.coreos.com"
MADE = (
    f"{_GROUP}/v1alpha1/Subscription",
    f"{_GROUP}/v1alpha1/ClusterServiceVersion",
    f"{_GROUP}/v1alpha1/InstallPlan",
    f"{_GROUP}/v1/OperatorGroup",
)
SUBSCRIPTION, CSV, PLAN, _GROUPS = MADE


@pytest.fixture(scope="module", autouse=True)
def olm(tmp_path_factory: pytest.TempPathFactory) -> typing.Iterator[None]:
    with Lab(tmp_path_factory.mktemp("olm")).running_on_demand("olm"):
        yield


@pytest.fixture
def bare(lab: Lab, tmp_path: pathlib.Path) -> Lab:
    """The lab without the operator, with OLM and the configuration that the lab gives the operator."""
    if any(lab.objects(kind) for kind in MADE):
        before = Lab(tmp_path / "before")
        before.folder.mkdir()
        assert teardown(before).code == 0
    # a teardown takes the operator's configuration too, and the default one asks for webhooks that the lab's operator
    # has not
    again = lab.command("olm", "on")
    assert again.returncode == 0, again.stderr
    return lab


def install(lab: Lab) -> typing.Any:
    return lab.playbook(OPERATORS, inventory=INVENTORY)


def teardown(lab: Lab) -> typing.Any:
    # a MachineConfig may be left, whose removal reboots the workers
    cluster = {**SETTINGS["rdma_cluster"], "disruption": "reboot", "drain": DRAIN}
    return lab.playbook(
        "teardown.yml", variables={"teardown_operator": True, "rdma_cluster": cluster}, inventory=INVENTORY
    )


def test_the_stage_installs_by_olm_and_a_second_run_changes_nothing(bare: Lab) -> None:
    first = install(bare)
    assert first.code == 0, first.end
    (version,) = bare.objects(CSV)
    assert (version["metadata"]["name"], version["status"]["phase"]) == (VERSION, "Succeeded")
    (subscription,) = bare.objects(SUBSCRIPTION)
    assert subscription["spec"]["installPlanApproval"] == "Manual" and subscription["status"]["installedCSV"] == VERSION
    # under load OLM itself makes two of one resolution [operator-lifecycle-manager: its cache has not seen the first
    # one]; the other one waits for good
    plans = [item["spec"] for item in bare.objects(PLAN)]
    assert [plan["approved"] for plan in plans].count(True) == 1, plans
    assert all(plan["clusterServiceVersionNames"] == [VERSION] for plan in plans), plans
    pods = [
        item
        for item in bare.objects("v1/Pod", "name=sriov-network-operator")
        if item["metadata"]["namespace"] == NAMESPACE
    ]
    assert [item["status"]["phase"] for item in pods] == ["Running"]
    changes = first.records["operators"]["changes"]
    assert any(change.startswith("approved InstallPlan") for change in changes), changes

    second = install(bare)
    assert second.code == 0, second.end
    assert second.records["operators"]["changes"] == []
    assert second.recap("localhost", "changed") == 0
    assert bare.objects(SUBSCRIPTION)[0]["metadata"]["generation"] == subscription["metadata"]["generation"]


def test_one_site_installs_by_olm_and_rolls_a_machine_config_once(bare: Lab) -> None:
    """From a cluster without the operator to one that is measured: each worker is drained and reset once, and boots
    with the argument."""
    argument = "transparent_hugepage=madvise"
    cluster = {
        **SETTINGS["rdma_cluster"],
        "host": {"kernel_arguments": [argument]},
        "disruption": "reboot",
        "drain": DRAIN,
        "wait_seconds": 1800,
    }

    try:
        with pools(bare, pool("worker", CAPABLE)) as log:
            before = boots(bare)
            # all stages, and two guests that boot one after the other
            done = bare.playbook("site.yml", variables={"rdma_cluster": cluster}, inventory=INVENTORY, seconds=2700)
            assert done.code == 0, done.end
            assert boots(bare) == {worker: number + 1 for worker, number in before.items()}, log.read_text()
            finding = done.finding("network", "network.roll", "MachineConfigPool worker")
            assert finding["status"] == "pass" and "updated once" in finding["measured"], finding
            assert [item["status"]["phase"] for item in bare.objects(CSV)] == ["Succeeded"] and len(ours(bare)) == 1
            for worker in WORKERS:
                assert argument in bare.command("on", worker, "cat /proc/cmdline").stdout
    finally:
        for worker in WORKERS:
            bare.command("on", worker, f"grubby --update-kernel=ALL --remove-args={argument}")


def test_the_teardown_takes_it_back_and_names_what_stays(lab: Lab) -> None:
    run = teardown(lab)
    assert run.code == 0, run.end
    assert [item for kind in MADE for item in lab.objects(kind)] == []
    assert [item for item in lab.objects("apps/v1/Deployment") if item["metadata"]["name"] == bundle.PACKAGE] == []
    again = teardown(lab)
    assert again.code == 0 and again.recap("localhost", "changed") == 0, again.end


@pytest.mark.parametrize("scenario", [pytest.param(each, id=each.name) for each in OLM_SCENARIOS])
def test_what_olm_cannot_do_is_named(bare: Lab, scenario: OlmScenario) -> None:
    with contextlib.ExitStack() as faults:
        for injection in scenario.injections:
            faults.enter_context(bare.fault(injection.name, **injection.target))
        if scenario.objects:
            faults.enter_context(bare.present(*scenario.objects))
        run = bare.playbook(scenario.playbook, variables=scenario.variables, inventory=INVENTORY)
    assert (run.code == 0) == scenario.playbook_succeeds, run.end
    for expected in scenario.expected:
        assert_named(run, expected)
    if scenario.heals:
        healed = install(bare)
        assert healed.code == 0, healed.end
