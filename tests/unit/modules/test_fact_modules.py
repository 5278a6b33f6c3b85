# SPDX-License-Identifier: GPL-3.0-or-later

"""What modules and actions on the controller take from facts and leave as facts, on a real folder."""

from __future__ import annotations

import importlib
import json
import pathlib
import types
import typing

import pytest
from ansible import context
from ansible.module_utils.testing import patch_module_args
from ansible.parsing.dataloader import DataLoader
from ansible.utils.context_objects import CLIArgs

from ansible_collections.linerate.rdma.plugins.module_utils._ansible import fact_modules
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import to_data
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load_error import LoadError
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.addresses import AddressFacts
from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.sriov_operator import OperatorFacts
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.facts import RunStart
from ansible_collections.linerate.rdma.plugins.module_utils._store.facts import FactFolder
from ansible_collections.linerate.rdma.plugins.module_utils._store.files import FileError
from ansible_collections.linerate.rdma.tests.unit.check import fabric_world as world

RUN = "20260102T030405Z-aaaaaa"
NODES = ("worker-1", "worker-2")
FABRIC = {
    "name": "storage",
    "profile": "sriov_ethernet",
    "select": {"hcas_per_node": 1, "vendor": "8086", "device": "10c9"},
    "virtual_functions": 4,
    "resource_name": "igb",
    "network": {"name": "net", "namespace": "test"},
    "ipam": {"type": "whereabouts", "range": "10.0.0.0/24"},
    "rdma": False,
}
MACVLAN = {
    "name": "fast",
    "profile": "macvlan",
    "select": {"hcas_per_node": 1, "netdev": ["eth1"]},
    "network": {"name": "fast", "namespace": "test"},
    "ipam": {"type": "whereabouts", "range": "10.83.0.0/24"},
}


@pytest.fixture(name="folder")
def fixture_folder(tmp_path: pathlib.Path) -> FactFolder:
    folder = FactFolder(str(tmp_path), RUN)
    folder.begin(RunStart(RUN, "2026-01-02T03:04:05+00:00", nodes=NODES))
    return folder


def look(folder: FactFolder) -> None:
    """Both nodes show what they have."""
    for name, number in world.NODES.items():
        folder.write("hcas", name, to_data(world.node(number)))
        folder.write("subnets", name, to_data(world.subnets()))


def where(folder: FactFolder) -> dict[str, typing.Any]:
    return {"facts_dir": folder.report_dir, "run": folder.run}


class Ended(Exception):
    """A module has given its answer."""


class Module:
    """Stands where AnsibleModule is, and keeps what the module ended with."""

    def __init__(self, diff: bool = False, **params: typing.Any) -> None:
        self.params = {
            "facts_dir": None,
            "run": None,
            "fact": None,
            "nodes": None,
            "rails": {},
            "objects": [],
            "objects_from": None,
            **params,
        }
        self._diff = diff

    def exit_json(self, **result: typing.Any) -> None:
        raise Ended(result)

    def fail_json(self, **result: typing.Any) -> None:
        raise Ended({"failed": True, **result})


ANSWER = {
    "changed": True,
    "diff": [{"before": "a"}],
    "applied": [1, 2],
    "names": {"a": 1},
    "paused": ["worker"],
    "error": "",
    "count": 3,
}


def ended_with(
    module: Module,
    work: typing.Callable[[], typing.Any] = lambda: dict(ANSWER),
    fact: str = "applied",
    **rest: typing.Any,
) -> typing.Any:
    with pytest.raises(Ended) as caught:
        fact_modules.run_with_fact(module, work, fact, **rest)
    return caught.value.args[0]


def test_answer_that_replaces_no_fact_leaves_the_fact_and_an_error_replaces_it(folder: FactFolder) -> None:
    ended_with(Module(**where(folder)))
    later = {"changed": False, "applied": []}
    assert ended_with(Module(**where(folder)), lambda: later, stores=lambda _answer: False)["counts"] == {"applied": 0}
    assert folder.value("applied")["applied"] == [1, 2]
    ended_with(Module(**where(folder)), lambda: later, stores=lambda answer: not answer["changed"])
    assert folder.value("applied") == {"applied": []}

    def fail() -> typing.Any:
        raise RdmaError("no answer", "Rerun")

    assert ended_with(Module(**where(folder)), fail, stores=lambda _answer: False)["failed"]
    fact = folder.read("applied")
    assert fact is not None and "no answer" in str(fact.error)


