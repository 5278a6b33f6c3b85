# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection linerate.rdma: no other code may import this.

"""All check ids. They are the collection's public names: users waive them, CI systems count them. A test holds this list and the checks together."""

from __future__ import annotations

from .._model.findings import STAGES

#: what each stage looks at; the order of the ids means nothing
WHAT = {
    "validate": (
        "addresses",
        "claims",
        "cluster",
        "disjoint_ranges",
        "gateway",
        "host",
        "intent",
        "ipam",
        "line_rate",
        "measures",
        "names",
        "nodes",
        "numbers",
        "pods",
        "profile",
        "rdma_mode",
        "routes",
        "select",
        "unique_names",
        "variables",
        "waivers",
    ),
    "discover": ("descriptions", "driver", "fleet", "guids", "hcas", "node", "pcie", "port", "read", "select", "sriov"),
    "fabric": (
        "activity",
        "capability",
        "errors",
        "errors_growing",
        "foreign",
        "guids",
        "hca",
        "hcas",
        "island",
        "manager",
        "membership",
        "node",
        "one_master",
        "priority",
        "rails",
        "rate",
        "select",
        "standby",
        "topology",
        "uplinks",
    ),
    "reachability": ("node", "pair", "port", "scope", "suspect"),
    "platform": ("bios", "driver", "firmware", "iommu", "node", "scope", "sriov"),
    "operators": ("config", "daemon", "definition", "label", "multus", "node", "olm", "read", "ready", "resource_prefix", "rights", "single", "version"),
    "network": (
        "address_overlap",
        "address_pool",
        "addresses",
        "allocatable",
        "attachment_accepted",
        "disruption",
        "drain",
        "kubelet",
        "leftover",
        "lint_functions",
        "lint_link",
        "lint_operator",
        "lint_overlap",
        "lint_policy",
        "lint_rdma",
        "lint_read",
        "lint_select",
        "namespace_accepted",
        "object_accepted",
        "policy_accepted",
        "ready",
        "roll",
    ),
    "virtual_functions": ("allocatable", "count", "driver", "guids", "link_state", "members", "mtu", "node", "rdma_device", "report", "settings"),
    "host": ("cluster_policy", "containerd", "gpudirect", "memlock", "memlock_limit"),
    "bandwidth": ("cleanup", "fleet", "floor", "measured", "pod", "rping", "suspect", "sweep"),
    "compare": ("advice", "choice", "figures", "scaling"),
    "training": ("channels", "gpu_direct", "hcas", "log", "oob", "problem", "rails", "ranks", "transport", "version"),
}
#: what is looked at beside the stages, by modules that a user calls for a training job
BESIDE = {
    "job": (
        "added",
        "claims",
        "devices",
        "evidence",
        "framework",
        "guaranteed",
        "hcas",
        "interfaces",
        "memlock",
        "nccl_variables",
        "networks",
        "read",
        "resources",
        "routes",
        "shared_memory",
        "transport",
        "volumes",
    ),
    "nic_map": ("complete", "netdevs", "peers", "range", "read", "unique"),
    "stack": ("operator", "policy", "queue", "read", "storage"),
}
#: findings of the frame itself, about any stage: its role failed, it did not run, the intent is wrong
OF_THE_FRAME = ("error", "run", "intent")

CHECKS = (
    *(f"{stage}.{what}" for stage in STAGES for what in sorted({*WHAT[stage], *OF_THE_FRAME})),
    *(f"{subject}.{what}" for subject, names in BESIDE.items() for what in names),
)
