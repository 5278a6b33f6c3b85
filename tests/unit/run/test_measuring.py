# SPDX-License-Identifier: GPL-3.0-or-later

"""Pods measure in a namespace of the collection, which comes and goes with the measurement. The API server is
played."""

from __future__ import annotations

import json
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import ClusterIntent, Fabric
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.profiles import attachment_name
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.measuring import (
    NAMESPACE,
    POLICY,
    REFUSALS,
)
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.errors import ApiError
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._render.measurement.measuring import render_namespace
from ansible_collections.linerate.rdma.plugins.module_utils._render.measurement.pods import render_measuring_pod
from ansible_collections.linerate.rdma.plugins.module_utils._run.measurement.measuring import (
    ForeignMeasuringNamespace,
    HcasByNode,
    MeasuringNamespace,
    prepare_measurement,
)
from ansible_collections.linerate.rdma.tests.unit.fake_api import FakeApi, Resource
from ansible_collections.linerate.rdma.tests.unit.run.test_pairs import FABRIC

PLAIN, POLICY_KIND = "NetworkAttachmentDefinition", "NetworkPolicy"
NAMESPACES = "/api/v1/namespaces"
COPIES = f"/apis/k8s.cni.cncf.io/v1/namespaces/{NAMESPACE}/network-attachment-definitions"
CLUSTER = ClusterIntent()


def fabrics(*changes: typing.Mapping[str, typing.Any]) -> tuple[Fabric, ...]:
    return parse_intent([{**FABRIC, **change} for change in changes or ({},)]).fabrics


def network(name: str = "net", namespace: str = "test", **changes: typing.Any) -> Resource:
    """What the operator makes of FABRIC."""
    ipam = {"type": "whereabouts", "range": "10.0.0.0/24"}
    config = {
        "cniVersion": "1.0.0",
        "name": name,
        "type": "sriov",
        "vlan": 0,
        "vlanQoS": 0,
        "logLevel": "info",
        "ipam": ipam,
        **changes,
    }
    annotations = {
        "k8s.v1.cni.cncf.io/resourceName": "openshift.io/igb",
        "sriovnetwork.openshift.io/owner-ref": "SriovNetwork operator/net",
    }
    metadata = {
        "name": name,
        "namespace": namespace,
        "annotations": annotations,
        "uid": f"uid-{namespace}-{name}",
        "labels": {"theirs": "1"},
    }
    return {
        "apiVersion": "k8s.cni.cncf.io/v1",
        "kind": PLAIN,
        "metadata": metadata,
        "spec": {"config": json.dumps(config, indent=2)},
    }