def test_answer_becomes_a_fact_and_ansible_gets_what_stays_small(folder: FactFolder) -> None:
    result = ended_with(Module(**where(folder)), keep=("paused",))
    assert result == {
        "changed": True,
        "paused": ["worker"],
        "error": "",
        "count": 3,
        "counts": {"applied": 2, "names": 1, "paused": 1},
    }
    assert folder.value("applied") == {
        "applied": [1, 2],
        "names": {"a": 1},
        "paused": ["worker"],
        "error": "",
        "count": 3,
    }


def test_difference_is_shown_where_it_is_asked_for_and_is_no_fact(folder: FactFolder) -> None:
    assert ended_with(Module(diff=True, **where(folder)))["diff"] == [{"before": "a"}]
    assert "diff" not in folder.value("applied")


def test_kind_that_the_user_names_counts(folder: FactFolder) -> None:
    ended_with(Module(**where(folder), fact="objects_removed"))
    assert folder.value("objects_removed")["applied"] == [1, 2] and folder.value("applied") is None


def test_module_that_keeps_none(folder: FactFolder) -> None:
    assert ended_with(Module(**where(folder)), fact="")["counts"]["applied"] == 2
    assert not pathlib.Path(folder.report_dir, "facts").exists()


@pytest.mark.parametrize("given", [{}, {"facts_dir": "/nowhere"}, {"run": RUN}])
def test_without_a_folder_the_caller_gets_all(given: dict[str, typing.Any]) -> None:
    assert ended_with(Module(**given)) == ANSWER


def test_failure_is_a_fact_and_still_fails(folder: FactFolder) -> None:
    def fail() -> typing.Any:
        raise RdmaError("no answer from the API server", "Look whether it runs")

    result = ended_with(Module(**where(folder)), fail)
    assert result["failed"] is True and result["failure"] == {"kind": "RdmaError", "remedy": "Look whether it runs"}
    with pytest.raises(FileError, match="no answer from the API server"):
        folder.value("applied")
    assert ended_with(Module(), fail)["failed"] is True
    assert ended_with(Module(**where(folder)), fail, "")["failed"] is True


def test_nodes_are_those_of_the_caller_else_those_of_the_run(folder: FactFolder) -> None:
    assert fact_modules.list_nodes(Module(nodes=["a"], **where(folder))) == ("a",)
    assert fact_modules.list_nodes(Module(**where(folder))) == NODES
    with pytest.raises(RdmaError, match="nodes is empty"):
        fact_modules.list_nodes(Module())
    with pytest.raises(FileError, match="does not belong to run other"):
        fact_modules.list_nodes(Module(facts_dir=folder.report_dir, run="other"))


def test_rails_are_those_of_the_caller_else_those_that_the_facts_show(folder: FactFolder) -> None:
    look(folder)
    given = {"compute": {"worker-1": {"0000:3c:00.0": 7}}}
    assert fact_modules.find_rails(Module(rails=given, **where(folder)), world.intent()) == given
    assert fact_modules.find_rails(Module(), world.intent()) == {}
    found = fact_modules.find_rails(Module(**where(folder)), world.intent())
    assert sorted(found["compute"]["worker-2"].values()) == [0, 1, 2, 3]
    with pytest.raises(LoadError, match=r"rails\.compute"):
        fact_modules.find_rails(Module(rails={"compute": 1}), world.intent())


def test_objects_are_those_of_the_caller_else_those_that_were_written(folder: FactFolder) -> None:
    one, two = ({"fabric": "", "object": {"kind": kind}} for kind in ("MachineConfig", "Namespace"))
    folder.write("network_objects", value={"hosts": [one], "objects": [two]})
    read = fact_modules.get_objects
    assert read(Module(objects=[one], **where(folder)), "objects") == [one]
    named = Module(objects_from="network_objects", **where(folder))
    assert read(named, "hosts", "objects") == [one, two] and read(named, "objects") == [two]
    with pytest.raises(RdmaError, match="without facts_dir and run"):
        read(Module(objects_from="network_objects"), "objects")
    with pytest.raises(RdmaError, match="this run has no fact other"):
        read(Module(objects_from="other", **where(folder)), "objects")


