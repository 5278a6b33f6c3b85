# SPDX-License-Identifier: GPL-3.0-or-later

"""The pods that prove locked memory, against an API server that runs them at each look."""

from __future__ import annotations

import os
import pathlib
import subprocess
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.marks import MANAGED_BY
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.host_intent import Memlock
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import ClusterIntent, Fabric, Select
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.networks import Ipam, Network
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.host import MemlockProof
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.cluster_reader import Listing
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.errors import ApiError
from ansible_collections.linerate.rdma.plugins.module_utils._run.measurement.memlock import REMOVAL, MemlockTask, Prover

FABRIC = Fabric(
    "compute", "sriov_infiniband", Network("test", "net"), Select(1), 8, "mlx", Ipam("whereabouts", "10.0.0.0/24")
)
LOG = "user 65532\nsoft 8192\nhard 8192\nasked 67108864\ndevice mlx5_4\nCouldn't register MR\ncode 1\n"


class Api:
    def __init__(
        self, log: str = LOG, phase: str = "Succeeded", refuses: bool = False, left: typing.Sequence[str] = ()
    ) -> None:
        self.pods: dict[str, typing.Any] = {
            name: {"metadata": {"name": name, "uid": f"left-{name}", "labels": dict(MANAGED_BY)}, "status": {}}
            for name in left
        }
        self.log_text, self.phase, self.refuses, self.now = log, phase, refuses, 0.0
        self.made: list[typing.Any] = []

    def list(self, kind: str) -> Listing:
        assert kind == "Node"
        nodes = (("a", "1"), ("b", "0"))
        return Listing(
            tuple(
                {"kind": "Node", "metadata": {"name": name}, "status": {"allocatable": {"openshift.io/mlx": most}}}
                for name, most in nodes
            ),
            "1",
        )

    def create(self, definition: typing.Any, manager: str = "") -> typing.Any:
        name = definition["metadata"]["name"]
        if self.refuses:
            raise ApiError(403, "Forbidden", "violates PodSecurity", "POST")
        assert name not in self.pods, "the pod of an earlier run is still there"
        metadata = {**definition["metadata"], "uid": f"uid-{len(self.made)}"}
        self.pods[name] = {**definition, "metadata": metadata, "status": {"phase": "Pending"}}
        self.made.append(definition)
        return self.pods[name]

    def get(self, kind: str, namespace: str, name: str) -> typing.Any:
        if name not in self.pods:
            raise ApiError(404, "NotFound", "not found", "GET")
        return self.pods[name]

    def log(self, namespace: str, name: str, seconds: int) -> str:
        return self.log_text

    def delete(self, kind: str, namespace: str, name: str, grace_seconds: int, *, only: typing.Any) -> bool:
        if only != {"uid": self.pods.get(name, {}).get("metadata", {}).get("uid")}:
            return False
        return self.pods.pop(name, None) is not None

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        for pod in self.pods.values():
            pod["status"]["phase"] = self.phase


def prove(api: typing.Any, *nodes: str) -> tuple[MemlockProof, ...]:
    task = MemlockTask(
        (FABRIC,), ClusterIntent(), Memlock("containerd", limit_gib=8, proof_mib=64), nodes or ("a",), limit=5
    )
    return Prover(api, task, api.clock, api.sleep).run()


def test_the_pod_is_not_root_and_its_log_is_the_answer() -> None:
    api = Api(left=["linerate-memlock-compute-a"])
    (proof,) = prove(api)
    assert (proof.node, proof.pod, proof.soft, proof.registered, proof.evidence) == (
        "a",
        "test/linerate-memlock-compute-a",
        8388608,
        0,
        "Couldn't register MR",
    )
    (container,) = api.made[0]["spec"]["containers"]
    security = container["securityContext"]
    assert security["runAsNonRoot"] and security["runAsUser"] and security["capabilities"] == {"drop": ["ALL"]}
    assert container["resources"]["limits"] == container["resources"]["requests"]
    assert container["resources"]["limits"]["memory"] == "320Mi" and container["command"][4:] == ["67108864", "15"]
    assert api.pods == {}, "a pod that stays holds a virtual function"


