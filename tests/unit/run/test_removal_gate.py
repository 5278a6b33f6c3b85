# SPDX-License-Identifier: GPL-3.0-or-later

"""What a teardown refuses before it removes anything: jobs that have not ended, whoever made them, and reboots of nodes
by MachineConfigs and by pools that an interrupted run left paused."""

from __future__ import annotations

import copy
import dataclasses
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.marks import build_user_label
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import Disruption, Intent
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.own_kinds import KINDS
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.errors import ApiError
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.removal.removable_objects import Removal
from ansible_collections.linerate.rdma.plugins.module_utils._render.node.host import render_host_configs
from ansible_collections.linerate.rdma.plugins.module_utils._run.cluster.removal.gate import refuse_removal
from ansible_collections.linerate.rdma.plugins.module_utils._run.node_changes.machine_configs.pool_roller import (
    PoolRoller,
)
from tests.unit.run.test_intents import RUNNING, SELECTOR, A, Api, B, intent_of, job, live, objects_of, scope_of
from tests.unit.run.test_roll import Operator, roller

Item = dict[str, typing.Any]
RESTARTING = {
    "conditions": [
        {"type": "Created", "status": "True"},
        {"type": "Running", "status": "False"},
        {"type": "Restarting", "status": "True"},
    ],
    "replicaStatuses": {"Worker": {"active": 7}},
}
SUSPENDED = {"conditions": [{"type": "Created", "status": "True"}, {"type": "Suspended", "status": "True"}]}
SUCCEEDED = {"conditions": [*RUNNING["conditions"], {"type": "Succeeded", "status": "True"}]}
FAILED = {"conditions": [{"type": "Failed", "status": "True"}]}


def gate(api: Api, intent: Intent = A, permitted: Disruption = "reboot") -> None:
    refuse_removal(typing.cast(Cluster, api), Removal(KINDS, SELECTOR, scope=scope_of(intent)), permitted)


def template(network: str = "", resource: str = "") -> Item:
    annotations = {"k8s.v1.cni.cncf.io/networks": network} if network else {}
    limits = {"nvidia.com/gpu": "8", **({resource: "1"} if resource else {})}
    containers = [{"name": "pytorch", "image": "i", "resources": {"limits": limits}}]
    return {"metadata": {"annotations": annotations}, "spec": {"containers": containers}}


def foreign(made: Item, **spec: typing.Any) -> Item:
    """A job or a pod that a user made without the collection."""
    metadata = {**made["metadata"], "labels": {}, "managedFields": [{"manager": "kubectl"}]}
    return {**made, "metadata": metadata, "spec": spec}


def pytorch(network: str = "", resource: str = "", namespace: str = "jobs-compute", **status: typing.Any) -> Item:
    replicas = {"Worker": {"replicas": 2, "template": template(network, resource)}}
    return foreign(job("theirs", namespace, **status), pytorchReplicaSpecs=replicas)


@pytest.mark.parametrize("intent", [A, intent_of("compute")])
def test_a_job_of_an_earlier_release_counts(intent: Intent) -> None:
    api = Api(*objects_of(intent, marked=False), job("old", "jobs-compute", "", **RUNNING))
    with pytest.raises(RdmaError, match="have not ended: PyTorchJob jobs-compute/old"):
        gate(api, intent)
    gate(Api(*objects_of(intent, marked=False), job("old", "jobs-storage", "", **RUNNING)), intent)


@pytest.mark.parametrize(
    ("status", "refused"),
    [(RESTARTING, True), (SUSPENDED, True), ({}, True), (SUCCEEDED, False), (FAILED, False)],
)
def test_only_a_job_that_has_ended_passes(status: Item, refused: bool) -> None:
    api = Api(*objects_of(A), job("mine", "jobs-compute", "a", **status))
    if not refused:
        gate(api)
        return
    with pytest.raises(RdmaError, match="PyTorchJob jobs-compute/mine"):
        gate(api)


