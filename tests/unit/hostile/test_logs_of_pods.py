# SPDX-License-Identifier: GPL-3.0-or-later

"""A kubelet that gives the log of a pod slowly, or not at all: that is an error of its node, and the others are
proven."""

from __future__ import annotations

import time
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.host_intent import Memlock
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import ClusterIntent, Fabric, Select
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.networks import Ipam, Network
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes import cluster_reader
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.cluster_reader import Listing
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.errors import ApiError
from ansible_collections.linerate.rdma.plugins.module_utils._run.measurement.memlock import MemlockTask, Prover

FABRIC = Fabric(
    "compute", "sriov_infiniband", Network("test", "net"), Select(1), 8, "mlx", Ipam("whereabouts", "10.0.0.0/24")
)
LOG = "user 65532\nsoft 8192\nhard 8192\nasked 67108864\ndevice mlx5_4\nCouldn't register MR\ncode 1\n"
VERSION = b'{"gitVersion": "v1.34.4"}'


class Answer:
    status = 200

    def __init__(self, parts: typing.Iterable[bytes]) -> None:
        self.parts, self.closed = parts, False

    def stream(self, amt: int, decode_content: bool = True) -> typing.Iterator[bytes]:
        yield from self.parts

    def close(self) -> None:
        self.closed = True


def drip() -> typing.Iterator[bytes]:
    """A byte now and then, for ten minutes."""
    for _number in range(60_000):
        time.sleep(0.01)
        yield b"x"


def broken() -> typing.Iterator[bytes]:
    yield b"user"
    raise OSError("reset by peer")


class Server:
    """An API server that answers for itself, in front of a kubelet."""

    def __init__(self, parts: typing.Iterable[bytes], away: bool = False) -> None:
        self.log, self.away = Answer(parts), away
        self.waits: list[typing.Any] = []

    def request(self, _method: str, path: str, body: None, **options: typing.Any) -> Answer:
        if path == "/version":
            if self.away:
                raise OSError("connection refused")
            return Answer([VERSION])
        self.waits.append(options["_request_timeout"])
        return self.log


@pytest.mark.parametrize(("parts", "words"), [(drip, "the log did not end within 0.05 s"), (broken, "reset by peer")])
def test_a_kubelet_that_gives_no_log_is_not_the_api_server(
    parts: typing.Any, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_reader, "LOG_SECONDS", 0.05)
    server = Server(parts())
    begin = time.monotonic()
    with pytest.raises(ApiError, match="the kubelet of the pod's node does not return the log") as caught:
        Cluster(server).log("test", "p", 60)
    assert time.monotonic() - begin < 30
    assert (caught.value.status, caught.value.passing) == (504, True) and words in str(caught.value)
    assert server.waits == [(5.0, 10.0)], "a silent one is not awaited for longer"


def test_an_api_server_that_is_away_is_told_as_such() -> None:
    with pytest.raises(ApiError, match="connection refused") as caught:
        Cluster(Server(broken(), away=True)).log("test", "p", 60)
    assert caught.value.status == 0


class Api:
    """Three nodes, whose pods have ended. That of ``bad`` has a kubelet that gives no log, ``often`` times."""

    def __init__(self, often: int) -> None:
        self.pods: dict[str, typing.Any] = {}
        self.often, self.now = often, 0.0

    def list(self, _kind: str) -> Listing:
        names = ("bad", "good-1", "good-2")
        return Listing(
            tuple(
                {"kind": "Node", "metadata": {"name": name}, "status": {"allocatable": {"openshift.io/mlx": "1"}}}
                for name in names
            ),
            "1",
        )

    def create(self, definition: typing.Any, manager: str = "") -> typing.Any:
        metadata = {**definition["metadata"], "uid": f"uid-{len(self.pods)}"}
        self.pods[metadata["name"]] = {**definition, "metadata": metadata, "status": {"phase": "Succeeded"}}
        return self.pods[metadata["name"]]

    def get(self, _kind: str, _namespace: str, name: str) -> typing.Any:
        if name not in self.pods:
            raise ApiError(404, "NotFound", "not found", "GET")
        return self.pods[name]

    def log(self, _namespace: str, name: str, _seconds: int) -> str:
        if name.endswith("-bad") and self.often:
            self.often -= 1
            raise ApiError(504, "NoLog", "the kubelet of the pod's node does not return the log", "GET")
        return LOG

    def delete(self, _kind: str, _namespace: str, name: str, **_options: typing.Any) -> bool:
        return self.pods.pop(name, None) is not None

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.mark.parametrize(("often", "error"), [(1000, "the kubelet of the pod's node does not return the log"), (1, "")])
def test_one_kubelet_without_a_log_costs_its_own_proof_alone(often: int, error: str) -> None:
    api = Api(often)
    task = MemlockTask(
        (FABRIC,),
        ClusterIntent(),
        Memlock("containerd", limit_gib=8, proof_mib=64),
        ("bad", "good-1", "good-2"),
        limit=5,
    )
    proofs = Prover(typing.cast("Cluster", api), task, api.clock, api.sleep).run()
    assert [(proof.node, proof.error) for proof in proofs] == [("bad", error), ("good-1", ""), ("good-2", "")]
    assert [proof.soft for proof in proofs[1:]] == [8388608, 8388608]
    assert api.pods == {}
