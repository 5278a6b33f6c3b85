# SPDX-License-Identifier: GPL-3.0-or-later

"""Which check fails on each key of the intent when the facts contradict it, and why none does where that is so. The
tests hold each row."""

from __future__ import annotations

import typing

from .fleet import PAIR, ROCE, Shape

_RUN = "It says how the run works and what it may do; nothing is to come of it."
_PODS = "It says what the pods that measure are made of; without it they don't start, or have no figure."
_MADE = "It is in an object that the API server took, and the pods of later stages are attached by that."
_LOOSE = "It only asks for less."


class Wish(typing.NamedTuple):
    """A value of a key of the intent that the facts of a healthy fleet contradict.

    :ivar key: path of the key in the intent
    :ivar value: that the fleet does not have
    :ivar check: that fails on it
    :ivar beside: further keys that it needs
    :ivar unmade: kind of an object that is left out of those that were applied
    :ivar warns: the check only warns
    """

    key: str
    value: typing.Any
    check: str
    on: Shape = PAIR
    beside: typing.Mapping[str, typing.Any] = {}
    unmade: str = ""
    warns: bool = False


_NETWORK, _SELECT, _IPAM, _HOST = "fabric.network.", "fabric.select.", "fabric.ipam.", "cluster.host."

WISHES: tuple[Wish, ...] = (
    Wish("fabric.name", "other", "bandwidth.pod"),
    Wish("fabric.profile", "rdma_shared", "operators.definition"),
    Wish(_NETWORK + "namespace", "elsewhere", "training.hcas"),
    Wish(_NETWORK + "name", "net-other", "training.hcas"),
    Wish(
        _NETWORK + "pod_security.enforce",
        "privileged",
        "network.object_accepted",
        beside={_NETWORK + "pod_security.reason": "IPC_LOCK"},
        unmade="Namespace",
    ),
    Wish(_NETWORK + "vlan", 200, "virtual_functions.settings", ROCE),
    Wish(_NETWORK + "vlan_qos", 3, "virtual_functions.settings", ROCE),
    Wish(_NETWORK + "trust", False, "virtual_functions.settings", ROCE),
    Wish(_NETWORK + "spoof_check", False, "virtual_functions.settings", ROCE),
    Wish(_NETWORK + "min_tx_rate", 100, "virtual_functions.settings", ROCE),
    Wish(_NETWORK + "max_tx_rate", 1000, "virtual_functions.settings", ROCE),
    Wish(_IPAM + "exclude", ["100.64.0.0/29", "100.64.1.0/29"], "bandwidth.pod"),
    Wish(_IPAM + "gateway", "100.64.0.1", "bandwidth.pod"),
    Wish(_SELECT + "hcas_per_node", 3, "network.allocatable"),
    Wish(_SELECT + "subnet_manager", ["0x0900000000000100"], "fabric.membership"),
    Wish(_SELECT + "pci", ["0000:99:00.0"], "discover.select"),
    Wish(_SELECT + "netdev", ["eth9"], "discover.hcas"),
    Wish(_SELECT + "vendor", "8086", "discover.hcas"),
    Wish(_SELECT + "device", "1017", "discover.hcas"),
    Wish("fabric.virtual_functions", 3, "virtual_functions.count"),
    Wish("fabric.resource_name", "other", "virtual_functions.allocatable"),
    Wish(_IPAM + "range", "100.80.0.0/14", "bandwidth.pod"),
    Wish(_IPAM + "range_start", "100.65.0.0", "bandwidth.pod"),
    Wish(_IPAM + "range_end", "100.64.0.1", "bandwidth.pod"),
    Wish(_IPAM + "pool.name", "other", "network.object_accepted", ROCE),
    Wish(_IPAM + "pool.kind", "CIDRPool", "operators.definition", ROCE),
    Wish(_IPAM + "pool.namespace", "other", "network.object_accepted", ROCE),
    Wish("fabric.uplinks", 9, "fabric.uplinks"),
    Wish("fabric.mtu", 1500, "virtual_functions.mtu"),
    Wish("fabric.rdma", False, "host.memlock", ROCE),
    Wish("fabric.roce.dscp", 30, "tuning.roce", ROCE),
    Wish("fabric.roce.priority", 4, "tuning.roce", ROCE),
    Wish("fabric.line_rate.fraction", 0.99, "bandwidth.floor"),
    Wish("fabric.line_rate.expected_gbps", 800.0, "bandwidth.link"),
    Wish("fabric.line_rate.floor_gbps", 395.0, "bandwidth.floor", beside={"fabric.line_rate.reason": "acceptance"}),
    Wish("fabric.pods.message_bytes", 65536, "bandwidth.measured"),
    Wish("fabric.pods.queue_pairs", 4, "bandwidth.measured"),
    Wish("fabric.pods.iterations", 7, "bandwidth.measured"),
    Wish("fabric.bandwidth.directions", "at_once", "bandwidth.floor"),
    Wish("fabric.bandwidth.sweep", True, "bandwidth.sweep"),
    Wish("fabric.bandwidth.latency", True, "bandwidth.latency"),
    Wish("fabric.bandwidth.layers", "all", "bandwidth.layer"),
    Wish("cluster.node_selector", {"role": "gpu"}, "operators.label"),
    Wish("cluster.nodes_expected", 3, "discover.nodes"),
    Wish("cluster.operator_namespace", "other", "operators.single"),
    Wish("cluster.resource_prefix", "other.io", "operators.resource_prefix"),
    Wish("cluster.disruption", "none", "network.disruption", ROCE),
    Wish("cluster.node_pool.max_unavailable", 1, "network.object_accepted"),
    Wish(
        "cluster.node_pool.rdma_mode",
        "exclusive",
        "network.object_accepted",
        beside={"cluster.node_pool.max_unavailable": 1},
    ),
    Wish("cluster.network_operator.ofed_driver", "doca3.4.0-26.04-0.8.6.0-0", "validate.cluster"),
    Wish("cluster.network_operator.nv_ipam", True, "validate.cluster"),
    Wish("cluster.network_operator.nic_feature_discovery", True, "validate.cluster"),
    Wish(_HOST + "memlock.by", "machine_config", "network.object_accepted"),
    Wish(_HOST + "memlock.limit_gib", 64, "host.memlock"),
    Wish(_HOST + "memlock.proof_mib", 1024, "host.memlock"),
    Wish(_HOST + "kernel_arguments", ["iommu=strict"], "host.kernel_arguments"),
    *(
        Wish(f"{_HOST}kubelet.{key}", value, "network.object_accepted", ROCE, unmade="KubeletConfig")
        for key, value in (
            ("topology_manager_policy", "restricted"),
            ("topology_manager_scope", "pod"),
            ("cpu_manager_policy", "static"),
            ("reserved_system_cpus", "0-1"),
        )
    ),
    *(Wish(f"cluster.bios.{key}", False, "validate.cluster") for key in ("sriov", "above_4g", "ari")),
    Wish("cluster.bios.iommu", False, "platform.bios", ROCE),
    *(
        Wish(f"cluster.bios.{key}", True, "platform.bios", warns=True)
        for key in ("acs", "smt", "c_states", "relaxed_ordering")
    ),
    Wish("cluster.bios.numa_per_socket", 4, "platform.bios", warns=True),
    Wish("cluster.bios.max_read_request", 4096, "platform.bios", warns=True),
    Wish("cluster.bios.profile", ["Performance"], "platform.bios", warns=True),
    Wish("cluster.firmware.num_of_vfs", 64, "platform.firmware"),
    Wish("cluster.firmware.advanced_pci_settings", True, "platform.firmware"),
    Wish("cluster.firmware.ats_enabled", True, "platform.firmware"),
    Wish("cluster.firmware.pci_wr_ordering", "force_relax", "platform.firmware"),
    Wish("cluster.firmware.max_acc_out_read", 44, "platform.firmware"),
    Wish("cluster.tuning.expected", {"swappiness": "99"}, "tuning.memory"),
    Wish("cluster.mirror", {"nvcr.io": "m.example/x"}, "operators.mirror"),
    Wish("cluster.training.ranks", 99, "training.ranks"),
)

