# SPDX-License-Identifier: GPL-3.0-or-later

"""Each request that lists a namespaced kind in all namespaces has a row. A tenant may create objects in its own
namespace, with any name, label and field manager. The row names the test that such an object changes nothing, or the
reason why it may count. A new request without a row fails here.
"""

from __future__ import annotations

import ast
import pathlib
import re
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import Intent
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.rights_needed import list_needed_rights
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.kinds import KINDS
from ansible_collections.linerate.rdma.plugins.module_utils._observe.operators import nic_configuration_operator as nics
from ansible_collections.linerate.rdma.plugins.module_utils._observe.operators import operators
from ansible_collections.linerate.rdma.tests.unit.hostile.test_tenants_operators import Api
from ansible_collections.linerate.rdma.tests.unit.truth.fleet import PAIR, healthy

ROOT = pathlib.Path(__file__).resolve().parents[3]
PLUGINS = ROOT / "plugins"
Row = dict[str, str]

#: reasons why the objects of all namespaces may count
PODS = "A pod counts by its node, whoever created it: a drain or a reset of the node ends it."
BUDGETS = "A PodDisruptionBudget selects pods of its own namespace only."
BY_PLACE = "The function selects the object of the operator or of the intent by its namespace and its name."
PROVEN = "It counts only if a ClusterRoleBinding, which no tenant can create, gives its ServiceAccount rights."
HOLDS = "It only holds up a removal, which names it with its namespace. Nothing is removed or applied because of it."
WORDS = "It becomes part of a message, and decides nothing."
BY_OLM = "No default role lets a tenant create it, or it counts by the namespace of the operator only."
SELECTS = "A health check selects Machines of its own namespace, and no default role lets a tenant create one."
OWN = "It has the label of the collection: a teardown removes it, unless another user copied it."
GPUS = "A pod counts by its node, whoever created it: a reload of systemd would take its GPUs."
GIVEN = "The caller names the namespace."
USES = "It says only which NIC a pod of its own namespace uses, which holds a change of that NIC and names the pod."


def _test(path: str, name: str) -> str:
    return f"tests/unit/{path}.py::{name}"


