# SPDX-License-Identifier: GPL-3.0-or-later

"""Health checks and Machines of Cluster API, whichever version of the API group the API server serves: up to release
1.10 that is v1beta1, from release 1.16 on v1beta2 alone."""

from __future__ import annotations

import json
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.health_check import PAUSED, list_versions
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.resource import ResourceError
from ansible_collections.linerate.rdma.tests.unit.bmc_server import Certificates
from ansible_collections.linerate.rdma.tests.unit.fake_api import Resource
from ansible_collections.linerate.rdma.tests.unit.hostile.test_rolls import PAUSE, manage_elsewhere
from ansible_collections.linerate.rdma.tests.unit.roll_world import NODES, World, merged, of, playing, states

GROUP = "/apis/cluster.x-k8s.io"
CHECK = "namespaces/fleet/machinehealthchecks/workers"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


class ClusterApi(World):
    """A cluster with Cluster API, whose nodes a MachineHealthCheck watches. A node is reset only while it is paused.

    :ivar versions: versions of the API group, the preferred one first
    """

    def __init__(self, versions: typing.Sequence[str]) -> None:
        super().__init__()
        self.versions, self.base = tuple(versions), f"{GROUP}/{versions[-1]}"
        for group in ("/apis/config.openshift.io", GROUP):
            self._objects[group], self._events[group] = {}, []
        self.serve("ClusterVersion", [])
        labels = {"role": "worker"}
        self.make(
            "machines",
            *(
                {
                    "metadata": {"namespace": "fleet", "name": f"md-0-{name}", "labels": labels},
                    "status": {"nodeRef": {"name": name}},
                }
                for name in NODES
            ),
        )
        self.make(
            "machinehealthchecks",
            {
                "metadata": {"namespace": "fleet", "name": "workers", "resourceVersion": "1"},
                "spec": {"clusterName": "c", "selector": {"matchLabels": labels}},
            },
        )

    def make(self, plural: str, *objects: Resource) -> None:
        self.serve(typing.cast(str, (self.base, plural, True)), objects)

    def listing(self, path: str) -> typing.Optional[bytes]:
        if path != GROUP:
            return super().listing(path)
        versions = [{"groupVersion": f"{GROUP[6:]}/{name}", "version": name} for name in self.versions]
        group = {"kind": "APIGroup", "name": GROUP[6:], "versions": versions, "preferredVersion": versions[0]}
        return json.dumps(group).encode()

    @property
    def paused(self) -> bool:
        found = self.object(f"{self.base}/machinehealthchecks/workers") or {}
        return PAUSED in found["metadata"].get("annotations", {})

    def write(self, method: str, path: str, body: Resource, dry_run: bool = False) -> tuple[int, Resource]:
        if path != f"{self.base}/{CHECK}":
            return super().write(method, path, body, dry_run)
        listed = f"{self.base}/machinehealthchecks"
        self._happen(listed, "MODIFIED", merged(self._objects[listed]["workers"], body))
        self.do(f"{'pause' if self.paused else 'resume'} the health check")
        return 200, self._objects[listed]["workers"]

    def boot(self, name: str) -> None:
        assert self.paused, "the node would be remediated"
        super().boot(name)


VERSIONS = pytest.mark.parametrize("versions", [("v1beta2",), ("v1beta2", "v1beta1"), ("v1beta1",)])


@VERSIONS
def test_a_health_check_keeps_its_nodes_in_each_served_version(
    certificates: Certificates, versions: tuple[str, ...]
) -> None:
    with playing(certificates, ClusterApi(versions)) as site:
        done = site.run()
        assert set(states(done).values()) == {"blocked"} and site.resets() == {}
        assert "MachineHealthCheck fleet/workers would remediate the node" in of(done, "worker-1").why


@VERSIONS
def test_a_health_check_is_paused_and_resumed_in_each_served_version(
    certificates: Certificates, versions: tuple[str, ...]
) -> None:
    world = ClusterApi(versions)
    with playing(certificates, world) as site:
        assert states(site.run(PAUSE)) == dict.fromkeys(NODES, "done")
        assert [what for what in world.did if "health check" in what] == [
            "pause the health check",
            "resume the health check",
        ]


@VERSIONS
def test_machines_are_found_in_each_served_version(certificates: Certificates, versions: tuple[str, ...]) -> None:
    with playing(certificates, manage_elsewhere(ClusterApi(versions))) as site:
        assert states(site.run(PAUSE)) == dict.fromkeys(NODES, "done")


def test_the_preferred_version_comes_first() -> None:
    versions = [{"version": "v1beta1"}, {"version": "v1beta2"}]
    assert list_versions({"versions": versions, "preferredVersion": {"version": "v1beta2"}}) == ("v1beta2", "v1beta1")
    assert list_versions({"versions": versions}) == ("v1beta1", "v1beta2") and list_versions({}) == ()
    with pytest.raises(ResourceError, match="versions is not a list"):
        list_versions({"versions": "v1beta2"})