@pytest.mark.parametrize(
    ("theirs", "refused"),
    [
        (pytorch(network="net-compute@net1"), True),
        (pytorch(network='[{"name": "net-compute"}]'), True),
        (pytorch(network="other, jobs-compute/net-compute"), True),
        (pytorch(resource="openshift.io/compute"), True),
        (pytorch(network="jobs-storage/net-compute", resource="openshift.io/storage"), False),
        (pytorch(network="net-compute", namespace="elsewhere"), False),
        (pytorch(), False),
        (pytorch("net-compute", "", "jobs-compute", **SUCCEEDED), False),
    ],
)
def test_a_job_of_a_user_counts_if_it_uses_the_intent(theirs: Item, refused: bool) -> None:
    api = Api(*objects_of(A), theirs)
    if not refused:
        gate(api)
        return
    with pytest.raises(RdmaError, match="PyTorchJob jobs-compute/theirs"):
        gate(api)


@pytest.mark.parametrize(
    ("kind", "resource", "refused"),
    [
        ("TrainingRuntime", "openshift.io/compute", True),
        ("TrainingRuntime", "openshift.io/storage", False),
        # its pods are not known
        ("ClusterTrainingRuntime", "openshift.io/storage", True),
    ],
)
def test_the_runtime_of_a_train_job_says_what_it_uses(kind: str, resource: str, refused: bool) -> None:
    made = foreign(job("train", "jobs-compute"), runtimeRef={"kind": kind, "name": "torch"})
    runtime = foreign(job("torch", "jobs-compute"), template={"spec": {"replicatedJobs": [template("", resource)]}})
    api = Api(*objects_of(A), {**made, "kind": "TrainJob"}, {**runtime, "kind": "TrainingRuntime"})
    if not refused:
        gate(api)
        return
    with pytest.raises(RdmaError, match="TrainJob jobs-compute/train"):
        gate(api)


@pytest.mark.parametrize(
    ("owner", "phase", "resource", "node", "refused"),
    [
        ("", "Running", "openshift.io/compute", "a0", True),
        ("Job", "Running", "openshift.io/compute", "a0", True),
        ("ReplicaSet", "Running", "openshift.io/compute", "a0", False),
        ("", "Succeeded", "openshift.io/compute", "a0", False),
        ("", "Pending", "openshift.io/compute", "", False),
        ("", "Running", "openshift.io/storage", "a0", False),
    ],
)
def test_a_pod_that_holds_a_resource_counts(owner: str, phase: str, resource: str, node: str, refused: bool) -> None:
    spec = {**template("", resource)["spec"], **({"nodeName": node} if node else {})}
    pod = {**foreign(job("mpi", "jobs-compute", phase=phase), **spec), "kind": "Pod"}
    pod["metadata"]["ownerReferences"] = [{"kind": owner, "name": "o", "uid": "u"}] if owner else []
    api = Api(*objects_of(A), pod)
    if not refused:
        gate(api)
        return
    with pytest.raises(RdmaError, match="Pod jobs-compute/mpi"):
        gate(api)


def holder(namespace: str, node: str, resource: str = "openshift.io/compute", **labels: str) -> Item:
    pod = {**foreign(job("mpi", namespace, phase="Running"), **template("", resource)["spec"]), "kind": "Pod"}
    pod["spec"]["nodeName"] = node
    pod["metadata"]["labels"] = labels
    return pod


NODES = [
    {"kind": "Node", "metadata": {"name": f"{kind}0", "labels": {"kind": kind}}, "spec": {}} for kind in ("a", "b")
]
OURS = {"app.kubernetes.io/managed-by": "linerate.rdma"}