_CONFIGURATION = _test("hostile/test_foreign_namespaces", "test_configuration_of_a_tenant_does_not_count")
_CLAIMS = "hostile/test_claims_of_addresses"
#: by file below plugins/module_utils and function: by kind, the reason, or the test with an object of a tenant
ROWS: dict[str, Row] = {
    "plugin_utils/_gpu_containers.py _read_containers": {"Pod": GPUS},
    "_observe/kubernetes/addresses.py _Reader.objects": {
        "Pod": _test(_CLAIMS, "test_pods_of_one_node_are_named_and_hide_no_pods_of_others"),
        "NetworkAttachmentDefinition": _test(
            "observe/test_addresses", "test_the_attachments_of_one_tenant_keep_no_others_from_being_compared"
        ),
        "IPPool.whereabouts.cni.cncf.io": _test(
            _CLAIMS, "test_invalid_pool_of_whereabouts_in_a_namespace_of_a_tenant_refuses_no_fabric"
        ),
        "IPPool.nv-ipam.nvidia.com": _test(_CLAIMS, "test_an_invalid_pool_of_a_tenant_is_a_warning_with_its_name"),
        "CIDRPool.nv-ipam.nvidia.com": _test(_CLAIMS, "test_an_invalid_pool_of_a_tenant_is_a_warning_with_its_name"),
        "Service": GIVEN,
    },
    "_observe/kubernetes/images/mirrors.py observe.read": {},
    "_observe/kubernetes/job_reader.py JobReader.all": {
        "ClusterServiceVersion": BY_OLM,
        "Subscription": BY_OLM,
        "Deployment": _test("hostile/test_tenants_operators", "test_a_tenants_deployment_is_no_operator"),
        "LocalQueue": BY_PLACE,
        "NetworkAttachmentDefinition": BY_PLACE,
        "NodeFeatureDiscovery": _test(
            "hostile/test_foreign_namespaces", "test_configuration_of_a_tenant_does_not_count"
        ),
        "SriovOperatorConfig": _test(
            "hostile/test_foreign_namespaces", "test_configuration_of_a_tenant_does_not_count"
        ),
        "PersistentVolumeClaim": GIVEN,
        "Pod": GIVEN,
    },
    "_observe/kubernetes/job_reader.py JobReader.known": {"ComputeDomain": GIVEN, "ResourceClaim": GIVEN},
    "_observe/kubernetes/machines.py find_labelled": {},
    "_run/cluster/pod_networks.py PodNetworks._list": {"NetworkAttachmentDefinition": USES},
    "_observe/kubernetes/room.py observe": {
        "Pod": _test("observe/test_room", "test_a_pod_of_another_form_hides_no_other")
    },
    "_observe/operators/busy_nodes.py find_busy_nodes": {"SriovNetworkNodeState": GIVEN},
    "_observe/kubernetes/removal/removable_objects.py _list_labelled": dict.fromkeys(
        (
            "CIDRPool.nv-ipam.nvidia.com",
            "IPPool.nv-ipam.nvidia.com",
            "NetworkAttachmentDefinition",
            "NicConfigurationTemplate",
            "Pod",
            "PyTorchJob",
            "SriovIBNetwork",
            "SriovNetwork",
            "TrainJob",
            "TrainingRuntime",
            "Tuned",
        ),
        OWN,
    )
    | dict.fromkeys(
        ("SriovNetworkNodePolicy", "SriovNetworkPoolConfig"),
        _test("run/test_removal_nodes", "test_nodes_that_must_not_go_down_end_the_teardown"),
    ),
    "_observe/kubernetes/whose_scope.py _Places._find": {
        "NicDevice": _test("owners/test_equal_names", "test_template_beside_a_card_of_a_tenant_makes_no_doubt")
    },
    "_observe/operators/feature_discovery.py observe": {"DaemonSet": WORDS},
    "_observe/operators/nic_configuration_operator.py observe": {
        "NicDevice": _test("hostile/test_foreign_namespaces", "test_card_of_a_tenant_is_no_error_of_the_fleet")
    },
    "_observe/operators/nic_configuration_operator.py read_templates": {
        "NicConfigurationTemplate": _test("plan/test_nic_templates", "test_a_template_that_is_there_is_kept")
    },
    "_observe/operators/olm.py read_packages": {
        "PackageManifest": "The namespace of its catalog is compared with the setting source_namespace."
    },
    "_observe/operators/operator_namespaces.py refuse_package": dict.fromkeys(
        ("CatalogSource", "Pod", "ServiceAccount"), GIVEN
    ),
    "_observe/operators/sriov_operator.py find_namespace.read": dict.fromkeys(
        ("Deployment", "SriovOperatorConfig"), _test("observe/test_sriov_operator", "test_where_the_operator_is")
    ),
    "_observe/operators/sriov_operator.py find_config_uid": {"SriovOperatorConfig": BY_PLACE},
    "_observe/operators/sriov_operator.py observe.read": {
        "ClusterServiceVersion": GIVEN,
        "SriovNetworkNodePolicy": GIVEN,
        "SriovNetworkNodeState": GIVEN,
        "SriovOperatorConfig": _test("observe/test_sriov_operator", "test_where_the_operator_is"),
        "Subscription": GIVEN,
    },
    "_observe/operators/sriov_operator.py observe.only": {"DaemonSet": PROVEN, "Deployment": PROVEN},
    "_observe/operators/sriov_operator.py observe": {"NetworkAttachmentDefinition": WORDS},
    "_observe/operators/users.py find_gpu_pods": {"Pod": HOLDS},
    "_observe/operators/users.py _list_objects": dict.fromkeys(
        (
            "CIDRPool.nv-ipam.nvidia.com",
            "IPPool.nv-ipam.nvidia.com",
            "NetworkAttachmentDefinition",
            "NicConfigurationTemplate",
            "PyTorchJob",
            "SriovIBNetwork",
            "SriovNetwork",
            "SriovNetworkNodePolicy",
            "SriovNetworkPoolConfig",
            "SriovOperatorConfig",
            "TrainJob",
            "Tuned",
        ),
        HOLDS,
    ),
    "_run/cluster/claimed_devices.py ClaimedDevices._list_claims": dict.fromkeys(
        ("ResourceClaim", "ResourceClaimTemplate"), GIVEN
    ),
    "_run/cluster/observer_view.py seen_in": dict.fromkeys(("DaemonSet", "Event", "Pod"), GIVEN),
    "_run/cluster/removal/jobs.py _find_pods": {"Pod": HOLDS},
    "_run/cluster/removal/pods.py _find_running_pods": {"Pod": HOLDS},
    "_run/cluster/removal/roll.py _list_served": dict.fromkeys(
        ("SriovNetworkPoolConfig", "SriovOperatorConfig"),
        _test("run/test_removal_nodes", "test_nodes_that_must_not_go_down_end_the_teardown"),
    )
    | dict.fromkeys(
        ("SriovNetworkNodePolicy", "SriovNetworkNodeState"),
        _test("run/test_removed_functions", "test_states_and_policies_of_a_tenant_hide_no_pod"),
    ),
    "_run/cluster/removal/functions.py explain_losses": {"Pod": HOLDS},
    "_run/cluster/wait_for_network.py judge_once": {
        "CIDRPool.nv-ipam.nvidia.com": BY_PLACE,
        "IPPool.nv-ipam.nvidia.com": BY_PLACE,
        "NetworkAttachmentDefinition": BY_PLACE,
        "Pod": GIVEN,
        "PodDisruptionBudget": BUDGETS,
        "SriovNetworkNodePolicy": GIVEN,
        "SriovNetworkNodeState": GIVEN,
        "SriovNetworkPoolConfig": GIVEN,
    },
    "_run/cluster/watch.py WatchFeed.pods": {"Pod": PODS},
    "_run/cluster/watch.py WatchFeed.parts": {"DaemonSet": WORDS},
    "_run/cluster/watch.py WatchFeed._list_objects": {
        "CatalogSource": BY_OLM,
        "CIDRPool.nv-ipam.nvidia.com": BY_PLACE,
        "ClusterServiceVersion": BY_OLM,
        "IPPool.nv-ipam.nvidia.com": BY_PLACE,
        "InstallPlan": BY_OLM,
        "NetworkAttachmentDefinition": BY_PLACE,
        "OperatorGroup": BY_OLM,
        "Pod": GIVEN,
        "PodDisruptionBudget": BUDGETS,
        "Subscription": _test(
            "hostile/test_tenants_subscriptions",
            "test_subscriptions_of_a_tenant_neither_end_nor_fill_what_is_seen_of_olm",
        ),
    },
    "_run/node_changes/card_templates.py _list_served": dict.fromkeys(
        ("SriovNetworkNodePolicy", "SriovNetworkNodeState", "SriovOperatorConfig"), GIVEN
    ),
    "_run/node_changes/drain.py Drain.left": {"Pod": PODS},
    "_run/node_changes/drain_blockers.py read_drain_blockers": {"Pod": PODS, "PodDisruptionBudget": BUDGETS},
    "_run/node_changes/gate.py read_gate_inputs": {"Pod": GIVEN},
    "_run/node_changes/health_checks.py HealthChecks.read": dict.fromkeys(
        ("MachineHealthCheck.cluster.x-k8s.io", "MachineHealthCheck.machine.openshift.io"), SELECTS
    ),
    "_run/node_changes/health_checks.py HealthChecks._list_machines": dict.fromkeys(
        ("Machine.cluster.x-k8s.io", "Machine.machine.openshift.io"), SELECTS
    ),
    "_run/node_changes/machine_configs/roll_progress.py explain_stuck_pool": {
        "Pod": WORDS,
        "PodDisruptionBudget": WORDS,
    },
    "_run/node_changes/read_disruption_plan.py _Reader.items": dict.fromkeys(
        ("SriovNetworkNodePolicy", "SriovNetworkNodeState", "SriovNetworkPoolConfig", "SriovOperatorConfig"), GIVEN
    ),
    "_run/node_changes/read_disruption_plan.py _Reader.read_holders": {"Pod": PODS},
    "_run/node_changes/read_disruption_plan.py read_plan": {"Pod": PODS, "PodDisruptionBudget": BUDGETS},
    "_run/node_changes/read_turns.py TurnReader._list_states": {
        "SriovNetworkNodeState": _test("run/test_roll_beside_operators", "test_states_of_a_tenant_do_not_stop_a_roll"),
    },
    "_run/node_changes/read_turns.py TurnReader._list_pools": {
        "SriovNetworkPoolConfig": _test("run/test_operators_together", "test_objects_of_a_tenant_limit_no_operator")
    },
    "_run/node_changes/read_turns.py TurnReader.read_operations": {
        "MaintenanceOperatorConfig": _test("run/test_operators_together", "test_objects_of_a_tenant_limit_no_operator")
    },
    "_run/node_changes/read_turns.py TurnReader._read_daemon": {
        "Pod": _test("run/test_operators_together", "test_a_pod_of_a_tenant_is_no_config_daemon")
    },
    "_run/node_changes/roll_cluster.py RollClusterReader.read.items": {},
    "_run/node_changes/roll_cluster.py RollClusterReader.read": {"PodDisruptionBudget": BUDGETS},
    "_run/node_changes/roll_cluster.py RollClusterReader._keep_pods": {"Pod": PODS},
    "_run/node_changes/read_turns.py TurnReader._list_card_turns": {
        "NicDevice": _test("run/test_roll_beside_operators", "test_a_card_of_a_tenant_does_not_stop_a_roll")
    },
    "_run/node_changes/set_tuning.py TuningSetter._list_if_served": {},
    "_run/operators/needed.py Needs._list_versions": {"ClusterServiceVersion": BY_OLM},
    "_run/operators/read_olm.py read_olm": {
        "CatalogSource": BY_OLM,
        "ClusterServiceVersion": BY_OLM,
        "InstallPlan": BY_OLM,
        "OperatorGroup": BY_OLM,
        "Subscription": _test(
            "hostile/test_tenants_subscriptions",
            "test_subscriptions_of_a_tenant_neither_end_nor_fill_what_is_seen_of_olm",
        ),
    },
    "_run/operators/remove_olm.py Remover._list_olm_objects": {
        "ClusterServiceVersion": BY_OLM,
        "OperatorGroup": BY_OLM,
        "Subscription": _test(
            "hostile/test_tenants_subscriptions",
            "test_subscriptions_with_our_label_in_a_namespace_without_olm_are_not_taken_back",
        ),
    },
    "_run/operators/remove_olm.py Remover._list_instances": {"*": HOLDS},
    "_run/operators/deletions.py Deletions.find": {"*": BY_PLACE},
    "_run/operators/wait_for_nics.py _find_progress": {
        "NicDevice": _test(
            "run/test_wait_for_nics", "test_card_of_a_tenant_with_the_name_of_another_one_does_not_count"
        )
    },
}
#: kinds that a run may list in all namespaces, and lists in a named one only
NAMED = ("EndpointSlice", "Profile", "RoleBinding", "ServiceAccount")


