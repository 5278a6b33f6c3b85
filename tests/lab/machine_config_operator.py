# SPDX-License-Identifier: GPL-3.0-or-later

"""Stands in for OpenShift's machine config operator, as far as it shows in MachineConfigPools: ``machine_config_operator KUBECONFIG [reboot|forget]``.

A pool's configuration is rendered anew when other MachineConfigs carry its label; one machine after the other gets it, unless the pool is paused. No
machine reboots. A KubeletConfig becomes a MachineConfig of each pool that it selects, also of a paused one, and is accepted; without the finalizer that the
real one sets, which would keep what is there when this ends. Each step of a pool is a line of the output. It ends when it is killed.

With ``reboot`` the machines are the nodes that a pool selects. Each is cordoned in its turn, not drained, and reset, so that its BIOS takes what waits; it is
free again when it is Ready with another boot. Annotations of the node say so, as the real ones do: ``forget`` takes them away.
"""

from __future__ import annotations

import hashlib
import sys
import time
import typing

import kubernetes.config
import kubernetes.dynamic

from lab import description
from lab.planes import Lab

VERSION, SECONDS = "machineconfiguration.openshift.io/v1", 0.5
#: before the names of annotations of nodes
ANNOTATIONS = "machineconfiguration.openshift.io/"


def serve(kubelets: typing.Any, configs: typing.Any, pools: typing.Any) -> None:
    """One look at all KubeletConfigs: their MachineConfigs are made, or taken back, and those that are new are accepted."""
    wanted, there = {}, kubelets.get().to_dict()["items"]
    for item in there:
        selector = ",".join(f"{key}={value}" for key, value in item["spec"]["machineConfigPoolSelector"]["matchLabels"].items())
        wanted.update({f"99-{pool.metadata.name}-generated-kubelet": pool.metadata.name for pool in pools.get(label_selector=selector).items})
    made = {item.metadata.name for item in configs.get().items if item.metadata.name.endswith("-generated-kubelet")}
    for name in wanted.keys() - made:
        metadata = {"name": name, "labels": {"machineconfiguration.openshift.io/role": wanted[name]}}
        configs.create(body={"apiVersion": VERSION, "kind": "MachineConfig", "metadata": metadata, "spec": {"config": {"ignition": {"version": "3.2.0"}}}})
    for name in made - wanted.keys():
        configs.delete(name=name)
    for item in there:
        generation = item["metadata"]["generation"]
        if (item.get("status") or {}).get("observedGeneration") != generation:
            accepted = {"observedGeneration": generation, "conditions": [{"type": "Success", "status": "True", "message": "Success"}]}
            _patch(kubelets.status, item["metadata"]["name"], {"status": accepted})


