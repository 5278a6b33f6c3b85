# SPDX-License-Identifier: GPL-3.0-or-later

"""Doors of the cluster side: filters, arguments of modules, and the progress that an action plugin shows."""

from __future__ import annotations

import importlib
import json
import pathlib
import re
import threading
import types
import typing

import pytest
from ansible import constants
from ansible.errors import AnsibleFilterError
from ansible.module_utils.testing import patch_module_args

from ansible_collections.linerate.rdma.plugins.filter.render import FilterModule
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.cluster_reader import Listing
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.errors import ApiError
from ansible_collections.linerate.rdma.plugins.plugin_utils._progress import follow, run_with_progress
from ansible_collections.linerate.rdma.tests.unit.fake_api import LeaseHolder

FABRIC: dict[str, typing.Any] = {
    "name": "storage",
    "profile": "sriov_ethernet",
    "select": {"hcas_per_node": 1, "vendor": "8086", "device": "10c9"},
    "virtual_functions": 4,
    "resource_name": "igb",
    "network": {"name": "net", "namespace": "test"},
    "ipam": {"type": "whereabouts", "range": "10.0.0.0/24"},
}
FILTERS = FilterModule().filters()


@pytest.mark.parametrize("text", ["", "10.0.0.0/33", "{{ range }}"])
def test_addresses_of_no_range_are_refused(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, result = run_module("address_info", {"ranges": [text]}, capsys)
    assert code == 1
    assert f"'{text}' is not a valid range" in result["msg"]


def test_without_virtual_functions_no_node_is_touched(capsys: pytest.CaptureFixture[str]) -> None:
    objects = [{"fabric": "fast", "object": {"kind": "NetworkAttachmentDefinition", "metadata": {"name": "fast"}}}]
    code, result = run_module("sriov_plan", {"objects": objects, "nodes": ["a"]}, capsys)
    assert (code, result["allowed"], result["lines"]) == (0, True, [])
    assert [(node["node"], node["action"]) for node in result["plan"]["nodes"]] == [("a", "nothing")]


def test_one_pod_a_node_and_fabric() -> None:
    pods = FILTERS["render_pods"]([FABRIC], {}, ["a", "b"])
    assert [item["object"]["metadata"]["name"] for item in pods] == ["linerate-storage-a", "linerate-storage-b"]


def test_a_wrong_intent_names_its_path() -> None:
    with pytest.raises(AnsibleFilterError, match=r"rdma_fabrics\[0\].virtual_functions"):
        FILTERS["render_pods"]([{**FABRIC, "virtual_functions": "four"}], {}, [])


MODULES = (
    "access_info",
    "address_info",
    "custom_resources",
    "rdma_bandwidth",
    "sriov_operator_info",
    "sriov_plan",
    "sriov_sync",
)


def run_module(
    name: str, arguments: dict[str, typing.Any], capsys: pytest.CaptureFixture[str]
) -> tuple[int, dict[str, typing.Any]]:
    module = importlib.import_module(f"ansible_collections.linerate.rdma.plugins.modules.{name}")
    with patch_module_args(arguments), pytest.raises(SystemExit) as ended:
        module.main()
    return int(ended.value.code or 0), json.loads(capsys.readouterr().out)


POLICY = {"kind": "SriovNetworkNodePolicy", "metadata": {"name": "p"}, "spec": {"resourceName": "r", "numVfs": 4}}
ARGUMENTS: dict[str, typing.Any] = {
    "access_info": {"fabrics": [FABRIC]},
    "address_info": {"ranges": ["10.0.0.0/24"]},
    "cluster_policy": {"cluster": {"host": {"gpudirect": "peermem"}}},
    "custom_resources": {"objects": []},
    "job_lint": {"objects": []},
    "job_pods_info": {"namespace": "training"},
    "nic_map_lint": {"name": "map", "hcas": {}},
    "machine_config_roll": {"state": "released"},
    "memlock_proof": {
        "fabrics": [FABRIC],
        "nodes": ["a"],
        "cluster": {"host": {"memlock": {"by": "containerd", "limit_gib": 8}}},
    },
    "olm": {"operators": [{"package": "nfd", "namespace": "nfd"}]},
    "node_tuning": {"fabrics": [FABRIC], "cluster": {"tuning": {"set": True}}, "nodes": ["a"]},
    "observers": {"image": "registry.example/rdma-tools:1"},
    "rdma_bandwidth": {"fabrics": [FABRIC], "nodes": ["a"]},
    "rdma_collectives": {
        "fabrics": [FABRIC],
        "nodes": ["a"],
        "cluster": {
            "collectives": {"image": "registry.example/nccl-tests:1", "cpu": "8", "memory": "64Gi", "gpus_per_node": 1}
        },
    },
    "sriov_operator_info": {},
    "sriov_plan": {"objects": [{"object": POLICY}], "nodes": ["a"]},
    "sriov_sync": {"targets": []},
    "vf_pods": {"fabrics": [{**FABRIC, "network": {**FABRIC["network"], "trust": True}}], "nodes": ["a"]},
}


@pytest.mark.parametrize("name", sorted(ARGUMENTS))
def test_no_kubeconfig_is_a_message_and_no_traceback(
    name: str, capsys: pytest.CaptureFixture[str], tmp_path: pathlib.Path
) -> None:
    code, result = run_module(name, {**ARGUMENTS[name], "kubeconfig": str(tmp_path / "none")}, capsys)
    assert (code, result["failed"]) == (1, True)
    assert "kubeconfig" in result["msg"]
    assert "exception" not in result


@pytest.mark.parametrize(
    ("name", "pods"),
    [
        ("rdma_bandwidth", lambda result: result["bandwidth"]["pods"]),
        ("rdma_collectives", lambda result: result["collectives"]["pods"]),
        ("vf_pods", lambda result: result["pods"]),
    ],
)
def test_in_check_mode_no_pod_is_started(
    name: str, pods: typing.Callable[..., typing.Any], capsys: pytest.CaptureFixture[str]
) -> None:
    code, result = run_module(name, {**ARGUMENTS[name], "_ansible_check_mode": True}, capsys)
    assert (code, result.get("changed", False)) == (0, False)
    assert [pod["error"] for pod in pods(result)] == ["no pod is started in check mode"]


def test_a_wrong_intent_is_refused_before_anything_is_touched(capsys: pytest.CaptureFixture[str]) -> None:
    code, result = run_module("rdma_bandwidth", {"fabrics": [{**FABRIC, "podz": {}}], "nodes": ["a"]}, capsys)
    assert code == 1
    assert "rdma_fabrics[0].podz" in result["msg"]


@pytest.mark.parametrize(
    "cluster", [{}, {"collectives": {**ARGUMENTS["rdma_collectives"]["cluster"]["collectives"], "fabric": "other"}}]
)
def test_collectives_that_nobody_wants_or_of_no_fabric_start_nothing(
    cluster: typing.Any, capsys: pytest.CaptureFixture[str]
) -> None:
    code, result = run_module("rdma_collectives", {"fabrics": [FABRIC], "nodes": ["a"], "cluster": cluster}, capsys)
    assert code == 1 and "rdma_cluster.collectives" in result["msg"]


def test_a_wrong_wish_for_the_nodes_is_refused_before_the_cluster_is_asked(capsys: pytest.CaptureFixture[str]) -> None:
    code, result = run_module("sriov_plan", {**ARGUMENTS["sriov_plan"], "cluster": {"disruption": "reboots"}}, capsys)
    assert code == 1
    assert "rdma_cluster.disruption" in result["msg"]


@pytest.mark.parametrize(
    ("name", "arguments", "answer"),
    [
        ("vf_pods", {"fabrics": [FABRIC]}, {"pods": [], "removed": []}),
        ("vf_pods", {"fabrics": [FABRIC], "nodes": ["a"], "state": "absent"}, {"pods": [], "removed": []}),
        ("memlock_proof", {}, {"proofs": []}),
        (
            "memlock_proof",
            {"_ansible_check_mode": True, "cluster": {"host": {"memlock": {"by": "containerd", "limit_gib": 8}}}},
            {"proofs": []},
        ),
        ("cluster_policy", {"cluster": {}}, {"changes": []}),
        ("machine_config_roll", {"state": "prepared"}, {"paused": [], "error": "", "changes": []}),
        ("machine_config_roll", {"state": "removed"}, {"paused": [], "error": "", "changes": []}),
    ],
)
def test_what_is_not_asked_for_touches_no_cluster(
    name: str,
    arguments: dict[str, typing.Any],
    answer: dict[str, typing.Any],
    capsys: pytest.CaptureFixture[str],
    tmp_path: pathlib.Path,
) -> None:
    needed: dict[str, typing.Any] = {} if "state" in arguments else {**ARGUMENTS[name], "cluster": {}}
    code, result = run_module(name, {**needed, "kubeconfig": str(tmp_path / "none"), **arguments}, capsys)
    assert (code, result["changed"]) == (0, False)
    assert {key: result[key] for key in answer} == answer


class OnePolicy(LeaseHolder):
    """A cluster whose ClusterPolicy does not load nvidia-peermem; keeps whether it was only asked."""

    def __init__(self) -> None:
        super().__init__()
        self.dry: list[typing.Any] = []

    def list(self, kind: str, namespace: str = "", selector: str = "", fields: str = "") -> Listing:
        policy = {"kind": kind, "metadata": {"name": "gpu"}, "spec": {}, "status": {"state": "ready"}}
        return Listing((policy,) if kind == "ClusterPolicy" else (), "1")

    def apply(
        self, definition: dict[str, typing.Any], manager: str, dry_run: bool
    ) -> tuple[dict[str, typing.Any], tuple[()]]:
        self.dry.append(dry_run)
        return definition, ()


@pytest.mark.parametrize(
    ("disruption", "changed", "words"),
    [("drain", True, ""), ("none", False, "rdma_cluster.disruption: none does not allow")],
)
def test_drivers_are_not_renewed_where_nothing_may_be_disturbed(
    disruption: str, changed: bool, words: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    module = importlib.import_module("ansible_collections.linerate.rdma.plugins.modules.cluster_policy")
    cluster = OnePolicy()
    monkeypatch.setattr(module, "connect", lambda given: cluster)
    code, result = run_module(
        "cluster_policy", {"cluster": {"disruption": disruption, "host": {"gpudirect": "peermem"}}}, capsys
    )
    assert (code, result["changed"], bool(result["changes"]), cluster.dry) == (0, changed, changed, [not changed])
    assert words in result["policies"]["error"]


class Quiet:
    """A cluster with the operator, and without nodes."""

    def serves(self, group: str) -> bool:
        return False

    def list(self, kind: str, namespace: str = "", selector: str = "", fields: str = "") -> Listing:
        return Listing(
            ({"metadata": {"name": "default", "namespace": "ops"}},) if kind == "SriovOperatorConfig" else (), "1"
        )

    def pages(
        self, kind: str, namespace: str = "", selector: str = "", *, only: typing.Any = None
    ) -> typing.Iterator[typing.Any]:
        yield from filter(only, self.list(kind, namespace, selector).items)


def test_a_plan_for_nodes_that_are_not_there_allows_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    module = importlib.import_module("ansible_collections.linerate.rdma.plugins.modules.sriov_plan")
    monkeypatch.setattr(module, "connect", lambda given: Quiet())
    code, result = run_module("sriov_plan", ARGUMENTS["sriov_plan"], capsys)
    assert (code, result["allowed"], result["lines"], result["changed"]) == (0, False, [], False)
    assert result["plan"]["nodes"] == [
        {
            "node": "a",
            "action": "unknown",
            "reasons": ["the cluster has no node with this name"],
            "pods": [],
            "lost": [],
            "blockers": [],
            "pool": "",
            "listed": True,
            "rolled_by": "",
            "driver": "",
            "undrained": False,
            "loses_link": False,
            "doubts": [],
            "uplinks": [],
        }
    ]


class LabelledNodes(Quiet):
    """A cluster in which a node outside of the inventory has a NIC of NVIDIA, and that has no NicClusterPolicy."""

    def list(self, kind: str, namespace: str = "", selector: str = "", fields: str = "") -> Listing:
        label = {"feature.node.kubernetes.io/pci-15b3.present": "true"}
        return (
            Listing(({"metadata": {"name": "b", "labels": label}, "spec": {}, "status": {}},), "1")
            if (kind == "Node")
            else Listing((), "1")
        )

    def serves(self, group: str) -> bool:
        return False


@pytest.mark.parametrize("disruption", ["none", "drain"])
def test_driver_of_the_network_operator_is_in_the_plan(
    disruption: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    module = importlib.import_module("ansible_collections.linerate.rdma.plugins.modules.sriov_plan")
    monkeypatch.setattr(module, "connect", lambda given: LabelledNodes())
    policy = {
        "kind": "NicClusterPolicy",
        "metadata": {"name": "nic-cluster-policy"},
        "spec": {"ofedDriver": {"version": "doca3", "upgradePolicy": {"autoUpgrade": True}}},
    }
    arguments = {"objects": [{"object": policy}], "nodes": ["a"], "cluster": {"disruption": disruption}}
    code, result = run_module("sriov_plan", arguments, capsys)
    assert (code, result["allowed"]) == (0, disruption == "drain")
    assert "b (not in the inventory) is drained" in result["lines"][0]


def test_a_selector_without_our_label_is_refused(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    module = importlib.import_module("ansible_collections.linerate.rdma.plugins.modules.custom_resources")
    monkeypatch.setattr(module, "connect", lambda given: None)
    code, result = run_module("custom_resources", {"state": "absent", "label_selector": "app=x"}, capsys)
    assert code == 1
    assert "app.kubernetes.io/managed-by=linerate.rdma" in result["msg"]


class Refuses(LeaseHolder):
    """A cluster that refuses one of two objects."""

    def get(self, kind: str, namespace: str, name: str) -> None:
        raise ApiError(404, "NotFound", "not found", "GET")

    def apply(
        self, definition: dict[str, typing.Any], manager: str, dry_run: bool
    ) -> tuple[dict[str, typing.Any], tuple[()]]:
        if definition["metadata"]["name"] == "one":
            raise ApiError(422, "Invalid", "spec.containrs: field not declared", "PATCH")
        return definition, ()


@pytest.mark.parametrize(("given", "code"), [({}, 1), ({"on_refusal": "tell"}, 0)])
def test_a_refusal_ends_the_module_in_the_server_s_words_unless_somebody_judges_it(
    given: dict[str, str], code: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    module = importlib.import_module("ansible_collections.linerate.rdma.plugins.modules.custom_resources")
    monkeypatch.setattr(module, "connect", lambda options: Refuses())
    objects = [
        {"object": {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}} for name in ("one", "two")
    ]
    ended, result = run_module("custom_resources", {"objects": objects, **given}, capsys)
    assert (ended, result["changed"], [item["action"] for item in result["applied"]]) == (
        code,
        True,
        ["refused", "created"],
    )
    assert result.get("msg", "") == ("refused Namespace one: spec.containrs: field not declared" if code else "")


class Holds:
    """A cluster that has one network of ours, and OpenShift's machine config operator if asked for."""

    def __init__(self, machines: bool = False) -> None:
        self.machines = machines

    def serves(self, group: str) -> bool:
        return self.machines and group == "machineconfiguration.openshift.io"

    def list(self, kind: str, namespace: str = "", selector: str = "") -> Listing:
        labels = {"app.kubernetes.io/managed-by": "linerate.rdma", "linerate.rdma/fabric": "compute"}
        item = {"kind": kind, "metadata": {"name": "old", "namespace": "ops", "labels": labels}}
        if kind == "MachineConfig":
            assert self.machines, "a user with few rights may not list a kind that is not served"
            item["metadata"] = {"name": "99-worker-linerate-memlock", "labels": labels}
        return Listing((item,) if kind in ("SriovNetwork", "MachineConfig") else (), "1")


@pytest.mark.parametrize(
    ("given", "left"), [({}, None), ({"find_leftovers": True}, [("SriovNetwork", "ops", "old", "compute")])]
)
def test_leftovers_are_told_where_they_are_asked_for(
    given: dict[str, bool],
    left: typing.Optional[list[tuple[str, ...]]],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module = importlib.import_module("ansible_collections.linerate.rdma.plugins.modules.custom_resources")
    monkeypatch.setattr(module, "connect", lambda options: Holds())
    ended, result = run_module("custom_resources", given, capsys)
    assert (ended, result["changed"]) == (0, False)
    seen = result.get("leftovers")
    assert (
        seen and [(item["kind"], item["namespace"], item["name"], item["fabric"]) for item in seen["objects"]]
    ) == left


def test_a_machine_config_of_an_earlier_intent_is_a_leftover(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    module = importlib.import_module("ansible_collections.linerate.rdma.plugins.modules.custom_resources")
    monkeypatch.setattr(module, "connect", lambda options: Holds(machines=True))
    _ended, result = run_module("custom_resources", {"find_leftovers": True}, capsys)
    # the objects of the host come first: tenants cannot push them out of the bounded list
    assert [item["name"] for item in result["leftovers"]["objects"]] == ["99-worker-linerate-memlock", "old"]


@pytest.mark.parametrize("name", MODULES)
def test_declared_check_mode_is_the_module_s(name: str) -> None:
    module = importlib.import_module(f"ansible_collections.linerate.rdma.plugins.modules.{name}")
    assert "supports_check_mode=True" in (source := pathlib.Path(str(module.__file__)).read_text(encoding="utf-8"))
    shared = ("linerate.rdma._attributes.reads", "linerate.rdma._attributes.changes")
    assert any(fragment in source for fragment in shared) or re.search(
        r"check_mode:\n    description: .*\n    support: full", source
    )


def test_progress_shows_whole_lines_and_the_last_ones(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "progress"
    path.write_text("one\ntwo\nhal")
    done = threading.Event()
    shown: list[str] = []
    done.set()
    follow(str(path), done, shown.append)
    assert shown == ["  one", "  two"]


def test_the_progress_of_a_run_that_is_killed_lies_where_ansible_cleans_up() -> None:
    seen = []

    def execute(module_name: str, module_args: dict[str, str], task_vars: dict[str, typing.Any]) -> None:
        path = pathlib.Path(module_args["progress_file"])
        seen.append((path, path.exists(), path.stat().st_mode & 0o777))
        raise KeyboardInterrupt

    action = types.SimpleNamespace(
        _task=types.SimpleNamespace(args={}),
        _connection=types.SimpleNamespace(transport="local"),
        _execute_module=execute,
    )
    with pytest.raises(KeyboardInterrupt):
        run_with_progress(typing.cast(typing.Any, action), "linerate.rdma.rdma_bandwidth", {})
    [(path, existed, mode)] = seen
    assert (path.parent, existed, mode) == (pathlib.Path(constants.DEFAULT_LOCAL_TMP), True, 0o600)
    assert not path.exists()