class Site(typing.NamedTuple):
    """A request that lists a namespaced kind, or a kind that only its caller knows, in all namespaces.

    :ivar kind: empty if the request does not name it
    """

    function: str
    kind: str


def _find_sites() -> typing.Iterator[Site]:
    for path in sorted(PLUGINS.rglob("*.py")):
        name = path.relative_to(PLUGINS).as_posix().removeprefix("module_utils/")
        yield from _walk(ast.parse(path.read_text()), name, (), frozenset())


def _walk(node: ast.AST, path: str, names: tuple[str, ...], optional: frozenset[str]) -> typing.Iterator[Site]:
    """Yield the requests below a node.

    :param names: classes and functions around the node
    :param optional: parameters around the node that may be empty
    """
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.FunctionDef, ast.ClassDef)):
            inner = optional
            if isinstance(child, ast.FunctionDef):
                defaults = zip(reversed(child.args.args), reversed(child.args.defaults))
                inner |= {one.arg for one, value in defaults if isinstance(value, ast.Constant) and not value.value}
            yield from _walk(child, path, (*names, child.name), inner)
            continue
        kind = _read_request(child, optional)
        if kind is not None and (not kind or KINDS.get(kind, ("", "", True))[2]):
            yield Site(f"{path} {'.'.join(names)}", kind)
        yield from _walk(child, path, names, optional)


