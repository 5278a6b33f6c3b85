# SPDX-License-Identifier: GPL-3.0-or-later

"""Stands in for OpenShift's machine config operator, as far as it shows in MachineConfigPools: ``machine_config_operator KUBECONFIG``.

A pool's configuration is rendered anew when other MachineConfigs carry its label; one machine after the other gets it, unless the pool is paused. No
machine reboots. A KubeletConfig becomes a MachineConfig of each pool that it selects, also of a paused one, and is accepted; without the finalizer that the
real one sets, which would keep what is there when this ends. Each step of a pool is a line of the output. It ends when it is killed.
"""

from __future__ import annotations

import hashlib
import sys
import time
import typing

import kubernetes.config
import kubernetes.dynamic

VERSION, SECONDS = "machineconfiguration.openshift.io/v1", 0.5


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


def step(configs: typing.Any, pools: typing.Any) -> None:
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
        elif (status.get("configuration") or {}).get("name") != rendered and not pool["spec"].get("paused"):
            updated = status.get("updatedMachineCount", 0) + 1
            done = updated >= status["machineCount"]
            _patch(pools.status, name, {"status": {"updatedMachineCount": updated, **({"configuration": {"name": rendered}} if done else {})}})
            print(f"{name}: machine {updated} goes to {rendered}", flush=True)


def _patch(resource: typing.Any, name: str, change: typing.Mapping[str, typing.Any]) -> None:
    resource.patch(name=name, body=change, content_type="application/merge-patch+json")


def main() -> None:
    client = kubernetes.dynamic.DynamicClient(kubernetes.config.new_client_from_config(sys.argv[1]))
    kubelets, configs, pools = (client.resources.get(api_version=VERSION, kind=kind) for kind in ("KubeletConfig", "MachineConfig", "MachineConfigPool"))
    print("ready", flush=True)
    while True:
        serve(kubelets, configs, pools)
        step(configs, pools)
        time.sleep(SECONDS)


if __name__ == "__main__":
    main()