@pytest.mark.parametrize(
    ("pod", "refused"),
    [
        (holder("team-x", "a0"), True),
        # it may be a new node
        (holder("team-x", "c0"), True),
        # a job of another intent
        (holder("team-x", "a0", **OURS), True),
        # another intent offers a resource of this name there
        (holder("team-x", "b0"), False),
        (holder("team-x", "a0", "openshift.io/storage"), False),
        (holder("team-x", ""), False),
        # the next measurement deletes it
        (holder("linerate-measure", "a0", **OURS), False),
        (
            {
                "kind": "Pod",
                "metadata": {"name": "mpi", "namespace": "team-x", "labels": {}},
                "linerate.rdma/not-read": "large",
            },
            True,
        ),
    ],
)
def test_a_pod_of_any_namespace_counts_on_a_node_of_the_intent(pod: Item, refused: bool) -> None:
    api = Api(*objects_of(A), *NODES, pod)
    if not refused:
        gate(api)
        return
    with pytest.raises(RdmaError, match="have not ended: Pod team-x/mpi"):
        gate(api)


def test_a_labelled_pod_in_a_namespace_of_the_intent_counts_whatever_created_it() -> None:
    """A template that render_job made, in a Job, a JobSet or an MPIJob."""
    with pytest.raises(RdmaError, match="have not ended: Pod jobs-compute/mpi"):
        gate(Api(*objects_of(A), *NODES, holder("jobs-compute", "a0", **OURS)))
    gate(Api(*objects_of(A), *NODES, holder("jobs-compute", "a0", **OURS, **{"linerate.rdma/run": "run-1"})))


def test_a_resource_that_the_intent_no_longer_asks_for_counts_while_its_policy_is_there() -> None:
    api = Api(*objects_of(intent_of("retired", "a", "b")), *NODES, holder("team-x", "b0", "openshift.io/retired"))
    with pytest.raises(RdmaError, match="Pod team-x/mpi"):
        gate(api)
    gate(Api(*NODES, holder("team-x", "b0", "openshift.io/retired")))


def test_the_pods_that_are_listed_have_a_limit() -> None:
    pods = [holder(f"team-{number}", "a0") for number in range(1_100)]
    with pytest.raises(RdmaError, match="and 990 more"):
        gate(Api(*objects_of(A), *NODES, *pods))


class WithPools(Api):
    """An API server with the pools and nodes of an operator."""

    operator: Operator

    def list(self, kind: str, namespace: str = "", selector: str = "") -> typing.Any:
        if kind in ("MachineConfigPool", "Node"):
            return self.operator.list(kind)
        return super().list(kind, namespace, selector)


def with_pools(operator: Operator, *items: Item) -> WithPools:
    api = WithPools(*items)
    api.operator = operator
    return api


def killed(intent: Intent, selector: str = "worker", legacy: bool = False) -> tuple[Operator, Intent]:
    """A run of the intent that was killed while its pool was paused. The intent selects the role of the nodes."""
    cluster = dataclasses.replace(intent.cluster, node_selector={"role": selector}, disruption="none")
    operator = Operator()
    say = operator.log.append
    run = PoolRoller(typing.cast(Cluster, operator), operator.clock, operator.sleep, say, None, cluster)
    run.prepare(live(cluster.intent_name), check_mode=False)
    assert operator.paused and operator.away == []
    if legacy:
        operator.annotations = {"linerate.rdma/paused": "true"}
    return operator, dataclasses.replace(intent, fabrics=(), cluster=cluster)


UNNAMED = intent_of("compute")


@pytest.mark.parametrize(
    ("intent", "of", "selector", "legacy", "own"),
    [
        (A, A, "elsewhere", False, True),
        (A, B, "worker", False, False),
        (UNNAMED, B, "worker", False, False),
        (A, UNNAMED, "worker", False, False),
        # the default name and the annotation of an earlier release name no intent, so the nodes decide
        (UNNAMED, UNNAMED, "worker", False, True),
        (UNNAMED, UNNAMED, "elsewhere", False, False),
        (A, A, "worker", True, True),
        (A, A, "elsewhere", True, False),
    ],
)
def test_a_teardown_unpauses_only_pools_of_its_intent(
    intent: Intent, of: Intent, selector: str, legacy: bool, own: bool
) -> None:
    operator, _of = killed(of, legacy=legacy)
    cluster = dataclasses.replace(intent.cluster, node_selector={"role": selector}, disruption="none")
    mine = dataclasses.replace(intent, fabrics=(), cluster=cluster)
    if own:
        with pytest.raises(RdmaError, match=r"unpausing MachineConfigPool worker.*the nodes n0, n1, n2") as told:
            gate(with_pools(operator), mine, "none")
        assert "rdma_cluster.disruption: reboot" in told.value.remedy
    else:
        gate(with_pools(operator), mine, "none")
    gone = roller(operator, cluster).remove([], False, (), scope_of(mine))
    assert [item.subject for item in gone.stays] == ([] if own else ["MachineConfigPool worker"])
    rolls = roller(operator, cluster).release(gone.paused, 600, ["n0"], scope_of(mine))
    assert ([roll.pool for roll in rolls], operator.away) == ((["worker"], [0, 1, 2]) if own else ([], []))
    assert operator.paused is not own


