# SPDX-License-Identifier: GPL-3.0-or-later

"""What the controller must have: told in the first stage where a later one needs it, and a warning where none does."""

from __future__ import annotations

import dataclasses
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._check.validate import check as validate
from ansible_collections.linerate.rdma.plugins.module_utils._check.validate.controller import (
    ASKING,
    check,
    list_asking_stages,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import load, to_data
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import Intent
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.controller import (
    ControllerFacts,
    HelmFacts,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.rights import Denied, RightsFacts
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import STAGES, judge
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent

FABRIC = {
    "name": "compute",
    "profile": "sriov_infiniband",
    "select": {"hcas_per_node": 4, "subnet_manager": "any"},
    "virtual_functions": 8,
    "resource_name": "mlx",
    "network": {"name": "ib", "namespace": "test"},
    "ipam": {"type": "whereabouts", "range": "10.0.0.0/16"},
}
INTENT = parse_intent([FABRIC])
GOOD = ControllerFacts(
    "/usr/bin/python3",
    ASKING,
    library="24.2.0",
    where="API server https://api.example.com:6443",
    named=True,
    server="v1.34.4",
    rights=RightsFacts(90),
    helm=HelmFacts("helm", "3.8.0"),
)
NO_RIGHTS = RightsFacts(90, (Denied("network", "patch x in y"), Denied("teardown", "delete x in y")))


def seen(**changes: typing.Any) -> ControllerFacts:
    return dataclasses.replace(GOOD, **changes)


def told(facts: ControllerFacts, intent: Intent = INTENT) -> set[str]:
    return {f"{finding.check.partition('.')[2]} {finding.status}" for finding in check(intent, facts)}


def test_all_is_there() -> None:
    assert told(GOOD) == {"library pass", "api_server pass", "rights pass", "helm pass"}
    assert "by API server https://api.example.com:6443" in check(INTENT, GOOD)[1].measured
    # Helm is asked about only where it is to install
    assert told(seen(helm=None)) == {"library pass", "api_server pass", "rights pass"}


def test_what_is_missing_closes_the_gate_where_a_stage_needs_it_and_warns_where_none_does() -> None:
    nothing = {"library": "", "server": "", "rights": None}
    cases: typing.Sequence[tuple[dict[str, typing.Any], set[str], str]] = [
        (nothing, {"library"}, "/usr/bin/python3 -m pip install"),
        ({"library": "24.1.9"}, {"library"}, "whose Python library kubernetes is too old"),
        ({"library": "12.0.1"}, {"library"}, "kubernetes 12.0.1"),
        ({"library": "of another form"}, {"library"}, "kubernetes of another form"),
        (
            {"server": "", "rights": None, "named": False, "where": "kubeconfig config in /root/.kube"},
            {"api_server"},
            "the kubeconfig /root/.kube/config does not exist",
        ),
        (
            {"server": "", "rights": None, "error": "kubeconfig k in /: refused", "remedy": "Check it"},
            {"api_server"},
            "kubeconfig k in /: refused. Check it",
        ),
        ({"rights": None, "rights_error": "POST: forbidden"}, {"rights"}, "POST: forbidden"),
        ({"rights": RightsFacts(0)}, {"rights"}, "rights not read"),
        ({"rights": NO_RIGHTS}, {"rights"}, "patch x in y"),
        ({"helm": HelmFacts("helm", error="the program does not exist")}, {"helm"}, "the program does not exist"),
        ({"helm": HelmFacts("helm", "3.7.2")}, {"helm"}, "Helm 3.7.2"),
        ({"helm": HelmFacts("helm", "2.17.0")}, {"helm"}, "Helm 2.17.0"),
    ]
    for changes, bad, words in cases:
        found = [finding for finding in check(INTENT, seen(**changes)) if finding.status in ("fail", "unknown")]
        assert {finding.check.partition(".")[2] for finding in found} == bad, changes
        assert any(words in f"{finding.measured} {finding.why} {finding.remedy}" for finding in found), changes
        alone = check(INTENT, seen(**changes, stages=()))
        assert judge(alone).open
        left = [finding for finding in alone if finding.status == "warn" and finding.subject != "teardown"]
        assert {finding.check.partition(".")[2] for finding in left} == bad
        assert all(
            "do not need it, so this is a warning. The stages operators, network," in finding.why for finding in left
        )


def test_a_server_that_refuses_the_user_is_not_said_to_give_no_answer() -> None:
    refused = seen(server="", rights=None, error="kubeconfig k in /: Unauthorized", remedy="Renew the token")
    (finding,) = (finding for finding in check(INTENT, refused) if finding.check == "validate.api_server")
    assert (finding.measured, finding.expected) == ("not read", "the version of the API server")


def test_helm_is_needed_by_one_stage_alone() -> None:
    assert "helm warn" in told(seen(stages=("bandwidth",), helm=HelmFacts("helm", error="no")))
    assert "helm fail" in told(seen(stages=("operators",), helm=HelmFacts("helm", error="no")))


def test_rights_that_are_waived_in_stage_operators_do_not_stop_the_first_stage() -> None:
    for subject, status in (("stage network", "warn"), ("stage host", "fail"), (None, "warn")):
        waiver = {
            "check": "operators.rights",
            "reason": "another user applies it",
            **({"subject": subject} if subject else {}),
        }
        found = {
            finding.subject: finding
            for finding in check(parse_intent([FABRIC], [waiver]), seen(rights=NO_RIGHTS))
            if finding.check == "validate.rights"
        }
        assert (found["stage network"].status, found["teardown"].status) == (status, "warn")
        assert ("because: another user applies it" in found["stage network"].why) == (status == "warn")


def test_who_needs_the_api_server() -> None:
    assert set(ASKING) < set(STAGES)
    assert (
        list_asking_stages(True, ["all"], [])
        == list_asking_stages(True, [], [])
        == list_asking_stages(True, ["tagged"], ["molecule-notest"])
        == ASKING
    )
    assert list_asking_stages(True, ["validate", "discover", "fabric", "report"], []) == ()
    assert list_asking_stages(True, ["validate", "bandwidth"], []) == ("bandwidth",)
    assert list_asking_stages(True, ["all"], ["operators", "network"]) == ("virtual_functions", "host", "bandwidth")
    assert list_asking_stages(False, ["all"], []) == ()


def test_facts_survive_the_way_through_ansible_and_are_judged_with_the_intent() -> None:
    facts = validate.Facts(("a",), (), GOOD)
    assert load(validate.Facts, to_data(facts), "facts") == facts
    assert judge(validate.check(INTENT, facts)).open
    assert not judge(validate.check(INTENT, dataclasses.replace(facts, controller=seen(library="")))).open
    # a stage that runs alone judges the intent, and has not looked
    assert {finding.check for finding in validate.check(INTENT, validate.Facts(("a",)))} & {
        "validate.library",
        "validate.api_server",
    } == set()


def test_one_cause_that_inventory_and_controller_meet_is_said_once() -> None:
    lost = "kubeconfig k in /: the API server did not respond: connection refused by https://127.0.0.1:1"
    nothing = {"where": "kubeconfig k in /", "server": "", "rights": None}
    there: dict[str, typing.Any] = {"inventory_kind": "api_server", "inventory_where": "kubeconfig k in /"}
    cases: typing.Sequence[tuple[dict[str, typing.Any], dict[str, typing.Any], str]] = [
        ({**nothing, "error": lost}, there, "validate.api_server"),
        (
            {**nothing, "error": "kubeconfig k in /: the API server did not respond within 30 s"},
            there,
            "validate.api_server",
        ),
        ({**nothing, "library": ""}, {"inventory_kind": "library"}, "validate.library"),
    ]
    for changes, kind, check_id in cases:
        for stages in (ASKING, ()):
            facts = validate.Facts(
                controller=seen(**changes, stages=stages), inventory_error=f"whatever it says of {lost}", **kind
            )
            found = {finding.check: finding for finding in validate.check(INTENT, facts) if finding.status != "pass"}
            assert {name: finding.status for name, finding in found.items() if name != "validate.helm"} == {
                "validate.nodes": "skipped",
                check_id: "fail",
            }
            assert check_id in found["validate.nodes"].remedy and lost not in found["validate.nodes"].why
            assert not judge(found.values()).open
            # the verdict names the first one that closes the gate
            first = validate.sort_findings(found.values(), {"rdma_fabrics": [FABRIC]})[0]
            assert first.check == check_id
    # what only the inventory met, whatever words it has for it
    library = "x: the Python that runs ansible-playbook lacks the library kubernetes"
    for changes, error, kind in (
        ({}, f"linerate.rdma.yml: {lost}", there),
        ({}, "linerate.rdma.yml: no node of the cluster has the labels 'a=b'", {}),
        ({**nothing, "error": lost}, f"linerate.rdma.yml: {lost}", {}),
        ({**nothing, "library": ""}, library, {}),
        (
            {**nothing, "error": lost},
            "x: kubeconfig k in /other",
            {**there, "inventory_where": "kubeconfig k in /other"},
        ),
    ):
        facts = validate.Facts(controller=seen(**changes), inventory_error=error, **kind)
        (finding,) = (finding for finding in validate.check(INTENT, facts) if finding.check == "validate.nodes")
        assert finding.status == "fail" and error in finding.why


@pytest.mark.parametrize("stages", [ASKING, ()])
def test_a_kubeconfig_that_only_the_inventory_names_is_not_missed_as_well(stages: tuple[str, ...]) -> None:
    """The plugin gives it to the playbooks, once it is read."""
    said = "x: kubeconfig none.conf in /h (from rdma_kubeconfig or the option kubeconfig): the file does not exist"
    unnamed = seen(stages=stages, where="kubeconfig config in /root/.kube (the default)", named=False, server="")
    facts = validate.Facts(
        controller=dataclasses.replace(unnamed, rights=None),
        inventory_error=said,
        inventory_kind="api_server",
        inventory_where="kubeconfig none.conf in /h",
    )
    found = {finding.check: finding for finding in validate.check(INTENT, facts)}
    assert found["validate.nodes"].status == "fail" and said in found["validate.nodes"].why
    server = found["validate.api_server"]
    assert server.status == "skipped" and "validate.nodes" in server.remedy and "K8S_AUTH" not in server.remedy


def test_a_default_kubeconfig_that_does_not_exist_has_its_path() -> None:
    unnamed = seen(where="kubeconfig config in /root/.kube (the default)", named=False, server="")
    (found,) = (item for item in check(INTENT, unnamed) if item.check == "validate.api_server")
    assert "and the kubeconfig /root/.kube/config (the default) does not exist." in found.why


def test_helm_is_told_of_by_the_name_of_its_program() -> None:
    for version, status in (("3.8.0", "pass"), ("3.7.9", "fail"), ("", "fail"), ("3.\u0668.0", "fail")):
        found = [
            finding
            for finding in check(INTENT, seen(helm=HelmFacts("/opt/helm", version)))
            if finding.check == "validate.helm"
        ]
        assert [(finding.subject, finding.status) for finding in found] == [("/opt/helm", status)]


def test_a_waiver_takes_nothing_from_rights_that_are_there() -> None:
    waived = parse_intent([FABRIC], [{"check": "operators.rights", "reason": "another user applies it"}])
    assert told(GOOD, waived) == {"library pass", "api_server pass", "rights pass", "helm pass"}