def _read_request(node: ast.AST, optional: frozenset[str]) -> typing.Optional[str]:
    """Return the kind of a request that lists in all namespaces, or may: empty if the request does not name it. Return
    None for each other node.
    """
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or not node.args:
        return None
    if node.func.attr not in ("list", "pages"):
        return None
    kind = node.args[0].value if isinstance(node.args[0], ast.Constant) else ""
    where = next((key.value for key in node.keywords if key.arg == "namespace"), None)
    where = node.args[1] if where is None and len(node.args) > 1 else where
    if where is None or any(isinstance(item, ast.Starred) for item in node.args):
        return str(kind)
    if any(isinstance(item, ast.Constant) and item.value == "" for item in ast.walk(where)):
        return str(kind)
    is_open = isinstance(where, ast.Name) and (where.id in optional or (not kind and not where.id.isupper()))
    return str(kind) if is_open else None


SITES = tuple(_find_sites())


def test_each_list_over_all_namespaces_has_a_row() -> None:
    assert {site.function for site in SITES} == {*ROWS}
    for site in SITES:
        if site.kind:
            assert site.kind in ROWS[site.function], f"{site.function} lists {site.kind} in all namespaces"


def test_rows_name_namespaced_kinds() -> None:
    for function, row in ROWS.items():
        for kind in row:
            assert KINDS.get(kind, ("", "", True))[2], f"{function}: {kind}"