def test_a_pool_of_another_intent_rolls_for_an_object_of_this_one_and_is_not_said_to_stay() -> None:
    operator, _b = killed(B)
    (config,) = (copy.deepcopy(item) for item in live("a"))
    config["metadata"]["name"] = "99-worker-linerate-memlock"
    config["metadata"]["labels"] |= build_user_label("a", {})
    operator.configs["99-worker-linerate-memlock"] = {**config, "metadata": {**config["metadata"], "generation": 1}}
    config["metadata"]["uid"] = "uid-99-worker-linerate-memlock"
    gone = roller(operator).remove([], False, [config], scope_of(A))
    assert (gone.paused, gone.stays) == (("worker",), ())
    assert [roll.pool for roll in roller(operator).release(gone.paused, 600, (), scope_of(A))] == ["worker"]


def test_a_paused_pool_without_another_configuration_reboots_nobody() -> None:
    operator, mine = killed(A)
    operator.nodes = [operator.wanted] * 3
    gate(with_pools(operator), mine, "none")


class Counting(WithPools):
    """An API server that records the lists of pools and nodes."""

    listed: list[str]

    def list(self, kind: str, namespace: str = "", selector: str = "") -> typing.Any:
        self.listed += [kind] if kind in ("MachineConfigPool", "Node") else []
        return super().list(kind, namespace, selector)


@pytest.mark.parametrize("number", [1, 3])
def test_pools_and_nodes_are_listed_once_for_any_number_of_machine_configs(number: int) -> None:
    operator, mine = killed(A)
    # an earlier release did not record which intents need them
    configs = [copy.deepcopy(item) for _place in range(number) for item in live("a")]
    for place, config in enumerate(configs):
        config["metadata"]["name"] = f"99-worker-{place}"
    api = Counting(*configs)
    api.operator, api.listed = operator, []
    with pytest.raises(RdmaError, match="unpausing MachineConfigPool worker"):
        gate(api, mine, "none")
    assert sorted(api.listed) == ["MachineConfigPool", "Node"]


class Busy(Api):
    """An API server that refuses lists of MachineConfigs for a while."""

    def list(self, kind: str, namespace: str = "", selector: str = "") -> typing.Any:
        if kind in ("MachineConfig", "KubeletConfig"):
            raise ApiError(503, "ServiceUnavailable", "the server is currently unable to handle the request", "GET")
        return super().list(kind, namespace, selector)


def test_machine_configs_that_could_not_be_read_are_no_proof() -> None:
    with pytest.raises(RdmaError, match=r"could not be read.*unable to handle the request"):
        gate(Busy(*live("a")), A, "drain")
    gate(Busy(*live("a")), A, "reboot")


HOST = {"kernel_arguments": ["iommu=pt"]}
MINE, ITS = "linerate.rdma/intent-a", "linerate.rdma/intent-b"