def test_the_device_for_management_of_an_hca_with_planes_is_not_taken(tmp_path: pathlib.Path) -> None:
    for device in ("mlx5_0", "smi1"):
        (tmp_path / "bus/pci/devices/0000:0b:00.0/infiniband" / device).mkdir(parents=True)
    api = Api()
    prove(api)
    (container,) = api.made[0]["spec"]["containers"]
    command = [word.replace("/sys/", f"{tmp_path}/") for word in container["command"]]
    environment = {"PATH": os.environ["PATH"], "PCIDEVICE_NVIDIA_COM_HOSTDEV": "0000:0b:00.0"}
    printed = subprocess.run(command, check=False, capture_output=True, text=True, env=environment).stdout
    assert [line for line in printed.split("\n") if line.startswith("device ")] == ["device mlx5_0"]


def test_a_node_that_offers_nothing_gets_no_pod() -> None:
    api = Api()
    assert [proof.error for proof in prove(api, "b", "c")] == [
        "the node does not offer openshift.io/mlx",
        "the cluster has no node of this name",
    ]
    assert api.made == []


@pytest.mark.parametrize(
    ("api", "words"),
    [
        (Api(refuses=True), "violates PodSecurity"),
        (Api(phase="Pending"), "did not end within 5 s"),
        (Api(log="exec format error\n", phase="Failed"), "exec format error"),
    ],
    ids=["refused", "pending", "no script"],
)
def test_what_keeps_a_pod_from_its_proof_is_said(api: Api, words: str) -> None:
    (proof,) = prove(api)
    assert words in proof.error and proof.registered is None
    assert api.pods == {}


def test_a_server_that_goes_away_is_an_error_and_the_pods_are_tried_to_be_removed() -> None:
    api = Api()
    deleted: list[str] = []

    def away(*_arguments: typing.Any) -> typing.Any:
        raise ApiError(0, "Unreachable", "refused", "GET")

    def delete(kind: str, namespace: str, name: str, grace_seconds: int, only: typing.Any) -> bool:
        deleted.append(name)
        return False

    api.get, api.delete = away, delete  # type: ignore[assignment, method-assign]
    with pytest.raises(ApiError):
        prove(api)
    assert deleted[-1] == "linerate-memlock-compute-a"


class Crowded(Api):
    """Nodes n0 to n19. Each pod name but that of n0 is taken, and no deletion ends the pod that has it.

    :ivar mirrored: whether these are mirror pods of the kubelet of n0
    """

    def __init__(self, mirrored: bool) -> None:
        super().__init__()
        annotations = {"kubernetes.io/config.mirror": "x"} if mirrored else {}
        metadata = {"uid": "other", "labels": dict(MANAGED_BY), "annotations": annotations}
        self.taken = {
            f"linerate-memlock-compute-n{number}": {
                "metadata": metadata,
                "spec": {"nodeName": "n0" if mirrored else f"n{number}"},
                "status": {"phase": "Running"},
            }
            for number in range(1, 20)
        }

    def list(self, kind: str) -> Listing:
        return Listing(
            tuple(
                {
                    "kind": "Node",
                    "metadata": {"name": f"n{number}"},
                    "status": {"allocatable": {"openshift.io/mlx": "1"}},
                }
                for number in range(20)
            ),
            "1",
        )

    def create(self, definition: typing.Any, manager: str = "") -> typing.Any:
        name = definition["metadata"]["name"]
        if name in self.taken:
            raise ApiError(409, "AlreadyExists", f'pods "{name}" already exists', "POST")
        return super().create(definition)

    def get(self, kind: str, namespace: str, name: str) -> typing.Any:
        return self.taken.get(name) or super().get(kind, namespace, name)

    def delete(self, kind: str, namespace: str, name: str, grace_seconds: int, *, only: typing.Any) -> bool:
        if name in self.taken:
            return bool(only == {"uid": "other"})
        return super().delete(kind, namespace, name, grace_seconds, only=only)