class Nodes:
    """The machines of pools, which reboot."""

    def __init__(self, resource: typing.Any) -> None:
        self._resource, self._lab = resource, Lab(description.read())
        #: ids of the boots before
        self._boots: typing.Dict[str, str] = {}

    def step(self, pool: typing.Any, rendered: str) -> typing.Tuple[int, int]:
        """One look at the nodes of a pool, at most one of which is away: how many have what it wants, and how many there are."""
        selector = ",".join(f"{key}={value}" for key, value in pool["spec"]["nodeSelector"]["matchLabels"].items())
        members = self._resource.get(label_selector=selector).to_dict()["items"]
        has = {node["metadata"]["name"]: node["metadata"].get("annotations", {}).get(f"{ANNOTATIONS}currentConfig") for node in members}
        for node in members:
            name = node["metadata"]["name"]
            if has[name] is None:
                # it has joined with what there is
                self._tell(name, rendered, rendered, "Done", None)
            elif name in self._boots:
                ready = any(item["type"] == "Ready" and item["status"] == "True" for item in node["status"]["conditions"])
                if ready and node["status"]["nodeInfo"]["bootID"] != self._boots[name]:
                    del self._boots[name]
                    self._tell(name, rendered, rendered, "Done", None)
                    print(f"{pool['metadata']['name']}: {name} has {rendered}", flush=True)
        behind = [node for node in members if has[node["metadata"]["name"]] not in (None, rendered)]
        if behind and not self._boots and not pool["spec"].get("paused"):
            name = behind[0]["metadata"]["name"]
            self._boots[name] = behind[0]["status"]["nodeInfo"]["bootID"]
            self._tell(name, has[name], rendered, "Working", True)
            print(f"{pool['metadata']['name']}: {name} goes to {rendered}", flush=True)
            self._lab.bmc(name).reset()
        return sum(config == rendered for config in has.values()), len(members)

    def forget(self) -> None:
        """Take away what it has told of all nodes."""
        for node in self._resource.get().items:
            self._tell(node.metadata.name, None, None, None, None)

    def _tell(self, name: str, has: typing.Optional[str], wanted: typing.Optional[str], state: typing.Optional[str], cordoned: typing.Optional[bool]) -> None:
        told = {f"{ANNOTATIONS}{key}": value for key, value in (("currentConfig", has), ("desiredConfig", wanted), ("state", state))}
        _patch(self._resource, name, {"metadata": {"annotations": told}, "spec": {"unschedulable": cordoned}})


def step(configs: typing.Any, pools: typing.Any, nodes: typing.Optional[Nodes] = None) -> None:
    """One look at all pools, and at most one change to each of them."""
    for pool in pools.get().to_dict()["items"]:
        selector = ",".join(f"{key}={value}" for key, value in pool["spec"]["machineConfigSelector"]["matchLabels"].items())
        names = sorted(item.metadata.name for item in configs.get(label_selector=selector).items)
        name, wanted, status = pool["metadata"]["name"], pool["spec"].get("configuration") or {}, pool.get("status") or {}
        rendered = f"rendered-{name}-{hashlib.sha256(','.join(names).encode()).hexdigest()[:8]}"
        if wanted.get("name") != rendered:
            source = [{"apiVersion": VERSION, "kind": "MachineConfig", "name": item} for item in names]
            _patch(pools, name, {"spec": {"configuration": {"name": rendered, "source": source}}})
            # a machine that has the old one is not up to date any more
            _patch(pools.status, name, {"status": {"updatedMachineCount": 0}})
            print(f"{name}: {rendered} of {', '.join(names) or 'nothing'}", flush=True)
        elif nodes is not None:
            done, members = nodes.step(pool, rendered)
            told = {"machineCount": members, "updatedMachineCount": done, **({"configuration": {"name": rendered}} if done == members else {})}
            _patch(pools.status, name, {"status": told})
        elif (status.get("configuration") or {}).get("name") != rendered and not pool["spec"].get("paused"):
            updated = status.get("updatedMachineCount", 0) + 1
            done = updated >= status["machineCount"]
            _patch(pools.status, name, {"status": {"updatedMachineCount": updated, **({"configuration": {"name": rendered}} if done else {})}})
            print(f"{name}: machine {updated} goes to {rendered}", flush=True)


def _patch(resource: typing.Any, name: str, change: typing.Mapping[str, typing.Any]) -> None:
    resource.patch(name=name, body=change, content_type="application/merge-patch+json")


def main() -> None:
    client = kubernetes.dynamic.DynamicClient(kubernetes.config.new_client_from_config(sys.argv[1]))
    nodes = Nodes(client.resources.get(api_version="v1", kind="Node")) if sys.argv[2:] else None
    if nodes is not None and sys.argv[2] == "forget":
        nodes.forget()
        return
    kubelets, configs, pools = (client.resources.get(api_version=VERSION, kind=kind) for kind in ("KubeletConfig", "MachineConfig", "MachineConfigPool"))
    print("ready", flush=True)
    while True:
        serve(kubelets, configs, pools)
        step(configs, pools, nodes)
        time.sleep(SECONDS)


if __name__ == "__main__":
    main()
