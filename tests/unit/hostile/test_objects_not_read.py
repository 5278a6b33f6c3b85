# SPDX-License-Identifier: GPL-3.0-or-later

"""An object of a node or a tenant that is too large to be read: it is judged by its name, and the others are read."""

from __future__ import annotations

import json
import typing

import pytest
from kubernetes.client.exceptions import ApiException

from ansible_collections.linerate.rdma.plugins.module_utils._check.platform.firmware import report_unread
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.firmware import UnreadNic
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes import (
    addresses,
    answers,
    cluster_reader,
)
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.errors import ApiError
from ansible_collections.linerate.rdma.plugins.module_utils._observe.operators import nic_configuration_operator as nics
from ansible_collections.linerate.rdma.plugins.module_utils._observe.operators.sriov_operator import (
    observe as observe_operator,
)
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes import core, inventory
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.resource import ResourceError
from ansible_collections.linerate.rdma.plugins.module_utils._parse.operators import (
    nvidia_network_operator,
    sriov_operator,
)
from ansible_collections.linerate.rdma.plugins.module_utils._run.cluster.finalizers import (
    end_mirror_pods,
    is_bare,
    remove_finalizers,
)
from ansible_collections.linerate.rdma.plugins.module_utils._run.cluster.observer_view import container_on, seen_in
from ansible_collections.linerate.rdma.plugins.module_utils._run.cluster.watch import WatchFeed
from ansible_collections.linerate.rdma.plugins.module_utils._run.measurement.measuring_plan import explain_lacking
from ansible_collections.linerate.rdma.plugins.module_utils._run.measurement.pods.removal import remove_pods
from ansible_collections.linerate.rdma.tests.unit.hostile.streamed_answer import StreamedAnswer

LARGE: list[dict[str, typing.Any]] = [{}] * 30_000
CAUSE = "larger than 33554432 bytes or 40000 values, and was not read"
Item = dict[str, typing.Any]


@pytest.fixture(autouse=True)
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "MOST_PAGE_VALUES", 20_000)


class Server:
    """An API server with objects, by the end of the path of their kind.

    :ivar events: of each watch, in order; without any, the feed is stopped
    :ivar written: methods and paths
    """

    def __init__(self, **objects: typing.Sequence[Item]) -> None:
        self.objects = objects
        self.events: list[bytes] = []
        self.watched: list[str] = []
        self.written: list[str] = []
        self.feed: typing.Optional[WatchFeed] = None

    def request(self, method: str, path: str, body: typing.Any, **options: typing.Any) -> StreamedAnswer:
        if method != "get":
            self.written.append(f"{method} {path}")
            return StreamedAnswer(b"{}")
        query = dict(options["query_params"])
        if "watch" in query:
            self.watched.append(query["resourceVersion"])
            if not self.events and self.feed is not None:
                self.feed.stop()
            return StreamedAnswer(self.events.pop(0) if self.events else b"")
        items = list(self.objects.get(path.rpartition("/")[2].replace("-", "_"), ()))
        begin = int(query.get("continue", 0))
        end = min(begin + int(query["limit"]), len(items))
        if "Accept" in options["header_params"]:
            items = [{"kind": "PartialObjectMetadata", "metadata": item["metadata"]} for item in items]
        more = {"resourceVersion": str(7 + len(self.watched)), "continue": str(end) if end < len(items) else ""}
        return StreamedAnswer(json.dumps({"metadata": more, "items": items[begin:end]}).encode())


def node(number: int, images: typing.Sequence[Item] = ()) -> Item:
    status = {
        "conditions": [{"type": "Ready", "status": "True"}],
        "allocatable": {"nvidia.com/ib": "8"},
        "addresses": [{"type": "InternalIP", "address": f"192.0.2.{number}"}],
        "nodeInfo": {"systemUUID": f"{number:08}-0000-4000-8000-000000000001", "osImage": "Ubuntu 22.04"},
        "images": images,
    }
    return {"metadata": {"name": f"worker-{number}", "labels": {"rdma": "yes"}}, "spec": {}, "status": status}


FLEET = (node(1), node(2, LARGE), node(3))


def test_a_node_too_large_to_be_read_is_not_ready_by_its_name_and_the_others_are_read() -> None:
    found = {item.name: item for item in map(core.parse_node, Cluster(Server(nodes=FLEET)).list("Node").items)}
    assert {name: item.ready for name, item in found.items()} == {
        "worker-1": True,
        "worker-2": False,
        "worker-3": True,
    }
    assert found["worker-2"].not_ready == f"its object is {CAUSE}"
    assert (found["worker-2"].labels, found["worker-2"].allocatable) == ({"rdma": "yes"}, {})
    why = explain_lacking("nvidia.com/ib", "worker-2", found)
    assert why == f"the node does not offer nvidia.com/ib; the node is not ready: its object is {CAUSE}"