def hosts(*intents: Intent) -> Operator:
    """Intents that need the same MachineConfig, each of which has run."""
    operator = Operator()
    for intent in intents:
        wanted = render_host_configs(intent.cluster.host, intent.cluster.intent_name)
        run = roller(operator, intent.cluster)
        prepared = run.prepare([copy.deepcopy(item) for item in wanted], check_mode=False)
        assert [item.applied.action for item in prepared.outcomes] == ["changed" if operator.away else "created"]
        run.release(prepared.paused, 600, ["n0"])
    assert operator.away == [0, 1, 2]
    operator.away.clear()
    return operator


def there(operator: Operator) -> list[Item]:
    return [{**copy.deepcopy(item), "kind": "MachineConfig"} for item in operator.configs.values()]


def labels(operator: Operator) -> Item:
    (config,) = operator.configs.values()
    return {key: value for key, value in config["metadata"]["labels"].items() if "linerate.rdma/intent" in key}


def taken(operator: Operator, intent: Intent) -> list[str]:
    """What a teardown of the intent says of what stays."""
    run, scope = roller(operator, intent.cluster), scope_of(intent)
    other = [key for key in labels(operator) if key not in {"linerate.rdma/intent", *scope.user_label}]
    gone = run.remove([], False, there(operator), scope)
    run.release(gone.paused, 600, ["n0"], scope)
    command = f"kubectl label machineconfig {next(iter(operator.configs), '')} {' '.join(other)}-"
    assert all(command in item.remedy for item in gone.stays)
    return [item.why for item in gone.stays]


def of_host(name: str, selector: str) -> Intent:
    return intent_of("compute", name, selector, host=HOST, disruption="reboot")


@pytest.mark.parametrize("first", ["a", "b"])
def test_a_machine_config_that_two_intents_need_goes_with_the_last_of_them(first: str) -> None:
    intents = {name: of_host(name, name) for name in ("a", "b")}
    operator = hosts(intents["a"], intents["b"])
    assert labels(operator) == {"linerate.rdma/intent": "a", MINE: "a", ITS: "b"}
    last = "b" if first == "a" else "a"
    gate(with_pools(operator, *there(operator)), intents[first], "drain")
    (why,) = taken(operator, intents[first])
    assert operator.away == [] and not operator.paused
    assert why == (
        "the intent 'b' needs it too" if first == "a" else "it belongs to the intent 'a', and this intent is 'b'"
    )
    assert labels(operator) == {"linerate.rdma/intent": last, f"linerate.rdma/intent-{last}": last}
    with pytest.raises(RdmaError, match="the nodes of their MachineConfigPools are n0, n1, n2"):
        gate(with_pools(operator, *there(operator)), intents[last], "drain")
    assert taken(operator, intents[last]) == [] and operator.away == [0, 1, 2] and not operator.configs


def test_two_intents_with_the_default_name_differ_by_their_nodes() -> None:
    one, two = of_host("", "a"), of_host("", "b")
    operator = hosts(one, two)
    assert sorted(labels(operator).values()) == ["default"] * 3
    assert taken(operator, one) == ["the intent 'default' needs it too"]
    assert operator.away == [] and len(labels(operator)) == 2
    assert taken(operator, two) == [] and operator.away == [0, 1, 2]


def test_a_second_run_of_the_owner_keeps_the_label_of_the_other_intent() -> None:
    one, two = of_host("a", "a"), of_host("b", "b")
    operator = hosts(one, two)
    before = labels(operator)
    for intent in (one, two):
        wanted = render_host_configs(intent.cluster.host, intent.cluster.intent_name)
        again = roller(operator, intent.cluster).prepare(wanted, check_mode=False)
        assert ([item.applied.action for item in again.outcomes], again.paused) == (["unchanged"], ())
    assert labels(operator) == before


def test_a_long_name_of_an_intent_fits_into_the_label() -> None:
    """The name of a label has at most 63 characters. [kubernetes apimachinery validation IsQualifiedName]"""
    (one,) = build_user_label("a" * 62 + "b", {}).items()
    (two,) = build_user_label("a" * 62 + "c", {}).items()
    assert one[0] != two[0] and one[1] == "a" * 62 + "b"
    assert all(len(key.partition("/")[2]) <= 63 for key, _name in (one, two))