@pytest.mark.parametrize(
    ("mirrored", "most", "words"),
    [
        (True, 10, "the kubelet of node n0 reports a mirror pod test/linerate-memlock-compute-n7"),
        (False, 2 * REMOVAL + 10, "a pod test/linerate-memlock-compute-n7 of an earlier run on node n7 does not end"),
    ],
    ids=["mirror pods", "pods that do not end"],
)
def test_pods_that_stay_are_waited_for_together_and_their_node_is_named(
    mirrored: bool, most: float, words: str
) -> None:
    api = Crowded(mirrored)
    proofs = prove(api, *(f"n{number}" for number in range(20)))
    assert api.now <= most
    assert proofs[0].registered == 0 and not proofs[0].error
    assert proofs[7].error == words and all(proof.error for proof in proofs[1:])


def test_a_refused_deletion_does_not_keep_the_other_pods() -> None:
    api = Api(left=["linerate-memlock-compute-a"])
    delete = api.delete

    def refuse(kind: str, namespace: str, name: str, grace_seconds: int, *, only: typing.Any) -> bool:
        if name.endswith("-b"):
            raise ApiError(403, "Forbidden", "no", "DELETE")
        return delete(kind, namespace, name, grace_seconds, only=only)

    api.delete = refuse  # type: ignore[method-assign]
    api.list = lambda kind: Listing(  # type: ignore[method-assign]
        tuple(
            {"kind": "Node", "metadata": {"name": name}, "status": {"allocatable": {"openshift.io/mlx": "1"}}}
            for name in "ba"
        ),
        "1",
    )
    prove(api, "b", "a")
    assert "linerate-memlock-compute-a" not in api.pods


def test_a_pod_of_others_under_the_name_of_a_pod_stays() -> None:
    """Any client that may create pods in the namespace of the jobs can take the name first."""
    api = Api(left=["linerate-memlock-compute-a"])
    api.pods["linerate-memlock-compute-a"]["metadata"]["labels"] = {}
    create = api.create

    def refuse(definition: typing.Any, manager: str = "") -> typing.Any:
        if definition["metadata"]["name"] in api.pods:
            raise ApiError(409, "AlreadyExists", "already exists", "POST")
        return create(definition)

    api.create = refuse  # type: ignore[method-assign]
    (proof,) = prove(api)
    assert list(api.pods) == ["linerate-memlock-compute-a"] and not api.made
    assert proof.error == (
        "a pod test/linerate-memlock-compute-a without the label of linerate.rdma exists on node unknown; delete it"
    )


def test_a_pod_that_replaced_the_one_of_an_earlier_run_is_neither_deleted_nor_awaited() -> None:
    name = "linerate-memlock-compute-a"
    api = Api(left=[name])
    delete, asked = api.delete, []

    def replace(kind: str, namespace: str, named: str, grace_seconds: int, *, only: typing.Any) -> bool:
        asked.append(only)
        gone = delete(kind, namespace, named, grace_seconds, only=only)
        if len(asked) == 1:
            api.pods[name] = {"metadata": {"name": name, "uid": "theirs"}, "status": {}}
        return gone

    api.delete = replace  # type: ignore[method-assign, assignment]

    def refuse(definition: typing.Any, manager: str = "") -> typing.Any:
        raise ApiError(409, "AlreadyExists", "already exists", "POST")

    api.create = refuse  # type: ignore[method-assign]
    prove(api)
    assert asked == [{"uid": f"left-{name}"}] and api.pods[name]["metadata"]["uid"] == "theirs"
    assert api.now < REMOVAL