class Api(FakeApi):
    """:ivar lingers: looks for which a namespace is still there after its deletion; None: for ever
    :ivar forbidden: kinds that the user may not make
    """

    def __init__(self) -> None:
        super().__init__()
        self.lingers: typing.Optional[int] = 0
        self.forbidden: tuple[str, ...] = ()
        self.written: list[str] = []
        self.serve("Namespace", [])
        self.serve("ServiceAccount", [], NAMESPACE)
        self.serve(PLAIN, [network()], "test")
        self.serve(PLAIN, [], NAMESPACE)
        self.serve(POLICY_KIND, [], NAMESPACE)

    def object(self, path: str) -> typing.Optional[Resource]:
        found = super().object(path)
        if path == f"{NAMESPACES}/{NAMESPACE}" and found and found["metadata"].get("deletionTimestamp"):
            if self.lingers == 0:
                super().remove(NAMESPACES, found)
                self.serve(PLAIN, [], NAMESPACE)
                self.serve(POLICY_KIND, [], NAMESPACE)
                return None
            self.lingers = None if self.lingers is None else self.lingers - 1
        return found

    def write(self, method: str, path: str, body: Resource, dry_run: bool = False) -> tuple[int, Resource]:
        if body.get("kind") in self.forbidden:
            return 403, {
                "kind": "Status",
                "code": 403,
                "reason": "Forbidden",
                "message": f"may not make a {body['kind']}",
            }
        self.written.append(f"{method} {path}")
        return super().write(method, path, body, dry_run)

    def remove(self, path: str, item: Resource) -> None:
        if path == NAMESPACES:
            self.put(
                "Namespace", {**item, "metadata": {**item["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}
            )
        else:
            super().remove(path, item)

    def have(self, **labels: str) -> Resource:
        """A namespace of that name, with these labels."""
        item = {
            "kind": "Namespace",
            "metadata": {"name": NAMESPACE, "labels": labels, "uid": "before", "resourceVersion": "1"},
        }
        self.put("Namespace", item)
        return item

    @property
    def there(self) -> typing.Optional[Resource]:
        found = self.object(f"{NAMESPACES}/{NAMESPACE}")
        return found if found and not found["metadata"].get("deletionTimestamp") else None

    @property
    def policy(self) -> typing.Optional[Resource]:
        return self.object(f"/apis/networking.k8s.io/v1/namespaces/{NAMESPACE}/networkpolicies/{POLICY}")

    @property
    def copies(self) -> list[Resource]:
        return list(json.loads(self.listing(COPIES) or b"{}").get("items", []))


@pytest.fixture
def api() -> typing.Iterator[Api]:
    played = Api()
    played.start()
    yield played
    played.stop()


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now

    def pause(self, seconds: float) -> None:
        self.now += seconds


def place(api: Api, run: str = "run-1") -> MeasuringNamespace:
    clock = Clock()
    return MeasuringNamespace(cluster(api), run, 10.0, clock, clock.pause)


def cluster(api: Api) -> Cluster:
    return FakeApi.client(api.url)


def measure(
    api: Api, wanted: typing.Sequence[Fabric] = fabrics(), stays: bool = False
) -> typing.ContextManager[HcasByNode]:
    return prepare_measurement(place(api), cluster(api), wanted, CLUSTER, "run-1", stays)


def test_pods_and_networks_are_in_a_namespace_of_the_run_and_it_goes_with_it(api: Api) -> None:
    with measure(api) as seats:
        (fabric,) = seats.fabrics
        assert not seats.refused and attachment_name(fabric) == "linerate-measure/net"
        made = render_measuring_pod(fabric, CLUSTER, "a", run="run-1")
        assert made["metadata"]["namespace"] == NAMESPACE and made["spec"]["serviceAccountName"] == "linerate-rdma"
        assert made["metadata"]["annotations"] == {"k8s.v1.cni.cncf.io/networks": "linerate-measure/net"}
        labels = (api.there or {})["metadata"]["labels"]
        assert (labels["linerate.rdma/run"], labels["pod-security.kubernetes.io/enforce"]) == ("run-1", "privileged")
        (copy,) = api.copies
        assert json.loads(copy["spec"]["config"]) == json.loads(network()["spec"]["config"])
        assert copy["metadata"]["annotations"] == {"k8s.v1.cni.cncf.io/resourceName": "openshift.io/igb"}
        assert copy["metadata"]["labels"] == {
            "app.kubernetes.io/managed-by": "linerate.rdma",
            "linerate.rdma/fabric": "storage",
            "linerate.rdma/run": "run-1",
        }
    assert api.there is None


def test_nothing_is_written_into_a_namespace_of_jobs_and_nothing_binds_a_right(api: Api) -> None:
    with measure(api):
        assert not [line for line in api.written if "/namespaces/test/" in line or "rbac.authorization" in line], (
            api.written
        )
        assert not any(key.startswith("rbac") for key in (api.there or {})["metadata"]["labels"])


def test_they_stay_where_that_is_asked_for_until_somebody_leaves(api: Api) -> None:
    with measure(api, stays=True):
        assert api.there
    assert api.there
    place(api).leave()
    assert api.there is None


@pytest.mark.parametrize("stays", [True, False])
def test_an_interrupt_leaves_no_namespace(api: Api, stays: bool) -> None:
    with pytest.raises(KeyboardInterrupt), measure(api, stays=stays):
        raise KeyboardInterrupt
    assert api.there is None


@pytest.mark.parametrize("run", ["run-0", "run-1"])
def test_what_a_killed_measurement_has_left_is_deleted_and_made_anew(api: Api, run: str) -> None:
    """Also one that says that it is of this run: whoever may make namespaces may write that."""
    api.have(**render_namespace(run)["metadata"]["labels"])
    api.lingers = 3
    with measure(api):
        assert (api.there or {})["metadata"]["uid"] != "before"


def test_one_that_does_not_go_is_named_with_what_shows_why(api: Api) -> None:
    api.have(**render_namespace("run-0")["metadata"]["labels"])
    api.lingers = None
    with pytest.raises(RdmaError, match="still exists 10 s after its deletion") as caught, measure(api):
        pytest.fail("pods would be made in a namespace that is going")
    assert "kubectl get namespace linerate-measure" in caught.value.remedy


def test_a_namespace_of_somebody_else_is_refused_and_stays(api: Api) -> None:
    before = api.have(somebody="else")
    with (
        pytest.raises(
            ForeignMeasuringNamespace, match=r"exists but does not belong to linerate\.rdma: it has no label"
        ),
        measure(api),
    ):
        pytest.fail("pods would be made in a namespace of somebody else")
    assert (api.there or {})["metadata"]["uid"] == before["metadata"]["uid"] and not api.written


def test_a_prepared_namespace_is_used_and_stays_without_the_copies(api: Api) -> None:
    api.have(**{"linerate.rdma/measure": "prepared"})
    wanted = fabrics({"pods": {"image_pull_secrets": ["registry"], "service_account": "measure"}})
    with measure(api, wanted) as seats:
        assert not seats.refused and len(api.copies) == 1
        assert [fabric.pods.service_account for fabric in seats.fabrics] == ["measure"]
    assert (api.there or {})["metadata"]["uid"] == "before" and api.copies == []


def test_copies_that_a_killed_run_has_left_in_a_prepared_namespace_are_made_anew(api: Api) -> None:
    api.have(**{"linerate.rdma/measure": "prepared"})
    left = network(namespace=NAMESPACE, ipam={"type": "old"})
    api.put(
        PLAIN,
        {**left, "metadata": {**left["metadata"], "labels": {"app.kubernetes.io/managed-by": "linerate.rdma"}}},
        NAMESPACE,
    )
    with measure(api) as seats:
        assert not seats.refused
        assert [json.loads(item["spec"]["config"])["ipam"]["type"] for item in api.copies] == ["whereabouts"]


@pytest.mark.parametrize("pods", [{"image_pull_secrets": ["registry"]}, {"service_account": "measure"}])
def test_what_an_empty_namespace_does_not_have_is_refused_by_name(api: Api, pods: dict[str, typing.Any]) -> None:
    with measure(api, fabrics({"pods": pods})) as seats:
        refusal = seats.refused["storage"]
    assert (
        refusal.cause == "unprepared"
        and f"pods.{next(iter(pods))}" in refusal.text
        and "linerate.rdma/measure=prepared" in refusal.told
    )
    assert not [request for request in api.requests if "secrets" in request]


def test_one_fabric_without_a_network_does_not_keep_the_others(api: Api) -> None:
    wanted = fabrics({"name": "one"}, {"name": "two", "network": {"name": "absent", "namespace": "test"}})
    with measure(api, wanted) as seats:
        assert {name: refusal.cause for name, refusal in seats.refused.items()} == {"two": "no_network"}
        assert "NetworkAttachmentDefinition test/absent does not exist" in seats.refused["two"].text
        assert len(api.copies) == 1


def test_who_may_not_make_the_namespace_is_told_how_an_admin_prepares_it(api: Api) -> None:
    api.forbidden = ("Namespace",)
    with pytest.raises(ApiError) as caught, measure(api):
        pytest.fail("there is no namespace")
    assert "may not make a Namespace" in str(caught.value)
    assert "linerate.rdma/measure=prepared" in str(caught.value.remedy) and "docs/rbac/measuring.yml" in str(
        caught.value.remedy
    )


def test_a_webhook_that_refuses_the_copy_is_a_cause_of_its_own(api: Api) -> None:
    api.forbidden = (PLAIN,)
    with measure(api) as seats:
        assert (
            seats.refused["storage"].cause == "network_refused"
            and "may not make a NetworkAttachmentDefinition" in seats.refused["storage"].text
        )
    assert set(REFUSALS) == {"no_network", "foreign_network", "network_refused", "unprepared"}


RUN_1 = {"app.kubernetes.io/managed-by": "linerate.rdma", "linerate.rdma/run": "run-1"}


def test_pods_of_this_run_alone_connect_to_those_that_measure(api: Api) -> None:
    with measure(api) as seats:
        policy = typing.cast(Resource, api.policy)
        assert policy["spec"] == {
            "podSelector": {},
            "policyTypes": ["Ingress"],
            "ingress": [{"from": [{"podSelector": {"matchLabels": RUN_1}}]}],
        }
        # before anything by which a pod could be made
        assert [line.partition(" ")[0] for line in api.written][:2] == ["POST", "PATCH"]
        assert api.written[1].endswith(f"/networkpolicies/{POLICY}")
        made = render_measuring_pod(seats.fabrics[0], CLUSTER, "a", run="run-1")
        assert RUN_1.items() <= made["metadata"]["labels"].items()


def test_a_prepared_namespace_gets_the_policy_and_loses_it(api: Api) -> None:
    api.have(**{"linerate.rdma/measure": "prepared"})
    left = {"metadata": {"name": POLICY, "namespace": NAMESPACE, "labels": {**RUN_1, "linerate.rdma/run": "run-0"}}}
    api.put(POLICY_KIND, {**left, "metadata": {**left["metadata"], "uid": "left"}, "spec": {}}, NAMESPACE)
    with measure(api, stays=True):
        pass
    assert api.policy and api.policy["metadata"]["labels"] == RUN_1
    place(api).leave()
    assert api.policy is None and api.there


def test_nothing_is_measured_where_the_policy_cannot_be_made(api: Api) -> None:
    api.forbidden = (POLICY_KIND,)
    with (
        pytest.raises(
            ApiError,
            match="other pods could run commands in the measuring pods, and your user has no right to restrict them:",
        ) as caught,
        measure(api),
    ):
        pytest.fail("pods would be made that any pod can connect to")
    assert "docs/rbac/measuring.yml" in str(caught.value.remedy) and api.there is None


def test_a_policy_of_somebody_else_or_changed_on_the_way_is_refused(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    api.have(**{"linerate.rdma/measure": "prepared"})
    theirs = {"metadata": {"name": POLICY, "namespace": NAMESPACE, "uid": "theirs"}, "spec": {"podSelector": {}}}
    api.put(POLICY_KIND, theirs, NAMESPACE)
    with (
        pytest.raises(RdmaError, match=r"exists but does not belong to linerate\.rdma\. Nothing was measured"),
        measure(api),
    ):
        pytest.fail("pods would be made that others can connect to")
    assert api.policy and api.policy["metadata"]["uid"] == "theirs"
    api.drop(POLICY_KIND, theirs, NAMESPACE)

    def widened(self: Cluster, definition: Resource, manager: str, dry_run: bool) -> tuple[Resource, tuple[str, ...]]:
        return {**definition, "spec": {**definition["spec"], "ingress": [{}]}}, ()

    monkeypatch.setattr(Cluster, "apply", widened)
    with pytest.raises(RdmaError, match="a webhook or a controller changed it"), measure(api):
        pytest.fail("pods would be made that others can connect to")