def test_each_kind_that_a_run_may_list_in_all_namespaces_has_a_row() -> None:
    intent = healthy(PAIR).intent
    rights = [right for olm in (False, True) for right in list_needed_rights(intent, "operator", olm)]
    kinds = {right.kind for right in rights if right.verb == "list" and not right.namespace and right.kind in KINDS}
    known = {kind for row in ROWS.values() for kind in row}
    assert {kind for kind in kinds if KINDS[kind][2]} <= known | {*NAMED}


def test_each_row_gives_a_reason_or_a_test() -> None:
    for function, row in ROWS.items():
        for kind, why in row.items():
            path, _colons, name = why.partition("::")
            if name:
                text = (ROOT / path).read_text()
                assert re.search(rf"^def {name}\(", text, re.MULTILINE), f"{function} {kind}: {why}"
            else:
                assert why.endswith("."), f"{function} {kind}"


CSV = {
    "kind": "ClusterServiceVersion",
    "metadata": {"name": "nfd.4.20.0", "namespace": "openshift-nfd"},
    "spec": {"version": "4.20.0"},
    "status": {"phase": "Succeeded"},
}


@pytest.mark.parametrize(
    ("namespace", "status", "counts"),
    [("openshift-nfd", {}, True), ("team-x", {}, False), ("team-x", {"conditions": [{"type": "Available"}]}, True)],
)
def test_configuration_of_a_tenant_does_not_count(namespace: str, status: dict[str, typing.Any], counts: bool) -> None:
    """OLM gives tenants the right to create it in their namespaces. Its status is a subresource."""
    metadata = {"name": "nfd-instance", "namespace": namespace}
    item = {"kind": "NodeFeatureDiscovery", "metadata": metadata, "spec": {}, "status": status}
    api = Api(NodeFeatureDiscovery=[item], ClusterServiceVersion=[CSV])
    seen = operators.observe(typing.cast(Cluster, api), Intent(()), None, [], True)
    assert seen.packages and bool(seen.configurations) is counts and seen.errors == ()


def card(namespace: str, **status: typing.Any) -> dict[str, typing.Any]:
    return {
        "kind": "NicDevice",
        "metadata": {"name": "worker-1-1021-mt1", "namespace": namespace},
        "spec": {},
        "status": status,
    }


def test_card_of_a_tenant_is_no_error_of_the_fleet() -> None:
    """A tenant writes no status of its NicDevice."""
    own = card("nvidia-network-operator", node="worker-1", ports=[{"pci": "0000:01:00.0"}])
    for items in ([own, card("team-x")], [card("team-x"), own], [card("team-x")]):
        found = nics.observe(typing.cast(Cluster, Api(NicDevice=items)))
        assert (len(found.devices), found.errors, found.unread) == (int(own in items), (), ())
    # the daemon has not written the status of its card yet
    found = nics.observe(typing.cast(Cluster, Api(NicDevice=[own, card("nvidia-network-operator")])))
    assert len(found.errors) == 1
