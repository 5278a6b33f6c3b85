# SPDX-License-Identifier: GPL-3.0-or-later

"""All check ids. They are the collection's public names: users waive them, CI systems count them. A test holds this list and the checks together."""

from __future__ import annotations

from .._model.findings import STAGES
from .._model.version import DOCUMENTATION

#: what each stage looks at; the order of the ids means nothing
WHAT = {
    "validate": (
        "addresses",
        "api_server",
        "archive",
        "claims",
        "cluster",
        "collectives",
        "disjoint_ranges",
        "gateway",
        "helm",
        "host",
        "images",
        "intent",
        "ipam",
        "library",
        "line_rate",
        "measures",
        "names",
        "nodes",
        "numbers",
        "operators",
        "pod_security",
        "pods",
        "powers",
        "profile",
        "rdma_mode",
        "rights",
        "routes",
        "select",
        "tuning",
        "unique_names",
        "variables",
        "waivers",
    ),
    "discover": ("clock", "descriptions", "driver", "fleet", "guids", "hcas", "node", "numa", "pcie", "port", "read", "select", "sriov"),
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
        "lids",
        "manager",
        "membership",
        "node",
        "one_master",
        "partitions",
        "priority",
        "rails",
        "rate",
        "select",
        "standby",
        "topology",
        "uplinks",
    ),
    "reachability": ("coverage", "node", "pair", "port", "scope", "suspect"),
    "platform": ("bios", "bmc_identity", "driver", "firmware", "iommu", "node", "returned", "roll", "scope", "sriov"),
    "tuning": ("alike", "cpu", "gpu", "kernel", "kubelet", "memory", "network", "node", "pci", "roce", "set"),
    "operators": (
        "config",
        "daemon",
        "definition",
        "driver",
        "driver_kernels",
        "image",
        "label",
        "mirror",
        "multus",
        "needed",
        "node",
        "olm",
        "pods",
        "read",
        "ready",
        "resource_prefix",
        "rights",
        "single",
        "version",
    ),
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
    "virtual_functions": (
        "allocatable",
        "count",
        "driver",
        "guids",
        "link_state",
        "members",
        "mtu",
        "node",
        "rdma_device",
        "read",
        "report",
        "settings",
        "stuck",
        "sync",
    ),
    "host": ("cluster_policy", "containerd", "gpudirect", "kernel_arguments", "memlock", "memlock_limit"),
    "bandwidth": ("cleanup", "coverage", "fleet", "floor", "layer", "link", "measured", "pod", "rounds", "routing", "rping", "suspect", "sweep", "trend"),
    "collectives": (
        "bandwidth",
        "cause",
        "channels",
        "cleanup",
        "figures",
        "gpu_direct",
        "groups",
        "inside",
        "log",
        "network",
        "nodes",
        "pod",
        "problem",
        "rails",
        "ranks",
        "started",
        "steps",
        "suspect",
        "transport",
        "version",
        "wanted",
        "way",
    ),
    "compare": ("advice", "choice", "figures", "scaling"),
    "training": ("channels", "gpu_direct", "hcas", "log", "oob", "problem", "rails", "ranks", "transport", "version"),
}
#: what is looked at beside the stages, by modules that a user calls for a training job
BESIDE = {
    "job": (
        "added",
        "admission",
        "claims",
        "device_claims",
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

#: where the page of a finding is; a site that has the documentation itself names its own
PAGES = DOCUMENTATION + "/findings/{page}.md"


def page_of(check: str) -> str:
    """Name of the page in docs/findings that explains a finding: its id, or that of the frame for all stages."""
    what = check.partition(".")[2]
    return f"stage.{what}" if what in OF_THE_FRAME and check != "validate.intent" else check


def address_of(check: str, pages: str = PAGES) -> str:
    """Where that page is.

    :param pages: address of all of them, with ``{page}`` for the name
    """
    return pages.replace("{page}", page_of(check))