def test_nodes_that_are_too_large_together_are_not_ready_by_their_names_and_the_others_are_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nine kubelets, each with an object that is just small enough, end no list."""
    monkeypatch.setattr(cluster_reader, "MOST_HELD", 80_000)
    monkeypatch.setattr(answers, "LARGE_VALUES", 1_000)
    large = [node(number, [] if number == 13 else LARGE[:8_000]) for number in range(10, 19)]
    large[3]["metadata"]["labels"] = {f"l{number}": "x" for number in range(15_000)}
    found = {
        item.name: item
        for item in map(core.parse_node, Cluster(Server(nodes=[*FLEET, *large, node(30)])).list("Node").items)
    }
    assert len(found) == 13
    assert {name for name, item in found.items() if item.ready} >= {"worker-1", "worker-3", "worker-30"}
    left = [
        item for item in found.values() if "in a list that is too large, and was not read" in (item.not_ready or "")
    ]
    assert len(left) > 4 and {item.name for item in left} <= {f"worker-{number}" for number in range(10, 19)}
    assert all(item.labels == ({} if item.name == "worker-13" else {"rdma": "yes"}) for item in left)


def test_a_list_of_many_small_nodes_is_as_large_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_reader, "MOST_HELD", 1_000)
    with pytest.raises(ApiError, match="all objects have more than 1000 values"):
        Cluster(Server(nodes=[node(number) for number in range(200)])).list("Node")


def test_what_was_not_read_of_a_node_is_never_taken_for_empty() -> None:
    (item,) = (item for item in Cluster(Server(nodes=FLEET)).pages("Node") if item["metadata"]["name"] == "worker-2")
    assert core.system_uuid(item) == ""
    for read in (core.boot_of, core.internal_addresses, core.internal_address):
        with pytest.raises(ResourceError, match="Node worker-2: larger than") as caught:
            read(item)
        assert "PartialObjectMetadata" not in str(caught.value)


def test_a_node_too_large_to_be_read_stays_in_the_inventory_with_its_cause() -> None:
    found = inventory.parse_inventory(Cluster(Server(nodes=FLEET)).pages("Node"))
    assert not found.refused
    assert [(item.name, item.address, item.labels) for item in found.nodes] == [
        ("worker-1", "192.0.2.1", {"rdma": "yes"}),
        ("worker-2", "", {"rdma": "yes"}),
        ("worker-3", "192.0.2.3", {"rdma": "yes"}),
    ]
    assert [item.error for item in found.nodes] == ["", f"Node worker-2: {CAUSE}", ""]


def test_addresses_of_a_node_too_large_to_be_read_are_unread_of_that_node_alone() -> None:
    facts = addresses.observe(Cluster(Server(nodes=FLEET)), ())
    assert not facts.errors
    assert [(item.node, item.why) for item in facts.unread] == [("worker-2", f"its object is {CAUSE}")]
    assert [item.network for item in facts.taken] == ["192.0.2.1/32", "192.0.2.3/32"]


def test_a_state_a_card_and_an_attachment_too_large_to_be_read_fail_by_their_names() -> None:
    def items(name: str, **good: typing.Any) -> tuple[Item, ...]:
        small = {"metadata": {"name": "a", "namespace": "ops"}, **good}
        return small, {"metadata": {"name": name, "namespace": "ops"}, **good, "status": {"large": LARGE}}

    server = Server(
        sriovnetworknodestates=items("worker-2", status={"syncStatus": "Succeeded"}),
        nicdevices=items("card-2", spec={}, status={"node": "worker-1", "ports": [{"pci": "0000:01:00.0"}]}),
        network_attachment_definitions=items("net-2", spec={"config": '{"type": "macvlan"}'}),
    )
    cluster = Cluster(server)
    states = {
        item.node: item for item in map(sriov_operator.node_state, cluster.list("SriovNetworkNodeState", "ops").items)
    }
    assert (states["a"].sync_status, states["worker-2"].sync_status) == ("Succeeded", "Failed")
    assert states["worker-2"].last_sync_error == f"SriovNetworkNodeState worker-2: {CAUSE}"
    cards = nics.observe(cluster)
    assert ([card.name for card in cards.devices], cards.errors) == (["a"], (f"NicDevice card-2: {CAUSE}",))
    # in a namespace of a tenant, who writes no status
    theirs = {"kind": "NicDevice", "metadata": {"name": "card-2", "namespace": "team-x"}, "spec": {}, "status": {}}
    before = server.objects["nicdevices"]
    server.objects["nicdevices"] = (*before, theirs)
    assert nics.observe(cluster) == cards
    server.objects["nicdevices"] = before
    owner = {"ownerReferences": [{"kind": "Node", "name": "worker-2"}]}
    for item in server.objects["nicdevices"]:
        item["metadata"].update(owner)
    cards = nics.observe(cluster)
    assert cards.errors == () and cards.unread == (UnreadNic("worker-2", f"NicDevice card-2: {CAUSE}"),)
    (finding,) = report_unread(cards)
    assert (finding.subject, finding.status) == ("worker-2 NicDevice", "warn")
    assert CAUSE in finding.why and finding.remedy
    attachments = list(
        map(nvidia_network_operator.parse_attachment, cluster.list("NetworkAttachmentDefinition", "ops").items)
    )
    assert [(item.name, item.fault) for item in attachments] == [("a", ""), ("net-2", f"it is {CAUSE}")]


def test_an_object_of_a_kind_whose_parsers_know_no_metadata_alone_is_an_error_by_its_name() -> None:
    item = {"metadata": {"name": "a", "namespace": "tenant"}, "spec": LARGE}
    with pytest.raises(ApiError, match=f"{CAUSE}: DaemonSet a in namespace tenant") as caught:
        Cluster(Server(daemonsets=[item])).list("DaemonSet")
    assert "PartialObjectMetadata" not in str(caught.value)


@pytest.mark.parametrize("size", ["values", "bytes"])
def test_an_event_too_large_to_be_read_has_the_list_read_again(monkeypatch: pytest.MonkeyPatch, size: str) -> None:
    monkeypatch.setattr(answers, "MOST_OBJECT", 5_000_000 if size == "values" else 50_000)
    monkeypatch.setattr(answers, "MOST_VALUES", 20_000)
    server = Server(nodes=FLEET)
    feed = server.feed = WatchFeed(Cluster(server), {}, ("Node",))
    small = json.dumps({"type": "MODIFIED", "object": {**node(3), "kind": "Node"}}).encode()
    large = json.dumps({"type": "MODIFIED", "object": {**node(2, LARGE), "kind": "Node"}}).encode()
    server.events = [small + b"\n" + large + b"\n", small + b"\n"]
    feed._follow("Node")
    changes = feed.gather(0.0)
    assert [change.action for change in changes] == ["replace", "put", "replace", "put"]
    assert [core.parse_node(item).ready for item in changes[2].items] == [True, False, True]
    # the watch goes on behind the event
    assert server.watched[:2] == ["7", "8"]


GONE = "2026-11-28T11:00:00Z"
UID = "11111111-1111-1111-1111-111111111111"


def mirror(number: int, **metadata: typing.Any) -> Item:
    """A pod that a kubelet puts into a namespace, of any size."""
    names = {"name": f"mirror-{number}", "uid": f"m{number}", "annotations": {"kubernetes.io/config.mirror": "x"}}
    return {"metadata": {**names, **metadata}, "spec": {"nodeName": "worker-2"}, "status": {"large": LARGE}}


def observer(name: str) -> Item:
    owner = {"kind": "DaemonSet", "name": "linerate-observer", "uid": UID, "controller": True}
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    return {
        "metadata": {"name": name, "uid": UID[:-1] + "2", "ownerReferences": [owner]},
        "spec": {"nodeName": "worker-1"},
        "status": status,
    }


def test_mirror_pods_of_any_size_and_number_keep_no_observer_from_being_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_reader, "MOST_HELD", 1_000)
    small = {**mirror(3), "status": {"containers": LARGE[:300]}}
    server = Server(
        daemonsets=[{"metadata": {"name": "linerate-observer", "uid": UID}}],
        pods=[mirror(1), *[small] * 9, observer("o1"), mirror(2)],
        nodes=[],
    )
    cluster = Cluster(server)
    seen = seen_in(cluster, "linerate-observers")
    assert ([pod.name for pod in seen.pods], seen.unread) == (["o1"], ())
    assert container_on(cluster, "linerate-observers", "worker-1").pod == "o1"


def test_mirror_pods_of_any_size_are_not_swept_and_end_no_sweep() -> None:
    pods = [mirror(1), mirror(2)]
    assert remove_pods(Cluster(Server(pods=pods, nodes=[])), 60, lambda: 0.0, lambda _seconds: None) == ()


def test_mirror_pods_of_any_size_hold_up_no_namespace() -> None:
    server = Server(pods=[mirror(1, deletionTimestamp=GONE), mirror(2), mirror(3, deletionTimestamp=GONE)])
    assert end_mirror_pods(Cluster(server), "linerate-measure") == ("mirror-1", "mirror-3")
    assert server.written == [f"delete /api/v1/namespaces/linerate-measure/pods/mirror-{number}" for number in (1, 3)]


def test_a_pod_of_any_size_keeps_no_finalizer() -> None:
    held = {"deletionTimestamp": GONE, "finalizers": ["evil.example/stay"]}
    large = {"metadata": {"name": "p", "uid": "u1", **held}, "status": {"large": LARGE}}
    server = Server(pods=[mirror(1, **held), large])
    assert remove_finalizers(Cluster(server), "linerate-measure", "a=b", is_bare) == ("u1",)


class OperatorServer(Server):
    """A server that has no object which is asked for by its name."""

    def request(self, method: str, path: str, body: typing.Any, **options: typing.Any) -> StreamedAnswer:
        if "limit" not in dict(options["query_params"]):
            raise ApiException(status=404, reason="NotFound")
        return super().request(method, path, body, **options)


def test_mirror_pods_of_any_size_are_no_error_of_the_operator() -> None:
    facts = observe_operator(Cluster(OperatorServer(pods=[mirror(1), mirror(2)])), "openshift-sriov-network-operator")
    assert facts.errors == ()