#: by the beginning of the keys, why no facts of these fleets contradict them
NEVER_CONTRADICTED: typing.Mapping[str, str] = {
    _NETWORK + "pod_security.reason": "It is for the reader.",
    _NETWORK + "link_state": _MADE,
    _NETWORK + "meta_plugins": _MADE,
    _NETWORK + "mode": "Of macvlan, which these fleets have not.",
    _IPAM + "type": "Another one means other keys, which stage validate refuses.",
    _IPAM + "routes": _MADE,
    _IPAM + "pool.per_node_block_size": "The stage changes the pool, and waits for shares of it.",
    _IPAM + "pool.per_node_network_prefix": "Of a CIDRPool, which these fleets have not.",
    _IPAM + "pool.gateway_index": "Of a CIDRPool, which these fleets have not.",
    _IPAM + "pool.create": "The pool is there, whoever made it.",
    "fabric.pods_per_node": "Of networks that pods share, which these fleets have not.",
    "fabric.rails": "All cables of these fleets are right; tests/unit/check/test_bandwidth_rails.py has others.",
    "fabric.routing": "Nothing that is read tells it; see docs/intent.md.",
    "fabric.line_rate.fleet_fraction": (
        "All pairs of a healthy fleet are equal; tests/unit/check/test_check_bandwidth.py has others."
    ),
    "fabric.line_rate.reason": "It is for the reader.",
    "fabric.pods.": _PODS,
    "fabric.bandwidth.most_latency_us": "These fleets ask for none; tests/unit/check/test_latency.py holds pairs.",
    "fabric.bandwidth.latency_ratio": "These fleets ask for none; tests/unit/check/test_latency.py holds pairs.",
    "fabric.bandwidth.rounds": "Two nodes have one round; tests/unit/check/test_check_bandwidth.py has more.",
    "fabric.bandwidth.rails": (
        "It says how many functions share a card while they are measured, by which the floor is worked out."
    ),
    "cluster.wait_seconds": _RUN,
    "cluster.drain.": _RUN,
    "cluster.pause_health_checks": _RUN,
    "cluster.management_cluster_paused": _RUN,
    "cluster.network_operator.version": (
        "Of profiles that need NVIDIA's network operator; tests/unit/check/test_needed_operators.py has other releases."
    ),
    "cluster.network_operator.repository": (
        "Of profiles that need NVIDIA's network operator, which these fleets have not."
    ),
    _HOST + "memlock.unlimited": _LOOSE,
    _HOST + "memlock.ulimits": "Limits of others that a MachineConfig keeps; the container runtime has them, no fact.",
    "cluster.intent_name": _MADE,
    _HOST + "kubelet.pool_labels": (
        "It says of which pools the KubeletConfig is; network.roll and network.kubelet judge those that the nodes"
        " are of."
    ),
    _HOST + "machine_role": (
        "It says of which pools the objects are; network.roll and network.kubelet judge those that the nodes are of."
    ),
    _HOST + "gpudirect": "These fleets can do both; tests/unit/check/test_check_host.py has others.",
    "cluster.tuning.profile": "A profile is advice; values of one's own are cluster.tuning.expected.",
    "cluster.tuning.cuda": "It is the least driver of jobs; tests/unit/check/test_tuning.py has older ones.",
    "cluster.tuning.set": _RUN,
    "cluster.collectives.": (
        "These fleets ask for none; tests/unit/run/test_collectives.py and tests/unit/check/test_collective_climb.py"
        " hold each."
    ),
    "cluster.measures": "Figures of jobs are the user's word.",
    "cluster.training.fabric": "Another fabric is refused by stage validate, or has other HCAs.",
    "cluster.training.gpu_direct": _LOOSE,
    "cluster.training.interfaces": _LOOSE,
    "cluster.training.library": "It says whose lines count; tests/unit/check/test_training_ucx.py has logs of UCX.",
}
