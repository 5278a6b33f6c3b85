# SPDX-License-Identifier: GPL-3.0-or-later

"""The network namespace of the lab: a bridge for the workers, a bridge for their other NICs, and a tap for each NIC."""

from __future__ import annotations

import json

from .description import Description
from .processes import end
from .run import run

CLUSTER_BRIDGE = "cluster"
STORAGE_BRIDGE = "storage"
#: the NICs of a worker, and where each is plugged in: eth0, the igb eth1, and the plain vnic0 that a pod may have as a
#: whole
NICS = {"cluster": CLUSTER_BRIDGE, "storage": STORAGE_BRIDGE, "vnic": STORAGE_BRIDGE}


def _inside(description: Description, *words: str) -> str:
    return run(["ip", "-n", description.network.namespace, *words])


def exists(description: Description) -> bool:
    names = [item["name"] for item in json.loads(run(["ip", "-j", "netns", "list"]) or "[]")]
    return description.network.namespace in names


def create(description: Description) -> None:
    """Make what is not there yet; nothing of it is seen outside of the namespace."""
    network = description.network
    if not exists(description):
        run(["ip", "netns", "add", network.namespace])
    _inside(description, "link", "set", "lo", "up")
    links = {link["ifname"] for link in json.loads(_inside(description, "-j", "link", "show"))}
    for bridge in (CLUSTER_BRIDGE, STORAGE_BRIDGE):
        if bridge not in links:
            _inside(
                description,
                "link",
                "add",
                bridge,
                "type",
                "bridge",
                "stp_state",
                "0",
                "forward_delay",
                "0",
                "mcast_snooping",
                "0",
            )
            _inside(description, "link", "set", bridge, "mtu", "9000", "up")
            if bridge == CLUSTER_BRIDGE:
                _inside(description, "address", "add", f"{network.address}/{network.prefix}", "dev", bridge)
    for worker in description.workers:
        _inside(description, "address", "replace", f"{worker.bmc.address}/32", "dev", CLUSTER_BRIDGE)
        for nic, bridge in NICS.items():
            name = tap(worker.name, nic)
            if name not in links:
                _inside(description, "tuntap", "add", name, "mode", "tap")
                _inside(description, "link", "set", name, "master", bridge, "mtu", "9000", "up")
        # replies of pods come back through their worker
        _inside(description, "route", "replace", str(description.pod_subnet(worker)), "via", worker.address)


def tap(worker: str, nic: str) -> str:
    """Name of the tap of a worker's NIC; Linux allows 15 characters."""
    return f"{nic[:4]}-{worker}"[:15]


def processes(description: Description) -> list[int]:
    """Ids of all processes in the namespace."""
    if not exists(description):
        return []
    return [int(word) for word in run(["ip", "netns", "pids", description.network.namespace]).split()]


def remove(description: Description) -> None:
    """End what is left in the namespace, by process id, and delete it with all its links."""
    end(processes(description))
    if exists(description):
        run(["ip", "netns", "delete", description.network.namespace])
