#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_policy
short_description: Enable nvidia-peermem in the ClusterPolicy of the GPU operator
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - If C(rdma_cluster.host.gpudirect) is V(peermem), sets C(spec.driver.rdma.enabled) in the existing C(ClusterPolicy).
  - Never creates a C(ClusterPolicy), because the GPU operator accepts only one.
  - Never overwrites the field if another field manager owns it, such as Helm.
  - The operator then recreates its driver pods on all nodes with GPUs, in the inventory or not, and evicts the pods
    that use GPUs. So the module reads these nodes, their pods and the C(PodDisruptionBudgets) before it sets the field.
    It changes nothing if C(rdma_cluster.disruption) is V(none), or if an eviction is blocked.
  - The module does not fail if the field cannot be set. The result says why, and the check of the stage judges it.
options:
  cluster:
    description: The variable C(rdma_cluster).
    type: raw
  refusal:
    description:
      - Why the module must not set the field. RV(policies) then has it as C(error), if the field would be set.
      - The action plugin of this name sets it if C(--limit) of C(ansible-playbook) excludes nodes of the run, because
        the field changes all nodes with GPUs. Check mode permits any limit.
    type: str
extends_documentation_fragment:
  - linerate.rdma._options.cluster_facts
  - linerate.rdma._options.lease
  - linerate.rdma._attributes.changes
  - linerate.rdma._authentication.options
requirements:
  - kubernetes >= 24.2.0
attributes:
  check_mode:
    details:
      - The module uses the dry run of the API server.
  diff_mode:
    support: none
    details:
      - The change is one field. RV(changes) names it.
"""

EXAMPLES = r"""
- name: Enable nvidia-peermem
  linerate.rdma.cluster_policy:
    cluster: {host: {gpudirect: peermem}}
  register: host_policy
"""

RETURN = r"""
policies:
  description:
    - C(names) of all ClusterPolicies.
    - If there is exactly one, its C(state), its C(rdma) setting, whether it was C(changed), and the C(error), if any.
    - Whether it leaves the driver to objects of kind NVIDIADriver (C(delegated)), and these C(drivers), with the
      C(nodes) that each one selects.
  returned: success
  type: dict
changes:
  description: One line if the field was set, or would be set in check mode. It names the nodes with GPUs, and marks
    those outside of the inventory.
  returned: success
  type: list
  elements: str
  sample:
    - "ClusterPolicy gpu-cluster-policy driver.rdma.enabled, which restarts the driver of 2 nodes: worker-1, worker-9
      (not in the inventory)"
counts:
  description: Number of items in each list or mapping of the result. The result itself is then a fact in O(facts_dir).
  returned: if O(facts_dir) and O(run) are set
  type: dict
"""

import dataclasses
import typing

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.disruption.judge_plan import list_refusals
from ansible_collections.linerate.rdma.plugins.module_utils._ansible.cluster import connect, make_facts_spec
from ansible_collections.linerate.rdma.plugins.module_utils._ansible.fact_modules import find_folder, run_with_fact
from ansible_collections.linerate.rdma.plugins.module_utils._ansible.lease import LEASE_SPEC, hold_lease
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import load, to_data
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.phrases import count_of
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.text import join_first
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import ClusterIntent
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.host import ClusterPolicies
from ansible_collections.linerate.rdma.plugins.module_utils._observe.operators.gpu_operator import enable_rdma
from ansible_collections.linerate.rdma.plugins.module_utils._render.node.host import render_cluster_policy
from ansible_collections.linerate.rdma.plugins.module_utils._run.node_changes.read_disruption_plan import (
    RenderedObjects,
    read_plan,
)


def work(module: AnsibleModule) -> dict[str, typing.Any]:
    intent = load(ClusterIntent, module.params["cluster"] or {}, "rdma_cluster")
    if intent.host.gpudirect != "peermem":
        return {"changed": False, "policies": to_data(ClusterPolicies()), "changes": []}
    folder = find_folder(module)
    inventory = folder.start().nodes if folder else ()
    with hold_lease(module, connect(module)) as lease:
        planned = read_plan(lease.cluster, "", RenderedObjects(peermem=True), inventory, intent)
        nodes = [node.title for node in planned.nodes if node.driver]
        refused = list_refusals(intent, planned, inventory)
        why = module.params.get("refusal") or join_first(refused, between="; ")
        if intent.disruption == "none":
            why = (
                f"the GPU operator would restart its driver on {_describe(nodes)}, and evict the pods that use GPUs,"
                " which rdma_cluster.disruption: none does not allow; set it to drain"
            )
        seen = enable_rdma(lease.cluster, render_cluster_policy, module.check_mode or bool(why))
    if seen.changed and why:
        seen = dataclasses.replace(seen, changed=False, error=why)
    change = f"driver.rdma.enabled, which restarts the driver of {_describe(nodes)}"
    changes = [f"ClusterPolicy {seen.names[0]} {change}"] if seen.changed else []
    return {"changed": seen.changed, "policies": to_data(seen), "changes": changes}


def _describe(nodes: typing.Sequence[str]) -> str:
    return f"{count_of(len(nodes), 'node')}{': ' if nodes else ''}{join_first(nodes)}"


def main() -> None:
    module = AnsibleModule(
        argument_spec=make_facts_spec(**LEASE_SPEC, cluster={"type": "raw"}, refusal={"type": "str"}),
        supports_check_mode=True,
    )
    run_with_fact(module, lambda: work(module), "cluster_policy")


if __name__ == "__main__":
    main()