def run_module(name: str, arguments: typing.Any, capsys: pytest.CaptureFixture[str]) -> typing.Any:
    module = importlib.import_module(f"ansible_collections.linerate.rdma.plugins.modules.{name}")
    with patch_module_args(arguments), pytest.raises(SystemExit):
        module.main()
    return json.loads(capsys.readouterr().out)


def test_module_of_a_stage_is_told_nothing_but_the_folder(
    folder: FactFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    """In check mode no pod is started; each node of the run has its answer for each fabric all the same."""
    look(folder)
    result = run_module("rdma_bandwidth", {"fabrics": [FABRIC], **where(folder), "_ansible_check_mode": True}, capsys)
    assert result["counts"]["changes"] == 0 and "bandwidth" not in result
    fact = folder.value("bandwidth")
    assert [pod["error"] for pod in fact["bandwidth"]["pods"]] == ["no pod is started in check mode"] * 2 and fact[
        "fabrics"
    ] == []


def test_wrong_intent_is_a_message_and_no_fact(folder: FactFolder, capsys: pytest.CaptureFixture[str]) -> None:
    result = run_module("rdma_bandwidth", {"fabrics": [{**FABRIC, "podz": {}}], **where(folder)}, capsys)
    assert result["failed"] is True and "rdma_fabrics[0].podz" in result["msg"]


@pytest.mark.parametrize(
    "objects",
    [
        [{"fabric": "fast", "object": {"kind": "NetworkAttachmentDefinition", "metadata": {"name": "fast"}}}],
        # all fabrics are held back, and the cluster need not have the operator
        [],
    ],
)
def test_without_virtual_functions_no_node_is_touched(
    folder: FactFolder, capsys: pytest.CaptureFixture[str], objects: typing.Any
) -> None:
    folder.write("network_objects", value={"hosts": [], "objects": objects})
    result = run_module("sriov_plan", {"objects_from": "network_objects", **where(folder)}, capsys)
    assert result["allowed"] is True and result["counts"]["lines"] == 0
    assert [node["action"] for node in folder.value("disruption")["plan"]["nodes"]] == ["nothing"] * 2


def act(name: str, options: typing.Any, variables: typing.Any = None, check_mode: bool = False) -> typing.Any:
    """An action's work, with the defaults of its options."""
    action = importlib.import_module(f"ansible_collections.linerate.rdma.plugins.action.{name}").ActionModule
    plugin = object.__new__(action)
    plugin._task = types.SimpleNamespace(check_mode=check_mode)
    plugin._templar = types.SimpleNamespace(template=lambda value: value)
    plugin._loader = DataLoader()
    return plugin.work({**{key: spec.get("default") for key, spec in action.SPEC.items()}, **options}, variables or {})


def test_run_begins_with_the_inventory_s_nodes(tmp_path: pathlib.Path) -> None:
    answer = act(
        "run_begin", {"report_dir": str(tmp_path), "fabrics": [FABRIC]}, {"groups": {"rdma_nodes": list(NODES)}}, True
    )
    start = FactFolder(answer["report_dir"], answer["run"]).start()
    assert (start.nodes, start.check_mode, start.fabrics) == (
        NODES,
        True,
        [FABRIC],
    ) and "ansible-core" in start.versions
    assert act("run_begin", {"report_dir": str(tmp_path)})["run"] != answer["run"]


def test_ports_to_look_from_are_chosen_by_facts(folder: FactFolder) -> None:
    look(folder)
    assert act("fabric_ports", where(folder)) == {"nodes": 1, "ports": 2}
    assert folder.value("vantage_points") == {
        "worker-1": [{"device": "mlx5_0", "port": 1}, {"device": "mlx5_2", "port": 1}]
    }


def test_each_node_gets_its_part_of_the_ping_plan(folder: FactFolder) -> None:
    look(folder)
    answer = act(
        "ping_plan", {**where(folder), "fabrics": to_data([world.fabric(), world.storage()]), "most_rounds": 31}
    )
    assert (answer["applies"], answer["nodes"]) == (True, 2) and answer["pairs"]
    plan = folder.of_nodes("ping_plan", NODES)["worker-1"]["value"]
    assert plan["clients"] == [{"device": f"mlx5_{index}", "port": 1, "lids": [32 + index]} for index in (0, 1, 4, 5)]


def test_nodes_that_a_limit_excludes_are_not_pinged(folder: FactFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    look(folder)
    monkeypatch.setattr(context, "CLIARGS", CLIArgs({"subset": "localhost,worker-1"}))
    fabrics = to_data([world.fabric(), world.storage()])
    answer = act("ping_plan", {**where(folder), "fabrics": fabrics, "most_rounds": 31}, {"groups": {"all": NODES}})
    assert (answer["nodes"], answer["pairs"]) == (1, 0) and folder.read("ping_plan", "worker-2") is None


def test_without_infiniband_nobody_is_pinged(folder: FactFolder) -> None:
    look(folder)
    assert act("ping_plan", {**where(folder), "fabrics": [FABRIC]})["applies"] is False
    assert folder.read("ping_plan", "worker-1") is None


def test_objects_of_the_network_are_a_fact(folder: FactFolder) -> None:
    look(folder)
    folder.write("addresses", value={"addresses": to_data(AddressFacts((), pods=1))})
    folder.write("operators_before_network", value={"operators": to_data(OperatorFacts((), (), (), ()))})
    answer = act("network_objects", {**where(folder), "fabrics": [MACVLAN]})
    assert answer == {"objects": 2, "hosts": 0, "held": [], "unmade": []}
    assert [item["object"]["kind"] for item in folder.value("network_objects")["objects"]] == [
        "Namespace",
        "NetworkAttachmentDefinition",
    ]


def test_objects_need_what_comes_before_them(folder: FactFolder) -> None:
    with pytest.raises(RdmaError, match="this run has no fact addresses"):
        act("network_objects", {**where(folder), "fabrics": [MACVLAN]})


@pytest.mark.parametrize(("phase", "failed"), [("ready", False), ("waiting", True)])
def test_the_teardown_s_gate(folder: FactFolder, phase: str, failed: bool) -> None:
    state = {"fabric": "storage", "phase": phase, "detail": "0000:01:00.0 has 4"}
    nodes = [{**state, "node": node} for node in NODES]
    folder.write("sync", value={"sync": {"finished": True, "timed_out": False, "waited_seconds": 1.0, "nodes": nodes}})
    for kind in ("objects_removed", "namespaces_removed"):
        folder.write(
            kind,
            value={
                "applied": [{"kind": "Namespace", "name": kind, "namespace": "", "fabric": "", "action": "deleted"}]
            },
        )
    folder.write("rolls", value={"rolls": []})
    for kind in ("maps_removed", "admission_removed", "olm_removed"):
        folder.write(kind, value={"applied": []})
    folder.write("operators_left", value={"operators": {}})
    for node in NODES:
        folder.write("drop_in", node, {"state": "absent"})
        folder.write("kernel_arguments_left", node, {"arguments": []})
    answer = act("teardown_gate", {**where(folder), "fabrics": [FABRIC]})
    assert answer.get("failed", False) == failed and answer["findings"]["pass"] == (6 if failed else 8)
    assert not failed or ("teardown.virtual_functions" in answer["msg"] and "teardown.drop_in" not in answer["msg"])
    told = answer["stats"]
    assert (told["verdict"], told["green"]) == ("NOT COMPLETE" if failed else "COMPLETE", False)
    assert (told["counts"], told["changes"], told["run"]) == (answer["findings"], 2, where(folder)["run"])
    if failed:
        assert told["summary"].startswith("NOT COMPLETE - teardown: 2 fail (teardown.virtual_functions on ") and told[
            "summary"
        ].endswith(" and 1 more)")
        assert told["first"]["check"] == "teardown.virtual_functions" and told["first"]["remedy"]
    else:
        assert (told["summary"], told["first"]) == ("COMPLETE - teardown: 8 pass", None)
        # the last line of the run
        assert answer["msg"] == "linerate.rdma: COMPLETE - teardown: 8 pass"


def test_teardown_of_which_nothing_is_known_is_not_complete(folder: FactFolder) -> None:
    answer = act("teardown_gate", {**where(folder), "fabrics": [FABRIC]})
    assert (
        answer["failed"] is True and "teardown.drop_in worker-1" in answer["msg"] and "no fact drop_in" in answer["msg"]
    )
    assert "teardown.kernel_arguments worker-1" in answer["msg"] and "no fact kernel_arguments_left" in answer["msg"]
    assert answer["stats"]["verdict"] == "NOT COMPLETE" and answer["stats"]["counts"]["unknown"] > 0
